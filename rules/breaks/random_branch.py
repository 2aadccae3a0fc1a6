"""TL103."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import Scalar, Tensor
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import spelled


class RandomBranch(Rule):
    """A random draw decides what runs: layer drop, stochastic depth, random augmentation.

    ## Why it breaks

    The draw has no value while Dynamo traces, so it is a branch on data like any other: the graph ends at each test,
    and in a loop over layers the whole function falls back to eager.

    ## Bad

    ```python
    import torch


    @torch.compile
    def layer_drop(x, weight):
        if torch.rand([]) < 0.1:
            return x
        return x @ weight


    layer_drop(torch.randn(4, 4), torch.randn(4, 4))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def layer_drop(x, weight):
        return torch.where(torch.rand([]) < 0.1, x, x @ weight)


    layer_drop(torch.randn(4, 4), torch.randn(4, 4))
    ```

    ## Fix safety

    `torch.where` computes the layer that is dropped too: the same result, without the time saved. Where no layer is
    dropped in evaluation, test `self.training` first.

    ## What running tells

    One run takes one way at each draw. What lies on the other is unreached, which is no pass.
    """

    code, name = "TL103", "random-branch"
    remedy = "choose with torch.where, or draw outside the compiled function and pass the decision in"
    # The last is what torch 2.10 says of a number that Python's `random` drew.
    gb_types = (
        "Data-dependent branching",
        "Data dependent operator",
        "unimplemented builtin op on tensor arguments",
    )

    def branch(self, event: Event) -> Iterator[Finding]:
        drawn = isinstance(event.value, (Tensor, Scalar)) and event.value.origin == "random"
        if drawn and event.construct not in ("bool", "assert", "asserted", "in", "sort", "caught"):
            yield event.finding(f"the random draw in `{spelled(event.node)}` decides what runs")
