"""TL106."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import Sequence, Tensor, Value
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.breaks.tensor_to_python import VALUE
from tlint.rules.reading import spelled, tensors


class BooleanMaskIndex(Rule):
    """A tensor is indexed with a boolean mask.

    ## Why it breaks

    `x[mask]` keeps as many elements as the mask holds true, a size that depends on the data: the graph ends there.
    Writing through a mask (`x[mask] = 0`) does not break, its shape is known. Under `fullgraph=True`, or with
    `torch._dynamo.config.capture_dynamic_output_shape_ops = True`, the size becomes a symbol in the graph.

    ## Bad

    ```python
    import torch


    @torch.compile
    def positive_mean(x):
        return x[x > 0].mean()


    positive_mean(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def positive_mean(x):
        mask = x > 0
        return torch.where(mask, x, 0).sum() / mask.sum()


    positive_mean(torch.randn(8))
    ```

    ## Fix safety

    The order of the additions changes, and with it the last bits of the result.
    """

    code, name = "TL106", "boolean-mask-index"
    remedy = "keep the shape: torch.where, masked_fill, or mask.sum() to count"
    gb_types = ("Dynamic shape operator", VALUE)
    when = "default"

    def subscript(self, event: Event) -> Iterator[Finding]:
        if event.store or not event.value.is_tensor or event.settings.capture_dynamic_output_shape_ops:
            return
        mask = next((m for m in masks(event.index)), None)
        if mask is not None:
            yield event.finding(
                f"indexing `{spelled(event.node.value)}` with a boolean mask gives a size that depends on the data",
                confidence=min(mask.sure, event.value.sure),
            )


def masks(index: Value) -> Iterator[Tensor]:
    """The boolean tensors of an index; a slice's bounds are not among them."""
    parts = index.items if isinstance(index, Sequence) and index.type == "tuple" and index.items else (index,)
    for part in parts:
        if not isinstance(part, Sequence):
            yield from (tensor for tensor in tensors(part) if tensor.kind == "bool")
