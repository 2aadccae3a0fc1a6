"""TL112."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Confidence, Event, Finding, Rule
from tlint.rules.breaks.tensor_to_python import VALUE
from tlint.rules.reading import breaking, callee, given, spelled, tensors

BUILTIN, REPR = "Failed to trace builtin operator", "repr() on tensor"


class TensorFormatting(Rule):
    """A tensor's values are turned into text: an f-string, `%`, `str.format`, `str()` or `repr()`.

    ## Why it breaks

    The text depends on values, which do not exist while Dynamo traces. An f-string and `str.format` break only where
    their text is used, and take the whole function with them to eager: they are reported as possible. Shapes and dtypes
    may be formatted.

    ## Bad

    ```python
    import torch


    @torch.compile
    def labelled(x):
        label = "mean " + str(x.mean())
        return x * len(label)


    labelled(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def labelled(x):
        label = f"shape {tuple(x.shape)}"
        return x * len(label)


    labelled(torch.randn(8))
    ```

    ## Fix safety

    The text changes: it is yours to decide what it should say.

    ## What running tells

    Whether the text of an f-string is used, so that it breaks.
    """

    code, name = "TL112", "tensor-formatting"
    kind = "format"
    remedy = "format its shape or dtype, or do it outside the compiled function"
    gb_types = (BUILTIN, REPR, "Observed exception", "torch.* op returned non-Tensor", VALUE)

    def format(self, event: Event) -> Iterator[Finding]:
        if event.value.is_tensor and event.construct != "set":
            yield event.finding(
                f"the values of the tensor `{spelled(event.node)}` are formatted as text",
                confidence=Confidence.possible if event.construct == "f-string" else Confidence.certain,
            )

    def call(self, event: Event) -> Iterator[Finding]:
        if breaking(event, self.kind) and any(tensors(*given(event))):
            lazy = event.callee.qualname.endswith("str.format")
            yield event.finding(
                f"`{callee(event)}` formats a tensor's values as text",
                confidence=Confidence.possible if lazy else Confidence.certain,
            )
