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
    """The report, parsed if it is text. Raises `jsonschema.ValidationError` where it is not as documented."""
    parsed = json.loads(report) if isinstance(report, str) else report
    VALIDATOR.validate(parsed)
    return parsed


TRAIN = """\
import torch
from model import Net

net = Net()


@torch.compile(fullgraph=True)
def step(x):
    return net(x).sum()
"""

MODEL = """\
import torch
from torch import nn


class Net(nn.Module):
\tdef forward(self, x):
\t\tif (x.sum() >
\t\t\t\t0):
\t\t\tx = x * 2
\t\tnome = "città 東京"; scale = x.mean().item()
\t\tprint(scale)
\t\tmask = x if self.training else None
\t\treturn x * scale
"""

SOURCES = {"train.py": TRAIN, "model.py": MODEL}


def finding(**changes: Any) -> Finding:
    """A finding at `x.mean().item()` in `MODEL`."""
    values: dict[str, Any] = {
        "id": "0123456789abcdef",
        "code": "TL101",
        "name": "tensor-to-python",
        "message": "`.item()` reads a tensor's value into Python",
        "path": "model.py",
        "span": Span(10, 30, 10, 45),
        "severity": Severity.warning,
        "confidence": Confidence.certain,
    }
    return Finding(**values | changes)


def sample() -> Report:
    """A verified run over `SOURCES`, with something in every field."""
    way = RootPath("train:step", RootKind.explicit, True, (Frame("train.py", 9, 12, "step"),))
    assumed = RootPath("model:Net.forward", RootKind.assumed, False)
    disable = Fix(
        id="f1",
        kind="disable",
        title="keep `report` out of the graph: tried, and it ran",
        safety="display",
        edits=(Edit("model.py", Span(6, 2, 6, 2), '@torch.compiler.disable(reason="reads a value")\n\t'),),
        preferred=True,
        group="b1",
        effect={"before": {"graphs": 3, "ops": 7}, "after": {"graphs": 2, "ops": 7}},
    )
    item = finding(
        severity=Severity.error,
        paths=(way, assumed),
        paths_total=3,
        related=(Related("train.py", Span(7, 2, 7, 31), "fullgraph is asked for here"),),
        claim=Claim(gb_types=("Tensor.item",), when="always"),
        verdict=Verdict(Status.confirmed, "", "Unsupported Tensor.item() call", "GB0124", ("t1",)),
        fixes=(disable,),
    )
    branch = finding(
        id="1" * 16,
        code="TL102",
        name="data-dependent-branch",
        message="`if` on a tensor's value",
        span=Span(7, 7, 8, 6),
        confidence=Confidence.likely,
        conditions=("training",),
        paths=(way,),
        paths_total=1,
        verdict=Verdict(Status.refuted, "", None, None, ("t1",)),
    )
    unpredicted = finding(
        id="2" * 16,
        code="TL199",
        name="unpredicted-break",
        message="Dynamo broke here and no rule had said so",
        origin="verify",
        span=Span(11, 3, 11, 15),
        verdict=Verdict(Status.confirmed, "", "Failed to trace builtin operator", "GB0059", ("t1",)),
    )
    advice = finding(id="3" * 16, severity=Severity.info, span=Span(12, 3, 12, 7), paths=(assumed,), paths_total=1)
    silenced = finding(id="4" * 16, span=Span(13, 3, 13, 9), state="suppressed", reason="once an epoch")
    seen = Break(
        id="b1",
        gb_type="Unsupported Tensor.item() call",
        message="…",
        path="model.py",
        line=10,
        stack=(("train.py", 9, "step"), ("model.py", 10, "Net.forward")),
        gb_id="GB0124",
        finding=item.id,
        predicted=True,
        frame_lost=True,
        cost={"graphs": 1, "bytes": 1048576.0},
    )
    other = Break("b2", "Failed to trace builtin operator", "…", "model.py", 11, finding=unpredicted.id, cause="b1")
    step = Target(
        id="t1",
        name="train:step",
        path="train.py",
        inputs="declared",
        torch="2.13.0",
        triton="3.9.0",
        python="3.11",
        status="breaks",
        phase="triton",
        gate="fail",
        breaks=(seen, other),
        recompiles=(Recompile("train.py", 8, "step", "x.size(0) == 4", "x", 2, False),),
        cudagraph_skips=(CudagraphSkip("mutated inputs", "train.py", 9),),
        stages={
            "dynamo": {"graphs": 3, "ops": 7},
            "aot": {"forward_ops": 8, "backward_ops": 9},
            "inductor": {"kernels": 4, "extern_calls": 1, "bytes": 4096},
            "triton": {"sm_90": {"kernels": 4, "compiled": 3, "errors": ["out of registers"]}},
        },
        suggestions=("f1",),
        seconds=3.25,
        peak_bytes=1 << 20,
    )
    failed = Target("t2", "train:slow", "train.py", status="timeout", phase="eager", detail="Traceback\nran past 120 s")
    names = {f.code: f.name for f in (item, branch, unpredicted)}
    return Report(
        project="/project",
        target_torch=("2.13",),
        target_torch_source="lock",
        rules={code: RuleInfo(code, name, f"What {name} is.", "") for code, name in names.items()},
        findings=(unpredicted, item, branch, advice, silenced),
        targets=(step, failed),
        roots=(
            Root("train:step", RootKind.explicit, True, "train.py", 7, 2, "@torch.compile"),
            Root("train:lost", RootKind.explicit, False, "train.py", 1, 1, "torch.compile(...)", resolved=False),
            Root("model:Net.forward", RootKind.assumed, False, "model.py", 6, 2, "nn.Module"),
        ),
        files=2,
        functions=2,
        exit_code=1,
        hidden=9,
        target_torch_origin="uv.lock",
    )
