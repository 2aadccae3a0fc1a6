"""TL141."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import Function
from tlint.rules.base import Event, Finding, Rule, Severity
from tlint.rules.reading import callee


class DisabledCallee(Rule):
    """A function under `torch.compiler.disable` is called from a compiled one.

    ## Why it breaks

    It is what `disable` is for: the graph ends, the function runs eagerly, and another graph begins. That is
    information, and with `reason="…"` nothing is reported. Under `fullgraph=True` every break is an error, this one
    too.

    ## Bad

    ```python
    import torch


    @torch.compiler.disable
    def statistics(x):
        return x.mean()


    @torch.compile(fullgraph=True)
    def centred(x):
        return x - statistics(x)


    centred(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compiler.disable(reason="reads a host counter")
    def statistics(x):
        return x.mean()


    @torch.compile
    def centred(x):
        return x - statistics(x)


    centred(torch.randn(8))
    ```

    ## Fix safety

    A custom operator keeps one graph, and needs a fake implementation that is right.
    """

    code, name = "TL141", "disabled-callee"
    severity = Severity.info
    remedy = 'say why with disable(reason="…"); under fullgraph, wrap it as a torch.library.custom_op or rewrite it'
    gb_types = (
        "Skip calling `torch.compiler.disable()`d function",
        "Skip inlining `torch.compiler.disable()`d function",
        "Call to `torch.compiler.disable()`",
    )

    def call(self, event: Event) -> Iterator[Finding]:
        wrappers = event.callee.wrappers if isinstance(event.callee, Function) else ()
        if event.fullgraph and any(wrapper.startswith("disable") for wrapper in wrappers):
            yield event.finding(
                f"`{callee(event)}` is excluded by `disable`, and fullgraph=True forbids the break",
                severity=Severity.error,
            )
        elif "disable" in wrappers:  # and not "disable+reason"
            yield event.finding(f"`{callee(event)}` is excluded by `disable`, which gives no reason")
