"""The findings that a team knows of: one committed file, one finding a line, written by `tlint baseline`.

    src/model.py: TL101[tensor-to-python] 9f2c0d5e11aa42b7
    src/model.py: TL102[data-dependent-branch] 03be77c2f1d05a96 refuted by torch 2.13

A finding in it does not fail. Its id is that of its statement: it moves with the lines, and goes with the code. What
the compiler has refuted is hidden for the torch that did so: under another one it is a finding again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tlint.analyzer import source
from tlint.analyzer.config import Settings
from tlint.analyzer.model import Finding, Status, TlintError
from tlint.analyzer.suppress import in_project

NAME = ".tlint-baseline"
HEADER = "# Findings that tlint does not fail on. Written by `tlint baseline`.\n"
LINE = re.compile(
    r"(?P<path>.+): (?P<code>TL\d{3})\[(?P<name>[a-z0-9-]+)\] (?P<id>[0-9a-f]{16})"
    r"(?: (?P<verdict>confirmed|refuted) by torch (?P<torch>\d+\.\d+(?:, \d+\.\d+)*))?"
)


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A line of the file. `path` is relative to the project; `torch`: the versions that gave the verdict ("2.13")."""

    path: str
    code: str
    name: str
    id: str
    verdict: str = ""
    torch: tuple[str, ...] = ()

    def __str__(self) -> str:
        seen = f" {self.verdict} by torch {', '.join(self.torch)}" if self.verdict else ""
        return f"{self.path}: {self.code}[{self.name}] {self.id}{seen}"


Entries = Mapping[str, Entry]  # by id


def file(root: Path, settings: Settings) -> Path | None:
    """Where the baseline of the project is, or would be. None: none is wanted."""
    if settings.baseline is None:
        return root / NAME
    return Path(settings.baseline) if settings.baseline else None


def read(root: Path, settings: Settings) -> Entries:
    """What the project's baseline holds. One that was named has to be there."""
    path = file(root, settings)
    if path is None or not (path.exists() or settings.baseline):
        return {}
    if not path.exists():
        raise TlintError(f"{path}: no such file: `tlint baseline` writes it")
    entries = {}
    for number, line in enumerate(source.read(path).text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            match = LINE.fullmatch(line.strip())
            if match is None:
                raise TlintError(f"{path}:{number}: not a line of a baseline: correct or remove it")
            torch = tuple(match["torch"].split(", ")) if match["torch"] else ()
            entry = Entry(match["path"], match["code"], match["name"], match["id"], match["verdict"] or "", torch)
            entries[entry.id] = entry
    return entries


def write(path: Path, entries: Entries) -> None:
    lines = "".join(f"{entry}\n" for entry in sorted(entries.values()))
    source.write(path, (HEADER + lines).encode(errors="backslashreplace"))


def apply(findings: Iterable[Finding], entries: Entries) -> tuple[Finding, ...]:
    """The findings; those of the baseline have state "baselined"."""

    def settled(finding: Finding) -> Finding:
        entry = entries.get(finding.id)
        if entry is None or finding.state != "active":
            return finding
        if entry.verdict != Status.refuted:
            return replace(finding, state="baselined")
        if finding.verdict.status is Status.confirmed or not set(finding.torch) <= set(entry.torch):
            return finding
        return replace(finding, state="baselined", reason=f"refuted by torch {', '.join(entry.torch)}")

    return tuple(settled(finding) for finding in findings)


def stale(entries: Entries, findings: Iterable[Finding], asked: Callable[[Entry], bool]) -> tuple[str, ...]:
    """The ids of entries that were asked about and occur no longer. What a comment silences needs no entry."""
    occurring = {finding.id for finding in findings if finding.state != "suppressed"}
    return tuple(entry.id for entry in entries.values() if entry.id not in occurring and asked(entry))


# Writing it -----------------------------------------------------------------------------------------------------------


def load(path: Path) -> dict[str, Any]:
    """A report as `--output-format json` writes it."""
    try:
        report = json.loads(source.read(path).text)
    except json.JSONDecodeError as error:
        raise TlintError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    if not isinstance(report, dict) or report.get("version") != 1 or not isinstance(report.get("findings"), list):
        raise TlintError(f"{path}: no report of tlint: `tlint check --output-format json` writes one")
    return report


def renewed(old: Entries, report: Mapping[str, Any], dropped: Collection[str], root: Path, cwd: Path) -> Entries:
    """The entries with those of a report, without those `dropped`. Relative paths in the report are from `cwd`."""

    def place(name: str) -> str:
        elsewhere = Path(report["project"])  # another copy of the project, on another machine
        if Path(name).is_relative_to(elsewhere):
            return Path(name).relative_to(elsewhere).as_posix()
        inside = in_project(name, root, cwd)
        if not (root / inside).exists():
            raise TlintError(
                f"{name}: the report names it, and it is not there: go to the folder that the report is of"
            )
        return inside

    entries = {identifier: entry for identifier, entry in old.items() if identifier not in dropped}
    try:
        versions = {target["id"]: _minor(target["torch"]) for target in report["targets"]}
        for finding in report["findings"]:
            if finding["state"] != "suppressed":
                entry = _entry(finding, versions, place)
                entries[entry.id] = _merged(old.get(entry.id), entry, finding)
    except (AttributeError, KeyError, TypeError) as error:
        raise TlintError(f"the report is not as tlint writes it: {error!r}") from error
    return entries


def _entry(finding: Mapping[str, Any], versions: Mapping[str, str], place: Callable[[str], str]) -> Entry:
    verdict = finding["verdict"]
    telling = verdict["status"] in (Status.confirmed, Status.refuted)
    torch = tuple(sorted({versions[target] for target in verdict["targets"]}, key=_key)) if telling else ()
    said = verdict["status"] if torch else ""
    return Entry(place(finding["path"]), finding["code"], finding["name"], finding["id"], said, torch)


def _merged(old: Entry | None, new: Entry, finding: Mapping[str, Any]) -> Entry:
    """A report without a verdict leaves the one that is known; torch versions that say the same add up."""
    if old is None or new.verdict not in ("", old.verdict):
        return new
    if new.verdict:
        return replace(new, torch=tuple(sorted({*old.torch, *new.torch}, key=_key)))
    # It was refuted for a torch that is not used any more, and is accepted as it is.
    if old.verdict == Status.refuted and finding["state"] == "active":
        return new
    return replace(new, verdict=old.verdict, torch=old.torch)


def _minor(version: str) -> str:
    """ "2.13" of "2.13.0+cpu" """
    return ".".join(version.split(".")[:2])


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
