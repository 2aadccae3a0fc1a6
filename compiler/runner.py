"""Runs targets under the user's Python, each in processes of its own with limits of time and memory.

A worker (`worker/main.py`) imports torch once and forks a process per target. It answers with JSON lines on a
descriptor of its own; what targets print is drained, and its end kept for the details of a crash.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from tlint.analyzer.model import Break, Observation, Span, Target, TlintError
from tlint.compiler.targets import Request
from tlint.compiler.worker import processes
from tlint.compiler.worker.channel import ending

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
POLL = 0.1  # seconds between two looks at the clock and the memory
TAIL = 1 << 16  # bytes of a target's output that are kept
TROUBLE = re.compile(r"\w*(Error|Exception)\b|^Fatal|terminate called|[Aa]ssert|\b[Kk]illed\b")
FATAL = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')  # as faulthandler writes it
START = 120.0  # seconds that importing torch may take
GRACE = 5.0  # seconds that a worker has to tell of a target which was ended
# Of the environment: what would leave out assertions and positions, make torch's warnings errors, or compile nothing.
DROPPED = {"PYTHONOPTIMIZE", "PYTHONNODEBUGRANGES", "PYTHONWARNINGS"} | {
    "TORCH_COMPILE_DISABLE",
    "TORCHDYNAMO_DISABLE",
    "TRITON_INTERPRET",
}


class Limits(Protocol):
    """What is read of `config.VerifySettings`."""

    @property
    def timeout(self) -> float: ...

    @property
    def memory(self) -> int: ...

    @property
    def gpus(self) -> Sequence[str]: ...

    @property
    def jobs(self) -> int: ...

    @property
    def train(self) -> bool | None: ...

    @property
    def mode(self) -> str | None: ...


def run(
    requests: Sequence[Request],
    settings: Limits,
    python: str | None,
    cwd: Path,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Observation, ...]:
    """What was observed of each request, in their order. No way in which a target ends stops the others."""
    done: list[Observation] = []
    idle: SimpleQueue[Worker] = SimpleQueue()
    count = min(settings.jobs, len(requests))
    common = {
        "gpus": described(settings.gpus),
        "mode": settings.mode,
        "train": settings.train,
        "jobs": max(1, settings.jobs // max(1, count)),  # what no target needs builds kernels
    }
    stopping = threading.Event()

    def one(request: Request) -> Observation:
        worker = idle.get()
        try:
            seen = worker.verify(request, settings, common)
        finally:
            idle.put(worker)
        done.append(seen)
        if progress is not None:
            progress("verifying", len(done), len(requests))
        return seen

    with (
        tempfile.TemporaryDirectory(prefix="tlint-", ignore_cleanup_errors=True) as scratch,
        ThreadPoolExecutor(max(1, count)) as pool,
    ):
        workers = [Worker(python or sys.executable, cwd, scratch, stopping) for _ in range(count)]
        for worker in workers:
            idle.put(worker)
        try:
            return tuple(pool.map(one, requests))
        finally:
            stopping.set()  # if we are interrupted, no thread waits for its target
            pool.shutdown()
            for worker in workers:
                worker.close()


def described(names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of gpus.toml."""
    known = tomllib.loads((HERE / "gpus.toml").read_text("utf-8"))
    for name in names:
        if name not in known:
            raise TlintError(f"unknown GPU {name!r}: choose among {', '.join(known)}")
    return [{"id": name, **known[name]} for name in names]


class Worker:
    """The process that imported torch, started when first needed and again after it has died."""

    def __init__(self, python: str, cwd: Path, scratch: str, stopping: threading.Event):
        self.python, self.cwd, self.scratch, self.stopping = python, cwd, scratch, stopping
        self.process: subprocess.Popen[bytes] | None = None
        self.target = 0  # the process of the target that runs, or ran last
        self.versions: dict[str, str] = {}
        self.refusal = ""  # why no target can run under this interpreter
        self.tail = b""

    def verify(self, request: Request, settings: Limits, common: Mapping[str, Any]) -> Observation:
        account = Account(request, self.cwd)
        begun = time.monotonic()
        try:
            self.start()
            self.attend(request, settings, common, account)
        except WorkerError as error:
            account.fail("error", str(error))
            self.close()
        return account.observation(self.versions, time.monotonic() - begun)

    def start(self) -> None:
        if self.refusal:
            raise WorkerError(self.refusal)
        if self.process is not None:
            return
        read, write = os.pipe()
        command = [self.python, str(HERE / "worker" / "main.py"), str(write)]
        environment = {
            "TRITON_CACHE_DIR": os.path.join(self.scratch, "kernels"),  # built once for all targets
            **{key: value for key, value in os.environ.items() if key not in DROPPED},
            "TMPDIR": self.scratch,  # what is killed leaves nothing behind
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONUTF8": "1",  # torch reads its own files as the locale says
            "TORCHINDUCTOR_COMPILE_THREADS": "1",  # else importing Inductor starts processes of its own
            "CUDA_VISIBLE_DEVICES": "",  # targets run on the CPU, and a context on a device does not survive a fork
        }
        try:
            self.process = subprocess.Popen(
                command,
                cwd=self.cwd,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[write],
                start_new_session=True,
            )
        except OSError as error:
            os.close(read)
            self.refusal = f"cannot run {self.python}: {error.strerror}"
            raise WorkerError(self.refusal) from None
        finally:
            os.close(write)
        self.events = read
        self.pending = b""
        self.selector = selectors.DefaultSelector()
        self.selector.register(read, selectors.EVENT_READ, "events")
        assert self.process.stdout is not None and self.process.stdin is not None  # both are pipes
        self.stdin = self.process.stdin
        self.selector.register(self.process.stdout, selectors.EVENT_READ, "output")
        try:
            self.versions = self.ready()
        except WorkerError as error:
            self.refusal = f"cannot verify under {self.python}: {error} (--python names another interpreter)"
            raise WorkerError(self.refusal) from None

    def ready(self) -> dict[str, str]:
        """The versions that a worker which has just been started works with."""
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            for event in self.listen():
                if event["event"] == "fatal":
                    raise WorkerError(event["detail"])
                return {key: event[key] for key in ("torch", "triton", "python")}
        raise WorkerError(f"torch was not imported within {START:g} s")

    def attend(self, request: Request, settings: Limits, common: Mapping[str, Any], account: Account) -> None:
        """Send the request and follow it to its end, or end it at a limit."""
        assert self.process is not None
        self.tail, self.target = b"", 0
        message = {**dataclasses.asdict(request), **common}
        with contextlib.suppress(BrokenPipeError):  # then `listen` meets the end of the events, and says so
            self.stdin.write(json.dumps(message).encode() + b"\n")
            self.stdin.flush()
        looked, deadline = 0.0, time.monotonic() + settings.timeout
        while True:
            for event in self.listen():
                match event["event"]:
                    case "started":
                        self.target = event["pid"]
                    case "ended":
                        account.fail("error", self.last_words(account.ending or event["ending"], request.roots))
                        return
                    case _:
                        account.take(event)
            now = time.monotonic()
            if now > deadline + GRACE:
                raise WorkerError("the worker does not answer")
            if account.over or now < looked + POLL:
                continue
            looked = now
            alive = processes.family(self.process.pid, self.target) - {self.process.pid}
            size = processes.memory(alive)
            account.peak = max(account.peak, size)
            if size > settings.memory:
                account.fail("error", f"used more than {amount(settings.memory)} of memory")
            elif now > deadline:
                account.fail("timeout", f"not done within {settings.timeout:g} s")
            if account.over:
                processes.end(self.process.pid, self.target, spare=self.process.pid)

    def listen(self) -> Iterator[dict[str, Any]]:
        """The events that came within a poll's time."""
        assert self.process is not None
        if not self.hear():
            if self.process.poll() is None:
                return
            chunk = b""  # the target, which lives on, holds the descriptor too
        else:
            chunk = os.read(self.events, 1 << 16)
        if not chunk:
            raise WorkerError(f"the worker is gone: {self.last_words(self.ended())}")
        *lines, self.pending = (self.pending + chunk).split(b"\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                event = None
            if not isinstance(event, dict) or "event" not in event:
                # What follows cannot be told apart from the worker's own words: it has to be a new one.
                raise WorkerError("the target wrote to a descriptor that it does not own, the worker's own")
            yield event

    def hear(self) -> bool:
        """Take the output that comes within a poll's time; whether events have come."""
        ready = {key.data: key.fd for key, _ in self.selector.select(POLL)}
        if self.stopping.is_set():
            raise WorkerError("interrupted")
        if "output" in ready:
            chunk = os.read(ready["output"], 1 << 16)
            self.tail = (self.tail + chunk)[-TAIL:]
            if not chunk:
                self.selector.unregister(ready["output"])
        return "events" in ready

    def last_words(self, ending: str | None, roots: tuple[str, ...] = ()) -> str:
        """How a process ended that gave no answer: with the line of the user's where it crashed, if Python could tell,
        and the last line of its output that speaks of an error, or the last one."""
        self.hear()  # it may still be on the way
        output = self.tail.decode(errors="replace")
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        said = next((line for line in reversed(lines) if TROUBLE.search(line)), "".join(lines[-1:]))
        how = ending or "the process ended without an answer"
        place = next((match for match in FATAL.finditer(output) if match[1].startswith(roots)), None) if roots else None
        if place is not None:
            how += f" at {place[1]}:{place[2]} in {place[3]}"
        return f"{how}; its last words: {said[:300]}" if said else how

    def ended(self) -> str:
        """How the worker ended, which it has, or is about to."""
        assert self.process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return ending(self.process.wait(1))
        return "it closed the descriptor of its events"

    def close(self) -> None:
        if self.process is None:
            return
        processes.end(self.process.pid, self.target, spare=self.process.pid)
        processes.end(self.process.pid)  # at last: until then, what its children leave comes to it
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.selector.close()
        os.close(self.events)
        self.process = None


class WorkerError(Exception):
    """The worker itself could not start or died."""


def amount(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


class Account:
    """What has been heard of one request. `over`: its status is settled."""

    def __init__(self, request: Request, cwd: Path):
        self.request, self.cwd = request, cwd
        self.heard: dict[str, Any] = {}
        self.trials: dict[tuple[str, int], dict[str, Any]] = {}  # by place: one may help with several breaks
        self.phase, self.status, self.detail, self.ending = "import", "", "", ""
        self.over, self.peak = False, 0

    def take(self, event: Mapping[str, Any]) -> None:
        if self.over:
            return
        match event["event"]:
            case "phase":
                self.phase = event["phase"]
            case "part":
                self.heard.update({key: value for key, value in event.items() if key != "event"})
            case "trial":
                trial = event["trial"]
                known = self.trials.setdefault((trial["path"], trial["line"]), {**trial, "breaks": []})
                known["breaks"] += trial["breaks"]
            case "failed":
                self.fail(event["status"], event["detail"], event["phase"])
            case "crashed":
                self.ending = event["ending"]
            case "done":
                self.over = True

    def fail(self, status: str, detail: str, phase: str | None = None) -> None:
        if self.over:
            return
        self.status, self.detail, self.phase, self.over = status, detail, phase or self.phase, True

    def observation(self, versions: Mapping[str, str], seconds: float) -> Observation:
        heard, request = self.heard, self.request
        breaks = [self.break_of(row) for row in heard.get("breaks", ())]
        # The gate stops at its first break, often a consequence of one of default mode's. Alone it is news.
        breaks = breaks or [self.break_of(row) for row in heard.get("gate_breaks", ())]
        target = Target(
            id=request.id,
            name=request.name,
            path=self.shown(request.path) if request.path else "",
            inputs=heard.get("inputs", request.inputs),
            assumed=tuple(heard.get("assumed", ())),
            train=heard.get("train", False),
            torch=versions.get("torch", ""),
            triton=versions.get("triton", ""),
            python=versions.get("python", ""),
            config=heard.get("config", request.config),
            status=self.status,
            phase=heard["gate_phase"] if not self.status and "gate_phase" in heard else self.phase,
            detail=self.detail or heard.get("gate_detail", ""),
            gate=heard.get("gate", "not_run"),
            breaks=tuple(breaks),
            stages={**heard.get("stages", {}), **heard.get("lowered", {})},
            seconds=round(seconds, 3),
            peak_bytes=self.peak,
        )
        executed = {
            self.shown(path): tuple(Span(*place) for place in places)
            for path, places in heard.get("executed", {}).items()
        }
        return Observation(target, executed, tuple({**t, "path": self.shown(t["path"])} for t in self.trials.values()))

    def break_of(self, row: Mapping[str, Any]) -> Break:
        return Break(
            id=row["id"],
            gb_type=row["gb_type"],
            gb_id=row["gb_id"],
            message=row["message"],
            path=self.shown(row["path"]),
            line=row["line"],
            span=Span(*row["span"]) if row["span"] else None,
            stack=tuple((self.shown(path), line, name) for path, line, name in row["stack"]),
            intended=row["intended"],
            frame_lost=row["frame_lost"],
            count=row["count"],
        )

    def shown(self, path: str) -> str:
        """Relative to the working directory if below it, with "/", as in every part of a report."""
        if not path:
            return path
        with contextlib.suppress(ValueError):
            return Path(path).relative_to(self.cwd).as_posix()
        return Path(path).as_posix()
