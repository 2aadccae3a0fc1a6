"""TL905."""

from __future__ import annotations

from tlint.rules.base import Rule


class UnknownSuppression(Rule):
    """A `# tlint:` comment that names no rule, or that cannot be read.

    ## Why it is reported

    A misspelt name silences nothing, and looks as if it did.

    ## Bad

    ```python
    import torch


    @torch.compile
    def first(x):
        return x.tolist()[0]  # tlint: ignore[tensor-to-pyhton] one value is enough


    first(torch.randn(8))
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def first(x):
        return x.tolist()[0]  # tlint: ignore[tensor-to-python] one value is enough


    first(torch.randn(8))
    ```

    ## Fix safety

    With its name right, the comment hides the finding: that is what it is for.
    """

    code, name = "TL905", "unknown-suppression"
    remedy = "correct the name: `tlint rules` lists them"
