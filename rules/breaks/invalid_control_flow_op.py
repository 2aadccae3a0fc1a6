"""TL137."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tlint.analyzer.interp.values import Function, Sequence, Tensor
from tlint.rules.base import Event, Finding, Rule, Severity
from tlint.rules.reading import spelled

# Methods whose result shares its storage with the tensor.
VIEWS = frozenset(
    "detach diagonal expand expand_as movedim narrow permute select squeeze swapaxes t transpose unflatten unfold "
    "unsqueeze view view_as".split()
)


class InvalidControlFlowOp(Rule):
    """A function given to `torch.cond`, `while_loop` or `scan` does what these operators do not allow.

    It changes one of its inputs or an attribute outside, it returns an input (or a view of one) as it is, or the
    branches of a `cond` return different numbers of results or different dtypes.

    ## Why it breaks

    The operator keeps both branches, or the loop's body, as graphs of their own. They have to be pure: no side effects,
    no aliases between inputs and outputs, outputs that match. What cannot be captured whole is an error, not a break.

    ## Bad

    ```python
    import torch


    @torch.compile
    def clipped(x):
        return torch.cond(x.max() > 1, lambda y: y / y.max(), lambda y: y, (x,))


    clipped(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def clipped(x):
        return torch.cond(x.max() > 1, lambda y: y / y.max(), lambda y: y.clone(), (x,))


    clipped(torch.randn(8))
    ```

    ## Fix safety

    `clone()` of what is returned as it is changes no value; a change in place has to be written as a new value that is
    returned.
    """

    code, name = "TL137", "invalid-control-flow-op"
    severity = Severity.error
    remedy = "return new tensors (`clone()` what is passed through), and change nothing in place"
    gb_types = (
        "Encountered aliasing during higher order op tracing",
        "Encountered input mutation during higher order op tracing",
        "HOP: Unsafe side effect",
        "HOP: Non-nullified side effect",
    )

    def traced(self, event: Event) -> Iterator[Finding]:
        name = event.callee.qualname.rpartition(".")[2]
        for function in event.args:
            if isinstance(function, Function) and not function.definition.module.installed:
                for what in impurities(function.definition.node):
                    yield event.finding(f"a function given to `{name}` {what}")
        if name == "cond" and (why := mismatch(event.value.items)):
            yield event.finding(f"the branches of this `cond` return {why}")


def impurities(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[str]:
    """What a function does that an operator cannot keep as a graph, each kind once, first the inputs it changes."""
    inside = list(ast.walk(node))
    bound = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    parameters = {a.arg for a in (*node.args.posonlyargs, *node.args.args)} - bound
    for n in inside:
        if (changed := changes(n)) is not None:
            target, what = changed
            if isinstance(target, ast.Name) and target.id in parameters:
                yield f"changes its input `{target.id}` in place"
                return
            if what == "attribute":
                yield f"sets `{spelled(target)}`, which lies outside"
                return
    returns = [n.value for n in inside if isinstance(n, ast.Return) and n.value is not None]
    results = [node.body] if isinstance(node, ast.Lambda) else returns
    for result in results:
        for part in result.elts if isinstance(result, (ast.Tuple, ast.List)) else [result]:
            source = shared(part)
            if isinstance(source, ast.Name) and source.id in parameters:
                yield f"returns its input `{source.id}`" + ("" if source is part else f" as the view `{spelled(part)}`")
                return


def changes(node: ast.AST) -> tuple[ast.expr, str] | None:
    """What a node changes in place: the expression, and whether it is a value or an attribute."""
    match node:
        case ast.Call(func=ast.Attribute(value=target, attr=name)) if name.endswith("_") and not name.endswith("__"):
            return target, "value"
        case ast.Subscript(value=target, ctx=ast.Store()):
            return target, "value"
        case ast.Attribute(ctx=ast.Store()):
            return node, "attribute"
    return None


def shared(node: ast.expr) -> ast.expr:
    """What an expression shares its storage with: the end of a chain of views."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in VIEWS:
                node = inner
            case ast.Attribute(value=inner, attr="T" | "mT" | "data"):
                node = inner
            case ast.Subscript(value=inner, slice=ast.Slice() | ast.Constant()):
                node = inner
            case _:
                return node


def mismatch(results: tuple[object, ...]) -> str:
    """How the results of two branches differ, as far as that is sure."""
    match results:
        case (Tensor(kind=str() as one), Tensor(kind=str() as other)) if one != other:
            return f"different dtypes: {one} and {other}"
        case (Sequence(type="tuple", items=tuple() as one), Sequence(type="tuple", items=tuple() as other)):
            return f"{len(one)} and {len(other)} tensors" if len(one) != len(other) else ""
        case (Tensor(), Sequence(type="tuple")) | (Sequence(type="tuple"), Tensor()):
            return "one tensor and a tuple"
    return ""
