"""TL133."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import ExternalInstance
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee

RNN = "Attempted to wrap RNN, GRU, or LSTM"


class RecurrentLayer(Rule):
    """An `nn.LSTM`, `nn.GRU` or `nn.RNN` is called, or a sequence is packed.

    ## Why it breaks

    Dynamo refuses these layers unless `torch._dynamo.config.allow_rnn` is set: unrolled over time they compile
    slowly, and packed sequences have sizes that depend on the data. The cells (`nn.LSTMCell`) are fine.

    ## Bad

    ```python
    import torch

    rnn = torch.nn.GRU(4, 8, batch_first=True)


    @torch.compile
    def encode(x):
        return rnn(x)[0]


    encode(torch.randn(2, 5, 4))
    ```

    ## Good

    ```python
    import torch

    cell = torch.nn.GRUCell(4, 8)


    @torch.compile
    def encode(x):
        h = x.new_zeros(x.shape[0], 8)
        for t in range(x.shape[1]):
            h = cell(x[:, t], h)
        return h


    encode(torch.randn(2, 5, 4))
    ```

    ## Fix safety

    A loop over cells is unrolled for each length; on a GPU the layer's own kernel may well be faster. Often it is
    best to compile what lies around the layer.
    """

    code, name = "TL133", "recurrent-layer"
    kind = "recurrent"
    remedy = "compile what lies around it, or set torch._dynamo.config.allow_rnn and measure"
    gb_types = (RNN, "Attempted to call function marked as skipped")

    def call(self, event: Event) -> Iterator[Finding]:
        if fact := breaking(event, self.kind):
            what = "runs a recurrent layer" if isinstance(event.callee, ExternalInstance) else "packs a sequence"
            yield event.finding(f"`{callee(event)}` {what}", gb_types=(fact.gb_type, RNN), when=fact.when)
