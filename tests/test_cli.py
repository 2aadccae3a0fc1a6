"""The command line: commands, options, exit codes, and what it says to a person who asks for the wrong thing."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import Result

from tlint import __version__, rules
from tlint.analyzer import cli, facts, pipeline
from tlint.analyzer.config import Settings
from tlint.analyzer.model import Break, Observation, Report, Span, Target
from tlint.compiler import runner
from tlint.compiler.targets import Request

Project = Callable[..., Path]
Tlint = Callable[..., Result]

JSON = ("--output-format", "json")
ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"

BREAKS = """\
import torch


@torch.compile
def step(x: torch.Tensor) -> float:
    print("a step")
    return x.sum().item()
"""


def found(result: Result) -> list[tuple[str, str, int]]:
    return [(finding["code"], finding["path"], finding["line"]) for finding in result.report["findings"]]


# Commands


def test_check_is_implied(project: Project, tlint: Tlint) -> None:
    project({"m.py": BREAKS})
    expected = [("TL111", "m.py", 6), ("TL101", "m.py", 7)]
    for words in (["check", "m.py"], ["m.py"], ["."], []):
        result = tlint(*words, "--output-format", "json")
        assert (result.code, found(result)) == (1, expected), words


def test_a_folder_that_is_called_like_a_command(project: Project, tlint: Tlint) -> None:
    project({"rules/m.py": BREAKS})
    assert "tensor-to-python" in tlint("rules").out
    for words in (["./rules"], ["check", "rules"]):
        assert found(tlint(*words, "--output-format", "json"))[0][1] == "rules/m.py"


def test_version_and_help(tlint: Tlint) -> None:
    assert tlint("--version") == Result(0, f"tlint {__version__}\n", "")
    assert "tlint COMMAND --help" in tlint("--help").out
    for command in cli.COMMANDS:
        assert f"tlint {command}" in tlint(command, "--help").out


def test_rules_lists_every_rule(tlint: Tlint) -> None:
    lines = tlint("rules").out.splitlines()
    assert [line.split()[:4] for line in lines] == [
        [code, rule.name, rule.severity.name, rule.status] for code, rule in rules.load().items()
    ]


@pytest.mark.parametrize("subject", ["TL101", "tl101", "tensor-to-python"])
def test_explain_a_rule(tlint: Tlint, subject: str) -> None:
    result = tlint("explain", subject)
    assert result.code == 0
    assert result.out.startswith("# TL101 tensor-to-python\n")
    assert "Bad" in result.out
    running = result.out.partition("## What running tells\n")[2]
    assert "in default mode (`fullgraph=True` captures it)" in running
    assert f"- {ITEM}\n" in running


def test_explain_says_once_what_running_tells(tlint: Tlint) -> None:
    for code, rule in rules.load().items():
        assert tlint("explain", code).out.count("## What running tells\n") == bool(rule.gb_types), code


def test_explain_every_graph_break(tlint: Tlint) -> None:
    """By its number, with every type that it has had; and by its type."""
    registries = {version: facts.load(version).registry for version in facts.versions()}
    assert min(map(len, registries.values())) > 100
    known = {gb_id: entry["gb_type"] for registry in registries.values() for gb_id, entry in registry.items()}
    for gb_id, gb_type in known.items():
        result = tlint("explain", gb_id)
        assert (result.code, result.out.partition("\n")[0]) == (0, f"# {gb_id} {gb_type}")
        assert all(registry[gb_id]["gb_type"] in result.out for registry in registries.values() if gb_id in registry)
    assert tlint("explain", gb_type.upper()).out == result.out


def test_explain_says_where_a_graph_break_is_known(tlint: Tlint) -> None:
    assert tlint("explain", "GB0124").out.endswith(f"In torch {facts.versions()[0]} to {facts.versions()[-1]}.\n")
    gone = tlint("explain", "GB0060").out
    assert gone.startswith("# GB0060 Failed to trace unittest method\n")
    assert gone.endswith("2.13.\n")
    assert "No rule predicts it" in gone


def test_explain_a_callee(tlint: Tlint) -> None:
    shuffle = tlint("explain", "random.shuffle").out
    assert shuffle.startswith("# random.shuffle\n")
    assert re.search(
        r"^- torch .*2\.13: breaks: Attempted to call function marked as skipped \(GB0007\)$", shuffle, re.M
    )
    assert re.search(r"^- torch 2\.14.*: does not break$", shuffle, re.M)
    assert "- TL113 random-state: " in shuffle
    assert "TL114" not in shuffle, "a break of the same type"
    assert tlint("explain", "any").out.startswith("# builtins.any\n")
    item = tlint("explain", "Tensor.item").out
    assert item.startswith("# torch.Tensor.item\n")
    assert "; `fullgraph=True` captures it\n" in item
    assert " when called with one argument: Dynamic shape operator" in tlint("explain", "torch.where").out
    assert " without `num_classes`: " in tlint("explain", "one_hot").out
    assert tlint("explain", "torch.functional.einsum").out.startswith("# torch.einsum\n"), "by any of its names"


def test_explain_names_the_rule_that_finds_a_graph_break(tlint: Tlint) -> None:
    [gb_id] = (
        gb_id
        for gb_id, entry in facts.load(facts.versions()[-1]).registry.items()
        if entry["gb_type"] == "Unsupported Tensor.item() call with capture_scalar_outputs=False"
    )
    shown = tlint("explain", gb_id).out
    assert "- TL101 tensor-to-python: " in shown
    assert "Context: `call_method {self} item" in shown
    quoted = tlint("explain", "GB0170").out
    assert "\nexplanation\n" not in tlint("explain", "GB0007").out, "the name of a variable says nothing"
    assert "Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo does not" in quoted
    assert "`tlint explain TL101`" in shown
    assert len(shown.splitlines()) < 25, "a pointer, not the rule's page"


@pytest.mark.parametrize(
    ("subject", "says"),
    [
        ("tensor-to-pyton", "did you mean 'tensor-to-python'?"),
        ("zzz", "`tlint rules` lists the rules; graph breaks are written GB0124"),
        ("GB9998", "GB9998: no graph break has this id in torch 2."),
        ("Data-dependent branch", "did you mean 'Data-dependent branching'?"),
        ("item", "did you mean 'numpy.ndarray.item' or 'torch.Tensor.item'?"),
    ],
)
def test_explain_something_unknown(tlint: Tlint, subject: str, says: str) -> None:
    result = tlint("explain", subject)
    assert result.code == 2
    assert says in result.err


def test_roots(project: Project, tlint: Tlint) -> None:
    project({"m.py": BREAKS})
    result = tlint("roots")
    assert result.code == 0
    assert result.out.startswith("m.py:")
    assert "m:step (explicit, " in result.out


# Exit codes


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--fail-on", "info"], 1),
        (["--fail-on", "error"], 0),
        (["--select", "TL4"], 0),
        (["--select", "TL101"], 1),
        (["--ignore", "TL1"], 0),
        (["--ignore", "tensor-to-python,logging-call"], 0),
    ],
)
def test_exit_codes(project: Project, tlint: Tlint, options: list[str], code: int) -> None:
    project({"m.py": BREAKS})
    result = tlint("m.py", "--output-format", "json", *options)
    assert (result.code, result.report["summary"]["exit_code"]) == (code, code)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere.py"], "nowhere.py: no such file or folder"),
        (["chekc"], "did you mean `tlint check`?"),
        (["-q", "verify"], "a command comes first: `tlint verify ...`"),
        (["m.py:step"], "`tlint verify m.py:step`, or --root m.py:step"),
        (["m.py", "--select", "tensor-to-pyton"], "did you mean 'tensor-to-python'?"),
        (["m.py", "--ignore", "ZZ1"], "no rule is called 'ZZ1'"),
        (["m.py", "--target-torch", "1.0"], "known are"),
        (["m.py", "--python", "nowhere"], "nowhere: no Python interpreter"),
        (["m.py", "--output-file", "no/such/report"], "--output-file no/such/report"),
        (["m.py", "--fail-on", "never"], "invalid choice: 'never'"),
        (["m.py", "--outputformat", "json"], "unrecognized arguments"),
        (["m.py", "--verify", "--memory", "lots"], "must be a size like 8GiB"),
        (["m.py", "--verify", "--jobs", "0"], "jobs must be a number above zero"),
        (["m.py", "--verify", "--timeout", "nan"], "timeout must be a number above zero, not nan"),
        (["m.py", "--verify", "--timeout", "inf"], "timeout must be a number above zero, not inf"),
        (["m.py", "--verify", "--timeout", "-1"], "timeout must be a number above zero, not -1"),
        (["m.py", "--verify", "--memory", "9" * 400], "must be a size like 8GiB"),
        ([""], "'': no such file or folder"),
        (["m.py/n.py"], "m.py/n.py: no such file or folder"),
        (["n" * 300], f"{'n' * 300}: File name too long"),
        (["verify", "n" * 300], f"{'n' * 300}: no file below the paths defines it"),
        (["--python", "n" * 300], "no Python interpreter"),
        (["--output-file", "/dev/full"], "No space left on device"),
        (["verify", ":f"], ":f: nothing is named before ':'"),
        (["m.py", "--select="], "argument --select: nothing is named"),
        (["m.py", "--gpu", ","], "argument --gpu: nothing is named"),
        (["m.py", "--gpu", "h1000"], "unknown GPU 'h1000'"),
        (["verify", "m.py:"], "m.py:: nothing is named after ':'"),
        (["verify", "m.py:step."], "'step.' is no name of Python's"),
        (["verify", "..:f"], "'..' is neither a .py file nor a module"),
        (["verify", "..."], "'...' is no name of Python's"),
        (["verify", "/:f"], "/:f: / is a folder: a TARGET is FILE.py:NAME"),
        (["-", "m.py"], "goes with no other PATH"),
        (["-", "--verify"], "standard input cannot be verified"),
        (["explain"], "the following arguments are required"),
    ],
)
def test_what_cannot_be_done_says_why(project: Project, tlint: Tlint, words: list[str], says: str) -> None:
    project({"m.py": BREAKS})
    result = tlint(*words)
    assert (result.code, result.out) == (2, "")
    assert says in result.err
    assert "Traceback" not in result.err


def test_what_is_missing_does_not_hide_the_rest(project: Project, tlint: Tlint) -> None:
    project({"m.py": BREAKS})
    result = tlint("nowhere.py", "m.py", "--output-format", "json")
    assert (result.code, result.report["summary"]["exit_code"], len(found(result))) == (2, 2, 2)
    assert result.err == "tlint: error: nowhere.py: no such file or folder\n"
    assert tlint("roots", "nowhere.py", "m.py").code == 2


def test_a_mistake_in_the_configuration(project: Project, tlint: Tlint) -> None:
    root = project({"m.py": BREAKS, "tlint.toml": "selct = []"})
    result = tlint("m.py")
    assert result.code == 2
    assert f"{root / 'tlint.toml'}: unknown key selct: did you mean 'select'?" in result.err


def test_an_empty_folder_is_a_notice(project: Project, tlint: Tlint) -> None:
    project({"empty/notes.txt": ""})
    result = tlint("empty")
    assert result.code == 0
    assert "no Python files below empty" in result.err
    assert not tlint("empty", "-q").err


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"def f(:\n    pass\n", 1),
        (b"x = 1\n  y = 2\n", 2),
        (b"\x7fELF\x02\x01\x01\x00\x00", 1),
        (b"x = 1\ny = '\xe9'\n", 2),
        (b"# coding: klingon\n", 1),
        (b"# coding: rot13\n", 1),
        (b"# coding: undefined\n", 1),
        (b"(" * 5000, 1),
    ],
)
def test_what_does_not_parse_is_a_finding(project: Project, tlint: Tlint, data: bytes, line: int) -> None:
    project({"bad.py": data, "good.py": BREAKS})
    result = tlint("--output-format", "json", "--select", "TL101")
    assert result.code == 1
    assert found(result) == [("TL902", "bad.py", line), ("TL101", "good.py", 7)]


def test_what_can_be_read_is_read(project: Project, tlint: Tlint) -> None:
    text = "# -*- coding: latin-1 -*-\n# \xe9\n" + BREAKS
    project({"m.py": text.encode("latin-1"), "n.py": ("\ufeff" + BREAKS.replace("\n", "\r\n")).encode()})
    expected = [("TL111", "m.py", 8), ("TL101", "m.py", 9), ("TL111", "n.py", 6), ("TL101", "n.py", 7)]
    assert found(tlint("--output-format", "json")) == expected


def test_a_loop_of_links(project: Project, tlint: Tlint) -> None:
    root = project({"a/m.py": BREAKS})
    (root / "a" / "again").symlink_to(root, target_is_directory=True)
    assert len(found(tlint("--output-format", "json", "--select", "TL101"))) == 1


def test_a_bug_of_ours_is_not_taken_for_findings(
    project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Report:
        raise RuntimeError("a bug")

    monkeypatch.setattr(pipeline, "run", fail)
    project({"m.py": BREAKS})
    result = tlint("m.py")
    assert result.code == 2
    assert "RuntimeError: a bug" in result.err


def test_what_is_no_file_is_not_waited_for(project: Project, tlint: Tlint) -> None:
    root = project({"m.py": BREAKS, "folder.py/m.py": BREAKS})
    os.mkfifo(root / "pipe.py")
    os.mkfifo(root / ".gitignore")
    (root / "loop.py").symlink_to("loop.py")
    (root / "nowhere.py").symlink_to("gone.py")
    (root / ".venv").symlink_to(".venv")
    assert {path for _, path, _ in found(tlint("--output-format", "json"))} == {"m.py", "folder.py/m.py"}
    for words, says in {
        ("pipe.py",): "pipe.py: neither a file nor a folder",
        ("/dev/zero",): "/dev/zero: neither a file nor a folder",
        ("verify", "pipe.py:f"): "pipe.py: neither a file nor a folder",
        ("loop.py",): "loop.py: Too many levels of symbolic links",
        ("nowhere.py",): "nowhere.py: no such file or folder",
        ("--root", "loop.py:f"): "--root loop.py:f: no such file",
    }.items():
        result = tlint(*words)
        assert result.code == 2 and says in result.err, words


def test_what_may_not_be_read_is_an_error_where_it_is_named(
    project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project({"m.py": BREAKS, "closed.py": BREAKS, "shut/n.py": BREAKS})
    closed = {str(root / name) for name in ("closed.py", "shut")} | {"closed.py", "shut"}
    list_, access, read = os.scandir, os.access, Path.read_bytes

    def check(path: object) -> None:
        if str(path) in closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", lambda path: check(path) or list_(path))
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) not in closed and access(path, mode))
    monkeypatch.setattr(Path, "read_bytes", lambda path: check(path) or read(path))
    for name in ("closed.py", "shut"):
        result = tlint(name, "m.py", "--output-format", "json")
        assert (result.code, len(found(result))) == (2, 2)
        assert result.err == f"tlint: error: {name}: Permission denied\n"
        assert (tlint(name).code, tlint("roots", name).code) == (2, 2)
    result = tlint("--output-format", "json", "--select", "TL101")
    assert found(result) == [("TL902", "closed.py", 1), ("TL101", "m.py", 7)]
    assert "shut is left out: it cannot be listed (Permission denied)" in result.err


def test_names_that_are_not_utf8(project: Project, tlint: Tlint) -> None:
    root = project()
    for name in (b"\xff.py", b"\xfe/m.py", b"bad\xff.py"):
        path = root / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text("def f(:" if name.startswith(b"bad") else BREAKS)
    assert len(found(tlint("--output-format", "json"))) == 5
    assert "\ufffd.py:6:5: warning TL111" in tlint("--output-format", "concise").out
    assert "\\udcff.py:4:2: " in tlint("roots").out


# The surroundings, which only a process of its own can have


def shell(folder: Path, line: str) -> Result:
    """What a line does where `tlint` is this one, and its standard output is read."""
    line = f'tlint() {{ "{sys.executable}" -m tlint "$@"; }}; {line}'
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=100
    )
    return Result(done.returncode, done.stdout, done.stderr)


def test_a_reader_that_has_enough(project: Project) -> None:
    root = project({f"m{i}.py": BREAKS for i in range(99)})
    result = shell(root, "tlint --output-format concise | head -1; exit ${PIPESTATUS[0]}")
    assert result.code in {1, 2}, "the reader may have gone before anything was written, or after all of it was"
    assert (len(result.out.splitlines()), result.err) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", ["m.py", "m.py --output-format json", "rules", "roots"])
def test_output_that_cannot_be_written(project: Project, words: str) -> None:
    result = shell(project({"m.py": BREAKS}), f"tlint {words} >/dev/full")
    assert (result.code, result.err) == (2, "tlint: error: No space left on device\n")


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("tlint m.py >&-", 1, ""),
        ("tlint m.py 2>&-", 1, ""),
        ("tlint nowhere.py 2>&-", 2, ""),
        ("tlint nowhere.py 2>/dev/full", 2, ""),
        ("tlint - <&-", 2, "`-`: standard input is closed"),
        ("mkdir gone; cd gone; rmdir ../gone; tlint", 2, "the working directory has been deleted"),
    ],
)
def test_streams_and_folders_that_are_gone(project: Project, line: str, code: int, says: str) -> None:
    result = shell(project({"m.py": BREAKS}), line)
    assert result.code == code
    assert "Traceback" not in result.err
    assert result.err.removeprefix("tlint: error: ").strip() == says


def test_terminals(project: Project) -> None:
    root = project({"m.py": BREAKS})
    plain = shell(root, "tlint m.py").out
    assert plain == shell(root, "COLUMNS=0 tlint m.py").out
    assert plain == shell(root, "FORCE_COLOR=1 NO_COLOR=1 tlint m.py").out
    coloured = shell(root, "FORCE_COLOR=1 TERM=xterm tlint m.py")
    assert "\x1b[" in coloured.out and coloured.err == ""
    assert "\\u2026" in shell(root, "PYTHONIOENCODING=ascii tlint rules").out


@pytest.mark.parametrize(
    ("root", "says"),
    [("nowhere.py:f", "no such file in the working directory"), ("m.py:stpe", "m.py defines no stpe; it defines step")],
)
def test_a_root_that_is_not_there_does_not_hide_the_rest(project: Project, tlint: Tlint, root: str, says: str) -> None:
    project({"m.py": BREAKS})
    result = tlint("m.py", "--root", root, "--output-format", "json")
    assert (result.code, result.report["summary"]["exit_code"], len(found(result))) == (2, 2, 2)
    assert says in result.err
    assert tlint("roots", "m.py", "--root", root).code == 2


DECLARED = """

def tlint_inputs():
    return (torch.ones(2),)
"""
TWO = """\
import torch
from helpers import read


def one(x: torch.Tensor):
    return read(x)


def two(x: torch.Tensor):
    return x.item()
"""
HELPERS = """\
def read(x):
    return x.item()


def other(x):
    return x.item()  # tlint: ignore[tensor-to-python]
"""


def verified(monkeypatch: pytest.MonkeyPatch, *breaks: tuple[str, int, Span]) -> None:
    """The compiler is taken to have seen these breaks in each target."""

    def run(requests: Sequence[Request], *_: object) -> tuple[Observation, ...]:
        seen = tuple(
            Break(f"b{line}", ITEM, ITEM, path, line, ((path, line, "f"),), span=span) for path, line, span in breaks
        )
        targets = (Target(r.id, r.name, "m.py", breaks=seen, gate="fail", phase="dynamo") for r in requests)
        return tuple(Observation(target, {path: (span,) for path, _, span in breaks}) for target in targets)

    monkeypatch.setattr(runner, "run", run)


def test_a_break_outside_the_paths_may_have_been_predicted(
    project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch
) -> None:
    project({"tlint.toml": "", "m.py": TWO, "helpers.py": HELPERS})
    verified(monkeypatch, ("helpers.py", 2, Span(2, 12, 2, 20)), ("helpers.py", 6, Span(6, 12, 6, 20)))
    report = tlint("verify", "m.py:one", "--output-format", "json").report
    shown = {(f["code"], f["path"], f["line"], f["verdict"]["status"]) for f in report["findings"]}
    assert shown == {("TL101", "helpers.py", 2, "confirmed"), ("TL199", "helpers.py", 6, "confirmed")}
    assert [seen["predicted"] for seen in report["targets"][0]["breaks"]] == [True, False]
    assert {path["root"] for f in report["findings"] for path in f["paths"]} == {"m:one"}


def test_a_target_is_all_that_is_looked_at_unless_a_path_is_named_too(
    project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch
) -> None:
    project({"tlint.toml": "", "m.py": TWO, "helpers.py": HELPERS, "n.py": BREAKS})
    verified(monkeypatch)
    for words, expected in (
        (["m.py:two"], {("m.py", 10)}),
        (["two"], {("m.py", 10)}),
        (["m:one"], {("helpers.py", 2)}),
        (["m.py:two", "n.py:step"], {("m.py", 10), ("n.py", 6), ("n.py", 7)}),
        (["m.py:two", "."], {("m.py", 10), ("n.py", 6), ("n.py", 7)}),
    ):
        result = tlint("verify", *words, "--output-format", "json")
        assert {(path, line) for _, path, line in found(result)} - {("helpers.py", 6)} == expected, words


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("m.py:on", "m.py has no 'on'; did you mean one?"),
        ("m:twoo", "m.py has no 'twoo'; did you mean two?"),
        ("stpe", "no file below the paths defines it; did you mean step"),
        ("step", "2 files define it (a/m.py, n.py): name one, as FILE.py:NAME"),
    ],
)
def test_a_target_that_is_not_there(project: Project, tlint: Tlint, target: str, says: str) -> None:
    project({"tlint.toml": "", "m.py": TWO, "helpers.py": HELPERS, "n.py": BREAKS, "a/m.py": BREAKS})
    result = tlint("verify", target)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"tlint: error: {target}: {result.err.partition(f'{target}: ')[2]}"
    assert says in result.err


def asked_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is to be verified, as they come."""
    names: list[str] = []

    def run(requests: Sequence[Request], *_: object) -> tuple[Observation, ...]:
        names[:] = [request.name for request in requests]
        return tuple(Observation(Target(r.id, r.name, "m.py", status="", gate="pass")) for r in requests)

    monkeypatch.setattr(runner, "run", run)
    return names


def test_a_target_that_is_not_there_is_not_replaced(
    project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = asked_of_the_compiler(monkeypatch)
    project({"tlint.toml": "", "a/m.py": BREAKS + DECLARED})
    result = tlint("verify", "a", "stpe")
    assert (result.code, names) == (2, [])
    assert "stpe: no file below the paths defines it; did you mean step" in result.err
    assert (tlint("verify", "a").code, names) == (1, ["m:step"])


def test_what_is_verified_leads_to_the_paths(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    names = asked_of_the_compiler(monkeypatch)
    compiled = TWO.replace("def ", "@torch.compile\ndef ")
    project({"tlint.toml": "", "m.py": compiled + DECLARED, "helpers.py": HELPERS, "n.py": BREAKS + DECLARED})
    for words, expected in {
        (".",): ["m:one", "m:two", "n:step"],
        ("n.py",): ["n:step"],
        ("helpers.py",): ["m:one", "m:two"],
        ("m.py",): ["m:one", "m:two"],
    }.items():
        tlint("check", *words, "--verify")
        assert names == expected, words


def test_the_closing_line_is_about_what_was_asked_for(
    project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_of_the_compiler(monkeypatch)
    project({"tlint.toml": "", "m.py": TWO, "helpers.py": HELPERS, "n.py": BREAKS})
    assert tlint("verify", "m.py:one").out.splitlines()[-1].startswith("1 root, ")
    assert tlint("verify", "m.py:one", ".").out.splitlines()[-1].startswith("2 roots, ")


def test_a_target_that_failed_is_told_once(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(requests: Sequence[Request], *_: object) -> tuple[Observation, ...]:
        return tuple(
            Observation(Target(r.id, r.name, "m.py", status="error", phase="import", detail="Boom")) for r in requests
        )

    monkeypatch.setattr(runner, "run", run)
    project({"m.py": TWO, "helpers.py": HELPERS})
    text, concise = tlint("verify", "m.py:one"), tlint("verify", "m.py:one", "--output-format", "concise")
    assert (text.code, text.out.count("Boom"), text.err) == (2, 1, "")
    assert (concise.code, concise.out.count("Boom"), concise.err.count("Boom")) == (2, 0, 1)


def test_a_former_name_is_the_rule(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "aliases", {"item-call": "TL101"})
    project({"m.py": BREAKS})
    assert [code for code, _, _ in found(tlint("--select", "item-call", "--output-format", "json"))] == ["TL101"]
    assert tlint("explain", "item-call").out.startswith("# TL101 tensor-to-python")
    project({"m.py": BREAKS.replace(".item()", ".item()  # tlint: ignore[item-call]")})
    [finding] = tlint("--select", "TL101", "--output-format", "json").report["findings"]
    assert finding["state"] == "suppressed"


def test_only_what_is_active_counts_as_hidden(project: Project, tlint: Tlint) -> None:
    unsure = BREAKS.replace("x: torch.Tensor", "x").replace("x.sum().item()", "x.item()")
    project({"m.py": unsure})
    options = ["--select", "TL101", "--min-confidence", "certain", "--output-format", "json"]
    assert tlint(*options).report["summary"]["hidden"] == 1
    project({"m.py": unsure.replace("x.item()", "x.item()  # tlint: ignore[TL101]")})
    assert tlint(*options).report["summary"]["hidden"] == 0


def test_help_waits_for_nothing_that_it_does_not_need() -> None:
    def imported(module: str) -> set[str]:
        program = f"import sys, tlint.analyzer.{module}; print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    assert not {"libcst", "rich", "torch"} & imported("cli")
    assert not {"libcst", "torch"} & imported("pipeline")


# What is reported


def test_only_what_is_below_the_paths_is_reported(project: Project, tlint: Tlint) -> None:
    project({"tlint.toml": "", "a/m.py": BREAKS, "b/n.py": BREAKS})
    assert {path for _, path, _ in found(tlint("a", "--output-format", "json"))} == {"a/m.py"}


def test_selectors(project: Project, tlint: Tlint) -> None:
    project({"m.py": BREAKS})

    def codes(*options: str) -> list[str]:
        return [code for code, _, _ in found(tlint("m.py", "--output-format", "json", *options))]

    assert codes() == ["TL111", "TL101"]
    assert codes("--select", "TL11") == ["TL111"]
    assert codes("--select", "TL4", "--extend-select", "logging-call") == ["TL111"]
    assert codes("--select", "TL101,TL111", "--ignore", "TL1") == ["TL111", "TL101"]
    assert codes("--select", "ALL", "--ignore", "TL10") == ["TL111"]


def test_when_no_rule_is_on_it_says_so(project: Project, tlint: Tlint) -> None:
    project({"m.py": BREAKS})
    assert "no rule is on" in tlint("--ignore", "ALL").err
    assert "no rule is on" not in tlint("--select", "TL101").err


def test_the_configuration_selects(project: Project, tlint: Tlint) -> None:
    project({"m.py": BREAKS, "pyproject.toml": '[tool.tlint]\nignore = ["logging-call"]\n'})
    assert [code for code, _, _ in found(tlint("m.py", "--output-format", "json"))] == ["TL101"]


HEALED = """\
import random
import torch


@torch.compile
def step(x, order):
    random.shuffle(order)
    return x.sum().item()
"""


def test_what_an_upgrade_heals(project: Project, tlint: Tlint) -> None:
    """`random.shuffle` is traced from torch 2.14 on."""
    project({"m.py": HEALED})
    versions = {f["line"]: f["torch"] for f in tlint("--target-torch", "2.13,2.14", *JSON).report["findings"]}
    assert versions == {7: ["2.13"], 8: ["2.13", "2.14"]}
    both = tlint("--target-torch", "2.13,2.14")
    assert "\ntorch 2.13 → 2.14: 1 healed, 0 new.\n" in both.out
    assert "only under torch 2.13" in both.out
    assert "torch 2.14 → 2.13: 0 healed, 1 new." in tlint("--target-torch", "2.14,2.13").out
    one, other = tlint("--target-torch", "2.13,2.14", "--output-format", "concise").out.splitlines()
    assert one.endswith("(healed in torch 2.14) [torch 2.13]")
    assert not other.endswith("]")
    assert "torch 2.13 -> 2.14: 1 healed, 0 new." in tlint("--target-torch", "2.13,2.14", "--statistics").out
    alone, newest = tlint("--target-torch", "2.13").out, tlint("--target-torch", "2.14").out
    assert "(healed in torch 2.14)" in " ".join(alone.split())
    assert "→" not in alone + newest
    assert "healed" not in newest


def test_a_rule_in_preview(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is off unless all of them are turned on, and what it alone predicts is then unpredicted."""
    monkeypatch.setattr(type(rules.load()["TL101"]), "status", "preview")
    verified(monkeypatch, ("m.py", 7, Span(7, 12, 7, 26)))
    project({"tlint.toml": "", "m.py": BREAKS})

    def codes(*words: str) -> list[str]:
        return [code for code, _, _ in found(tlint(*words, "--output-format", "json"))]

    assert codes("m.py") == ["TL111"]
    assert codes("m.py", "--preview") == ["TL111", "TL101"]
    assert codes("verify", "m:step") == ["TL111", "TL199"]
    assert codes("verify", "m:step", "--preview") == ["TL111", "TL101"]
    refused = tlint("m.py", "--extend-select", "tensor-to-python")
    assert (refused.code, "--preview" in refused.err) == (2, True)
    assert codes("m.py", "--ignore", "TL101") == ["TL111"]
    project({"tlint.toml": "preview = true\n"})
    report = tlint("m.py", "--output-format", "json").report
    assert {code: rule["status"] for code, rule in report["rules"].items()} == {"TL101": "preview", "TL111": "stable"}


def test_a_suppressed_finding_does_not_fail(project: Project, tlint: Tlint) -> None:
    project({"m.py": BREAKS.replace(".item()", ".item()  # tlint: ignore[tensor-to-python] the last step only")})
    result = tlint("m.py", "--output-format", "json", "--select", "TL101")
    [finding] = result.report["findings"]
    assert (result.code, finding["state"], finding["reason"]) == (0, "suppressed", "the last step only")


def test_standard_input(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    project({"src/m.py": "old = 1\n"})
    for words, name in (([], "stdin.py"), (["--stdin-filename", "src/m.py"], "src/m.py")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BREAKS.encode())))
        result = tlint("-", *words, "--output-format", "json")
        assert (result.code, found(result)) == (1, [("TL111", name, 6), ("TL101", name, 7)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BREAKS.encode())))
        assert "return x.sum().item()" in tlint("-", *words).out


def test_output_file(project: Project, tlint: Tlint) -> None:
    root = project({"m.py": BREAKS})
    assert tlint("m.py", "--output-format", "json", "--output-file", "report.json") == Result(1, "", "")
    assert json.loads((root / "report.json").read_text())["summary"]["findings"] == 2


def test_formats_for_people(project: Project, tlint: Tlint) -> None:
    project({"m.py": BREAKS})
    assert tlint("m.py", "--output-format", "concise").out.splitlines()[1].startswith("m.py:7:12: warning TL101")
    assert "1  TL101  tensor-to-python" in tlint("m.py", "--statistics").out
    assert "1 root, 1 function, 1 file, torch " in tlint("m.py").out


def test_colour(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    project({"m.py": BREAKS})
    monkeypatch.setenv("FORCE_COLOR", "")
    monkeypatch.setenv("NO_COLOR", "")
    assert "\x1b" not in tlint("m.py").out
    assert "\x1b" in tlint("m.py", "--color", "always").out
    assert "\x1b" not in tlint("m.py", "--color", "never").out


def test_verbose_says_what_was_found_out(project: Project, tlint: Tlint) -> None:
    root = project({"m.py": BREAKS, "uv.lock": '[[package]]\nname = "torch"\nversion = "2.13.0"\n'})
    notices = tlint("m.py", "-v").err
    assert f"project {root}: 1 Python files" in notices
    assert "torch 2.13 from uv.lock" in notices
    assert not tlint("m.py").err


# What verify asks for


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[list[str], Settings]]:
    """The PATHs and settings of the last run, of which nothing is carried out."""
    runs: list[tuple[Any, ...]] = []

    def record(*arguments: Any) -> Report:
        runs.append(arguments)
        return Report("", ("2.13",), "newest", {}, (), (), (), 0, 0)

    monkeypatch.setattr(pipeline, "run", record)
    return lambda: ([path.as_posix() for path in runs[-1][0]], runs[-1][1])


@pytest.mark.parametrize(
    ("words", "paths", "targets"),
    [
        (["verify"], ["."], ()),
        (["verify", "src"], ["src"], ()),
        (["verify", "m.py"], ["m.py"], ("m.py",)),
        (["verify", "m.py:step"], ["m.py"], ("m.py:step",)),
        (["verify", "a.b:Net", "src"], ["src", "src/a/b.py"], ("a.b:Net",)),
        (["verify", "m:step"], ["m.py"], ("m:step",)),
        (["verify", "Net"], ["."], ("Net",)),
        (["check", "--verify", "m.py:step"], ["m.py"], ("m.py:step",)),
        (["check", "--verify", "src"], ["src"], ()),
        (["check", "--verify", "m.py"], ["m.py"], ()),
    ],
)
def test_targets(
    project: Project,
    tlint: Tlint,
    asked: Callable[[], tuple[list[str], Settings]],
    words: list[str],
    paths: list[str],
    targets: tuple[str, ...],
) -> None:
    project({"m.py": "", "src/a/b.py": "", "src/a/__init__.py": ""})
    assert tlint(*words).code == 0
    got, settings = asked()
    assert (got, settings.verify_settings.targets) == (paths, targets)
    assert settings.verify is True
    assert settings.only_targets is (bool(targets) and "src" not in words)


def test_limits(project: Project, tlint: Tlint, asked: Callable[[], tuple[list[str], Settings]]) -> None:
    project({"m.py": ""})
    options = "--gpu a100,h100 --gpu b200 --timeout 5 --memory 1GiB --jobs 2 --train --mode reduce-overhead"
    assert tlint("verify", "m.py", *options.split()).code == 0
    verify = asked()[1].verify_settings
    assert (verify.gpus, verify.timeout, verify.memory) == (("a100", "h100", "b200"), 5.0, 2**30)
    assert (verify.jobs, verify.train, verify.mode) == (2, True, "reduce-overhead")
    assert tlint("verify", "m.py", "--eval").code == 0
    assert asked()[1].verify_settings.train is False
    assert tlint("verify", "m.py", "--eval", "--train").code == 2
