"""Settings: the defaults, then `tlint.toml` or `[tool.tlint]`, then the command line. A mistake in a file is an error.

The dataclasses are the schema: their fields are the keys (with "-" for "_"), their annotations the accepted types.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pathspec import GitIgnoreSpec

from tlint.analyzer import source
from tlint.analyzer.model import TlintError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OutputFormat = Literal["text", "concise", "json", "github"]
Roots = Literal["auto", "modules", "explicit"]
FailOn = Literal["info", "warning", "error"]
MinConfidence = Literal["possible", "likely", "certain"]
Mode = Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]

COMMAND_LINE_ONLY = frozenset(
    {"verify", "only_targets", "output_file", "add_ignores", "reason", "quiet", "flags", "verify_settings"}
)


def parse_size(text: str) -> int:
    """Bytes, from "8GiB", "512 MB" or a plain number."""
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*(?:([KMGT])(i?)B?|B)?\s*", text, re.IGNORECASE)
    if match is None:
        raise ValueError(f"must be a size like 8GiB or 512MB, not {text!r}")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** " KMGT".index((unit or " ").upper()))


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """`[tool.tlint.verify]`. `timeout` (seconds) and `memory` (bytes) hold for one target; `train` None: as it says."""

    timeout: float = 120.0
    memory: Annotated[int, parse_size] = 8 * 2**30
    gpus: tuple[str, ...] = ("h100",)
    jobs: int = 1
    train: bool | None = None
    mode: Mode | None = None
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("timeout", "memory", "jobs"):
            value = getattr(self, name)
            if not 0 < value < math.inf:  # nor is "not a number"
                raise TlintError(f"{name} must be a number above zero, not {value}")


@dataclass(frozen=True, slots=True)
class Settings:
    """`[tool.tlint]`, and what only the command line says. `flags` are the fields that the command line gave.

    `only_targets`: it named targets of verification and no PATH, so that what they reach is all that is reported.
    """

    select: tuple[str, ...] = ("TL",)
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    preview: bool = False
    output_format: OutputFormat = "text"
    output_file: str | None = None
    root: tuple[str, ...] = ()
    roots: Roots = "auto"
    root_decorators: tuple[str, ...] = ()
    target_torch: tuple[str, ...] = ()
    fail_on: FailOn = "warning"
    min_confidence: MinConfidence = "likely"
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    baseline: str | None = None
    cache_dir: str | None = None
    python: str | None = None
    statistics: bool = False
    add_ignores: bool = False
    reason: str = ""
    quiet: bool = False
    verify: bool = False
    only_targets: bool = False
    verify_settings: VerifySettings = VerifySettings()
    flags: frozenset[str] = frozenset()


NAMES = frozenset((*Settings.__dataclass_fields__, *VerifySettings.__dataclass_fields__))


def load(root: Path, overrides: Mapping[str, Any]) -> Settings:
    """The settings of the project at `root`; `overrides` come from the command line, by the names of the fields."""
    values, verify = _read(root)
    verify |= {key: overrides[key] for key in overrides if key in _hints(VerifySettings)}
    values |= {key: overrides[key] for key in overrides if key in _hints(Settings)}
    return Settings(**values, verify_settings=VerifySettings(**verify), flags=frozenset(overrides))


def table(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """The file in `folder` that configures tlint, with its table. `tlint.toml` wins over pyproject.toml."""
    own, shared = folder / "tlint.toml", folder / "pyproject.toml"
    if os.path.isfile(own):
        return own, read_toml(own)
    if os.path.isfile(shared):
        tool = read_toml(shared).get("tool", {})
        if isinstance(tool, dict) and "tlint" in tool:
            return shared, tool["tlint"]
    return None


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(source.read(path).text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TlintError(f"{path}: {error}") from error


def patterns(lines: Iterable[str]) -> tuple[GitIgnoreSpec, tuple[str, ...]]:
    """What lines in the syntax of .gitignore match; and those of them that are no patterns."""
    right, wrong = list[str](), list[str]()
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
            right.append(line)
        except (ValueError, re.error):
            wrong.append(line)
    return GitIgnoreSpec.from_lines(right), tuple(wrong)


def _read(root: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    found = table(root)
    if found is None:
        return {}, {}
    path, given = found
    if not isinstance(given, dict):
        raise TlintError(f"{path}: tool.tlint must be a table")
    prefix = "tool.tlint." if path.name == "pyproject.toml" else ""
    hints = {name: hint for name, hint in _hints(Settings).items() if name not in COMMAND_LINE_ONLY}
    verify = given.pop("verify", {})
    if not isinstance(verify, dict):
        raise TlintError(f"{path}: {prefix}verify must be a table")
    values = _fields(given, hints, path, prefix)
    for name in ("exclude", "per_file_ignores"):
        if wrong := patterns(values.get(name, ()))[1]:
            raise TlintError(f"{path}: {prefix}{name.replace('_', '-')}: {wrong[0]!r} is no pattern as in .gitignore")
    for name in ("baseline", "cache_dir", "python"):
        if values.get(name):
            values[name] = str(root / values[name])
    return values, _fields(verify, _hints(VerifySettings), path, f"{prefix}verify.")


def _fields(given: Mapping[str, Any], hints: Mapping[str, Any], path: Path, prefix: str) -> dict[str, Any]:
    keys = {name.replace("_", "-"): name for name in hints}
    values = {}
    for key, value in given.items():
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(sorted(keys))}"
            raise TlintError(f"{path}: unknown key {prefix}{key}: {hint}")
        try:
            values[keys[key]] = _convert(value, hints[keys[key]])
        except ValueError as error:
            raise TlintError(f"{path}: {prefix}{key} {error}") from error
    return values


def _convert(value: Any, hint: Any) -> Any:
    """`value` of a TOML file as the type that `hint` asks for. The message of a ValueError continues "KEY ..."."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _convert(value, args[0])
    if origin is Annotated:
        if isinstance(value, str):
            return args[1](value)
        return _convert(value, args[0])
    if origin is Literal:
        if value not in args:
            raise ValueError(f"must be one of {', '.join(map(repr, args))}, not {value!r}")
        return value
    if origin is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"must be a list of strings, not {value!r}")
        return tuple(value)
    if origin is not None:  # a Mapping
        if not isinstance(value, dict):
            raise ValueError(f"must be a table, not {value!r}")
        return {key: _convert(item, args[1]) for key, item in value.items()}
    if type(value) is not hint and not (hint is float and type(value) is int):
        words = {str: "a string", bool: "true or false", int: "a whole number", float: "a number"}
        raise ValueError(f"must be {words[hint]}, not {value!r}")
    return hint(value)


def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)
