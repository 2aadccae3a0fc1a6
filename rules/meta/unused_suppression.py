"""TL901."""

from __future__ import annotations

from tlint.rules.base import Rule


class UnusedSuppression(Rule):
    """A `# tlint: ignore` comment that silences nothing.

    ## Why it is reported

    The code it excused has changed, or the torch in use no longer breaks there. Left in place, the comment would hide
    the next finding. It is reported only if the rule it names was on.

    ## Bad

    ```python
    import torch


    @torch.compile
    def twice(x):
        return x * 2  # tlint: ignore[tensor-to-python] used to read a value


    twice(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def twice(x):
        return x * 2


    twice(torch.randn(8))
    ```

    ## Fix safety

    Removing a comment changes nothing that runs.
    """

    code, name = "TL901", "unused-suppression"
    remedy = "remove the comment"
