"""TL134."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule, Severity

# Its name up to torch 2.11, up to 2.13, and from 2.14 on.
ITERATOR = (
    "Unsupported method call",
    "Missing tp_iternext",
    "C-implemented special method without VariableTracker model",
)


class GeneratorValue(Rule):
    """A frame begins with an iterator that Dynamo cannot advance.

    A comprehension in a function whose frame is lost: another break in it lies in a loop, a `try` or a context manager.

    ## Why it breaks

    Up to Python 3.11 a comprehension is a function that is given an iterator. As long as Dynamo traces the function
    around it, that is no matter. Where another break makes Dynamo give that function up, Python runs it and Dynamo is
    asked for the comprehension alone. It can advance iterators of tuples, ranges and tensors, and no others.

    This is a consequence: mend the other break, which names the function that is lost.

    ## Bad

    ```python
    import torch


    @torch.compile
    def total(x, weights: list[float]):
        scaled = [x * weight for weight in weights]
        for y in scaled:
            print(y.shape)
        return sum(scaled)


    total(torch.randn(4), [1.0, 2.0])
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def total(x, weights: list[float]):
        scaled = [x * weight for weight in weights]
        return sum(scaled)


    total(torch.randn(4), [1.0, 2.0])
    ```

    ## Fix safety

    There is nothing to fix here but the break that loses the function.
    """

    code, name = "TL134", "generator-value"
    severity = Severity.info
    remedy = "mend the break that loses the function around it, or write the loop out"
    gb_types = ITERATOR

    def iterate(self, event: Event) -> Iterator[Finding]:
        if event.construct == "apart":
            yield event.finding(
                "this comprehension is compiled by itself, because another break loses the function around it, and "
                "Dynamo cannot advance its iterator"
            )
