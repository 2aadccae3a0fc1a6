"""TL904."""

from __future__ import annotations

from tlint.rules.base import Rule


class UnresolvedRoot(Rule):
    """Something is compiled, and tlint cannot tell what.

    ## Why it is reported

    The argument of `torch.compile` comes from outside the project, from a registry, or from data. What it compiles
    has not been checked, so silence would say more than is known.

    ## Bad

    ```python
    import importlib

    import torch


    def load(name: str):
        return torch.compile(importlib.import_module(name).build())


    load("plugins")
    ```

    ## Good

    ```python
    import torch


    def build():
        return torch.nn.Linear(4, 4)


    def load():
        return torch.compile(build())


    load()
    ```

    ## Fix safety

    Nothing has to change in the code: `--root FILE.py:NAME` names what is compiled, and `tlint run -- python
    train.py` watches what the program really compiles.
    """

    code, name = "TL904", "unresolved-root"
    remedy = "name what is compiled with --root FILE.py:NAME"
