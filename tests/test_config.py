"""Settings: where they come from, and what a mistake in them says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tlint.analyzer import config
from tlint.analyzer.model import TlintError

Project = Callable[..., Path]


def test_defaults(project: Project) -> None:
    settings = config.load(project(), {})
    assert (settings.select, settings.roots, settings.fail_on) == (("TL",), "auto", "warning")
    assert settings.min_confidence == "likely"
    assert settings.verify_settings == config.VerifySettings()


def test_every_key_can_be_written(project: Project) -> None:
    root = project(
        {
            "pyproject.toml": """
            [tool.tlint]
            select = ["TL1", "compile-per-call"]
            ignore = ["logging-call"]
            extend-select = ["TL2"]
            preview = true
            output-format = "json"
            root = ["m:Net"]
            roots = "modules"
            root-decorators = ["mine.compiled"]
            target-torch = ["2.13", "2.14"]
            fail-on = "error"
            min-confidence = "certain"
            exclude = ["legacy/"]
            baseline = "known"
            cache-dir = "../cache"
            python = ".venv/bin/python"
            statistics = true

            [tool.tlint.per-file-ignores]
            "tests/*" = ["TL1"]

            [tool.tlint.verify]
            timeout = 30
            memory = "2GiB"
            gpus = ["a100"]
            jobs = 2
            train = true
            mode = "reduce-overhead"
            targets = ["m:Net"]
            """
        }
    )
    settings = config.load(root, {})
    assert settings.select == ("TL1", "compile-per-call")
    assert settings.root_decorators == ("mine.compiled",)
    assert settings.per_file_ignores == {"tests/*": ("TL1",)}
    assert settings.python == str(root / ".venv/bin/python")
    assert settings.baseline == str(root / "known")
    assert settings.cache_dir == str(root / "../cache")
    assert settings.statistics is True
    assert settings.verify is False
    assert settings.verify_settings == config.VerifySettings(
        30.0, 2 * 2**30, ("a100",), 2, True, "reduce-overhead", ("m:Net",)
    )
    assert set(settings.__dataclass_fields__) - config.COMMAND_LINE_ONLY == {
        name for name in settings.__dataclass_fields__ if getattr(settings, name) != getattr(config.Settings(), name)
    } - {"verify_settings"}, "a key has no line above"


def test_the_command_line_wins(project: Project) -> None:
    root = project({"tlint.toml": 'select = ["TL1"]\nignore = ["TL101"]\n[verify]\ntimeout = 5\njobs = 3\n'})
    settings = config.load(root, {"select": ("TL4",), "timeout": 9.0})
    assert (settings.select, settings.ignore, settings.flags) == (("TL4",), ("TL101",), {"select", "timeout"})
    assert (settings.verify_settings.timeout, settings.verify_settings.jobs) == (9.0, 3)


def test_tlint_toml_wins_over_pyproject(project: Project) -> None:
    root = project({"tlint.toml": 'fail-on = "error"', "pyproject.toml": '[tool.tlint]\nfail-on = "info"'})
    assert config.load(root, {}).fail_on == "error"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('selct = ["TL1"]', r"pyproject\.toml: unknown key tool\.tlint\.selct: did you mean 'select'"),
        ("per_file_ignores = {}", r"unknown key tool\.tlint\.per_file_ignores: did you mean 'per-file-ignores'"),
        ("zzz = 1", r"unknown key tool\.tlint\.zzz: the keys are baseline, "),
        ("output-file = 'x'", r"unknown key tool\.tlint\.output-file"),
        ('select = "TL1"', r"tool\.tlint\.select must be a list of strings, not 'TL1'"),
        ("ignore = [1]", r"tool\.tlint\.ignore must be a list of strings"),
        ("statistics = 1", r"tool\.tlint\.statistics must be true or false, not 1"),
        ("python = 3.11", r"tool\.tlint\.python must be a string, not 3\.11"),
        ('fail-on = "never"', r"tool\.tlint\.fail-on must be one of 'info', 'warning', 'error', not 'never'"),
        ("per-file-ignores = []", r"tool\.tlint\.per-file-ignores must be a table"),
        ('per-file-ignores = {"a" = "TL1"}', r"tool\.tlint\.per-file-ignores must be a list of strings"),
        ("verify = true", r"tool\.tlint\.verify must be a table"),
        ("verify.timeout = 'long'", r"tool\.tlint\.verify\.timeout must be a number, not 'long'"),
        ("verify.jobs = 0", r"jobs must be a number above zero"),
        ("verify.jobs = true", r"tool\.tlint\.verify\.jobs must be a whole number"),
        ("verify.memory = 'plenty'", r"tool\.tlint\.verify\.memory must be a size like 8GiB"),
        ("verify.mode = 'fast'", r"tool\.tlint\.verify\.mode must be one of 'default', 'reduce-overhead'"),
        ("verify.gpu = ['a100']", r"unknown key tool\.tlint\.verify\.gpu: did you mean 'gpus'"),
        ("select = [", r"pyproject\.toml: "),
        ("select = " + "[" * 5000, r"pyproject\.toml: .*recursion"),
        ('exclude = ["!"]', r"tool\.tlint\.exclude: '!' is no pattern"),
        ('per-file-ignores = {"[z-a]" = ["TL1"]}', r"tool\.tlint\.per-file-ignores: '\[z-a\]' is no pattern"),
    ],
)
def test_a_mistake_names_file_and_key(project: Project, text: str, says: str) -> None:
    root = project({"pyproject.toml": f"[tool.tlint]\n{text}\n"})
    with pytest.raises(TlintError, match=says):
        config.load(root, {})


def test_tool_tlint_must_be_a_table(project: Project) -> None:
    with pytest.raises(TlintError, match="must be a table"):
        config.load(project({"pyproject.toml": "[tool]\ntlint = 1\n"}), {})


@pytest.mark.parametrize(
    ("text", "size"), [("8GiB", 8 * 2**30), ("512 MB", 512_000_000), ("1.5g", 1_500_000_000), ("77", 77), ("3b", 3)]
)
def test_sizes(text: str, size: int) -> None:
    assert config.parse_size(text) == size
