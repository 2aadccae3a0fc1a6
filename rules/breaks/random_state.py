"""TL113."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule
from tlint.rules.breaks.tensor_to_python import VALUE
from tlint.rules.reading import breaking, callee

GENERATOR = "torch.Generator"
SHAPE_AT = {"rand": 0, "randn": 0, "random": 0, "random_sample": 0, "uniform": 2, "normal": 2, "randint": 2}


class RandomState(Rule):
    """A seed is set, a generator is passed, or a number is drawn in a way that Dynamo does not trace.

    ## Why it breaks

    Dynamo keeps `torch.rand` and its kin in the graph, and runs some of Python's `random` before it. Seeds, generator
    objects, the other functions of `random`, and scalar draws of `numpy.random` change or read a state that lives
    outside.

    ## Bad

    ```python
    import torch


    @torch.compile
    def noisy(x):
        torch.manual_seed(0)
        return x + torch.randn_like(x)


    noisy(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def noisy(x):
        return x + torch.randn_like(x)


    torch.manual_seed(0)
    noisy(torch.randn(8))
    ```

    ## Fix safety

    Another generator gives other numbers: the distribution stays, the sequence does not.
    """

    code, name = "TL113", "random-state"
    kind = "random-state"
    remedy = "draw with torch.rand and its kin, and seed outside the compiled function"
    gb_types = ("Attempted to call function marked as skipped", "Failed to convert args/kwargs to proxy", VALUE)

    def call(self, event: Event) -> Iterator[Finding]:
        generator = event.argument(None, "generator")
        if fact := breaking(event, self.kind):
            if not draws_array(event):
                yield event.finding(
                    f"`{callee(event)}` reads or changes random state outside the graph",
                    gb_types=(fact.gb_type,),
                    when=fact.when,
                )
        elif generator is not None and generator.qualname == GENERATOR:
            yield event.finding(
                f"`{callee(event)}` draws from a generator that is passed to it",
                gb_types=("Failed to convert args/kwargs to proxy",),
            )


def draws_array(event: Event) -> bool:
    """numpy's draws of one number break, those of an array do not: the shape follows the distribution's parameters."""
    function = event.callee.qualname.removeprefix("numpy.random.")
    if function not in SHAPE_AT:
        return False
    return len(event.args) > SHAPE_AT[function] or event.argument(None, "size") is not None
