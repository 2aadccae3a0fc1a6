"""The bundled example shows what verification is for, under every torch that the tests are given."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from reports import validate

ROOT = Path(__file__).parent.parent
PYTHONS = [sys.executable, *filter(None, os.environ.get("TLINT_TEST_PYTHONS", "").split(os.pathsep))]

# A screen of text, at the width of the picture in README.md.
SCREEN = {"COLUMNS": "100", "LINES": "48"}


def tlint(*words: str) -> str:
    command = [sys.executable, "-m", "tlint", "check", "fixtures/demo", "--verify", *words]
    env = {**os.environ, **SCREEN, "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=PYTHONS)
def report(request: pytest.FixtureRequest) -> dict[str, Any]:
    return validate(tlint("--python", request.param, "--output-format", "json"))


def test_findings(report: dict[str, Any]) -> None:
    def way(finding: dict[str, Any]) -> list[str]:
        return [call["function"] for call in finding["paths"][0]["via"]]

    found = [(f["code"], f["path"], f["verdict"]["status"], f["verdict"]["gb_id"], way(f)) for f in report["findings"]]
    assert found == [
        ("TL199", "fixtures/demo/augment.py", "confirmed", "GB0033", ["train_step"]),
        ("TL102", "fixtures/demo/losses.py", "refuted", None, ["train_step"]),
        ("TL102", "fixtures/demo/losses.py", "confirmed", "GB0170", ["train_step", "mixup_loss"]),
        ("TL101", "fixtures/demo/metrics.py", "confirmed", "GB0124", ["train_step"]),
    ]


def test_a_disabled_function_leaves_fewer_graphs(report: dict[str, Any]) -> None:
    fixes = {fix["title"]: fix for finding in report["findings"] for fix in finding["fixes"]}
    effect = fixes["`@torch.compiler.disable` on `check_finite`"]["effect"]
    assert effect["after"]["graphs"] < effect["before"]["graphs"]
    assert effect["after"]["breaks"] == effect["before"]["breaks"] - 1


def test_targets(report: dict[str, Any]) -> None:
    step, predict = report["targets"]
    assert (step["name"], step["status"], step["gate"]) == ("train:train_step", "breaks", "fail")
    assert [seen["predicted"] for seen in step["breaks"]] == [False, True, True]
    assert (predict["name"], predict["status"], predict["breaks"]) == ("train:predict", "fullgraph", [])
    kernels = predict["stages"]["triton"]["sm_90"]
    assert kernels["compiled"] == kernels["kernels"] > 0


def test_one_screen() -> None:
    lines = tlint("--output-format", "text").splitlines()
    assert len(lines) <= int(SCREEN["LINES"])
    assert max(len(line) for line in lines if ": + " not in line) <= int(SCREEN["COLUMNS"])  # code is never cut
