"""TL118."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee


class ScriptedModule(Rule):
    """A TorchScript module is called.

    What `torch.jit.script`, `torch.jit.trace`, `torch.jit.freeze` or `torch.jit.load` made of a module.

    ## Why it breaks

    TorchScript runs in a runtime of its own: there is no Python code that Dynamo could trace. A scripted function is
    different, it is called as one operator.

    ## Bad

    ```python
    import torch

    head = torch.jit.script(torch.nn.Linear(4, 2))


    @torch.compile
    def classify(x):
        return head(x.relu()).softmax(-1)


    classify(torch.randn(3, 4))
    ```

    ## Good

    ```python
    import torch

    head = torch.nn.Linear(4, 2)


    @torch.compile
    def classify(x):
        return head(x.relu()).softmax(-1)


    classify(torch.randn(3, 4))
    ```

    ## Fix safety

    The module as it was before it was scripted computes the same; a traced one may have had branches of its example
    baked in.
    """

    code, name = "TL118", "scripted-module"
    kind = "scripted"
    remedy = "call the module itself instead of its TorchScript form"
    gb_types = (
        "torch.jit.script/freeze modules unsupported",
        "UnspecializedNNModuleVariable wrapped around ScriptModules unsupported",
        "Attempted to inline function marked as skipped",
    )

    def call(self, event: Event) -> Iterator[Finding]:
        if fact := breaking(event, self.kind):
            yield event.finding(f"`{callee(event)}` runs a TorchScript module", gb_types=(fact.gb_type, *self.gb_types))
