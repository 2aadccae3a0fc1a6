"""Workflow commands: GitHub shows each finding beside its line in a pull request.

`file` is absolute, as a step of a workflow can have a working directory of its own.
"""

from __future__ import annotations

import os

from tlint.analyzer.model import Finding, Report, Severity, Status
from tlint.analyzer.report import concise
from tlint.analyzer.report.summary import fold

LEVELS = {Severity.error: "error", Severity.warning: "warning", Severity.info: "notice"}


def render(report: Report) -> str:
    shown, _ = fold(report)
    return "".join(command(report, finding) + "\n" for finding in shown)


def command(report: Report, finding: Finding) -> str:
    level = "notice" if finding.verdict.status is Status.refuted else LEVELS[finding.severity]
    title, file, span = f"{finding.code} {finding.name}", os.path.abspath(finding.path), finding.span
    properties = f"title={escaped(title, ':,')},file={escaped(file, ':,')}"
    if finding.cell is None:  # of a notebook, GitHub knows the lines of its JSON
        properties += f",line={span.line},endLine={span.end_line},col={span.column}"
        if span.line == span.end_line:  # the end is another column of the same line
            properties += f",endColumn={span.end_column}"
    return f"::{level} {properties}::{escaped(concise.line(report, finding))}"


def escaped(text: str, more: str = "") -> str:
    """What would end the command is written as in a URL; in a property, `more` too. "%" comes first."""
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
