"""TL108."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import ExternalInstance, Instance, Sequence, Tensor, Value
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.breaks.tensor_to_python import ITEM, VALUE
from tlint.rules.reading import OUTSIDE, spelled, tensors

INDEX = "Indexing list with non-scalar tensor"  # up to torch 2.11, whatever the tensor


class TensorAsIndex(Rule):
    """A scalar tensor is used as a Python index: a bound of a slice, or the position in a tensor or list.

    ## Why it breaks

    `x[:n]` and `x[best]` need the number itself, so the tensor's value is read into Python. Indexing with a tensor of
    one or more dimensions is a gather, and fine.

    ## Bad

    ```python
    import torch


    @torch.compile
    def best_row(x, scores):
        return x[scores.argmax()]


    best_row(torch.randn(4, 3), torch.randn(4))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def best_row(x, scores):
        return x.index_select(0, scores.argmax()).squeeze(0)


    best_row(torch.randn(4, 3), torch.randn(4))
    ```

    ## Fix safety

    `index_select` copies where indexing gives a view: not the same if the result is written to.
    """

    code, name = "TL108", "tensor-as-index"
    remedy = "use index_select, gather or narrow, or keep the position as an int"
    gb_types = (ITEM, VALUE, INDEX)

    def subscript(self, event: Event) -> Iterator[Finding]:
        where = f"`{spelled(event.node.value)}`"
        captured = event.settings.capture_scalar_outputs
        if any(bound.is_tensor for bound in bounds(event.index)):
            if not captured:
                yield event.finding(f"a bound of the slice of {where} is a tensor", when="default")
        elif event.value.is_tensor and any(position_in_tensor(part) for part in parts(event.index)):
            yield event.finding(f"the position in {where} is a scalar tensor", gb_types=(VALUE,))
        elif isinstance(event.value, (Sequence, Instance, ExternalInstance)) and event.index.is_tensor and not captured:
            yield event.finding(f"the position in {where}, which is not a tensor, is a tensor", when="default")


def parts(index: Value) -> tuple[Value, ...]:
    return index.items if isinstance(index, Sequence) and index.type == "tuple" and index.items else (index,)


def bounds(index: Value) -> Iterator[Value]:
    for part in parts(index):
        if isinstance(part, Sequence) and part.type == "slice":
            yield from part.items or ()


def position_in_tensor(part: Value) -> bool:
    """Whether an index picks one element by a number that only the data knows.

    A scalar tensor that enters the graph from outside brings its value as a symbol; one that is computed has none.
    """
    if isinstance(part, Sequence) and part.type == "list":
        return any(position_in_tensor(tensor) for tensor in tensors(part) if tensor.rank == 0)
    return isinstance(part, Tensor) and part.rank == 0 and part.kind == "int" and part.origin not in OUTSIDE
