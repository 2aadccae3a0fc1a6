"""TL403."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule, Site


class CompilePerCall(Rule):
    """`torch.compile` runs again on each step or call.

    ## Why it costs

    Each call makes a new wrapper, and the cache of compiled code is looked up anew; where the function, its closure
    or the backend is a new object each time, everything is compiled again. Set-up loops that compile one block after
    another and keep the results are right.

    ## Bad

    ```python
    import torch


    def update(p, g):
        return p - 0.1 * g


    def step(p, g):
        return torch.compile(update)(p, g)


    step(torch.randn(4), torch.randn(4))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def update(p, g):
        return p - 0.1 * g


    def step(p, g):
        return update(p, g)


    step(torch.randn(4), torch.randn(4))
    ```

    ## Fix safety

    Compiling once is the same, unless the function that is compiled differs from call to call.
    """

    code, name = "TL403", "compile-per-call"
    remedy = "compile once, at module level or in `__init__`, and call the result"

    def compiled(self, event: Event) -> Iterator[Finding]:
        site = event.site
        if site.form != "call":
            return
        if site.loop is not None and not varies(event.node, site.loop):
            if any(True for _ in calls(event.node, site, site.loop)):
                yield event.finding("`torch.compile` runs again on each turn of the loop")
        elif site.loop is None and site.function is not None:
            given = parameters(site.function)
            if any(reads(argument, given) for call in calls(event.node, site, site.function) for argument in call.args):
                yield event.finding(f"`torch.compile` runs again on each call of `{site.function.name}`")


def calls(node: ast.AST, site: Site, scope: ast.AST) -> Iterator[ast.Call]:
    """The calls of what `torch.compile` made: at once, or through the local name it is bound to."""
    bound = site.statement.targets if isinstance(site.statement, ast.Assign) and site.statement.value is node else []
    names = {target.id for target in bound if isinstance(target, ast.Name)}
    for call in ast.walk(scope):
        if isinstance(call, ast.Call) and (
            call.func is node or (isinstance(call.func, ast.Name) and call.func.id in names)
        ):
            yield call


def varies(node: ast.AST, loop: ast.For | ast.While) -> bool:
    """Whether what is compiled, or how, is another at each turn."""
    return reads(node, {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})


def reads(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    arguments = function.args
    return {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} - {"self", "cls"}
