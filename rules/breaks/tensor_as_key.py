"""TL135."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import Sequence, Value, members
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import callee

ORDERING = ("builtins.sorted", "builtins.list.sort", "builtins.min", "builtins.max")


class TensorAsKey(Rule):
    """Tensors are compared with each other to sort a list.

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
    )

    def call(self, event: Event) -> Iterator[Finding]:
        name = event.callee.qualname
        if name not in ORDERING:
            return
        key = event.argument(None, "key")
        if key is not None and not key.is_none:
            return  # what the key returns is not known here
        walked = event.receiver if name == "builtins.list.sort" else event.argument(0, "iterable")
        if name in ORDERING[:2] and compares_tensors(walked):
            yield event.finding(f"`{callee(event)}` compares tensors with each other")


def compares_tensors(walked: Value | None) -> bool:
    if not isinstance(walked, Sequence):
        return False
    items = walked.items if walked.items is not None else (walked.item,)
    return any(member.is_tensor for item in items for member in members(item))
