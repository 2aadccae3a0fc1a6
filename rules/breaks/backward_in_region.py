"""TL121."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule, Severity
from tlint.rules.reading import breaking, callee


class BackwardInRegion(Rule):
    """The backward pass or the optimizer's step is part of the compiled function.

    ## Why it breaks

    AOTAutograd derives the backward from the forward graph. A call of `backward()` or `torch.autograd.grad()` in the
    middle needs gradients before that graph exists, so it ends there. `optimizer.step()` contains a break of torch's
    own: compiled on its own that is intended, and reported as information unless the root asks for `fullgraph=True`.
    So is a `backward()` where `torch._dynamo.config.compiled_autograd` is on, which captures it as a graph of its own.

    ## Bad

    ```python
    import torch

    model = torch.nn.Linear(4, 1)


    @torch.compile
    def train_step(x):
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()


    train_step(torch.randn(8, 4))
    ```

    ## Good

    ```python
    import torch

    model = torch.nn.Linear(4, 1)


    @torch.compile
    def loss_of(x):
        return model(x).square().mean()


    loss_of(torch.randn(8, 4)).backward()
    ```

    ## Fix safety

    The same computation: the backward of the compiled forward is compiled as well.
    """

    code, name = "TL121", "backward-in-region"
    kind = "backward"
    remedy = "compile the forward and the loss; call backward() and optimizer.step() outside"
    gb_types = (
        "Unsupported Tensor.backward() call",
        "using `torch.autograd.grad` with `torch._dynamo.config.trace_autograd_ops=False`",
        "Attempted to call function marked as skipped",
    )

    def call(self, event: Event) -> Iterator[Finding]:
        receiver = event.receiver.qualname if event.receiver is not None else ""
        if event.method == "step" and receiver.startswith("torch.optim.") and "lr_scheduler" not in receiver:
            yield event.finding(
                f"`{callee(event)}` breaks the graph on purpose",
                gb_types=("Call to `torch._dynamo.graph_break()`", "Attempted to call function marked as skipped"),
                severity=Severity.error if event.fullgraph else Severity.info,
            )
        elif fact := breaking(event, self.kind):
            yield event.finding(
                f"`{callee(event)}` computes gradients inside the compiled function",
                gb_types=(fact.gb_type,),
                when=fact.when,
                severity=Severity.info if event.settings.compiled_autograd else None,
            )
