"""TL191."""

from __future__ import annotations

from tlint.rules.base import Rule


class DependencyBreak(Rule):
    """An installed package breaks the graph when it is called here.

    ## What it means

    All that breaks below one call of the package is one finding, at your line; the places are listed with it. Dynamo
    follows calls into packages as it does into your own code. Packages that build on torch (by their metadata) are
    read from the project's environment, along the ways from your roots, assumed ones included. They are not reported on
    themselves.

    ## What to do

    Look whether a newer version or another option of the package avoids it, compile around the call, or report it
    there. `tlint explain` with the code that the finding names tells what kind of break it is.
    """

    code, name = "TL191", "dependency-break"
    remedy = "compile around the call, or look for an option of the package that avoids it"
