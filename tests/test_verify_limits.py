"""However a target ends, it is told how, and the others still run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tlint.analyzer.config import VerifySettings
from tlint.analyzer.model import Target, TlintError
from tlint.compiler import judge, runner, targets

pytest.importorskip("torch")

BAD = """
import ctypes, os, sys, time
import torch

def get_inputs():
    return (torch.randn(4),)

def fine(x):
    return x.sin()

def raises(x):
    raise ValueError("no")

def exits(x):
    sys.exit(3)

def hangs(x):
    time.sleep(1000)

def leaves(x):
    os._exit(7)

def crashes(x):
    ctypes.string_at(0)
    return x

def eats(x):
    held = []
    while True:
        held.append(bytearray(50_000_000))

def floods(x):
    for _ in range(2000):
        os.write(1, b"x" * 10_000)
    return x.cos()

def moves(x):
    os.chdir("/")
    return x.cos()

def closes(x):
    os.closerange(3, 100)

def babbles(x):
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, b'garbage\\n{"event": "done"}\\n')
        except OSError:
            pass
    time.sleep(1000)

def copies(x):
    os.fork()
    return x.sin()

def kills_the_worker(x):
    with open(f"/proc/{os.getppid()}/stat") as file:
        os.kill(int(file.read().rpartition(")")[2].split()[1]), 9)
    time.sleep(1000)
"""

EXPECTED = {
    "raises": ("error", "eager", "ValueError: no"),
    "exits": ("error", "eager", "SystemExit: 3"),
    "hangs": ("timeout", "dynamo", "not done within 8 s"),
    "leaves": ("error", "dynamo", "ended itself with status 7"),
    "crashes": ("error", "dynamo", "killed by SIGSEGV at"),
    "eats": ("error", "dynamo", "used more than 1.5 GiB of memory"),
    "floods": ("breaks", "", ""),
    "moves": ("breaks", "", ""),
    "closes": ("error", "dynamo", "ended itself with status 1"),
    "babbles": ("error", "dynamo", "a descriptor that it does not own"),
    "copies": ("breaks", "", ""),
    "kills_the_worker": ("error", "dynamo", "the worker was killed"),
    "absent": ("error", "import", "has no 'absent'"),
    "fine": ("fullgraph", "triton", ""),  # last: after all of that
}

IMPORTS = {
    "raising.py": ("raise RuntimeError('boom')", "RuntimeError: boom"),
    "leaving.py": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "broken.py": ("def f(:", "SyntaxError"),
    "missing.py": ("import no_such_module", "No module named 'no_such_module'"),
}


class Workspace:
    def __init__(self, root: Path):
        self.root = self.cwd = root
        self.reported = frozenset(root.glob("*.py"))


def verify(root: Path, names: list[str], python: str = sys.executable, **limits: object) -> dict[str, Target]:
    requests, errors = targets.discover(Workspace(root), (), names)
    assert not errors
    observations = runner.run(requests, VerifySettings(**limits), python, root)
    return dict(zip(names, judge.judge((), observations)[1], strict=True))


def test_every_way_of_ending(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    names = [f"bad.py:{name}" for name in EXPECTED]
    found = verify(tmp_path, names, timeout=8.0, memory=3 << 29)
    for name, (status, phase, detail) in EXPECTED.items():
        target = found[f"bad.py:{name}"]
        assert target.status == status, (name, target)
        if status == "error" or status == "timeout":
            assert target.phase == phase and detail in target.detail, (name, target)
    assert "bad.py:24 in crashes" in found["bad.py:crashes"].detail


def test_failing_imports(tmp_path: Path) -> None:
    for name, (text, _) in IMPORTS.items():
        (tmp_path / name).write_text(text)
    found = verify(tmp_path, [f"{name}:f" for name in IMPORTS])
    for name, (_, detail) in IMPORTS.items():
        target = found[f"{name}:f"]
        assert (target.status, target.phase) == ("error", "import")
        assert detail in target.detail and name in target.detail


def test_file_named_like_a_module_of_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "types.py").write_text(
        "import torch\ndef f(x): return x + 1\ndef get_inputs(): return (torch.ones(2),)\n"
    )
    assert verify(tmp_path, ["types.py:f"])["types.py:f"].status == "fullgraph"


def test_interpreter_that_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text("def f(x): return x")
    target = verify(tmp_path, ["fine.py:f"], python=str(tmp_path / "python"))["fine.py:f"]
    assert target.status == "error" and "cannot run" in target.detail


def test_interpreter_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    (tmp_path / "fine.py").write_text("def f(x): return x")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    target = verify(tmp_path, ["fine.py:f"])["fine.py:f"]
    assert target.status == "error" and "cannot import torch" in target.detail


def test_unknown_gpu() -> None:
    with pytest.raises(TlintError, match=r"unknown GPU 'h1000'.*h100"):
        runner.described(["h1000"])
