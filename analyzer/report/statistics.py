"""How many findings of each rule, most first."""

from __future__ import annotations

from collections import Counter

from tlint.analyzer.model import Report
from tlint.analyzer.report.summary import active, differences, looked_at


def render(report: Report) -> str:
    counts = Counter((f.code, f.name) for f in active(report))
    width = len(str(max(counts.values(), default=0)))
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    lines = [f"{number:>{width}}  {code}  {name}" for (code, name), number in rows]
    return "\n".join((*lines, *differences(report, "->"), looked_at(report), ""))
