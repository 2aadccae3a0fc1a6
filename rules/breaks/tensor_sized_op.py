"""TL107."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tlint.analyzer.interp.values import Const, Tensor, Value
from tlint.rules.base import Event, Fact, Finding, Rule
from tlint.rules.breaks.tensor_to_python import ITEM, VALUE
from tlint.rules.reading import OUTSIDE, breaking, callee, sure, tensors

ONE_HOT = "torch.nn.functional.one_hot"
# Functions that make a tensor out of sizes alone. All others take the tensor that they work on first.
MAKING = re.compile(
    r"builtins\.range|torch\.(arange|empty|eye|full|ha\w+_window|ones|rand|randint|randn|randperm|range|tri[lu]_indices|zeros|Size)"
)
# Arguments that are values of the result and no sizes, by position.
VALUES = {
    "torch.full": {1: "fill_value"},
    "torch.Tensor.new_full": {1: "fill_value"},
    "torch.linspace": {0: "start", 1: "end"},
    "torch.logspace": {0: "start", 1: "end"},
}


class TensorSizedOp(Rule):
    """A size, a count or a length is given as a tensor.

    `torch.arange(n)`, `torch.zeros(n)`, `range(n)`, `x.split(n)`, `x.view(n, -1)` where `n` is a tensor;
    `repeat_interleave` with a tensor of counts and no `output_size`; `one_hot` without `num_classes`.

    ## Why it breaks

    The shape of the result would have to be read out of a tensor, which has no value while Dynamo traces.

    ## Bad

    ```python
    import torch


    @torch.compile
    def positions(x, lengths):
        return x[: lengths.shape[0]] + torch.arange(lengths.max())[0]


    positions(torch.randn(4), torch.tensor([3, 4]))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def positions(x, lengths, longest: int):
        return x[: lengths.shape[0]] + torch.arange(longest)[0]


    positions(torch.randn(4), torch.tensor([3, 4]), 4)
    ```

    ## Fix safety

    The size has to come from outside: that changes a signature, and is left to you.
    """

    code, name = "TL107", "tensor-sized-op"
    kind = "tensor-sized"
    remedy = "pass the size as an int (output_size=, num_classes=), known before the compiled function is called"
    gb_types = (VALUE, ITEM, "Dynamic shape operator")

    def call(self, event: Event) -> Iterator[Finding]:
        name = event.callee.qualname
        if name == ONE_HOT and event.fact is not None:
            classes = event.argument(1, "num_classes")
            if classes is None or (isinstance(classes, Const) and classes.value == -1):
                yield event.finding(
                    "`one_hot()` without `num_classes` looks for the largest index in the data",
                    gb_types=(event.fact.gb_type,),
                )
        elif (fact := breaking(event, self.kind)) and any(unknown(t, fact) for t in tensors(*sizes(event))):
            if name == "builtins.range":
                what = "the length of `range()` is a tensor"
            elif name.endswith(".repeat_interleave"):
                what = f"`{callee(event)}` with a tensor of counts has an output whose size depends on the data"
            else:
                what = f"a size given to `{callee(event)}` is a tensor"
            yield event.finding(
                what, gb_types=(fact.gb_type, *self.gb_types), when=fact.when, confidence=sure(*sizes(event))
            )


def unknown(size: Tensor, fact: Fact) -> bool:
    """Whether Dynamo has no number for this size.

    A tensor made of Python numbers alone keeps its value while Dynamo traces: `torch.div(x.size(1), 2)`. Numpy's
    numbers are taken for what they are. An input of the region becomes a symbol where torch itself reads it (2.13 and
    2.14: `torch.arange(n)` for a tensor `n` that was passed in); `range` and slices call `.item()` before that.
    """
    return size.origin not in ("numbers", *(OUTSIDE if fact.gb_type == VALUE else ())) and not size.numpy


def sizes(event: Event) -> list[Value]:
    """The arguments that say how large: not the tensor that is worked on, and not the value that fills the result."""
    name = event.callee.qualname
    first = 0 if event.receiver is not None or MAKING.fullmatch(name) else 1
    values = VALUES.get(name, {})
    by_name = [value for key, value in event.keywords if key not in ("input", "out", *values.values())]
    return [value for n, value in enumerate(event.args) if n >= first and n not in values] + by_name
