"""The baseline: what it keeps from failing, what it still lets through, and how it is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Result
from reports import finding

from tlint.analyzer import baseline
from tlint.analyzer.config import Settings
from tlint.analyzer.model import Finding, Status, Verdict

Project = Callable[..., Path]
Tlint = Callable[..., Result]

BREAKS = """\
import torch


@torch.compile
def step(x: torch.Tensor) -> float:
    print("a step")
    return x.sum().item()
"""
MORE = BREAKS.replace("    return", "    y = x.max().item()\n    return")
FILES = {"tlint.toml": "", "src/m.py": BREAKS, "src/n.py": BREAKS}


def states(tlint: Tlint, *words: str) -> list[tuple[str, int, str]]:
    findings = tlint(*words, "--output-format", "json").report["findings"]
    return [(f["path"], f["line"], f["state"]) for f in findings]


def lines(root: Path) -> list[str]:
    return [line for line in (root / ".tlint-baseline").read_text().splitlines() if not line.startswith("#")]


def test_it_lets_a_run_pass_until_something_new_is_found(project: Project, tlint: Tlint) -> None:
    root = project(FILES)
    assert tlint().code == 1
    assert tlint("baseline") == Result(0, ".tlint-baseline: 4 findings (4 new, 0 dropped)\n", "")
    passed = tlint("--output-format", "json")
    assert (passed.code, passed.report["summary"]["findings"], passed.report["summary"]["baselined"]) == (0, 0, 4)
    assert "4 baselined." in tlint().out
    assert tlint("--no-baseline").code == 1
    (root / "src/m.py").write_text(MORE)
    assert [place for place in states(tlint) if place[2] == "active"] == [("src/m.py", 7, "active")]
    assert tlint().code == 1


def test_one_finding_a_line_in_order(project: Project, tlint: Tlint) -> None:
    root = project(FILES)
    tlint("baseline")
    assert [line.rpartition(" ")[0] for line in lines(root)] == [
        "src/m.py: TL101[tensor-to-python]",
        "src/m.py: TL111[logging-call]",
        "src/n.py: TL101[tensor-to-python]",
        "src/n.py: TL111[logging-call]",
    ]
    assert (root / ".tlint-baseline").read_text().startswith("# ")


def test_it_moves_with_the_lines_and_goes_with_the_code(project: Project, tlint: Tlint) -> None:
    root = project({"m.py": BREAKS})
    tlint("baseline")
    (root / "m.py").write_text("# moved\n\n" + BREAKS.replace("x.sum().item()", "x.sum(  ).item()  # said"))
    assert states(tlint) == [("m.py", 8, "baselined"), ("m.py", 9, "baselined")]
    (root / "m.py").write_text(BREAKS.replace("x.sum()", "x.max()"))
    assert states(tlint) == [("m.py", 6, "baselined"), ("m.py", 7, "active")]


def test_what_occurs_no_longer_is_told_and_dropped(project: Project, tlint: Tlint) -> None:
    root = project(FILES)
    tlint("baseline")
    (root / "src/m.py").write_text(BREAKS.replace('    print("a step")\n', ""))
    (root / "src/n.py").unlink()
    told = "tlint: {} in the baseline occur no longer: `tlint baseline` drops them\n"
    assert tlint().err == told.format(3)
    assert tlint("src/m.py").err == told.format(1)
    assert tlint("src/m.py", "--select", "TL101").err == "", "the rule did not run"
    assert tlint("baseline").out == ".tlint-baseline: 1 finding (0 new, 3 dropped)\n"
    assert tlint() == Result(0, tlint().out, "")
    assert len(lines(root)) == 1


def test_only_what_was_checked_is_written_anew(project: Project, tlint: Tlint) -> None:
    root = project(FILES)
    tlint("baseline")
    for name in ("src/m.py", "src/n.py"):
        (root / name).write_text(MORE.replace('    print("a step")\n', ""))
    assert tlint("baseline", "src/n.py").out == ".tlint-baseline: 4 findings (1 new, 1 dropped)\n"
    assert {line.partition(":")[0] for line in lines(root)} == {"src/m.py", "src/n.py"}
    assert [state for path, _, state in states(tlint) if path == "src/n.py"] == ["baselined"] * 2


def test_what_a_comment_silences_needs_no_entry(project: Project, tlint: Tlint) -> None:
    root = project({"m.py": BREAKS})
    tlint("baseline")
    (root / "m.py").write_text(BREAKS.replace(".item()", ".item()  # tlint: ignore[TL101] the last step"))
    assert states(tlint) == [("m.py", 6, "baselined"), ("m.py", 7, "suppressed")]
    assert tlint("baseline").out == ".tlint-baseline: 1 finding (0 new, 1 dropped)\n"


def test_another_file(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project({"tlint.toml": 'baseline = "ci/known"', "ci/x": "", "m.py": BREAKS})
    assert "ci/known: no such file: `tlint baseline` writes it" in tlint().err
    assert tlint("baseline").out == "ci/known: 2 findings (2 new, 0 dropped)\n"
    assert tlint().code == 0
    monkeypatch.chdir(root / "ci")
    assert tlint("..").code == 0
    assert tlint("..", "--baseline", "known").code == 0
    assert tlint("..", "--baseline", "unknown").code == 2


@pytest.mark.parametrize("line", ["<<<<<<< HEAD", "m.py: TL101[tensor-to-python]", "m.py: TL101[x] 0123456789abcdeg"])
def test_a_line_that_is_none_says_where(project: Project, tlint: Tlint, line: str) -> None:
    root = project({"m.py": BREAKS, ".tlint-baseline": f"# a comment\n\nm.py: TL101[a-b] 0123456789abcdef\n{line}\n"})
    for words in ([], ["baseline"]):
        result = tlint(*words)
        assert (result.code, result.out) == (2, "")
        assert f"{root / '.tlint-baseline'}:4: not a line of a baseline" in result.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere.py", "m.py"], "nowhere.py: no such file"),
        (["--root", "m.py:nothing"], "nothing"),
        (["--from", "report.json", "m.py"], "--from goes with no PATH"),
        (["--from", "nowhere.json"], "nowhere.json:1:1: cannot be read"),
        (["--from", "m.py"], "m.py:1:1: not JSON"),
        (["--from", "list.json"], "list.json: no report of tlint"),
        (["--from", "half.json"], "the report is not as tlint writes it: KeyError('targets')"),
        (["-"], "name a file instead of standard input"),
    ],
)
def test_nothing_is_written_where_something_is_wrong(
    project: Project, tlint: Tlint, words: list[str], says: str
) -> None:
    half = '{"version": 1, "project": "/p", "findings": [{}]}'
    root = project({"m.py": BREAKS, "list.json": "[]", "half.json": half})
    result = tlint("baseline", *words)
    assert (result.code, result.out) == (2, "")
    assert says in result.err
    assert not (root / ".tlint-baseline").exists()


# Verdicts -------------------------------------------------------------------------------------------------------------


def verified(tlint: Tlint, root: Path, status: str, torch: str = "2.13.0+cpu") -> None:
    """Write `report.json`: what CI found, with a verdict of its compiler on each finding."""
    report: dict[str, Any] = json.loads(tlint("--output-format", "json", "--no-baseline").out)
    report["targets"] = [{"id": "t1", "torch": torch}]
    for item in report["findings"]:
        item["verdict"] = {"status": status, "targets": ["t1"]}
    (root / "report.json").write_text(json.dumps(report))


def test_what_the_compiler_refuted_is_hidden_until_torch_changes(project: Project, tlint: Tlint) -> None:
    root = project({"tlint.toml": 'target-torch = ["2.13"]\nselect = ["TL101"]', "m.py": BREAKS})
    verified(tlint, root, "refuted")
    assert tlint("baseline", "--from", "report.json").out == ".tlint-baseline: 1 finding (1 new, 0 dropped)\n"
    assert lines(root)[0].endswith(" refuted by torch 2.13")
    [hidden] = tlint("--output-format", "json").report["findings"]
    assert (hidden["state"], hidden["reason"]) == ("baselined", "refuted by torch 2.13")
    assert tlint().code == 0
    assert tlint("--target-torch", "2.14").code == 1
    assert tlint("--target-torch", "2.13,2.14").code == 1
    verified(tlint, root, "refuted", "2.14.1")
    tlint("baseline", "--from", "report.json")
    assert lines(root)[0].endswith(" refuted by torch 2.13, 2.14")
    assert tlint("--target-torch", "2.13,2.14").code == 0


def test_a_run_without_the_compiler_leaves_verdicts_alone(project: Project, tlint: Tlint) -> None:
    root = project({"tlint.toml": 'target-torch = ["2.13"]\nselect = ["TL101"]', "m.py": BREAKS})
    verified(tlint, root, "refuted")
    tlint("baseline", "--from", "report.json")
    before = lines(root)
    assert tlint("baseline").out == ".tlint-baseline: 1 finding (0 new, 0 dropped)\n"
    assert lines(root) == before
    tlint("baseline", "--target-torch", "2.14")  # it holds for the new torch only if it is accepted as it is
    assert "refuted" not in lines(root)[0]
    assert tlint("--target-torch", "2.14").code == 0


def test_the_newest_verdict_counts(project: Project, tlint: Tlint) -> None:
    root = project({"tlint.toml": 'target-torch = ["2.13"]\nselect = ["TL101"]', "m.py": BREAKS})
    for status in ("refuted", "confirmed", "unreached"):
        verified(tlint, root, status)
        tlint("baseline", "--from", "report.json")
    assert lines(root)[0].endswith(" confirmed by torch 2.13"), "that it was not reached says nothing of it"


def test_a_report_adds_and_never_drops(project: Project, tlint: Tlint) -> None:
    root = project(FILES)
    tlint("baseline")
    (root / "src/m.py").write_text(MORE)
    tlint("src/m.py", "--select", "TL101", "--output-format", "json", "--output-file", "report.json")
    assert tlint("baseline", "--from", "report.json").out == ".tlint-baseline: 5 findings (1 new, 0 dropped)\n"


def test_a_report_of_another_copy_of_the_project(project: Project, tlint: Tlint) -> None:
    root = project(FILES)
    report = json.loads(tlint("--output-format", "json").out)
    for item in report["findings"]:
        item["path"] = f"/elsewhere/{item['path']}"
    (root / "report.json").write_text(json.dumps({**report, "project": "/elsewhere"}))
    assert tlint("baseline", "--from", "report.json").code == 0
    assert tlint().code == 0
    assert {line.partition(":")[0] for line in lines(root)} == {"src/m.py", "src/n.py"}
    (root / "report.json").write_text(json.dumps({**report, "project": "/other"}))
    assert "go to the folder that the report is of" in tlint("baseline", "--from", "report.json").err


ENTRY = baseline.Entry("m.py", "TL101", "tensor-to-python", finding().id)


@pytest.mark.parametrize(
    ("entry", "found", "state"),
    [
        (("", ()), finding(), "baselined"),
        (("confirmed", ("2.13",)), finding(torch=("2.14",)), "baselined"),
        (("", ()), finding(verdict=Verdict(Status.confirmed)), "baselined"),
        (("refuted", ("2.13",)), finding(torch=("2.13",)), "baselined"),
        (("refuted", ("2.13",)), finding(torch=("2.13", "2.14")), "active"),
        (("refuted", ("2.13",)), finding(torch=("2.13",), verdict=Verdict(Status.confirmed)), "active"),
        (("", ()), finding(id="f" * 16), "active"),
        (("", ()), finding(state="suppressed"), "suppressed"),
    ],
)
def test_states(entry: tuple[str, tuple[str, ...]], found: Finding, state: str) -> None:
    known = baseline.Entry("m.py", "TL101", "tensor-to-python", finding().id, *entry)
    assert [f.state for f in baseline.apply([found], {known.id: known})] == [state]


@pytest.mark.parametrize("path", ["a b/m.py", "a: TL101[x] 0123456789abcdef/m.py", "ä/東京.py"])
def test_what_is_written_is_read(tmp_path: Path, path: str) -> None:
    entries = {
        str(n): baseline.Entry(path, "TL101", "tensor-to-python", f"{n:016}", verdict, torch)
        for n, (verdict, torch) in enumerate([("", ()), ("refuted", ("2.9", "2.13")), ("confirmed", ("2.14",))])
    }
    baseline.write(tmp_path / baseline.NAME, entries)
    assert sorted(baseline.read(tmp_path, Settings()).values()) == sorted(entries.values())
