"""Notebooks: what is read of them, where findings lie, and that writing changes nothing but the code of cells."""

from __future__ import annotations

import ast
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Result

from tlint.analyzer import notebook, source
from tlint.analyzer.model import Edit, Span

Project = Callable[..., Path]
Tlint = Callable[..., Result]

HELPER = "def scale(x):\n    print(x)\n    return x / x.max().item()"
STEP = "@torch.compile\ndef step(x):\n    return scale(x)\n"


def cell(code: str | list[str], kind: str = "code") -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": code}


def written(*cells: dict[str, Any], **changes: Any) -> str:
    """A notebook as Jupyter writes it."""
    metadata = {"kernelspec": {"language": "python", "name": "python3"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5} | changes
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


BREAKS = written(cell("# Title", "markdown"), cell("import torch"), cell("", "raw"), cell(HELPER), cell(STEP))


def test_findings_lie_in_cells(project: Project, tlint: Tlint) -> None:
    project({"nb.ipynb": BREAKS})
    result = tlint("--output-format", "json")
    assert result.code == 1
    first, second = result.report["findings"]
    assert [(f["code"], f["cell"], f["line"], f["column"], f["end_line"]) for f in (first, second)] == [
        ("TL111", 4, 2, 5, 2),
        ("TL101", 4, 3, 16, 3),
    ]
    assert second["paths"][0]["root"] == "nb:step"
    assert second["paths"][0]["via"] == [{"path": "nb.ipynb", "cell": 5, "line": 3, "column": 12, "function": "step"}]


def test_every_format_says_the_cell(project: Project, tlint: Tlint) -> None:
    project({"nb.ipynb": BREAKS})
    place = "nb.ipynb:cell 4:3:16: warning TL101[tensor-to-python]"
    assert place in tlint("--output-format", "concise").out
    github = tlint("--output-format", "github").out.splitlines()[1]
    assert github.startswith("::warning title=TL101 tensor-to-python,file=")
    assert "line=" not in github, "GitHub shows the lines of the JSON"
    assert f"::{place}" in github
    shown = tlint("nb.ipynb").out
    assert f"{place}: " in shown
    assert "3 |     return x / x.max().item()\n" in shown
    assert "(compiled at nb.ipynb:cell 5:1) → line 3" in shown
    assert tlint("roots").out == "nb.ipynb:cell 5:1:2: nb:step (explicit, `torch.compile`)\n"


def test_a_notebook_on_standard_input(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    project({"a.py": ""})
    for command, expected in (
        ("check", "3 |     return x / x.max().item()\n"),
        ("roots", "new.ipynb:cell 5:1:2: new:step"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BREAKS.encode())))
        assert expected in tlint(command, "-", "--stdin-filename", "new.ipynb").out


def test_a_notebook_calls_the_project_and_is_not_imported(project: Project, tlint: Tlint) -> None:
    caller = written(
        cell("import torch\nfrom lib import scale"), cell("fast = torch.compile(scale)\nfast(torch.ones(2))")
    )
    root = project({"tlint.toml": "", "lib.py": HELPER, "nb.ipynb": caller, "m.py": "import nb\n"})
    found = tlint("lib.py", "--output-format", "json").report["findings"]
    assert [(f["code"], f["path"], f["cell"], f["line"]) for f in found] == [
        ("TL111", "lib.py", None, 2),
        ("TL101", "lib.py", None, 3),
    ]
    (root / "lib.py").rename(root / "lib.ipynb")
    (root / "lib.ipynb").write_text(written(cell(HELPER)))
    assert tlint("--output-format", "json", "--select", "TL1").report["findings"] == []


# What is read ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line", "column", "says"),
    [
        ('{\n "cells": [}', 2, 12, "no notebook, which is JSON"),
        ("[]", 1, 1, "its parts are not those of nbformat 4"),
        ("{}", 1, 1, "its parts are not those of nbformat 4"),
        (written(nbformat=3), 1, 1, "a notebook of format 3"),
        (written({"cell_type": "code"}), 1, 1, "its parts are not those of nbformat 4"),
        (written(cell(["a", 1])), 1, 1, "its parts are not those of nbformat 4"),  # type: ignore[list-item]
        (written(cell(""), cell("x = '\0'")), 1, 1, "cell 2 holds characters that no text has"),
        (written(cell("x")).replace('"x"', '"\\ud800"'), 1, 1, "cell 1 holds characters that no text has"),
        ("[" * 100_000, 1, 1, "recursion"),
    ],
)
def test_what_is_no_notebook_says_where(
    project: Project, tlint: Tlint, content: str, line: int, column: int, says: str
) -> None:
    project({"nb.ipynb": content.encode()})
    [found] = tlint("--output-format", "json").report["findings"]
    assert (found["code"], found["cell"], found["line"], found["column"]) == ("TL902", None, line, column)
    assert says in found["message"]


def test_code_that_does_not_parse_is_found_in_its_cell(project: Project, tlint: Tlint) -> None:
    project({"nb.ipynb": written(cell("a = 1\n"), cell("\nif a:\npass"))})
    [found] = tlint("--output-format", "json").report["findings"]
    assert (found["code"], found["cell"], found["line"]) == ("TL902", 2, 3)
    assert found["message"].endswith("after 'if' statement on line 2")


@pytest.mark.parametrize(
    ("metadata", "read"),
    [
        ({}, True),
        ({"kernelspec": {"name": "python3"}}, True),
        ({"language_info": {"name": "python"}}, True),
        ({"kernelspec": {"language": "R"}, "language_info": {"name": "R"}}, False),
        ({"language_info": {"name": "julia"}}, False),
    ],
)
def test_only_python_is_read(metadata: dict[str, Any], read: bool) -> None:
    text, cells = notebook.read(written(cell("a = 1"), metadata=metadata))
    assert (text, len(cells)) == (("a = 1\n", 1) if read else ("\n", 0))


MAGICS = {
    "none": ("a = 1 % 2\nb = a", "a = 1 % 2\nb = a"),
    "a line magic": ("%matplotlib inline\na = 1", "get_ipython()\na = 1"),
    "in a block": ("if a:\n    !ls\n    b", "if a:\n    get_ipython()\n    b"),
    "continued": ("!pip install a \\\n   b \\\n   c\nd = 1", "get_ipython()\n\n\nd = 1"),
    "help": ("?a\na??\n%time?\na.b*?\nb", "get_ipython()\nget_ipython()\nget_ipython()\nget_ipython()\nb"),
    "assigned": ("a = !ls\nb, c = %who\nd", "a = get_ipython()\nb, c = get_ipython()\nd"),
    "timed": ("%time a = f(x)\n  %timeit -n 10 -q f(x)", "if 1: a = f(x)\n  if 1           : f(x)"),
    "timed, nothing": ("%time\na", "get_ipython()\na"),
    "automatic": ("pip install -q torch\npip = 1\npip.main\ncd ..", "get_ipython()\npip = 1\npip.main\nget_ipython()"),
    "a remainder": ("a = (b\n%c\n)", "a = (b\n%c\n)"),
    "a remainder after a backslash": ("a = b \\\n%c", "a = b \\\n%c"),
    "a string": ('a = """\n%ls\nwhat?\n"""', 'a = """\n%ls\nwhat?\n"""'),
    "a comment": ("# what?\na = 1  # why?", "# what?\na = 1  # why?"),
    "a cell of Python": ("\n%%time\n%%capture out\na = 1", "\nget_ipython()\nget_ipython()\na = 1"),
    "a cell of something else": ("%%bash\nls\nif", "\n\n"),
    "a cell magic too late": ("a\n%%bash", "a\nget_ipython()"),
}


@pytest.mark.parametrize(("code", "expected"), MAGICS.values(), ids=MAGICS)
def test_magics(code: str, expected: str) -> None:
    assert notebook.plain(code) == expected
    assert code.count("\n") == expected.count("\n")


@pytest.mark.parametrize("code", [code for code, expected in MAGICS.values() if code != expected and "%%" not in code])
def test_what_is_taken_for_a_magic_is_no_python(code: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(code)


def test_a_comment_at_the_end_of_a_cell_is_not_about_the_next(project: Project, tlint: Tlint) -> None:
    loud = "@torch.compile\ndef step(x):\n    return x.max().item()"
    ignore = "import torch\n# tlint: ignore[tensor-to-python]"
    project({"nb.ipynb": written(cell(ignore), cell(loud)), "two.ipynb": written(cell(ignore + "\n"), cell("a = 1"))})
    found = tlint("--output-format", "json").report["findings"]
    assert [(f["path"], f["code"], f["cell"], f["line"], f["state"]) for f in found] == [
        ("nb.ipynb", "TL901", 1, 2, "active"),
        ("nb.ipynb", "TL101", 2, 3, "active"),
        ("two.ipynb", "TL901", 1, 2, "active"),
    ]


def test_a_finding_keeps_its_id_when_cells_are_put_above(project: Project, tlint: Tlint) -> None:
    root = project({"nb.ipynb": BREAKS})
    assert tlint("baseline").code == 0
    cells = json.loads(BREAKS)["cells"]
    (root / "nb.ipynb").write_text(written(cells[1], cell("a = 1\nb = 2"), *cells[2:]))
    passed = tlint("--output-format", "json")
    assert (passed.code, passed.report["summary"]["baselined"]) == (0, 2)
    assert {line.partition(":")[0] for line in (root / ".tlint-baseline").read_text().splitlines()[1:]} == {"nb.ipynb"}


def test_a_notebook_is_not_verified(project: Project, tlint: Tlint) -> None:
    project({"nb.ipynb": BREAKS})
    for target in ("nb.ipynb", "nb.ipynb:step"):
        result = tlint("verify", target)
        assert (result.code, "a notebook is not verified" in result.err) == (2, True), result


def test_a_root_in_a_notebook_can_be_named(project: Project, tlint: Tlint) -> None:
    project({"nb.ipynb": written(cell(HELPER))})
    result = tlint("--root", "nb.ipynb:scale", "--output-format", "json", "--select", "TL101")
    assert [f["cell"] for f in result.report["findings"]] == [1]
    assert "no such file" in tlint("--root", "x.ipynb:scale").err


# Writing --------------------------------------------------------------------------------------------------------------

STYLES = {
    "Jupyter": BREAKS,
    "lines": written(
        cell("import torch"), cell(HELPER.splitlines(keepends=True)), cell(STEP.splitlines(keepends=True))
    ),
    "one line": json.dumps(json.loads(BREAKS)),
    "no space": json.dumps(json.loads(BREAKS), separators=(",", ":")),
    "tabs and CRLF": json.dumps(json.loads(BREAKS), indent="\t").replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + BREAKS,
    "escapes": json.dumps(json.loads(BREAKS.replace("# Title", "# Títle 東京")), indent=2),
    "no escapes": BREAKS.replace("# Title", "# Títle 東京"),
    "odd keys": '{"metadata": {"source": ["x"]}, "nbformat_minor": 5, "x": 1e5, ' + BREAKS.strip().removeprefix("{"),
    "newlines of Windows in cells": BREAKS.replace("\\n", "\\r\\n"),
}


@pytest.mark.parametrize("before", STYLES.values(), ids=STYLES)
def test_only_the_comments_are_new(project: Project, tlint: Tlint, before: str) -> None:
    root = project({"nb.ipynb": before.encode()})
    assert tlint("--add-ignores", "--reason", "once").code == 0
    after = (root / "nb.ipynb").read_bytes().decode()
    comments = ("  # tlint: ignore[logging-call] once", "  # tlint: ignore[tensor-to-python] once")
    assert [after.count(comment) for comment in comments] == [1, 1]
    assert after.replace(comments[0], "").replace(comments[1], "") == before
    assert tlint().code == 0


@pytest.mark.parametrize(("style", "expected"), [("no escapes", "Grüße"), ("escapes", "Gr\\u00fc\\u00dfe")])
def test_characters_are_written_as_in_the_rest_of_the_file(
    project: Project, tlint: Tlint, style: str, expected: str
) -> None:
    root = project({"nb.ipynb": STYLES[style].encode()})
    tlint("--add-ignores", "--reason", "Grüße")
    assert (root / "nb.ipynb").read_text().count(expected) == 2


def test_lines_are_listed_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "nb.ipynb"
    file.write_text('{"nbformat": 4, "cells": [{"cell_type": "code", "source": [ "a\\u0020= 1\\n" , "b = 2" ]}]}')
    source.edit(file, [Edit("", Span(2, 5, 2, 6), "(\n3)")])
    assert file.read_text().endswith('"source": [ "a\\u0020= 1\\n" , "b = (\\n" , "3)" ]}]}')
    file.write_text('{"nbformat": 4, "cells": [{"cell_type": "code", "source": ["a"]}]}')
    source.edit(file, [Edit("", Span(1, 1, 1, 2), "b\nc\n")])
    assert file.read_text().endswith('"source": ["b\\n", "c\\n"]}]}')
