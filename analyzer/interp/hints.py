"""Annotations as hints: what a parameter or attribute that is declared so would hold."""

from __future__ import annotations

import ast
import functools

from tlint.analyzer.interp import expressions, objects
from tlint.analyzer.interp.machine import Frame, Machine
from tlint.analyzer.interp.values import (
    NONE,
    UNKNOWN,
    Class,
    External,
    ExternalInstance,
    Instance,
    Mapping,
    Scalar,
    Sequence,
    Tensor,
    Value,
    join,
)
from tlint.analyzer.model import Confidence

DTYPES = {
    "torch.FloatTensor": "float",
    "torch.HalfTensor": "float",
    "torch.DoubleTensor": "float",
    "torch.LongTensor": "int",
    "torch.IntTensor": "int",
    "torch.BoolTensor": "bool",
    "torch.ByteTensor": "int",
}
JAXTYPING = {
    "Float": "float",
    "Int": "int",
    "Integer": "int",
    "Bool": "bool",
    "Complex": "complex",
    "Shaped": None,
    "Num": None,
}
LISTS = (
    "builtins.list",
    "typing.List",
    "typing.Sequence",
    "collections.abc.Sequence",
    "typing.Iterable",
    "collections.abc.Iterable",
    "collections.abc.Collection",
)
DICTS = (
    "builtins.dict",
    "typing.Dict",
    "typing.Mapping",
    "collections.abc.Mapping",
    "collections.OrderedDict",
    "typing.MutableMapping",
)


@functools.lru_cache(maxsize=8192)
def parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None


def value_of(m: Machine, f: Frame, node: ast.expr | None) -> Value:
    """The value that an annotation promises; UNKNOWN where it says nothing."""
    match node:
        case None:
            return UNKNOWN
        case ast.Constant(value=None):
            return NONE
        case ast.Constant(value=str() as text):
            return value_of(m, f, parsed(text))
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return join(value_of(m, f, left), value_of(m, f, right))
        case ast.Subscript(value=outer, slice=inner):
            return generic(m, f, outer, inner)
        case ast.Name() | ast.Attribute():
            return plain(m, f, expressions.evaluate(m, f, node))
    return UNKNOWN


def plain(m: Machine, f: Frame, named: Value) -> Value:
    name = named.qualname
    if name in ("torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter"):
        return Tensor(origin="input", certain=Confidence.certain)
    if name in DTYPES:
        return Tensor(DTYPES[name], origin="input", certain=Confidence.certain)
    if name == "numpy.ndarray":
        return Tensor(origin="input", certain=Confidence.certain, numpy=True)
    if name in ("builtins.int", "builtins.float", "builtins.bool", "builtins.str"):
        return Scalar(name.partition(".")[2])
    if name in LISTS or name == "builtins.tuple":
        return Sequence("tuple" if name == "builtins.tuple" else "list", None, UNKNOWN)
    if name in DICTS:
        return Mapping(None, UNKNOWN, UNKNOWN)
    if name in ("torch.Size",):
        return Sequence("Size", None, Scalar("int", "shape"))
    if isinstance(named, Class):
        return Instance(named, None)
    if isinstance(named, External) and "." in name and not name.startswith(("typing.", "builtins.", "collections.")):
        return ExternalInstance(name, certain=Confidence.likely)
    return UNKNOWN


def generic(m: Machine, f: Frame, outer: ast.expr, inner: ast.expr) -> Value:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    origin = expressions.evaluate(m, f, outer)
    name = origin.qualname
    last = name.rpartition(".")[2]
    if name in ("typing.Optional",):
        return join(value_of(m, f, parts[0]), NONE)
    if name in ("typing.Union",):
        return join(*(value_of(m, f, p) for p in parts))
    if name in ("typing.Annotated", "typing.Final", "typing.ClassVar", "typing.Required", "typing.NotRequired"):
        return value_of(m, f, parts[0])
    if name.startswith("jaxtyping.") and last in JAXTYPING:
        return Tensor(JAXTYPING[last], origin="input", certain=Confidence.certain)
    if name in LISTS:
        return Sequence("list", None, value_of(m, f, parts[0]))
    if name in ("builtins.tuple", "typing.Tuple"):
        if len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is ...:
            return Sequence("tuple", None, value_of(m, f, parts[0]))
        return Sequence("tuple", tuple(value_of(m, f, p) for p in parts))
    if name in DICTS and len(parts) == 2:
        return Mapping(None, value_of(m, f, parts[0]), value_of(m, f, parts[1]))
    if name in ("builtins.set", "typing.Set"):
        return Sequence("set", None, value_of(m, f, parts[0]))
    if isinstance(origin, Class):
        return Instance(origin, None)
    return UNKNOWN


def parameter(m: Machine, f: Frame, annotation: ast.expr | None, default: ast.expr | None, tensors: bool) -> Value:
    """What an argument holds that nobody passed: its annotation, else its default, else (of a `forward`) a tensor.

    Configuration is not folded: a default says the type, not the value.
    """
    hint = value_of(m, f, annotation)
    given = objects.soften(expressions.evaluate(m, f, default)) if default is not None else None
    if hint is not UNKNOWN:
        return join(hint, given) if given is not None and given.is_none else hint
    if given is None:
        return Tensor(origin="input", certain=Confidence.likely) if tensors and annotation is None else UNKNOWN
    if given.is_none:
        return join(NONE, Tensor(origin="input", certain=Confidence.possible)) if tensors else UNKNOWN
    return Scalar("str") if isinstance(given, type(NONE)) and isinstance(given.value, str) else given
