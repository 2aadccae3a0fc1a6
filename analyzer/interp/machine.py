"""The interpreter's state: frames, what has been called with what, and where events go.

`expressions`, `statements`, `calls`, `objects` and `library` are plain functions over a `Machine` and a `Frame`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from tlint.analyzer.facts import Facts
from tlint.analyzer.index import ClassDef, FunctionDef, ModuleDef, Project
from tlint.analyzer.interp.values import UNKNOWN, Instance, Value, join
from tlint.rules.base import Site


@dataclass(frozen=True, slots=True)
class Dynamo:
    """The compiler's settings in force for a root, as far as they decide what breaks.

    From torch 2.10 on, `fullgraph=True` turns both captures on (torch/_dynamo/eval_frame.py): it is folded into them.
    """

    capture_scalar_outputs: bool = False
    capture_dynamic_output_shape_ops: bool = False
    compiled_autograd: bool = False
    allow_rnn: bool = False
    trace_autograd_ops: bool = False
    enable_trace_load_build_class: bool = False
    # Functions whose output is written behind the graph, and functions that are not called at all.
    reorderable_logging_functions: frozenset[Value] = frozenset()
    ignore_logging_functions: frozenset[Value] = frozenset()
    fullgraph: bool = False


@dataclass(slots=True)
class Frame:
    """A function being interpreted, or a module's top level (`function` is None)."""

    module: ModuleDef
    function: FunctionDef | None
    env: dict[str, Value]
    closure: dict[str, Value] = field(default_factory=dict)
    cls: ClassDef | None = None
    parent: Frame | None = None
    call: ast.AST | None = None
    silent: bool = False
    depth: int = 0
    dynamo: Dynamo = Dynamo()
    receiver: Value | None = None
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    # Tests that hold here and were not folded: (test, whether it is true).
    conditions: list[tuple[ast.expr, bool]] = field(default_factory=list)
    # Environments that leave the innermost loop by `break` or `continue`.
    exits: list[dict[str, Value]] = field(default_factory=list)
    # Depth of statements that may not run: an attribute stored there is one of several.
    branches: int = 0
    # Inside a block that ends in `raise`, or an `except`: run rarely, so findings there are only possible.
    doubtful: int = 0
    # Inside a `try` that has a handler for failed assertions.
    catching: int = 0
    loops: list[ast.For | ast.AsyncFor | ast.While] = field(default_factory=list)
    # What is around that Dynamo cannot leave and enter again: a break inside loses the whole frame to eager mode.
    holding: list[str] = field(default_factory=list)
    lost: bool = False
    # Comprehensions that are frames of their own once this one is lost, with their statements.
    apart: list[tuple[ast.expr, ast.stmt | None]] = field(default_factory=list)
    statement: ast.stmt | None = None
    # Names that nested functions rebind.
    shared: set[str] = field(default_factory=set)

    @property
    def qualname(self) -> str:
        return self.function.qualname if self.function is not None else "<module>"

    def callers(self) -> Iterator[Frame]:
        """This frame and those that called it, innermost first."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.parent


@dataclass(slots=True)
class Result:
    """What a call gave, and which findings and stores of attributes lie in it and below. `breaks`: some are breaks."""

    value: Value = UNKNOWN
    breaks: bool = False
    findings: set[Any] = field(default_factory=set)
    stores: set[str] = field(default_factory=set)


class Listener(Protocol):
    """Where events go: the engine. `again` says that a call already interpreted is reached on another way."""

    def event(self, kind: str, frame: Frame, node: ast.AST, **details: Any) -> None: ...

    def again(self, findings: set[Any], frame: Frame, node: ast.AST, callee: FunctionDef) -> None: ...

    def compiled(self, frame: Frame, node: ast.AST, site: Site, callee: Value, args: Any, keywords: Any) -> None: ...

    def gave_up(self, frame: Frame, node: ast.stmt) -> None: ...


# Bounds. Beyond `CONTEXTS` sets of arguments a function is interpreted once more, with its arguments widened; beyond
# `DEPTH` calls nothing is followed. Of 73 break sites in real models the deepest lay 9 calls below its root.
CONTEXTS = 6
DEPTH = 40
# What a decorator makes of a function, what `__init__` leaves on an instance and what is given to torch.compile are
# decided near the surface. This many calls below they are not followed (one `__init__` from another does not count): on
# a library of 1.2 million lines these were two thirds of all calls interpreted.
DECORATOR, CONSTRUCTOR, SCRIPT = 2, 2, 5


class Machine:
    def __init__(self, project: Project, facts: Facts, listener: Listener) -> None:
        self.project = project
        self.facts = facts
        self.listener = listener
        self.results: dict[Any, Result] = {}
        self.contexts: dict[Any, int] = {}
        self.active: list[Any] = []
        self.running: list[Result] = []
        self.globals: dict[tuple[str, int], Value] = {}
        self.attributes: dict[Instance, dict[str, Value]] = {}
        # Those whose `__init__` runs right now.
        self.making: list[Instance] = []
        # What methods give and leave on an instance that is being made, by all that it depends on: hundreds of classes
        # share a base's.
        self.initialized: dict[Any, tuple[Value, dict[str, Value]]] = {}
        self.reads: dict[tuple[ClassDef, FunctionDef], tuple[tuple[str, ...], tuple[FunctionDef, ...]]] = {}
        # Attributes that methods other than `__init__` store, joined over all instances of the class.
        self.stored: dict[tuple[ClassDef, str], Value] = {}
        self.mros: dict[ClassDef, list[ClassDef | str]] = {}
        self.functions: set[FunctionDef] = set()
        self.decorated: dict[FunctionDef, Value] = {}
        self.frames: dict[ModuleDef, Frame] = {}
        self.limit = DEPTH
        # What code that is not compiled calls functions and modules with: what a root is given.
        self.calls: dict[FunctionDef, list[tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]]]] = {}

    def emit(self, kind: str, frame: Frame, node: ast.AST, **details: Any) -> None:
        if not frame.silent:
            self.listener.event(kind, frame, node, **details)

    def module_frame(self, module: ModuleDef) -> Frame:
        """The frame in which a module's names are evaluated: nothing in it is compiled."""
        if module not in self.frames:
            self.frames[module] = Frame(module, None, {}, silent=True)
        return self.frames[module]

    @contextmanager
    def shallow(self, limit: int) -> Iterator[None]:
        """Follow nothing that is called from a frame at this depth or below it."""
        held, self.limit = self.limit, min(DEPTH, limit)
        try:
            yield
        finally:
            self.limit = held

    def store(self, cls: ClassDef, name: str, value: Value) -> None:
        old = self.stored.get((cls, name))
        self.stored[cls, name] = value if old is None else join(old, value)
        if self.running:
            self.running[-1].stores.add(name)


Evaluate = Callable[[Machine, Frame, Any], Value]
