"""However a target ends, it is told how, and the others still run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tlint.analyzer.config import VerifySettings
from tlint.analyzer.model import Span, Target, TlintError
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

def note():
    with open(os.path.join(os.path.dirname(__file__), "processes"), "a") as file:
        file.write(f"{os.getpid()}\\n")

def daemon():
    # A process that no parent knows of, in a session of its own.
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note()
            time.sleep(1000)
        os._exit(0)

def hangs(x):
    daemon()
    os.setsid()
    note()
    time.sleep(1000)

def leaves_a_daemon(x):
    daemon()
    return x.sin()

def stops_the_worker(x):
    with open(f"/proc/{os.getppid()}/stat") as file:
        os.kill(int(file.read().rpartition(")")[2].split()[1]), 19)
    note()
    time.sleep(1000)

def kills_the_worker(x):
    note()
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
    "leaves_a_daemon": ("breaks", "", ""),
    "stops_the_worker": ("timeout", "dynamo", "not done within 8 s"),
    "kills_the_worker": ("error", "dynamo", "the worker is gone: the process was killed by SIGKILL"),
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


def noted(root: Path) -> list[int]:
    """The processes that targets have told of."""
    file = root / "processes"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def alive(processes: list[int]) -> list[int]:
    """Those that still run, a moment later."""
    for _ in range(100):
        left = [process for process in processes if runs(process)]
        if not left:
            break
        time.sleep(0.1)
    return left


def runs(process: int) -> bool:
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())  # that of a process which nobody waits for is empty
    except FileNotFoundError:
        return False


def test_every_way_of_ending(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    names = [f"bad.py:{name}" for name in EXPECTED]
    found = verify(tmp_path, names, timeout=8.0, memory=3 << 29)
    for name, (status, phase, detail) in EXPECTED.items():
        target = found[f"bad.py:{name}"]
        assert target.status == status, (name, target)
        if status == "error" or status == "timeout":
            assert target.phase == phase and detail in target.detail, (name, target)
    assert "bad.py:21 in crashes" in found["bad.py:crashes"].detail
    started = noted(tmp_path)
    assert len(started) >= 4 and not alive(started)


ODD = """
import torch

def get_inputs(): return (torch.ones(2),)
async def coroutine(x): return x.sin()
sin = torch.sin
"""

MADE_UP = """
import sys
import torch

def always(x): raise RuntimeError("whatever comes")
def ends(x): sys.exit(3)
def takes(x): return x.reshape(5, 7)
sin = torch.sin
"""


def test_what_no_inputs_help(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    (tmp_path / "made.py").write_text(MADE_UP)
    expected = {
        "odd.py:coroutine": ("skipped", "construct", "a coroutine, which a call does not run"),
        "odd.py:sin": ("fullgraph", "triton", ""),
        "made.py:always": (
            "skipped",
            "construct",
            "whatever inputs are made up, it raises RuntimeError: whatever comes",
        ),
        "made.py:ends": ("error", "eager", "SystemExit: 3"),
        "made.py:takes": ("skipped", "construct", "no made-up inputs fit (RuntimeError: shape '[5, 7]'"),
        "made.py:sin": ("skipped", "construct", "its parameters cannot be told: no signature found"),
    }
    found = verify(tmp_path, list(expected))
    for name, (status, phase, detail) in expected.items():
        target = found[name]
        assert (target.status, target.phase) == (status, phase) and detail in target.detail, target


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


def script(file: Path, text: str) -> str:
    """A program in the place of an interpreter."""
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def test_interpreter_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text("def f(x): return x")
    for python, says in {
        str(tmp_path / "python"): "cannot run",
        "/bin/true": "cannot verify under /bin/true: the worker is gone: the process ended itself with status 0",
        script(tmp_path / "says_why", "echo no licence >&2; echo; exit 3"): "status 3; its last words: no licence",
    }.items():
        target = verify(tmp_path, ["fine.py:f"], python=python)["fine.py:f"]
        assert target.status == "error" and says in target.detail


@pytest.mark.parametrize(
    ("module", "says"), [("torch", "cannot import torch"), ("platform", "its last words: ImportError: not this one")]
)
def test_import_path_with_something_else_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, says: str
) -> None:
    (tmp_path / f"{module}.py").write_text("raise ImportError('not this one')")
    (tmp_path / "fine.py").write_text("def f(x): return x")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    target = verify(tmp_path, ["fine.py:f"])["fine.py:f"]
    assert target.status == "error" and says in target.detail


def test_environment_that_changes_python_or_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PYTHONSAFEPATH": "1",
        "PYTHONWARNINGS": "error",
        "PYTHONOPTIMIZE": "2",
        "PYTHONNODEBUGRANGES": "1",
        "PYTHONSTARTUP": str(tmp_path / "nowhere.py"),
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "TORCHDYNAMO_DISABLE": "1",
        "TORCH_COMPILE_DISABLE": "1",
        "TRITON_INTERPRET": "1",
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "m.py").write_text(
        "import torch\n"
        "def get_inputs(): return (torch.ones(2),)\n"
        "def fine(x): return x.sin()\n"
        "def f(x):\n    assert x.cos().sum() < 9\n    return x + x.sum().item()\n"
    )
    requests, _ = targets.discover(Workspace(tmp_path), (), ["m.py:fine", "m.py:f"])
    fine, breaking = runner.run(requests, VerifySettings(), sys.executable, tmp_path)
    assert (fine.target.gate, fine.target.stages["triton"]["sm_90"]["compiled"]) == ("pass", 1)
    assert [found.line for found in breaking.target.breaks] == [6]
    assert Span(5, 12, 5, 25) in breaking.executed["m.py"], "the assertion, to the column"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_the_target_too(tmp_path: Path, number: int) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    tlint = started(tmp_path, "bad.py:hangs", "--timeout", "500")
    while len(noted(tmp_path)) < 2:
        time.sleep(0.05)
        assert tlint.poll() is None
    tlint.send_signal(number)
    assert tlint.wait(60) == (-number if number == signal.SIGKILL else 128 + number)
    assert not alive(noted(tmp_path))
    assert number == signal.SIGKILL or not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_worker_that_is_not_ready(tmp_path: Path, number: int) -> None:
    (tmp_path / "fine.py").write_text("def f(x): return x")
    python = script(tmp_path / "slow", f"touch $TMPDIR/file; echo $$ > {tmp_path}/processes; sleep 1000; true")
    tlint = started(tmp_path, "fine.py:f", "--python", python)
    while not noted(tmp_path):
        time.sleep(0.05)
        assert tlint.poll() is None
    for _ in range(3):  # the first one counts, and the others do no harm
        tlint.send_signal(number)
    assert tlint.wait(60) == 128 + number
    assert not alive(noted(tmp_path))
    assert not list((tmp_path / "temporary").iterdir())


def started(root: Path, *words: str) -> subprocess.Popen[bytes]:
    """`tlint verify` in a process of its own, whose temporary files go to a folder of the test's."""
    (root / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(root / "temporary")}
    return subprocess.Popen([sys.executable, "-m", "tlint", "verify", *words], cwd=root, env=environment)


def test_unknown_gpu() -> None:
    with pytest.raises(TlintError, match=r"unknown GPU 'h1000'.*h100"):
        runner.described(["h1000"])
