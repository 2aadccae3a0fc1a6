"""Down to machine code without a GPU. `kernel_suite.py` beside this file takes many more problems there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import kernel_suite as suite  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from torch import nn  # noqa: E402

DEVICES = suite.gpus("h100", "a100")
lowering = suite.worker()


def lower(fn: Callable[..., Any], *args: Any, train: bool = False, **options: Any) -> dict[str, Any]:
    return lowering.lower(fn, args, {}, train=train, gpus=DEVICES, **options)


@pytest.mark.parametrize(
    ("name", "kernels", "extern_calls"),
    [
        ("softmax_dynamic", 2, 0),
        ("conv_bn_eval", 3, 1),  # as through Inductor's own passes; lowering the graph without them gives ten
        ("attention_bool_mask", 1, 2),  # memory-efficient attention and its backward; the mask becomes a bias
        ("attention_half_causal", 0, 2),  # flash attention and its backward
        ("attention_by_hand", 0, 2),  # Inductor's pattern for it
        ("embedding", 3, 0),
        ("dropout", 2, 4),
        ("mutated_inputs", 2, 0),
        ("tensor_constants", 2, 1),
        ("conditional", 3, 1),
        ("conv_bn_train", 3, 2),
    ],
)
def test_problem_reaches_machine_code(name: str, kernels: int, extern_calls: int) -> None:
    result = suite.lower(name, DEVICES)
    assert (result["gate"], result["phase"], result["detail"]) == ("pass", "triton", "")
    assert (result["inductor"]["kernels"], result["inductor"]["extern_calls"]) == (kernels, extern_calls)
    assert set(result["triton"]) == {"sm_90", "sm_80"}
    for built in result["triton"].values():
        assert built["compiled"] == built["kernels"] and not built["errors"]
    assert result["aot"]["forward_ops"] > 0
    assert (result["aot"]["backward_ops"] > 0) is suite.PROBLEMS[name].train


def test_bytes_moved_are_those_of_the_tensors() -> None:
    x = torch.randn(1024, 1024)
    assert lower(lambda x: x.sin() * 2 + 1, x)["inductor"]["bytes"] == 2 * x.nbytes


def test_each_gpu_gets_its_own_machine_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    lower(torch.sin, torch.randn(4096))
    about = [json.loads(file.read_text()) for file in tmp_path.rglob("triton_*.json") if "__grp__" not in file.name]
    assert sorted(one["target"]["arch"] for one in about) == [80, 90]
    assert all(file.read_bytes().startswith(b"\x7fELF") for file in tmp_path.rglob("*.cubin"))
    assert len(list(tmp_path.rglob("*.cubin"))) == 2


def test_kernels_build_in_several_processes() -> None:
    alone, together = (suite.lower("layer_norm", DEVICES, jobs) for jobs in (1, 2))
    assert alone == together


def test_runtime_state_is_left_as_it_was() -> None:
    net, x = nn.Sequential(nn.BatchNorm1d(8), nn.Dropout()), torch.randn(4, 8, requires_grad=True)

    def attend(q: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, q, q).add_(q.mul_(1))

    q = torch.randn(1, 2, 16, 16)
    kept, before = q.clone(), [value.clone() for value in net.state_dict().values()]
    random, cuda = torch.get_rng_state(), torch.version.cuda
    assert lower(net, x, train=True)["gate"] == lower(attend, q)["gate"] == "pass"
    assert all(torch.equal(a, b) for a, b in zip(before, net.state_dict().values(), strict=True))
    assert torch.equal(random, torch.get_rng_state()) and cuda == torch.version.cuda
    assert x.grad is None and torch.equal(q, kept)
    operators: list[Any] = []

    def backend(graph_module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        def aten_graph(graph_module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
            operators.extend(node.target for node in graph_module.graph.nodes)
            return graph_module.forward

        return torch._dynamo.backends.common.aot_autograd(fw_compiler=aten_graph)(graph_module, inputs)

    torch.testing.assert_close(torch.compile(attend, backend=backend)(q.clone()), attend(q.clone()))
    assert torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default in operators


def test_break_is_reported_where_it_lies() -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x

    result = lower(branch, torch.randn(8))
    assert (result["gate"], result["phase"]) == ("fail", "dynamo")
    assert "Data-dependent branching" in result["detail"]
    assert (result["path"], result["line"]) == (__file__, branch.__code__.co_firstlineno + 1)
    assert result["aot"] is result["inductor"] is result["triton"] is None


@triton.jit
def double(source, target, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    tl.store(target + offsets, tl.load(source + offsets) * 2)


@triton.jit
def square(source, target, SIZE: tl.constexpr):
    """source @ source.T in one block: all of it at once in shared memory."""
    rows, columns = tl.arange(0, 64), tl.arange(0, SIZE)
    left = tl.load(source + rows[:, None] * SIZE + columns[None, :])
    right = tl.load(source + rows[None, :] * SIZE + columns[:, None])
    tl.store(target + rows[:, None] * 64 + rows[None, :], tl.dot(left, right))


def launched(kernel: Any, size: int) -> Callable[..., Any]:
    def call(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        kernel[(1,)](x, out, SIZE=size)
        return out + 1

    return call


def test_kernel_of_the_users_own() -> None:
    result = lower(launched(double, 1024), torch.randn(1024))
    assert result["gate"] == "pass", result["detail"]
    assert result["triton"]["sm_90"] == {"kernels": 2, "compiled": 2, "errors": []}


def test_kernel_too_large_for_the_gpu_fails_and_says_why() -> None:
    result = lower(launched(square, 1024), torch.randn(64, 1024))
    assert (result["gate"], result["phase"]) == ("fail", "triton")
    assert "square" in result["detail"] and "shared memory" in result["detail"]


def test_no_graph_is_no_pass() -> None:
    result = lower(lambda x: 3, torch.randn(8))
    assert (result["gate"], result["phase"], result["detail"]) == ("not_run", "dynamo", "no graph was captured")


def test_without_triton_the_graphs_are_still_made() -> None:
    program = f"""
import json, sys
sys.modules["triton"] = None
sys.path.insert(0, {str(suite.ROOT / "compiler" / "worker")!r})
import lowering, torch
print(json.dumps(lowering.lower(torch.sin, [torch.ones(4)], {{}}, train=False, gpus={DEVICES!r})))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert (result["gate"], result["phase"]) == ("not_run", "inductor")
    assert "Triton is not installed" in result["detail"]
    assert result["aot"] == {"forward_ops": 1, "backward_ops": 0} and result["triton"] is None


@pytest.mark.parametrize("version", ["1.13.1", "2.99.0"])
def test_torch_that_lacks_a_name_is_not_run(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.delattr("torch._inductor.compile_fx.get_cuda_device_context")
    result = lower(torch.sin, torch.ones(4))
    assert result["gate"] == "not_run"
    assert version in result["detail"] and "get_cuda_device_context" in result["detail"]


def test_standalone() -> None:
    script = suite.ROOT / "compiler" / "worker" / "lowering.py"
    run = subprocess.run([sys.executable, script, "--demo", "h100"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["triton"]["sm_90"]["compiled"] == 5


def test_gpus_are_described_alike() -> None:
    rows = suite.gpus("h100", "a100", "b200", "l4", "mi300")
    assert len({frozenset(row) - {"gcnArchName"} for row in rows}) == 1
