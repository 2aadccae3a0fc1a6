"""One line a finding: `path:line:column: severity CODE[name] message [torch] [verdict]`."""

from __future__ import annotations

from tlint.analyzer.model import Finding, Report
from tlint.analyzer.report.frame import visible
from tlint.analyzer.report.summary import flat, fold, judged, only_under, where


def render(report: Report) -> str:
    shown, _ = fold(report)
    return "".join(line(report, finding) + "\n" for finding in shown)


def line(report: Report, finding: Finding) -> str:
    place = f"{where(finding.path, finding.cell)}:{finding.span.line}:{finding.span.column}"
    verdict = f" [{finding.verdict.status.value.replace('_', ' ')}]" if judged(report, finding) else ""
    only = f" [{some}]" if (some := only_under(report, finding)) else ""
    head = f"{place}: {finding.severity.name} {finding.code}[{finding.name}]"
    return visible(f"{head} {flat(finding.message)}{only}{verdict}")
