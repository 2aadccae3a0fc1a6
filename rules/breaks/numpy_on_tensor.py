"""TL109."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee


class NumpyOnTensor(Rule):
    """A numpy function that Dynamo cannot turn into torch operators.

    ## Why it breaks

    Dynamo traces much of numpy as torch operators, `.numpy()` included. For what has no torch counterpart the graph
    ends, and numpy itself runs on the CPU.

    ## Bad

    ```python
    import numpy as np
    import torch


    @torch.compile
    def lookup(x):
        return x * np.interp(0.5, [0.0, 1.0], [10.0, 20.0])


    lookup(torch.randn(8))
    ```

    ## Good

    ```python
    import numpy as np
    import torch

    FACTOR = float(np.interp(0.5, [0.0, 1.0], [10.0, 20.0]))


    @torch.compile
    def lookup(x):
        return x * FACTOR


    lookup(torch.randn(8))
    ```

    ## Fix safety

    Moved out, it is computed once: right where its arguments do not change.

    ## What running tells

    Some numpy functions break for some arguments only. The facts do not say which, so these stay silent: a break
    shows as TL199.
    """

    code, name = "TL109", "numpy-on-tensor"
    kind = "numpy"
    remedy = "use the torch operator, or compute it outside the compiled function"
    gb_types = ("attempted to trace numpy function unsupported by PyTorch", "Unsupported ndarray method call")

    def call(self, event: Event) -> Iterator[Finding]:
        if fact := breaking(event, self.kind):
            yield event.finding(f"Dynamo does not trace `{callee(event)}`", gb_types=(fact.gb_type,), when=fact.when)
