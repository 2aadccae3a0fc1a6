"""Statements: how control goes on, and what holds on each way."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tlint.analyzer.index import FunctionDef
from tlint.analyzer.index.definitions import class_of, own_nodes
from tlint.analyzer.interp import expressions, hints, library, narrowing, objects
from tlint.analyzer.interp.machine import Frame, Machine
from tlint.analyzer.interp.values import (
    UNKNOWN,
    Class,
    Const,
    ExternalInstance,
    Function,
    Instance,
    Mapping,
    Scalar,
    Sequence,
    Tensor,
    Value,
    join,
    members,
    present,
)
from tlint.analyzer.model import Confidence


def block(m: Machine, f: Frame, body: list[ast.stmt]) -> bool:
    """Run statements; whether control reaches the end of the block."""
    held = len(f.conditions)
    try:
        for node in body:
            handler = HANDLERS.get(type(node))
            if handler is None:
                continue
            f.statement = node
            try:
                if handler(m, f, node) is False:
                    return False
            except RecursionError:
                if f.depth > 1:  # close to the limit, each of many statements would come to it again
                    raise
                m.listener.gave_up(f, node)
        return True
    finally:
        del f.conditions[held:]


def merged(before: dict[str, Value], after: dict[str, Value]) -> dict[str, Value]:
    """The names after two ways that meet. An attribute known on one way only is read again from its object."""
    if before == after:
        return before
    out: dict[str, Value] = {}
    for key, value in before.items():
        if key in after:
            other = after[key]
            out[key] = value if value is other or value == other else join(value, other)
        elif "." not in key:
            out[key] = value
    for key, value in after.items():
        if key not in before and "." not in key:
            out[key] = value
    return out


def expression(m: Machine, f: Frame, node: ast.Expr) -> None:
    expressions.evaluate(m, f, node.value)


def assign(m: Machine, f: Frame, node: ast.Assign) -> None:
    value = expressions.evaluate(m, f, node.value)
    for target in node.targets:
        expressions.bind(m, f, target, value)


def annotated(m: Machine, f: Frame, node: ast.AnnAssign) -> None:
    if node.value is not None:
        value = expressions.evaluate(m, f, node.value)
        if value is UNKNOWN:
            value = hints.value_of(m, f, node.annotation)
        expressions.bind(m, f, node.target, value)


def augmented(m: Machine, f: Frame, node: ast.AugAssign) -> None:
    load = ast.copy_location(reload(node.target), node.target)
    left = expressions.evaluate(m, f, load)
    right = expressions.evaluate(m, f, node.value)
    value = join(*(expressions.operate(m, f, node, a, b, node.op) for a in present(left) for b in present(right)))
    expressions.bind(m, f, node.target, value)


def reload(target: ast.expr) -> ast.expr:
    """The target of `+=` as something to read."""
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
    return target


def returned(m: Machine, f: Frame, node: ast.Return) -> bool:
    f.returns.append(expressions.evaluate(m, f, node.value))
    return False


def raised(m: Machine, f: Frame, node: ast.Raise) -> bool:
    # What a message says is worked out only where the error happens.
    silent, f.silent = f.silent, True
    if node.exc is not None:
        expressions.evaluate(m, f, node.exc)
    f.silent = silent
    return False


def if_(m: Machine, f: Frame, node: ast.If) -> bool:
    answer = narrowing.test(m, f, node.test, "if")
    if answer is not None:
        narrowing.refine(m, f, node.test, answer)
        return block(m, f, node.body if answer else node.orelse)
    start = f.env
    ends: list[dict[str, Value]] = []
    stays: list[bool] = []
    f.branches += 1
    for wanted, body in ((True, node.body), (False, node.orelse)):
        f.env = dict(start)
        narrowing.refine(m, f, node.test, wanted)
        f.conditions.append((node.test, wanted))
        doubtful = bool(body) and isinstance(body[-1], ast.Raise)
        f.doubtful += doubtful
        if block(m, f, body):
            ends.append(f.env)
            stays.append(wanted)
        elif doubtful:
            stays.append(wanted)  # that no error was raised goes without saying
        f.doubtful -= doubtful
        f.conditions.pop()
    f.branches -= 1
    if not ends:
        f.env = start
        return False
    f.env = ends[0] if len(ends) == 1 else merged(ends[0], ends[1])
    if len(stays) == 1:  # the other way has left: what follows runs on this one
        f.conditions.append((node.test, stays[0]))
    return True


Loop = ast.For | ast.AsyncFor | ast.While


def looping(m: Machine, f: Frame, node: Loop, enter: Callable[[], None]) -> bool:
    """Run a loop's body until what holds at its head no longer changes, at most three times."""
    outer, f.exits = f.exits, []
    f.branches += 1
    f.loops.append(node)
    f.holding.append("loop")
    for _ in range(3):
        start = f.env
        f.env = dict(start)
        enter()
        if block(m, f, node.body):
            f.exits.append(f.env)
        after = start
        for env in f.exits:
            after = merged(after, env)
        f.exits = []
        f.env = after
        if after == start:
            break
    f.holding.pop()
    f.loops.pop()
    f.branches -= 1
    f.exits = outer
    return block(m, f, node.orelse) if node.orelse else True


def for_(m: Machine, f: Frame, node: ast.For | ast.AsyncFor) -> bool:
    iterable = expressions.evaluate(m, f, node.iter)
    for v in members(iterable):
        m.emit("iterate", f, node.iter, value=v, construct="for")
    record = pairs_of(iterable)
    if record is not None:
        return unrolled(m, f, node, record)
    element = library.iterated(m, f, iterable, node.iter)
    return looping(m, f, node, lambda: expressions.bind(m, f, node.target, element))


def pairs_of(iterable: Value) -> tuple[Value, ...] | None:
    """The items of a record, such as `**kwargs`, or a few names: each is then looked at by itself."""
    if isinstance(iterable, Sequence) and iterable.items and len(iterable.items) <= 32:
        firsts = [p.items[0] if isinstance(p, Sequence) and p.items else p for p in iterable.items]
        if all(isinstance(p, Const) and isinstance(p.value, str) for p in firsts):
            return iterable.items
    return None


def unrolled(m: Machine, f: Frame, node: ast.For | ast.AsyncFor, items: tuple[Value, ...]) -> bool:
    outer = f.exits
    f.loops.append(node)
    f.holding.append("loop")
    for item in items:
        f.exits = []
        expressions.bind(m, f, node.target, item)
        ends = [f.env] if block(m, f, node.body) else []
        if not ends and not f.exits:
            break
        f.env, *rest = [*ends, *f.exits]
        for env in rest:
            f.env = merged(f.env, env)
    f.holding.pop()
    f.loops.pop()
    f.exits = outer
    return block(m, f, node.orelse) if node.orelse else True


def while_(m: Machine, f: Frame, node: ast.While) -> bool:
    def enter() -> None:
        narrowing.test(m, f, node.test, "while")
        narrowing.refine(m, f, node.test, True)

    looping(m, f, node, enter)
    narrowing.refine(m, f, node.test, False)
    return not (
        isinstance(node.test, ast.Constant)
        and node.test.value
        and not any(isinstance(n, ast.Break) for n in ast.walk(node))
    )


def leave_loop(m: Machine, f: Frame, node: ast.stmt) -> bool:
    f.exits.append(f.env)
    return False


def with_(m: Machine, f: Frame, node: ast.With | ast.AsyncWith) -> bool:
    held = len(f.holding)
    for item in node.items:
        manager = expressions.evaluate(m, f, item.context_expr)
        for v in members(manager):
            m.emit("enter", f, item.context_expr, value=v)
            if not reentered(v):
                f.holding.append("with")
        entered = join(*(enter(m, f, v, item.context_expr) for v in members(manager)))
        if item.optional_vars is not None:
            expressions.bind(m, f, item.optional_vars, entered)
    goes_on = block(m, f, node.body)
    del f.holding[held:]
    return goes_on


def reentered(v: Value) -> bool:
    """Whether Dynamo can leave this context manager at a break and enter it again: torch's own, and none at all."""
    match v:
        case ExternalInstance(cls=cls):
            return cls.startswith("torch.") or cls == "contextlib.nullcontext"
        case Instance():
            return False
    return True


def enter(m: Machine, f: Frame, v: Value, node: ast.expr) -> Value:
    match v:
        case ExternalInstance(cls="contextlib._GeneratorContextManager", args=(yielded,)):
            return yielded
        case Instance():
            value = objects.call_method(m, f, v, "__enter__", (), (), node)
            objects.call_method(m, f, v, "__exit__", (UNKNOWN, UNKNOWN, UNKNOWN), (), node)
            return value
        case ExternalInstance():
            return v
    return UNKNOWN


def try_(m: Machine, f: Frame, node: ast.Try) -> bool:
    start = dict(f.env)
    ends: list[dict[str, Value]] = []
    f.branches += 1
    f.catching += caught(node)
    f.holding.append("try")
    goes_on = block(m, f, node.body)
    f.holding.pop()
    f.catching -= caught(node)
    match node.body:
        case [*before, ast.Return()] if (
            f.returns and f.returns[-1].is_const and all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in before)
        ):
            return False  # `try: return torch.compiler.is_compiling()`: nothing raises
    broken = merged(start, f.env)
    if goes_on and (not node.orelse or block(m, f, node.orelse)):
        ends.append(f.env)
    for handler in node.handlers:
        f.env = dict(broken)
        if handler.name:
            f.env[handler.name] = UNKNOWN
        f.doubtful += 1
        if block(m, f, handler.body):
            ends.append(f.env)
        f.doubtful -= 1
    f.branches -= 1
    if ends:
        f.env = ends[0]
        for env in ends[1:]:
            f.env = merged(f.env, env)
    else:
        f.env = broken
    if node.finalbody and not block(m, f, node.finalbody):
        return False
    return bool(ends)


def caught(node: ast.Try) -> bool:
    """Whether a failed assertion is expected here: one of the handlers is for it."""
    types = [h.type.elts if isinstance(h.type, ast.Tuple) else [h.type] for h in node.handlers]
    return any(isinstance(t, ast.Name) and t.id == "AssertionError" for each in types for t in each)


def assert_(m: Machine, f: Frame, node: ast.Assert) -> None:
    answer = narrowing.test(m, f, node.test, "assert")
    if answer is not True and any(frame.catching for frame in f.callers()):
        for v in members(narrowing.quietly(m, f, node.test)):
            m.emit("branch", f, node.test, value=v, construct="caught")
    narrowing.refine(m, f, node.test, True)


def delete(m: Machine, f: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        key = expressions.dotted(target)
        if key is not None:
            f.env.pop(key, None)


def define_function(m: Machine, f: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    value = objects.make_function(m, f, node, node.name)
    if isinstance(value, Function):
        value = objects.decorated(m, f, value.definition, value)
    f.env[node.name] = value


def define_class(m: Machine, f: Frame, node: ast.ClassDef) -> None:
    m.emit("define", f, node, method=node.name)
    owner = (f.function or f.module).local_classes
    if node not in owner:
        owner[node] = class_of(node, f.module, f"{f.qualname}.<locals>." if f.function is not None else "")
    f.env[node.name] = Class(owner[node])


def import_(m: Machine, f: Frame, node: ast.Import) -> None:
    for alias in node.names:
        if alias.asname:
            f.env[alias.asname] = objects.module_value(m, alias.name, f.module)
        else:
            top = alias.name.partition(".")[0]
            f.env[top] = objects.module_value(m, top, f.module)


def import_from(m: Machine, f: Frame, node: ast.ImportFrom) -> None:
    from tlint.analyzer.index.definitions import absolute

    source = absolute(f.module, node)
    for alias in node.names:
        if alias.name != "*":
            f.env[alias.asname or alias.name] = objects.imported(m, f.module, source, alias.name)


def declare_global(m: Machine, f: Frame, node: ast.Global) -> None:
    for name in node.names:
        f.env.pop(name, None)


def match_(m: Machine, f: Frame, node: ast.Match) -> bool:
    subject = expressions.evaluate(m, f, node.subject)
    for v in members(subject):
        if v.is_tensor:
            m.emit("branch", f, node.subject, value=v, construct="match")
    start = f.env
    ends = [start]
    f.branches += 1
    for case in node.cases:
        f.env = dict(start)
        for pattern in ast.walk(case.pattern):
            name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
            if isinstance(name, str):
                f.env[name] = UNKNOWN
        if case.guard is not None:
            narrowing.test(m, f, case.guard, "match")
        if block(m, f, case.body):
            ends.append(f.env)
    f.branches -= 1
    f.env = ends[0]
    for env in ends[1:]:
        f.env = merged(f.env, env)
    return True


def flags(definition: FunctionDef) -> set[str]:
    """Names that a body reads only to test them."""
    loads: dict[str, int] = {}
    tests: dict[str, int] = {}
    for node in own_nodes(definition.node):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                loads[name] = loads.get(name, 0) + 1
            case ast.If(test=test) | ast.IfExp(test=test):
                operands = test.values if isinstance(test, ast.BoolOp) else [test]
                for operand in operands:
                    inner = operand.operand if isinstance(operand, ast.UnaryOp) else operand
                    if isinstance(inner, ast.Name):
                        tests[inner.id] = tests.get(inner.id, 0) + 1
    return {name for name, count in tests.items() if count == loads.get(name)}


def uses_of(definition: FunctionDef) -> dict[str, Value]:
    """Unannotated parameters that the body does not use as a tensor: a batch read by name, a list, a callable."""
    names = {p.arg for p in definition.parameters}
    found: dict[str, Value] = {name: Scalar("bool") for name in names & flags(definition)}
    tensor = Tensor(origin="input", certain=Confidence.likely)
    for node in own_nodes(definition.node):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str())) if name in names:
                found[name] = Mapping(None, Scalar("str"), tensor)
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Name(id=name), attr="items" | "keys" | "values" | "get" | "update" | "setdefault"
                )
            ) if name in names:
                found[name] = Mapping(None, Scalar("str"), tensor)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "pop" | "insert")) if (
                name in names
            ):
                found[name] = Sequence("list", None, tensor)
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Name(id=name), attr="startswith" | "endswith" | "lower" | "upper" | "strip"
                )
            ) if name in names:
                found[name] = Scalar("str")
            case ast.Call(func=ast.Name(id=name)) if name in names:
                found.setdefault(name, ExternalInstance("torch.nn.Module", certain=Confidence.likely))
            case ast.Call(func=ast.Name(id="getattr" | "setattr" | "hasattr"), args=[_, ast.JoinedStr() as text, *_]):
                parts = (part.value for part in text.values if isinstance(part, ast.FormattedValue))
                found.update((p.id, Scalar("str")) for p in parts if isinstance(p, ast.Name) and p.id in names)
            case ast.Call(func=ast.Attribute(attr="join"), args=[ast.Name(id=name)]) if name in names:
                found[name] = UNKNOWN
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Eq() | ast.NotEq() | ast.In() | ast.NotIn()], comparators=[c]
            ) if name in names:
                if any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(c)):
                    found[name] = Scalar("str")
    return found


HANDLERS: dict[type[ast.stmt], Callable[[Machine, Frame, Any], bool | None]] = {
    ast.Expr: expression,
    ast.Assign: assign,
    ast.AnnAssign: annotated,
    ast.AugAssign: augmented,
    ast.Return: returned,
    ast.Raise: raised,
    ast.If: if_,
    ast.For: for_,
    ast.AsyncFor: for_,
    ast.While: while_,
    ast.Break: leave_loop,
    ast.Continue: leave_loop,
    ast.With: with_,
    ast.AsyncWith: with_,
    ast.Try: try_,
    ast.Assert: assert_,
    ast.Delete: delete,
    ast.FunctionDef: define_function,
    ast.AsyncFunctionDef: define_function,
    ast.ClassDef: define_class,
    ast.Import: import_,
    ast.ImportFrom: import_from,
    ast.Global: declare_global,
    ast.Match: match_,
}
if hasattr(ast, "TryStar"):
    HANDLERS[ast.TryStar] = try_
