"""TL131."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import ExternalInstance
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee, captured


class ConstructionInRegion(Rule):
    """A Parameter, a layer with parameters, an optimizer or a class is made inside a compiled function.

    ## Why it breaks

    A parameter is an input of the graph that outlives the call; made inside, it would be a new one each time. A
    `class` statement runs code that builds a type, which Dynamo does not trace.

    ## Bad

    ```python
    import torch


    @torch.compile
    def project(x):
        return torch.nn.Linear(4, 4)(x)


    project(torch.randn(2, 4))
    ```

    ## Good

    ```python
    import torch

    layer = torch.nn.Linear(4, 4)


    @torch.compile
    def project(x):
        return layer(x)


    project(torch.randn(2, 4))
    ```

    ## Fix safety

    Made once, a layer keeps its weights between calls; made on each call, they are random each time.
    """

    code, name = "TL131", "construction-in-region"
    kind = "construction"
    remedy = "make it once, in `__init__` or at module level"
    gb_types = (
        "Attempted to use `torch.nn.Parameter()` constructor with Dynamo",
        "Invalid call to __build_class__",
        "Uninitialized nn.Module",
    )

    def call(self, event: Event) -> Iterator[Finding]:
        # Calling a layer looks up the same row as making it.
        if not isinstance(event.callee, ExternalInstance) and (fact := breaking(event, self.kind)):
            yield event.finding(
                f"`{callee(event)}` makes a new object in the compiled function",
                gb_types=(fact.gb_type, *self.gb_types),
                when=fact.when,
            )

    def define(self, event: Event) -> Iterator[Finding]:
        fact = event.facts.lookup("builtins.__build_class__")
        if fact is not None and fact.gb_type and not captured(event, fact):
            yield event.finding(
                f"the class `{event.method}` is defined inside the compiled function", gb_types=(fact.gb_type,)
            )
