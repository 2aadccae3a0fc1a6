"""What the worker needs of Dynamo's private names, as they are in torch 2.12 and, so far, all later ones.

A folder of a version has an adapter only where names differ from those before. It imports the nearest and states what
differs.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import types
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol
from unittest import mock

import torch
import torch._dynamo
from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
from torch._dynamo.convert_frame import ConvertFrameAssert
from torch._dynamo.eval_frame import OptimizedModule
from torch._dynamo.exc import UncapturedHigherOrderOpError, Unsupported, UserError, unimplemented
from torch._dynamo.symbolic_convert import InstructionTranslatorBase
from torch.utils._pytree import tree_leaves  # noqa: F401

BREAKS = (Unsupported, UserError, UncapturedHigherOrderOpError)
DISABLED = "Skip inlining `torch.compiler.disable()`d function"
DISABLED_TYPES = frozenset({DISABLED, "Skip calling `torch.compiler.disable()`d function"})
ASKED = "Call to `torch._dynamo.graph_break()`"
IN_LOOP = "graph break in loop"


def break_ids() -> dict[str, str]:
    """gb_type → GB id, from torch's own registry."""
    path = pathlib.Path(torch._dynamo.__file__).parent / "graph_break_registry.json"
    registry = json.loads(path.read_text("utf-8"))
    return {entry["Gb_type"]: identifier for identifier, entries in registry.items() for entry in entries}


def uncompiled(target: Any) -> Any:
    """The callable behind `torch.compile`, so that it is our run that compiles it. `disable` is left as it is."""
    while True:
        if isinstance(target, OptimizedModule):
            target = target._orig_mod
        elif isinstance(target, torch.nn.Module):
            target._compiled_call_impl = None  # Module.compile() works in place
            forward = uncompiled(target.forward)
            return target if forward == target.forward else forward
        elif isinstance(target, types.MethodType):
            return types.MethodType(uncompiled(target.__func__), target.__self__)
        elif hasattr(target, "_torchdynamo_orig_callable") and not getattr(target, "_torchdynamo_disable", False):
            target = target._torchdynamo_orig_callable
        else:
            return target


def frames(translator: Any) -> Iterator[tuple[types.CodeType, int, Any]]:
    """The frames that Dynamo is tracing, innermost first: code, line, and the positions of the expression evaluated."""
    while translator is not None:
        yield translator.f_code, translator.lineno, positions(translator)
        translator = translator.parent


def positions(translator: Any) -> Any:
    """Those of the current instruction; None before Python 3.11.

    A conditional jump belongs to the expression that it tests, which was evaluated just before: in Python 3.11 its own
    positions may be those of the whole statement or of another operand.
    """
    instruction, following = translator.current_instruction, translator.instruction_pointer
    if "JUMP" in instruction.opname:
        instruction = translator.instructions[following - 2] if following and following > 1 else None
    return getattr(instruction, "positions", None)


def origin(translator: Any, error: BaseException) -> Any:
    """The translator, `translator` or one of its callers, where `error` arose; None if it is none of them."""
    stack = getattr(error, "real_stack", None)
    while stack and translator is not None:
        if (translator.f_code.co_filename, translator.lineno) == (stack[-1].filename, stack[-1].lineno):
            return translator
        translator = translator.parent
    return None


class Watcher(Protocol):
    """What `hooks` reports to. `current` is the innermost frame being traced."""

    current: Any

    def stepped(self, translator: Any) -> None:
        """An instruction was executed: `translator.current_instruction`."""

    def logged(self, translator: Any, error: BaseException, reason: str) -> None:
        """Dynamo logged a break."""

    def converted(self, code: types.CodeType, error: BaseException | None) -> None:
        """Dynamo is done with a frame; the exception that ended it, if one did."""


@contextlib.contextmanager
def hooks(watcher: Watcher) -> Iterator[None]:
    with steps(watcher), logs(watcher):
        yield


@contextlib.contextmanager
def steps(watcher: Watcher) -> Iterator[None]:
    step, convert = InstructionTranslatorBase.step, ConvertFrameAssert.__call__

    def watched_step(self: Any) -> bool:
        watcher.current = self
        going = step(self)
        watcher.stepped(self)
        return going

    def watched_convert(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        code = frame.f_code
        try:
            result = convert(self, frame, *args, **kwargs)
        except BaseException as error:
            watcher.converted(code, error)
            raise
        watcher.converted(code, None)
        return result

    with (
        mock.patch.object(InstructionTranslatorBase, "step", watched_step),
        mock.patch.object(ConvertFrameAssert, "__call__", watched_convert),
    ):
        yield


@contextlib.contextmanager
def logs(watcher: Watcher) -> Iterator[None]:
    log = InstructionTranslatorBase.log_graph_break

    def watched_log(self: Any, code_options: Any, reason: str, exc: Any) -> None:
        if not exc.logged:
            watcher.logged(self, exc, reason)
        log(self, code_options, reason, exc)

    with mock.patch.object(InstructionTranslatorBase, "log_graph_break", watched_log):
        yield


@contextlib.contextmanager
def inductor_replaced(backend: Callable[..., Any]) -> Iterator[None]:
    """Whatever the user's own code compiles with Inductor goes to `backend`: no C++ compiler is started."""

    def replaced(self: Any, model: Any, inputs: Any, **kwargs: Any) -> Any:
        return backend(model, inputs)

    with mock.patch.object(torch._TorchCompileInductorWrapper, "__call__", replaced):
        yield


@contextlib.contextmanager
def disabled(codes: Collection[types.CodeType]) -> Iterator[None]:
    """As if `torch.compiler.disable` decorated the functions of these code objects.

    Setting `_torchdynamo_disable` on the functions does not do it: what Dynamo inlines, it has looked up before.
    """
    inline = InstructionTranslatorBase.inline_user_function_return

    def refusing(self: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        if function.get_code() in codes:
            unimplemented(gb_type=DISABLED, context=str(function), explanation="Disabled on trial.", hints=[])
        return inline(self, function, *args, **kwargs)

    for code in codes:
        set_code_exec_strategy(code, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))
    with mock.patch.object(InstructionTranslatorBase, "inline_user_function_return", refusing):
        yield
