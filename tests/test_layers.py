"""What each layer may not do, read off its source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = {"analyzer": "tlint.analyzer", "rules": "tlint.rules", "compiler": "tlint.compiler"}
STANDARD = sys.stdlib_module_names | {"tomllib", "tomli"}  # in the standard library from Python 3.11

READERS = {
    "source.py": {"read_bytes"},
    "facts.py": {"read_text"},  # package data
    "cli.py": {"open"},  # --output-file, for writing
}


def python_files(*folders: str) -> list[Path]:
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


def module(file: Path) -> str:
    first, *rest = file.relative_to(ROOT).with_suffix("").parts
    return ".".join((FOLDERS[first], *rest))


def imports(tree: ast.AST, importer: str = "") -> Iterator[str]:
    """Every module that is imported anywhere in a file; of `from package import name`, "package.name"."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(name, names, level):
                base = importer.rsplit(".", level)[0] if level else ""
                package = ".".join(part for part in (base, name) if part)
                yield from (f"{package}.{alias.name}".lstrip(".") for alias in names)


def calls(tree: ast.AST) -> Iterator[str]:
    """The last name of every callee: `open`, `read_text`, ..."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name(name)) | ast.Call(ast.Attribute(_, name)):
                yield name


def below(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def top(name: str) -> str:
    return name.partition(".")[0]


def parsed(files: list[Path]) -> list[object]:
    return [pytest.param(file, id=file.relative_to(ROOT).as_posix()) for file in files]


def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def test_the_readings_see_what_they_look_for() -> None:
    tree = ast.parse(
        "import a.b\ndef f():\n    from c import d\n    from . import e\n    from .g import h\n    x.open(1)\n"
    )
    assert set(imports(tree, "tlint.rules.m")) == {"a.b", "c.d", "tlint.rules.e", "tlint.rules.g.h"}
    assert set(calls(tree)) == {"open"}
    assert all(python_files(folder) for folder in FOLDERS)


@pytest.mark.parametrize("file", parsed(python_files("analyzer")))
def test_the_analyzer_never_imports_torch(file: Path) -> None:
    allowed = STANDARD | {"tlint", "libcst", "rich", "pathspec"}
    assert {name for name in imports(tree_of(file), module(file)) if top(name) not in allowed} == set()


@pytest.mark.parametrize("file", parsed(python_files("analyzer")))
def test_the_analyzer_runs_nobodys_code(file: Path) -> None:
    runners = ("subprocess", "runpy", "importlib.import_module", "importlib.util", "pickle", "multiprocessing")
    assert {name for name in imports(tree_of(file), module(file)) if below(name, *runners)} == set()
    assert {"exec", "eval", "__import__", "import_module"}.isdisjoint(calls(tree_of(file)))


@pytest.mark.parametrize("file", parsed(python_files("analyzer")))
def test_only_source_reads_files(file: Path) -> None:
    opening = {"open", "read_text", "read_bytes"}.intersection(calls(tree_of(file)))
    assert opening <= (READERS.get(file.name, set()) if file.parent.name == "analyzer" else set())


def test_the_contracts_need_nothing() -> None:
    file = ROOT / "analyzer" / "model.py"
    assert {name for name in imports(tree_of(file)) if top(name) not in sys.stdlib_module_names} == set()


@pytest.mark.parametrize("file", parsed(python_files("analyzer/_root")))
def test_the_root_holds_no_logic(file: Path) -> None:
    logic = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.If | ast.For | ast.While | ast.Try
    assert not [node for node in ast.walk(tree_of(file)) if isinstance(node, logic)]


@pytest.mark.parametrize("file", parsed(python_files("rules")))
def test_rules_see_events_only(file: Path) -> None:
    ours = ("tlint.rules", "tlint.analyzer.model", "tlint.analyzer.interp.values")
    for name in imports(tree_of(file), module(file)):
        assert top(name) in STANDARD | {"libcst"} or below(name, *ours), f"imports {name}"
    assert {"open", "print", "read_text", "read_bytes"}.isdisjoint(calls(tree_of(file)))


@pytest.mark.parametrize("file", parsed(python_files("compiler")))
def test_the_compiler_knows_of_the_analyzer_its_contracts_only(file: Path) -> None:
    names = {name for name in imports(tree_of(file), module(file)) if below(name, "tlint.analyzer")}
    assert {name for name in names if not below(name, "tlint.analyzer.model")} == set()


@pytest.mark.parametrize("file", parsed(python_files("compiler/worker", "compiler/versions")))
def test_what_runs_under_the_users_python_needs_torch_only(file: Path) -> None:
    siblings = {path.stem for path in file.parent.iterdir()} | {path.name for path in file.parent.parent.iterdir()}
    siblings |= {path.name for path in (ROOT / "compiler" / "versions").iterdir() if path.is_dir()}
    allowed = STANDARD | {"torch", "triton"} | siblings
    if file.parent.name == "versions":  # the miner of facts runs in an environment of its own making
        allowed |= {"numpy"}
    assert {name for name in imports(tree_of(file)) if top(name) not in allowed} == set()
