"""Compares what the rules claimed with what the compiler was seen doing. Pure: values in, values out."""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tlint.analyzer.model import (
    Break,
    Claim,
    Confidence,
    Finding,
    Fix,
    Frame,
    Observation,
    Root,
    RootKind,
    RootPath,
    Severity,
    Span,
    Status,
    Target,
    Verdict,
)
from tlint.compiler import placement

UNPREDICTED = ("TL199", "unpredicted-break")
FAILED = ("error", "timeout", "skipped")

# Over several targets the first of these wins.
ORDER = (Status.confirmed, Status.refuted, Status.inconclusive, Status.unreached, Status.not_run)


@dataclass(frozen=True, slots=True)
class _Run:
    """An observation with its suggestions, and which breaks each finding was seen to cause."""

    observation: Observation
    fixes: tuple[tuple[Fix, tuple[str, ...]], ...]
    claimed: dict[str, tuple[Break, ...]]


def judge(
    findings: Sequence[Finding], observations: Sequence[Observation], roots: Sequence[Root] = ()
) -> tuple[tuple[Finding, ...], tuple[Target, ...]]:
    """The findings with their verdicts, with TL199 for what no rule claimed, and the targets with their status.

    `findings` are all of the project's: a break that lies outside the files reported on may have been predicted too.
    """
    runs = [_run(observation, findings) for observation in observations]
    judged = (_judged(finding, runs) for finding in findings)
    kinds = {root.name: root.kind for root in sorted(roots, key=lambda root: root.kind)}
    unpredicted = _unpredicted(_unclaimed(runs), kinds)
    return (*judged, *unpredicted.values()), tuple(_target(run, unpredicted) for run in runs)


def _run(observation: Observation, findings: Sequence[Finding]) -> _Run:
    claimed: dict[str, list[Break]] = collections.defaultdict(list)
    for seen in observation.target.breaks:
        for finding in _claimants(seen, findings):
            claimed[finding.id].append(seen)
    return _Run(
        observation,
        tuple(placement.suggestions(observation)),
        {identifier: tuple(breaks) for identifier, breaks in claimed.items()},
    )


# Verdicts -----------------------------------------------------------------------------------------------------------


def _claimants(seen: Break, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that claimed a break: its type, at its place. Where spans nest, the closest."""
    fitting = [f for f in findings if f.claim is not None and seen.gb_type in f.claim.gb_types and _meets(f, seen)]
    if seen.span is None or not fitting:
        return fitting
    closest = min(_distance(finding.span, seen.span) for finding in fitting)
    return [finding for finding in fitting if _distance(finding.span, seen.span) == closest]


def _meets(finding: Finding, seen: Break) -> bool:
    if finding.path != seen.path:
        return False
    if seen.span is None:  # the interpreter has no positions
        return finding.span.line <= seen.line <= finding.span.end_line
    return finding.span.contains(seen.span) or seen.span.contains(finding.span)


def _distance(one: Span, other: Span) -> tuple[int, int]:
    lines = abs(one.line - other.line) + abs(one.end_line - other.end_line)
    return lines, abs(one.column - other.column) + abs(one.end_column - other.end_column)


def _judged(finding: Finding, runs: Sequence[_Run]) -> Finding:
    verdicts = [(_verdict(finding, run), run) for run in runs]
    if not verdicts:
        return replace(
            finding, verdict=Verdict(Status.not_run, "nothing was run: no file here declares inputs (tlint_inputs())")
        )
    # Where nothing was seen of it, what matters is what became of the targets that should come here.
    roots = {path.root for path in finding.paths}
    telling = [
        pair
        for pair in verdicts
        if pair[0].status in (Status.confirmed, Status.refuted) or pair[1].observation.target.name in roots
    ]
    best = min(telling or verdicts, key=lambda pair: ORDER.index(pair[0].status))[0]
    targets = tuple(target for verdict, _ in verdicts if verdict.status is best.status for target in verdict.targets)
    finding = replace(finding, verdict=replace(best, targets=targets))
    if best.status is not Status.confirmed:
        return finding
    confirming = [(run, seen) for run in runs for seen in run.claimed.get(finding.id, ())]
    severe = any(seen.frame_lost or run.observation.target.config.get("fullgraph") for run, seen in confirming)
    return replace(
        finding,
        confidence=Confidence.certain,
        severity=Severity.error if severe else finding.severity,
        fixes=(*finding.fixes, *_fixes(confirming)),
    )


def _verdict(finding: Finding, run: _Run) -> Verdict:
    """What one run says about one finding."""
    observation, target = run.observation, run.observation.target
    if finding.claim is None:
        return Verdict(Status.not_run, "this rule claims nothing that a compiler run could show")
    if confirming := run.claimed.get(finding.id):
        first = confirming[0]
        return Verdict(Status.confirmed, _first_line(first), first.gb_type, first.gb_id, (target.id,))
    executed = observation.executed.get(finding.path, ())
    here = [seen for seen in target.breaks if _meets(finding, seen)]
    other = next((seen for seen in here if seen.gb_type not in finding.claim.gb_types), None)
    if other is not None and _same_place(finding, other):
        reason = f"it breaks here for another reason: {other.gb_type}"
        return Verdict(Status.inconclusive, reason, other.gb_type, other.gb_id, (target.id,))
    if not executed and not any(seen.path == finding.path for seen in target.breaks):
        # The target's own line tells the detail.
        why = f"{target.status} in {target.phase}" if target.status in FAILED else "does not come here"
        return Verdict(Status.not_run, f"{target.name}: {why}")
    if _executed(finding.span, executed):
        if finding.claim.when == "fullgraph" and target.gate != "pass":
            return Verdict(Status.unreached, "fullgraph=True stopped before it", targets=(target.id,))
        return Verdict(Status.refuted, f"{target.name}: executed, and it did not break", targets=(target.id,))
    return Verdict(Status.unreached, _why_unreached(finding, target, executed), targets=(target.id,))


def _same_place(finding: Finding, seen: Break) -> bool:
    """A break inside a wider finding does not speak for the finding, unless only lines are known."""
    return seen.span is None or seen.span == finding.span or seen.span.contains(finding.span)


def _executed(span: Span, executed: Iterable[Span]) -> bool:
    """Whether the whole expression was evaluated: an instruction has its very span, or ends it.

    A wider instruction does not show it: `f(a and b.item())` can be called without `b.item()`.
    """
    end = (span.end_line, span.end_column)
    return any(one == span or (span.contains(one) and (one.end_line, one.end_column) == end) for one in executed)


def _why_unreached(finding: Finding, target: Target, executed: Sequence[Span]) -> str:
    line = finding.span.line
    lost = next((seen for seen in target.breaks if seen.frame_lost and seen.path == finding.path), None)
    if any(one.line <= line <= one.end_line for one in executed):
        return f"{target.name}: line {line} was traced, this expression was not"
    if lost is not None:
        return f"{target.name}: Dynamo did not come here: a whole frame fell back to eager at line {lost.line}"
    return f"{target.name}: Dynamo did not come here"


def _first_line(seen: Break) -> str:
    """The explanation, in Dynamo's words, which follows the type in its message."""
    lines = [line.strip() for line in seen.message.splitlines() if line.strip()]
    explained = [line.removeprefix("Explanation: ") for line in lines if line.startswith("Explanation: ")]
    return (explained or lines or [seen.gb_type])[0]


# Breaks that no rule claimed ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A break, in the run that met it."""

    run: _Run
    seen: Break

    @property
    def fullgraph(self) -> bool:
        return bool(self.run.observation.target.config.get("fullgraph"))


def _unclaimed(runs: Sequence[_Run]) -> dict[tuple[object, ...], list[_Sighting]]:
    """By place, however many targets came there. Intended breaks need a finding only where one graph was asked for."""
    places: dict[tuple[object, ...], list[_Sighting]] = collections.defaultdict(list)
    for run in runs:
        if run.observation.target.phase == "eager":  # it raises as plain Python, and Dynamo breaks there
            continue
        claimed = {seen.id for breaks in run.claimed.values() for seen in breaks}
        for seen in run.observation.target.breaks:
            sighting = _Sighting(run, seen)
            if seen.id not in claimed and seen.path and (sighting.fullgraph or not seen.intended):
                places[_place(seen)].append(sighting)
    return places


def _place(seen: Break) -> tuple[object, ...]:
    return seen.path, seen.line, seen.span, seen.gb_type


def _unpredicted(
    places: Mapping[tuple[object, ...], Sequence[_Sighting]], kinds: Mapping[str, RootKind]
) -> dict[tuple[object, ...], Finding]:
    ordinals: collections.Counter[tuple[str, ...]] = collections.Counter()
    findings = {}
    for place, sightings in places.items():
        seen = sightings[0].seen
        key = (UNPREDICTED[1], seen.path, seen.stack[-1][2] if seen.stack else "", seen.gb_type)
        ordinals[key] += 1
        severe = any(sighting.fullgraph or sighting.seen.frame_lost for sighting in sightings)
        targets = _distinct(sighting.run.observation.target.id for sighting in sightings)
        findings[place] = Finding(
            id=hashlib.sha256("\0".join((*key, str(ordinals[key]))).encode()).hexdigest()[:16],
            code=UNPREDICTED[0],
            name=UNPREDICTED[1],
            message=f"graph break that no rule predicted: {seen.gb_type}",
            path=seen.path,
            span=seen.span or Span(seen.line, 1, seen.line + 1, 1),
            severity=Severity.error if severe else Severity.warning,
            confidence=Confidence.certain,
            origin="verify",
            paths=tuple(_path(sighting, kinds) for sighting in sightings),
            paths_total=len(sightings),
            claim=Claim("dynamo", (seen.gb_type,)),
            verdict=Verdict(Status.confirmed, _first_line(seen), seen.gb_type, seen.gb_id, targets),
            fixes=_fixes((sighting.run, sighting.seen) for sighting in sightings),
        )
    return findings


def _path(sighting: _Sighting, kinds: Mapping[str, RootKind]) -> RootPath:
    """The way from the target to the break: the calls on its stack."""
    via = tuple(Frame(path, line, 1, function) for path, line, function in sighting.seen.stack[:-1])
    name = sighting.run.observation.target.name
    kind = max(kinds.get(name, RootKind.named), RootKind.named)  # what is verified was asked for, at least
    return RootPath(name, kind, sighting.fullgraph, via)


def _fixes(sightings: Iterable[tuple[_Run, Break]]) -> tuple[Fix, ...]:
    """The suggestions for these breaks, each once."""
    found = {fix.id: fix for run, seen in sightings for fix, breaks in run.fixes if seen.id in breaks}
    return tuple(found.values())


# Targets ------------------------------------------------------------------------------------------------------------


def _target(run: _Run, unpredicted: Mapping[tuple[object, ...], Finding]) -> Target:
    target = run.observation.target
    claimants = {seen.id: identifier for identifier, breaks in run.claimed.items() for seen in breaks}

    def linked(seen: Break) -> Break:
        if seen.id in claimants:
            return replace(seen, finding=claimants[seen.id], predicted=True)
        unclaimed = unpredicted.get(_place(seen))
        return replace(seen, finding=unclaimed.id if unclaimed else None)

    return replace(
        target,
        breaks=tuple(linked(seen) for seen in target.breaks),
        status=_status(target),
        suggestions=_distinct(fix.id for fix, _ in run.fixes),
    )


def _status(target: Target) -> str:
    """`fullgraph` is no break at all and the gate passed; what failed after capture is an error, in its phase."""
    if target.status in FAILED:
        return target.status
    if any(not seen.intended for seen in target.breaks):
        return "breaks"
    if target.breaks:
        return "intended_breaks"
    return "fullgraph" if target.gate == "pass" else "error"


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
