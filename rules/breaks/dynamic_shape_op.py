"""TL105."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee


class DynamicShapeOp(Rule):
    """An operator whose output's size depends on the data.

    `nonzero`, `argwhere`, `masked_select`, `unique`, `bincount`, `torch.where(condition)` with one argument.

    ## Why it breaks

    Graphs are compiled for shapes, and this size is only known after the operator has run: the graph ends there, and
    on a GPU the host waits. Under `fullgraph=True`, or with `torch._dynamo.config.capture_dynamic_output_shape_ops =
    True`, the operator stays in the graph and its size becomes a symbol.

    ## Bad

    ```python
    import torch


    @torch.compile
    def masked_loss(error, mask):
        return error.masked_select(mask).mean()


    masked_loss(torch.randn(8), torch.arange(8) > 2)
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def masked_loss(error, mask):
        return (error * mask).sum() / mask.sum()


    masked_loss(torch.randn(8), torch.arange(8) > 2)
    ```

    ## Fix safety

    Sums over a mask add in another order, and multiply what is masked by zero: infinities and NaN there come through.
    """

    code, name = "TL105", "dynamic-shape-op"
    kind = "dynamic-shape"
    remedy = (
        "keep the shape fixed: a mask with torch.where, a size that is given, or do it outside the compiled function"
    )
    gb_types = ("Dynamic shape operator",)
    when = "default"

    def call(self, event: Event) -> Iterator[Finding]:
        if fact := breaking(event, self.kind):
            yield event.finding(
                f"`{callee(event)}` has an output whose size depends on the data",
                gb_types=(fact.gb_type,),
                when=fact.when,
            )
