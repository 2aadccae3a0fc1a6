"""The hooks under the real pre-commit, which clones this repository and installs it: as a team would use them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pre_commit", reason="pre-commit is not installed: it is one of [dev]")

ROOT = Path(__file__).parent.parent
# What pip says where no index can be reached.
OFFLINE = (
    "NewConnectionError",
    "Temporary failure in name resolution",
    "No matching distribution found for setuptools",
)

pytestmark = pytest.mark.xdist_group("pre-commit")


class Repository:
    """A throw-away repository with our hook in it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV", "SKIP")}
        identity = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        self.environment = clean | identity | {"PRE_COMMIT_HOME": str(home), "PRE_COMMIT_COLOR": "never"}
        folder.mkdir()
        self.run("git", "init", "-q")

    def run(self, *command: str) -> tuple[int, str]:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    def pre_commit(self, *words: str) -> tuple[int, str]:
        return self.run(sys.executable, "-m", "pre_commit", *words)

    def write(self, **files: str) -> None:
        """Write and stage files: `lib_py` is `lib.py`."""
        for name, content in files.items():
            (self.folder / name.replace("_", ".")).write_text(content)
        self.run("git", "add", "--all")

    def commit(self) -> str:
        code, output = self.run("git", "commit", "-qm", "x")
        assert code == 0, output
        return self.run("git", "rev-parse", "HEAD")[1].strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    folder = tmp_path_factory.mktemp("pre-commit")
    ours = Repository(folder / "tlint", folder / "home")
    for name in ("analyzer", "rules", "compiler", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        place, copy = ROOT / name, ours.folder / name
        shutil.copytree(place, copy) if place.is_dir() else shutil.copy(place, copy)
    ours.write(_gitignore="__pycache__/\n")
    revision = ours.commit()
    theirs = Repository(folder / "project", folder / "home")
    hooks = f"repos:\n- repo: {ours.folder}\n  rev: {revision}\n  hooks:\n  - id: tlint\n"
    (theirs.folder / ".pre-commit-config.yaml").write_text(hooks)
    code, output = theirs.pre_commit("install", "--install-hooks")
    if code and any(sign in output for sign in OFFLINE):
        pytest.skip(f"the hook cannot be installed without a package index: {output.splitlines()[-1]}")
    assert code == 0, output
    return theirs


HELPER = "def scale(x):\n    return x / x.max().item()\n"
COMPILED = "import torch\nfrom lib import scale\n\n\n@torch.compile\ndef step(x):\n    print(x)\n    return scale(x)\n"


def notebook(*cells: str) -> str:
    listed = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": code} for code in cells]
    return json.dumps({"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_the_first_week(repository: Repository) -> None:
    """What is in the commit fails it, by way of what is not; a baseline lets it pass, and a new break does not."""
    repository.write(train_py=COMPILED, lib_py="def scale(x):\n    return x / 2\n", notes_txt="…")
    code, output = repository.run("git", "commit", "-qm", "the first one, past the hook", "--no-verify")
    assert code == 0, output
    shown = notebook("%matplotlib inline", "import torch\n\n@torch.compile\ndef show(x):\n    print(x)")
    repository.write(lib_py=HELPER, nb_ipynb=shown, notes_txt="changed")
    code, output = repository.run("git", "commit", "-m", "a break")
    assert code == 1, output
    assert "lib.py:2:16: warning TL101[tensor-to-python]" in output
    assert "reached from `train:step`" in output
    assert "nb.ipynb:cell 2:5:5: warning TL111[logging-call]" in output
    assert "train.py:7" not in output, "it is not in the commit"

    tlint = subprocess.run(
        [sys.executable, "-m", "tlint", "baseline"], cwd=repository.folder, capture_output=True, text=True
    )
    assert tlint.stdout == ".tlint-baseline: 3 findings (3 new, 0 dropped)\n", tlint.stderr
    repository.write()
    code, output = repository.run("git", "commit", "-m", "what is known")
    assert code == 0, output
    code, output = repository.pre_commit("run", "--all-files")
    assert code == 0, output

    repository.write(lib_py=HELPER.replace("x.max()", "x.min()"))
    code, output = repository.run("git", "commit", "-m", "another break")
    assert (code, "lib.py:2:16: warning TL101[tensor-to-python]" in output) == (1, True), output


def test_nothing_is_run_where_nothing_is_python(repository: Repository) -> None:
    repository.write(notes_txt="changed again")
    code, output = repository.pre_commit("run", "--files", "notes.txt")
    assert (code, "(no files to check)Skipped" in output) == (0, True), output
