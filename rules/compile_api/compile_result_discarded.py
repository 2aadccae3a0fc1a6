"""TL402."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule, Site


class CompileResultDiscarded(Rule):
    """The compiled object is thrown away, and the one that is used is not compiled.

    ## Why it does nothing

    `torch.compile(model)` returns a new object and leaves `model` as it is. A call whose result is not kept, or is
    bound to a local name (`self`, a parameter) that nothing reads afterwards, compiles nothing.

    ## Bad

    ```python
    import torch

    model = torch.nn.Linear(4, 4)
    torch.compile(model)
    ```

    ## Good

    ```python
    import torch

    model = torch.nn.Linear(4, 4)
    model.compile()
    ```

    ## Fix safety

    The fix turns compilation on for the first time: what compiles may break or differ, so verify it.
    """

    code, name = "TL402", "compile-result-discarded"
    remedy = "keep the result (model = torch.compile(model)), or compile in place with model.compile()"

    def compiled(self, event: Event) -> Iterator[Finding]:
        if event.site.form != "call":
            return
        match event.site.statement:
            case ast.Expr(value=value) if value is event.node:
                yield event.finding("the result of `torch.compile` is thrown away")
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is event.node and is_dead(
                event.site, name
            ):
                yield event.finding(
                    f"the compiled object is bound to the local name `{name}`, which is not used afterwards"
                )


def is_dead(site: Site, name: str) -> bool:
    """Whether nothing reads a local name after the statement that binds it."""
    if site.function is None:
        return False
    inside = set(ast.walk(site.statement))
    for node in ast.walk(site.function):
        match node:
            case ast.Global(names=names) | ast.Nonlocal(names=names) if name in names:
                return False
            case ast.Name(id=read, ctx=ast.Load()) if read == name and node not in inside:
                if node.lineno >= site.statement.lineno or site.loop is not None:
                    return False
    return True
