"""The rules, one a file; `load` finds them by walking this package, so there is no list to edit."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from tlint.rules.base import Rule

# Former name → code. A code is never given to another rule, and a renamed rule answers to both names.
aliases: Mapping[str, str] = MappingProxyType({})


@functools.cache
def load() -> Mapping[str, Rule]:
    """Every rule by its code, in order of code."""
    for module in pkgutil.walk_packages(__path__, __name__ + "."):
        importlib.import_module(module.name)
    rules = sorted((cls() for cls in Rule.__subclasses__()), key=lambda rule: rule.code)
    return MappingProxyType({rule.code: rule for rule in rules})
