"""TL101."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import Tensor
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee, tensors

ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"
TOLIST = "Tensor.tolist() with non-integer tensor"
# What FakeTensor raises when an operator asks for a value: arrays, integer `tolist`, `math` functions.
VALUE = "Data dependent operator"
# `bool()` is a branch event, `any()` and `all()` are branches in all but name.
ELSEWHERE = ("builtins.bool", "builtins.any", "builtins.all")


class TensorToPython(Rule):
    """A tensor's value is read into a Python number.

    `.item()`, `.tolist()`, `int()`, `float()` and `bool()` of a tensor, `math` functions and `torch.equal`.

    ## Why it breaks

    While Dynamo traces, tensors have no values. A Python number that depends on one cannot be known, so the graph
    ends there, the device is waited for, and the rest of the function becomes another graph. Under `fullgraph=True`,
    or with `torch._dynamo.config.capture_scalar_outputs = True`, `.item()`, `int()` and `float()` become symbols in
    the graph instead, and only a decision on such a symbol breaks.

    ## Bad

    ```python
    import torch


    @torch.compile
    def rescale(x):
        return x / x.abs().max().item()


    rescale(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def rescale(x):
        return x / x.abs().max()


    rescale(torch.randn(8))
    ```

    ## Fix safety

    Keeping the tensor is not always the same: its dtype takes part in type promotion, which a Python number does not.
    """

    code, name = "TL101", "tensor-to-python"
    kind = "tensor-to-python"
    remedy = "keep it a tensor, or read the value outside the compiled function"
    gb_types = (ITEM, VALUE)
    when = "default"

    def call(self, event: Event) -> Iterator[Finding]:
        if event.receiver is not None and event.receiver.is_tensor and event.method == "tolist":
            # Integers become symbols where scalars are captured; other numbers never do.
            integral = event.receiver.kind in ("int", "bool")
            if not (integral and event.settings.capture_scalar_outputs):
                yield event.finding(
                    f"`{callee(event)}` reads a tensor's values into a Python list",
                    gb_types=(VALUE,) if integral else (TOLIST, VALUE),
                    when="default" if event.receiver.kind != "float" else "always",
                )
        elif event.callee.qualname.startswith("math.") and any(tensors(*event.args)):
            yield event.finding(
                f"`{callee(event)}` needs a number, and gets a tensor", gb_types=(VALUE,), when="always"
            )
        elif event.callee.qualname not in ELSEWHERE and not is_known(event) and (fact := breaking(event, self.kind)):
            yield event.finding(
                f"`{callee(event)}` reads a tensor's value into Python", gb_types=(fact.gb_type, VALUE), when=fact.when
            )

    def branch(self, event: Event) -> Iterator[Finding]:
        if event.construct == "bool" and event.value.is_tensor:
            yield event.finding("`bool()` reads a tensor's value into Python", when="always")


def is_known(event: Event) -> bool:
    """What numpy makes of a single number, as in `int(np.ceil(n / 2))`: Dynamo has kept its value."""
    about = event.receiver if event.receiver is not None else event.argument(0, "x")
    return isinstance(about, Tensor) and about.numpy and about.origin == "numbers"
