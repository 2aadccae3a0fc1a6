"""TL132."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee


class SparseInRegion(Rule):
    """A sparse or nested tensor is made inside a compiled function.

    ## Why it breaks

    Graphs are made of dense tensors. The number of entries of a sparse one depends on the data, and its memory is not
    laid out by strides.

    ## Bad

    ```python
    import torch


    @torch.compile
    def propagate(edges, weights, x):
        return torch.sparse_coo_tensor(edges, weights, (4, 4)) @ x


    propagate(torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.ones(3), torch.randn(4, 2))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def propagate(edges, weights, x):
        return torch.zeros_like(x).index_add(0, edges[0], weights[:, None] * x[edges[1]])


    propagate(torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.ones(3), torch.randn(4, 2))
    ```

    ## Fix safety

    Dense gives the same numbers, and may cost far more memory: measure first.
    """

    code, name = "TL132", "sparse-in-region"
    kind = "sparse"
    remedy = "make it outside the compiled function, or use index_add or scatter on dense tensors"
    gb_types = (
        "Sparse tensor creation not supported",
        "Attempted to wrap sparse Tensor with VariableTracker",
        "Attempted to call function marked as skipped",
        "Operator does not support running with fake tensors",
    )

    def call(self, event: Event) -> Iterator[Finding]:
        if fact := breaking(event, self.kind):
            yield event.finding(
                f"`{callee(event)}` makes a sparse or nested tensor",
                gb_types=(fact.gb_type, *self.gb_types),
                when=fact.when,
            )
