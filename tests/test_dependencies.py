"""Installed packages: followed from what is compiled, and folded into the project's lines that enter them."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import analyse

from tlint.analyzer.model import Confidence, Finding, Severity

PACKAGE = """
import torch
from torch import nn

from .layers import Gate

__all__ = ["Gate", "Net", "scaled"]


def scaled(x):
    return _scaled(x)


def _scaled(x):
    if x.isnan().any():
        x = x + 1
    return x / x.max().item()


class Net(nn.Module):
    def forward(self, x):
        return self.post(scaled(x))

    def post(self, x):
        return x
"""
LAYERS = """
from torch import nn


class Gate(nn.Module):
    def forward(self, x):
        print(x.shape)
        return x
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose environment holds a package that requires torch, and one that does not."""
    site = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    for name, requires in (("needs", "Requires-Dist: torch>=2\n"), ("other", "")):
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n{name}/layers.py,,\n{name}-1.0.dist-info/METADATA,,\n")
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(PACKAGE)
        (site / name / "layers.py").write_text(LAYERS)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir()
    python.touch(mode=0o755)
    return tmp_path


def found(project: Path, text: str) -> list[Finding]:
    return list(
        analyse(project, "import torch\nimport needs\nimport other\nfrom needs import Gate, Net\n" + text).findings
    )


def test_what_breaks_in_a_package_is_one_finding_at_the_line_that_enters_it(project: Path) -> None:
    (one,) = found(project, "@torch.compile\ndef root(x):\n    y = x + 1\n    return needs.scaled(y)\n")
    assert (one.code, one.span.line, one.path) == ("TL191", 8, "main.py")
    assert one.message.startswith("`needs` breaks the graph in 2 places, first in `needs:")
    assert {related.span.line for related in one.related} == {15, 17}
    assert (one.severity, one.confidence) == (Severity.warning, Confidence.likely)
    assert one.claim is not None and "Data-dependent branching" in one.claim.gb_types


def test_each_line_that_enters_it(project: Path) -> None:
    text = "@torch.compile\ndef root(x):\n    y = needs.scaled(x)\n    z = needs.scaled(x)\n    return Gate()(y + z)\n"
    assert [(f.code, f.span.line) for f in found(project, text) if f.code == "TL191"] == [
        ("TL191", 7),
        ("TL191", 8),
        ("TL191", 9),
    ]


def test_a_class_that_derives_from_one_of_a_package(project: Path) -> None:
    text = (
        "class Mine(Net):\n    def post(self, x):\n        return x + x.sum().item()\n\nmodel = torch.compile(Mine())\n"
    )
    places = [(f.code, f.span.line) for f in found(project, text)]
    assert places == [("TL101", 7), ("TL191", 9)]  # the package's own part is entered where the class is compiled


def test_a_package_that_does_not_build_on_torch_is_not_read(project: Path) -> None:
    assert not found(project, "@torch.compile\ndef root(x):\n    return other.scaled(x)\n")


def test_from_an_assumed_root(project: Path) -> None:
    """A library compiles nothing itself: what it calls breaks for those who compile it."""
    (one,) = found(project, "class Mine(torch.nn.Module):\n    def forward(self, x):\n        return needs.scaled(x)\n")
    assert (one.code, one.span.line, one.severity) == ("TL191", 7, Severity.info)


def test_without_an_environment_nothing_is_read(tmp_path: Path) -> None:
    assert not found(tmp_path, "@torch.compile\ndef root(x):\n    return needs.scaled(x)\n")
