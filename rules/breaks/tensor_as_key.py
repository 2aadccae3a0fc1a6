"""TL135."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import Sequence
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import callee, sure, tensors


class TensorAsKey(Rule):
    """Tensors are compared with each other to put things in order.

    `sorted()`, `list.sort()` of tensors or of tuples that hold some, or by a `key` that gives tensors; `min()` and
    `max()` likewise.

    ## Why it breaks

    The order depends on values, which do not exist while Dynamo traces. `sorted(d.items())` compares the values only
    where two keys are equal; torch 2.13 refuses it all the same.

    ## Bad

    ```python
    import torch


    @torch.compile
    def smallest(a, b, c):
        return sorted([a.sum(), b.sum(), c.sum()])[0]


    smallest(torch.randn(3), torch.randn(3), torch.randn(3))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def smallest(a, b, c):
        return torch.stack([a.sum(), b.sum(), c.sum()]).sort().values[0]


    smallest(torch.randn(3), torch.randn(3), torch.randn(3))
    ```

    ## Fix safety

    `torch.sort` need not be stable where `sorted` is: equal values may change places.
    """

    code, name = "TL135", "tensor-as-key"
    remedy = "stack the tensors and use torch.sort, or sort by a key that is no tensor"
    gb_types = (
        "sort with non-constant keys",
        "min/max with non-constant key",
        "invalid call to builtin op handler",
        "list_richcompare_nonconst",
        "Failed to trace builtin operator",
    )

    def branch(self, event: Event) -> Iterator[Finding]:
        if event.construct == "sort" and compares_tensors(event):
            yield event.finding(f"`{callee(event)}` compares tensors with each other", confidence=sure(event.value))


def compares_tensors(event: Event) -> bool:
    """Whether what is put in order is a tensor, or a tuple that Dynamo compares with the tensors in it."""
    if not isinstance(event.value, Sequence):
        return event.value.is_tensor
    first = event.value.items[0] if event.value.items else event.value.item
    eager = event.facts.lookup("builtins.tuple.__lt__").gb_type  # where it does not stop at the first that differs
    return any(tensors(event.value if eager else first))
