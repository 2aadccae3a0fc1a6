"""What the static stage costs: CPU seconds of `tlint check`, as a multiple of parsing the same files.

    python tests/benchmarks/static_speed.py [FOLDER | REQUIREMENT]...

A FOLDER holds Python files; a REQUIREMENT such as `timm==1.0.31` is downloaded as a wheel, without what it depends on.
"""

from __future__ import annotations

import ast
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DEFAULT = ("timm==1.0.31", "transformers==5.24.0", "diffusers==0.42.1")


@dataclass(frozen=True)
class Cost:
    """CPU seconds of one folder."""

    files: int
    lines: int
    parse: float
    check: float
    findings: int
    failures: int


def main() -> None:
    print(f"{'':28}{'files':>7}{'lines':>10}{'ast.parse':>11}{'tlint':>9}{'multiple':>10}{'findings':>10}{'TL903':>7}")
    with tempfile.TemporaryDirectory() as scratch:
        for word in sys.argv[1:] or DEFAULT:
            folder = Path(word) if Path(word).is_dir() else download(word, Path(scratch))
            cost = measure(folder)
            print(
                f"{word:28}{cost.files:7}{cost.lines:10}{cost.parse:10.1f}s{cost.check:8.1f}s"
                f"{cost.check / cost.parse:10.1f}{cost.findings:10}{cost.failures:7}",
                flush=True,
            )


def download(requirement: str, scratch: Path) -> Path:
    folder = scratch / requirement
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder]
    subprocess.run([*map(str, command), requirement], check=True)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def measure(folder: Path) -> Cost:
    begun = time.process_time()
    lines = list(parse(folder))
    parsed = time.process_time()
    report, seconds = check(folder)
    findings = report["findings"]
    failures = sum(finding["code"] == "TL903" for finding in findings)
    return Cost(len(lines), sum(lines), parsed - begun, seconds, len(findings), failures)


def parse(folder: Path) -> Iterator[int]:
    """The lines of each file, which is parsed as tlint has to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        for path in folder.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            ast.parse(text, str(path))
            yield text.count("\n")


def check(folder: Path) -> tuple[dict, float]:
    """The report, and the CPU seconds of the process and of those that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "tlint", "check", str(folder), "--output-format", "json"]
    run = subprocess.run(command, stdout=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode not in (0, 1):
        sys.exit(f"tlint ended with exit code {run.returncode}")
    return json.loads(run.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
