"""Rules: documented, named and found as they promise to be, and their published examples run."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from pathlib import Path

import pytest

from tlint import rules
from tlint.analyzer import facts, pipeline
from tlint.analyzer.config import Settings, VerifySettings
from tlint.analyzer.model import Confidence, Report, Status
from tlint.rules.base import EVENTS, Rule

RULES = list(rules.load().values())
FIXTURES = Path(__file__).parent.parent / "fixtures" / "rules"
PYTHONS = [sys.executable, *filter(None, os.environ.get("TLINT_TEST_PYTHONS", "").split(os.pathsep))]

# No source text makes these: a break that only the compiler sees, and a mistake in tlint itself.
WITHOUT_EXAMPLES = {"TL191", "TL199", "TL903"}
EXAMPLES = [rule for rule in RULES if rule.code not in WITHOUT_EXAMPLES]


def sections(rule: Rule) -> dict[str, str]:
    """The documentation's sections by their headings; "" is what stands before the first."""
    title, *rest = re.split(r"^## (.+)\n", inspect.getdoc(rule) or "", flags=re.MULTILINE)
    return {"": title, **dict(zip(rest[::2], rest[1::2], strict=True))}


def example(rule: Rule, which: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", sections(rule)[which], flags=re.DOTALL)
    return code


def check(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Report:
    path = folder / "example.py"
    path.write_text(code, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return pipeline.run([path], settings, folder)


def fires(rule: Rule, report: Report) -> bool:
    return any(f.code == rule.code and f.confidence >= Confidence.likely for f in report.findings)


def with_inputs(code: str) -> str:
    """The example with its last statement, a call of the compiled function, as declared inputs instead."""
    call = ast.parse(code).body[-1]
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call), "an example ends with a call"
    arguments = "".join(f"{ast.unparse(argument)}, " for argument in call.value.args)
    before = "".join(code.splitlines(keepends=True)[: call.lineno - 1])
    return f"{before}def tlint_inputs():\n    return {{{ast.unparse(call.value.func)!r}: ({arguments})}}\n"


def test_codes_and_names_are_unique_and_well_formed() -> None:
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)
    assert all(re.fullmatch(r"TL\d{3}", rule.code) for rule in RULES)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name) for rule in RULES)
    assert list(rules.load()) == sorted(rules.load())
    assert not set(rules.aliases) & {rule.name for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_one_file_with_a_fixture_of_its_name(rule: Rule) -> None:
    path = Path(inspect.getfile(type(rule)))
    assert path.stem == rule.name.replace("-", "_")
    assert path.parent.parent.name == "rules", "a file in the folder of its family"
    # What no file can show by itself: a fault of tlint, and an environment with packages (test_dependencies.py).
    assert rule.code in ("TL191", "TL903") or (FIXTURES / path.name).is_file()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_documentation(rule: Rule) -> None:
    found = sections(rule)
    assert found[""].count(".") and "\n" not in found[""].split("\n\n")[0], "the first line is the summary"
    assert rule.remedy and not rule.remedy.endswith(".") and len(rule.remedy) <= 110
    if rule.code in WITHOUT_EXAMPLES:
        assert list(found)[1:] == ["What it means", "What to do"]
    else:
        assert list(found)[1].startswith(("Why it ", "Why it's "))
        last = ["What running tells"] if rule.gb_types and "What running tells" in found else []
        assert list(found)[2:] == ["Bad", "Good", "Fix safety", *last]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_events_and_claims(rule: Rule) -> None:
    """A rule about breaks claims one, in words of Dynamo's own registry; other rules claim nothing."""
    asked = [event for event in EVENTS if hasattr(rule, event)]
    assert bool(asked) is not rule.code.startswith(("TL191", "TL199", "TL9"))
    assert bool(rule.gb_types) is (rule.code.startswith("TL1") and rule.code not in ("TL191", "TL199"))
    known = {entry["gb_type"] for version in facts.versions() for entry in facts.load(version).registry.values()}
    assert set(rule.gb_types) <= known


@pytest.mark.parametrize("torch", facts.versions())
@pytest.mark.parametrize("rule", EXAMPLES, ids=lambda rule: rule.name)
def test_bad_fires_and_good_does_not(rule: Rule, torch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(target_torch=(torch,))
    assert fires(rule, check(example(rule, "Bad"), tmp_path, monkeypatch, settings))
    report = check(example(rule, "Good"), tmp_path, monkeypatch, settings)
    assert [f.message for f in report.findings if f.state == "active" and f.severity] == []


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.gb_types], ids=lambda rule: rule.name)
def test_bad_breaks_and_good_does_not(rule: Rule, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(python=python, verify=True, verify_settings=VerifySettings(gpus=(), timeout=300))
    report = check(with_inputs(example(rule, "Bad")), tmp_path, monkeypatch, settings)
    verdicts = [f.verdict.status for f in report.findings if f.code == rule.code]
    assert verdicts and set(verdicts) == {Status.confirmed}
    good = example(rule, "Good")
    match ast.parse(good).body[-1]:
        case ast.Expr(value=ast.Call(func=ast.Name())):  # others do something with the result that is not compiled
            report = check(with_inputs(good), tmp_path, monkeypatch, settings)
            assert {target.status for target in report.targets} <= {"fullgraph", "intended_breaks"}
