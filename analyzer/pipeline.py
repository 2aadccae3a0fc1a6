"""A run of tlint from top to bottom: read this file first.

The static stage finds, the compiler observes, `judge` compares, and what is left after selection and suppression is
the report. Everything that passes from one step to the next is a frozen value of `model.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tlint import rules
from tlint.analyzer import baseline, cache, explain, ignores, notebook, project, selection, suppress
from tlint.analyzer.config import Settings
from tlint.analyzer.model import (
    Analysis,
    Confidence,
    Finding,
    Report,
    Root,
    RuleInfo,
    Severity,
    Status,
    Target,
    TlintError,
)
from tlint.analyzer.project import Workspace
from tlint.analyzer.report import summary
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
    if chosen <= set(selection.ALWAYS):
        project.log.warning("no rule is on: `select` and `ignore` leave none")
    runner.described(settings.verify_settings.gpus)
    workspace = project.open_workspace(paths, settings, cwd, buffer)
    accepted = baseline.read(workspace.root, settings)
    if settings.verify:
        named = settings.verify_settings.targets
        asked, missing = targets.locate(workspace, named)
        errors = (*errors, *missing)
        if missing and not asked and settings.only_targets:
            raise TlintError("\n".join(errors))
        settings = replace(settings, verify_settings=replace(settings.verify_settings, targets=asked))

    analysis = cache.analyze(workspace, settings, progress)
    errors = (*errors, *analysis.errors)
    # Before the compiler is asked: what only a rule in preview predicts is unpredicted where that rule is off.
    offered = selection.available(known, settings)
    findings, verified = tuple(f for f in analysis.findings if f.code in offered), tuple[Target, ...]()
    if settings.verify:
        requests, undeclared = tuple[targets.Request, ...](), tuple[str, ...]()
        if asked or not named:  # nothing else is run in the place of what is not there
            requests, undeclared = targets.discover(workspace, analysis.roots, asked, _roots_to(findings, workspace))
        if not (named or requests):
            project.log.warning("nothing is verified: no file here defines tlint_inputs() or get_inputs()")
        observations = runner.run(requests, settings.verify_settings, workspace.python, workspace.cwd, progress)
        findings, verified = judge.judge(findings, observations, analysis.roots)
        failed = failures(verified)
        # A file that declares inputs does not name them; but where nothing could be run, nothing was verified.
        errors = (*errors, *undeclared, *(failed if asked or len(failed) == len(verified) else ()))

    findings = tuple(finding for finding in findings if finding.code in chosen)
    names = {**rules.aliases, **{key: rule.code for rule in known.values() for key in (rule.code, rule.name)}}
    ran = chosen if settings.verify else chosen - {"TL199"}
    findings = suppress.apply(
        findings,
        workspace.texts(finding.path for finding in findings),
        names,
        ran.__contains__,
        settings,
        root=workspace.root,
        cwd=workspace.cwd,
    )
    findings = baseline.apply(findings, accepted)
    findings = tuple(finding for finding in findings if _asked_about(finding, workspace, analysis))
    stale = (
        () if analysis.targeted else baseline.stale(accepted, findings, lambda entry: _looked_at(entry, workspace, ran))
    )
    if stale:
        project.log.warning("%d in the baseline occur no longer: `tlint baseline` drops them", len(stale))
    least = Confidence[settings.min_confidence]
    shown = tuple(finding for finding in findings if finding.confidence >= least)
    report = Report(
        project=str(workspace.root),
        target_torch=workspace.target_torch,
        target_torch_source=workspace.target_torch_source,
        target_torch_origin=workspace.torch.origin,
        rules={code: _describe(known[code]) for code in sorted({finding.code for finding in shown})},
        findings=shown,
        targets=verified,
        roots=tuple(r for r in analysis.roots if not analysis.targeted or r.name in analysis.targeted),
        files=analysis.files,
        functions=analysis.functions,
        hidden=sum(finding.state == "active" and finding.confidence < least for finding in findings),
        errors=tuple(errors),
        stale=stale,
    )
    if settings.add_ignores:
        report = _with_ignores(report, workspace, " ".join(settings.reason.split()))
    cells = functools.cache(workspace.cells)
    return replace(
        report,
        findings=notebook.located(report.findings, cells),
        roots=notebook.lines_located(report.roots, cells),
        exit_code=_exit_code(report.findings, report.errors, Severity[settings.fail_on]),
    )


def roots(
    paths: Sequence[Path],
    settings: Settings,
    cwd: Path,
    progress: Progress | None = None,
    buffer: Source | None = None,
) -> tuple[tuple[Root, ...], tuple[str, ...]]:
    """The compile roots of the project that holds PATHs, and what was asked for by name and is none."""
    workspace = project.open_workspace(paths, settings, cwd, buffer)
    analysis = cache.analyze(workspace, settings, progress)
    return notebook.lines_located(analysis.roots, functools.cache(workspace.cells)), analysis.errors


def _describe(rule: Rule) -> RuleInfo:
    return RuleInfo(rule.code, rule.name, explain.summary(rule), url="", status=rule.status)


def _roots_to(findings: Iterable[Finding], workspace: Workspace) -> frozenset[str]:
    """The roots from which something in the files asked about is reached."""
    near = (finding for finding in findings if workspace.cwd / finding.path in workspace.reported)
    return frozenset(path.root for finding in near for path in finding.paths)


def _asked_about(finding: Finding, workspace: Workspace, analysis: Analysis) -> bool:
    """What lies in the files asked about, or on the way from the targets asked for; what the compiler saw, anywhere."""
    if finding.verdict.status is Status.confirmed or (analysis.targeted and finding.paths):
        return True
    if analysis.targeted and finding.code not in selection.ALWAYS:
        return False
    return workspace.cwd / finding.path in workspace.reported or finding.code in selection.ALWAYS


def _with_ignores(report: Report, workspace: Workspace, reason: str) -> Report:
    """Silence what would be shown, with comments in the files."""
    shown, _ = summary.fold(report)
    wanted = [f for f in shown if workspace.cwd / f.path in workspace.reported and f.code not in selection.ALWAYS]
    silenced, errors = ignores.write(wanted, workspace.cwd, reason)
    findings = [
        replace(f, state="suppressed", reason=reason or None) if (f.path, f.span, f.code) in silenced else f
        for f in report.findings
    ]
    project.log.warning("%d findings are ignored from now on, by comments", len(silenced))
    return replace(report, findings=tuple(findings), errors=(*report.errors, *errors))


def _looked_at(entry: baseline.Entry, workspace: Workspace, ran: Collection[str]) -> bool:
    """Whether an entry of the baseline would have been found again."""
    path = workspace.root / entry.path
    return entry.code in ran and any(path.is_relative_to(asked) for asked in workspace.paths)


def failures(targets: Iterable[Target]) -> tuple[str, ...]:
    """Targets that could not be run to their end."""
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
