"""TL111."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.analyzer.interp.values import ExternalInstance, Instance, Mapping, Sequence, unbound
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee

REORDER = "attempted to reorder a debugging function that can't actually be reordered"
LOGGER = "logging.Logger method not supported for non-export cases"


class LoggingCall(Rule):
    """Something is printed, logged or warned of inside a compiled function.

    ## Why it breaks

    Output is an effect that a graph cannot hold: the graph ends at each call, even where the level is off and nothing
    is written. A log-once helper breaks too, on every compilation.

    ## Bad

    ```python
    import torch


    @torch.compile
    def encode(x):
        print("encoding", tuple(x.shape))
        return x.tanh()


    encode(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def encode(x):
        if not torch.compiler.is_compiling():
            print("encoding", tuple(x.shape))
        return x.tanh()


    encode(torch.randn(8))
    ```

    ## Fix safety

    Guarded, the message no longer appears when compiled. `torch._dynamo.config.reorderable_logging_functions` keeps
    messages and moves them behind the graph, `ignore_logging_functions` leaves them out.
    """

    code, name = "TL111", "logging-call"
    kind = "logging"
    remedy = "guard it with `if not torch.compiler.is_compiling():`, or move it out of the compiled function"
    gb_types = (LOGGER, "Failed to trace builtin operator", "Attempted to call function marked as skipped", REORDER)

    def call(self, event: Event) -> Iterator[Finding]:
        output = unbound(event.callee)
        if output in event.settings.ignore_logging_functions:
            return
        if output in event.settings.reorderable_logging_functions:
            if any(isinstance(value, (Sequence, Mapping, Instance, ExternalInstance)) for value in event.args):
                message = f"`{callee(event)}` is given more than tensors, numbers and strings: it cannot run later"
                yield event.finding(message, gb_types=(REORDER,))
        elif fact := breaking(event, self.kind):
            yield event.finding(f"`{callee(event)}` writes output", gb_types=(fact.gb_type,), when=fact.when)
        elif event.fact is None and event.receiver is not None and event.receiver.qualname == "logging.Logger":
            # Libraries hang methods of their own on loggers (`warning_once`): Dynamo refuses any method of a logger.
            yield event.finding(f"`{callee(event)}` writes output", gb_types=(LOGGER,))
