"""Verdicts: what was claimed against what was seen. Pure values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tlint.analyzer.model import (
    Break,
    Claim,
    Confidence,
    Finding,
    Observation,
    Root,
    RootKind,
    Severity,
    Span,
    Status,
    Target,
    Verdict,
)
from tlint.compiler import judge

ITEM, BRANCH = "Unsupported Tensor.item() call", "Data-dependent branching"
HERE = Span(4, 9, 4, 17)

FINDING = Finding(
    "f1",
    "TL101",
    "tensor-to-python",
    "reads a tensor",
    "m.py",
    HERE,
    Severity.warning,
    Confidence.likely,
    claim=Claim("dynamo", (ITEM,)),
)


def seen(gb_type: str = ITEM, span: Span | None = HERE, **more: Any) -> Break:
    line = more.pop("line", span.line if span else 4)
    message = f"{gb_type}\n  Explanation: because."
    return Break(more.pop("id", "b1"), gb_type, message, "m.py", line, (("m.py", line, "f"),), span=span, **more)


def observed(
    *breaks: Break, executed: Sequence[Span] = (), status: str = "", trials: Sequence[Any] = (), **more: Any
) -> Observation:
    target = Target("t1", "m:f", "m.py", breaks=breaks, status=status, gate=more.pop("gate", "pass"))
    return Observation(replace(target, **more), {"m.py": tuple(executed)} if executed else {}, tuple(trials))


def verdict(finding: Finding, *observations: Observation) -> Verdict:
    return judge.judge([finding], observations)[0][0].verdict


def test_confirmed() -> None:
    findings, (target,) = judge.judge([FINDING], [observed(seen(gb_id="GB0124"))])
    (finding,) = findings
    assert finding.verdict == Verdict(Status.confirmed, "because.", ITEM, "GB0124", ("t1",))
    assert (finding.confidence, finding.severity) == (Confidence.certain, Severity.warning)
    assert (target.status, target.breaks[0].finding, target.breaks[0].predicted) == ("breaks", "f1", True)


@pytest.mark.parametrize("more", [{"frame_lost": True}, {}])
def test_confirmed_is_an_error_where_a_frame_or_the_whole_graph_is_lost(more: dict[str, Any]) -> None:
    config = {} if more else {"fullgraph": True}
    (finding,), _ = judge.judge([FINDING], [observed(seen(**more), config=config)])
    assert finding.severity is Severity.error


def test_confirmed_where_only_lines_are_known() -> None:
    assert verdict(FINDING, observed(seen(span=None))).status is Status.confirmed
    assert verdict(FINDING, observed(seen(span=None, line=5))).status is not Status.confirmed


def test_of_nested_findings_the_closest_is_confirmed() -> None:
    outer = replace(FINDING, id="f2", span=Span(4, 5, 4, 30))
    findings, _ = judge.judge([outer, FINDING], [observed(seen(), executed=[outer.span])])
    assert [finding.verdict.status for finding in findings] == [Status.refuted, Status.confirmed]


def test_refuted() -> None:
    assert verdict(FINDING, observed(executed=[HERE])).status is Status.refuted
    inner = Span(4, 14, 4, 17)  # the last instruction of the expression
    assert verdict(FINDING, observed(executed=[inner])).status is Status.refuted


def test_refuted_by_its_own_instructions_next_to_another_break() -> None:
    other = seen(BRANCH, Span(4, 20, 4, 25))
    assert verdict(FINDING, observed(other, executed=[HERE])).status is Status.refuted


def test_unreached() -> None:
    wider, left = Span(4, 5, 4, 17), Span(4, 9, 4, 10)
    for executed in (wider, left):  # `f(a and b.item())` was called, and `a` was evaluated
        found = verdict(FINDING, observed(executed=[executed]))
        assert (found.status, found.targets) == (Status.unreached, ("t1",))
        assert "line 4 was traced" in found.reason
    assert "did not come here" in verdict(FINDING, observed(executed=[Span(9, 1, 9, 2)])).reason


def test_unreached_behind_a_lost_frame_says_so() -> None:
    lost = seen(BRANCH, Span(2, 1, 2, 5), frame_lost=True)
    found = verdict(FINDING, observed(lost, executed=[Span(1, 1, 1, 2)]))
    assert found.status is Status.unreached and "line 2" in found.reason


def test_inconclusive_names_what_it_saw() -> None:
    found = verdict(FINDING, observed(seen(BRANCH, gb_id="GB0170"), executed=[HERE]))
    assert (found.status, found.gb_type, found.gb_id) == (Status.inconclusive, BRANCH, "GB0170")


def test_not_run() -> None:
    assert verdict(FINDING).status is Status.not_run
    failed = observed(status="error", phase="import", detail="boom")
    assert verdict(FINDING, failed) == Verdict(Status.not_run, "m:f: error in import")
    elsewhere = Observation(Target("t2", "other:f", "other.py"), {"other.py": (HERE,)})
    assert verdict(FINDING, elsewhere).status is Status.not_run
    assert verdict(replace(FINDING, claim=None), observed(executed=[HERE])).status is Status.not_run


def test_claim_about_fullgraph_needs_the_gate() -> None:
    claim = replace(FINDING, claim=Claim("dynamo", (ITEM,), "fullgraph"))
    assert verdict(claim, observed(executed=[HERE])).status is Status.refuted
    assert verdict(claim, observed(executed=[HERE], gate="fail")).status is Status.unreached


def test_over_targets_confirmed_wins_then_refuted() -> None:
    runs = [observed(executed=[Span(1, 1, 1, 2)]), observed(executed=[HERE]), observed(seen())]
    runs = [replace(run, target=replace(run.target, id=f"t{n}")) for n, run in enumerate(runs)]
    assert (verdict(FINDING, *runs).status, verdict(FINDING, *runs).targets) == (Status.confirmed, ("t2",))
    assert (verdict(FINDING, *runs[:2]).status, verdict(FINDING, *runs[:2]).targets) == (Status.refuted, ("t1",))
    assert verdict(FINDING, runs[0]).status is Status.unreached


def test_unpredicted_break_is_a_finding_once_for_all_targets() -> None:
    first = observed(seen(BRANCH, Span(8, 1, 8, 4)))
    second = replace(first, target=replace(first.target, id="t2"))
    (finding,), found = judge.judge([], [first, second])
    assert finding.message == f"graph break that no rule predicted: {BRANCH}"
    assert {path.kind for path in finding.paths} == {RootKind.named}
    root = Root("m:f", RootKind.explicit, False, "m.py", 1, 1, "@torch.compile")
    (compiled,), _ = judge.judge([], [first], [root, replace(root, kind=RootKind.assumed)])
    assert [path.kind for path in compiled.paths] == [RootKind.explicit]
    assert (finding.code, finding.name, finding.origin) == ("TL199", "unpredicted-break", "verify")
    assert (finding.severity, finding.confidence) == (Severity.warning, Confidence.certain)
    assert finding.verdict.targets == ("t1", "t2") and finding.span == Span(8, 1, 8, 4)
    assert [(one.breaks[0].finding, one.breaks[0].predicted) for one in found] == [(finding.id, False)] * 2


def test_intended_breaks_need_no_finding_unless_one_graph_was_asked_for() -> None:
    intended = observed(seen(intended=True), gate="fail")
    findings, (target,) = judge.judge([], [intended])
    assert (findings, target.status) == ((), "intended_breaks")
    strict = replace(intended, target=replace(intended.target, config={"fullgraph": True}))
    (finding,), _ = judge.judge([], [strict])
    assert finding.severity is Severity.error


@pytest.mark.parametrize(
    ("observation", "status"),
    [
        (observed(), "fullgraph"),
        (observed(gate="fail", phase="inductor"), "error"),
        (observed(seen(intended=True), seen(id="b2")), "breaks"),
        (observed(seen(), status="timeout"), "timeout"),
        (observed(status="skipped"), "skipped"),
    ],
)
def test_status_of_a_target(observation: Observation, status: str) -> None:
    assert judge.judge([], [observation])[1][0].status == status


def trial(after: dict[str, int]) -> dict[str, Any]:
    return {
        "path": "m.py",
        "line": 3,
        "function": "f",
        "breaks": ["b1"],
        "edits": [{"line": 1, "text": "import torch\n"}, {"line": 3, "text": "@torch.compiler.disable(reason='x')\n"}],
        "before": {"graphs": 2, "ops": 5, "breaks": 1},
        "after": after,
    }


@pytest.mark.parametrize(
    ("after", "safety"),
    [
        ({"graphs": 2, "ops": 5, "breaks": 0}, "unsafe"),
        ({"graphs": 2, "ops": 4, "breaks": 0}, "display"),
        ({"graphs": 3, "ops": 5, "breaks": 0}, "display"),
    ],
)
def test_disable_is_suggested_with_what_it_was_seen_to_change(after: dict[str, int], safety: str) -> None:
    (finding,), (target,) = judge.judge([FINDING], [observed(seen(), trials=[trial(after)])])
    (fix,) = finding.fixes
    assert (fix.kind, fix.safety, fix.effect["after"], target.suggestions) == ("disable", safety, after, (fix.id,))
    assert [(edit.span.line, edit.text) for edit in fix.edits] == [
        (1, "import torch\n"),
        (3, "@torch.compiler.disable(reason='x')\n"),
    ]
