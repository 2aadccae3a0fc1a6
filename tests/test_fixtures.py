"""Every line of a fixture says what must be found on it: statically for each torch, and by the compiler itself.

`# expect: TL101` has to be found, and confirmed if it makes a claim. `# ok: TL101` must stay silent, and not break.
`# todo: TL101` breaks and is not found yet: once it is, the comment has to become an `expect`. `# expect[2.13]: TL101`,
`# expect[<2.14]: TL101` and `# expect[>=2.14]: TL101` hold for those versions of torch, and are an `ok` for the others.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tlint.analyzer import facts, pipeline
from tlint.analyzer.config import Settings, VerifySettings
from tlint.analyzer.model import Confidence, Finding, Report, Severity, Status

FOLDER = Path(__file__).parent.parent / "fixtures"
RECIPES = sorted(FOLDER.glob("recipes/*.py"))
FIXTURES = sorted(path for kind in ("rules", "seed", "reports", "recipes") for path in FOLDER.glob(f"{kind}/*.py"))
# Reproductions and recipes are held against the static stage alone: compiling them as well takes as long as all others.
TARGETS = [
    path
    for path in FIXTURES
    if path.parent.name in ("rules", "seed") and "def tlint_inputs" in path.read_text(encoding="utf-8")
]
PYTHONS = [sys.executable, *filter(None, os.environ.get("TLINT_TEST_PYTHONS", "").split(os.pathsep))]
COMMENT = re.compile(r"# (expect|ok|todo)(?:\[(<|>=|)([\d.]+)\])?: (TL\d+(?:, TL\d+)*)")

Place = tuple[int, str]


@dataclass(frozen=True)
class Comments:
    """The comments of a fixture, as (line, code)."""

    expect: set[Place] = field(default_factory=set)
    ok: set[Place] = field(default_factory=set)
    todo: set[Place] = field(default_factory=set)


def comments(path: Path, torch: str) -> Comments:
    found = Comments()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for what, order, version, codes in COMMENT.findall(line):
            kind = what if not version or holds(torch, order, version) else "ok"
            getattr(found, kind).update((number, code) for code in codes.split(", "))
    return found


def holds(torch: str, order: str, version: str) -> bool:
    """Whether "2.10" is before ("<"), from on (">=") or just ("") this version."""
    given, limit = (tuple(map(int, text.split("."))) for text in (torch, version))
    return {"<": given < limit, ">=": given >= limit, "": given == limit}[order]


def run(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Report:
    """tlint on a copy of the fixture that is a project of its own."""
    copy = Path(shutil.copy(path, folder))
    monkeypatch.chdir(folder)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return pipeline.run([copy], settings, folder)


def places(findings: list[Finding]) -> set[Place]:
    return {(finding.span.line, finding.code) for finding in findings}


@pytest.mark.parametrize("torch", facts.versions())
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_static(path: Path, torch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = comments(path, torch)
    report = run(path, tmp_path, monkeypatch, Settings(target_torch=(torch,)))
    found = [f for f in report.findings if f.confidence >= Confidence.likely and f.state == "active"]
    expected = {place for place in said.expect if place[1] != "TL199"}  # only the compiler sees it
    assert expected - places(found) == set(), "not found"
    assert places([f for f in found if f.severity >= Severity.warning]) - expected == set(), "false alarms"


@pytest.mark.parametrize("torch", facts.versions())
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe(path: Path, torch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch's own documentation does is at most information, and each such finding is expected."""
    report = run(path, tmp_path, monkeypatch, Settings(target_torch=(torch,)))
    assert places(list(report.findings)) == comments(path, torch).expect
    assert {f.severity for f in report.findings} <= {Severity.info}


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("path", TARGETS, ids=lambda path: path.stem)
def test_verified(path: Path, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(python=python, verify=True, verify_settings=VerifySettings(gpus=(), timeout=300))
    report = run(path, tmp_path, monkeypatch, settings)
    said = comments(path, report.target_torch[0])
    assert not [(t.name, t.phase, t.detail) for t in report.targets if t.status in ("error", "timeout", "skipped")]

    verdicts = {(f.span.line, f.code): f.verdict for f in report.findings if f.claim is not None}
    wrong = {place: verdict for place, verdict in verdicts.items() if verdict.status is not Status.confirmed}
    assert wrong == {}
    broken = {seen.line for target in report.targets for seen in target.breaks if not seen.intended}
    assert {line for line, _ in said.ok} & broken == set(), "these lines break"
    unpredicted = {line for line, code in places(list(report.findings)) if code == "TL199"}
    assert unpredicted == {line for line, code in said.expect if code == "TL199"} | {line for line, _ in said.todo}
