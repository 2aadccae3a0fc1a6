"""TL136."""

from __future__ import annotations

from collections.abc import Iterator

from tlint.rules.base import Confidence, Event, Finding, Rule
from tlint.rules.breaks.data_dependent_assert import has_constant_message
from tlint.rules.reading import spelled


class ExceptionControlFlow(Rule):
    """An assertion whose failure is caught, so that it decides what runs.

    ## Why it breaks

    Dynamo expects an assertion that fails while it traces to fail the program, and gives the whole function up. An
    exception that is raised by name is traced, and so are its handlers. An assertion that holds does no harm.

    ## Bad

    ```python
    import torch


    @torch.compile
    def pooled(x):
        try:
            assert x.dim() == 3
        except AssertionError:
            x = x.unsqueeze(0)
        return x.mean(1)


    pooled(torch.randn(3, 4))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def pooled(x):
        if x.dim() != 3:
            x = x.unsqueeze(0)
        return x.mean(1)


    pooled(torch.randn(3, 4))
    ```

    ## Fix safety

    `if` and a caught `assert` differ under `python -O`, which drops assertions.

    ## What running tells

    Whether the assertion fails. One that holds does no harm, and its finding is refuted.
    """

    code, name = "TL136", "exception-control-flow"
    remedy = "write an `if`, or raise the exception by name"
    # The second comes behind the first where the assertion stands in a function that is called.
    gb_types = ("Data-dependent assertion failed (cannot compile partial graph)", "Data-dependent branching")

    def branch(self, event: Event) -> Iterator[Finding]:
        # Dynamo knows an assertion by its bytecode: one that is negated or computes its message is a plain branch.
        caught = event.construct == "caught" and not event.value.is_tensor
        if caught and event.confirm(has_constant_message):
            yield event.finding(
                f"the failure of the assertion `{spelled(event.node)}` is caught", confidence=Confidence.likely
            )
