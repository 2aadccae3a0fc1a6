"""What differs from torch 2.12 in Dynamo's private names up to torch 2.11.

An exception for a break does not know its type, which opens its message, nor if it was logged. What logs a break is
told the message only, and is a function rather than a method at first.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

from torch._dynamo import exc, symbolic_convert
from torch._dynamo.symbolic_convert import InstructionTranslatorBase, SpeculationEntry
from v2_12 import adapter as later
from v2_12.adapter import *  # noqa: F403
from v2_12.adapter import Watcher, steps

TYPE = re.compile(r"^(.+)\n  Explanation:", re.MULTILINE)
LOST = "Failed to handle graph break gracefully"  # as later versions say of a frame that is left to eager as a whole

later.unimplemented = getattr(exc, "unimplemented_v2", exc.unimplemented)


def type_of(error: BaseException) -> str:
    """The type of a break; the first one where a message quotes another break that led to it."""
    found = TYPE.search(str(error))
    return found[1].strip() if found else ""


@contextlib.contextmanager
def hooks(watcher: Watcher) -> Iterator[None]:
    known = {"gb_type": property(type_of), "logged": False}
    with contextlib.ExitStack() as stack:
        for name, value in known.items():
            stack.enter_context(mock.patch.object(exc.TorchDynamoException, name, value, create=True))
        stack.enter_context(steps(watcher))
        stack.enter_context(logs(watcher))
        yield


@contextlib.contextmanager
def logs(watcher: Watcher) -> Iterator[None]:
    owner = InstructionTranslatorBase if hasattr(InstructionTranslatorBase, "log_graph_break") else symbolic_convert
    log, restart, make = owner.log_graph_break, SpeculationEntry.fail_and_restart_analysis, exc.Unsupported.__init__
    made: list[Any] = []  # the newest of these exceptions

    def watched_make(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        made[:] = [self]

    def tell(translator: Any, error: Any, reason: str) -> None:
        error.logged = True
        watcher.logged(translator, error, LOST if translator.maybe_has_backedge() else reason)

    def watched_log(*args: Any, **kwargs: Any) -> None:
        translator = args[0] if owner is InstructionTranslatorBase else sys._getframe(1).f_locals["self"]
        reason = kwargs.get("reason") or args[-1]
        error = sys.exc_info()[1]
        if isinstance(error, exc.Unsupported):
            tell(translator, error, reason)
        elif not reason.startswith("STORE_ATTR"):  # that was told; else a branch on data, for which nothing is raised
            branch = exc.Unsupported(reason)
            branch.remove_from_stats()
            tell(translator, branch, reason)
        log(*args, **kwargs)

    def watched_restart(self: Any, *args: Any, **kwargs: Any) -> None:
        """Up to torch 2.9 some breaks are not logged: those of instructions that cannot resume by themselves."""
        caller = sys._getframe(1)
        if caller.f_code.co_name in ("step", "STORE_ATTR") and made and not made[0].logged:
            tell(caller.f_locals["self"], made[0], str(made[0]))
        restart(self, *args, **kwargs)

    with (
        mock.patch.object(owner, "log_graph_break", watched_log),
        mock.patch.object(SpeculationEntry, "fail_and_restart_analysis", watched_restart),
        mock.patch.object(exc.Unsupported, "__init__", watched_make),
    ):
        yield
