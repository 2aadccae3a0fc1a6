"""The package as it is installed: every folder is in the wheel, and it works without torch, from anywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import tlint

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PYPROJECT["tool"]["setuptools"]

pytestmark = pytest.mark.xdist_group("package")


def test_every_folder_is_a_listed_package() -> None:
    """An editable install finds what is not listed; a wheel would lack it."""
    on_disk = {"tlint"}
    for top in ("analyzer", "rules", "compiler"):
        for folder in {file.parent for file in (ROOT / top).rglob("*.py")} - {ROOT / "analyzer" / "_root"}:
            on_disk.add(".".join(("tlint", *folder.relative_to(ROOT).parts)))
            assert (folder / "__init__.py").is_file(), f"{folder} is no package"
    assert set(SETUPTOOLS["packages"]) == on_disk


def test_the_version_stands_once() -> None:
    assert PYPROJECT["project"]["version"] == tlint.__version__


def test_bare_imports_of_our_folders_are_banned(tmp_path: Path) -> None:
    """From the root of the repository they would succeed, as second copies."""
    config = str(ROOT / "pyproject.toml")
    for statement in (
        "import rules",
        "from analyzer import model",
        "import compiler.judge",
        "from rules.base import Rule",
    ):
        ruff = [sys.executable, "-m", "ruff", "check", "--config", config, "--select", "TID251", "--no-cache", "-"]
        assert b"TID251" in subprocess.run(ruff, input=f"{statement}\n".encode(), capture_output=True).stdout, statement
        ruff_on_ours = subprocess.run(ruff, input=b"from tlint.rules import base\n", capture_output=True)
        assert ruff_on_ours.returncode == 0


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with nothing but our wheel. Built from a copy: no `build/` of an earlier run gets into it."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    copy.mkdir()
    for name in ("analyzer", "rules", "compiler", "pyproject.toml", "README.md", "LICENSE"):
        place = ROOT / name
        shutil.copytree(place, copy / name) if place.is_dir() else shutil.copy(place, copy / name)
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder, copy)
    venv.create(folder / "environment", with_pip=True)
    [wheel] = folder.glob("*.whl")
    run(folder / "environment" / "bin" / "python", "-m", "pip", "install", "-q", wheel)
    return folder / "environment"


def run(*command: object, cwd: Path | None = None, code: int = 0) -> str:
    clean = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == code, done.stdout
    return done.stdout


PROGRAM = """\
import torch


@torch.compile
def step(x: torch.Tensor) -> float:
    return x.sum().item()
"""


def test_the_wheel_works_without_torch_from_another_folder(environment: Path, tmp_path: Path) -> None:
    commands = environment / "bin"
    (tmp_path / "program.py").write_text(PROGRAM)
    run(commands / "python", "-c", "import torch", cwd=tmp_path, code=1)
    for command in (["tlint"], ["torch-tlint"], ["python", "-m", "tlint"]):
        program = [commands / command[0], *command[1:]]
        assert run(*program, "--version", cwd=tmp_path) == f"tlint {tlint.__version__}\n"
    assert "program.py:6:12: warning TL101" in run(
        commands / "tlint", "check", "--output-format", "concise", "program.py", cwd=tmp_path, code=1
    )


def test_the_wheel_holds_its_data(environment: Path) -> None:
    """Not only modules: facts, GPUs, the schema of reports, the marker that we are typed."""
    [installed] = environment.glob("lib/python*/site-packages/tlint")
    for top, folder in {"analyzer": "analyzer", "rules": "rules", "compiler": "compiler"}.items():
        ours = {
            file.relative_to(ROOT / top)
            for file in (ROOT / top).rglob("*")
            if file.is_file() and "__pycache__" not in file.parts and "_root" not in file.parts
        }
        theirs = {file.relative_to(installed / folder) for file in (installed / folder).rglob("*") if file.is_file()}
        assert ours - theirs == set()
    assert (installed / "py.typed").is_file()
