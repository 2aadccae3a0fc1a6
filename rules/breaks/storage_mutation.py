"""TL123."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee


class StorageMutation(Rule):
    """A tensor's memory is addressed or replaced: `resize_`, `data_ptr`, `share_memory_`, `apply_`.

    ## Why it breaks

    While Dynamo traces, tensors have shapes and no memory: there is nothing to point to, to share or to walk over.

    ## Bad

    ```python
    import torch


    @torch.compile
    def padded(x):
        y = x.clone()
        y.resize_(8)
        return y


    padded(torch.zeros(4))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def padded(x):
        return torch.nn.functional.pad(x, (0, 4))


    padded(torch.zeros(4))
    ```

    ## Fix safety

    Out of place, other views of the same memory no longer see the change.
    """

    code, name = "TL123", "storage-mutation"
    kind = "storage"
    remedy = "use the operation that returns a new tensor"
    gb_types = ("Unsupported Tensor.resize_() call", "Failed to convert args/kwargs to proxy")

    def call(self, event: Event) -> Iterator[Finding]:
        if fact := breaking(event, self.kind):
            yield event.finding(
                f"`{callee(event)}` reaches for the memory of a tensor", gb_types=(fact.gb_type,), when=fact.when
            )
