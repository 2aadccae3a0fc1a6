"""README.md and docs/ say what is so: their commands run, their settings are read, what they link to exists."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Result

from tlint.analyzer import cli, config, facts
from tlint.analyzer.config import COMMAND_LINE_ONLY, Settings, VerifySettings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "tests" / "benchmarks" / "README.md"]

Tlint = Callable[..., Result]


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands() -> list[list[str]]:
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines]


INSTALLING = [words for words in commands() if words[0] != "tlint"]
RUNNING = [words[1:] for words in commands() if words[0] == "tlint"]


@pytest.mark.parametrize("words", RUNNING, ids=" ".join)
def test_commands(words: list[str], tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = tlint(*words)
    finds = words[0] not in ("roots", "explain")
    assert result.code == (1 if finds and "predict" not in words[-1] else 0), result.out + result.err
    assert result.out


def test_the_first_week(tmp_path: Path, tlint: Tlint, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes files, so it is tried on a copy."""
    shutil.copytree(ROOT / "fixtures" / "demo", tmp_path / "src")
    (tmp_path / "tlint.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    [block] = blocks("shell")
    assert tlint().code == 1
    for line in block.splitlines():
        command, *words = shlex.split(line, comments=True)
        assert command == "tlint"
        assert tlint(*words).code == 0, line
    assert (tmp_path / ".tlint-baseline").is_file()
    assert tlint("--no-baseline").code == 1, "a comment is for what no baseline holds"
    (tmp_path / ".tlint-baseline").unlink()
    assert tlint(*words).code == 0
    assert tlint().code == 0


def test_the_two_commands_for_a_fresh_machine() -> None:
    """They download torch: .ci/run runs the second, tests/test_demo.py what the first ends with."""
    demo, tests = (" ".join(words) for words in INSTALLING)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for command in (demo, tests):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -q -e .[verify")
        assert set(re.findall(r"\.\[([\w,]+)\]", command)[0].split(",")) <= set(extras)
    assert demo.endswith(".venv/bin/tlint check fixtures/demo --verify")
    assert "grep -m 1 'pytest -n auto' README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r"\.venv/bin/pytest -n auto --dist loadgroup$", tests)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert re.match(r"https?://", link) or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_options(page: Path) -> None:
    """Every option that is named, in a block or in a sentence, is one of ours (or of pip's and pytest's)."""
    text = page.read_text(encoding="utf-8")
    ours = {option for command in ("check", "verify", "baseline") for option in options(command)} | {
        "--no-deps",
        "--dist",
    }
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= ours


def options(command: str) -> set[str]:
    [subparsers] = [action for action in cli._parser()._actions if action.dest == "command"]
    return set(subparsers.choices[command]._option_string_actions)


def test_the_versions_that_have_facts() -> None:
    [sentence] = re.findall(r"Facts are there for torch (.*?)\. ", README)
    assert tuple(re.findall(r"[\d.]+", sentence)) == facts.versions()


def test_configuration_in_the_readme(tmp_path: Path) -> None:
    for block in blocks("toml"):
        (tmp_path / "pyproject.toml").write_text(block, encoding="utf-8")
        settings = config.load(tmp_path, {})
        assert settings != Settings()


def test_the_hook_is_one_of_ours() -> None:
    ours = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    [block] = [block for block in blocks("yaml") if "repos:" in block]
    assert set(re.findall(r"- id: (\S+)", block)) <= set(re.findall(r"^- id: (\S+)", ours, re.MULTILINE))


def test_every_setting_is_documented_with_its_default(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    tables = [dict(re.findall(r"^\| `([\w-]+)` \| (.+?) \| ", part, re.MULTILINE)) for part in text.split("`verify`")]
    main, verify = tables[0], tables[1]
    assert set(main) == {key(name) for name in set(Settings.__dataclass_fields__) - COMMAND_LINE_ONLY}
    assert set(verify) == {key(name) for name in VerifySettings.__dataclass_fields__}

    def toml(table: dict[str, str]) -> str:
        return "".join(f"{name} = {value.strip('`')}\n" for name, value in table.items() if value != "not set")

    (tmp_path / "tlint.toml").write_text(f"{toml(main)}\n[verify]\n{toml(verify)}", encoding="utf-8")
    assert config.load(tmp_path, {}) == Settings()
    unset = [getattr(Settings(), name.replace("-", "_")) for name, value in main.items() if value == "not set"]
    unset += [getattr(VerifySettings(), name) for name, value in verify.items() if value == "not set"]
    assert unset == [None] * len(unset)


def key(name: str) -> str:
    return name.replace("_", "-")
