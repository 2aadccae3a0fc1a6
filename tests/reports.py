"""What the tests share about reports: a strict check of the JSON, and a report that has something of everything."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema

from tlint.analyzer.model import (
    Break,
    Claim,
    Confidence,
    CudagraphSkip,
    Edit,
    Finding,
    Fix,
    Frame,
    Recompile,
    Related,
    Report,
    Root,
    RootKind,
    RootPath,
    RuleInfo,
    Severity,
    Span,
    Status,
    Target,
    Verdict,
)


def schema() -> dict[str, Any]:
    return json.loads((resources.files("tlint.analyzer.report") / "schema.json").read_text(encoding="utf-8"))


def closed(node: Any) -> Any:
    """The schema with unknown keys forbidden: consumers ignore them, but we do not write any."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: closed(value) for key, value in node.items()}
    return {"additionalProperties": False, **node} if isinstance(node.get("properties"), dict) else node


VALIDATOR = jsonschema.Draft202012Validator(closed(schema()))


def validate(report: str | dict[str, Any]) -> dict[str, Any]:
    """The report, parsed if it is text. Raises `jsonschema.ValidationError` where it is not of the documented format."""
    parsed = json.loads(report) if isinstance(report, str) else report
    VALIDATOR.validate(parsed)
    return parsed
