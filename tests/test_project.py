"""Which files, which interpreter, which torch."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tlint.analyzer import facts, source
from tlint.analyzer.config import Settings
from tlint.analyzer.model import TlintError
from tlint.analyzer.project import Workspace, find_root, open_workspace

Project = Callable[..., Path]


@pytest.fixture(autouse=True)
def known_torches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "versions", lambda: ("2.9", "2.13", "2.14"))


def open_(root: Path, *paths: str, settings: Settings | None = None) -> Workspace:
    return open_workspace([Path(path) for path in paths or (".",)], settings or Settings(), root)


def names(root: Path, files: Sequence[Path] | frozenset[Path]) -> set[str]:
    return {file.relative_to(root).as_posix() for file in files}


# Files


def test_the_nearest_marker_is_the_root(project: Project) -> None:
    root = project(
        {
            "tlint.toml": "",
            "a/pyproject.toml": "[tool.tlint]",
            "a/src/m.py": "",
            "b/pyproject.toml": "[project]",
            "b/m.py": "",
            "c/.git/HEAD": "",
            "c/m.py": "",
        }
    )
    assert find_root([Path("a/src/m.py")], root) == root / "a"
    assert find_root([Path("b/m.py")], root) == root
    assert find_root([Path("c")], root) == root / "c"
    assert find_root([Path("a"), Path("c")], root) == root


def test_the_whole_project_is_read_and_the_paths_reported(project: Project) -> None:
    root = project({"tlint.toml": "", "a/m.py": "", "b/n.py": "", "b/notes.txt": ""})
    workspace = open_(root, "b")
    assert names(root, workspace.files) == {"a/m.py", "b/n.py"}
    assert names(root, workspace.reported) == {"b/n.py"}


def test_without_a_marker_only_what_a_script_could_import_is_read(project: Project) -> None:
    root = project(
        {"s/run.py": "", "s/help.py": "", "s/package/__init__.py": "", "s/package/m.py": "", "s/data/huge.py": ""}
    )
    workspace = open_(root, "s/run.py")
    assert workspace.root == root / "s"
    assert names(root / "s", workspace.files) == {"run.py", "help.py", "package/__init__.py", "package/m.py"}
    assert names(root / "s", open_(root, "s").files) >= {"data/huge.py"}


def test_a_home_folder_kept_in_git_is_not_walked(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project({".git/HEAD": "", "notes/old.py": "", "work/m.py": ""})
    monkeypatch.setattr(Path, "home", lambda: root)
    assert names(root, open_(root, "work/m.py").files) == {"work/m.py"}


def test_gitignore_nested_and_negated(project: Project) -> None:
    root = project(
        {
            ".git/HEAD": "",
            ".gitignore": "/generated/\n*_pb2.py\n!keep_pb2.py\n",
            "m.py": "",
            "a_pb2.py": "",
            "keep_pb2.py": "",
            "generated/g.py": "",
            "sub/generated/g.py": "",
            "sub/.gitignore": "local.py\n!b_pb2.py\n",
            "sub/local.py": "",
            "sub/b_pb2.py": "",
            "other/local.py": "",
        }
    )
    found = {"m.py", "keep_pb2.py", "sub/generated/g.py", "sub/b_pb2.py", "other/local.py"}
    assert names(root, open_(root).files) == found
    assert names(root, open_(root, "sub").reported) == {"sub/generated/g.py", "sub/b_pb2.py"}


def test_what_is_asked_for_by_name_is_read_although_git_ignores_it(project: Project) -> None:
    root = project({".git/HEAD": "", ".gitignore": "out/\n", "out/m.py": "", "build/b.py": "", "script": ""})
    assert names(root, open_(root, "out/m.py").reported) == {"out/m.py"}
    assert names(root, open_(root, "out").reported) == {"out/m.py"}
    assert names(root, open_(root, "build").reported) == {"build/b.py"}
    assert names(root, open_(root, "script").reported) == {"script"}


def test_exclude_holds_even_then(project: Project) -> None:
    root = project({"tlint.toml": "", "legacy/m.py": "", "m.py": ""})
    settings = Settings(exclude=("legacy/",))
    assert names(root, open_(root, settings=settings).files) == {"m.py"}
    assert not open_(root, "legacy/m.py", settings=settings).reported
    assert not open_(root, "legacy", settings=settings).reported


def test_environments_and_caches_are_not_walked(project: Project) -> None:
    root = project(
        {
            "tlint.toml": "",
            "m.py": "",
            ".venv/lib/x.py": "",
            "node_modules/x.py": "",
            "build/x.py": "",
            "mine/pyvenv.cfg": "",
            "mine/lib/x.py": "",
        }
    )
    assert names(root, open_(root).files) == {"m.py"}


def test_a_loop_of_links_ends(project: Project) -> None:
    root = project({"tlint.toml": "", "a/m.py": ""})
    (root / "a" / "again").symlink_to(root, target_is_directory=True)
    (root / "gone.py").symlink_to(root / "nowhere.py")
    assert names(root, open_(root).files) == {"a/m.py"}


def test_nothing_there_is_a_notice(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    root = project({"empty/notes.txt": ""})
    with caplog.at_level(logging.WARNING, "tlint"):
        assert not open_(root, "empty").reported
    assert "no Python files below empty" in caplog.text


def test_patterns_that_are_none(project: Project) -> None:
    root = project({"tlint.toml": "", ".gitignore": "!\n[z-a]\n\\\nb.py\n", "a.py": "", "b.py": ""})
    assert names(root, open_(root).files) == {"a.py"}


def test_a_missing_path_is_an_error(project: Project) -> None:
    with pytest.raises(TlintError, match=r"nowhere: no such file or folder"):
        open_(project(), "nowhere")


def test_a_buffer_stands_for_a_file(project: Project) -> None:
    root = project({"tlint.toml": "", "a.py": "old = 1\n"})
    buffer = source.Source(root / "a.py", "new = 1\n")
    workspace = open_workspace([root / "a.py"], Settings(), root, buffer)
    assert workspace.read(root / "a.py").text == "new = 1\n"
    assert workspace.texts() == {"a.py": "new = 1\n"}
    missing = source.Source(root / "b.py", "")
    assert names(root, open_workspace([root / "b.py"], Settings(), root, missing).reported) == {"b.py"}


def test_paths_are_shown_from_the_working_directory(project: Project) -> None:
    root = project({"tlint.toml": "", "a/m.py": "", "n.py": ""})
    workspace = open_workspace([root], Settings(), root / "a")
    shown = {workspace.display(file) for file in workspace.files}
    assert shown == {"m.py", (root / "n.py").as_posix()}


# The interpreter


def environment(root: Path, name: str, torch: str | None = None) -> Path:
    """What an environment looks like from outside, without making one."""
    python = root / name / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    packages = root / name / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (root / name / "pyvenv.cfg").touch()
    if torch:
        (packages / f"torch-{torch}.dist-info").mkdir()
    return python


def test_the_order_of_interpreters(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project({"tlint.toml": ""})
    other = environment(root, "venv")
    assert open_(root).python == str(other)
    own = environment(root, ".venv")
    assert open_(root).python == str(own)
    active = environment(root, "active")
    monkeypatch.setenv("VIRTUAL_ENV", str(root / "active"))
    assert open_(root).python == str(active)
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)  # tlint's own says nothing about the project
    assert open_(root).python == str(own)
    named = environment(root, "named")
    assert open_(root, settings=Settings(python=str(root / "named"))).python == str(named)
    assert open_(root, settings=Settings(python=str(named))).python == str(named)


def test_an_interpreter_that_is_none(project: Project) -> None:
    root = project({"m.py": "", "empty/x": ""})
    for name in ("nowhere", "empty", "m.py"):
        with pytest.raises(TlintError, match=f"{name}: no Python interpreter"):
            open_(root, settings=Settings(python=str(root / name)))


# The target torch


def torch_of(root: Path, **settings: object) -> tuple[tuple[str, ...], str, str]:
    found = open_(root, settings=Settings(**settings)).torch  # type: ignore[arg-type]
    return found.versions, found.source, found.origin


LOCKS = {
    "uv.lock": '[[package]]\nname = "torch"\nversion = "2.13.0"\n[[package]]\nname = "torch"\nversion = "2.9.1+cpu"\n',
    "pylock.toml": '[[packages]]\nname = "torch"\nversion = "2.13.0"\n',
    "poetry.lock": '[[package]]\nname = "torch"\nversion = "2.13.0"\n',
    "pdm.lock": '[[package]]\nname = "torch"\nversion = "2.13.0+cu130"\n',
    "requirements.txt": "numpy\ntorch==2.13.0  # not torch==2.14.0\npytorch-lightning==2.14\n",
    "requirements-dev.txt": "torch[opt-einsum] == 2.13.1; python_version > '3'\n",
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["torch==2.13.*"]\n',
}


@pytest.mark.parametrize("name", LOCKS)
def test_locks_and_pins(project: Project, name: str) -> None:
    assert torch_of(project({name: LOCKS[name], "m.py": ""})) == (("2.13",), "lock", name)


@pytest.mark.parametrize("text", ["torch>=2.13", "torchvision==2.13", "my-torch==2.13", "# torch==2.13", "torch"])
def test_what_is_no_pin(project: Project, text: str) -> None:
    root = project({"requirements.txt": text, "m.py": ""})
    environment(root, ".venv")
    assert torch_of(root) == (("2.14",), "newest", "the newest known")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("uv.lock", b"package = 3"),
        ("uv.lock", b"package = [1]"),
        ("uv.lock", b'package = [{name = "torch"}]'),
        ("poetry.lock", b"[package]\nname = 'torch'"),
        ("pdm.lock", b"[[["),
        ("pylock.toml", b"\xff"),
        ("pylock.toml", b"x = " + b"[" * 5000),
        ("requirements.txt", b"torch==\xff"),
        ("requirements.txt", b"torch==" + b"9" * 5000 + b".1"),
    ],
)
def test_a_lock_that_says_nothing_is_passed_over(project: Project, name: str, content: bytes) -> None:
    root = project({"tlint.toml": "", "pyproject.toml": 'dependencies = ["torch==2.13.0"]', name: content})
    assert open_(root).torch.origin == "pyproject.toml"


def test_requirements_as_powershell_writes_them(project: Project) -> None:
    root = project({"tlint.toml": "", "requirements.txt": "torch==2.13.0\n".encode("utf-16")})
    assert open_(root).torch.origin == "requirements.txt"


def test_the_order_of_sources(project: Project) -> None:
    root = project({"tlint.toml": ""})
    environment(root, ".venv", "2.9.0+cpu")
    assert torch_of(root) == (("2.9",), "environment", ".venv")
    project({"uv.lock": LOCKS["uv.lock"]})
    assert torch_of(root)[1:] == ("lock", "uv.lock")
    assert torch_of(root, target_torch=("2.14", "2.9"))[:2] == (("2.14", "2.9"), "config")
    flags = frozenset({"target_torch"})
    assert torch_of(root, target_torch=("v2.9.1+cpu",), flags=flags) == (("2.9",), "flag", "--target-torch")


@pytest.mark.parametrize(("installed", "used"), [("2.12.1", "2.9"), ("2.15.0", "2.14"), ("2.3.0", "2.9")])
def test_the_nearest_facts_that_are_not_newer(project: Project, installed: str, used: str) -> None:
    root = project({"tlint.toml": ""})
    environment(root, ".venv", installed)
    assert torch_of(root)[0] == (used,)


@pytest.mark.parametrize("asked", ["2.12", "new", ""])
def test_asking_for_a_torch_without_facts_lists_those_with(project: Project, asked: str) -> None:
    with pytest.raises(TlintError, match=r"known are 2\.9, 2\.13, 2\.14"):
        torch_of(project({"m.py": ""}), target_torch=(asked,))
