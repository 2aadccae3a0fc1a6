"""The cache: what comes out of it is what a run without it gives, whatever was changed in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Result

from tlint.analyzer import cache, engine, source

Project = Callable[..., Path]
Tlint = Callable[..., Result]

FILES = {
    "tlint.toml": 'target-torch = ["2.13"]\n',
    "train.py": "import torch\nfrom lib import scale\n\n\n@torch.compile\ndef step(x):\n    return scale(x)\n",
    "lib.py": "def scale(x):\n    return x / x.max().item()\n",
    "net.py": "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return print(x)\n",
    "bad.py": "import torch\nx = (\n",
    "tests/other.py": "y = (\n",
}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One item for each time that a project was really analysed."""
    counted: list[int] = []
    analyze = engine.analyze

    def counting(*arguments: Any) -> Any:
        counted.append(1)
        return analyze(*arguments)

    monkeypatch.setattr(engine, "analyze", counting)
    return counted


def same(tlint: Tlint, *words: str) -> dict[str, Any]:
    """The report with the cache, which is that without it."""
    cached = tlint(*words, "--output-format", "json")
    fresh = tlint(*words, "--output-format", "json", "--no-cache")
    assert cached == fresh
    return fresh.report


def test_a_second_run_is_not_a_second_analysis(project: Project, tlint: Tlint, runs: list[int]) -> None:
    root = project(FILES)
    first = tlint("--output-format", "json")
    assert tlint("--output-format", "json") == first
    assert len(runs) == 1
    assert len(first.report["findings"]) == 4
    for words in (
        ["--select", "TL111"],
        ["--fail-on", "error"],
        ["--min-confidence", "certain"],
        ["lib.py"],
        ["net.py"],
    ):
        tlint(*words)
    assert tlint("baseline").out == ".tlint-baseline: 4 findings (4 new, 0 dropped)\n"
    assert tlint().code == 0
    assert len(runs) == 1, "what is shown of it does not matter"
    [record] = (root / ".tlint_cache").glob("*.json")
    assert (root / ".tlint_cache/.gitignore").read_text() == "*\n"
    assert (root / ".tlint_cache/CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert set(os.listdir(root / ".tlint_cache")) == {".gitignore", "CACHEDIR.TAG", record.name}


def test_every_change_counts(project: Project, tlint: Tlint) -> None:
    root = project(FILES)
    before = same(tlint)
    changes: dict[str, Callable[[], object]] = {
        "a callee in another file": lambda: (root / "lib.py").write_text("def scale(x):\n    return x\n"),
        "only lines moved": lambda: (root / "lib.py").write_text("\n\ndef scale(x):\n    print(x)\n    return x\n"),
        "the same size and time": lambda: replaced(root / "lib.py", "print(x)", "log()  #"),
        "a new file": lambda: (root / "new.py").write_text(FILES["train.py"].replace("step", "other")),
        "a file that takes another's name": lambda: (
            (root / "src").mkdir() or (root / "src/lib.py").write_text("def scale(x):\n    return float(x.sum())\n")
        ),
        "a deleted file": lambda: (root / "train.py").unlink(),
        "the configuration": lambda: (root / "tlint.toml").write_text('target-torch = ["2.13"]\nroots = "modules"\n'),
        "the torch": lambda: (root / "tlint.toml").write_text('target-torch = ["2.14"]\nroots = "modules"\n'),
        "what is excluded": lambda: (root / ".gitignore").write_text("net.py\n"),
        "a notebook": lambda: (root / "nb.ipynb").write_text('{"cells": [}'),
    }
    for name, change in changes.items():
        change()
        after = same(tlint)
        assert after != before, name
        before = after


def replaced(file: Path, old: str, new: str) -> None:
    state = file.stat()
    assert len(old) == len(new)
    file.write_text(file.read_text().replace(old, new))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.parametrize(
    "words",
    [
        ["lib.py"],
        ["bad.py"],
        ["tests"],
        ["train.py", "net.py"],
        ["--roots", "modules"],
        ["--roots", "explicit"],
        ["--root", "lib.py:scale"],
        ["--root", "lib.py:missing"],
        ["--target-torch", "2.13,2.14"],
    ],
    ids=" ".join,
)
def test_what_is_asked_counts(project: Project, tlint: Tlint, words: list[str]) -> None:
    project(FILES)
    whole = same(tlint)
    same(tlint, *words)
    assert same(tlint) == whole


def test_fewer_files_do_not_speak_for_more(project: Project, tlint: Tlint, runs: list[int]) -> None:
    project(FILES)
    same(tlint, "lib.py")
    assert [f["path"] for f in same(tlint)["findings"] if f["code"] == "TL902"] == ["bad.py", "tests/other.py"]
    assert len(runs) == 4


def test_another_working_directory(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(FILES)
    same(tlint)
    monkeypatch.chdir(root / "tests")
    assert {f["path"] for f in same(tlint, "..")["findings"]} > {str(root / "lib.py")}


def test_tlint_itself_counts(project: Project, tlint: Tlint, runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    project(FILES)
    tlint()
    monkeypatch.setattr(cache, "ourselves", lambda: "another version")
    tlint()
    assert len(runs) == 2


def test_what_an_environment_holds_counts(project: Project, tlint: Tlint, runs: list[int]) -> None:
    packages = "venv/lib/python3.11/site-packages"
    metadata = "Metadata-Version: 2.1\nName: fast\nVersion: 1\nRequires-Dist: torch\n"
    root = project(
        {
            **FILES,
            "train.py": FILES["train.py"].replace("from lib", "from fast"),
            "venv/pyvenv.cfg": "",
            "venv/bin/python": "",
            f"{packages}/fast/__init__.py": "from fast.ops import scale\n",
            f"{packages}/fast/ops.py": FILES["lib.py"],
            f"{packages}/fast-1.dist-info/METADATA": metadata,
            f"{packages}/fast-1.dist-info/RECORD": "fast/__init__.py,,\nfast/ops.py,,\n",
        }
    )
    (root / "venv/bin/python").chmod(0o755)
    assert "TL191" in [f["code"] for f in same(tlint)["findings"]]
    assert len(runs) == 2
    tlint()
    assert len(runs) == 2
    (root / packages / "fast/ops.py").write_text("def scale(x):\n    return x\n")
    assert "TL191" not in [f["code"] for f in same(tlint)["findings"]]
    (root / packages / "fast-1.dist-info").rename(root / packages / "fast-2.dist-info")
    runs.clear()
    tlint()
    assert len(runs) == 1


# Where it is ----------------------------------------------------------------------------------------------------------


def test_where_there_is_none(project: Project, tlint: Tlint, runs: list[int]) -> None:
    root = project({name: text for name, text in FILES.items() if name != "tlint.toml"})
    tlint()
    tlint()
    assert len(runs) == 2, "a folder that is no project is left alone"
    (root / "tlint.toml").write_text("")
    tlint("--no-cache")
    assert not (root / ".tlint_cache").exists()
    (root / "tlint.toml").write_text('cache-dir = ""')
    tlint()
    assert not (root / ".tlint_cache").exists()
    tlint("--cache-dir", "kept/here")
    tlint("--cache-dir", "kept/here")
    assert len(list((root / "kept/here").glob("*.json"))) == 1
    assert len(runs) == 5


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"reported": [], "outside": {}, "analysis": 1}', "\ufffd" * 9])
def test_a_record_that_is_not_whole(project: Project, tlint: Tlint, runs: list[int], content: str) -> None:
    root = project(FILES)
    first = tlint()
    [record] = (root / ".tlint_cache").glob("*.json")
    record.write_text(content)
    assert tlint() == first
    assert json.loads(record.read_text())["analysis"]
    assert len(runs) == 2


def test_a_folder_that_cannot_be_written(project: Project, tlint: Tlint) -> None:
    root = project({**FILES, ".tlint_cache": "a file"})
    result = tlint("lib.py", "-v")
    assert "tensor-to-python" in result.out
    assert "not kept in the cache: " in result.err
    assert tlint("lib.py").err == ""
    assert (root / ".tlint_cache").read_text() == "a file"


def test_a_file_that_is_written_during_a_run(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(FILES)
    analyze = engine.analyze

    def interrupted(*arguments: Any) -> Any:
        found = analyze(*arguments)
        (root / "lib.py").write_text("def scale(x):\n    return x\n")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(engine, "analyze", interrupted)
        tlint()
    assert not list((root / ".tlint_cache").glob("*.json"))
    same(tlint)


def test_a_bug_of_ours_is_not_kept(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(FILES)
    with monkeypatch.context() as patch:
        patch.setattr(engine, "walk", lambda *_: 1 / 0)
        assert "TL903" in tlint().out
    assert not list((root / ".tlint_cache").glob("*.json"))
    same(tlint)


def test_only_some_records_are_kept(project: Project, tlint: Tlint) -> None:
    root = project(FILES)
    for n in range(cache.KEPT + 3):
        (root / "lib.py").write_text(f"x = {n}\n")
        tlint("lib.py")
    assert len(list((root / ".tlint_cache").glob("*.json"))) == cache.KEPT
    same(tlint)


def test_runs_at_the_same_time(project: Project, tlint: Tlint) -> None:
    root = project(FILES)
    command = [sys.executable, "-m", "tlint", "--output-format", "json"]
    started = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    reports = {process.communicate()[0] for process in started}
    assert len(reports) == 1
    assert len(json.loads(reports.pop())["findings"]) == 4
    same(tlint)
    assert not [name for name in os.listdir(root / ".tlint_cache") if name.startswith(".") and name != ".gitignore"]


def test_a_text_in_no_file_is_not_kept(project: Project, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(FILES)
    monkeypatch.setattr(cache, "read", lambda file: pytest.fail("the cache was asked"))
    buffer = source.decode(root / "lib.py", b"def scale(x):\n    return x\n")
    monkeypatch.setattr("tlint.analyzer.cli._standard_input", lambda *_: buffer)
    assert "TL101" not in tlint("-").out
    assert not (root / ".tlint_cache").exists()
