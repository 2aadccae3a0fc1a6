"""`tlint check --add-ignores`: where comments go, and that nothing else in a file changes."""

from __future__ import annotations

import ast
import random
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Result
from reports import finding

from tlint.analyzer import ignores, source, suppress
from tlint.analyzer.config import Settings
from tlint.analyzer.model import Finding, Span

Project = Callable[..., Path]
Tlint = Callable[..., Result]

ROOT = Path("/project")
RULES = {
    "TL101": "TL101",
    "tensor-to-python": "TL101",
    "logging-call": "TL111",
    "unused-suppression": "TL901",
    "unknown-suppression": "TL905",
}


def found(text: str) -> list[Finding]:
    """TL101 at each `.item()`, TL111 at each `print`, and what is wrong with the comments; silenced ones too."""
    findings = [
        finding(path="m.py", code=code, name=name, span=Span(number, match.start() + 1, number, match.end() + 1))
        for number, line in enumerate(text.split("\n"), 1)
        for code, name, pattern in (("TL101", "tensor-to-python", r"\w+\.item\(\)"), ("TL111", "logging-call", "print"))
        for match in re.finditer(pattern, line)
    ]
    return list(suppress.apply(findings, {"m.py": text}, RULES, lambda code: True, Settings(), root=ROOT, cwd=ROOT))


def active(text: str) -> list[Finding]:
    return [f for f in found(text) if f.state == "active"]


def silenced(text: str, reason: str = "") -> str:
    return source.edited(text, ignores.comments("m.py", text, active(text), reason))


CASES = {
    "a statement": ("a = x.item()", "a = x.item()  # tlint: ignore[tensor-to-python]"),
    "white space at its end": ("a = x.item() \t\n", "a = x.item()  # tlint: ignore[tensor-to-python] \t\n"),
    "two rules": ("print(x.item())", "print(x.item())  # tlint: ignore[logging-call, tensor-to-python]"),
    "one rule twice": ("a = x.item(); b = y.item()", "a = x.item(); b = y.item()  # tlint: ignore[tensor-to-python]"),
    "a comment": ("a = x.item()  # type: ignore", "a = x.item()  # type: ignore  # tlint: ignore[tensor-to-python]"),
    "an ignore": (
        "print(x.item())  # tlint: ignore[TL101] once",
        "print(x.item())  # tlint: ignore[TL101, logging-call] once",
    ),
    "an ignore above": (
        "# tlint: ignore[TL101] once\nprint(x.item())",
        "# tlint: ignore[TL101, logging-call] once\nprint(x.item())",
    ),
    "an untidy ignore": (
        "print(x.item())  #tlint:ignore [ TL101 , ]",
        "print(x.item())  #tlint:ignore [ TL101, logging-call , ]",
    ),
    "an ignore that is not closed": (
        "a = x.item()  # tlint: ignore[TL101",
        "a = x.item()  # tlint: ignore[TL101  # tlint: ignore[tensor-to-python, unknown-suppression]",
    ),
    "an ignore of nothing": (
        "a = 1  # tlint: ignore[TL101]",
        "a = 1  # tlint: ignore[TL101, unused-suppression]",
    ),
    "an ignore of every rule and nothing": (
        "a = 1  # tlint: ignore",
        "a = 1  # tlint: ignore  # tlint: ignore[unused-suppression]",
    ),
    "an ignore alone": (
        "# tlint: file-ignore[TL101]\n\na = 1",
        "# tlint: file-ignore[TL101]  # tlint: ignore[unused-suppression]\n\na = 1",
    ),
    "the line of the finding": (
        "a = f(\n    b,\n    x.item(),\n    c,\n)",
        "a = f(\n    b,\n    x.item(),  # tlint: ignore[tensor-to-python]\n    c,\n)",
    ),
    "two lines of a statement": (
        "a = f(\n    print,\n    x.item(),\n)",
        "a = f(\n    print,  # tlint: ignore[logging-call, tensor-to-python]\n    x.item(),\n)",
    ),
    "a backslash": (
        "a = x.item() + \\\n    b + \\\n    c\nd = 1",
        "a = x.item() + \\\n    b + \\\n    c  # tlint: ignore[tensor-to-python]\nd = 1",
    ),
    "a string of many lines": (
        'a = x.item(), """\n  # no comment\n""", (\n  b)',
        'a = x.item(), """\n  # no comment\n""", (  # tlint: ignore[tensor-to-python]\n  b)',
    ),
    "an f-string of many lines": (
        'a = f"""\n{x.item()}\n{\ny}\n"""\n',
        'a = f"""\n{x.item()}\n{\ny}\n"""  # tlint: ignore[tensor-to-python]\n',
    ),
    "a compound header": (
        "while (\n    x.item()\n):\n    pass",
        "while (\n    x.item()  # tlint: ignore[tensor-to-python]\n):\n    pass",
    ),
    "elif": (
        "if a:\n\tpass\nelif x.item():\n\tpass",
        "if a:\n\tpass\nelif x.item():  # tlint: ignore[tensor-to-python]\n\tpass",
    ),
    "a body on the line of its header": ("if a: x.item()", "if a: x.item()  # tlint: ignore[tensor-to-python]"),
    "a decorator": (
        "@f(x.item())\n\n@g\ndef h(a):\n    print",
        "@f(x.item())  # tlint: ignore[tensor-to-python]\n\n@g\ndef h(a):\n    print  # tlint: ignore[logging-call]",
    ),
    "a line with nothing but a comment": (
        "a = f(b + \\\n    x.item() + \\\n    c\n    # why\n)",
        "a = f(b + \\\n    x.item() + \\\n    c  # tlint: ignore[tensor-to-python]\n    # why\n)",
    ),
    "after a form feed": ("\f\na = x.item()\f\n", "\f\na = x.item()  # tlint: ignore[tensor-to-python]\f\n"),
    "wide characters": ("a = '東京', x.item()", "a = '東京', x.item()  # tlint: ignore[tensor-to-python]"),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_where_a_comment_goes(before: str, after: str) -> None:
    assert silenced(before) == after
    assert not active(after)


def test_the_reason() -> None:
    assert silenced("a = x.item()", "the last step") == "a = x.item()  # tlint: ignore[tensor-to-python] the last step"


PIECES = ["x.item()", "f(\n", ")", "(", ", ", "\n", "\n\n", " # why", "  # tlint: ignore[TL101] once", "\\\n", "a = "]
PIECES += [
    '"""\n"""',
    "print",
    "if a:\n    ",
    "else:\n\t",
    "@g\n",
    "def h(b):\n  ",
    "; ",
    "# tlint: file-ignore\n",
    "é",
    "[\n",
]


def test_whatever_the_program_nothing_is_left_and_nothing_else_changes() -> None:
    tried = 0
    for seed in range(20_000):
        chosen = random.Random(seed)
        before = "".join(chosen.choice(PIECES) for _ in range(chosen.randrange(1, 14)))
        try:
            tree = ast.dump(ast.parse(before))
        except SyntaxError:
            continue
        if active(before):
            tried += 1
            after = silenced(before)
            assert ast.dump(ast.parse(after)) == tree, before
            assert not active(after), before
            assert silenced(after) == after
    assert tried > 300


# Files ----------------------------------------------------------------------------------------------------------------

BREAKS = """\
import torch


@torch.compile
def step(x: torch.Tensor) -> float:
    print("a step")
    return x.sum(
        ).item()
"""
IGNORED = BREAKS.replace('a step")', 'a step")  # tlint: ignore[logging-call]').replace(
    "sum(", "sum(  # tlint: ignore[tensor-to-python]"
)


def test_a_second_run_finds_nothing(project: Project, tlint: Tlint) -> None:
    root = project({"m.py": BREAKS})
    result = tlint("--add-ignores", "--output-format", "json")
    assert (result.code, result.report["summary"]["suppressed"]) == (0, 2)
    assert result.err == "tlint: 2 findings are ignored from now on, by comments\n"
    assert (root / "m.py").read_text() == IGNORED
    again = tlint("--output-format", "json").report
    assert [(f["code"], f["state"]) for f in again["findings"]] == [("TL111", "suppressed"), ("TL101", "suppressed")]
    assert "0 findings are ignored" in tlint("--add-ignores").err
    assert (root / "m.py").read_text() == IGNORED


@pytest.mark.parametrize(
    ("before", "encoding"),
    [
        (BREAKS.replace("\n", "\r\n"), "utf-8"),
        (BREAKS.replace("\n", "\r"), "utf-8"),
        (BREAKS.replace("\n\n\n", "\r\n\n\r"), "utf-8"),
        (BREAKS, "utf-8-sig"),
        ("# -*- coding: latin-1 -*-\n# \xe9\n" + BREAKS, "latin-1"),
        (BREAKS.replace("    ", "\t").rstrip("\n"), "utf-8"),
        ("# \u2028 \x0c \x85\n" + BREAKS, "utf-8"),
    ],
    ids=["CRLF", "CR", "mixed newlines", "BOM", "latin-1", "tabs and no last newline", "what is no newline"],
)
def test_bytes_that_are_not_the_comments_stay(project: Project, tlint: Tlint, before: str, encoding: str) -> None:
    root = project({"m.py": before.encode(encoding)})
    assert tlint("--add-ignores", "--reason", "first  week\n").code == 0
    after = (root / "m.py").read_bytes().decode(encoding)
    assert after.count("  # tlint: ignore[") == 2
    assert re.sub(r"  # tlint: ignore\[[\w-]+\] first week", "", after) == before
    assert tlint().code == 0


def test_a_reason_that_the_encoding_lacks(project: Project, tlint: Tlint) -> None:
    text = b"# coding: latin-1\n" + BREAKS.encode()
    root = project({"m.py": text, "n.py": BREAKS})
    result = tlint("--add-ignores", "--reason", "東京")
    assert result.code == 2
    assert "m.py: '東京' cannot be written in iso-8859-1" in result.err
    assert (root / "m.py").read_bytes() == text
    assert "# tlint: ignore[logging-call] 東京" in (root / "n.py").read_text(), "the others are written"
    assert "m.py:7" in result.out
    assert "n.py" not in result.out


def test_permissions_and_links_stay(project: Project, tlint: Tlint) -> None:
    root = project({"a/m.py": BREAKS})
    (root / "a/m.py").chmod(0o755)
    (root / "link.py").symlink_to("a/m.py")
    assert tlint("link.py", "--add-ignores").code == 0
    assert (root / "link.py").is_symlink()
    assert (root / "a/m.py").stat().st_mode & 0o777 == 0o755
    assert (root / "a/m.py").read_text() == IGNORED


def test_only_what_is_shown_in_the_files_asked_about(project: Project, tlint: Tlint) -> None:
    helpers = "def log(x):\n    print(x)\n    return x.sum().item()\n"
    advice = "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x.sum().item()\n"
    files = {
        "m.py": BREAKS.replace("return", "log(x)\n    return") + "from helpers import log\n",
        "helpers.py": helpers,
    }
    root = project({"tlint.toml": "", **files, "net.py": advice})
    assert tlint("m.py", "net.py", "--select", "TL101", "--add-ignores").code == 0
    assert "ignore[tensor-to-python]" in (root / "m.py").read_text()
    assert "ignore[logging-call]" not in (root / "m.py").read_text()
    assert (root / "helpers.py").read_text() == helpers
    assert (root / "net.py").read_text() == advice, "what only an assumed root reaches is told in a line"


def test_what_no_comment_can_silence_is_still_reported(project: Project, tlint: Tlint) -> None:
    root = project({"m.py": BREAKS, "bad.py": "x = (  # tlint: ignroe\n"})
    result = tlint("--add-ignores")
    assert result.code == 2
    assert "bad.py: nothing is written: it does not parse" in result.err
    assert "TL902" in result.out
    assert (root / "bad.py").read_text() == "x = (  # tlint: ignroe\n"
    assert (root / "m.py").read_text() == IGNORED


def test_a_comment_that_would_change_the_program_is_not_written(
    project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project({"m.py": BREAKS})
    monkeypatch.setattr(ignores, "added", lambda path, *_: source.Edit(path, Span(6, 5, 6, 5), "#"))
    result = tlint("--add-ignores")
    assert result.code == 2
    assert "m.py: nothing is written: a comment would change the program" in result.err
    assert (root / "m.py").read_text() == BREAKS


@pytest.mark.parametrize("words", [["-", "--add-ignores"], ["m.py", "--reason", "x"]])
def test_what_makes_no_sense(project: Project, tlint: Tlint, words: list[str]) -> None:
    project({"m.py": textwrap.dedent(BREAKS)})
    assert tlint(*words).code == 2
