"""Watching Dynamo: every break once, the instructions it executed, the graphs it captured."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

RESUME = re.compile(r"torch_dynamo_resume_in_(.+?)_at_\d+")
TORCH = os.path.dirname(torch.__file__) + os.sep
COMPILER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # the worker and its adapters
FROZEN = "<frozen "
INTERNAL_FILES = (TORCH, COMPILER, FROZEN)
INTERNAL = "InternalTorchDynamoError"
CASCADE = "\n\n*** While handling this graph break, another graph break occurred: ***"

Place = tuple[int, int, int, int]


@dataclass(frozen=True)
class Step:
    """A frame of a break's stack. `span` is None where the interpreter has no positions."""

    path: str
    line: int
    name: str
    code: types.CodeType
    span: Place | None = None

    @property
    def internal(self) -> bool:
        return self.path.startswith(INTERNAL_FILES)


@dataclass
class Seen:
    """A break, at each of the stacks on which it was met."""

    gb_type: str
    message: str
    stacks: list[tuple[Step, ...]]
    intended: bool
    frame_lost: bool


@dataclass
class Watcher:
    """What Dynamo was seen doing. The adapter's `hooks` report to it; `backend` counts the graphs."""

    adapter: Any
    current: Any = None
    graphs: int = 0
    ops: int = 0
    breaks: dict[tuple[Any, ...], Seen] = field(default_factory=dict)
    executed: dict[str, set[Place]] = field(default_factory=dict)
    codes: dict[int, types.CodeType] = field(default_factory=dict)  # by id: the hash of a code object is slow
    frames: int = 0
    newest: Seen | None = None

    def backend(self, graph: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        self.graphs += 1
        self.ops += sum(node.op.startswith("call_") for node in graph.graph.nodes)
        return graph.forward

    def stepped(self, translator: Any) -> None:
        self.codes[id(translator.f_code)] = translator.f_code
        instruction = translator.current_instruction
        if "JUMP" in instruction.opname:  # it has no place of its own
            return
        if (place := place_of(getattr(instruction, "positions", None))) is not None:
            self.executed.setdefault(translator.f_code.co_filename, set()).add(place)

    def logged(self, translator: Any, error: BaseException, reason: str) -> None:
        # The frame where it arose may lie deeper than the one that can resume, which is the one that logs.
        at = self.adapter.origin(self.current, error) or translator
        self.add(error, at, reason.startswith("Failed to handle graph break gracefully"))

    def converted(self, code: types.CodeType, error: BaseException | None) -> None:
        """Dynamo logs neither its internal errors nor what it refuses before it traces, such as a generator.

        A frame of torch's own that is refused was called by code that is already eager.
        """
        if error is None:
            self.frames += 1
        elif isinstance(error, self.adapter.BREAKS):
            logged = getattr(error, "logged", False)
            if logged and self.newest is not None:
                self.newest.frame_lost = True
            elif not logged and not code.co_filename.startswith(TORCH):
                self.add(error, self.adapter.origin(self.current, error), True, code)
        elif type(error).__name__ == INTERNAL:
            self.add(error, self.current, True, code)

    def add(self, error: BaseException, translator: Any, frame_lost: bool, code: types.CodeType | None = None) -> None:
        message = getattr(error, "msg", None) or str(error)
        # An operator such as torch.cond turns a break inside it into an error of its own.
        types = (getattr(one, "gb_type", None) for one in (error, error.__context__))
        kind = next(filter(None, types), type(error).__name__)
        if kind == self.adapter.IN_LOOP:  # it replaces the break that it was caused by
            message, frame_lost = message.partition(CASCADE)[0], True
            kind = message.partition("\n")[0].strip()
        inner = tuple(step_of(*frame) for frame in self.adapter.frames(translator))[::-1]
        if not inner and code is not None:
            inner = (step_of(code, code.co_firstlineno, None),)
        self.record(kind, message, inner, frame_lost)

    def record(self, kind: str, message: str, inner: tuple[Step, ...], frame_lost: bool) -> None:
        """`inner` is what Dynamo traced; the Python frames above it complete the stack."""
        asked = kind in self.adapter.DISABLED_TYPES or (kind == self.adapter.ASKED and inner[-1].internal)
        intended = asked or all(step.internal for step in inner)
        stack = collapsed([*running(), *inner])
        user = tuple(step for step in stack if not step.internal)
        # A callee that was inlined breaks again as a frame of its own: the same place, another stack.
        key = (kind, *((step.path, step.line, step.span) for step in [*stack[-1:], *user[-1:]]))
        seen = self.breaks.setdefault(key, Seen(kind, message, [], intended, False))
        if user not in seen.stacks:
            seen.stacks.append(user)
        seen.intended &= intended
        seen.frame_lost |= frame_lost
        self.newest = seen


def step_of(code: types.CodeType, line: int, positions: Any) -> Step:
    name = RESUME.sub(r"\1", getattr(code, "co_qualname", code.co_name))
    return Step(code.co_filename, line, name, code, place_of(positions))


def place_of(positions: Any) -> Place | None:
    if positions is None or positions.end_col_offset is None:
        return None
    return positions.lineno, positions.col_offset, positions.end_lineno, positions.end_col_offset


def running() -> list[Step]:
    """The Python frames that led to the frame being compiled, outermost first."""
    steps: list[Step] = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        steps.append(step_of(frame.f_code, frame.f_lineno, None))
        frame = frame.f_back
    return [step for step in reversed(steps) if not step.internal]


def collapsed(steps: list[Step]) -> tuple[Step, ...]:
    """Without the callers of resume functions, which are the same function at an earlier line."""
    kept: list[Step] = []
    for step in steps:
        if kept and RESUME.match(step.code.co_name) and kept[-1].name == step.name:
            kept.pop()
        kept.append(step)
    return tuple(kept)


@contextlib.contextmanager
def watching(adapter: Any) -> Iterator[Watcher]:
    watcher = Watcher(adapter)
    with adapter.hooks(watcher), adapter.inductor_replaced(watcher.backend):
        yield watcher


# As JSON ------------------------------------------------------------------------------------------------------------


def breaks_of(watcher: Watcher, project: Callable[[str], bool]) -> list[dict[str, Any]]:
    """The breaks, in the order in which they came. Each lies at its innermost frame inside the project."""
    ids = watcher.adapter.break_ids()
    result: list[dict[str, Any]] = []
    for seen in watcher.breaks.values():
        stack = seen.stacks[0]
        at = next((step for step in reversed(stack) if project(step.path)), stack[-1] if stack else None)
        result.append(
            {
                "id": f"b{len(result) + 1}",
                "gb_type": seen.gb_type,
                "gb_id": ids.get(seen.gb_type),
                "message": seen.message,
                "path": at.path if at else "",
                "line": at.line if at else 0,
                "span": columns(at.path, at.span) if at and at.span else None,
                "stack": [[step.path, step.line, step.name] for step in stack],
                "intended": seen.intended,
                "frame_lost": seen.frame_lost,
                "count": len(seen.stacks),
            }
        )
    return result


def executed_of(watcher: Watcher, project: Callable[[str], bool]) -> dict[str, list[Place]]:
    return {
        path: sorted(columns(path, place) for place in places)
        for path, places in watcher.executed.items()
        if project(path)
    }


@functools.cache
def encoded(path: str) -> list[bytes]:
    return [line.encode() for line in linecache.getlines(path)]


def columns(path: str, place: Place) -> Place:
    """From the interpreter's positions, UTF-8 offsets from 0, to columns of code points from 1."""
    line, start, end_line, end = place

    def column(number: int, offset: int) -> int:
        lines = encoded(path)
        if not 0 < number <= len(lines):
            return offset + 1
        return len(lines[number - 1][:offset].decode(errors="replace")) + 1

    return line, column(line, start), end_line, column(end_line, end)
