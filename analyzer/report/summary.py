"""What a report amounts to, for the formats that say it in words or numbers."""

from __future__ import annotations

import itertools
from collections import Counter

from tlint.analyzer.model import Finding, Report, RootKind, Severity, Status


def active(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.state == "active"]


def fold(report: Report) -> tuple[list[Finding], list[Finding]]:
    """The active findings to show, and those to mention in a line: reached only from assumed roots, where the project
    compiles something itself. What the compiler has confirmed is always shown."""
    findings = active(report)
    if not any(root.resolved and root.kind > RootKind.assumed for root in report.roots):
        return findings, []
    shown, folded = list[Finding](), list[Finding]()
    for finding in findings:
        hidden = only_assumed(finding) and finding.verdict.status is not Status.confirmed
        (folded if hidden else shown).append(finding)
    return shown, folded


def only_assumed(finding: Finding) -> bool:
    return bool(finding.paths) and all(path.kind is RootKind.assumed for path in finding.paths)


def judged(report: Report, finding: Finding) -> bool:
    """Whether there is a verdict to speak of: a finding that claims nothing of the compiler needs none."""
    asked = report.targets or finding.verdict.reason
    return finding.verdict.status is not Status.not_run or bool(asked and finding.claim)


def where(path: str, cell: int | None) -> str:
    """A file, or a cell of a notebook."""
    return path if cell is None else f"{path}:cell {cell}"


def only_under(report: Report, finding: Finding) -> str:
    """ "torch 2.10" where a finding does not hold for all versions that were looked at, else ""."""
    some = finding.torch if 0 < len(finding.torch) < len(report.target_torch) else ()
    return f"torch {', '.join(some)}" if some else ""


def flat(text: str) -> str:
    """Text from a rule, the user's program or the compiler, in one line."""
    return " ".join(text.split())


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def found(report: Report, shown: list[Finding]) -> str:
    """ "Found 1 error, 2 warnings: 2 confirmed, 1 refuted." A refuted finding is not counted as found."""
    held = [f for f in shown if f.verdict.status is not Status.refuted]
    counts = Counter(f.severity for f in held)
    words = [plural(counts[s], s.name) for s in (Severity.error, Severity.warning) if counts[s]]
    words += [f"{counts[Severity.info]} info"] if counts[Severity.info] else []
    severities = ", ".join(words)
    sentence = f"Found {severities}" if severities else "Found nothing"
    if not report.targets:
        return sentence + "."
    verdicts = Counter(f.verdict.status for f in shown if judged(report, f))
    words = [f"{verdicts[s]} {s.value.replace('_', ' ')}" for s in Status if verdicts[s]]
    if unpredicted := sum(f.code == "TL199" for f in shown):
        words.append(f"{unpredicted} unpredicted")
    return f"{sentence}: {', '.join(words)}." if words else sentence + "."


def differences(report: Report, arrow: str) -> list[str]:
    """ "torch 2.10 → 2.14: 31 healed, 2 new." for each version that was looked at and the next one."""
    sentences = []
    for old, new in itertools.pairwise(report.target_torch):
        holds = [(old in f.torch, new in f.torch) for f in active(report)]
        healed, fresh = holds.count((True, False)), holds.count((False, True))
        sentences.append(f"torch {old} {arrow} {new}: {healed} healed, {fresh} new.")
    return sentences


def left_out(report: Report, folded: list[Finding], min_confidence: str) -> list[str]:
    """A sentence for each kind of finding that is not shown."""
    states = Counter(f.state for f in report.findings)
    sentences = []
    if folded:
        reached = f"{len(folded)} more" + (" is" if len(folded) == 1 else " are")
        sentences.append(f"{reached} reached only from assumed roots (--roots modules shows them).")
    if report.hidden:
        sentences.append(f"{report.hidden} more below --min-confidence {min_confidence}.")
    sentences.extend(f"{states[state]} {state}." for state in ("suppressed", "baselined") if states[state])
    return sentences


def looked_at(report: Report) -> str:
    """ "3 roots (1 unresolved), 214 functions, 41 files, torch 2.13 from uv.lock" """
    assumed = sum(root.kind is RootKind.assumed for root in report.roots)
    unresolved = sum(not root.resolved for root in report.roots)
    details = [f"{n} {word}" for n, word in ((assumed, "assumed"), (unresolved, "unresolved")) if n]
    roots = plural(len(report.roots), "root") + (f" ({', '.join(details)})" if details else "")
    newest = report.target_torch_source == "newest"
    source = "the newest known" if newest else f"from {report.target_torch_origin or report.target_torch_source}"
    torch = f"torch {', '.join(report.target_torch)}{', ' if newest else ' '}{source}"
    return ", ".join((roots, plural(report.functions, "function"), plural(report.files, "file"), torch))
