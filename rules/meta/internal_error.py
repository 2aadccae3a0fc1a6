"""TL903."""

from __future__ import annotations

from tlint.rules.base import Rule


class InternalError(Rule):
    """tlint failed while it looked at this code.

    ## What it means

    The rest of the project has been checked; findings at and behind this place may be missing. It says nothing about
    your code.

    ## What to do

    Please report it with the message. `exclude` leaves the file out until it is mended.
    """

    code, name = "TL903", "internal-error"
    remedy = "please report it, with the code at this place"
