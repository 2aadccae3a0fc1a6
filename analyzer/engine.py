"""Events meet rules: the roots are found, the interpreter walks them, and what rules say becomes findings."""

from __future__ import annotations

import ast
import hashlib
import io
import re
import sys
import tokenize
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tlint import rules
from tlint.analyzer import facts
from tlint.analyzer.config import Settings
from tlint.analyzer.index import FunctionDef, ModuleDef, Project, paused_gc
from tlint.analyzer.interp.calls import resume
from tlint.analyzer.interp.machine import Dynamo, Frame, Machine
from tlint.analyzer.interp.values import UNKNOWN, Value, join, members
from tlint.analyzer.model import (
    Analysis,
    Claim,
    Confidence,
    Finding,
    Related,
    Root,
    RootKind,
    RootPath,
    Severity,
    Span,
    TlintError,
)
from tlint.analyzer.model import Frame as Step
from tlint.analyzer.project import Workspace, torch_packages
from tlint.analyzer.roots import Entry, find_roots, named, walk
from tlint.analyzer.source import SourceError
from tlint.rules.base import EVENTS, Event, Rule, Site
from tlint.rules.reading import sure, tensors

Progress = Callable[[str, int, int], None]
# Frames of Python's, for expressions that are nested deeply. Before Python 3.11 each also took some of C's stack.
DEEPEST = 20_000 if sys.version_info >= (3, 11) else 6_000
MOST_PATHS = 5  # kept of the ways to one finding; all are counted


def analyze(workspace: Workspace, settings: Settings, progress: Progress | None = None) -> Analysis:
    """Everything the static stage can say, for each target torch. Nothing of the project is imported or run."""
    recursion = sys.getrecursionlimit()
    sys.setrecursionlimit(max(recursion, DEEPEST))
    try:
        with paused_gc():
            runs = [_Run(workspace, settings, version, progress).analysis() for version in workspace.target_torch]
    finally:
        sys.setrecursionlimit(recursion)
    return runs[0] if len(runs) == 1 else _merged(runs)


def _merged(runs: list[Analysis]) -> Analysis:
    """Findings of several torch versions: one each, with the versions it holds for."""
    found: dict[str, Finding] = {}
    for run in runs:
        for finding in run.findings:
            old = found.get(finding.id)
            found[finding.id] = finding if old is None else replace(old, torch=old.torch + finding.torch)
    return replace(runs[-1], findings=_ordered(found.values()))


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda f: (f.path, f.span, f.code, f.id)))


# Where something is: the function, the statement, and the conditions under which it runs.
Place = tuple[str, ast.stmt | None, tuple[str, ...]]


@dataclass(slots=True)
class Draft:
    """A finding while it may still be reached on other ways."""

    rule: Rule
    module: ModuleDef
    function: str
    statement: ast.stmt | None
    span: Span
    message: str
    confidence: Confidence
    severity: Severity | None
    claim: Claim | None
    conditions: tuple[str, ...]
    related: tuple[Related, ...]
    paths: dict[str, RootPath] = field(default_factory=dict)
    misuse: bool = False
    # Of the frames on the way, the innermost that a break here loses: what holds it, and its function.
    held: tuple[str, str] | None = None
    # In an installed package: the calls of the project that enter it.
    entered: dict[tuple[ModuleDef, ast.AST], Place] = field(default_factory=dict)
    # From each function on the way here: what has to hold, and which calls lead on.
    inner: dict[FunctionDef, tuple[tuple[str, ...], tuple[Step, ...]]] = field(default_factory=dict)


class _Run:
    """One pass over a project with the facts of one torch version."""

    def __init__(self, workspace: Workspace, settings: Settings, version: str, progress: Progress | None) -> None:
        self.workspace = workspace
        self.settings = settings
        self.version = version
        self.progress = progress or (lambda what, done, total: None)
        self.project = Project(workspace.root, workspace.files, lambda path: workspace.read(path).text)
        self.machine = Machine(self.project, facts.load(version), self)
        self.known = rules.load()
        self.listeners: dict[str, list[tuple[Rule, Callable[[Event], Iterator[Any]]]]] = {
            kind: [(rule, getattr(rule, kind)) for rule in self.known.values() if hasattr(rule, kind)]
            for kind in EVENTS
        }
        self.drafts: dict[Any, Draft] = {}
        self.sites: dict[ast.AST, tuple[Frame, Site, Value, Any, Any]] = {}
        self.entry: Entry | None = None
        self.event_at: tuple[Rule, Frame, Event] | None = None
        self.broken: list[Finding] = []
        self.errors: list[str] = []
        self.quiet: set[Any] = set()  # events that no rule had anything to say of
        self.given_up: set[ast.stmt] = set()
        self.found = False
        self.paths: dict[Path, str] = {}

    # The run -------------------------------------------------------------------------------------------------------

    def analysis(self) -> Analysis:
        self._read_all()
        if self.workspace.python is not None:
            self.project.packages = torch_packages(Path(self.workspace.python))
        entries, roots = find_roots(self.machine, self, self.settings, self.progress)
        targeted = self._targeted(entries) if self.settings.only_targets else []
        entries = targeted or entries
        for i, entry in enumerate(entries):
            self.progress("interpreting", i, len(entries))
            self.entry = entry
            try:
                walk(self.machine, entry)
            except Exception:  # one root's trouble costs that root, and is reported
                self._internal(entry.module, Span(1, 1, 1, 1), f"the interpreter failed in root {entry.name}")
        self.entry = None
        self._sites()
        self._unresolved(roots)
        own = [draft for draft in self.drafts.values() if not draft.module.installed]
        findings = [self._finding(draft) for draft in (*own, *self._folded())]
        return Analysis(
            findings=_ordered([*self._numbered(findings), *self.broken]),
            roots=tuple(roots),
            files=len(self.workspace.reported),
            functions=len(self.machine.functions),
            errors=tuple(self.errors),
            targeted=tuple(entry.name for entry in targeted),
        )

    def _targeted(self, entries: list[Entry]) -> list[Entry]:
        """The entries of the targets of verification; none where one of them is made by running the code only."""
        names: set[str] = set()
        for target in self.settings.verify_settings.targets:
            try:
                found = {entry.name for entry in named(self.machine, target, Dynamo())}
            except TlintError:  # a whole file, or what is wrong with it is the worker's to tell
                found = set()
            if not found:
                return []
            names |= found
        return [entry for entry in entries if entry.name in names]

    def _read_all(self) -> None:
        """Every file that is reported on is parsed once: those that do not parse are findings."""
        for i, path in enumerate(self.workspace.files):
            self.progress("reading", i, len(self.workspace.files))
            try:
                text = self.project.text(path)
                if path in self.workspace.reported or "torch" in text:
                    self.project.module_at(path)
            except SourceError as error:
                self.project.give_up(path)
                if path in self.workspace.reported:
                    self._syntax(path, error.line, error.column, error.message)
        for path, wrong in self.project.errors.items():
            if path in self.workspace.reported:
                version = f"{sys.version_info.major}.{sys.version_info.minor}"  # newer syntax is an error in it
                message = f"does not parse as Python {version}: {wrong.msg}"
                self._syntax(path, wrong.lineno or 1, wrong.offset or 1, message)

    def _syntax(self, path: Path, line: int, column: int, message: str) -> None:
        self.broken.append(self._bare("TL902", path, Span(line, max(1, column), line, max(1, column) + 1), message))

    def _bare(self, code: str, path: Path, span: Span, message: str) -> Finding:
        rule = self.known[code]
        shown = self.shown(path)
        identity = digest(f"{rule.name}\0{self._inside(path)}\0{message}")
        return Finding(
            identity, code, rule.name, message, shown, span, rule.severity, Confidence.certain, torch=(self.version,)
        )

    # Listener ------------------------------------------------------------------------------------------------------

    def event(self, kind: str, frame: Frame, node: ast.AST, **details: Any) -> None:
        listeners = self.listeners[kind]
        if not listeners:
            return
        # A function is interpreted for each set of arguments; most of what happens in it is the same each time.
        seen = (node, frame.dynamo, *(v for k, v in details.items() if k != "fact"))
        if seen in self.quiet:
            return
        event = Event(
            kind,
            node,
            frame.qualname,
            self.finding,
            facts=self.machine.facts,
            settings=frame.dynamo,
            fullgraph=frame.dynamo.fullgraph,
            confirm=self.confirm,
            **details,
        )
        self.found = False
        self._ask(listeners, frame, event)
        if not self.found:
            self.quiet.add(seen)

    def _ask(self, listeners: list[tuple[Rule, Callable[[Event], Iterator[Any]]]], frame: Frame, event: Event) -> None:
        for rule, method in listeners:
            self.event_at = (rule, frame, event)
            try:
                for _ in method(event):
                    pass
            except Exception:  # a rule's mistake costs its finding, and is reported as one
                self._internal(frame.module, span_of(frame.module, event.node), f"{rule.code} failed here")

    def gave_up(self, frame: Frame, node: ast.stmt) -> None:
        if node not in self.given_up:
            self.given_up.add(node)
            what = "nested too deeply: what this statement does is not known"
            self.broken.append(self._bare("TL903", frame.module.path, span_of(frame.module, node), what))

    def _internal(self, module: ModuleDef, span: Span, what: str) -> None:
        trace = " ".join(traceback.format_exc(limit=-2).split())
        self.broken.append(self._bare("TL903", module.path, span, f"{what}, please report it: {trace}"))

    def compiled(self, frame: Frame, node: ast.AST, site: Site, callee: Value, args: Any, keywords: Any) -> None:
        if frame.module.installed:
            return
        old = self.sites.get(node)
        if old is not None:  # met again with other arguments: it compiles all of them
            targets = [v for one in (old[1], site) for v in members(one.target) if v.qualname]
            both = join(*targets) if targets else UNKNOWN
            site = replace(site, target=both if both is not UNKNOWN else old[1].target)
        self.sites[node] = (frame, site, callee, args, keywords)

    def again(self, found: set[Any], frame: Frame, node: ast.AST, callee: FunctionDef) -> None:
        outer = set(self._conditions(frame))
        above = dict(self._inner(frame))
        call = self._step(frame, node)
        for key in found:
            draft = self.drafts[key]
            conditions, steps = draft.inner.get(callee, ((), ()))
            for function in above.keys() - draft.inner.keys():
                held, ways = above[function]
                draft.inner[function] = (held + conditions, (*ways, call, *steps))
            draft.conditions = tuple(c for c in draft.conditions if c in outer or c in conditions)
            self._held(draft, frame)
            self._entered(draft, frame, node)
            name = self.entry.name if self.entry is not None else ""
            old = draft.paths.get(name)
            if old is None or (self.entry is not None and self.entry.dynamo.fullgraph and not old.fullgraph):
                self._add_path(draft, [*self._steps(frame), call, *steps])

    # What rules call -----------------------------------------------------------------------------------------------

    def finding(
        self,
        message: str,
        *,
        node: ast.AST | None = None,
        gb_types: Iterable[str] | None = None,
        when: str | None = None,
        severity: Severity | None = None,
        confidence: Confidence | None = None,
        related: Iterable[Related] = (),
    ) -> Any:
        """`event.finding(…)`: note a finding of the rule that is being asked, at `node` or the event's own."""
        assert self.event_at is not None, "a finding is made while a rule is asked about an event"
        rule, frame, event = self.event_at
        self.found = True
        at = node if node is not None else event.node
        span = span_of(frame.module, at)
        key = (rule.code, frame.module.path, span)
        sure = min(sure_of(event), Confidence.certain if confidence is None else confidence)
        if frame.doubtful:
            sure = Confidence.possible
        draft = self.drafts.get(key)
        conditions = self._conditions(frame)
        if draft is None:
            claim = rule.claim() if gb_types is None else Claim("dynamo", tuple(gb_types), when or rule.when)
            if claim is not None and when is not None:
                claim = replace(claim, when=when)
            fact = event.fact if event.kind != "enter" else self.machine.facts.lookup(event.value.qualname)
            if fact is not None and claim is not None and fact.gb_type in claim.gb_types:
                healed = facts.healed(fact.name, self.version)
                message += f" (healed in torch {healed})" if healed else ""
            draft = Draft(
                rule,
                frame.module,
                frame.qualname,
                frame.statement,
                span,
                message,
                sure,
                severity,
                claim,
                conditions,
                tuple(related),
            )
            self.drafts[key] = draft
        else:
            draft.confidence = max(draft.confidence, sure)
            draft.conditions = tuple(c for c in draft.conditions if c in conditions)
        draft.inner = {**dict(self._inner(frame)), **draft.inner}
        draft.misuse = event.kind == "compiled"
        if self.entry is not None and not draft.misuse:
            if self.entry.name not in draft.paths:
                self._add_path(draft, self._steps(frame))
            self._entered(draft, frame, at)
            breaks = breaking(draft, sure)
            for result in self.machine.running[-1:]:
                result.findings.add(key)
                result.breaks |= breaks
            if breaks:
                self._held(draft, frame)
                if event.construct != "apart":
                    resume(self.machine, frame)
                    self.event_at, self.found = (rule, frame, event), True
        return draft

    def _entered(self, draft: Draft, frame: Frame, node: ast.AST) -> None:
        """Note the call of the project that leads to a finding in an installed package, or that compiles it."""
        if not draft.module.installed:
            return
        for at in frame.callers():
            if not at.module.installed and at.function is not None:
                draft.entered.setdefault((at.module, node), (at.qualname, at.statement, self._conditions(at)))
                return
            node = at.call if at.call is not None else node
        if self.entry is not None and self.entry.site is not None:
            module, call, function, statement = self.entry.site
            draft.entered.setdefault((module, call), (function, statement, ()))

    def _folded(self) -> list[Draft]:
        """What breaks in installed packages, one finding for each call of the project that leads there."""
        rule = self.known["TL191"]
        folded: dict[tuple[ModuleDef, ast.AST, str], list[Draft]] = {}
        for draft in self.drafts.values():
            if breaking(draft, draft.confidence):
                for module, node in draft.entered:
                    folded.setdefault((module, node, draft.module.name.partition(".")[0]), []).append(draft)
        drafts: list[Draft] = []
        for (module, node, package), inner in folded.items():
            inner.sort(key=lambda d: (-d.confidence, len(d.inner), d.module.name, d.span))
            first = inner[0]
            function, statement, conditions = first.entered[module, node]
            places = f" in {len(inner)} places, first" if len(inner) > 1 else ""
            message = (
                f"`{package}` breaks the graph{places} in `{first.module.name}:{first.span.line}`: {first.message}"
            )
            drafts.append(
                Draft(
                    rule,
                    module,
                    function,
                    statement,
                    span_of(module, node),
                    message,
                    first.confidence,
                    None,
                    Claim("dynamo", tuple(dict.fromkeys(t for d in inner if d.claim for t in d.claim.gb_types))),
                    conditions,
                    tuple(Related(self.shown(d.module.path), d.span, f"{d.rule.code}: {d.message}") for d in inner[:5]),
                    paths={name: path for d in inner for name, path in d.paths.items()},
                )
            )
        return drafts

    def _held(self, draft: Draft, frame: Frame) -> None:
        if draft.held is None:
            holding = ((at.holding[-1], at.qualname) for at in frame.callers() if at.holding)
            draft.held = next(holding, None)

    def confirm(self, test: Callable[[Any], bool]) -> bool:
        """Whether LibCST sees at the event's node what `test` asks for."""
        from tlint.analyzer import bridge  # LibCST takes a third of a start: only where something is suspected

        assert self.event_at is not None, "a node is confirmed while a rule is asked about an event"
        _, frame, event = self.event_at
        node = event.node if frame.statement is None or event.construct == "" else frame.statement
        first, last = header(node if frame.statement is None else frame.statement)
        found = bridge.open_node(frame.module.lines, first, last, span_of(frame.module, node))
        return found is not None and test(found)

    # Findings ------------------------------------------------------------------------------------------------------

    def _steps(self, frame: Frame) -> list[Step]:
        steps: list[Step] = []
        at: Frame | None = frame
        while at is not None and at.parent is not None and at.parent.parent is not None and at.call is not None:
            steps.append(self._step(at.parent, at.call))
            at = at.parent
        return steps[::-1]

    def _step(self, frame: Frame, node: ast.AST) -> Step:
        span = span_of(frame.module, node)
        return Step(self.shown(frame.module.path), span.line, span.column, frame.qualname)

    def _add_path(self, draft: Draft, steps: list[Step]) -> None:
        entry = self.entry
        if entry is not None:
            draft.paths[entry.name] = RootPath(entry.name, entry.kind, entry.dynamo.fullgraph, tuple(steps))

    def _conditions(self, frame: Frame) -> tuple[str, ...]:
        """What has to hold for the code to run, as far as it was not worked out: outermost first."""
        at: Frame | None = frame
        held: list[tuple[ast.expr, bool]] = []
        while at is not None:
            held = at.conditions + held
            at = at.parent
        return described(held)

    def _inner(self, frame: Frame) -> Iterator[tuple[FunctionDef, tuple[tuple[str, ...], tuple[Step, ...]]]]:
        """For each function on the way to a finding, the conditions and the calls from there on."""
        at: Frame | None = frame
        held: list[tuple[ast.expr, bool]] = []
        steps: list[Step] = []
        while at is not None and at.function is not None:
            held = at.conditions + held
            yield at.function, (described(held), tuple(reversed(steps)))
            if at.parent is not None and at.call is not None:
                steps.append(self._step(at.parent, at.call))
            at = at.parent

    def _finding(self, draft: Draft) -> Finding:
        paths = sorted(draft.paths.values(), key=lambda p: (-p.kind, not p.fullgraph, p.root))
        severity = draft.severity if draft.severity is not None else draft.rule.severity
        if not draft.misuse:
            severity = self._severity(draft, severity, paths)
        qualname = draft.function
        return Finding(
            id=f"{draft.rule.name}\0{self._inside(draft.module.path)}\0{qualname}\0{header_text(draft)}",
            code=draft.rule.code,
            name=draft.rule.name,
            message=draft.message if draft.held is None else f"{draft.message}; {lost(*draft.held)}",
            path=self.shown(draft.module.path),
            span=draft.span,
            severity=severity,
            confidence=draft.confidence,
            conditions=draft.conditions,
            torch=(self.version,),
            paths=tuple(paths[:MOST_PATHS]),
            paths_total=len(paths),
            related=draft.related,
            claim=draft.claim,
        )

    def _severity(self, draft: Draft, severity: Severity, paths: list[RootPath]) -> Severity:
        """The consequence: a break under fullgraph is an error; what only an assumed root reaches is at most info."""
        if not any(p.kind > RootKind.assumed for p in paths):
            return min(severity, Severity.info)
        breaks = draft.claim is not None and draft.claim.when != "default"
        if breaks and draft.rule.code.startswith("TL1") and any(p.fullgraph for p in paths):
            return Severity.error
        return Severity.error if draft.held is not None and severity is Severity.warning else severity

    def _numbered(self, findings: list[Finding]) -> Iterator[Finding]:
        """Ids: what a finding is about, and its number among those about the same."""
        counted: dict[str, int] = {}
        for finding in sorted(findings, key=lambda f: (f.path, f.span)):
            n = counted.get(finding.id, 0)
            counted[finding.id] = n + 1
            yield replace(finding, id=digest(f"{finding.id}\0{n}"))

    def _sites(self) -> None:
        """Rules about torch.compile itself look at each of its uses once, when all that is compiled is known."""
        for node, (frame, site, callee, args, keywords) in self.sites.items():
            event = Event(
                "compiled", node, frame.qualname, self.finding, callee=callee, args=args, keywords=keywords, site=site,
                facts=self.machine.facts, settings=frame.dynamo, confirm=self.confirm,
            )  # fmt: skip
            frame = replace(frame, statement=site.statement)
            self._ask(self.listeners["compiled"], frame, event)

    def _unresolved(self, roots: list[Root]) -> None:
        for root in roots:
            if not root.resolved:
                path = next(p for p in self.workspace.files if self.shown(p) == root.path)
                span = Span(root.line, root.column, root.line, root.column + 1)
                if path in self.workspace.reported:
                    finding = self._bare("TL904", path, span, f"what {root.how} compiles could not be worked out")
                    self.broken.append(replace(finding, severity=Severity.info) if self._handed_in(root) else finding)

    def _handed_in(self, root: Root) -> bool:
        """Whether what is compiled comes through a function or class that nobody in the project calls: a library's."""
        for node, (frame, *_) in self.sites.items():
            at = (self.shown(frame.module.path), getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1)
            if at == (root.path, root.line, root.column) and isinstance(node, ast.Call) and frame.function is not None:
                name = begins_with(node.args[0] if node.args else node.func)
                parameters = [p.arg for p in frame.function.parameters]
                method = frame.cls is not None and parameters[:1] == [name]
                called = frame.cls.name if method and frame.cls is not None else frame.function.name
                call = re.compile(rf"(?<!def )(?<!class )\b{called}\(")
                return name in parameters and not any(call.search(text) for text in self.project.texts.values())
        return False

    def shown(self, path: Path) -> str:
        """A path as reports give it."""
        if path not in self.paths:
            cwd = self.workspace.cwd
            self.paths[path] = path.relative_to(cwd).as_posix() if path.is_relative_to(cwd) else path.as_posix()
        return self.paths[path]

    def _inside(self, path: Path) -> str:
        root = self.workspace.root
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


# Places ---------------------------------------------------------------------------------------------------------------


def span_of(module: ModuleDef, node: ast.AST) -> Span:
    """Where a node is, in code points from 1."""
    if not isinstance(node, (ast.expr, ast.stmt, ast.excepthandler, ast.arg, ast.keyword, ast.alias)):
        return Span(1, 1, 1, 1)
    last = node.end_lineno or node.lineno
    return Span(
        node.lineno,
        column(module, node.lineno, node.col_offset),
        last,
        column(module, last, node.end_col_offset or 0),
    )


def breaking(draft: Draft, sure: Confidence) -> bool:
    """Whether a finding is of a break that most likely happens."""
    return draft.rule.code.startswith("TL1") and draft.claim is not None and sure > Confidence.possible


def lost(what: str, function: str) -> str:
    """What a break costs inside something that Dynamo cannot enter again."""
    around = {"loop": "a loop", "with": "a context manager"}.get(what, f"a `{what}`")
    return f"inside {around}, so that all of `{function}()` runs uncompiled"


def begins_with(node: ast.expr) -> str:
    """The name that `self.task.model(0)` begins with."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def digest(text: str) -> str:
    """The id of a finding, from what makes it the same one; names of files need not be UTF-8."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def column(module: ModuleDef, line: int, offset: int) -> int:
    text = module.lines[line - 1] if line <= len(module.lines) else ""
    return offset + 1 if text.isascii() else len(text.encode()[:offset].decode(errors="replace")) + 1


def header(node: ast.AST) -> tuple[int, int]:
    """The lines of a statement; of a compound one, those before its body."""
    body = getattr(node, "body", None)
    first = first_line(node)
    if isinstance(body, list) and body and isinstance(body[0], ast.stmt) and not isinstance(node, ast.Module):
        return first, max(node.lineno, first_line(body[0]) - 1)  # type: ignore[attr-defined]
    return first, node.end_lineno or node.lineno  # type: ignore[attr-defined]


def first_line(node: ast.AST) -> int:
    """A definition begins with its decorators."""
    return min(n.lineno for n in (node, *getattr(node, "decorator_list", ())))


def header_text(draft: Draft) -> str:
    """The statement's header without white space and comments."""
    if draft.statement is None or not hasattr(draft.statement, "lineno"):
        return draft.message
    first, last = header(draft.statement)
    text = "".join(draft.module.lines[first - 1 : last])
    if "#" in text:
        text = uncommented(text)
    return "".join(text.split())


def uncommented(text: str) -> str:
    kept: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type != tokenize.COMMENT:
                kept.append(token.string)
    except (tokenize.TokenError, IndentationError):
        pass  # a header alone is no whole program: what came before its end is what counts
    return "".join(kept)


def sure_of(event: Event) -> Confidence:
    """A finding is as sure as the values it is about."""
    about = [v for v in (event.value, event.receiver) if v is not None]
    if event.kind == "subscript" and event.index is not None and event.index.is_tensor:
        about.append(event.index)
    if event.kind == "call" and event.receiver is None:
        holding = [a for a in (*event.args, *(v for _, v in event.keywords)) if any(tensors(a))]
        return sure(*holding) if holding else Confidence.certain
    return min((v.sure for v in about), default=Confidence.certain)


def described(held: list[tuple[ast.expr, bool]]) -> tuple[str, ...]:
    """Conditions in words, each once."""
    return tuple(dict.fromkeys(text for test, wanted in held if (text := describe(test, wanted))))


def describe(test: ast.expr, wanted: bool) -> str:
    """A condition in words; "" for one that says nothing to a reader."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wanted = test.operand, not wanted
    text = ast.unparse(test)
    if text == "self.training":
        return "training" if wanted else "evaluating"
    if len(text) > 60:
        text = text[:59] + "…"
    return text if wanted else f"not ({text})" if " " in text else f"not {text}"
