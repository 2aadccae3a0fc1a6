"""What several test files share: projects written on the spot, and tlint run on them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from reports import validate


@dataclass(frozen=True)
class Result:
    """What a command line did."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """The JSON report on standard output, which has to follow its schema."""
        return validate(self.out)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write files, by their path, into an empty folder that becomes the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)

    def write(files: Mapping[str, str | bytes] | None = None, **more: str) -> Path:
        for name, content in {**(files or {}), **more}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                content = textwrap.dedent(content).encode()
            path.write_bytes(content)
        return tmp_path

    return write


@pytest.fixture
def tlint(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run a command line in this process."""

    def run(*words: str) -> Result:
        from tlint.analyzer import cli

        capsys.readouterr()
        try:
            code = cli.main(words)
        except SystemExit as stop:  # argparse's own way out
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return run
