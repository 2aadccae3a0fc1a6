"""Every value that crosses a layer: frozen, text only, serialisable.

The order below is that in which they come about: a `Finding` carries a `Claim` that the compiler can refute, an
`Observation` is what the compiler was seen doing, a `Verdict` compares the two, and a `Report` is all of it.
Standard library only: the worker side and the rules import this module and nothing else of the analyzer.

Lines and columns count from 1, columns in code points, ends are exclusive. Paths use "/". In a report,
lines of a notebook are those of a `cell`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class TlintError(Exception):
    """Something that was asked for by name cannot be done. The message says what and what to do; exit code 2."""


class Severity(enum.IntEnum):
    """The consequence of a finding."""

    info = 0
    warning = 1
    error = 2


class Confidence(enum.IntEnum):
    """How often findings of this kind turned out right on the accuracy set."""

    possible = 0
    likely = 1
    certain = 2


class RootKind(enum.IntEnum):
    """How a compile root was found. Explicit: the code compiles it. Named: the user did. Assumed: it is a `forward`."""

    assumed = 0
    named = 1
    explicit = 2


@dataclass(frozen=True, slots=True, order=True)
class Span:
    line: int
    column: int
    end_line: int
    end_column: int

    def contains(self, other: Span) -> bool:
        return (self.line, self.column) <= (other.line, other.column) and (other.end_line, other.end_column) <= (
            self.end_line,
            self.end_column,
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """A place on the way from a compile root to a finding: the call at `line` in `function`."""

    path: str
    line: int
    column: int
    function: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class RootPath:
    """One way to reach a finding. `root` is "module:qualname"."""

    root: str
    kind: RootKind
    fullgraph: bool
    via: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Related:
    path: str
    span: Span
    message: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """What the compiler should be seen doing at the finding's span.

    `gb_types` are Dynamo's own graph break types, any of which confirms. `when` is "default" (breaks in default mode
    but passes `fullgraph=True`), "fullgraph" (an error only there) or "always".
    """

    stage: str = "dynamo"
    gb_types: tuple[str, ...] = ()
    when: str = "always"


class Status(str, enum.Enum):
    confirmed = "confirmed"
    refuted = "refuted"
    unreached = "unreached"
    inconclusive = "inconclusive"
    not_run = "not_run"


@dataclass(frozen=True, slots=True)
class Verdict:
    status: Status = Status.not_run
    reason: str = ""
    gb_type: str | None = None
    gb_id: str | None = None
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    path: str
    span: Span
    text: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """`kind`: rewrite, guard, custom_op, disable or suppress. `safety`: safe, unsafe or display."""

    id: str
    kind: str
    title: str
    safety: str
    edits: tuple[Edit, ...] = ()
    preferred: bool = False
    group: str = ""
    effect: Mapping[str, Any] = field(default_factory=dict)
    proof: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    id: str
    code: str
    name: str
    message: str
    path: str
    span: Span
    severity: Severity
    confidence: Confidence
    origin: str = "static"
    cell: int | None = None
    state: str = "active"
    reason: str | None = None
    conditions: tuple[str, ...] = ()
    torch: tuple[str, ...] = ()
    paths: tuple[RootPath, ...] = ()
    paths_total: int = 0
    related: tuple[Related, ...] = ()
    claim: Claim | None = None
    verdict: Verdict = Verdict()
    fixes: tuple[Fix, ...] = ()


# What the worker saw --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Break:
    """One place where Dynamo broke the graph, folded over resume functions and repeated frames.

    `stack` is outermost first, as (path, line, function), of the user's frames. `intended`: a `disable` or torch asked
    for it. `frame_lost`: the whole frame fell back to eager. `cost` is graphs, eager operators, kernels, bytes,
    microseconds.
    """

    id: str
    gb_type: str
    message: str
    path: str
    line: int
    stack: tuple[tuple[str, int, str], ...] = ()
    gb_id: str | None = None
    finding: str | None = None
    cause: str | None = None
    predicted: bool = False
    intended: bool = False
    frame_lost: bool = False
    count: int = 1
    cost: Mapping[str, float] = field(default_factory=dict)
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Recompile:
    path: str
    line: int
    function: str
    guard: str
    source: str
    count: int
    limit_hit: bool


@dataclass(frozen=True, slots=True)
class CudagraphSkip:
    reason: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Target:
    """One thing that was verified, and what happened to it. The names are those of the report's format."""

    id: str
    name: str
    path: str
    inputs: str = "synthesised"
    assumed: tuple[str, ...] = ()
    train: bool = False
    device: str = "cpu"
    torch: str = ""
    triton: str = ""
    python: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    status: str = "skipped"
    phase: str = ""
    detail: str = ""
    gate: str = "not_run"
    breaks: tuple[Break, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    cudagraph_skips: tuple[CudagraphSkip, ...] = ()
    stages: Mapping[str, Any] = field(default_factory=dict)
    suggestions: tuple[str, ...] = ()
    seconds: float = 0.0
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """A target with the instruction spans that Dynamo executed, by path. Empty: the interpreter has no positions."""

    target: Target
    executed: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    trials: tuple[Mapping[str, Any], ...] = ()


# The report -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleInfo:
    code: str
    name: str
    summary: str
    url: str
    status: str = "stable"


@dataclass(frozen=True, slots=True)
class Root:
    """A compile root as `tlint roots` lists it. Unresolved roots have `resolved=False` and a TL904 finding."""

    name: str
    kind: RootKind
    fullgraph: bool
    path: str
    line: int
    column: int
    how: str
    resolved: bool = True
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the static stage produced."""

    findings: tuple[Finding, ...]
    roots: tuple[Root, ...]
    files: int
    functions: int
    errors: tuple[str, ...] = ()  # roots asked for by name that are not there
    targeted: tuple[str, ...] = ()  # the roots that were looked at, where that was only the targets of verification


@dataclass(frozen=True, slots=True)
class Report:
    """`target_torch_source` is a word of the format, `target_torch_origin` what people read: "uv.lock".

    `stale` are the ids in the baseline that occur no longer.
    """

    project: str
    target_torch: tuple[str, ...]
    target_torch_source: str
    rules: Mapping[str, RuleInfo]
    findings: tuple[Finding, ...]
    targets: tuple[Target, ...]
    roots: tuple[Root, ...]
    files: int
    functions: int
    exit_code: int = 0
    hidden: int = 0
    errors: tuple[str, ...] = ()
    target_torch_origin: str = ""
    stale: tuple[str, ...] = ()
