"""The report for people: a code frame a finding, how the compiler gets there, what it said, and what helps."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from tlint.analyzer.model import Confidence, Finding, Fix, Report, Root, RootKind, RootPath, Severity, Status, Target
from tlint.analyzer.report.frame import frame, visible
from tlint.analyzer.report.summary import (
    differences,
    flat,
    fold,
    found,
    judged,
    left_out,
    looked_at,
    only_under,
    plural,
    where,
)

WIDEST = 120
NARROWEST = 40

SEVERITIES = {Severity.error: "bold red", Severity.warning: "bold yellow", Severity.info: "bold cyan"}
VERDICTS = {Status.confirmed: "bold red", Status.refuted: "bold green"}
STATUSES = {"fullgraph": "bold green", "intended_breaks": "bold green", "skipped": "bold yellow"}
FAILED_STATUSES = ("error", "timeout", "skipped")
FAILED = "bold red"
GUTTER = "blue"

# Of a longer way from the root, the first call and the last ones are shown.
LONGEST_WAY = 4


@dataclass(frozen=True, slots=True)
class Page:
    """What every part of the text needs: where it goes, the report, the lines of files, the remedies by code."""

    console: Console
    report: Report
    lines: Callable[[str, int | None], Sequence[str]]
    remedies: Mapping[str, str]
    roots: Mapping[str, Root]  # that the code compiles, by name
    wrapped: bool  # prose, at the width of the terminal; in a file or a pipe a message is one line
    width: int
    arrow: str
    cut: str

    def line(self, *parts: str | Text | tuple[str, str | Style]) -> None:
        text = Text.assemble(*parts)
        if self.console.color_system is None:  # rich takes ten times as long, and there is nothing for it to do
            self.console.file.write(f"{text.plain}\n")
        else:
            self.console.print(text, soft_wrap=True)

    def paragraph(self, text: Text, first: str = "", rest: str = "", style: str = GUTTER) -> None:
        """Write text in lines between words, `first` before the first line and `rest` before the others."""
        text.plain = visible(text.plain)
        offsets = breaks(text.plain, self.width - max(len(first), len(rest))) if self.wrapped else []
        for number, line in enumerate(text.divide(offsets)):
            line.rstrip()
            self.line((rest if number else first, style), line)


def breaks(text: str, room: int) -> list[int]:
    """Where to break the text so that lines fit the room. A word is never cut: paths and commands are to be copied."""
    offsets, used = [], 0
    for word in re.finditer(r"\S+\s*|\s+", text):
        if used and used + cell_len(word[0].rstrip()) > room:
            offsets.append(word.start())
            used = 0
        used += cell_len(word[0])
    return offsets


def render(
    report: Report,
    console: Console,
    *,
    sources: Callable[[str, int | None], Sequence[str]],
    remedies: Mapping[str, str],
    min_confidence: str,
    wrapped: bool = True,
) -> None:
    """Write the report. `sources` gives the lines of a file or cell (none if unreadable), `remedies` help by code."""
    ascii_only = console.options.ascii_only
    page = Page(
        console,
        report,
        sources,
        remedies,
        roots={root.name: root for root in reversed(report.roots) if root.kind is RootKind.explicit},
        wrapped=wrapped,
        width=max(NARROWEST, min(WIDEST, console.width)) if wrapped else WIDEST,
        arrow="->" if ascii_only else "→",
        cut="~" if ascii_only else "…",
    )
    shown, folded = fold(report)
    said: set[str] = set()
    for finding in shown:
        if finding.verdict.status is Status.refuted:
            write_refuted(page, finding)
        else:
            write_finding(page, finding, said)
            said.update((finding.code, *(fix.id for fix in finding.fixes)))
        page.line()
    if report.targets:
        write_targets(page)
        page.line()
    left = " ".join(left_out(report, folded, min_confidence))
    for sentence in (found(report, shown), *differences(report, page.arrow), left, looked_at(report)):
        if sentence:
            page.paragraph(Text(sentence), rest="  ")


# A finding ------------------------------------------------------------------------------------------------------------


def write_finding(page: Page, finding: Finding, said: Container[str]) -> None:
    """`said` holds the codes and the ids of fixes that an earlier finding has told of."""
    style = SEVERITIES[finding.severity]
    write_header(page, finding, finding.severity.name, style)
    margin = len(str(finding.span.end_line))
    for gutter, code, carets in frame(
        page.lines(finding.path, finding.cell), finding.span, page.width - margin - 3, page.cut
    ):
        page.line((f"{gutter:>{margin}} | ", GUTTER), code)
        if carets:
            page.line((" " * margin + " | ", GUTTER), (carets, style))
    for note in notes(page, finding, explain=finding.code not in said):
        page.paragraph(note, " " * margin + " = ", " " * (margin + 3))
    for fix in sorted(finding.fixes, key=lambda fix: not fix.preferred):
        if fix.id in said:
            continue
        page.paragraph(labelled("help", fix.title + effect(page, fix)), " " * margin + " = ", " " * (margin + 3))
        for edit in fix.edits:
            place = visible(f"{' ' * (margin + 3)}{where(edit.path, edit.cell)}:{edit.span.line}: ")
            for line in textwrap.dedent(edit.text).strip().splitlines():  # never cut: it is there to be copied
                page.line((place, GUTTER), (f"+ {visible(line)}", "green"))
                place = " " * cell_len(place)


def write_refuted(page: Page, finding: Finding) -> None:
    """What the compiler has refuted needs no frame: nobody has to look at the code."""
    write_header(page, finding, Status.refuted.value, VERDICTS[Status.refuted])
    page.paragraph(Text(flat(observed(page, finding))), "  = ", "    ")


def write_header(page: Page, finding: Finding, word: str, style: str) -> None:
    place = f"{where(finding.path, finding.cell)}:{finding.span.line}:{finding.span.column}"
    rule = page.report.rules.get(finding.code)
    link = Style(bold=True, link=rule.url if rule and rule.url else None)
    code = (f"{finding.code}[{finding.name}]", link)
    header = Text.assemble((place, "bold"), ": ", (word, style), " ", code, ": ", flat(finding.message))
    page.paragraph(header, rest="    ")


def notes(page: Page, finding: Finding, *, explain: bool) -> Iterator[Text]:
    if finding.paths:
        yield way(page, finding)
    limits = []
    if only := only_under(page.report, finding):
        limits.append(f"only under {only}")
    if finding.conditions:
        limits.append("only when " + " and ".join(finding.conditions))
    if finding.confidence is not Confidence.certain and finding.verdict.status is not Status.confirmed:
        limits.append(f"confidence: {finding.confidence.name}")
    if limits:
        yield Text(flat("; ".join(limits)))
    for related in finding.related:
        place = f"{where(related.path, related.cell)}:{related.span.line}:{related.span.column}"
        yield Text(flat(f"{place}: {related.message}"))
    yield from verdict(page, finding)
    if finding.origin == "verify" and finding.verdict.gb_id:  # Dynamo's own advice is closer than the rule's
        yield labelled("help", f"`tlint explain {finding.verdict.gb_id}`")
        return
    hint = f"`tlint explain {finding.code}`"
    if remedy := page.remedies.get(finding.code):
        yield labelled("help", remedy + (f" ({hint})" if explain else ""))
    elif explain:
        yield labelled("help", hint)


def labelled(label: str, text: str, style: str = "bold") -> Text:
    return Text.assemble((label, style), ": ", flat(text))


def way(page: Page, finding: Finding) -> Text:
    """ "reached from `train:step` (compiled at train.py:12, fullgraph) → line 20 → model.py:40 Net.forward"

    Each call says where it is made; a file or function that was named just before is left out.
    """
    best = max(finding.paths, key=lambda path: (path.kind, path.fullgraph, -len(path.via)))
    site = compiled_at(page, best)
    file, function = where(site.path, site.cell) if site else "", best.root.rpartition(":")[2]
    calls = []
    for call in best.via:
        here = where(call.path, call.cell)
        place = f"line {call.line}" if here == file else f"{here}:{call.line}"
        same = call.function in (function, f"{function}.forward")
        calls.append(place if same else f"{place} {call.function}")
        file, function = here, call.function
    if len(calls) > LONGEST_WAY:
        calls = [calls[0], "...", *calls[2 - LONGEST_WAY :]]
    start = f"reached from `{best.root}` ({', '.join(origin(page, best))})"
    others = finding.paths_total - 1
    more = f", and in {plural(others, 'other way')}" if others > 0 else ""
    return Text(flat(f" {page.arrow} ".join((start, *calls)) + more))


def origin(page: Page, path: RootPath) -> Iterator[str]:
    match path.kind:
        case RootKind.assumed:
            yield "assumed to be compiled"
        case RootKind.named:
            yield "asked for"
        case RootKind.explicit:
            site = compiled_at(page, path)
            yield f"compiled at {where(site.path, site.cell)}:{site.line}" if site else "compiled"
    if path.fullgraph:
        yield "fullgraph"


def compiled_at(page: Page, path: RootPath) -> Root | None:
    return page.roots.get(path.root) if path.kind is RootKind.explicit else None


def verdict(page: Page, finding: Finding) -> Iterator[Text]:
    """What the compiler was seen doing."""
    status = finding.verdict.status
    if judged(page.report, finding):
        yield labelled(status.value.replace("_", " "), observed(page, finding), VERDICTS.get(status, "bold"))


def observed(page: Page, finding: Finding) -> str:
    said = finding.verdict
    versions = sorted({version(t.torch) for t in page.report.targets if t.id in said.targets and t.torch})
    under = f" under torch {', '.join(versions)}" if versions else ""
    named = finding.origin == "verify"  # by the message
    kind = f' with "{said.gb_type}"' if said.gb_type and not named else ""
    number = f" ({said.gb_id})" if said.gb_id else ""
    broke = f"Dynamo broke here{kind}{number}{under}"
    match said.status:
        case Status.confirmed:
            lost = any(b.frame_lost for t in page.report.targets for b in t.breaks if b.finding == finding.id)
            # A rule explains its findings; where no rule did, Dynamo does.
            why = f": {said.reason}" if said.reason and finding.origin == "verify" else ""
            return broke + ("; the whole frame ran in eager" if lost else "") + why
        case Status.refuted:
            return f"Dynamo executed this and did not break{under}"
        case Status.unreached:
            return said.reason or f"Dynamo did not execute this{under}"
        case Status.inconclusive:
            return f"{broke}, which is not what the rule claims"
        case Status.not_run:
            return said.reason or "no target gets here"


def version(text: str) -> str:
    """Without the build: 2.13.0+cpu is 2.13.0."""
    return text.partition("+")[0]


def effect(page: Page, fix: Fix) -> str:
    """ " (graphs 3 → 2, ops 20 → 18)" """
    before, after = fix.effect.get("before", {}), fix.effect.get("after", {})
    both = [name for name in before if name in after]
    changes = [f"{name.replace('_', ' ')} {before[name]} {page.arrow} {after[name]}" for name in both]
    return f" ({', '.join(changes)})" if changes else ""


# The targets ----------------------------------------------------------------------------------------------------------


def write_targets(page: Page) -> None:
    targets = page.report.targets
    tools = [f"torch {number}" for number in sorted({version(t.torch) for t in targets if t.torch})]
    tools += [f"triton {number}" for number in sorted({version(t.triton) for t in targets if t.triton})]
    under = f" under {', '.join(tools)}" if tools else ""
    page.paragraph(Text(f"Verified {plural(len(targets), 'target')}{under}:"))
    widest = max(len(t.status) for t in targets)
    for target in targets:
        status = f"  {target.status.replace('_', ' '):<{widest}}  "
        text = Text.assemble((target.name, "bold"), ": ", flat(", ".join(outcome(target))))
        page.paragraph(text, status, " " * len(status), STATUSES.get(target.status, FAILED))


def outcome(target: Target) -> Iterator[str]:
    """The facts about a target, shortest form."""
    failed = target.status in FAILED_STATUSES
    cause = (f"in {target.phase}" if target.phase else "", target.detail.partition("\n")[0])
    why = ": ".join(filter(None, cause))
    if failed and why:
        yield why
    stages = target.stages
    dynamo = stages.get("dynamo", {})
    if dynamo and not (failed and not dynamo.get("graphs")):
        yield plural(dynamo.get("graphs", 0), "graph")
        yield plural(dynamo.get("ops", 0), "operator")
    if target.inputs == "synthesised" and target.assumed:
        yield f"inputs made up ({'; '.join(target.assumed)})"
    breaks = [b for b in target.breaks if not b.intended]
    if breaks:
        predicted = sum(b.predicted for b in breaks)
        words = [f"{n} {word}" for n, word in ((predicted, "predicted"), (len(breaks) - predicted, "unpredicted")) if n]
        yield f"{plural(len(breaks), 'break')} ({', '.join(words)})"
    if breaks and not target.suggestions and not failed:
        yield "no place found where `disable` helps"
    if intended := len(target.breaks) - len(breaks):
        yield plural(intended, "intended break")
    if target.recompiles:
        yield plural(sum(r.count for r in target.recompiles), "recompile")
    if target.cudagraph_skips:
        yield plural(len(target.cudagraph_skips), "skipped CUDA graph")
    for arch, built in stages.get("triton", {}).items():
        kernels, compiled = built.get("kernels", 0), built.get("compiled", 0)
        yield (f"{compiled} of " if compiled != kernels else "") + f"{plural(kernels, 'kernel')} for {arch}"
    if target.gate == "fail":
        yield "fullgraph=True fails" + ("" if breaks or failed else f" {why}")
    if target.gate == "pass" and target.status != "fullgraph":
        yield "fullgraph=True passes"
    if target.gate == "pass" and target.detail:  # the graph was captured, and what would come then could not be run
        yield f"not compiled for a GPU: {target.detail}"
