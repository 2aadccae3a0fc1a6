"""TL116."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import ExternalInstance, Instance, Unknown, Value
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import callee, tensors


class DeepcopyCall(Rule):
    """A tensor, or something that holds one, is copied with the `copy` module.

    ## Why it breaks

    A deep copy goes through the object's own protocol of reduction and storage, which is not an operation on tensors.

    ## Bad

    ```python
    import copy

    import torch


    @torch.compile
    def kept(x):
        return copy.deepcopy(x) + 1


    kept(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def kept(x):
        return x.clone() + 1


    kept(torch.randn(8))
    ```

    ## Fix safety

    `clone()` keeps the history of gradients, a deep copy does not: `detach().clone()` is the nearer one.
    """

    code, name = "TL116", "deepcopy-call"
    kind = "deepcopy"
    remedy = "clone the tensor, or copy in `__init__`"
    gb_types = ("Attempted to copy.deepcopy a tensor", "Attempted to call function marked as skipped")

    def call(self, event: Event) -> Iterator[Finding]:
        fact = event.fact
        if fact is None or fact.kind != self.kind or not fact.gb_type or not event.args:
            return
        copied = event.args[0]
        if fact.name == "copy.copy" and isinstance(copied, (Instance, Unknown)):
            return  # Dynamo traces what `copy` calls on an object; of lists, dicts and tensors it does not
        if not fact.only or any(tensors(copied)) or is_module(event, copied):
            yield event.finding(
                f"`{callee(event)}` copies an object in a way that Dynamo does not trace",
                gb_types=(fact.gb_type, *self.gb_types),
                when=fact.when,
            )


def is_module(event: Event, value: Value) -> bool:
    return isinstance(value, ExternalInstance) and value.cls in event.facts.modules
