"""What torch's callables return, and what Dynamo does with them: tables mined from each torch version, read as data."""

from __future__ import annotations

import functools
import json
import re
from importlib import resources
from typing import Any

from tlint.rules.base import Fact


class Facts:
    """The tables of one torch version. Its format is described in `compiler/versions/generate.py`."""

    def __init__(self, version: str, table: dict[str, Any]) -> None:
        self.version = version
        self.callables: dict[str, dict[str, Any]] = table["callables"]
        self.attributes: dict[str, str] = table.get("attributes", {})
        self.modules: frozenset[str] = frozenset(table.get("modules", ()))
        self.aliases: dict[str, str] = table.get("aliases", {})
        self.registry: dict[str, dict[str, Any]] = table.get("registry", {})
        self.compile: dict[str, Any] = table.get("compile", {})
        self._facts: dict[str, Fact | None] = {}

    def canonical(self, name: str) -> str:
        return self.aliases.get(name, name)

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """What this torch is known to have: callables and classes, and the modules they lie in."""
        found = {*self.callables, *self.aliases, *self.modules}
        return frozenset(found | {name[:i] for name in found for i, c in enumerate(name) if c == "."})

    def lookup(self, name: str) -> Fact | None:
        """The row of a callee, by any of its names; None where the table does not know it."""
        if name not in self._facts:
            row = self.callables.get(self.canonical(name))
            known = Fact.__dataclass_fields__
            self._facts[name] = (
                Fact(name=name, **{k: v for k, v in row.items() if k in known}) if row is not None else None
            )
        return self._facts[name]


@functools.cache
def versions() -> tuple[str, ...]:
    """The torch versions that have facts, oldest first."""
    found = []
    for folder in resources.files("tlint.compiler").joinpath("versions").iterdir():
        match = re.fullmatch(r"v(\d+)_(\d+)", folder.name)
        if match and folder.joinpath("facts.json").is_file():
            found.append((int(match[1]), int(match[2])))
    return tuple(f"{major}.{minor}" for major, minor in sorted(found))


@functools.cache
def load(version: str) -> Facts:
    """The facts of "2.13". The caller has checked that it is one of `versions()`."""
    path = resources.files("tlint.compiler").joinpath("versions", "v" + version.replace(".", "_"), "facts.json")
    return Facts(version, json.loads(path.read_text(encoding="utf-8")))


@functools.cache
def healed(name: str, version: str) -> str:
    """The torch from which on a callee that breaks in `version` does not; "" if it still does in the newest."""
    found = ""
    for later in reversed(versions()[versions().index(version) + 1 :]):  # most breaks stay: one more table is read
        table = load(later)
        row = table.callables.get(table.canonical(name), {})
        if not row.get("tried") or "gb_type" in row or "error" in row:
            break
        found = later
    return found
