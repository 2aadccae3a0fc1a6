"""TL199."""

from __future__ import annotations

from tlint.rules.base import Rule


class UnpredictedBreak(Rule):
    """The compiler broke the graph where no rule expected it.

    ## What it means

    The verification stage runs the compiler and records every graph break. One that no finding claims is reported
    under this code, with Dynamo's own type and message: it is a fact about your code, and a gap in the static rules.

    ## What to do

    Read Dynamo's message; `tlint explain` with its GB number gives the explanation and hints offline. If the break is
    plain from the source, please report it, so that a rule can predict it.
    """

    code, name = "TL199", "unpredicted-break"
    remedy = "see `tlint explain` with the GB number of the break"
