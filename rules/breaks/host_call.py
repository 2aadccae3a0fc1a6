"""TL114."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Event, Finding, Rule
from tlint.rules.reading import breaking, callee

# Run outside the graph, what is written in Python is compiled by itself, and may break there once more.
INSIDE = "Attempt to trace generator"


class HostCall(Rule):
    """The function asks the host: clocks, the operating system, files, hashes, imports, the call stack.

    ## Why it breaks

    Such calls are implemented in C or reach outside the process, and their answer may differ at each call. Dynamo
    skips them: the graph ends before the call and another begins behind it. Some (`os.getenv`, `os.environ`) are
    traced, and their answer is then part of the compiled code.

    ## Bad

    ```python
    import time

    import torch


    @torch.compile
    def stamped(x):
        return x.sum(), time.perf_counter()


    stamped(torch.randn(8))
    ```

    ## Good

    ```python
    import time

    import torch


    @torch.compile
    def total(x):
        return x.sum()


    stamped = total(torch.randn(8)), time.perf_counter()
    ```

    ## Fix safety

    Moved out of the function or to import time, the call runs at another moment and perhaps less often.

    ## What running tells

    Calls of libraries that the facts do not know stay silent: a break shows as TL199.
    """

    code, name = "TL114", "host-call"
    kind = "host"
    remedy = "ask once, outside the compiled function, and pass the answer in"
    gb_types = ("Attempted to call function marked as skipped", "Unsupported method call")

    def call(self, event: Event) -> Iterator[Finding]:
        fact = breaking(event, self.kind)
        if fact and event.callee.qualname != "torch._dynamo.graph_break":  # asked for
            yield event.finding(f"`{callee(event)}` asks the host", gb_types=(fact.gb_type, INSIDE), when=fact.when)
