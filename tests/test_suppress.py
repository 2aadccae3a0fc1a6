"""Suppression comments: what they cover, and what is said of those that cover nothing."""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from reports import finding

from tlint.analyzer import suppress
from tlint.analyzer.config import Settings
from tlint.analyzer.model import Finding, Severity, Span

RULES = {
    "TL101": "TL101",
    "tensor-to-python": "TL101",
    "item-call": "TL101",  # a former name
    "TL111": "TL111",
    "logging-call": "TL111",
    "TL199": "TL199",
    "TL901": "TL901",
    "unused-suppression": "TL901",
    "TL905": "TL905",
}
ROOT = Path("/project")


def apply(
    text: str,
    *,
    path: str = "m.py",
    enabled: Callable[[str], bool] = lambda code: True,
    ignores: Mapping[str, tuple[str, ...]] | None = None,
    cwd: Path = ROOT,
) -> list[Finding]:
    """The findings of a file in which TL101 finds each `.item()` and TL111 each `print`, from the expression on."""
    found = [
        finding(path=path, code=code, name=name, span=Span(number, match.start() + 1, number, match.end() + 1))
        for number, line in enumerate(text.split("\n"), 1)
        for code, name, pattern in (("TL101", "tensor-to-python", r"\w+\.item\(\)"), ("TL111", "logging-call", "print"))
        for match in re.finditer(pattern, line)
    ]
    settings = Settings(per_file_ignores=ignores or {})
    return list(suppress.apply(found, {path: text}, RULES, enabled, settings, root=ROOT, cwd=cwd))


def silenced(findings: list[Finding]) -> set[tuple[int, str]]:
    return {(f.span.line, f.code) for f in findings if f.state == "suppressed"}


def complaints(findings: list[Finding]) -> list[tuple[str, int, int, int]]:
    return [(f.code, f.span.line, f.span.column, f.span.end_column) for f in findings if f.code in ("TL901", "TL905")]


COVERED = {
    "the same line": "a = x.item()  # tlint: ignore[TL101]",
    "by name": "a = x.item()  # tlint: ignore[tensor-to-python]",
    "by former name": "a = x.item()  # tlint: ignore[item-call]",
    "among others": "a = x.item(), print()  # tlint: ignore[TL111, TL101]",
    "every rule": "a = x.item()  # tlint: ignore",
    "after another comment": "a = x.item()  # type: ignore # tlint: ignore[TL101]",
    "before another comment": "a = x.item()  # tlint: ignore[TL101] # noqa",
    "no space": "a = x.item()  #tlint:ignore [TL101]",
    "the line above": """
        # tlint: ignore[TL101]
        a = x.item()""",
    "a block of comments above": """
        # tlint: ignore[TL101]
        # It is read once.
        a = x.item()""",
    "above, within a block": """
        if a:
            # tlint: ignore[TL101]
            a = x.item()""",
    "above a dedent": """
        if a:
            pass
        # tlint: ignore[TL101]
        a = x.item()""",
    "the last line of a statement": """
        a = f(
            x.item(),
            b,
        )  # tlint: ignore[TL101]""",
    "the first line of a statement": """
        a = f(  # tlint: ignore[TL101]
            b,

            x.item(),
        )""",
    "alone inside a statement": """
        a = f(
            b,
            # tlint: ignore[TL101]
            c,
            x.item(),
        )""",
    "above a statement of many lines": """
        # tlint: ignore[TL101]
        a = f(
            b,
            x.item(),
        )""",
    "a backslash": """
        a = b + \\
            x.item() + \\
            c  # tlint: ignore[TL101]""",
    "a string of many lines": '''
        a = x.item(), """
        # no comment
        """  # tlint: ignore[TL101]''',
    "a compound header": """
        while (  # tlint: ignore[TL101]
            x.item()
        ):
            pass""",
    "elif": """
        if a:
            pass
        elif x.item():  # tlint: ignore[TL101]
            pass""",
    "a decorator, from the def": """
        @f(x.item())

        @g
        def h(a):  # tlint: ignore[TL101]
            pass""",
    "a default, from the decorator": """
        @g  # tlint: ignore[TL101]
        def h(
            a=x.item(),
        ):
            pass""",
    "above the decorators": """
        # tlint: ignore[TL101]
        @g
        # And so on.
        def h(a=x.item()):
            pass""",
    "the whole file": """
        a = x.item()
        # tlint: file-ignore[TL101] these run once""",
    "the whole file, every rule": """
        # tlint: file-ignore
        a = x.item()""",
    "before what does not tokenize": """
        a = x.item()  # tlint: ignore[TL101]
        b = (""",
    "in what does not tokenize": """
        b = (
        x.item()  # tlint: ignore[TL101]""",
    "after a form feed": "\f\na = x.item()  # tlint: ignore[TL101]",
}


@pytest.mark.parametrize("text", COVERED.values(), ids=COVERED)
def test_covers(text: str) -> None:
    findings = apply(textwrap.dedent(text))
    assert {code for _, code in silenced(findings)} >= {"TL101"}
    assert not [f for f in findings if f.state == "active"]


LEFT = {
    "another statement": """
        # tlint: ignore[TL101]
        a = 1
        b = x.item()""",
    "a blank line between": """
        # tlint: ignore[TL101]

        b = x.item()""",
    "the body of a header": """
        if a:  # tlint: ignore[TL101]
            b = x.item()""",
    "the body of a decorated function": """
        # tlint: ignore[TL101]
        @g
        def h():
            b = x.item()""",
    "the statement after a decorated function": """
        @g
        def h():
            return
        # tlint: ignore[TL101]
        a = 1
        b = x.item()""",
    "a matrix product is no decorator": """
        a = b \\
            @ c
        b = x.item()
        d = 1  # tlint: ignore[TL101]""",
    "the line above, behind code": """
        a = 1  # tlint: ignore[TL101]
        b = x.item()""",
    "another rule": "a = x.item()  # tlint: ignore[TL111]",
    "a prefix": "a = x.item()  # tlint: ignore[TL1]",
    "a string": "a = x.item(), '# tlint: ignore[TL101]'",
    "a docstring": '''
        """
        # tlint: ignore[TL101]
        """
        a = x.item()''',
    "noqa": "a = x.item()  # noqa: TL101",
    "not closed": "a = x.item()  # tlint: ignore[TL101",
    "no rule": "a = x.item()  # tlint: ignore[]",
    "misspelt": "a = x.item()  # tlint: ignroe[TL101]",
    "after what does not tokenize": """
        b = )
           c
         d
        a = x.item()  # tlint: ignore[TL111]""",
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_does_not_cover(text: str) -> None:
    findings = apply(textwrap.dedent(text))
    assert [f.state for f in findings if f.code == "TL101"] == ["active"]


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ("# tlint: ignore[TL101] read once (#12), see #7", "read once (#12), see #7"),
        ("# tlint: ignore[TL101]: read once", "read once"),
        ("# tlint: ignore[TL101] read once # noqa: E501", "read once"),
        ("# tlint: ignore read once", "read once"),
        ("# tlint: ignore[TL101]", None),
    ],
)
def test_reason(comment: str, reason: str | None) -> None:
    (found,) = apply(f"a = x.item()  {comment}")
    assert (found.state, found.reason) == ("suppressed", reason)


def test_the_nearest_reason_counts() -> None:
    (found,) = apply("# tlint: file-ignore[TL101] far\na = x.item()  # tlint: ignore[TL101] near")
    assert found.reason == "near"


def test_unused() -> None:
    findings = apply("a = 1  # tlint: ignore[TL101, logging-call]\n# tlint: file-ignore[TL111]\n# tlint: ignore\n")
    assert complaints(findings) == [
        ("TL901", 1, 24, 29),
        ("TL901", 1, 31, 43),
        ("TL901", 2, 22, 27),
        ("TL901", 3, 1, 16),
    ]
    assert {f.severity for f in findings} == {Severity.warning}
    assert [f.message for f in findings[:3]] == [
        "`TL101` finds nothing to ignore here",
        "`logging-call` finds nothing to ignore here",
        "`TL111` finds nothing to ignore in this file",
    ]


def test_partly_unused() -> None:
    findings = apply("a = x.item()  # tlint: ignore[TL101, TL111]")
    assert complaints(findings) == [("TL901", 1, 38, 43)]


def test_a_column_counts_code_points() -> None:
    assert complaints(apply("a = '東京'  # tlint: ignore[TL101]")) == [("TL901", 1, 27, 32)]


@pytest.mark.parametrize("off", ["TL101", "TL901"])
def test_unused_is_not_said_of_what_did_not_run(off: str) -> None:
    assert not apply("a = 1  # tlint: ignore[TL101]", enabled=lambda code: code != off)


def test_every_rule_is_not_called_unused_unless_every_rule_ran() -> None:
    text = "a = 1  # tlint: ignore"
    assert complaints(apply(text)) == [("TL901", 1, 8, 23)]
    assert not apply(text, enabled=lambda code: code != "TL199")


def test_a_complaint_can_be_ignored() -> None:
    assert silenced(apply("a = 1  # tlint: ignore[TL101, TL901]")) == {(1, "TL901")}
    assert silenced(apply("a = 1  # tlint: ignore[TL101]", ignores={"m.py": ("TL9",)})) == {(1, "TL901")}


@pytest.mark.parametrize(
    ("comment", "start", "end", "message"),
    [
        ("ignore[tensor-to-pyton]", 24, 39, "no rule is called `tensor-to-pyton`; did you mean `tensor-to-python`?"),
        ("ignore[tl101]", 24, 29, "no rule is called `tl101`; did you mean `TL101`?"),
        ("ignore[whatever]", 24, 32, "no rule is called `whatever`"),
        ("ignroe[TL101]", 8, 30, "tlint knows no comment `ignroe`: it is `ignore` or `file-ignore`"),
        ("ignore-file", 8, 28, "tlint knows no comment `ignore-file`: it is `ignore` or `file-ignore`"),
        ("ignore[TL101", 8, 29, "`ignore[` is not closed: it ignores nothing"),
        ("ignore[]", 8, 25, "`ignore[]` names no rule: it ignores nothing"),
    ],
)
def test_unknown(comment: str, start: int, end: int, message: str) -> None:
    (found,) = apply(f"a = 1  # tlint: {comment}")
    assert complaints([found]) == [("TL905", 1, start, end)]
    assert (found.message, found.severity) == (message, Severity.warning)


def test_unknown_is_not_said_where_the_rule_is_off() -> None:
    assert not apply("a = 1  # tlint: ignore[whatever]", enabled=lambda code: code != "TL905")


def test_ids_survive_moved_lines_and_differ() -> None:
    before = apply("a = 1  # tlint: ignore[TL101]\nb = 1  # tlint: ignore[TL101]")
    after = apply("\n\na = 1  # tlint: ignore[TL101]\nb = 1  # tlint: ignore[TL101]")
    assert [f.id for f in before] == [f.id for f in after]
    assert len({f.id for f in before}) == 2


@pytest.mark.parametrize(
    ("pattern", "selectors", "covered"),
    [
        ("tests/**", ("TL101",), True),
        ("*.py", ("tensor-to-python",), True),
        ("tests/", ("TL1",), True),
        ("/test_m.py", ("TL101",), False),
        ("src/**", ("TL101",), False),
        ("tests/**", ("TL111", "TL2"), False),
    ],
)
def test_per_file_ignores(pattern: str, selectors: tuple[str, ...], covered: bool) -> None:
    for path, cwd in (
        ("tests/test_m.py", ROOT),
        ("test_m.py", ROOT / "tests"),
        ("/project/tests/test_m.py", Path("/")),
    ):
        (found,) = apply("a = x.item()", path=path, ignores={pattern: selectors}, cwd=cwd)
        expected = ("suppressed", f"per-file-ignores: {pattern}") if covered else ("active", None)
        assert (found.state, found.reason) == expected


def test_what_is_not_active_stays_as_it_is_and_uses_the_comment() -> None:
    known = finding(path="m.py", span=Span(1, 5, 1, 13), state="baselined")
    text = {"m.py": "a = x.item()  # tlint: ignore[TL101]"}
    assert suppress.apply([known], text, RULES, lambda code: True, Settings(), root=ROOT, cwd=ROOT) == (known,)


def test_random_text_never_fails() -> None:
    """Whatever the text, no finding is lost. (`source.read` lets no NUL pass: on those CPython's tokenizer fails.)"""
    pieces = ["# tlint: ignore[TL101]", "# tlint: file-ignore", "x.item()", "print", "@g", "def f():", "if a:", "f'{"]
    pieces += [*"\n\n\n\t\f\r  '()[]{}:;$é", '"""', "\\\n", "0x", "    "]
    for seed in range(300):
        chosen = random.Random(seed)
        text = "".join(chosen.choice(pieces) for _ in range(chosen.randrange(40)))
        codes = [f.code for f in apply(text)]
        assert codes.count("TL101") == len(re.findall(r"\w+\.item\(\)", text))
        assert codes.count("TL111") == text.count("print")
