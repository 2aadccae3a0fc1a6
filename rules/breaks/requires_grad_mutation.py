"""TL122."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import Const
from tlint.rules.base import Confidence, Event, Finding, Rule
from tlint.rules.reading import OUTSIDE, breaking, callee, is_true, spelled

SETATTR = "setattr() on Tensor.requires_grad"
CALL = "Unsupported Tensor.requires_grad_() call"
LEAK = "requires_grad_() intermediate leaked as output"
RETAIN = "Tensor.retain_grad() with AOTDispatcher"
CREATION = "Attempted to use tensor creation function with requires_grad=True"


class RequiresGradMutation(Rule):
    """Whether a tensor requires gradients is changed: `requires_grad = …`, `requires_grad_()`, `retain_grad()`.

    ## Why it breaks

    The graph is differentiated as a whole, for the inputs that require gradients when it is entered. A new leaf in
    the middle, or a gradient kept for a value in the middle, has no place in it.

    ## Bad

    ```python
    import torch


    @torch.compile
    def energy(points):
        probe = points.detach() * 1.0
        probe.requires_grad = True
        return probe.square().sum()


    energy(torch.randn(5, 3))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def energy(probe):
        return probe.square().sum()


    energy(torch.randn(5, 3, requires_grad=True))
    ```

    ## Fix safety

    Moved to the caller, the leaf is another tensor: code that reads its `.grad` has to move too.
    """

    code, name = "TL122", "requires-grad-mutation"
    kind = "requires-grad"
    remedy = "set it outside the compiled function, on what is passed in"
    gb_types = (SETATTR, CALL, LEAK, CREATION, RETAIN)

    def attribute(self, event: Event) -> Iterator[Finding]:
        if event.store and event.method == "requires_grad" and event.value.is_tensor:
            yield event.finding(f"`{spelled(event.node)}` is assigned", gb_types=(SETATTR, LEAK))

    def call(self, event: Event) -> Iterator[Finding]:
        if event.method == "requires_grad_":
            yield from self.requires_grad_(event)
        elif fact := breaking(event, self.kind):
            yield event.finding(
                f"`{callee(event)}` changes what requires gradients", gb_types=(fact.gb_type, RETAIN), when=fact.when
            )
        elif is_true(event.argument(None, "requires_grad")) and event.fact and event.fact.returns.startswith("Tensor"):
            yield event.finding(f"`{callee(event)}` makes a leaf that requires gradients", gb_types=(CREATION,))

    def requires_grad_(self, event: Event) -> Iterator[Finding]:
        wanted = event.argument(0, "requires_grad")
        computed = event.receiver.is_tensor and event.receiver.origin not in OUTSIDE
        if not (computed and isinstance(wanted, Const) and wanted.value is False):
            # What is computed breaks only if a result of the function depends on it.
            yield event.finding(
                f"`{callee(event)}` changes what requires gradients",
                gb_types=(LEAK, CALL),
                confidence=Confidence.possible if computed else Confidence.likely,
            )
