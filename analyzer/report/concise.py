"""One line a finding: `path:line:column: CODE[name] message [verdict]`."""

from __future__ import annotations

from tlint.analyzer.model import Finding, Report, Status
from tlint.analyzer.report.frame import visible
from tlint.analyzer.report.summary import flat, fold


def render(report: Report) -> str:
    shown, _ = fold(report)
    return "".join(line(finding) + "\n" for finding in shown)


def line(finding: Finding) -> str:
    place = f"{finding.path}:{finding.span.line}:{finding.span.column}"
    status = finding.verdict.status
    verdict = "" if status is Status.not_run and not finding.verdict.reason else f" [{status.value.replace('_', ' ')}]"
    return visible(f"{place}: {finding.code}[{finding.name}] {flat(finding.message)}{verdict}")
