"""The formats of the report. `reports.sample` has something in every field."""

from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from reports import SOURCES, closed, finding, sample, schema, validate
from rich.cells import cell_len
from rich.console import Console

from tlint.analyzer.config import Settings
from tlint.analyzer.model import (
    Break,
    Claim,
    Confidence,
    Fix,
    Frame,
    Report,
    RootKind,
    RootPath,
    Severity,
    Span,
    Status,
    Target,
    Verdict,
)
from tlint.analyzer.report import Sources, concise, frame, github, json_, statistics, summary, text, write

REMEDIES = {"TL101": "keep the value in a tensor"}


def rendered(report: Report, width: int = 200, encoding: str = "utf-8", **options: Any) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False, **options)
    text.render(report, console, sources=Sources(SOURCES), remedies=REMEDIES, min_confidence="likely")
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


def empty(**changes: Any) -> Report:
    return replace(sample(), **{"findings": (), "targets": (), "hidden": 0, **changes})


def written(report: Report, **settings: Any) -> str:
    stream = io.StringIO()
    write(report, Settings(**settings), stream, sources=SOURCES)
    return stream.getvalue()


# JSON -----------------------------------------------------------------------------------------------------------------


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_schema_describes_a_full_report_and_an_empty_one() -> None:
    for report in (sample(), empty(), empty(roots=(), rules={})):
        validate(json_.render(report))


def objects(node: Any, described: dict[str, Any], where: str = "") -> Iterator[tuple[str, list[str], list[str]]]:
    """Each object of a report with its keys and those that the schema lists."""
    described = schema()["$defs"][described["$ref"].rpartition("/")[2]] if "$ref" in described else described
    described = described["anyOf"][0] if "anyOf" in described else described
    if "$ref" in described:
        yield from objects(node, described, where)
    elif isinstance(node, dict):
        properties = described.get("properties", {})
        if properties and node:  # `stages` is empty where none was reached
            yield where, list(node), list(properties)
        for key, value in node.items():
            rest = described.get("additionalProperties")
            below = properties.get(key, rest if isinstance(rest, dict) else {})
            yield from objects(value, below, f"{where}.{key}")
    elif isinstance(node, list):
        for item in node:
            yield from objects(item, described.get("items") or {}, where)


def test_every_key_is_there_in_the_order_of_the_schema() -> None:
    report = validate(json_.render(sample()))
    seen = list(objects(report, schema()))
    assert {where for where, _, _ in seen} >= {
        ".findings.claim",
        ".findings.fixes.edits",
        ".targets.breaks",
        ".summary.roots",
    }
    for where, keys, documented in seen:
        assert keys == documented, where


def test_strict_validation_refuses_what_is_undocumented_and_what_is_missing() -> None:
    report = json.loads(json_.render(sample()))
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        validate({**report, "surprise": 1})
    del report["findings"][0]["cell"]
    with pytest.raises(jsonschema.ValidationError, match="cell"):
        validate(report)
    assert "additionalProperties" in closed(schema())
    assert "additionalProperties" not in schema(), "consumers ignore unknown keys"


def test_json_is_the_same_each_time_and_whatever_the_order_of_findings() -> None:
    report = sample()
    once = written(report, output_format="json")
    assert once == written(replace(report, findings=report.findings[::-1]), output_format="json")
    assert [f["line"] for f in json.loads(once)["findings"]] == [7, 10, 11, 12, 13]


def test_json_keeps_what_no_encoding_has() -> None:
    odd = "x = '\ud800 東京'"
    report = json.loads(json_.render(empty(findings=(finding(message=odd),))))
    assert report["findings"][0]["message"] == odd
    assert json_.render(empty(findings=(finding(message=odd),))).isascii()


def test_json_has_no_number_that_json_lacks() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_.render(empty(targets=(replace(sample().targets[0], seconds=float("nan")),)))


def test_edits_are_sorted() -> None:
    edits = sample().findings[1].fixes[0].edits
    first = replace(edits[0], span=Span(1, 1, 1, 1), text="import torch\n")
    fix = Fix("f", "disable", "", "display", edits=(*edits, first))
    report = validate(json_.render(empty(findings=(finding(fixes=(fix,)),))))
    assert [edit["line"] for edit in report["findings"][0]["fixes"][0]["edits"]] == [1, 6]


def test_summary_counts() -> None:
    assert json_.summary_json(sample()) == {
        "files": 2,
        "functions": 2,
        "roots": {"explicit": 2, "assumed": 1, "unresolved": 1},
        "findings": 4,
        "hidden": 9,
        "suppressed": 1,
        "baselined": 0,
        "confirmed": 2,
        "refuted": 1,
        "unpredicted": 1,
        "exit_code": 1,
    }


# Concise, statistics --------------------------------------------------------------------------------------------------


def test_concise() -> None:
    assert written(sample(), output_format="concise").splitlines() == [
        "model.py:7:7: warning TL102[data-dependent-branch] `if` on a tensor's value [refuted]",
        "model.py:10:30: error TL101[tensor-to-python] `.item()` reads a tensor's value into Python [confirmed]",
        "model.py:11:3: warning TL199[unpredicted-break] Dynamo broke here and no rule had said so [confirmed]",
    ]
    assert concise.render(empty()) == ""


def test_concise_is_one_line_a_finding_and_has_no_verdict_where_none_was_asked_for() -> None:
    report = empty(findings=(finding(message="first\nsecond\x1b[31m"),))
    assert concise.render(report) == "model.py:10:30: warning TL101[tensor-to-python] first second\ufffd[31m\n"


def test_github() -> None:
    report = sample()
    refuted, item, _ = sorted((f for f in report.findings if f.id[0] in "021"), key=lambda f: f.span)
    here = Path("model.py").absolute()
    assert github.command(report, refuted) == (
        f"::notice title=TL102 data-dependent-branch,file={here},line=7,endLine=8,col=7::"
        "model.py:7:7: warning TL102[data-dependent-branch] `if` on a tensor's value [refuted]"
    )
    assert github.command(report, item) == (
        f"::error title=TL101 tensor-to-python,file={here},line=10,endLine=10,col=30,endColumn=45::"
        "model.py:10:30: error TL101[tensor-to-python] `.item()` reads a tensor's value into Python [confirmed]"
    )
    lines = written(report, output_format="github").splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::notice", "::error", "::warning"]
    assert github.render(empty()) == ""


def test_github_cannot_be_left_by_a_message_or_a_path() -> None:
    evil = finding(message="100%25\n::add-mask::x\r::", path="a,b:c%\n.py", severity=Severity.info)
    (line,) = written(empty(findings=(evil,)), output_format="github").splitlines()
    properties, _, message = line.removeprefix("::notice ").partition("::")
    assert properties.split(",")[1].endswith("/a%2Cb%3Ac%25%0A.py")
    assert len(properties.split(",")) == 6
    assert message.startswith("a,b:c%25\ufffd.py:10:30: info ")
    assert message.endswith("] 100%2525 ::add-mask::x ::")


def test_statistics() -> None:
    more = (*sample().findings, *(finding(id=f"{n:016}") for n in range(9)))
    expected = "11  TL101  tensor-to-python\n 1  TL102  data-dependent-branch\n 1  TL199  unpredicted-break\n"
    report = replace(sample(), findings=more)
    assert written(report, statistics=True) == expected + summary.looked_at(report) + "\n"
    assert statistics.render(empty()) == summary.looked_at(empty()) + "\n"
    validate(written(report, statistics=True, output_format="json"))


# Text -----------------------------------------------------------------------------------------------------------------


def test_text() -> None:
    assert (
        rendered(replace(sample(), findings=sample().findings[1:]), width=100)
        == """\
model.py:10:30: error TL101[tensor-to-python]: `.item()` reads a tensor's value into Python
10 |         nome = "città 東京"; scale = x.mean().item()
   |                                      ^^^^^^^^^^^^^^^
   = reached from `train:step` (compiled at train.py:7, fullgraph) → line 9, and in 2 other ways
   = train.py:7:2: fullgraph is asked for here
   = confirmed: Dynamo broke here with "Unsupported Tensor.item() call" (GB0124) under torch 2.13.0;
     the whole frame ran in eager
   = help: keep the value in a tensor (`tlint explain TL101`)
   = help: keep `report` out of the graph: tried, and it ran (graphs 3 → 2, ops 7 → 7)
     model.py:6: + @torch.compiler.disable(reason="reads a value")

model.py:7:7: refuted TL102[data-dependent-branch]: `if` on a tensor's value
  = Dynamo executed this and did not break under torch 2.13.0

Verified 2 targets under torch 2.13.0, triton 3.9.0:
  breaks   train:step: 3 graphs, 7 operators, 2 breaks (1 predicted, 1 unpredicted), 2 recompiles, 1
           skipped CUDA graph, 3 of 4 kernels for sm_90, fullgraph=True fails
  timeout  train:slow: in eager: Traceback

Found 1 error: 1 confirmed, 1 refuted.
1 more is reached only from assumed roots (--roots modules shows them). 9 more below
  --min-confidence likely. 1 suppressed.
3 roots (1 assumed, 1 unresolved), 2 functions, 2 files, torch 2.13 from uv.lock
"""
    )


@pytest.mark.parametrize("width", [80, 60, 40])
def test_text_fits(width: int) -> None:
    """Only a single word that is wider than the terminal may stick out, and code that is there to be copied."""
    for line in (line for line in rendered(sample(), width).splitlines() if ": + " not in line):
        assert cell_len(line) <= width or max(map(cell_len, line.split())) > width - 20, line


def test_a_terminal_of_no_width_does_not_stop_it() -> None:
    assert rendered(sample(), 1) == rendered(sample(), text.NARROWEST)


def test_a_very_wide_terminal_is_not_filled() -> None:
    report = empty(findings=(finding(message="word " * 100),))
    assert max(map(len, rendered(report, 1000).splitlines())) <= text.WIDEST


def test_nothing_found() -> None:
    assert rendered(empty()) == (
        "Found nothing.\n3 roots (1 assumed, 1 unresolved), 2 functions, 2 files, torch 2.13 from uv.lock\n"
    )


def test_the_newest_torch_is_said_to_be_a_guess() -> None:
    line = summary.looked_at(empty(roots=sample().roots[:1], target_torch=("2.14",), target_torch_source="newest"))
    assert line == "1 root, 2 functions, 2 files, torch 2.14, the newest known"


def test_assumed_roots_are_folded_only_where_something_is_compiled() -> None:
    advice = sample().findings[3]
    assert advice.severity is Severity.info
    explicit, lost, assumed = sample().roots
    cases = {(explicit, assumed): False, (lost, assumed): True, (assumed,): True, (): True}
    for roots, full in cases.items():
        report = empty(findings=(advice,), roots=roots)
        shown = rendered(report)
        assert (advice.message in shown) == full
        assert ("1 more is reached only from assumed roots" in shown) == (not full)
        assert bool(concise.render(report)) == full
    confirmed = replace(advice, verdict=Verdict(Status.confirmed))
    assert advice.message in rendered(empty(findings=(confirmed,))), "what the compiler saw is not folded"
    mixed = replace(advice, paths=(*advice.paths, *sample().findings[1].paths))
    assert advice.message in rendered(empty(findings=(mixed,)))


def test_explain_is_pointed_to_once_a_rule() -> None:
    shown = rendered(empty(findings=(finding(), finding(id="1" * 16, span=Span(11, 3, 11, 8)))))
    assert shown.count("tlint explain TL101") == 1
    assert shown.count("help: keep the value in a tensor") == 2


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (
            Verdict(Status.confirmed, "x", "B", "GB0001", ("t1",)),
            'Dynamo broke here with "B" (GB0001) under torch 2.13.0;',
        ),
        (Verdict(Status.confirmed), "confirmed: Dynamo broke here; the whole frame ran in eager\n"),
        (
            Verdict(Status.unreached, "line 4 ran, this expression did not"),
            "unreached: line 4 ran, this expression did not\n",
        ),
        (Verdict(Status.unreached, targets=("t1",)), "unreached: Dynamo did not execute this under torch 2.13.0\n"),
        (Verdict(Status.inconclusive, "", "B", "GB0002", ("t1",)), "torch 2.13.0, which is not what the rule claims\n"),
        (Verdict(Status.not_run, "no inputs"), "not run: no inputs\n"),
        (Verdict(Status.not_run), "not run: no target gets here\n"),
    ],
)
def test_verdicts_in_words(verdict: Verdict, expected: str) -> None:
    found = finding(verdict=verdict, claim=Claim())
    assert expected in rendered(empty(findings=(found,), targets=sample().targets))


def test_dynamo_explains_what_no_rule_did() -> None:
    verdict = Verdict(Status.confirmed, "Dynamo does not know `print`", "B")
    rule, compiler = finding(verdict=verdict, code="TL111"), finding(verdict=verdict, origin="verify")
    assert "`print`" not in rendered(empty(findings=(rule,)))
    shown = rendered(empty(findings=(compiler,)))
    assert "Dynamo broke here: Dynamo does not know `print`\n" in shown, "the message has named the type"
    assert "`tlint explain TL101`" in shown
    numbered = replace(compiler, verdict=replace(verdict, gb_id="GB0059"))
    assert "help: `tlint explain GB0059`\n" in rendered(empty(findings=(numbered,)))


def test_a_fix_of_several_findings_is_shown_once() -> None:
    fixes = sample().findings[1].fixes
    shown = rendered(empty(findings=(finding(fixes=fixes), finding(fixes=fixes, span=Span(11, 3, 11, 8)))))
    assert shown.count(fixes[0].title) == 1


def test_no_verdict_where_there_is_none_to_speak_of() -> None:
    claiming, other = finding(claim=Claim()), finding(verdict=Verdict(reason="claims nothing"))
    for report in (empty(findings=(claiming,)), empty(findings=(other,), targets=sample().targets)):
        assert "not run" not in rendered(report) + concise.render(report)


def test_conditions_and_confidence() -> None:
    unsure = finding(conditions=("training", "`mask` is not None"), confidence=Confidence.likely)
    assert "only when training and `mask` is not None; confidence: likely\n" in rendered(empty(findings=(unsure,)))
    seen = replace(unsure, conditions=(), verdict=Verdict(Status.confirmed))
    assert "confidence" not in rendered(empty(findings=(seen,))), "confirmed counts as certain"


def test_a_long_way_is_shortened_in_the_middle() -> None:
    calls = tuple(replace(sample().findings[1].paths[0].via[0], line=n, function=f"f{n}") for n in range(1, 8))
    way = RootPath("train:step", RootKind.named, False, calls)
    shown = rendered(empty(findings=(finding(paths=(way,), paths_total=1),)))
    assert "`train:step` (asked for) → train.py:1 f1 → ... → line 6 f6 → line 7 f7\n" in shown


def test_a_file_or_function_named_just_before_is_left_out() -> None:
    calls = (Frame("train.py", 9, 1, "step"), Frame("model.py", 10, 1, "Net.forward"), Frame("model.py", 4, 1, "Net.f"))
    way = RootPath("train:step", RootKind.explicit, False, calls)
    shown = rendered(replace(sample(), findings=(finding(paths=(way,), paths_total=1),)))
    assert "(compiled at train.py:7) → line 9 → model.py:10 Net.forward → line 4 Net.f\n" in shown
    asked = replace(way, root="model:Net", kind=RootKind.named, via=calls[1:])
    shown = rendered(replace(sample(), findings=(finding(paths=(asked,), paths_total=1),)))
    assert "(asked for) → model.py:10 → line 4 Net.f\n" in shown


def test_the_strongest_and_shortest_way_is_shown() -> None:
    explicit = sample().findings[1].paths[0]
    longer = replace(explicit, via=explicit.via * 2)
    assumed = RootPath("model:Net.forward", RootKind.assumed, False)
    for ways in itertools.permutations((explicit, longer, assumed)):
        shown = rendered(empty(findings=(finding(paths=ways, paths_total=3),)))
        assert "(compiled at train.py:7, fullgraph) → line 9, and in 2 other ways\n" in shown


UNPREDICTED = Break("b1", "Data-dependent branching", "…", "a.py", 3)


def test_versions_are_told_without_their_build() -> None:
    report = sample()
    targets = tuple(replace(target, torch="2.13.0+cpu") for target in report.targets)
    shown = rendered(replace(report, targets=targets))
    assert "under torch 2.13.0, triton 3.9.0:" in shown
    assert "+cpu" not in shown


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (
            {"status": "fullgraph", "gate": "pass", "stages": {"dynamo": {"graphs": 1, "ops": 2}}},
            "1 graph, 2 operators",
        ),
        ({"status": "intended_breaks", "gate": "pass"}, "fullgraph=True passes"),
        ({"status": "breaks", "gate": "fail", "phase": "aot", "detail": "no\nmore"}, "fullgraph=True fails in aot: no"),
        ({"status": "error", "phase": "import", "detail": "ImportError: no x"}, "in import: ImportError: no x"),
        ({"status": "timeout", "gate": "fail", "phase": "eager"}, "in eager, fullgraph=True fails"),
        ({"status": "error", "phase": "eager", "stages": {"dynamo": {"graphs": 0, "ops": 0}}}, "in eager"),
        (
            {"status": "fullgraph", "gate": "pass", "phase": "inductor", "detail": "Triton is not installed"},
            "not compiled for a GPU: Triton is not installed",
        ),
        (
            {"status": "breaks", "breaks": (UNPREDICTED,)},
            "1 break (1 unpredicted), no place found where `disable` helps",
        ),
        ({"status": "breaks", "breaks": (UNPREDICTED,), "suggestions": ("f1",)}, "1 break (1 unpredicted)"),
        ({"status": "skipped"}, ""),
    ],
)
def test_targets_in_words(outcome: dict[str, Any], expected: str) -> None:
    target = Target("t", "a:b", "a.py", **outcome)
    status = target.status.replace("_", " ")
    assert f"\n  {status}  a:b: {expected}".rstrip() + "\n" in rendered(empty(targets=(target,)))


def test_no_escape_sequence_reaches_the_terminal() -> None:
    evil = "\x1b[31mred\x07\x9b"
    way = RootPath(evil, RootKind.explicit, False)
    bad = finding(
        message=evil, conditions=(evil,), paths=(way,), verdict=Verdict(Status.unreached, evil), path="evil.py"
    )
    target = Target("t", evil, "a.py", status="error", detail=evil)
    stream = io.StringIO()
    console = Console(file=stream, width=80)
    report = empty(findings=(replace(bad, span=Span(1, 1, 1, 4)),), targets=(target,))
    text.render(report, console, sources=lambda path, cell: [evil], remedies={}, min_confidence="likely")
    assert all(character.isprintable() or character == "\n" for character in stream.getvalue())


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def on(stream: io.StringIO) -> str:
        write(sample(), Settings(), stream, sources=SOURCES)
        return stream.getvalue()

    assert "\x1b[" in on(Terminal())
    assert "\x1b[" not in on(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in on(Terminal())


def test_an_ascii_terminal_gets_ascii() -> None:
    shown = rendered(sample(), 60, encoding="ascii")
    assert "-> line" in shown
    assert "\\u6771" in shown, "what it cannot show is escaped"


def test_sources_are_read_where_they_are_not_given(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_bytes("# coding: latin-1\r\nx = 'é'\r\n".encode("latin-1"))
    stream = io.StringIO()
    unreadable = finding(path=str(tmp_path / "missing.py"))
    found = finding(path=str(file), span=Span(2, 5, 2, 8))
    write(empty(findings=(found, unreadable)), Settings(), stream)
    assert "2 | x = 'é'\n  |     ^^^\n" in stream.getvalue()
    assert "missing.py:10:30: warning" in " ".join(stream.getvalue().split())  # lines end where the path does


# Code frames ----------------------------------------------------------------------------------------------------------


def framed(content: str, span: Span, room: int = 60) -> list[tuple[str, str, str]]:
    return list(frame.frame(content.split("\n"), span, room, "…"))


def test_carets_stand_under_tabs_and_wide_characters() -> None:
    assert framed("\ta = '東京', x", Span(1, 12, 1, 13)) == [("1", "    a = '東京', x", " " * 16 + "^")]
    assert framed("\ta = '東京', x", Span(1, 7, 1, 9)) == [("1", "    a = '東京', x", " " * 9 + "^^^^")]
    assert framed("a\tb", Span(1, 3, 1, 4)) == [("1", "a   b", "    ^")]
    assert framed("e\u0301x", Span(1, 3, 1, 4)) == [("1", "\ufffdx", " ^")] or cell_len("e\u0301") == 1


def test_a_span_of_some_lines_is_shown_whole() -> None:
    content = "if (a\n\n    and b  \n    or c):\n    pass"
    assert framed(content, Span(1, 5, 4, 9)) == [
        ("1", "if (a", "    ^"),
        ("2", "", ""),
        ("3", "    and b", "    ^^^^^"),
        ("4", "    or c):", "    ^^^^"),
    ]


def test_a_span_of_many_lines_is_cut_in_the_middle() -> None:
    content = "f(\n" + "    1,\n" * 20 + ")"
    assert [gutter for gutter, _, _ in framed(content, Span(1, 1, 22, 2))] == ["1", "2", "…", "22"]


def test_a_span_outside_the_file_is_not_shown() -> None:
    assert framed("a", Span(7, 1, 7, 2)) == []


def test_a_whole_line_is_shown_without_its_indent_and_end() -> None:
    assert framed("\n    f(x)\ng(y)", Span(2, 1, 3, 1)) == [("2", "    f(x)", "    ^^^^")]


def test_an_empty_span_has_a_caret() -> None:
    assert framed("ab", Span(1, 3, 1, 3)) == [("1", "ab", "  ^")]


def test_a_long_line_slides_until_the_carets_are_seen() -> None:
    line = "x = " + "a + " * 50 + "t.item() + " + "b + " * 50
    column = line.index("t.item()") + 1
    ((_, code, carets),) = framed(line, Span(1, column, 1, column + 8), 40)
    assert code.startswith("…")
    assert code.endswith("…")
    assert cell_len(code) == 40
    assert code[carets.index("^") : len(carets)] == "t.item()"


@pytest.mark.parametrize("room", [10, 17, 31])
def test_frames_never_outgrow_their_room(room: int) -> None:
    """Whatever the line and span, code and carets fit, and the carets are in sight."""
    line = "\ta東 = f('京都',\tx.item(), 名) + abcdefgh  # end"
    for start, end in itertools.combinations(range(1, len(line) + 2), 2):
        ((_, code, carets),) = framed(line, Span(1, start, 1, end), room)
        assert cell_len(code) <= room
        assert len(carets) <= room
        assert re.fullmatch(r" *\^+", carets)


def test_lines_are_those_of_the_parser() -> None:
    lines = Sources({"a.py": "a\fb\u2028c\r\nd\re"})("a.py")
    assert lines == ["a\fb\u2028c", "d", "e"]
