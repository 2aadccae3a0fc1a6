"""TL902."""

from __future__ import annotations

from tlint.rules.base import Rule, Severity


class UnparsableFile(Rule):
    """A file does not parse.

    ## Why it is reported

    Nothing in it, and nothing that it defines for others, has been looked at. tlint reads the grammar of the Python
    that it runs under.

    ## Bad

    ```python
    def broken(x:
        return x
    ```

    ## Good

    ```python
    def whole(x):
        return x
    ```

    ## Fix safety

    There is no fix to offer: the error has to be corrected by hand. A file in another grammar can be left out with
    `exclude`.
    """

    code, name = "TL902", "syntax-error"
    severity = Severity.error
    remedy = "correct the syntax, or leave the file out with `exclude`"
