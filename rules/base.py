"""What a rule is. A rule is one file beside this one's folders, with one class; it is found by walking the package.

A rule never reads files, prints, imports torch or computes types: it looks at an `Event`, the interpreter's account of
something that Dynamo would do, and yields findings.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tlint.analyzer.model import Claim, Confidence, Finding, Fix, Severity


@dataclass(frozen=True, slots=True)
class Fact:
    """A row of `compiler/versions/vX_YY/facts.json`: what a callee is and what Dynamo does with it in that torch.

    `kind` says in a rule's terms what it is: "logging", "random-state", "host", "context", "dynamic-shape",
    "data-dependent", "tensor-sized", "deepcopy", "sparse", "recurrent", ... or "". `gb_type` is "" where it does not
    break. `only` says which arguments make it: "one-argument", "without:num_classes", "tensor-argument"; "" is any.
    """

    name: str
    kind: str = ""
    returns: str = ""
    gb_type: str = ""
    gb_id: str = ""
    when: str = "always"
    only: str = ""
    # What it returns when an argument is given: torch.max with `dim`.
    returns_with: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Site:
    """A use of torch.compile: what rules about the API need to know of its surroundings.

    `form`: "call", "decorator", "method" (`m.compile()`) or "export". `target` is the value that is compiled.
    `statement` is the statement around the call, `function` the def around that (None at module level), `loop` the
    innermost loop around it in that function. `nested`: it happens inside a compiled region.
    """

    form: str
    target: Any
    statement: ast.stmt
    function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    loop: ast.For | ast.While | None = None
    nested: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Something Dynamo would do at `node`. Which fields are set depends on `kind`; the rest keep their defaults.

    call       callee, receiver (of a method; else None), method, args, keywords, fact
    branch     value whose truth decides; construct: if, while, ifexp, and, or, not, assert, comprehension, match, bool,
               in, filter, asserted (a jump before the check that an assert makes), caught (an assert whose failure is
               handled), sort (value is put in order with its like)
    subscript  value[index]; store: it is assigned to; slice bounds are in `args`
    attribute  value.method read; store: it is assigned `stored`
    iterate    value that a loop, comprehension or unpacking walks over; construct: for, unpack, comprehension, apart (a
               comprehension that is compiled by itself, since the frame around it is lost)
    enter      value: the context manager of a `with`
    format     value that an f-string, `str.format` or `%` formats
    traced     functions in args that an operator such as torch.cond traces whole, with what each gives in value
    define     a class body inside the region: method is its name
    compiled   a call of torch.compile or one of its forms anywhere in the project: callee, args, keywords, `site`
    """

    kind: str
    node: Any  # an `ast` node; which one the kind says
    function: str
    finding: Callable[..., Any] = field(repr=False)
    value: Any = None
    callee: Any = None
    receiver: Any = None
    method: str = ""
    args: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()
    fact: Fact | None = None
    construct: str = ""
    index: Any = None
    stored: Any = None
    store: bool = False
    site: Any = None
    fullgraph: bool = False
    facts: Any = field(default=None, repr=False)
    settings: Any = field(default=None, repr=False)
    confirm: Callable[[Callable[[Any], bool]], bool] = field(default=lambda test: True, repr=False)

    def argument(self, position: int | None, name: str) -> Any:
        """The value of an argument given by position or by name, or None."""
        for key, value in self.keywords:
            if key == name:
                return value
        return self.args[position] if position is not None and position < len(self.args) else None


class Rule:
    """One problem. The docstring is its documentation: what, why it breaks, Bad, Good, how safe the fix is."""

    code: ClassVar[str]
    name: ClassVar[str]
    kind: ClassVar[str] = ""  # of the callees that it reports, as in `Fact.kind`
    severity: ClassVar[Severity] = Severity.warning
    remedy: ClassVar[str] = ""
    gb_types: ClassVar[Sequence[str]] = ()
    when: ClassVar[str] = "always"
    status: ClassVar[str] = "stable"

    def claim(self) -> Claim | None:
        return Claim("dynamo", tuple(self.gb_types), self.when) if self.gb_types else None


EVENTS = ("call", "branch", "subscript", "attribute", "iterate", "enter", "format", "traced", "define", "compiled")

__all__ = ["EVENTS", "Claim", "Confidence", "Event", "Fact", "Finding", "Fix", "Iterator", "Rule", "Severity", "Site"]
