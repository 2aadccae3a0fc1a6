"""Truth of values, and what a test that holds says of the names in it.

Only what is certain is folded: a wrong fold would silence a whole branch.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from tlint.analyzer.interp import expressions, library, objects
from tlint.analyzer.interp.machine import Frame, Machine
from tlint.analyzer.interp.values import (
    UNKNOWN,
    Bound,
    Class,
    Const,
    External,
    ExternalInstance,
    Function,
    Instance,
    Mapping,
    Module,
    Partial,
    Scalar,
    Sequence,
    Tensor,
    Value,
    join,
    members,
)
from tlint.analyzer.model import Confidence

# The whole of what an `assert` tests (of `a and b`, its last operand), and what is a jump of its own before it.
ASSERTED = ("assert", "asserted")


def test(m: Machine, f: Frame, node: ast.expr, construct: str) -> bool | None:
    """Whether the expression that a statement tests is true, or None. `and`, `or` and `not` are jumps, not values."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = test(m, f, operand, "asserted" if construct in ASSERTED else "not")
            return None if inner is None else not inner
        case ast.BoolOp(op=op, values=operands):
            wanted = isinstance(op, ast.And)
            word = "asserted" if construct in ASSERTED else "and" if wanted else "or"
            answer: bool | None = wanted
            env, held = f.env, len(f.conditions)
            f.env = dict(env)
            for i, operand in enumerate(operands):
                one = test(m, f, operand, construct if i == len(operands) - 1 else word)
                if one is not None and one is not wanted:
                    answer = one
                    break
                if one is None:
                    answer = None
                    f.conditions.append((operand, wanted))
                refine(m, f, operand, wanted)
            del f.conditions[held:]
            f.env = env
            return answer
    return truth(m, f, expressions.evaluate(m, f, node), node, construct)


def truth(m: Machine, f: Frame, value: Value, node: ast.expr, construct: str) -> bool | None:
    """Whether a tested value is true, or None; a test that Dynamo cannot answer is an event."""
    found: set[bool | None] = set()
    for v in members(value):
        if isinstance(v, Tensor) or (isinstance(v, Scalar) and v.origin in ("data", "random")):
            m.emit("branch", f, node, value=v, construct=construct)
            found.add(None)
        else:
            found.add(truth_of(m, v))
    return found.pop() if len(found) == 1 else None


def truth_of(m: Machine, v: Value) -> bool | None:
    match v:
        case Const(value=value):
            return bool(value)
        case Mapping(items=tuple() as items) if items and all(UNKNOWN in members(value) for _, value in items):
            return None  # each set under a condition
        case Sequence(items=tuple() as items) | Mapping(items=tuple() as items, open=False):
            return bool(items)
        case Function() | Class() | Module() | Partial() | External():
            return True
        case Instance(cls=cls):
            return None if any(objects.find_method(m, cls.definition, n) for n in ("__bool__", "__len__")) else True
    return None


def assuming(value: Value, wanted: bool) -> Value:
    """The members that can be true (or false)."""
    kept = [v for v in members(value) if could_be(v, wanted)]
    return join(*kept) if kept else value


def could_be(v: Value, wanted: bool) -> bool:
    match v:
        case Mapping(items=tuple() as items) if items and all(UNKNOWN in members(value) for _, value in items):
            return True
        case Const(value=value):
            return bool(value) is wanted
        case Sequence(items=tuple() as items) | Mapping(items=tuple() as items, open=False):
            return bool(items) is wanted
        case Function() | Class() | Module() | Partial() | External():
            return wanted
    return True


def identical(a: Value, b: Value) -> bool | None:
    """`a is b`."""
    if a.is_none or b.is_none:
        return True if a.is_none and b.is_none else (False if never_none(b if a.is_none else a) else None)
    match a, b:
        case Const(value=bool() as x), Const(value=bool() as y):
            return x is y
        case (Class() | Function() | Module(), Class() | Function() | Module()):
            return a == b if type(a) is type(b) else False
        case External(name=x), External(name=y):
            return x == y if x.startswith("torch.") and y.startswith("torch.") else None
    return None


def never_none(v: Value) -> bool:
    match v:
        case Tensor():
            return v.certain > Confidence.possible
        case (
            Const()
            | Scalar()
            | Sequence()
            | Mapping()
            | Function()
            | Class()
            | Instance()
            | Module()
            | Partial()
            | ExternalInstance()
        ):
            return True
        case Bound(receiver=Tensor()):
            return True
        case External(name=name):
            return name.startswith("torch.")
    return False


def contains(a: Value, b: Value) -> bool | None:
    """`a in b`, for a constant in a container whose contents are all known."""
    if not isinstance(a, Const):
        return None
    match b:
        case Sequence(items=tuple() as items) if all(isinstance(i, Const) for i in items):
            return a in items
        case Mapping(items=tuple() as items) if all(isinstance(k, Const) for k, _ in items):
            found = dict(items).get(a)
            if found is None:
                return None if b.open else False
            return None if UNKNOWN in members(found) else True  # set under a condition
    return None


def refine(m: Machine, f: Frame, test: ast.expr, wanted: bool) -> None:
    """Narrow the names in a test to what they can be where it is true (or false)."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            refine(m, f, inner, not wanted)
        case ast.BoolOp(op=op, values=values):
            if isinstance(op, ast.And) is wanted:
                for value in values:
                    refine(m, f, value, wanted)
        case ast.NamedExpr(target=target):
            refine(m, f, target, wanted)
        case ast.Name() | ast.Attribute():
            keep(m, f, test, lambda v: could_be(v, wanted))
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[right]):
            same = isinstance(op, ast.Is) is wanted
            other = quietly(m, f, right)
            if other.is_const:
                keep(m, f, left, lambda v: identical(v, other) in (None, same))
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value=constant)]):
            if isinstance(op, ast.Eq) is wanted:
                keep(m, f, left, lambda v: not isinstance(v, Const) or v == Const(constant))
        case ast.Call(func=ast.Name(id="isinstance"), args=[subject, kind]):
            cls = quietly(m, f, kind)
            keep(m, f, subject, lambda v: library.instance_of(m, v, cls) in (None, wanted))
        case ast.Call(func=ast.Name(id="callable"), args=[subject]):
            keep(m, f, subject, lambda v: library.is_callable(m, v) in (None, wanted))
        case ast.Call() if (fact := library.is_tensor_test(m, f, test)) is not None:
            keep(m, f, fact, lambda v: v.is_tensor is wanted)


def keep(m: Machine, f: Frame, subject: ast.expr, possible: Callable[[Value], bool]) -> None:
    """Keep of what a name may be only what is possible."""
    key = expressions.dotted(subject.target if isinstance(subject, ast.NamedExpr) else subject)
    if key is None:
        return
    value = quietly(m, f, subject)
    kept = [v for v in members(value) if possible(v)]
    if kept and len(kept) < len(members(value)):
        f.env[key] = join(*kept)


def quietly(m: Machine, f: Frame, node: ast.expr) -> Value:
    """Evaluate without events: for looking at an operand again."""
    if isinstance(node, ast.NamedExpr):
        node = node.target
    silent, f.silent = f.silent, True
    try:
        return expressions.evaluate(m, f, node)
    finally:
        f.silent = silent
