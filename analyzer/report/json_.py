"""The report as JSON: the contract with CI, editors and scripts. `schema.json` beside this file describes it.

Every key is always there, in the order below. Consumers ignore keys that they do not know; `version` rises only when
something is removed or changes its meaning.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tlint import __version__
from tlint.analyzer.model import (
    Break,
    Claim,
    CudagraphSkip,
    Edit,
    Finding,
    Fix,
    Frame,
    Recompile,
    Related,
    Report,
    RootKind,
    RootPath,
    RuleInfo,
    Span,
    Target,
    Verdict,
)
from tlint.analyzer.report.summary import active


def render(report: Report) -> str:
    return json.dumps(report_json(report), indent=2, allow_nan=False) + "\n"


def report_json(report: Report) -> dict[str, Any]:
    return {
        "version": 1,
        "tlint": __version__,
        "project": report.project,
        "target_torch": list(report.target_torch),
        "target_torch_source": report.target_torch_source,
        "rules": {code: rule_json(rule) for code, rule in sorted(report.rules.items())},
        "findings": [finding_json(f) for f in report.findings],
        "targets": [target_json(t) for t in report.targets],
        "summary": summary_json(report),
    }


def rule_json(rule: RuleInfo) -> dict[str, Any]:
    return {"name": rule.name, "summary": rule.summary, "url": rule.url, "status": rule.status}


def span_json(span: Span) -> dict[str, Any]:
    return {"line": span.line, "column": span.column, "end_line": span.end_line, "end_column": span.end_column}


def finding_json(f: Finding) -> dict[str, Any]:
    return {
        "id": f.id,
        "code": f.code,
        "name": f.name,
        "message": f.message,
        "origin": f.origin,
        "path": f.path,
        "cell": f.cell,
        **span_json(f.span),
        "severity": f.severity.name,
        "confidence": f.confidence.name,
        "state": f.state,
        "reason": f.reason,
        "conditions": list(f.conditions),
        "torch": list(f.torch),
        "paths": [path_json(p) for p in f.paths],
        "paths_total": f.paths_total,
        "related": [related_json(r) for r in f.related],
        "claim": claim_json(f.claim) if f.claim else None,
        "verdict": verdict_json(f.verdict),
        "fixes": [fix_json(fix) for fix in f.fixes],
    }


def path_json(path: RootPath) -> dict[str, Any]:
    return {
        "root": path.root,
        "kind": path.kind.name,
        "fullgraph": path.fullgraph,
        "via": [frame_json(frame) for frame in path.via],
    }


def frame_json(frame: Frame) -> dict[str, Any]:
    return {
        "path": frame.path,
        "cell": frame.cell,
        "line": frame.line,
        "column": frame.column,
        "function": frame.function,
    }


def related_json(related: Related) -> dict[str, Any]:
    return {"path": related.path, "cell": related.cell, **span_json(related.span), "message": related.message}


def claim_json(claim: Claim) -> dict[str, Any]:
    return {"stage": claim.stage, "gb_types": list(claim.gb_types), "when": claim.when}


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "status": verdict.status.value,
        "reason": verdict.reason,
        "gb_type": verdict.gb_type,
        "gb_id": verdict.gb_id,
        "targets": list(verdict.targets),
    }


def fix_json(fix: Fix) -> dict[str, Any]:
    return {
        "id": fix.id,
        "kind": fix.kind,
        "title": fix.title,
        "safety": fix.safety,
        "preferred": fix.preferred,
        "group": fix.group,
        "effect": {"before": {}, "after": {}} | dict(fix.effect),
        "proof": fix.proof,
        "edits": [edit_json(e) for e in sorted(fix.edits, key=lambda e: (e.path, e.cell or 0, e.span))],
    }


def edit_json(edit: Edit) -> dict[str, Any]:
    return {"path": edit.path, "cell": edit.cell, **span_json(edit.span), "text": edit.text}


def target_json(t: Target) -> dict[str, Any]:
    return {
        "id": t.id,
        "name": t.name,
        "path": t.path,
        "inputs": t.inputs,
        "assumed": list(t.assumed),
        "train": t.train,
        "device": t.device,
        "torch": t.torch,
        "triton": t.triton,
        "python": t.python,
        "config": dict(t.config),
        "status": t.status,
        "phase": t.phase,
        "detail": t.detail,
        "gate": t.gate,
        "breaks": [break_json(b) for b in t.breaks],
        "recompiles": [recompile_json(r) for r in t.recompiles],
        "cudagraph_skips": [skip_json(s) for s in t.cudagraph_skips],
        "stages": dict(t.stages),
        "suggestions": list(t.suggestions),
        "seconds": t.seconds,
        "peak_bytes": t.peak_bytes,
    }


def break_json(b: Break) -> dict[str, Any]:
    return {
        "id": b.id,
        "finding": b.finding,
        "cause": b.cause,
        "predicted": b.predicted,
        "intended": b.intended,
        "frame_lost": b.frame_lost,
        "count": b.count,
        "gb_type": b.gb_type,
        "gb_id": b.gb_id,
        "message": b.message,
        "path": b.path,
        "line": b.line,
        "stack": [list(frame) for frame in b.stack],
        "cost": dict(b.cost),
    }


def recompile_json(r: Recompile) -> dict[str, Any]:
    return {
        "path": r.path,
        "line": r.line,
        "function": r.function,
        "guard": r.guard,
        "source": r.source,
        "count": r.count,
        "limit_hit": r.limit_hit,
    }


def skip_json(skip: CudagraphSkip) -> dict[str, Any]:
    return {"reason": skip.reason, "path": skip.path, "line": skip.line}


def summary_json(report: Report) -> dict[str, Any]:
    """Findings are counted where they are active; a root that the user named counts as explicit."""
    findings = active(report)
    states = Counter(f.state for f in report.findings)
    verdicts = Counter(f.verdict.status.value for f in findings)
    assumed = sum(root.kind is RootKind.assumed for root in report.roots)
    return {
        "files": report.files,
        "functions": report.functions,
        "roots": {
            "explicit": len(report.roots) - assumed,
            "assumed": assumed,
            "unresolved": sum(not root.resolved for root in report.roots),
        },
        "findings": len(findings),
        "hidden": report.hidden,
        "suppressed": states["suppressed"],
        "baselined": states["baselined"],
        "confirmed": verdicts["confirmed"],
        "refuted": verdicts["refuted"],
        "unpredicted": sum(f.code == "TL199" for f in findings),
        "exit_code": report.exit_code,
    }
