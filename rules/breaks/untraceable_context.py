"""TL115."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee, spelled

CONTEXT = "Unsupported context manager"
# What torch 2.14 says of a `with` on a generator that it would not enter.
GENERATOR = "generator function over a skipped function"


class UntraceableContext(Rule):
    """A lock, a context variable or a context manager that Dynamo does not know.

    ## Why it breaks

    Dynamo follows context managers written in Python and the ones of torch that it models. Others act on the process,
    so they cannot be part of a graph; and as Dynamo cannot resume inside such a `with`, the whole function falls back
    to eager.

    ## Bad

    ```python
    import threading

    import torch

    LOCK = threading.Lock()


    @torch.compile
    def update(x):
        with LOCK:
            return x.square()


    update(torch.randn(8))
    ```

    ## Good

    ```python
    import threading

    import torch

    LOCK = threading.Lock()


    @torch.compile
    def update(x):
        return x.square()


    with LOCK:
        update(torch.randn(8))
    ```

    ## Fix safety

    Around the call, the lock is held longer and also while compiling.

    ## What running tells

    Whether a context manager of another library can be traced. It stays silent: a break shows as TL199.
    """

    code, name = "TL115", "untraceable-context"
    kind = "context"
    remedy = "enter it outside the compiled function"
    gb_types = (CONTEXT, "Unsupported method call")

    def call(self, event: Event) -> Iterator[Finding]:
        # Some break when they are made or asked, some only when a `with` enters them: the row's type tells which.
        fact = breaking(event, self.kind)
        if fact and fact.gb_type != CONTEXT:
            yield event.finding(
                f"Dynamo does not trace `{callee(event)}`", gb_types=(fact.gb_type, CONTEXT, GENERATOR), when=fact.when
            )

    def enter(self, event: Event) -> Iterator[Finding]:
        fact = event.facts.lookup(event.value.qualname)
        if fact is not None and fact.kind == self.kind and fact.gb_type == CONTEXT:
            yield event.finding(f"Dynamo does not trace a `with` on `{spelled(event.node)}`", gb_types=(CONTEXT,))
