"""TL102."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import Scalar
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.breaks.tensor_to_python import ITEM, VALUE
from tlint.rules.reading import callee, spelled, tensors

CONSTRUCTS = {
    "if": "`if`",
    "while": "`while`",
    "ifexp": "conditional expression",
    "and": "`and`",
    "or": "`or`",
    "not": "`not`",
    "comprehension": "condition of a comprehension",
    "match": "`match`",
    "in": "`in`",
    "filter": "`filter()`",
}


class DataDependentBranch(Rule):
    """What runs next depends on a tensor's value.

    `if`, `while`, the conditional expression, `and`, `or`, `not`, `match`, `in`, the condition of a comprehension,
    and `any()` or `all()` over tensors.

    ## Why it breaks

    Dynamo traces one path. It knows shapes, dtypes and Python values, but not what a tensor holds, so it cannot
    choose: it ends the graph, runs the test eagerly and compiles each way as a graph of its own. In a loop it gives
    up on the whole function. Branches on shapes, dtypes, devices, `None` and `self.training` are fine.

    ## Bad

    ```python
    import torch


    @torch.compile
    def clean(x):
        if not torch.isfinite(x).all():
            x = torch.nan_to_num(x)
        return x * 2


    clean(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def clean(x):
        x = torch.where(torch.isfinite(x).all(), x, torch.nan_to_num(x))
        return x * 2


    clean(torch.randn(8))
    ```

    ## Fix safety

    `torch.where` computes both sides, so it is only the same where the side not taken has no effects and raises
    nothing.

    ## What running tells

    Which values are tensors, where they come out of registries, data or dynamic attributes: a branch on such a one
    shows as TL199.
    """

    code, name = "TL102", "data-dependent-branch"
    kind = "data-dependent-branch"
    remedy = "use torch.where or torch.cond, or decide outside the compiled function"
    gb_types = ("Data-dependent branching", VALUE)

    def branch(self, event: Event) -> Iterator[Finding]:
        if event.construct not in CONSTRUCTS:
            return
        what = CONSTRUCTS[event.construct]
        if event.value.is_tensor and (event.value.origin != "random" or event.construct == "in"):
            yield event.finding(
                f"{what} depends on the value of the tensor `{spelled(event.node)}`",
                gb_types=(*self.gb_types, ITEM) if event.construct == "in" else self.gb_types,
            )
        elif event.settings.capture_scalar_outputs and isinstance(event.value, Scalar) and event.value.origin == "data":
            # The symbol is in the graph, and only the decision on it fails: Dynamo raises a UserError that has no type.
            yield event.finding(f"{what} depends on `{spelled(event.node)}`, which is read out of a tensor")

    def call(self, event: Event) -> Iterator[Finding]:
        if event.callee.qualname in ("builtins.any", "builtins.all") and any(tensors(*event.args)):
            yield event.finding(f"`{callee(event)}` tests the values of tensors one by one")
