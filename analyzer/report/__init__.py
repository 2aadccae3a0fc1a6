"""What the user reads: a file a format, and `write`, which chooses."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from rich.console import Console

from tlint.analyzer import source
from tlint.analyzer.config import Settings
from tlint.analyzer.model import Report
from tlint.analyzer.report import concise, github, json_, statistics, text
from tlint.analyzer.report.summary import where
from tlint.rules import load


def write(report: Report, settings: Settings, stream: TextIO, *, sources: Mapping[str, str] | None = None) -> None:
    """Write the report to the stream in the format of `settings`.

    `sources` holds texts that are not to be read from disk (standard input), by path as in `Finding.path`, or by cell.
    """
    report = replace(report, findings=tuple(sorted(report.findings, key=lambda f: (f.path, f.span, f.code, f.id))))
    match settings.output_format:
        case "json":
            stream.write(json_.render(report))
        case _ if settings.statistics:
            stream.write(statistics.render(report))
        case "concise":
            stream.write(concise.render(report))
        case "github":
            stream.write(github.render(report))
        case "text":
            remedies = {code: rule.remedy for code, rule in load().items() if rule.remedy}
            text.render(
                report,
                console(stream),
                sources=Sources(sources or {}),
                remedies=remedies,
                min_confidence=settings.min_confidence,
                wrapped=stream.isatty() or "COLUMNS" in os.environ,
            )


def console(stream: TextIO) -> Console:
    """A console that colours on a terminal only, and never under NO_COLOR: not even bold."""
    plain = bool(os.environ.get("NO_COLOR"))
    return Console(file=stream, color_system=None if plain else "auto", highlight=False, markup=False, emoji=False)


class Sources:
    """The lines of files and of cells of notebooks, read once each."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.lines = {path: split(content) for path, content in texts.items()}

    def __call__(self, path: str, cell: int | None = None) -> list[str]:
        """The lines, without their ends. None where the file cannot be read: its finding (TL902) stands without."""
        place = where(path, cell)
        if place not in self.lines:
            self.lines[place] = []
            with contextlib.suppress(source.SourceError):
                self.lines |= {name: split(text) for name, text in texts(path, source.read(Path(path))).items()}
        return self.lines[place]


def texts(name: str, read: source.Source) -> dict[str, str]:
    """The text of a file by its name, or those of a notebook's cells."""
    return {where(name, cell.number): cell.code for cell in read.cells} or {name: read.text}


def split(content: str) -> list[str]:
    """Lines as Python's parser counts them: `str.splitlines` also splits at form feeds and U+2028."""
    return io.StringIO(content, newline=None).read().split("\n")
