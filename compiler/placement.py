"""From trials of `torch.compiler.disable` to suggestions: where it would go, and what it would change."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from tlint.analyzer.model import Edit, Fix, Observation, Span


def suggestions(observation: Observation) -> list[tuple[Fix, tuple[str, ...]]]:
    """A fix per trial, each with the ids of the breaks that it is for."""
    return [(_fix(trial), tuple(trial["breaks"])) for trial in observation.trials]


def _fix(trial: Mapping[str, Any]) -> Fix:
    before, after = dict(trial["before"]), dict(trial["after"])
    # A split remains. It is worth applying only where it costs no operator and makes no more graphs.
    worth = after["ops"] >= before["ops"] and after["graphs"] <= before["graphs"] and after["breaks"] < before["breaks"]
    place = f"{trial['path']}:{trial['function']}"
    return Fix(
        id=hashlib.sha256(f"disable {place}".encode()).hexdigest()[:16],
        kind="disable",
        title=f"`@torch.compiler.disable` on `{trial['function']}`",
        safety="unsafe" if worth else "display",
        edits=tuple(
            Edit(trial["path"], Span(edit["line"], 1, edit["line"], 1), edit["text"]) for edit in trial["edits"]
        ),
        group=f"disable {place}",
        effect={"before": before, "after": after},
    )
