"""TL107."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import Const
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.breaks.tensor_to_python import ITEM, VALUE
from tlint.rules.reading import breaking, callee, tensors

ONE_HOT = "torch.nn.functional.one_hot"
REPEAT = ("torch.repeat_interleave", "torch.Tensor.repeat_interleave")
# Functions that make a tensor out of sizes alone. All others take the tensor that they work on first.
MAKING = frozenset(
    f"torch.{name}"
    for name in "arange empty eye full hamming_window hann_window ones rand randint randn randperm range tril_indices "
    "triu_indices zeros".split()
)
VALUES = {"torch.full": ("fill_value", 1), "torch.Tensor.new_full": ("fill_value", 1)}


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
    remedy = "pass the size as an int (output_size=, num_classes=), known before the compiled function is called"
    gb_types = (VALUE, "Dynamic shape operator")

    def call(self, event: Event) -> Iterator[Finding]:
        name = event.callee.qualname
        captures = event.settings.capture_dynamic_output_shape_ops
        if name == "builtins.range":
            if any(tensors(*event.args)):
                yield event.finding(
                    "the length of `range()` is a tensor", gb_types=("Failed to trace builtin operator", ITEM, VALUE)
                )
        elif name == ONE_HOT:
            classes = event.argument(1, "num_classes")
            if classes is None or (isinstance(classes, Const) and classes.value == -1):
                yield event.finding(
                    "`one_hot()` without `num_classes` looks for the largest index in the data",
                    gb_types=("Attempted to use `torch.nn.functional.one_hot` with data-dependent output shape",),
                )
        elif name in REPEAT:
            counts = event.argument(0 if event.receiver is not None else 1, "repeats")
            if any(tensors(counts)) and event.argument(99, "output_size") is None and not captures:
                yield event.finding(
                    f"`{callee(event)}` with a tensor of counts has an output whose size depends on the data",
                    gb_types=("Dynamic shape operator",),
                    when="default",
                )
        elif breaking(event, "tensor-sized") and any(tensors(*sizes(event))):
            yield event.finding(f"a size given to `{callee(event)}` is a tensor", gb_types=self.gb_types)


def sizes(event: Event) -> list[object]:
    """The arguments that say how large: not the tensor that is worked on, and not the value that fills the result."""
    name = event.callee.qualname
    first = 0 if event.receiver is not None or name in MAKING else 1
    keyword, position = VALUES.get(name, ("input", None))
    by_name = [value for key, value in event.keywords if key not in (keyword, "input", "out")]
    return [value for n, value in enumerate(event.args) if n >= first and n != position] + by_name
