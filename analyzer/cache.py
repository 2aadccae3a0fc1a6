"""The static stage's result for a project, kept until anything that it depends on changes.

What is found in one file depends on the others: on who calls it, with what, and how often. So there is one record for a
whole project, and its name is a hash over all that the analysis reads: every file, the settings, the torch versions and
tlint itself. A record that was made for more PATHs holds for fewer. A file is known by what it holds, not by its time;
nothing is unpickled.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from tlint import __version__, analyzer, compiler, rules
from tlint.analyzer import engine, project, source
from tlint.analyzer.config import Settings
from tlint.analyzer.model import Analysis, TlintError
from tlint.analyzer.project import Workspace

NAME = ".tlint_cache"
KEPT = 8  # records: one for each set of settings that is in use, and some to spare
FILES = {
    ".gitignore": "*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# What tlint can find out anew: https://bford.info/cachedir/\n",
}

log = logging.getLogger("tlint")

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Record:
    """An analysis, with the files that it was asked about, and hashes of what it read outside of the project."""

    reported: tuple[str, ...]
    outside: dict[str, str]
    analysis: Analysis

    def holds(self, reported: set[str]) -> bool:
        return reported.issubset(self.reported) and all(
            fingerprint(Path(path)) == known for path, known in self.outside.items()
        )


@dataclass(frozen=True, slots=True)
class Watched(Workspace):
    """A workspace that notes what is read."""

    seen: set[Path] = field(default_factory=set)

    def read(self, path: Path) -> source.Source:
        self.seen.add(path)
        return Workspace.read(self, path)


def analyze(workspace: Workspace, settings: Settings, progress: Progress | None = None) -> Analysis:
    """What `engine.analyze` says, from the cache if it is known."""
    folder = place(workspace, settings)
    if folder is None:
        return engine.analyze(workspace, settings, progress)
    name = key(workspace, settings)
    file = folder / f"{name}.json"
    reported = {workspace.display(path) for path in workspace.reported}
    known = read(file)
    if known is not None and known.holds(reported):
        log.info("from the cache: %s", file)
        return narrowed(known.analysis, reported)
    watched = Watched(**{one.name: getattr(workspace, one.name) for one in dataclasses.fields(workspace)})
    analysis = engine.analyze(watched, settings, progress)
    outside = {str(path): fingerprint(path) for path in sorted(watched.seen.difference(workspace.files))}
    failed = any(finding.code == "TL903" for finding in analysis.findings)
    if not failed and key(workspace, settings) == name:  # else a file was written meanwhile
        write(file, Record(tuple(sorted(reported)), outside, analysis))
    return analysis


def place(workspace: Workspace, settings: Settings) -> Path | None:
    """The folder of the cache. None where there is none: for a text that is in no file, and outside of projects."""
    if settings.cache_dir == "" or workspace.buffer is not None:
        return None
    if settings.cache_dir:
        return Path(settings.cache_dir)
    return workspace.root / NAME if project.is_project(workspace.root) else None


def narrowed(analysis: Analysis, reported: set[str]) -> Analysis:
    """The analysis for fewer files: what is wrong with a file itself is told of those that are asked about."""
    kept = tuple(f for f in analysis.findings if f.code not in ("TL902", "TL904") or f.path in reported)
    return replace(analysis, findings=kept, files=len(reported))


# Names of records -----------------------------------------------------------------------------------------------------


def key(workspace: Workspace, settings: Settings) -> str:
    """A hash over what an analysis depends on, but for the files that are asked about."""
    parts: list[object] = [ourselves(), workspace.root, workspace.cwd, workspace.target_torch, inputs(settings)]
    for folder in project.site_packages(Path(workspace.python)) if workspace.python else ():
        parts.append((folder, sorted(info.name for info in folder.glob("*.dist-info"))))
    parts += [(str(path), fingerprint(path)) for path in workspace.files]
    return hashlib.sha256(repr(parts).encode(errors="backslashreplace")).hexdigest()[:32]


def inputs(settings: Settings) -> Settings:
    """The settings, without those that only say what is done with the result."""
    default = Settings()
    names = (
        "output_format output_file statistics fail_on quiet add_ignores reason cache_dir select ignore extend_select"
    )
    names += " per_file_ignores min_confidence baseline flags"
    return replace(settings, **{name: getattr(default, name) for name in names.split()})


def fingerprint(path: Path) -> str:
    try:
        return hashlib.sha256(source.contents(path)).hexdigest()
    except source.SourceError as error:
        return str(error)


@functools.cache
def ourselves() -> str:
    """tlint's version and Python's, which parses; and what its files are, for those who work on it."""
    parts: list[Any] = [__version__, sys.version]
    for folder in (*analyzer.__path__, *rules.__path__, *compiler.__path__):
        for file in sorted(path for path in Path(folder).rglob("*") if path.suffix in (".py", ".json")):
            state = file.stat()
            parts.append((str(file), state.st_size, state.st_mtime_ns))
    return repr(parts)


# Records on disk ------------------------------------------------------------------------------------------------------


def read(file: Path) -> Record | None:
    """A record; None where there is none, or one that is not whole."""
    try:
        return built(Record, json.loads(source.read(file).text))
    except (source.SourceError, ValueError, KeyError, TypeError):
        return None


def write(file: Path, record: Record) -> None:
    """Add a record, and remove the oldest. A folder that cannot be written is left as it is."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            if not (file.parent / name).exists():
                source.write(file.parent / name, text.encode())
        source.write(file, json.dumps(dataclasses.asdict(record)).encode())
        old = sorted(file.parent.glob("*.json"), key=lambda one: one.stat().st_mtime, reverse=True)[KEPT:]
        for one in old:
            one.unlink(missing_ok=True)
    except (OSError, TlintError) as error:
        log.info("not kept in the cache: %s", error)


def built(hint: Any, value: Any) -> Any:
    """A value of the type that `hint` names, from what JSON made of it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if value is None or hint is Any:
        return value
    if origin is tuple:
        return tuple(built(arguments[0], item) for item in value)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint(**{name: built(kind, value[name]) for name, kind in hints(hint).items()})
    if arguments and type(None) in arguments:
        return built(arguments[0], value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    return value


hints = functools.cache(get_type_hints)
