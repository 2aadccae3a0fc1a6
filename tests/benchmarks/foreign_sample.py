"""How often a finding is right on code that nobody wrote for tlint: a sample of findings, with verdicts.

    python tests/benchmarks/foreign_sample.py [--seed N] [--size N] [--report-folder FOLDER] [REQUIREMENT]...

Looks at each package (`timm==1.0.31`), which is downloaded as a wheel, without what it depends on, unless FOLDER holds
`timm.json` from an earlier run; there the reports are kept. Draws SIZE findings: a rule after the other, of each rule a
package after the other, so that none dominates. Prints them as rows of `foreign.tsv`, with the verdicts that are
there, and counts the findings of that table which are still found.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from static_speed import download

PACKAGES = (
    "accelerate==1.15.0",
    "diffusers==0.42.1",
    "kornia==0.9.0",
    "timm==1.0.31",
    "torchvision==0.29.1",
    "vector-quantize-pytorch==1.32.0",
    "x-transformers==2.31.10",
)
TABLE = Path(__file__).with_name("foreign.tsv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=40)
    parser.add_argument("--report-folder", type=Path)
    parser.add_argument("packages", nargs="*", metavar="REQUIREMENT")
    asked = parser.parse_args()
    judged = {row["id"]: row for row in csv.DictReader(TABLE.open(encoding="utf-8"), delimiter="\t")}
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.report_folder or Path(scratch)
        found = [finding for word in asked.packages or PACKAGES for finding in findings(word, folder)]
    for finding in sample(found, asked.seed, asked.size):
        place, row = f"{finding['path']}:{finding['line']}", judged.get(finding["id"], {})
        known = row.get("verdict", ""), row.get("how", "")
        print(finding["id"], finding["package"], place, finding["code"], *known, sep="\t")
    now = {finding["id"] for finding in found}
    for verdict, all_of_it in collections.Counter(row["verdict"] for row in judged.values()).items():
        still = sum(row["verdict"] == verdict for key, row in judged.items() if key in now)
        print(f"{verdict}: {still} of {all_of_it} are still found", file=sys.stderr)


def findings(requirement: str, folder: Path) -> Iterator[dict]:
    """What tlint finds in a package, each `forward` taken for a root."""
    package = requirement.partition("==")[0]
    report = folder / f"{package}.json"
    if not report.exists():
        with tempfile.TemporaryDirectory() as scratch:
            unpacked = download(requirement, Path(scratch))
            command = [sys.executable, "-m", "tlint", "check", ".", "--roots", "modules", "--target-torch", "2.14"]
            written = ["--output-format", "json", "--output-file", str(report.resolve())]
            if subprocess.run([*command, *written], cwd=unpacked).returncode not in (0, 1):
                sys.exit(f"tlint failed on {requirement}")
    for finding in json.loads(report.read_text(encoding="utf-8"))["findings"]:
        if not finding["code"].startswith("TL9"):  # of tlint itself
            yield {**finding, "package": package}


def sample(found: list[dict], seed: int, size: int) -> list[dict]:
    """So many findings, from each rule and package in turn."""
    draw = random.Random(seed)
    strata: dict[str, dict[str, list[dict]]] = {}
    for finding in sorted(found, key=lambda finding: (finding["code"], finding["package"], finding["id"])):
        strata.setdefault(finding["code"], {}).setdefault(finding["package"], []).append(finding)
    queues = []
    for packages in draw.sample(list(strata.values()), len(strata)):
        piles = [draw.sample(pile, len(pile)) for pile in draw.sample(list(packages.values()), len(packages))]
        queues.append([pile[turn] for turn in range(max(map(len, piles))) for pile in piles if turn < len(pile)])
    turns = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(turns) for queue in queues if turn < len(queue)][:size]


if __name__ == "__main__":
    main()
