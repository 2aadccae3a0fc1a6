"""What the worker says, and how the stages of a target are kept apart.

Everything goes to the runner as JSON lines on a descriptor of its own: whatever the user's code prints harms nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from typing import Any


class Failed(Exception):
    """The target cannot be verified further. `status` is the target's: error or skipped."""

    def __init__(self, detail: str, status: str = "error", phase: str | None = None):
        super().__init__(detail)
        self.detail, self.status, self.phase = detail, status, phase


class Crashed(Exception):
    """A stage's process ended without an answer."""


class Channel:
    """Events to the runner. A process that the user's code forked says nothing."""

    def __init__(self, descriptor: int):
        self.descriptor, self.owner = descriptor, os.getpid()

    def send(self, event: str, **data: Any) -> None:
        if os.getpid() != self.owner:
            return
        line = json.dumps({"event": event, **data}).encode() + b"\n"
        while line:
            line = line[os.write(self.descriptor, line) :]

    def phase(self, name: str) -> None:
        self.send("phase", phase=name)


@contextlib.contextmanager
def guarded(ignored: tuple[str, ...]) -> Iterator[None]:
    """Whatever the user's code raises, SystemExit too, becomes `Failed` with its place."""
    try:
        yield
    except (Failed, Crashed):
        raise
    except BaseException as error:
        raise Failed(describe(error, ignored)) from error


def describe(error: BaseException, ignored: tuple[str, ...]) -> str:
    """An exception in one line, with the innermost place that is not below the `ignored` folders."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    places = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(ignored)]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    return f"{text} ({places[-1].filename}:{places[-1].lineno} in {places[-1].name})" if places else text


def fork(run: Callable[[], None]) -> int:
    """Run `run` in a forked process; its id. The process ends with it, and never returns to the caller's code."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        run()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def isolated(channel: Channel, stage: Callable[[], Any]) -> Any:
    """What `stage` returns, run in a fork: each stage sees the target as it was imported, and may crash.

    The result comes through a file: a pipe would stay open in whatever processes the user's code left behind.
    """
    with tempfile.TemporaryFile() as file:

        def run() -> None:
            channel.owner = os.getpid()
            try:
                answer = {"result": stage()}
            except Failed as failure:
                answer = {"failed": [failure.detail, failure.status, failure.phase]}
            if os.getpid() != channel.owner:  # the user's code has forked, and this is the copy
                return
            file.write(json.dumps(answer).encode())
            file.flush()

        _, status = os.waitpid(fork(run), 0)
        file.seek(0)
        text = file.read()
    if status or not text:
        raise Crashed(ending(os.waitstatus_to_exitcode(status)))
    answer = json.loads(text)
    if "failed" in answer:
        raise Failed(*answer["failed"])
    return answer["result"]


def ending(code: int) -> str:
    """How a process ended that said nothing, in words."""
    if code < 0:
        names = {each.value: each.name for each in signal.Signals}
        return f"the process was killed by {names.get(-code, f'signal {-code}')}"
    return f"the process ended itself with status {code}"
