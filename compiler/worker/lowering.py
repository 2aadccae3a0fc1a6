"""From a captured graph to a GPU's machine code: AOTAutograd, Inductor, Triton, on a machine without the GPU.

`lower` compiles a function with `fullgraph=True` down to machine code for each described GPU and says how far it came.
The graph is never run, so arguments, parameters and random state stay as they were. What depends on PyTorch's private
names is in `versions/vX_YY/gpu.py`.

Standalone: `python compiler/worker/lowering.py --demo h100 a100`. Standard library and torch only.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import importlib.util
import json
import multiprocessing
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch

VERSIONS = Path(__file__).resolve().parent.parent / "versions"


class Unavailable(Exception):
    """The stage cannot run here. The message says why."""


class Lowered(Exception):
    """Raised in place of running the compiled graph."""


@dataclass
class Progress:
    """How far a function came. `phase` is the one it is in, or in which it stopped."""

    phase: str = "dynamo"
    arch: str = ""
    graphs: int = 0
    operators: dict[str, int] = field(default_factory=lambda: {"forward": 0, "backward": 0})
    codes: dict[str, list[Any]] = field(default_factory=dict)


def lower(
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    train: bool,
    gpus: Sequence[Mapping[str, Any]],
    jobs: int = 1,
    dynamic: bool | None = None,
    mode: str | None = None,
) -> dict[str, Any]:
    """Compile `fn` for these arguments down to machine code for each GPU (rows of gpus.toml).

    `gate` is pass, fail or not_run; `phase` (dynamo, aot, inductor, triton) is where it stopped and `detail` says why
    in PyTorch's words, with `path` and `line` of the user's code where known. `train` compiles the backward too.
    Where Inductor would time several configurations of a kernel, the first of its own list is built.
    """
    try:
        names = private_names()
    except Unavailable as missing:
        return report(Progress(), not_run=str(missing))
    not_run = obstacle(names, gpus)
    progress = Progress()
    with generated_files(), torch.random.fork_rng(devices=[]):
        error = trace(names, progress, fn, args, kwargs, train, [] if not_run else gpus, dynamic, mode)
        if error is not None:
            return report(progress, failure=error)
        built = {} if not_run else {gpu["arch"]: build(names, gpu, progress, jobs) for gpu in gpus}
    if not progress.graphs:
        return report(progress, not_run="no graph was captured")
    return report(progress, built=built, not_run=not_run)


# --- which torch


def private_names() -> ModuleType:
    """`versions/vX_YY/gpu.py` for the running torch: the newest that is not newer than it, else the oldest."""
    running = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    known = sorted(
        (tuple(int(part) for part in re.findall(r"\d+", file.parent.name)), file.parent.name)
        for file in VERSIONS.glob("v*_*/gpu.py")
    )
    folders = [folder for version, folder in known if version <= running] or [known[0][1]]
    if str(VERSIONS) not in sys.path:
        sys.path.insert(0, str(VERSIONS))
    try:
        names = importlib.import_module(f"{folders[-1]}.gpu")
        with names.traced_for_gpu():
            return names
    except (ImportError, AttributeError) as error:
        raise Unavailable(f"torch {torch.__version__} differs from what {folders[-1]} knows: {error}") from error


def obstacle(names: ModuleType, gpus: Sequence[Mapping[str, Any]]) -> str | None:
    """Why machine code cannot be had here; each GPU is described once before anything of the user's is touched."""
    if importlib.util.find_spec("triton") is None:
        return f"Triton is not installed for {sys.executable}: no machine code can be built"
    try:
        for gpu in gpus:
            with names.described(gpu):
                pass
    except (ImportError, AttributeError, OSError, ValueError) as error:
        return f"torch {torch.__version__} cannot be told about a GPU: {error}"
    return None


# --- Dynamo, AOTAutograd, Inductor


def trace(
    names: ModuleType,
    progress: Progress,
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    train: bool,
    gpus: Sequence[Mapping[str, Any]],
    dynamic: bool | None = None,
    mode: str | None = None,
) -> BaseException | None:
    """Compile `fn` as far as Inductor's source for each GPU; the exception that stopped it, if one did."""

    def stop(*inputs: Any) -> None:
        raise Lowered

    def inner_compile(graph_module: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
        progress.operators["backward" if options.get("is_backward") else "forward"] += names.operators(graph_module)
        for gpu in gpus:
            progress.phase, progress.arch = "inductor", gpu["arch"]
            code = names.inductor(graph_module, inputs, gpu, **options)
            if code is not None:
                progress.codes.setdefault(gpu["arch"], []).append(code)
        progress.phase = "aot"
        return names.boxed(stop)

    def backend(graph_module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        progress.phase, progress.graphs = "aot", progress.graphs + 1
        names.compile_graph(graph_module, inputs, inner_compile, mode)
        return stop

    torch._dynamo.reset()
    try:
        with names.traced_for_gpu(), torch.set_grad_enabled(train):
            torch.compile(fn, backend=backend, fullgraph=True, dynamic=dynamic)(*args, **kwargs)
    except Lowered:
        return None
    except Exception as error:
        return getattr(error, "inner_exception", error)
    finally:
        torch._dynamo.reset()
    return None


# --- Triton


@contextlib.contextmanager
def generated_files() -> Iterator[None]:
    """Sources go to a folder that is removed; kernels too, unless TRITON_CACHE_DIR names one that outlives the call."""
    with tempfile.TemporaryDirectory(prefix="tlint-") as folder:
        places = {"TORCHINDUCTOR_CACHE_DIR": folder}
        if "TRITON_CACHE_DIR" not in os.environ:
            places["TRITON_CACHE_DIR"] = os.path.join(folder, "triton")
        with mock.patch.dict(os.environ, places):
            yield


def build(names: ModuleType, gpu: Mapping[str, Any], progress: Progress, jobs: int) -> dict[str, Any]:
    """Machine code for every distinct kernel that Inductor wrote for the GPU."""
    distinct: dict[str, tuple[str, str]] = {}
    for code in progress.codes.get(gpu["arch"], []):
        for shown, name, source in names.kernels(code.source):
            distinct.setdefault(source, (shown, name))

    with names.described(gpu):
        errors = [
            error for error in mapped(functools.partial(attempt, names.__name__, gpu), distinct.items(), jobs) if error
        ]
    return {"kernels": len(distinct), "compiled": len(distinct) - len(errors), "errors": errors}


def attempt(versioned: str, gpu: Mapping[str, Any], kernel: tuple[str, tuple[str, str]]) -> str | None:
    """Build one kernel; what went wrong, if something did."""
    source, (shown, name) = kernel
    try:
        reason = importlib.import_module(versioned).build(name, source, gpu)
    except Exception as error:  # whatever Triton or the assembler raises is the answer
        reason = f"{type(error).__name__}: {error}"
    return reason and f"{shown}: {reason}"


def mapped(function: Callable[[Any], Any], items: Iterable[Any], jobs: int) -> list[Any]:
    """`map` over forked processes, which inherit the described device. Threads would do, but Triton parses kernels, and
    Python 3.11 parses in one thread at a time only ("AST constructor recursion depth mismatch")."""
    if jobs == 1 or "fork" not in multiprocessing.get_all_start_methods():
        return list(map(function, items))
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        return list(pool.map(function, items))


# --- the answer


def report(
    progress: Progress,
    *,
    built: Mapping[str, Any] | None = None,
    failure: BaseException | None = None,
    not_run: str | None = None,
) -> dict[str, Any]:
    """What `lower` returns; None for a stage that was not reached. Inductor's figures are those of the first GPU."""
    path, line, gate, phase, detail = None, None, "pass", "triton", ""
    errors = [f"{arch}: {error}" for arch, one in (built or {}).items() for error in one["errors"]]
    if failure is not None:
        gate, phase, detail = "fail", progress.phase, f"{type(failure).__name__}: {failure}".rstrip(": \n")
        path, line = location(failure)
        if phase == "inductor":
            detail = f"{progress.arch}: {detail}"
    elif not_run:
        gate, phase, detail = "not_run", "inductor" if progress.graphs else "dynamo", not_run
    elif errors:
        gate, detail = "fail", "\n".join(errors)
    aot, inductor = None, None
    if progress.graphs:
        aot = {"forward_ops": progress.operators["forward"], "backward_ops": progress.operators["backward"]}
    if progress.arch:
        codes = next(iter(progress.codes.values()), [])
        inductor = {
            "kernels": sum(code.kernels for code in codes),
            "extern_calls": sum(code.extern_calls for code in codes),
            "bytes": sum(code.bytes for code in codes),
        }
    return {
        "gate": gate,
        "phase": phase,
        "detail": detail,
        "path": path,
        "line": line,
        "aot": aot,
        "inductor": inductor,
        "triton": dict(built) if built else None,
    }


def location(error: BaseException) -> tuple[str | None, int | None]:
    """The user's line that an exception of the compiler is about, if it says so."""
    if stack := getattr(error, "real_stack", None):
        return stack[-1].filename, stack[-1].lineno
    if places := re.findall(r'File "([^"]+)", line (\d+)', str(error)):
        return places[-1][0], int(places[-1][1])
    return None, None


# --- standalone


def demo(gpus: Sequence[Mapping[str, Any]], jobs: int) -> dict[str, Any]:
    """A small network, forward and backward."""
    layers = (
        torch.nn.Linear(64, 64),
        torch.nn.GELU(),
        torch.nn.LayerNorm(64),
        torch.nn.Dropout(0.1),
        torch.nn.Linear(64, 8),
    )
    return lower(torch.nn.Sequential(*layers), (torch.randn(32, 64),), {}, train=True, gpus=gpus, jobs=jobs)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile a small network down to machine code for described GPUs.")
    parser.add_argument("--demo", nargs="+", metavar="GPU", required=True, help="rows of gpus.toml")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    import tomllib  # Python 3.11; here only, for `lower` gets its GPUs from its caller

    known = tomllib.loads((VERSIONS.parent / "gpus.toml").read_text(encoding="utf-8"))
    if unknown := set(options.demo) - set(known):
        parser.error(f"no such GPU: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    result = demo([known[name] for name in options.demo], options.jobs)
    print(json.dumps(result, indent=2))
    return 0 if result["gate"] == "pass" else 1


if __name__ == "__main__":
    sys.exit(main())
