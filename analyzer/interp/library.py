"""What is not the project's: builtins, torch and the rest, by the facts table and a few functions done by hand."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tlint.analyzer.interp import calls, expressions, narrowing, objects
from tlint.analyzer.interp.machine import Frame, Machine
from tlint.analyzer.interp.values import (
    FALSE,
    NONE,
    TRUE,
    UNKNOWN,
    Bound,
    Class,
    Const,
    External,
    ExternalInstance,
    Function,
    Instance,
    Mapping,
    Partial,
    Scalar,
    Sequence,
    Tensor,
    Union,
    Value,
    join,
    members,
    present,
)
from tlint.analyzer.model import Confidence
from tlint.rules.base import Fact

Args = tuple[Value, ...]
Keywords = tuple[tuple[str, Value], ...]

# What Dynamo answers while it compiles, and what these return when nobody scripts or traces.
FOLDED = {
    **dict.fromkeys(
        (
            "torch.compiler.is_compiling",
            "torch.compiler.is_dynamo_compiling",
            "torch._dynamo.is_compiling",
            "torch._dynamo.external_utils.is_compiling",
            "torch._utils.is_compiling",
        ),
        TRUE,
    ),
    **dict.fromkeys(
        (
            "torch.compiler.is_exporting",
            "torch.jit.is_scripting",
            "torch.jit.is_tracing",
            "torch._jit_internal.is_scripting",
            "torch.onnx.is_in_onnx_export",
            "torch.fx._symbolic_trace.is_fx_tracing",
            "torch.overrides.has_torch_function",
            "torch.overrides.has_torch_function_unary",
            "torch.overrides.has_torch_function_variadic",
        ),
        FALSE,
    ),
    "torch._C._get_tracing_state": NONE,
}
FOLDED_NAMES = {
    "typing.TYPE_CHECKING": FALSE,
    "typing_extensions.TYPE_CHECKING": FALSE,
    "torch.fx.is_fx_tracing": FALSE,
}


# Draws: what is computed from one alone is as random as it is.
DRAWS = frozenset(
    [
        f"torch.{n}"
        for n in (
            "rand",
            "randn",
            "randint",
            "randperm",
            "rand_like",
            "randn_like",
            "randint_like",
            "bernoulli",
            "normal",
        )
    ]
    + [
        f"random.{n}"
        for n in ("random", "uniform", "randint", "randrange", "gauss", "betavariate", "normalvariate", "getrandbits")
    ]
    + [
        f"numpy.random.{n}"
        for n in (
            "rand",
            "randn",
            "random",
            "uniform",
            "randint",
            "normal",
            "random_sample",
            "binomial",
            "beta",
            "poisson",
        )
    ]
)


def drawn(v: Value, name: str, breaks: bool) -> Value:
    """The result of a draw. One that is not traced leaves a plain number behind it, as `.item()` does."""
    if breaks and not isinstance(v, Tensor):
        return replace(v, origin="data") if isinstance(v, Scalar) else v
    match v:
        case Tensor():
            return replace(v, origin="random", certain=Confidence.certain)
        case Scalar():
            return replace(v, origin="random")
    if name.startswith("torch."):
        return Tensor(origin="random", certain=Confidence.certain)
    return Scalar("int" if name.endswith(("randint", "randrange", "getrandbits")) else "float", "random")


# Types of the facts table ---------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def parsed(text: str) -> tuple[str, tuple[Any, ...]]:
    """ "tuple[Tensor[int],None]" → ("tuple", (("Tensor", (("int", ()),)), ("None", ()))); "int|None" → ("|", …)."""
    choices = separated(text, "|")
    if len(choices) > 1:
        return "|", tuple(parsed(c) for c in choices)
    head, bracket, rest = text.strip().partition("[")
    return head, tuple(parsed(p) for p in separated(rest[:-1], ",")) if bracket else ()


def separated(text: str, by: str) -> list[str]:
    """The parts of a type between separators that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "[") - (c == "]")
        if c == by and not depth:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


# Over all dimensions, where none is given.
REDUCTIONS = frozenset(
    "all amax amin any argmax argmin count_nonzero max mean median min nanmean nansum norm prod std sum var".split()
)


def returned(fact: Fact | None, args: Args, keywords: Keywords, receiver: Value | None = None) -> Value:
    """What a call returns by the facts table."""
    if fact is None:
        return UNKNOWN
    text = fact.returns
    given = dict(keywords)
    for name, other in fact.returns_with.items():
        # Positional: of torch's own functions only `dim` is given so, right behind the tensor.
        position = args[0 if receiver is not None else 1 :][:1] if name == "dim" else ()
        value = given.get(name, position[0] if position else None)
        if (
            value is not None
            and not (isinstance(value, Const) and value.value in (None, False))
            and not value.is_tensor
        ):
            text = other
    value = typed(text, args, keywords, receiver)
    alone = not keywords and len(args) == (0 if receiver is not None else 1)
    if alone and isinstance(value, Tensor) and fact.name.rpartition(".")[2] in REDUCTIONS:
        return replace(value, rank=0)
    return value


def typed(text: str, args: Args = (), keywords: Keywords = (), receiver: Value | None = None) -> Value:
    """A value of a type as the facts table writes it, made by a call with these arguments."""
    if not text:
        return UNKNOWN
    tensors = [
        t
        for v in ((receiver,) if receiver is not None else ()) + args + tuple(v for _, v in keywords)
        for t in tensors_in(v)
    ]
    value = instantiate(parsed(text), tensors, receiver)
    if isinstance(value, Tensor) and value.origin == "numbers" and any(isinstance(a, Sequence) for a in args):
        return replace(value, origin="op")  # Dynamo keeps the values of single numbers only
    return value


def instantiate(kind: tuple[str, tuple[Any, ...]], tensors: list[Tensor], receiver: Value | None) -> Value:
    head, inner = kind
    match head:
        case "|":
            return join(*(instantiate(i, tensors, receiver) for i in inner))
        case "Tensor" | "ndarray":
            return Tensor(
                kind=dtype_class(inner, tensors),
                origin=origin_of_all(tensors),
                certain=min((t.certain for t in tensors), default=Confidence.certain),
                numpy=head == "ndarray",
                sized=any(t.sized for t in tensors),
            )
        case "scalar":
            return Scalar(dtype_class(inner, tensors) or "float", "data" if tensors else "config")
        case "tuple" if len(inner) == 2 and inner[1][0] == "...":
            return Sequence("tuple", None, instantiate(inner[0], tensors, receiver))
        case "tuple":
            return Sequence("tuple", tuple(instantiate(i, tensors, receiver) for i in inner))
        case "list" | "set" | "iterator":
            return Sequence(head, None, instantiate(inner[0], tensors, receiver) if inner else UNKNOWN)
        case "dict":
            return Mapping(None, UNKNOWN, instantiate(inner[-1], tensors, receiver) if inner else UNKNOWN)
        case "int" | "float" | "bool" | "str":
            return Scalar(head)
        case "None":
            return NONE
        case "Size":
            return Sequence("Size", None, Scalar("int", "shape"))
        case "self":
            return receiver if receiver is not None else UNKNOWN
        case "dtype" | "device":
            return ExternalInstance(f"torch.{head}")
    return ExternalInstance(head) if "." in head else UNKNOWN


def origin_of_all(tensors: list[Tensor]) -> str:
    """Drawn from drawn, and made of Python numbers alone where no tensor goes in."""
    origins = {t.origin for t in tensors} or {"numbers"}
    return origins.pop() if origins in ({"random"}, {"numbers"}) else "op"


def dtype_class(inner: tuple[Any, ...], tensors: list[Tensor]) -> str | None:
    """The class of dtype that "same" (as the first tensor), "number" (as sums: bool becomes int) or a name says."""
    name = inner[0][0] if inner else ""
    first = tensors[0].kind if tensors else None
    match name:
        case "":
            return None
        case "same":
            return first
        case "number":
            return "int" if first == "bool" else first
    return name


def tensors_in(v: Value, depth: int = 2) -> list[Tensor]:
    """The tensors among an argument, inside lists and tuples too."""
    match v:
        case Tensor():
            return [v]
        case Union():
            return [t for one in v.members for t in tensors_in(one, depth)]
        case Sequence() if depth:
            return [t for one in (v.items if v.items is not None else (v.item,)) for t in tensors_in(one, depth - 1)]
    return []


# Containers -----------------------------------------------------------------------------------------------------------


def values_of(v: Mapping) -> Value:
    return (join(*(value for _, value in v.items)) if v.items else UNKNOWN) if v.items is not None else v.item


def looked_up(v: Mapping, index: Value) -> Value:
    if v.items is not None:
        exact = dict(v.items).get(index)
        if exact is not None:
            return exact
        if v.open and (index.is_const or not v.items):
            return UNKNOWN
    values = list(members(values_of(v)))
    # One of several under a name that is not known: a tensor among them is only possible.
    return join(*(calls.doubted(x) for x in values)) if len(values) > 1 else values[0]


def together(v: Value) -> Value:
    """Several dicts that a name may stand for, as one: a key that only some of them have may be missing."""
    tables = [one for one in members(v) if isinstance(one, Mapping) and one.items is not None]
    if len(tables) < 2 or len(tables) < len(list(members(v))):
        return v
    keys = dict.fromkeys(key for table in tables for key, _ in table.items or ())
    items = tuple((key, join(*(dict(table.items or ()).get(key, UNKNOWN) for table in tables))) for key in keys)
    return Mapping(items, open=any(table.open for table in tables))


def element_of(m: Machine, v: Value) -> Value:
    """What walking over a value gives, without events."""
    results: list[Value] = []
    for one in present(v):
        match one:
            case Sequence(items=tuple() as items):
                results += items  # an empty one adds nothing to the others
            case Sequence():
                results.append(one.item)
            case Mapping(items=tuple() as items, open=False):
                results += [key for key, _ in items]
            case Mapping():
                results.append(one.key)
            case Tensor():
                results.append(indexed(one, Scalar("int")))
            case Const(value=str()) | Scalar(type="str"):
                results.append(Scalar("str"))
            case ExternalInstance(cls="torch.nn.ModuleList" | "torch.nn.Sequential" | "torch.nn.ParameterList"):
                inside = modules_in(one)
                if inside != Sequence("list", ()):
                    results.append(element_of(m, inside))
            case ExternalInstance(cls="torch.nn.ModuleDict" | "torch.nn.ParameterDict"):
                results.append(Scalar("str"))
            case _:
                results.append(UNKNOWN)
    return join(*results)


def modules_in(v: ExternalInstance) -> Value:
    """What a module container was made from, as one sequence or mapping."""
    if not v.cls.endswith(".Sequential"):
        empty = Mapping(()) if v.cls.endswith("Dict") else Sequence("list", ())
        return v.args[0] if v.args else v.keywords[0][1] if v.keywords else empty
    if len(v.args) == 1 and isinstance(v.args[0], Mapping):
        return Sequence("list", None, values_of(v.args[0]))
    if any(isinstance(a, Sequence) and a.type == "spread" for a in v.args):
        return Sequence(
            "list", None, join(*(a.item if isinstance(a, Sequence) and a.type == "spread" else a for a in v.args))
        )
    return Sequence("tuple", v.args)


CONTAINERS = tuple(
    f"torch.nn.{name}" for name in ("ModuleList", "Sequential", "ModuleDict", "ParameterList", "ParameterDict")
)


def refilled(v: ExternalInstance, inside: Sequence | Mapping) -> ExternalInstance:
    """A module container that holds something else now."""
    if isinstance(inside, Sequence) and v.cls.endswith(".Sequential"):
        return replace(v, args=inside.items if inside.items is not None else (Sequence("spread", None, inside.item),))
    return replace(v, args=(inside,), keywords=())


def iterated(m: Machine, f: Frame, v: Value, node: ast.AST) -> Value:
    """The element that a loop over the value binds; iterators of the project's classes are called."""
    results: list[Value] = []
    for one in present(v):
        if isinstance(one, Instance):
            results.append(objects.iterate_instance(m, f, one, node))
        elif isinstance(one, Class):
            results.append(UNKNOWN)
        else:
            results.append(element_of(m, one))
    return join(*results)


def indexed(v: Tensor, index: Value) -> Tensor:
    """A tensor indexed: a mask or an index tensor gives a size that may depend on data."""
    parts = (
        index.items if isinstance(index, Sequence) and index.type == "tuple" and index.items is not None else (index,)
    )
    masks = any(isinstance(p, Tensor) and p.kind == "bool" for one in parts for p in members(one))
    rank = v.rank
    if rank is not None:
        simple = [p for p in parts if isinstance(p, (Const, Scalar)) and not p.is_none]
        exact = all(isinstance(p, (Const, Scalar)) or (isinstance(p, Sequence) and p.type == "slice") for p in parts)
        rank = rank - sum(1 for p in simple if qual_is_int(p)) + sum(1 for p in parts if p.is_none) if exact else None
    return Tensor(v.kind, rank, v.origin if v.origin == "random" else "op", v.certain, v.numpy, v.sized or masks)


def qual_is_int(v: Const | Scalar) -> bool:
    return v.type == "int" if isinstance(v, Scalar) else type(v.value) is int


# isinstance -----------------------------------------------------------------------------------------------------------

BUILTIN_TYPES = {
    "builtins.list": ("list",),
    "builtins.tuple": ("tuple", "Size"),
    "builtins.set": ("set",),
    "collections.abc.Sequence": ("list", "tuple", "Size"),
    "typing.Sequence": ("list", "tuple", "Size"),
    "collections.abc.Iterable": ("list", "tuple", "Size", "set", "generator"),
    "typing.Iterable": ("list", "tuple", "Size", "set", "generator"),
    "typing.List": ("list",),
    "typing.Tuple": ("tuple", "Size"),
}
MAPPINGS = (
    "builtins.dict",
    "collections.OrderedDict",
    "collections.abc.Mapping",
    "typing.Mapping",
    "typing.Dict",
    "collections.abc.MutableMapping",
)
TENSORS = (
    "torch.Tensor",
    "torch.nn.Parameter",
    "torch.nn.parameter.Parameter",
    "torch.FloatTensor",
    "torch.LongTensor",
)
PYTHON = (
    "builtins.int",
    "builtins.float",
    "builtins.bool",
    "builtins.str",
    "numbers.Number",
    "numbers.Integral",
    "numbers.Real",
    "torch.SymInt",
)


def instance_of(m: Machine, v: Value, cls: Value) -> bool | None:
    """`isinstance(v, cls)` where it is certain, else None."""
    if isinstance(cls, Sequence) and cls.items is not None:
        answers = [instance_of(m, v, c) for c in cls.items]
        return True if True in answers else (None if None in answers else False)
    if isinstance(cls, Union) or isinstance(v, Union):
        each = {instance_of(m, a, b) for a in members(v) for b in members(cls)}
        return each.pop() if len(each) == 1 else None
    name = cls.qualname
    match v:
        case Tensor():
            if v.certain is Confidence.possible:
                return None
            if name == "torch.Tensor" and not v.numpy:
                return True
            if name == "numpy.ndarray":
                return v.numpy
            if (
                name in PYTHON
                or name in BUILTIN_TYPES
                or name in MAPPINGS
                or isinstance(cls, Class)
                or (v.numpy and name in TENSORS)
            ):
                return False
        case Const(value=value) if value is None or type(value) in (int, float, bool, str):
            if name in PYTHON:
                numeric = name.startswith("numbers.") and isinstance(value, (int, float))
                return numeric or name == v.qualname or (name == "builtins.int" and isinstance(value, bool))
            if (
                name in TENSORS
                or name in BUILTIN_TYPES
                or name in MAPPINGS
                or name == "numpy.ndarray"
                or isinstance(cls, Class)
            ):
                return False
        case Scalar(type=kind):
            if name == "builtins." + kind:
                return True
            if (
                name in TENSORS
                or name in MAPPINGS
                or name == "numpy.ndarray"
                or isinstance(cls, Class)
                or name in BUILTIN_TYPES
            ):
                return False
        case Sequence(type=kind):
            if name in BUILTIN_TYPES:
                return kind in BUILTIN_TYPES[name]
            if isinstance(cls, Class) and not any(isinstance(e, str) for e in objects.mro(m, cls.definition)):
                return False
            if name in TENSORS or name in PYTHON or name in MAPPINGS or name == "numpy.ndarray":
                return False
        case Mapping():
            if name in MAPPINGS:
                return True
            if name in TENSORS or name in PYTHON or name in BUILTIN_TYPES or name == "numpy.ndarray":
                return False
        case Function() | Partial():
            if name in (*TENSORS, *PYTHON, *BUILTIN_TYPES, *MAPPINGS, *objects.MODULE_NAMES) or isinstance(cls, Class):
                return False
        case Instance(cls=own):
            if isinstance(cls, Class):
                return cls.definition in objects.mro(m, own.definition)
            if name in TENSORS or name in PYTHON:
                return False
            if name == "torch.nn.Module":
                return objects.is_module(m, own.definition)
        case ExternalInstance():
            if name in TENSORS or name in PYTHON or name in BUILTIN_TYPES or isinstance(cls, Class):
                return False
            if name == m.facts.canonical(v.cls):
                return True
            if name == "torch.nn.Module" and m.facts.canonical(v.cls) in m.facts.modules:
                return True
    return None


def is_tensor_test(m: Machine, f: Frame, test: ast.Call) -> ast.expr | None:
    """The subject of `torch.is_tensor(x)`."""
    match test:
        case ast.Call(func=ast.Attribute(attr="is_tensor"), args=[subject]):
            return subject
    return None


# Builtins and functions done by hand ----------------------------------------------------------------------------------

Handler = Callable[[Machine, Frame, ast.AST, Args, Keywords], Value]


def first(args: Args) -> Value:
    return args[0] if args else UNKNOWN


def do_isinstance(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    answer = instance_of(m, args[0], args[1]) if len(args) == 2 else None
    return Scalar("bool") if answer is None else Const(answer)


def do_is_tensor(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    answer = instance_of(m, first(args), External("torch.Tensor"))
    return Scalar("bool") if answer is None else Const(answer)


def do_len(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    match first(args):
        case Sequence(items=tuple() as items) | Mapping(items=tuple() as items, open=False):
            return Const(len(items))
        case Instance() as instance:
            return objects.call_method(m, f, instance, "__len__", (), (), node)
    return Scalar("int", "shape")


def do_range(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    return Sequence("range", None, Scalar("int", expressions.origin_of(*args)))


def do_zip(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    return Sequence("iterator", None, Sequence("tuple", tuple(iterated(m, f, a, node) for a in args)))


def do_enumerate(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    return Sequence("iterator", None, Sequence("tuple", (Scalar("int"), iterated(m, f, first(args), node))))


def do_sequence(kind: str) -> Handler:
    def build(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
        if not args:
            return Sequence(kind, ())
        results: list[Value] = []
        for v in members(args[0]):
            if isinstance(v, Sequence) and v.items is not None:
                results.append(holding(kind, v.items))
            elif isinstance(v, Mapping) and v.items is not None and not v.open:
                results.append(Sequence(kind, tuple(k for k, _ in v.items)))
            else:
                results.append(Sequence(kind, None, iterated(m, f, v, node)))
        return join(*results)

    return build


def holding(kind: str, items: tuple[Value, ...]) -> Sequence:
    """A container of these. A set keeps each constant once; how many it keeps of other values is not known."""
    if kind != "set":
        return Sequence(kind, items)
    once = tuple(dict.fromkeys(items))
    return Sequence(kind, once) if all(i.is_const for i in once) else Sequence(kind, None, join(*once))


def do_dict(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    named = tuple((Const(k), v) for k, v in keywords)
    if not args:
        return Mapping(named)
    match args[0]:
        case Mapping(items=tuple() as items):
            return Mapping(tuple({**dict(items), **dict(named)}.items()), open=args[0].open)
        case Mapping() as source:
            return Mapping(None, source.key, join(source.item, *(v for _, v in named)))
        case Sequence() as pairs:
            pair = element_of(m, pairs)
            if isinstance(pair, Sequence) and pair.items is not None and len(pair.items) == 2:
                return Mapping(None, pair.items[0], pair.items[1])
    return Mapping(None, UNKNOWN, UNKNOWN)


def do_defaultdict(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    made = calls.call_value(m, f, first(args), (), (), node) if args else UNKNOWN
    return Mapping(None, UNKNOWN, made)


def do_number(kind: str) -> Handler:
    def build(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
        results: list[Value] = []
        for v in members(first(args)) if args else ():
            match v:
                case Tensor():
                    results.append(Scalar(kind, "data"))
                case Scalar(origin=origin):
                    results.append(Scalar(kind, origin))
                case _:
                    results.append(Scalar(kind))
        return join(*results) if results else Scalar(kind)

    return build


def do_bool(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    if not args:
        return FALSE
    operand = node.args[0] if isinstance(node, ast.Call) and node.args else node
    answer = narrowing.truth(m, f, args[0], operand, "bool")  # type: ignore[arg-type]
    return Scalar("bool", expressions.origin_of(*members(args[0]))) if answer is None else Const(answer)


def do_extreme(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    """min, max: of tensors and numbers Dynamo makes torch.minimum and torch.maximum."""
    values = [element_of(m, args[0])] if len(args) == 1 else list(args)
    if any(name == "key" for name, _ in keywords):
        compare_all(m, f, node, join(*values), keywords)
    flat = [v for value in values for v in members(value)]
    tensors = [v for v in flat if isinstance(v, Tensor)]
    if tensors:
        return functools.reduce(expressions.tensor_result, tensors)
    if flat and all(isinstance(v, (Scalar, Const)) for v in flat):
        kinds = {expressions.qual(v) for v in flat}  # type: ignore[arg-type]
        return Scalar(
            kinds.pop() if len(kinds) == 1 else "float" if "float" in kinds else "int", expressions.origin_of(*flat)
        )
    return join(*values)


def do_where(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    """torch.where: the indices where a condition given alone holds, else one of two values for each element."""
    chosen = [*args[1:], *(v for name, v in keywords if name in ("input", "self", "other"))]
    if len(chosen) < 2:
        return returned(m.facts.lookup("torch.where"), args, keywords)
    flat = [v for one in chosen for v in members(one)]
    numbers = [v for v in flat if isinstance(v, (Scalar, Const))]
    tensors = [v for v in flat if isinstance(v, Tensor)]
    all_of_them = tensors_in(first(args)) + tensors
    rest: list[Value] = [*tensors[1:], *numbers]
    return Tensor(
        functools.reduce(expressions.tensor_result, rest, tensors[0]).kind if tensors else None,
        None,
        origin_of_all(all_of_them),
        min((t.certain for t in all_of_them), default=Confidence.likely),
        sized=any(t.sized for t in all_of_them),
    )


def do_sum(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    return element_of(m, first(args))


def do_same(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    return first(args)


def do_abs(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    match first(args):
        case Tensor() as t:
            return Tensor(t.kind, t.rank, "random" if t.origin == "random" else "op", t.certain, t.numpy, t.sized)
        case Scalar() as s:
            return s
    return UNKNOWN


def do_quantified(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    """any, all: every element is tested."""
    element = element_of(m, first(args))
    if any(v.is_tensor for v in members(first(args))):
        return Scalar("bool")  # any(tensor) goes to torch.any
    # The call itself is the event: it is Python's own loop that tests the elements.
    answers = {narrowing.truth_of(m, v) for v in members(element)}
    known = args and isinstance(args[0], Sequence) and args[0].items is not None and len(args[0].items) == 1
    if known and len(answers) == 1 and None not in answers:
        return Const(answers.pop())
    return Scalar("bool", expressions.origin_of(*members(element)))


def do_sorted(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    element = iterated(m, f, first(args), node)
    compare_all(m, f, node, element, keywords)
    return Sequence("list", None, element)


def compare_all(m: Machine, f: Frame, node: ast.AST, element: Value, keywords: Keywords) -> None:
    """Elements are put in order by what they are, or by what `key` makes of them."""
    key = dict(keywords).get("key", NONE)
    for v in members(element if key.is_none else calls.call_value(m, f, key, (element,), (), node)):
        m.emit("branch", f, node, value=v, construct="sort")


def do_reversed(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    match first(args):
        case Sequence(items=tuple() as items):
            return Sequence("iterator", items[::-1])
    return Sequence("iterator", None, iterated(m, f, first(args), node))


def do_map(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    result = calls.call_value(m, f, first(args), tuple(iterated(m, f, a, node) for a in args[1:]), (), node)
    return Sequence("iterator", None, result)


def do_filter(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    if len(args) < 2:
        return UNKNOWN
    element = iterated(m, f, args[1], node)
    tested = element if args[0].is_none else calls.call_value(m, f, args[0], (element,), (), node)
    narrowing.truth(m, f, tested, node, "filter")  # type: ignore[arg-type]
    return Sequence("iterator", None, element)


def do_next(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    return join(iterated(m, f, first(args), node), *args[1:2])


def do_getattr(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    if len(args) >= 2 and isinstance(args[1], Const) and isinstance(args[1].value, str):
        value = objects.get_attribute(m, f, args[0], args[1].value, node)
        held = isinstance(args[0], Tensor) or in_torch(m, args[0], args[1].value)
        return join(value, args[2]) if len(args) == 3 and not held else value
    owners = [v for v in members(first(args)) if isinstance(v, Instance)]
    return join(*(objects.attributes_of(m, v).get(objects.NUMBERED, UNKNOWN) for v in owners)) if owners else UNKNOWN


def do_hasattr(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    match args:
        case (Const() | Scalar() | Sequence() as value, Const(value=str() as name)) if isinstance(
            value, (Const, Scalar)
        ):
            kind = expressions.qual(value)
            builtin = {"int": int, "float": float, "str": str, "bool": bool}.get(kind)
            return Const(hasattr(builtin, name)) if builtin is not None else Scalar("bool")
        case (Tensor(certain=sure, numpy=numpy), Const(value=str() as name)) if sure > Confidence.possible:
            method = f"torch.Tensor.{name}"
            if method in m.facts.callables:
                return TRUE
            # Dynamo asks the tensor that stands for an array, which has no `tobytes`.
            if numpy and f"numpy.ndarray.{name}" in m.facts.callables and method not in m.facts.attributes:
                return FALSE
        case (outer, Const(value=str() as name)) if in_torch(m, outer, name):
            return TRUE  # `hasattr(torch, "compiler")`
    return Scalar("bool")


def in_torch(m: Machine, v: Value, name: str) -> bool:
    """Whether a value is a module of torch that is known to have a name."""
    return isinstance(v, External) and v.name.partition(".")[0] == "torch" and f"{v.name}.{name}" in m.facts.names


def do_callable(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    answers = {is_callable(m, v) for v in members(first(args))}
    return Scalar("bool") if len(answers) > 1 or None in answers else Const(answers.pop())


def is_callable(m: Machine, v: Value) -> bool | None:
    match v:
        case Function() | Class() | Partial():
            return True
        case Const() | Scalar() | Sequence() | Mapping():
            return False
        case Tensor(certain=sure):
            return False if sure > Confidence.possible else None
        case Instance(cls=cls) if objects.is_module(m, cls.definition):
            return True
        case Instance(cls=cls):
            return objects.find_method(m, cls.definition, "__call__") is not None or None
        case ExternalInstance() if objects.is_layer(m, v):
            return True
    return None


def do_setattr(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    match args:
        case (Instance() as instance, name, value):
            known = name.value if isinstance(name, Const) and isinstance(name.value, str) else objects.NUMBERED
            objects.store_attribute(m, f, instance, known, value)
    return NONE


def do_super(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    if f.cls is None or f.receiver is None:
        return UNKNOWN
    return Bound(f.receiver, f"super:{f.cls.module.name}:{f.cls.qualname}")


def do_type(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    match args:
        case (Instance(cls=cls),):
            return cls
        case (v,) if v.qualname:
            return External(v.qualname)
    return UNKNOWN


def do_partial(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    return Partial(first(args), args[1:], keywords)


def do_wraps(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    return External("tlint.identity")


def do_checkpoint(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    own = ("use_reentrant", "context_fn", "determinism_check", "debug", "preserve_rng_state", "early_stop")
    return calls.call_value(m, f, first(args), args[1:], tuple((k, v) for k, v in keywords if k not in own), node)


def do_functional_call(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    inputs = args[2] if len(args) > 2 else UNKNOWN
    given = inputs.items if isinstance(inputs, Sequence) and inputs.items is not None else (inputs,)
    return calls.call_value(m, f, first(args), given, (), node)


def do_signature(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    return ExternalInstance("inspect.Signature", args)


def parameters_of(v: Value) -> Value:
    """`inspect.signature(f).parameters`: by name, through `functools.wraps`."""
    if not isinstance(v, Function):
        return Mapping(None, Scalar("str"), UNKNOWN)
    declared = v.definition.node.args
    inner = next((c for _, c in v.closure if isinstance(c, Function)), None)
    if declared.kwarg is not None and declared.vararg is not None and inner is not None:
        return parameters_of(inner)
    names = [p.arg for p in v.definition.parameters] + [
        p.arg for p in (declared.vararg, declared.kwarg) if p is not None
    ]
    return Mapping(tuple((Const(n), ExternalInstance("inspect.Parameter")) for n in names))


# Methods of constant strings that decide which way a record's names go.
TEXT_METHODS = frozenset(
    ("startswith", "endswith", "removeprefix", "removesuffix", "lower", "upper", "strip", "replace", "split", "isdigit")
)


def text_method(text: str, name: str, args: Args) -> Value:
    given = [plain(a) for a in args]
    if name not in TEXT_METHODS or any(g is None for g in given):
        return Scalar("bool") if name in ("startswith", "endswith", "isdigit") else Scalar("str")
    result = getattr(text, name)(*given)
    return Sequence("list", tuple(Const(r) for r in result)) if isinstance(result, list) else Const(result)


def plain(v: Value) -> str | tuple[str, ...] | None:
    match v:
        case Const(value=str() as text):
            return text
        case Sequence(items=tuple() as items) if all(isinstance(i, Const) and isinstance(i.value, str) for i in items):
            return tuple(i.value for i in items if isinstance(i, Const))
    return None


def do_cond(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    given = dict(keywords)
    operands = args[3] if len(args) > 3 else given.get("operands", Sequence("tuple", ()))
    inputs = operands.items if isinstance(operands, Sequence) and operands.items is not None else ()
    branches = tuple(args[i] if len(args) > i else given.get(n, UNKNOWN) for i, n in ((1, "true_fn"), (2, "false_fn")))
    results = tuple(calls.call_value(m, f, b, inputs, (), node) for b in branches)
    m.emit("traced", f, node, callee=External("torch.cond"), args=branches, value=Sequence("tuple", results))
    return join(*results)


def do_while_loop(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    given = dict(zip(("cond_fn", "body_fn", "carried_inputs"), args, strict=False)) | dict(keywords)
    carried = given.get("carried_inputs", UNKNOWN)
    inputs = carried.items if isinstance(carried, Sequence) and carried.items is not None else ()
    functions = (given.get("cond_fn", UNKNOWN), given.get("body_fn", UNKNOWN))
    results = tuple(calls.call_value(m, f, function, inputs, (), node) for function in functions)
    m.emit("traced", f, node, callee=External("torch.while_loop"), args=functions, value=Sequence("tuple", results[1:]))
    return results[1]


def do_scan(m: Machine, f: Frame, node: ast.AST, args: Args, keywords: Keywords) -> Value:
    given = dict(zip(("combine_fn", "init", "xs"), args, strict=False)) | dict(keywords)
    function = given.get("combine_fn", UNKNOWN)
    inputs = (given.get("init", UNKNOWN), element_of(m, given.get("xs", UNKNOWN)))
    result = calls.call_value(m, f, function, inputs, (), node)
    m.emit("traced", f, node, callee=External("torch.scan"), args=(function,), value=Sequence("tuple", (result,)))
    return result


HANDLERS: dict[str, Handler] = {
    "builtins.isinstance": do_isinstance,
    "torch.is_tensor": do_is_tensor,
    "builtins.len": do_len,
    "builtins.range": do_range,
    "builtins.zip": do_zip,
    "builtins.enumerate": do_enumerate,
    "builtins.list": do_sequence("list"),
    "builtins.tuple": do_sequence("tuple"),
    "builtins.set": do_sequence("set"),
    "builtins.frozenset": do_sequence("set"),
    "builtins.iter": do_sequence("iterator"),
    "builtins.dict": do_dict,
    "collections.OrderedDict": do_dict,
    "collections.defaultdict": do_defaultdict,
    "collections.deque": do_sequence("list"),
    "builtins.int": do_number("int"),
    "builtins.float": do_number("float"),
    "builtins.bool": do_bool,
    "builtins.min": do_extreme,
    "builtins.max": do_extreme,
    "builtins.sum": do_sum,
    "builtins.abs": do_abs,
    "builtins.round": do_abs,
    "builtins.any": do_quantified,
    "builtins.all": do_quantified,
    "builtins.sorted": do_sorted,
    "builtins.reversed": do_reversed,
    "builtins.map": do_map,
    "builtins.filter": do_filter,
    "builtins.next": do_next,
    "builtins.getattr": do_getattr,
    "builtins.hasattr": do_hasattr,
    "builtins.callable": do_callable,
    "builtins.setattr": do_setattr,
    "builtins.super": do_super,
    "builtins.type": do_type,
    "inspect.signature": do_signature,
    "functools.partial": do_partial,
    "functools.wraps": do_wraps,
    "tlint.identity": do_same,
    "typing.cast": lambda m, f, node, args, keywords: args[1] if len(args) > 1 else UNKNOWN,
    "copy.copy": do_same,
    "torch.where": do_where,
    "torch.utils.checkpoint.checkpoint": do_checkpoint,
    "torch.func.functional_call": do_functional_call,
    "torch.func.vmap": do_same,
    "torch.vmap": do_same,
    "torch.compiler.nested_compile_region": do_same,
    "torch.cond": do_cond,
    **dict.fromkeys(("torch.while_loop", "torch._higher_order_ops.while_loop"), do_while_loop),
    **dict.fromkeys(("torch.scan", "torch._higher_order_ops.scan"), do_scan),
    "dataclasses.replace": do_same,
}
