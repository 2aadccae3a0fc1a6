"""The private names of AOTAutograd, Inductor and Triton that take a graph to a GPU's machine code without the GPU.

Autograd on fake CUDA tensors needs CUDA's own device threads, which only a real device starts. So graphs are traced on
the CPU, told to choose operators as a GPU would (`traced_for_gpu`), moved to fake tensors on cuda:0 (`moved`), and
lowered while PyTorch's questions about the device are answered from a description of it (`described`). The module that
Inductor generates is not loaded: its kernels are built one by one through Inductor's own autotuner objects, in the mode
of its compile workers, which needs no context on a device (`build`).

`torch.cuda.is_available` stays as it is: AOTAutograd would ask for the CUDA random state. The passes that ask it
(padding of matmuls, TMA) therefore decide "no GPU" on a machine without one.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import math
import operator
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch._dynamo.config as dynamo_config
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config
import torch.utils._triton
from torch._C import DispatchKey
from torch._dynamo import device_interface
from torch._inductor import compile_fx as fx
from torch._inductor import decomposition, ir, metrics
from torch._inductor import utils as inductor_utils
from torch._inductor.codecache import PyCodeCache
from torch._inductor.graph import GraphLowering
from torch._inductor.runtime import hints, triton_helpers
from torch._inductor.runtime.triton_heuristics import NoTritonConfigsError
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils import _pytree as pytree

aten = torch.ops.aten
CUDA = torch.device("cuda", 0)

STATIC_LAUNCHER = "use_static_triton_launcher"
if not hasattr(inductor_config, STATIC_LAUNCHER):
    STATIC_LAUNCHER = "use_static_cuda_launcher"  # up to torch 2.11

# Settings under which graphs are traced and lowered.
AUTOGRAD = {"enable_autograd_cache": False, "force_non_lazy_backward_lowering": True}
INDUCTOR = {"force_disable_caches": True, "compile_threads": 1, STATIC_LAUNCHER: False}

# Nodes of Inductor's schedule that are external in form only: they pick a result, read a number, or check one.
NO_CALL = (ir.MultiOutput, ir.UserDefinedTritonKernel, ir.DynamicScalar, ir.AssertScalar)


@dataclass(frozen=True)
class Code:
    """What Inductor made of one graph. `kernels` and `extern_calls` are what one run of the graph launches."""

    source: str
    kernels: int
    extern_calls: int
    bytes: int


# --- tracing on the CPU as if for a GPU


def outer(a: torch.Tensor, b: torch.Tensor) -> bool:
    """A product without a sum, of more than one row and column."""
    return (
        statically_known_true(a.size(-1) == 1)
        and statically_known_true(a.size(0) != 1)
        and statically_known_true(b.size(1) != 1)
    )


@decomposition.pw_cast_for_opmath
def mm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a * b if outer(a, b) else NotImplemented


@decomposition.pw_cast_for_opmath
def addmm(bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1) -> torch.Tensor:
    return alpha * (a * b) + beta * bias if outer(a, b) else NotImplemented


@decomposition.pw_cast_for_opmath
def bmm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a * b).contiguous() if statically_known_true(a.size(2) == 1) else NotImplemented


def bernoulli_(out: torch.Tensor, p: float = 0.5) -> torch.Tensor:
    return out.copy_(bernoulli(out, p))


def bernoulli(like: torch.Tensor, p: float = 0.5) -> torch.Tensor:
    return torch.rand_like(like, dtype=torch.float32) < p


# Inductor's decompositions that do otherwise on the CPU, as they are for a GPU.
DECOMPOSITIONS = {
    aten.mm.default: mm,
    aten.addmm.default: addmm,
    aten.bmm.default: bmm,
    aten.bernoulli_.float: bernoulli_,
    aten.bernoulli.p: bernoulli,
}


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """The choice between flash, memory-efficient and plain attention that a CUDA device makes (sdp_utils.cpp)."""
    inputs = (query, key, value)
    half = query.dtype in (torch.float16, torch.bfloat16)
    head, four_dimensional = query.size(-1), all(t.dim() == 4 for t in inputs)
    same_heads = four_dimensional and query.size(1) == key.size(1) == value.size(1)
    square = four_dimensional and query.size(2) == key.size(2)
    if (
        torch.backends.cuda.flash_sdp_enabled()
        and four_dimensional
        and half
        and attn_mask is None
        and head == value.size(-1)
        and head <= 256
        and (square or not is_causal)
        and (same_heads or enable_gqa)
    ):
        scale = 1 / math.sqrt(head) if scale is None else scale
        padded = [torch.nn.functional.pad(t, (0, -head % 8)) if head % 8 else t for t in inputs]
        out = aten._scaled_dot_product_flash_attention(*padded, dropout_p, is_causal, False, scale=scale)[0]
        return out[..., :head] if head % 8 else out
    alignment = 8 if half else 4
    if (
        torch.backends.cuda.mem_efficient_sdp_enabled()
        and same_heads
        and (half or query.dtype == torch.float32)
        and head % alignment == 0
        and value.size(-1) % alignment == 0
    ):
        bias = None if attn_mask is None else attention_bias(query, key, attn_mask)
        wants_grad = torch.is_grad_enabled() and any(t.requires_grad for t in inputs)
        return aten._scaled_dot_product_efficient_attention(
            *inputs, bias, wants_grad, dropout_p, is_causal, scale=scale
        )[0]
    return aten._scaled_dot_product_attention_math(
        *inputs, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )[0]


def attention_bias(query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mask as the memory-efficient kernel wants it: additive, rows aligned to 16 elements, of the scores' shape."""
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), -math.inf)
    length = mask.size(-1)
    if length % 16:
        mask = torch.nn.functional.pad(mask, (0, -length % 16))[..., :length]
    return mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))


@contextlib.contextmanager
def without_mkldnn() -> Iterator[None]:
    """`torch.backends.mkldnn.flags`, which warns of TF32 on builds without Intel GPUs."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


@contextlib.contextmanager
def traced_for_gpu() -> Iterator[None]:
    """Tracing on the CPU leaves no operator in the graph that only a CPU has."""
    sdpa = aten.scaled_dot_product_attention.default
    chosen = {DispatchKey.CompositeImplicitAutograd: scaled_dot_product_attention}
    with (
        without_mkldnn(),
        mock.patch.dict(sdpa.py_kernels, chosen),
        mock.patch.object(decomposition, "is_gpu", return_value=True),
        # Dynamo knows kernels of the user's own where a device for them is at hand.
        mock.patch.object(torch.utils._triton, "has_triton", return_value=torch.utils._triton.has_triton_package()),
        functorch_config.patch(AUTOGRAD),
        dynamo_config.patch(automatic_dynamic_local_pgo=False),  # sizes seen in earlier runs are no part of this one
    ):
        sdpa._dispatch_cache.clear()
        try:
            yield
        finally:
            sdpa._dispatch_cache.clear()


def compile_graph(
    graph_module: torch.fx.GraphModule, inputs: list[Any], inner_compile: Callable[..., Any], mode: str | None = None
) -> Callable[..., Any]:
    """Inductor's own pipeline down to `inner_compile`, called with each ATen graph: the forward and the backward."""
    table = {**fx.select_decomp_table(), **DECOMPOSITIONS}
    # Without a GPU nothing can be timed: of a mode, what chooses by timing is left out.
    options = torch._inductor.list_mode_options(mode) if mode else {}
    options = {name: value for name, value in options.items() if "autotune" not in name and "tuning" not in name}
    return fx.compile_fx(graph_module, inputs, inner_compile, config_patches=options, decompositions=table)


def boxed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The calling convention of what AOTAutograd gets back from `inner_compile`."""
    return fx.make_boxed_func(function)


def operators(graph_module: torch.fx.GraphModule) -> int:
    """How many operators a graph and its subgraphs run."""
    graphs = (m.graph for m in graph_module.modules() if isinstance(m, torch.fx.GraphModule))
    calls = (node for graph in graphs for node in graph.nodes if node.op == "call_function")
    return sum(node.target is not operator.getitem for node in calls)


# --- the described device


def properties(gpu: Mapping[str, Any]) -> types.SimpleNamespace:
    """What torch.cuda.get_device_properties would say."""
    return types.SimpleNamespace(**{"gcnArchName": "", **gpu})


def capability(gpu: Mapping[str, Any]) -> int | str:
    """The architecture as Triton names it."""
    return gpu["arch"] if gpu["backend"] == "hip" else gpu["major"] * 10 + gpu["minor"]


def interface(gpu: Mapping[str, Any]) -> type:
    """Dynamo's and Inductor's view of the device."""

    def answer(value: Any) -> staticmethod[..., Any]:
        return staticmethod(lambda *args, **kwargs: value)

    seen = properties(gpu)
    worker = {"set_device": answer(None), "current_device": answer(0), "get_device_properties": answer(seen)}
    names = {
        "Worker": type("Worker", (), worker),
        "current_device": answer(0),
        "device_count": answer(1),
        "synchronize": answer(None),
        "get_device_properties": answer(seen),
        "is_available": answer(True),
        "get_compute_capability": answer(capability(gpu)),
        "is_triton_capable": answer(True),
        "is_bf16_supported": answer(True),
        "raise_if_triton_unavailable": answer(None),
        "get_raw_stream": answer(0),
        "exchange_device": answer(0),
        "maybe_exchange_device": answer(0),
    }
    return type("DescribedInterface", (device_interface.CudaInterface,), names)


class DescribedDriver:
    """A Triton driver that only says what it would compile for."""

    def __init__(self, gpu: Mapping[str, Any]) -> None:
        from triton.backends.compiler import GPUTarget

        self.target = GPUTarget(gpu["backend"], capability(gpu), gpu["warp_size"])

    def get_current_target(self) -> Any:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return CUDA


def forget_device() -> None:
    """Several functions remember the device they saw; between two GPUs, and before and after, they must ask again."""
    for owner in (torch.utils._triton, inductor_utils):
        for value in list(vars(owner).values()):
            if hasattr(value, "cache_clear") and not isinstance(value, type):
                value.cache_clear()
    hints.DeviceProperties.create.cache_clear()


@contextlib.contextmanager
def described(gpu: Mapping[str, Any]) -> Iterator[None]:
    """Inside, cuda:0 is the described GPU for Inductor and Triton. Raises AttributeError if this torch lacks a name."""
    from triton.runtime import driver

    seen, hip = properties(gpu), gpu["backend"] == "hip"
    device_interface.get_interface_for_device("cpu")  # fills the registry
    replaced = (
        (torch.cuda, "get_device_properties", lambda *args: seen),
        (torch.cuda, "get_device_capability", lambda *args: (seen.major, seen.minor)),
        (torch.cuda, "current_device", lambda: 0),
        (torch.version, "hip", "6.4" if hip else None),
        (torch.version, "cuda", None if hip else "12.8"),
        (fx, "get_cuda_device_context", lambda graph_module: contextlib.nullcontext()),
        (fx.CompiledFxGraph, "post_compile", lambda *args, **kwargs: None),
        (triton_helpers, "set_driver_to_gpu", lambda: None),
        (driver, "_active", DescribedDriver(gpu)),
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(cuda_guard())
        stack.enter_context(mock.patch.dict(device_interface.device_interfaces, {"cuda": interface(gpu)}))
        for owner, name, value in replaced:
            stack.enter_context(mock.patch.object(owner, name, value))
        stack.enter_context(inductor_config.patch(INDUCTOR))
        forget_device()
        try:
            yield
        finally:
            forget_device()


@contextlib.contextmanager
def cuda_guard() -> Iterator[None]:
    """Gives a CPU build of torch a device guard for CUDA: the one of the meta device, which does nothing.

    Without it factories on fake CUDA tensors fail ("not linked with support for cuda"): dropout, embedding backward.
    """
    if torch.backends.cuda.is_built():
        yield
        return
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    cuda, meta = 1, 14  # c10::DeviceType
    guards = (ctypes.c_void_p * (meta + 1)).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    kept, guards[cuda] = guards[cuda], guards[meta]
    try:
        yield
    finally:
        guards[cuda] = kept


# --- from an ATen graph to Inductor's source


def moved(graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> tuple[torch.fx.GraphModule, list[Any]]:
    """A copy of a graph on cuda:0, and fake inputs for it in the fake mode of the old ones: symbolic sizes survive."""
    mode = next((t.fake_mode for t in inputs if isinstance(t, FakeTensor)), None) or FakeTensorMode()

    def to_cuda(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        with mode:
            return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=CUDA)

    def device_swapped(value: Any) -> Any:
        return CUDA if isinstance(value, torch.device) and value.type == "cpu" else value

    def copied(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
        copy = torch.fx.GraphModule(module, deepcopy(module.graph))
        for node in copy.graph.nodes:
            node.args = torch.fx.node.map_aggregate(node.args, device_swapped)
            node.kwargs = torch.fx.node.map_aggregate(node.kwargs, device_swapped)
            if "val" in node.meta:
                node.meta["val"] = pytree.tree_map(to_cuda, node.meta["val"])
        for name, child in list(copy.named_children()):
            if isinstance(child, torch.fx.GraphModule):  # the branches of torch.cond, the body of a loop
                setattr(copy, name, copied(child))
        return copy

    copy = copied(graph_module)
    constants = lift_constants(copy)
    copy.recompile()
    return copy, [to_cuda(value) for value in (*inputs, *constants)]


def lift_constants(graph_module: torch.fx.GraphModule) -> list[torch.Tensor]:
    """Makes the tensors held by a graph its inputs, for they lie on the CPU; scalars become part of the code."""
    graph, lifted = graph_module.graph, []
    for node in graph.find_nodes(op="get_attr"):
        value = getattr(graph_module, node.target)
        if not isinstance(value, torch.Tensor):
            continue
        if value.dim() == 0 and not isinstance(value, FakeTensor):
            with unset_fake_temporarily():
                number = value.item()
            with graph.inserting_before(node):
                held = graph.call_function(aten.full.default, ([], number), {"dtype": value.dtype, "device": CUDA})
        else:
            with graph.inserting_before(next(n for n in graph.nodes if n.op != "placeholder")):
                held = graph.placeholder(f"{node.target}_lifted")
            lifted.append(value)
        held.meta = dict(node.meta)
        node.replace_all_uses_with(held)
        graph.erase_node(node)
    return lifted


def inductor(
    graph_module: torch.fx.GraphModule, inputs: Sequence[Any], gpu: Mapping[str, Any], **options: Any
) -> Code | None:
    """What Inductor makes of an ATen graph for the GPU; None if there is nothing to compute."""
    made: list[Code] = []

    def keep(lowering: GraphLowering) -> types.SimpleNamespace:
        before = metrics.generated_kernel_count
        source, _ = lowering.codegen()
        made.append(
            Code(source.value, metrics.generated_kernel_count - before, extern_calls(lowering), bytes_moved(lowering))
        )
        return types.SimpleNamespace(call=None, __file__="", runner=None)

    with described(gpu), mock.patch.object(GraphLowering, "compile_to_module", keep):
        fx.compile_fx_inner(*moved(graph_module, inputs), **options)
    return made[0] if made else None


def extern_calls(lowering: GraphLowering) -> int:
    """Calls of kernels that Inductor did not write: matmuls, convolutions, attention, fallbacks."""
    calls = 0
    for scheduled in lowering.scheduler.nodes:
        for part in scheduled.get_nodes():
            called = part.node
            held = pytree.tree_leaves(list(vars(called).values()))
            subgraphs = [value for value in held if isinstance(value, ir.Subgraph)]
            calls += sum(extern_calls(subgraph.graph) for subgraph in subgraphs)
            calls += isinstance(called, ir.ExternKernel) and not (subgraphs or isinstance(called, NO_CALL))
    return calls


def bytes_moved(lowering: GraphLowering) -> int:
    """Bytes that the scheduled kernels read and write; symbolic sizes at their hints."""
    return int(sum(node.get_read_write_buffers_sizes() for node in lowering.scheduler.nodes))


# --- from Inductor's source to machine code


def kernels(source: str) -> Iterator[tuple[str, str, str]]:
    """The Triton kernels in a module that Inductor generated: its name for each, the name in the source, the source."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=shown)],
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id="async_compile"), attr="triton"),
                    args=[ast.Constant(value=str() as name), ast.Constant(value=str() as kernel), *_],
                ),
            ):
                yield shown, name, kernel


def build(name: str, source: str, gpu: Mapping[str, Any]) -> str | None:
    """Builds one kernel to machine code, under `described`. Returns why it cannot be built, or None.

    Where Inductor would time several configurations, the first that fits is taken: its heuristics' own order.
    """
    tuner = getattr(PyCodeCache.load(source), name)
    reason = None
    for config in tuner.configs:
        tuner.configs, tuner.compile_results = [config], []
        try:
            tuner.precompile(warm_cache_only=True)
        except NoTritonConfigsError as error:
            reason = str(error)
            continue
        (result,) = tuner.compile_results
        shared, limit = result.kernel.metadata.shared, gpu["shared_memory_per_block_optin"]
        if shared <= limit:
            return None
        reason = f"needs {shared} bytes of shared memory, {gpu['name']} has {limit} a block"
    return reason
