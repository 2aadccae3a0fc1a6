"""The stages of a target: default mode really executed, trials of `disable`, the `fullgraph=True` gate with lowering.

Each runs in a fork of the process that imported the target, so each starts from the same state, and a crash in one
leaves what the others saw.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
import torch._dynamo
from torch.torch_version import TorchVersion

from . import capture, inputs, load, lowering, trial
from .channel import Channel, Crashed, Failed, describe, guarded, isolated

SEED = 0


def seed() -> None:
    """A run is the same each time, in the user's own draws too: which way they take decides what is executed."""
    torch.manual_seed(SEED)
    random.seed(SEED)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(SEED)


PHASES = ("aot", "inductor", "triton")  # after capture


@dataclass(frozen=True)
class Target:
    """What a request comes to: a callable that nothing has compiled yet, and the maker of its arguments."""

    call: Any
    make: Callable[[], inputs.Arguments]
    adapter: Any
    project: Callable[[str], bool]
    channel: Channel
    fullgraph: bool  # the user's own root asks for it

    def arguments(self) -> inputs.Arguments:
        """Fresh ones for each stage: a run may write into them."""
        self.channel.phase("construct")
        seed()
        with guarded(capture.INTERNAL_FILES):
            return self.make()


def observe(request: dict[str, Any], adapter: Any, channel: Channel) -> None:
    """Run every stage of a request, sending what each found as soon as it is known."""
    target = prepare(request, adapter, channel)
    default = isolated(channel, lambda: default_mode(target))
    if default["failure"]:
        # Did the target itself raise, or did compiling it?
        isolated(channel, lambda: eager(target))
        raise Failed(default["failure"], phase="dynamo")
    try_disable(target, default["candidates"], default["before"])
    train = default["differentiable"] if request["train"] is None else request["train"]
    isolated(channel, lambda: gate(target, train, request))


def warm() -> None:
    """Import what every target needs, before the forks.

    Nothing is compiled: that would save a second a target, but it starts autograd's threads in a build with CUDA, and
    no backward runs in a fork of a process that has them.
    """
    with contextlib.suppress(lowering.Unavailable):  # each target will say so
        lowering.private_names()


def config_of(request: dict[str, Any], mapping: load.OnCPU) -> dict[str, Any]:
    """What the report says about how a target was compiled."""
    config = dict(request["config"])
    if request["mode"]:
        config["mode"] = request["mode"]
    if mapping.mapped:
        config["accelerator_devices_mapped_to_cpu"] = mapping.mapped
    return config


def prepare(request: dict[str, Any], adapter: Any, channel: Channel) -> Target:
    roots = tuple(request["roots"])

    def project(path: str) -> bool:
        return path.startswith(roots) and "site-packages" not in path

    channel.phase("import")
    mapping = load.map_devices(roots)
    with guarded(capture.INTERNAL_FILES), fullgraph_ignored():
        module = load.load(request["path"], request["module"], request["search"])
    channel.phase("construct")
    seed()
    with guarded(capture.INTERNAL_FILES), fullgraph_ignored():
        found = load.resolve(module, request["qualname"], lambda cls: inputs.construct(module, cls))
        call = adapter.uncompiled(found)
        if inspect.iscoroutinefunction(getattr(call, "forward", call)):
            raise Failed("it is a coroutine, which a call does not run: name what it calls", "skipped", "construct")
        make = inputs.declared(module, request["qualname"], request["alone"])
    channel.send("part", config=config_of(request, mapping))
    fullgraph = bool(request["config"].get("fullgraph"))
    if make is not None:
        channel.send("part", inputs="declared")
        return Target(call, make, adapter, project, channel, fullgraph)
    misfits = list[str]()
    for make, assumed in inputs.suggested(call, misfits):
        target = Target(call, make, adapter, project, channel, fullgraph)
        try:
            isolated(channel, lambda: eager(target))
        except Failed as failure:
            if failure.phase is not None:  # not for its inputs
                raise
            misfits.append(failure.detail)
            continue
        channel.send("part", inputs="synthesised", assumed=assumed)
        return target
    if len(set(misfits)) == 1:
        why = f"whatever inputs are made up, it raises {misfits[0]}; if it needs others, add tlint_inputs() with them"
    else:
        why = f"no made-up inputs fit ({misfits[-1]}): add tlint_inputs(), returning arguments"
    raise Failed(why, "skipped", "construct")


@contextlib.contextmanager
def fullgraph_ignored() -> Iterator[None]:
    """What the user compiles with `fullgraph=True` would end our own default mode at its first break."""
    compile = torch.compile

    @functools.wraps(compile)
    def default_mode(*args: Any, **kwargs: Any) -> Any:
        return compile(*args, **{**kwargs, "fullgraph": False})

    with mock.patch.object(torch, "compile", default_mode):
        yield


@contextlib.contextmanager
def captures(target: Target) -> Iterator[None]:
    """From torch 2.10 on `fullgraph=True` captures scalars and dynamic shapes: where a root asks for it, so do we."""
    on = target.fullgraph and TorchVersion(torch.__version__) >= "2.10"
    names = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops") if on else ()
    with torch._dynamo.config.patch(dict.fromkeys(names, True)):
        yield


def eager(target: Target) -> None:
    """The target as plain Python. That it runs says nothing; that it raises does."""
    args, kwargs = target.arguments()
    target.channel.phase("eager")
    with guarded(capture.INTERNAL_FILES), torch.compiler.set_stance("force_eager"):
        try:
            target.call(*args, **kwargs)
        except SystemExit as error:
            raise Failed(describe(error, capture.INTERNAL_FILES), phase="eager") from error


def default_mode(target: Target) -> dict[str, Any]:
    args, kwargs = target.arguments()
    target.channel.phase("dynamo")
    failure, result = None, None
    with capture.watching(target.adapter) as watcher, captures(target):
        torch._dynamo.reset()
        try:
            result = torch.compile(target.call, backend=watcher.backend)(*args, **kwargs)
        except BaseException as error:  # SystemExit too: the user's code runs in there
            failure = describe(error, capture.INTERNAL_FILES)
    target.channel.send(
        "part",
        breaks=capture.breaks_of(watcher, target.project),
        executed=capture.executed_of(watcher, target.project),
        stages={"dynamo": {"graphs": watcher.graphs, "ops": watcher.ops}},
    )
    leaves = target.adapter.tree_leaves(result)
    return {
        "failure": failure,
        "differentiable": any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves),
        "candidates": [] if failure else trial.candidates(watcher, target.project, target.call),
        "before": trial.counts(watcher),
    }


def try_disable(target: Target, ways: list[list[dict[str, Any]]], before: dict[str, int]) -> None:
    """For each break, disable the innermost function on its way; one further out where that does not help."""
    tried: dict[str, dict[str, int] | None] = {}
    for way in ways:
        for candidate in way:
            place = f"{candidate['path']}:{candidate['line']}"
            if place not in tried:
                if len(tried) == trial.MOST:
                    return
                tried[place] = None
                with contextlib.suppress(Failed, Crashed):  # what does not even run with it is no suggestion
                    tried[place] = isolated(target.channel, lambda: with_disabled(target, candidate))
            after = tried[place]
            if after is not None and trial.helps(before, after):
                target.channel.send("trial", trial={**candidate, "before": before, "after": after})
                break


def with_disabled(target: Target, candidate: dict[str, Any]) -> dict[str, int]:
    args, kwargs = target.arguments()
    target.channel.phase("dynamo")
    codes = trial.codes_of(candidate)
    with capture.watching(target.adapter) as watcher, captures(target):
        torch._dynamo.reset()
        with target.adapter.disabled(codes), guarded(capture.INTERNAL_FILES):
            torch.compile(target.call, backend=watcher.backend)(*args, **kwargs)
    return trial.counts(watcher)


def gate(target: Target, train: bool, request: dict[str, Any]) -> None:
    """`fullgraph=True`, down to machine code for the GPUs; no further than the graph where that cannot run."""
    args, kwargs = target.arguments()
    target.channel.phase("dynamo")
    with capture.watching(target.adapter) as watcher:
        torch._dynamo.reset()
        how = {key: request[key] for key in ("gpus", "jobs", "mode")}
        outcome = lowering.lower(target.call, args, kwargs, train=train, **how)
        reached = PHASES[: PHASES.index(outcome["phase"]) + 1] if outcome["phase"] in PHASES else ()
        if outcome["gate"] == "not_run":
            outcome = {**outcome, **capture_whole(target, watcher, args, kwargs)}
    target.channel.send(
        "part",
        train=train,
        gate=outcome["gate"],
        gate_phase=outcome["phase"],
        gate_detail=outcome["detail"].strip().partition("\n")[0],
        gate_breaks=capture.breaks_of(watcher, target.project),
        lowered={phase: outcome[phase] for phase in reached if outcome.get(phase)},
    )


def capture_whole(target: Target, watcher: capture.Watcher, args: Any, kwargs: Any) -> dict[str, str]:
    torch._dynamo.reset()
    try:
        torch.compile(target.call, backend=watcher.backend, fullgraph=True)(*args, **kwargs)
    except BaseException as error:
        return {"gate": "fail", "phase": "dynamo", "detail": describe(error, capture.INTERNAL_FILES)}
    return {"gate": "pass"}
