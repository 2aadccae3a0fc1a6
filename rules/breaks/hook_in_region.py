"""TL124."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee


class HookInRegion(Rule):
    """A hook is registered on a module while it is being compiled, or a module with backward hooks is called.

    ## Why it breaks

    Registering changes the module's own tables and returns a handle, which are effects on an object outside the
    graph. Forward hooks that were registered before are traced, backward hooks of modules need compiled autograd. Hooks
    on tensors (`t.register_hook`) are traced.

    ## Bad

    ```python
    import torch

    layer = torch.nn.Linear(4, 4)
    seen = []


    @torch.compile
    def probe(x):
        layer.register_forward_hook(lambda module, args, out: seen.append(out.shape))
        return layer(x)


    probe(torch.randn(2, 4))
    ```

    ## Good

    ```python
    import torch

    layer = torch.nn.Linear(4, 4)
    seen = []
    layer.register_forward_hook(lambda module, args, out: seen.append(out.shape))


    @torch.compile
    def probe(x):
        return layer(x)


    probe(torch.randn(2, 4))
    ```

    ## Fix safety

    Registered once, the hook runs once a call; registered on each call, the hooks add up. The first is nearly always
    meant.

    ## What running tells

    Which hooks a module has that other code was given: those of libraries are not seen.
    """

    code, name = "TL124", "hook-in-region"
    kind = "hook"
    remedy = "register it once, before the first compiled call; for gradients use a hook on the output tensor"
    # The second is what Dynamo says of `register_backward_hook`, which torch has deprecated. The third is what it says
    # of a hook on a computed tensor, up to torch 2.11.
    gb_types = (
        "setattr() on unsupported type",
        "Tensor with grad_fn()",
        "Compilation of intermediate hooks requires compiled autograd",
    )

    def call(self, event: Event) -> Iterator[Finding]:
        if fact := breaking(event, self.kind):
            if fact.only == "backward-hook":
                what = f"`{callee(event)}` runs a module that has a backward hook"
            else:
                what = f"`{callee(event)}` registers a hook inside the compiled function"
            yield event.finding(what, gb_types=(fact.gb_type, *self.gb_types), when=fact.when)
