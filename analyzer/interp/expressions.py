"""Expressions: what they evaluate to, and what Dynamo would do on the way."""

from __future__ import annotations

import ast
import operator
import sys
from dataclasses import replace
from typing import Any

from tlint.analyzer.interp import calls, library, narrowing, objects
from tlint.analyzer.interp.machine import Evaluate, Frame, Machine
from tlint.analyzer.interp.values import (
    NONE,
    UNKNOWN,
    Const,
    ExternalInstance,
    Instance,
    Mapping,
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

KINDS = {"bool": 0, "int": 1, "float": 2, "complex": 3}


def evaluate(m: Machine, f: Frame, node: ast.expr | None) -> Value:
    if node is None:
        return NONE
    handler = HANDLERS.get(type(node))
    return handler(m, f, node) if handler is not None else UNKNOWN


def constant(m: Machine, f: Frame, node: ast.Constant) -> Value:
    return Const(node.value)


def name(m: Machine, f: Frame, node: ast.Name) -> Value:
    found = f.env.get(node.id)
    if found is not None:
        return found
    found = f.closure.get(node.id)
    if found is not None:
        return found
    return objects.global_value(m, f.module, node.id)


def attribute(m: Machine, f: Frame, node: ast.Attribute) -> Value:
    key = dotted(node)
    if key is not None and key in f.env:
        return f.env[key]
    value = evaluate(m, f, node.value)
    return objects.get_attribute(m, f, value, node.attr, node)


def dotted(node: ast.expr) -> str | None:
    """`self.block.mask` as text; None for anything but names and attributes of names."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def sequence(kind: str) -> Evaluate:
    def build(m: Machine, f: Frame, node: Any) -> Value:
        items: list[Value] = []
        known = True
        for element in node.elts:
            if isinstance(element, ast.Starred):
                inside = evaluate(m, f, element.value)
                if isinstance(inside, Sequence) and inside.items is not None:
                    items.extend(inside.items)
                else:
                    known = False
                    items.append(library.element_of(m, inside))
            else:
                items.append(evaluate(m, f, element))
        if kind == "set" and any(v.is_tensor for item in items for v in members(item)):
            m.emit("format", f, node, value=items[0], construct="set")
        if not known or len(items) > 32:
            return Sequence(kind, None, join(*items) if items else UNKNOWN)
        return library.holding(kind, tuple(items))

    return build


def mapping(m: Machine, f: Frame, node: ast.Dict) -> Value:
    items: list[tuple[Value, Value]] | None = []
    values: list[Value] = []
    for key, value in zip(node.keys, node.values, strict=True):
        v = evaluate(m, f, value)
        if key is None:
            if isinstance(v, Mapping) and v.items is not None and items is not None:
                items.extend(v.items)
            else:
                items = None
            values.append(v.item if isinstance(v, Mapping) else UNKNOWN)
            continue
        k = evaluate(m, f, key)
        values.append(v)
        if items is not None:
            items.append((k, v))
    if items is not None and len(items) <= 64:
        return Mapping(tuple(dict(items).items()))
    return Mapping(None, UNKNOWN, join(*values) if values else UNKNOWN)


def binary(m: Machine, f: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(m, f, node.left), evaluate(m, f, node.right)
    return join(*(operate(m, f, node, a, b, node.op) for a in present(left) for b in present(right)))


ARITHMETIC = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
DIVIDING = (ast.Div, ast.FloorDiv, ast.Mod)


def operate(m: Machine, f: Frame, node: ast.AST, a: Value, b: Value, op: ast.operator) -> Value:
    """The value of `a op b`."""
    if isinstance(op, ast.Mod) and isinstance(a, (Const, Scalar)) and text_like(a):
        for part in b.items if isinstance(b, Sequence) and b.items is not None else (b,):
            for value in members(part):
                m.emit("format", f, node, value=value, construct="%")
        return Scalar("str")
    if a.is_tensor or b.is_tensor:
        return tensor_result(a, b, "float" if isinstance(op, ast.Div) else None)
    if isinstance(a, Const) and isinstance(b, Const):
        return folded(a, b, op)
    if isinstance(a, Sequence) and isinstance(b, Sequence) and isinstance(op, ast.Add):
        if a.items is not None and b.items is not None and len(a.items) + len(b.items) <= 32:
            return Sequence(a.type, a.items + b.items)
        return Sequence(a.type, None, join(library.element_of(m, a), library.element_of(m, b)))
    if isinstance(a, Sequence) and isinstance(op, ast.Mult):
        if (
            a.items is not None
            and isinstance(b, Const)
            and isinstance(b.value, int)
            and 0 <= b.value * len(a.items) <= 32
        ):
            return Sequence(a.type, a.items * b.value)
        return Sequence(a.type, None, library.element_of(m, a))
    if isinstance(a, (Const, Scalar)) and isinstance(b, (Const, Scalar)):
        return number(a, b, op)
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Scalar) and not text_like(x) and not isinstance(y, (Sequence, Mapping)):
            return Scalar("float" if isinstance(op, ast.Div) else x.type, x.origin)
    return UNKNOWN


def text_like(v: Const | Scalar) -> bool:
    return isinstance(v.value, (str, bytes)) if isinstance(v, Const) else v.type == "str"


def folded(a: Const, b: Const, op: ast.operator) -> Value:
    """Arithmetic on small constants, so that indices and sizes stay known."""
    function = ARITHMETIC.get(type(op))
    if function is not None and type(a.value) in (int, float, str) and type(b.value) is type(a.value):
        if isinstance(a.value, str) and not isinstance(op, ast.Add):
            return Scalar("str")
        if isinstance(op, DIVIDING) and not b.value:
            return UNKNOWN
        return Const(function(a.value, b.value))
    return number(a, b, op)


def number(a: Const | Scalar, b: Const | Scalar, op: ast.operator) -> Value:
    if text_like(a) or text_like(b):
        return Scalar("str")
    types = [v.type if isinstance(v, Scalar) else type(v.value).__name__ for v in (a, b)]
    if any(t not in KINDS for t in types):
        return UNKNOWN
    result = "float" if isinstance(op, ast.Div) else max(*types, "int", key=lambda t: KINDS[t])
    return Scalar(result, origin_of(a, b))


def origin_of(*values: Value) -> str:
    """Where a number comes from: out of data if any part does, then drawn, then a shape."""
    origins = {v.origin for v in values if isinstance(v, Scalar)}
    return next((o for o in ("data", "random", "shape", "training") if o in origins), "config")


def tensor_result(a: Value, b: Value, kind: str | None = None) -> Tensor:
    """What an elementwise operation of two values gives, at least one of them a tensor."""
    tensors = [v for v in (a, b) if isinstance(v, Tensor)]
    kinds = [t.kind for t in tensors]
    if kind is None and len(tensors) == 2 and None not in kinds:
        kind = max(kinds, key=lambda k: KINDS[k])  # type: ignore[index]
    elif kind is None and len(tensors) == 1:
        other = b if a is tensors[0] else a
        floating = isinstance(other, (Scalar, Const)) and qual(other) == "float"
        kind = "float" if floating and kinds[0] in ("int", "bool", "float") else kinds[0]
    ranks = [t.rank for t in tensors]
    return Tensor(
        kind=kind,
        rank=None if None in ranks else max(r for r in ranks if r is not None),
        origin=library.origin_of_all(tensors),
        certain=min(t.certain for t in tensors),
        numpy=all(t.numpy for t in tensors),
        sized=any(t.sized for t in tensors),
    )


def qual(v: Const | Scalar) -> str:
    return v.type if isinstance(v, Scalar) else type(v.value).__name__


def unary(m: Machine, f: Frame, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        answer = narrowing.test(m, f, node.operand, "not")
        return Scalar("bool") if answer is None else Const(not answer)
    value = evaluate(m, f, node.operand)
    results: list[Value] = []
    for v in members(value):
        match v:
            case Tensor():
                results.append(
                    Tensor(v.kind, v.rank, "random" if v.origin == "random" else "op", v.certain, v.numpy, v.sized)
                )
            case Const(value=int() | float() as number) if isinstance(node.op, ast.USub):
                results.append(Const(-number))
            case Scalar():
                results.append(v)
            case _:
                results.append(UNKNOWN)
    return join(*results)


def boolean(m: Machine, f: Frame, node: ast.BoolOp) -> Value:
    """`and`, `or`: every operand but the last is tested; what is learnt from it holds for the next."""
    construct = "and" if isinstance(node.op, ast.And) else "or"
    wanted = isinstance(node.op, ast.And)
    env = f.env
    f.env = dict(env)
    held = len(f.conditions)
    results: list[Value] = []
    try:
        for i, operand in enumerate(node.values):
            value = evaluate(m, f, operand)
            if i == len(node.values) - 1:
                results.append(value)
                break
            truth = narrowing.truth(m, f, value, operand, construct)
            if truth is not None and truth is not wanted:
                results.append(value)
                break
            if truth is None:
                results.append(narrowing.assuming(value, not wanted))
                f.conditions.append((operand, wanted))
            narrowing.refine(m, f, operand, wanted)
    finally:
        del f.conditions[held:]
        f.env = env
    return join(*results)


def compare(m: Machine, f: Frame, node: ast.Compare) -> Value:
    left = evaluate(m, f, node.left)
    results: list[Value] = []
    for i, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
        right = evaluate(m, f, right_node)
        result = join(*(compared(a, b, op, m) for a in members(left) for b in members(right)))
        if isinstance(op, (ast.In, ast.NotIn)) and any(v.is_tensor for v in members(right)):
            m.emit("branch", f, right_node, value=next(v for v in members(right) if v.is_tensor), construct="in")
        if i < len(node.ops) - 1:
            # a < b < c tests the truth of a < b
            narrowing.truth(m, f, result, node, "and")
        results.append(result)
        left = right
    return results[-1] if len(results) == 1 else join(*results)


COMPARE = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def compared(a: Value, b: Value, op: ast.cmpop, m: Machine) -> Value:
    match op:
        case ast.Is() | ast.IsNot():
            same = narrowing.identical(a, b)
            return Scalar("bool") if same is None else Const(same is isinstance(op, ast.Is))
        case ast.In() | ast.NotIn():
            inside = narrowing.contains(a, b)
            return Scalar("bool", origin_of(a)) if inside is None else Const(inside is isinstance(op, ast.In))
    if a.is_tensor or b.is_tensor:
        if a.is_none or b.is_none:
            return Const(isinstance(op, ast.NotEq))
        if any(isinstance(v, (Const, Scalar)) and text_like(v) for v in (a, b)):
            return Scalar("bool")  # no tensor equals a string: Python says so, whatever it holds
        return tensor_result(a, b, "bool")
    if isinstance(a, Const) and isinstance(b, Const) and type(op) in COMPARE:
        comparable = type(a.value) is type(b.value) and type(a.value) in (int, float, str, bool)
        if comparable or isinstance(op, (ast.Eq, ast.NotEq)):
            return Const(bool(COMPARE[type(op)](a.value, b.value)))
    return Scalar("bool", origin_of(a, b))


def conditional(m: Machine, f: Frame, node: ast.IfExp) -> Value:
    truth = narrowing.test(m, f, node.test, "ifexp")
    results = []
    for wanted, branch in ((True, node.body), (False, node.orelse)):
        if truth is None or truth is wanted:
            env, f.env = f.env, dict(f.env)
            narrowing.refine(m, f, node.test, wanted)
            if truth is None:
                f.conditions.append((node.test, wanted))
            results.append(evaluate(m, f, branch))
            if truth is None:
                f.conditions.pop()
            f.env = env
    return join(*results)


def subscript(m: Machine, f: Frame, node: ast.Subscript) -> Value:
    value = evaluate(m, f, node.value)
    index = index_value(m, f, node.slice)
    return join(*(item(m, f, node, v, index) for v in present(value)))


def index_value(m: Machine, f: Frame, node: ast.expr) -> Value:
    """An index; slices become `Sequence("slice", (start, stop, step))` and stay inside a tuple."""
    match node:
        case ast.Slice():
            return Sequence("slice", tuple(evaluate(m, f, part) for part in (node.lower, node.upper, node.step)))
        case ast.Tuple():
            return Sequence("tuple", tuple(index_value(m, f, e) for e in node.elts))
    return evaluate(m, f, node)


def item(m: Machine, f: Frame, node: ast.Subscript, v: Value, index: Value) -> Value:
    """`v[index]` for one member of what is indexed."""
    match v:
        case Tensor():
            if not v.certain and isinstance(index, Sequence) and any(of_type(i) == "slice" for i in index.items or ()):
                v = replace(v, certain=Confidence.likely)  # `x[:, 0]`
                objects.told(f, node.value)
            for one in members(index):
                m.emit("subscript", f, node, value=v, index=one)
            return library.indexed(v, index)
        case Sequence(type="slice"):
            return UNKNOWN
        case Sequence(items=tuple() as items):
            match index:
                case Const(value=int() as i) if -len(items) <= i < len(items):
                    return items[i]
                case Sequence(type="slice", items=(Const(value=low), Const(value=high), Const(value=step))) if all(
                    x is None or isinstance(x, int) for x in (low, high, step)
                ):
                    return Sequence(v.type, items[low:high:step])
                case Sequence(type="slice"):
                    return Sequence(v.type, None, library.element_of(m, v))
            for one in members(index):
                if one.is_tensor:
                    m.emit("subscript", f, node, value=v, index=one)
            return library.element_of(m, v)
        case Sequence():
            for one in members(index):
                if one.is_tensor:
                    m.emit("subscript", f, node, value=v, index=one)
            return v if isinstance(index, Sequence) and index.type == "slice" else v.item
        case Mapping():
            return library.looked_up(v, index)
        case Const(value=str()) | Scalar(type="str"):
            return Scalar("str")
    return objects.get_item(m, f, node, v, index)


def formatted(m: Machine, f: Frame, node: ast.JoinedStr) -> Value:
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = evaluate(m, f, part.value)
            for v in members(value):
                if v.is_tensor:
                    m.emit("format", f, part.value, value=v, construct="f-string")
    return Scalar("str")


def comprehension(kind: str) -> Evaluate:
    def build(m: Machine, f: Frame, node: Any) -> Value:
        env = f.env
        f.env = dict(env)
        held = len(f.conditions)
        known: tuple[Value, ...] | None = None
        try:
            for i, generator in enumerate(node.generators):
                iterable = evaluate(m, f, generator.iter)
                for v in members(iterable):
                    m.emit("iterate", f, generator.iter, value=v, construct="comprehension")
                element = library.iterated(m, f, iterable, generator.iter)
                simple = len(node.generators) == 1 and not generator.ifs
                if (
                    i == 0
                    and simple
                    and isinstance(iterable, Sequence)
                    and iterable.items is not None
                    and len(iterable.items) <= 8
                ):
                    known = iterable.items
                if i == 0 and not f.silent:
                    set_apart(m, f, node, kind, iterable)
                bind(m, f, generator.target, element)
                for test in generator.ifs:
                    if narrowing.test(m, f, test, "comprehension") is None:
                        f.conditions.append((test, True))
                    narrowing.refine(m, f, test, True)
            if kind == "dict":
                return Mapping(None, evaluate(m, f, node.key), evaluate(m, f, node.value))
            if known is not None and kind in ("list", "generator") and not any(isinstance(v, Union) for v in known):
                results = []
                for v in known:
                    bind(m, f, node.generators[0].target, v)
                    results.append(evaluate(m, f, node.elt))
                return Sequence(kind, tuple(results))
            element = evaluate(m, f, node.elt)
            if kind == "set" and any(v.is_tensor for v in members(element)):
                m.emit("format", f, node, value=element, construct="set")
            return Sequence(kind, None, element)
        finally:
            del f.conditions[held:]
            f.env = env

    return build


def set_apart(m: Machine, f: Frame, node: Any, kind: str, iterable: Value) -> None:
    """Note a comprehension that Dynamo cannot enter by itself: up to Python 3.11 it is a function, given an iterator.

    Dynamo advances iterators of tuples, ranges and tensors only (2.13, 2.14), and leaves frames alone in which no local
    value holds a tensor or a module. Generators it never enters.
    """
    if sys.version_info >= (3, 12) or kind == "generator":
        return
    displayed = isinstance(node.generators[0].iter, (ast.List, ast.Tuple))  # of these the compiler makes a tuple
    if displayed or all(
        v.is_tensor or v is UNKNOWN or of_type(v) in ("tuple", "range", "Size") for v in members(iterable)
    ):
        return
    outside = set(ast.walk(node.generators[0].iter))  # evaluated before the comprehension is entered
    named = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n not in outside]
    names = {n.id for n in named} - {n.id for n in named if isinstance(n.ctx, ast.Store)}
    if any(holds_tensors(m, value) for name in names if (value := f.env.get(name, f.closure.get(name))) is not None):
        f.apart.append((node, f.statement))
        if f.lost:
            calls.entered_apart(m, f, node, f.statement)


def of_type(v: Value) -> str:
    return v.type if isinstance(v, Sequence) else ""


def holds_tensors(m: Machine, v: Value) -> bool:
    match v:
        case Tensor():
            return True
        case Instance() | ExternalInstance():
            return objects.is_layer(m, v)
        case Union():
            return any(holds_tensors(m, one) for one in v.members)
        case Sequence():
            return any(holds_tensors(m, one) for one in (v.items if v.items is not None else (v.item,)))
        case Mapping():
            return holds_tensors(m, library.values_of(v))
    return False


def walrus(m: Machine, f: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(m, f, node.value)
    bind(m, f, node.target, value)
    return value


def make_lambda(m: Machine, f: Frame, node: ast.Lambda) -> Value:
    return objects.make_function(m, f, node, "<lambda>")


def starred(m: Machine, f: Frame, node: ast.Starred) -> Value:
    return evaluate(m, f, node.value)


def yielded(m: Machine, f: Frame, node: ast.Yield) -> Value:
    f.yields.append(evaluate(m, f, node.value))
    return UNKNOWN


def yielded_from(m: Machine, f: Frame, node: ast.YieldFrom) -> Value:
    value = evaluate(m, f, node.value)
    f.yields.append(library.element_of(m, value))
    return UNKNOWN


def awaited(m: Machine, f: Frame, node: ast.Await) -> Value:
    return evaluate(m, f, node.value)


def bind(m: Machine, f: Frame, target: ast.expr, value: Value) -> None:
    """Assign to a target."""
    match target:
        case ast.Name(id=name):
            f.env[name] = objects.unsettled(value) if name in f.shared else value
            prefix = name + "."
            for key in [k for k in f.env if k.startswith(prefix)]:
                del f.env[key]
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            unpack(m, f, target, targets, value)
        case ast.Starred(value=inner):
            bind(m, f, inner, value)
        case ast.Attribute():
            objects.set_attribute(m, f, target, value)
        case ast.Subscript():
            store_item(m, f, target, value)


def unpack(m: Machine, f: Frame, node: ast.expr, targets: list[ast.expr], value: Value) -> None:
    """Each of the values that it can be gives its own parts."""
    starred = any(isinstance(t, ast.Starred) for t in targets)
    parts: list[tuple[Value, ...]] = []
    for v in members(value):
        if isinstance(v, Sequence) and v.items is not None and not starred and len(v.items) == len(targets):
            parts.append(v.items)
        else:
            m.emit("iterate", f, node, value=v, construct="unpack")
            parts.append((library.iterated(m, f, v, node),) * len(targets))
    for target, values in zip(targets, zip(*parts, strict=True), strict=True):
        one = join(*values)
        bind(m, f, target, Sequence("list", None, one) if isinstance(target, ast.Starred) else one)


def store_item(m: Machine, f: Frame, target: ast.Subscript, value: Value) -> None:
    container = evaluate(m, f, target.value)
    index = index_value(m, f, target.slice)
    for v in members(container):
        if v.is_tensor:
            for one in members(index):
                m.emit("subscript", f, target, value=v, index=one, stored=value, store=True)
    key = dotted(target.value)
    changed = with_item(m, f, container, index, value)
    if key is None or changed is None:
        return
    outside = f.function is None or (key not in f.env and key not in f.closure)
    if f.silent and outside and isinstance(target.value, ast.Name):
        objects.rebound(m, f, target.value.id, changed)
    f.env[key] = changed
    if isinstance(target.value, ast.Attribute):
        objects.set_attribute(m, f, target.value, changed)


def with_item(m: Machine, f: Frame, container: Value, index: Value, value: Value) -> Value | None:
    """A container after `container[index] = value`; None for what is not followed."""
    match container:
        case Mapping(items=tuple() as items) if isinstance(index, Const):
            held = dict(items)
            # Under a condition the key may be missing still: UNKNOWN says so.
            held[index] = join(held.get(index, UNKNOWN), value) if f.branches else value
            return Mapping(tuple(held.items()), open=container.open)
        case Mapping(items=tuple() as items) if items:
            return Mapping(
                items, open=True
            )  # under a name that is not known: what is held stays what it most likely is
        case Mapping():
            return Mapping(None, join(container.key, index), join(library.values_of(container), value))
        case Sequence(type="list", items=tuple() as items):
            return Sequence("list", tuple(join(i, value) for i in items))
        case Sequence(type="list"):
            return Sequence("list", None, join(library.element_of(m, container), value))
        case ExternalInstance(cls=cls) if cls in library.CONTAINERS:
            inside = with_item(m, f, library.modules_in(container), index, value)
            return library.refilled(container, inside) if isinstance(inside, (Sequence, Mapping)) else None
    return None


def called(m: Machine, f: Frame, node: ast.Call) -> Value:
    return calls.call(m, f, node)


HANDLERS: dict[type, Evaluate] = {
    ast.Constant: constant,
    ast.Name: name,
    ast.Attribute: attribute,
    ast.Call: called,
    ast.Tuple: sequence("tuple"),
    ast.List: sequence("list"),
    ast.Set: sequence("set"),
    ast.Dict: mapping,
    ast.BinOp: binary,
    ast.UnaryOp: unary,
    ast.BoolOp: boolean,
    ast.Compare: compare,
    ast.IfExp: conditional,
    ast.Subscript: subscript,
    ast.Slice: index_value,
    ast.JoinedStr: formatted,
    ast.ListComp: comprehension("list"),
    ast.SetComp: comprehension("set"),
    ast.GeneratorExp: comprehension("generator"),
    ast.DictComp: comprehension("dict"),
    ast.NamedExpr: walrus,
    ast.Lambda: make_lambda,
    ast.Starred: starred,
    ast.Yield: yielded,
    ast.YieldFrom: yielded_from,
    ast.Await: awaited,
}
