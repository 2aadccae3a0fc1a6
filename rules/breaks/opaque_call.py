"""TL117."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee


class OpaqueCall(Rule):
    """A function that is not written in Python: a C extension, pybind, ctypes.

    ## Why it breaks

    Dynamo reads Python bytecode; there is none. It cannot know what the call does with tensors, and ends the graph.

    ## Bad

    ```python
    import torch


    @torch.compile
    def adopt(array):
        return torch.from_dlpack(array) * 2


    adopt(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def double(x):
        return x * 2


    double(torch.from_dlpack(torch.randn(8)))
    ```

    ## Fix safety

    A call that works on tensors can become a `torch.library.custom_op` with a fake implementation, which has to be
    written with care: a wrong one gives wrong results.

    ## What running tells

    Which functions of an extension module are opaque, where the facts do not know it: a break shows as TL199.
    """

    code, name = "TL117", "opaque-call"
    kind = "opaque"
    remedy = "call it outside, or wrap it as a torch.library.custom_op with a fake implementation"
    gb_types = ("Attempted to call function marked as skipped",)

    def call(self, event: Event) -> Iterator[Finding]:
        if fact := breaking(event, self.kind):
            yield event.finding(f"Dynamo cannot look into `{callee(event)}`", gb_types=(fact.gb_type,), when=fact.when)
