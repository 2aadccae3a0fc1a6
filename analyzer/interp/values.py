"""What the interpreter knows of a Python value, as Dynamo would see it.

Values are immutable and hashable, so that a call can be memoised on them. `sure` is how certain we are that the value
is what it says; what is computed from values is as sure as the least sure of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tlint.analyzer.model import Confidence


@dataclass(frozen=True, slots=True)
class Value:
    """Nothing is known. Every subclass answers these questions, so that a rule needs no `isinstance`."""

    @property
    def is_tensor(self) -> bool:
        return False

    @property
    def is_none(self) -> bool:
        return False

    @property
    def is_const(self) -> bool:
        return False

    @property
    def qualname(self) -> str:
        """The dotted name of a function, class or module; of an instance, that of its class. "" if unknown."""
        return ""

    @property
    def sure(self) -> Confidence:
        return Confidence.possible


@dataclass(frozen=True, slots=True)
class Unknown(Value):
    pass


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Tensor(Value):
    """A torch.Tensor, or a numpy array that Dynamo traces as one.

    `kind`: the class of its dtype ("float", "int", "bool", "complex") or None. `origin`: "input", "parameter",
    "buffer", "attribute", "op", "random" (a draw, or computed from one alone), "numbers" (made of Python numbers
    alone). `numpy`: it is an ndarray. `sized`: its shape depends on data. `rank` 0 is a scalar tensor.
    """

    kind: str | None = None
    rank: int | None = None
    origin: str = "op"
    certain: Confidence = Confidence.likely
    numpy: bool = False
    sized: bool = False
    scripted: bool = False

    @property
    def is_tensor(self) -> bool:
        return True

    @property
    def qualname(self) -> str:
        return "numpy.ndarray" if self.numpy else "torch.Tensor"

    @property
    def sure(self) -> Confidence:
        return self.certain


@dataclass(frozen=True, slots=True)
class Const(Value):
    """A Python constant: None, a bool, number, string, bytes, slice or Ellipsis."""

    value: Any

    @property
    def is_none(self) -> bool:
        return self.value is None

    @property
    def is_const(self) -> bool:
        return True

    @property
    def qualname(self) -> str:
        return "builtins." + type(self.value).__name__

    @property
    def sure(self) -> Confidence:
        return Confidence.certain

    # 1 == True == 1.0, and memoising on the one must not answer for the other.
    def __eq__(self, other: object) -> bool:
        return type(other) is Const and type(other.value) is type(self.value) and other.value == self.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


NONE = Const(None)
TRUE = Const(True)
FALSE = Const(False)


@dataclass(frozen=True, slots=True)
class Scalar(Value):
    """A Python int, float, bool or str whose value is not known.

    `origin`: "shape" (a SymInt), "data" (read out of a tensor: a Python number after the break, an unbacked symbol
    where scalar capture is on), "random" (drawn by Python's or numpy's generator), "config" (an attribute or argument).
    """

    type: str
    origin: str = "config"

    @property
    def qualname(self) -> str:
        return "builtins." + self.type

    @property
    def sure(self) -> Confidence:
        return Confidence.certain


@dataclass(frozen=True, slots=True)
class Sequence(Value):
    """A list, tuple, set, generator or iterator. `items` is None where the length is unknown; `item` is then the join.

    `type`: "list", "tuple", "set", "Size", "generator", "iterator", "range" ...
    """

    type: str
    items: tuple[Value, ...] | None = None
    item: Value = UNKNOWN

    @property
    def qualname(self) -> str:
        return "torch.Size" if self.type == "Size" else "builtins." + self.type

    @property
    def sure(self) -> Confidence:
        return Confidence.certain


@dataclass(frozen=True, slots=True)
class Mapping(Value):
    """A dict. `items` is None where the keys are unknown; `item` and `key` are then the joins of values and keys.

    `open`: it may hold more than `items`, as the `**kwargs` of a root does.
    """

    items: tuple[tuple[Value, Value], ...] | None = None
    key: Value = UNKNOWN
    item: Value = UNKNOWN
    open: bool = False

    @property
    def qualname(self) -> str:
        return "builtins.dict"

    @property
    def sure(self) -> Confidence:
        return Confidence.certain


@dataclass(frozen=True, slots=True)
class External(Value):
    """A module, function or class that is not the project's: "torch.nn.functional.relu", "random", "logging.Logger"."""

    name: str

    @property
    def qualname(self) -> str:
        return self.name

    @property
    def sure(self) -> Confidence:
        return Confidence.certain


@dataclass(frozen=True, slots=True)
class ExternalInstance(Value):
    """An instance of an external class, with its constructor's arguments: `nn.Linear(3, 4)`, `logging.getLogger()`."""

    cls: str
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    certain: Confidence = Confidence.certain

    @property
    def qualname(self) -> str:
        return self.cls

    @property
    def sure(self) -> Confidence:
        return self.certain


@dataclass(frozen=True, slots=True)
class Bound(Value):
    """A method of a value that is not the project's: `x.item`, `logger.warning`."""

    receiver: Value
    name: str

    @property
    def qualname(self) -> str:
        return f"{self.receiver.qualname}.{self.name}"

    @property
    def sure(self) -> Confidence:
        return self.receiver.sure


@dataclass(frozen=True, slots=True)
class Function(Value):
    """A function of the project. `definition` is an index entry, `closure` holds what it captured."""

    definition: Any
    receiver: Value | None = None
    closure: tuple[tuple[str, Value], ...] = ()
    # How it was wrapped: "disable", "compile", "script", "partial" ... outermost last.
    wrappers: tuple[str, ...] = ()

    @property
    def qualname(self) -> str:
        return self.definition.qualname

    @property
    def sure(self) -> Confidence:
        return Confidence.certain


@dataclass(frozen=True, slots=True)
class Partial(Value):
    function: Value
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()

    @property
    def qualname(self) -> str:
        return self.function.qualname

    @property
    def sure(self) -> Confidence:
        return self.function.sure


@dataclass(frozen=True, slots=True)
class Class(Value):
    """A class of the project."""

    definition: Any

    @property
    def qualname(self) -> str:
        return self.definition.qualname

    @property
    def sure(self) -> Confidence:
        return Confidence.certain


@dataclass(frozen=True, slots=True)
class Instance(Value):
    """An instance of a class of the project, told apart by the arguments it was made with (None: not seen)."""

    cls: Class
    args: tuple[Value, ...] | None = None
    keywords: tuple[tuple[str, Value], ...] = ()

    @property
    def qualname(self) -> str:
        return self.cls.qualname

    @property
    def sure(self) -> Confidence:
        return Confidence.certain


@dataclass(frozen=True, slots=True)
class Union(Value):
    """One of several, flat and without repeats. What rules see at an event is always one member."""

    members: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Module(Value):
    """A module of the project."""

    definition: Any

    @property
    def qualname(self) -> str:
        return self.definition.name

    @property
    def sure(self) -> Confidence:
        return Confidence.certain


def unbound(callee: Value) -> Value:
    """A method as the function of its class."""
    return External(callee.qualname) if isinstance(callee, Bound) else callee


def members(value: Value) -> tuple[Value, ...]:
    return value.members if type(value) is Union else (value,)


def present(value: Value) -> list[Value]:
    """The members that an operation can go on with: None would have raised."""
    return [v for v in members(value) if not v.is_none] or [value]


# Beyond this many alternatives a value is not followed: what it could be is then "anything".
WIDEST = 8


def join(*values: Value) -> Value:
    """One value that stands for all of these."""
    if len(values) == 1:
        return values[0]
    flat: dict[Value, None] = {}
    for value in values:
        for member in members(value):
            flat[member] = None
    if len(flat) == 1:
        return next(iter(flat))
    tensors = [v for v in flat if isinstance(v, Tensor)]
    if len(tensors) > 1:
        for v in tensors:
            del flat[v]
        flat[merge(tensors)] = None
    numbers = [
        v for v in flat if isinstance(v, Scalar) or (isinstance(v, Const) and type(v.value) in (int, float, str))
    ]
    if len(numbers) > 3:
        for n in numbers:
            del flat[n]
        flat.update(dict.fromkeys(widened(numbers)))
    if len(flat) == 1:
        return next(iter(flat))
    if not flat or len(flat) > WIDEST:
        return UNKNOWN
    return Union(tuple(flat))


def widened(numbers: list[Any]) -> list[Value]:
    """Constants and scalars of one type become a scalar of it."""
    found: dict[str, str] = {}
    for v in numbers:
        name = v.type if isinstance(v, Scalar) else type(v.value).__name__
        origin = v.origin if isinstance(v, Scalar) else "config"
        found[name] = origin if found.get(name, "config") == "config" else found[name]
    return [Scalar(name, origin) for name, origin in found.items()]


def merge(tensors: list[Tensor]) -> Tensor:
    """The tensor that is any of these: what they agree on."""

    def agreed(values: list[Any], otherwise: Any) -> Any:
        return values[0] if all(v == values[0] for v in values) else otherwise

    return Tensor(
        kind=agreed([t.kind for t in tensors], None),
        rank=agreed([t.rank for t in tensors], None),
        origin=agreed([t.origin for t in tensors], "op"),
        certain=min(t.certain for t in tensors),
        numpy=agreed([t.numpy for t in tensors], False),
        sized=any(t.sized for t in tensors),
        scripted=any(t.scripted for t in tensors),
    )
