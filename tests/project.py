"""Small projects in one text, analysed in this process.

A text holds one file, `main.py`, or several behind `# file: a/b.py` lines. Comments on a line say what is found there:

    # expect: TL102            at least likely; nothing else that is at least likely may be found in the project
    # possible: TL102          found, and not more than possible
    # todo: TL102              a known miss; the test fails once it is found
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tlint.analyzer import engine
from tlint.analyzer.config import Settings
from tlint.analyzer.model import Analysis, Confidence, Finding
from tlint.analyzer.project import open_workspace

FILE = re.compile(r"^# file: (\S+)\n", re.MULTILINE)
MARK = re.compile(r"# (expect|possible|todo): (TL\d+(?:, TL\d+)*)")

Place = tuple[str, int, str]


def files(text: str) -> dict[str, str]:
    """The files of a project by path."""
    text = textwrap.dedent(text).removeprefix("\n")
    _, *parts = FILE.split(text if text.startswith("# file: ") else "# file: main.py\n" + text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def write(folder: Path, project: str | Mapping[str, str]) -> dict[str, str]:
    contents = files(project) if isinstance(project, str) else dict(project)
    for name, content in {"tlint.toml": "", **contents}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return contents


def analyse(folder: Path, project: str | Mapping[str, str], **settings: Any) -> Analysis:
    """Write a project and look at all of it."""
    write(folder, project)
    chosen = Settings(**{"target_torch": ("2.13",), **settings})
    return engine.analyze(open_workspace([folder], chosen, folder), chosen)


def marked(contents: Mapping[str, str], word: str) -> set[Place]:
    return set(marks(contents, word))


def marks(contents: Mapping[str, str], word: str) -> Iterator[Place]:
    for name, content in contents.items():
        for number, line in enumerate(content.splitlines(), 1):
            for said, codes in MARK.findall(line):
                if said == word:
                    yield from ((name, number, code) for code in codes.split(", "))


def places(findings: Iterator[Finding] | tuple[Finding, ...]) -> set[Place]:
    return {(f.path, f.span.line, f.code) for f in findings}


def check(folder: Path, project: str | Mapping[str, str], **settings: Any) -> Analysis:
    """Analyse a project and hold the findings against its comments."""
    contents = files(project) if isinstance(project, str) else project
    analysis = analyse(folder, contents, **settings)
    sure = places(f for f in analysis.findings if f.confidence >= Confidence.likely)
    assert sorted(sure) == sorted(marked(contents, "expect")), shown(analysis)
    unsure = places(f for f in analysis.findings if f.confidence < Confidence.likely)
    assert marked(contents, "possible") <= unsure, shown(analysis)
    return analysis


def shown(analysis: Analysis) -> str:
    found = [f"{f.path}:{f.span.line}: {f.code} {f.confidence.name}: {f.message}" for f in analysis.findings]
    return "\n".join(["found:", *found, "roots:", *(f"{r.name} ({r.kind.name}, {r.how})" for r in analysis.roots)])
