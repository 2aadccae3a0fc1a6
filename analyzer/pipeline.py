"""A run of tlint from top to bottom: read this file first.

The static stage finds, the compiler observes, `judge` compares, and what is left after selection and suppression is
the report. Everything that passes from one step to the next is a frozen value of `model.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tlint import rules
from tlint.analyzer import engine, explain, project, selection, suppress
from tlint.analyzer.config import Settings
from tlint.analyzer.model import Confidence, Finding, Report, Root, RuleInfo, Severity, Status, Target
from tlint.analyzer.source import Source
from tlint.compiler import judge, runner, targets
from tlint.rules.base import Rule

Progress = Callable[[str, int, int], None]


def run(
    paths: Sequence[Path],
    settings: Settings,
    cwd: Path,
    progress: Progress | None = None,
    buffer: Source | None = None,
    errors: Sequence[str] = (),
) -> Report:
    """Look at PATHs, and verify if the settings say so.

    `buffer` is the text of one of them, given in its place. `errors` is what was asked for and is not there.
    """
    known = rules.load()
    chosen = selection.choose(known, rules.aliases, settings)
    workspace = project.open_workspace(paths, settings, cwd, buffer)

    analysis = engine.analyze(workspace, settings, progress)
    findings, verified = analysis.findings, tuple[Target, ...]()
    if settings.verify:
        asked = settings.verify_settings.targets
        requests, missing = targets.discover(workspace, analysis.roots, asked)
        observations = runner.run(requests, settings.verify_settings, workspace.python, workspace.cwd, progress)
        findings, verified = judge.judge(findings, observations, workspace.root)
        errors = (*errors, *missing, *_failures(verified if asked else ()))

    findings = tuple(finding for finding in findings if finding.code in chosen)
    names = {**rules.aliases, **{key: rule.code for rule in known.values() for key in (rule.code, rule.name)}}
    ran = chosen if settings.verify else chosen - {"TL199"}
    findings = suppress.apply(
        findings, workspace.texts(), names, ran.__contains__, settings, root=workspace.root, cwd=workspace.cwd
    )
    shown = tuple(finding for finding in findings if finding.confidence >= Confidence[settings.min_confidence])
    return Report(
        project=str(workspace.root),
        target_torch=workspace.target_torch,
        target_torch_source=workspace.target_torch_source,
        target_torch_origin=workspace.torch.origin,
        rules={code: _describe(known[code]) for code in sorted({finding.code for finding in shown})},
        findings=shown,
        targets=verified,
        roots=analysis.roots,
        files=analysis.files,
        functions=analysis.functions,
        exit_code=_exit_code(shown, errors, Severity[settings.fail_on]),
        hidden=len(findings) - len(shown),
        errors=tuple(errors),
    )


def roots(paths: Sequence[Path], settings: Settings, cwd: Path, progress: Progress | None = None) -> tuple[Root, ...]:
    """The compile roots of the project that holds PATHs."""
    return engine.analyze(project.open_workspace(paths, settings, cwd), settings, progress).roots


def _describe(rule: Rule) -> RuleInfo:
    return RuleInfo(rule.code, rule.name, explain.summary(rule), url="", status=rule.status)


def _failures(targets: Iterable[Target]) -> tuple[str, ...]:
    """Targets asked for by name that could not be run to their end."""
    return tuple(
        f"{target.name}: {target.status} in phase {target.phase}: {target.detail}"
        for target in targets
        if target.status in {"error", "timeout", "skipped"}
    )


def _exit_code(findings: Iterable[Finding], errors: Sequence[str], fail_on: Severity) -> int:
    if errors:
        return 2
    return int(
        any(
            finding.state == "active" and finding.severity >= fail_on and finding.verdict.status is not Status.refuted
            for finding in findings
        )
    )
