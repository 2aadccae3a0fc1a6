"""Watch what Dynamo does with a callee: run under the torch to be mined, `observe.py PROBES RESULTS`, both JSON.

A probe is `{"name": qualname, "statements": [...], "setup": "..."}` or, where torch's own tests have sample inputs,
`{"name": qualname, "op": name in op_db, "form": "function" | "method"}` or `{"name": qualname, "module": class}`. A
result holds the types that the callee returned in eager mode and the breaks seen in default mode and under fullgraph,
each only if it lay in the probe's own statement.

Probes run in forks, so that a seed, a hook or a crash harms no other.
"""

from __future__ import annotations

import ast
import functools
import gc
import itertools
import json
import linecache
import os
import pathlib
import re
import select
import signal
import sys
import textwrap
import traceback
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy
import torch
import torch._dynamo

sys.path.append(str(pathlib.Path(__file__).parent.parent))
from worker.main import adapter_for  # type: ignore[import-not-found]  # beside this folder

adapter = adapter_for(torch.__version__)

LIMIT = 20.0  # seconds a probe
TOGETHER = 20  # probes that share a fork
SIGNATURES = 3  # kinds of arguments that an operator is compiled with
ALTERNATIVES = 4  # a value of more types than this has none that is worth telling
SAMPLES = 24  # samples an operator's types are read from, for each dtype
FILE = "<probe>"

# What statements may name; probes.py says what they are.
PARAMETERS = "x, v, s, i, k, m, a, n"

PREAMBLE = """
import collections, contextlib, copy, functools, itertools, logging, math, operator, os, random, re, sys, time, warnings
import numpy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
"""


def arguments(dtype: torch.dtype) -> tuple[Any, ...]:
    x = torch.tensor([[0.5, 2.0, 0.25, 1.0], [1.0, 0.0, 3.0, 0.5], [2.0, 1.5, 1.0, 0.25], [0.5, 4.0, 2.0, 1.0]]).to(
        dtype
    )
    i, k = torch.tensor([1, 2, 0, 1]), torch.tensor(2)
    return x, x[0].clone(), x[0, 1].clone().float(), i, k, x > 1 if dtype is not torch.bool else x, x.numpy().copy(), 3


# ------------------------------------------------------------------------------------------------- types


CLASSES = {torch.float32: "float", torch.int64: "int", torch.bool: "bool", torch.complex64: "complex"}


def dtype_class(dtype: torch.dtype) -> str:
    if dtype is torch.bool:
        return "bool"
    return "complex" if dtype.is_complex else "float" if dtype.is_floating_point else "int"


def describe(value: Any) -> Any:
    """The shape of a value's type: a string, or (container, members); a leaf with a dtype is (container, class)."""
    match value:
        case torch.Tensor():
            return ("Tensor", dtype_class(value.dtype))
        case torch.Size():
            return "Size"
        case numpy.ndarray() | numpy.generic():
            kind = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex"}.get(value.dtype.kind, "")
            return ("ndarray", kind)
        case bool() | int() | float() | complex():
            return ("scalar", type(value).__name__)
        case tuple():
            return ("tuple", tuple(describe(item) for item in value))
        case list():
            return ("list", tuple(describe(item) for item in value))
        case torch.dtype():
            return "dtype"
        case torch.device():
            return "device"
        case None:
            return "None"
    name = type(value).__qualname__
    return name if type(value).__module__ == "builtins" else f"{type(value).__module__}.{name}"


def leaf(container: str, seen: set[tuple[str, str]]) -> str:
    """How the dtype class of the result follows from that of the argument."""
    plain = {(given, got) for given, got in seen if given != "complex"} or seen
    results = {got for _, got in plain}
    if container == "scalar" and len(results) == 1:
        return results.pop()
    if len(results) == 1:
        rule = results.pop()
    elif all(given == got for given, got in plain):
        rule = "same"
    elif all(got == ("int" if given == "bool" else given) for given, got in plain):
        rule = "number"
    else:
        rule = ""
    return f"{container}[{rule}]" if rule else "" if container == "scalar" else container


def generalise(seen: Iterable[tuple[str, Any]]) -> list[str]:
    """The types, one for each form, that cover what was returned: [(dtype class of the argument, description)]."""
    forms: dict[Any, list[tuple[str, Any]]] = {}
    for given, shape in seen:
        forms.setdefault(shape if isinstance(shape, str) else shape[0], []).append((given, shape))
    return sorted(combine(form, rows) for form, rows in forms.items()) if len(forms) <= ALTERNATIVES else []


def combine(form: str, rows: list[tuple[str, Any]]) -> str:
    if isinstance(rows[0][1], str):
        return form
    if form in {"Tensor", "ndarray", "scalar"}:
        return leaf(form, {(given, shape[1]) for given, shape in rows})
    lengths = {len(shape[1]) for _, shape in rows}
    if form == "tuple" and len(lengths) == 1:
        columns = [[(given, shape[1][n]) for given, shape in rows] for n in range(lengths.pop())]
        return "tuple[" + ",".join("|".join(generalise(column)) for column in columns) + "]"
    items = "|".join(generalise((given, item) for given, shape in rows for item in shape[1]))
    return f"tuple[{items},...]" if form == "tuple" else f"list[{items}]" if items else "list"


# ------------------------------------------------------------------------------------------------ breaks


def compile_text(text: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Run a module's text under a name whose lines tracebacks can show."""
    linecache.cache[FILE] = (len(text), None, text.splitlines(True), FILE)
    exec(compile(text, FILE, "exec"), namespace)
    return namespace


def watch(function: Callable[..., Any], args: tuple[Any, ...], lines: range, fullgraph: bool) -> dict[str, str]:
    """The first break within `lines` when Dynamo runs `function`, or the error that stopped it, or nothing."""
    log, graphs = Log(), []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    # It flushes the CPU's caches to time a guard: a third of a probe's time.
    torch._dynamo.guards.profile_guard_manager = lambda *args: 0.0
    error = ""
    with adapter.hooks(log):
        try:
            torch.compile(function, backend=backend, fullgraph=fullgraph)(*args)
        except Exception as exc:
            log.note(exc)
            error = "" if getattr(exc, "gb_type", None) else type(exc).__name__
    for gb_type, stack in log.breaks:
        if any(frame.filename == FILE and frame.lineno in lines for frame in stack):
            return {"gb_type": gb_type}
    if error:
        return {"error": error}
    return {} if graphs else {"skipped": "no graph was captured"}


class Log:
    """Each break with its type and stack, in the order in which Dynamo told of them."""

    current = None

    def __init__(self) -> None:
        self.breaks: list[tuple[str, Any]] = []

    def note(self, error: BaseException) -> None:
        if isinstance(error, adapter.BREAKS):  # up to torch 2.9 some have no type
            gb_type = getattr(error, "gb_type", None) or type(error).__name__
            self.breaks.append((cause(gb_type, str(error)), getattr(error, "real_stack", None) or ()))

    def stepped(self, translator: Any) -> None:
        pass  # what is executed is of no interest here

    def logged(self, translator: Any, error: BaseException, reason: str) -> None:
        self.note(error)

    def converted(self, code: types.CodeType, error: BaseException | None) -> None:
        if error is not None:
            self.note(error)


def cause(gb_type: str, message: str) -> str:
    """Within a loop or a block the break that comes of it hides the first, which opens the message."""
    return message.splitlines()[0].strip() if "While handling this graph break, another" in message else gb_type


def both_modes(function: Callable[..., Any], args: Callable[[], tuple[Any, ...]], lines: range) -> dict[str, Any]:
    default = watch(function, args(), lines, fullgraph=False)
    return (
        {"default": default, "fullgraph": watch(function, args(), lines, fullgraph=True)}
        if default
        else {"default": {}}
    )


# ---------------------------------------------------------------------------------------------- probing


def observe_statement(probe: dict[str, Any]) -> dict[str, Any]:
    """The first statement that runs in eager mode is the one to compile."""
    failures = []
    for statement in probe["statements"]:
        namespace, seen = build(statement, probe.get("setup", "")), []
        for dtype, given in CLASSES.items():
            if dtype.is_complex:
                continue
            torch.manual_seed(0)
            try:
                _, value = namespace["eager"](*arguments(dtype))
            except Exception as exc:
                failures.append(f"{statement}: {type(exc).__name__}: {exc}")
                if dtype is torch.float32:
                    break
                continue
            seen.append((given, describe(value)))
        if not seen:
            continue
        namespace = build(statement, probe.get("setup", ""))  # afresh: running it may have changed its globals
        observed = both_modes(namespace["probe"], lambda: arguments(torch.float32), namespace["lines"])
        return {"statement": statement, "returns": generalise(seen), **observed}
    return {"failure": failures[0] if failures else "nothing to run"}


def build(statement: str, setup: str) -> dict[str, Any]:
    """A module with the probe as a function, twice: to compile, and to run in eager mode for the value."""
    try:
        ast.parse(statement, mode="eval")
        body = f"r = ({statement})"
    except SyntaxError:
        body = statement
    head = f"{PREAMBLE}{setup}\ndef probe({PARAMETERS}):\n    y = x + 1\n    t = i.max()\n    r = None\n"
    first = head.count("\n") + 1
    text = head + textwrap.indent(body, "    ")
    last = text.count("\n") + 1
    text += f"\n    return y + 1\n\ndef eager({PARAMETERS}):\n    y = x + 1\n    t = i.max()\n    r = None\n"
    text += textwrap.indent(body, "    ") + "\n    return y, r\n"
    module = types.ModuleType("probe")
    sys.modules["probe"] = module  # where a dataclass looks for the module it is in
    vars(module)["lines"] = range(first, last + 1)
    return compile_text(text, vars(module))


def observe_operator(probe: dict[str, Any]) -> dict[str, Any]:
    """Types from all samples of an operator; breaks from a few that differ in what arguments they give."""
    call = f"{probe['name']}(*args, **kwargs)"
    if probe["form"] == "method":
        call = f"args[0].{probe['name'].rsplit('.', 1)[1]}(*args[1:], **kwargs)"
    eager = f"def eager(args, kwargs):\n    return {call}\n"
    namespace, line = around(call, "args, kwargs", eager)
    seen: list[tuple[str, Any]] = []
    observed: dict[str, dict[str, Any]] = {}  # for each signature
    for given, args, kwargs in samples(probe["op"]):
        try:
            value = namespace["eager"](*fresh(args, kwargs))
        except Exception:  # a sample for a wrapper's own arguments
            continue
        if "dtype" not in kwargs:
            seen.append((given, describe(value)))
        sign = signature(args, kwargs)
        if sign not in observed and len(observed) < SIGNATURES:
            inputs = functools.partial(lambda args, kwargs: (torch.ones(2), *fresh(args, kwargs)), args, kwargs)
            observed[sign] = both_modes(namespace["probe"], inputs, range(line, line + 1))
    if not observed:
        return {"failure": "no sample ran"}
    fine = [sign for sign, outcome in observed.items() if not outcome["default"]]
    worst: dict[str, Any] = next((outcome for outcome in observed.values() if outcome["default"]), {"default": {}})
    return {"returns": generalise(seen), **worst, "fine": fine}


def around(call: str, parameters: str, setup: str = "") -> tuple[dict[str, Any], int]:
    """A module with a probe that makes one call, and that call's line."""
    head = f"{PREAMBLE}{setup}\ndef probe(x, {parameters}):\n    y = x + 1\n"
    text = f"{head}    {call}\n    return y + 1\n"
    return compile_text(text, {"__name__": "probe"}), head.count("\n") + 1


def fresh(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """In-place operators must not see what an earlier run left."""
    args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), (args, kwargs))
    return args, kwargs


def samples(name: str) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    for op in operators()[name]:
        for dtype, given in CLASSES.items():
            if dtype not in op.dtypes:
                continue
            for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES):
                yield given, (sample.input, *sample.args), sample.kwargs
        # Torch's tests leave masks out where they are allowed all the same, as in a sum.
        if torch.bool not in op.dtypes and torch.int64 in op.dtypes:
            for sample in itertools.islice(op.sample_inputs("cpu", torch.int64, requires_grad=False), SAMPLES):
                if isinstance(sample.input, torch.Tensor):
                    yield "bool", (sample.input.bool(), *sample.args), sample.kwargs


def signature(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    return ", ".join([type(a).__name__ for a in args] + [f"{k}={type(v).__name__}" for k, v in sorted(kwargs.items())])


def operators() -> dict[str, list[Any]]:
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db

    # It walks the stack, reading sources, for a running test at every sample: most of the time that samples take.
    common_utils.extract_test_fn = lambda: None
    found: dict[str, list[Any]] = {}
    for op in op_db:
        found.setdefault(op.name, []).append(op)
    return found


def observe_module(probe: dict[str, Any]) -> dict[str, Any]:
    """An nn.Module of torch's, called with the inputs that torch's own tests call it with."""
    from torch.testing._internal.common_modules import module_db

    namespace, line = around("module(*args, **kwargs)", "module, args, kwargs")
    [info] = [info for info in module_db if info.module_cls.__name__ == probe["module"]]
    seen: list[tuple[str, Any]] = []
    outcome: dict[str, Any] = {}
    for given in itertools.islice(info.module_inputs_func(info, "cpu", torch.float32, False, True), SIGNATURES):
        if given.forward_input is None:
            continue
        make = given.constructor_input
        module = info.module_cls(*make.args, **make.kwargs)
        args, kwargs = given.forward_input.args, given.forward_input.kwargs
        try:
            seen.append(("float", describe(module(*args, **kwargs))))
        except Exception:  # what it was made with does not fit these inputs
            continue
        if not outcome:
            inputs = (torch.ones(2), module, args, kwargs)
            outcome = both_modes(namespace["probe"], functools.partial(tuple, inputs), range(line, line + 1))
    return {"returns": generalise(seen), **outcome} if seen else {"failure": "no sample ran"}


def observe(probe: dict[str, Any]) -> dict[str, Any]:
    if "op" in probe:
        return observe_operator(probe)
    return observe_module(probe) if "module" in probe else observe_statement(probe)


def harmless(probe: dict[str, Any]) -> bool:
    """It leaves no trace in the process, so that probes may share one."""
    if "op" in probe or "module" in probe:
        return True
    return "kind" not in probe and not re.search("set|seed|able|init|load|hook", probe["name"])


def batches(probes: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Neighbours that may share a fork: forking a process of this size costs as much as a probe."""
    batch: list[dict[str, Any]] = []
    for probe in probes:
        if batch and not (harmless(probe) and harmless(batch[0]) and len(batch) < TOGETHER):
            yield batch
            batch = []
        batch.append(probe)
    if batch:
        yield batch


def forked(batch: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The observations of a batch, made in a fork; if that dies or hangs, each probe gets one of its own."""
    found = isolated(batch)
    if len(batch) > 1 and len(found) < len(batch):
        for probe in batch:
            yield from forked([probe])
    else:
        yield from found


def isolated(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        with os.fdopen(writer, "w") as out:
            for probe in batch:
                json.dump(guarded(probe), out)
                out.write("\n")
                out.flush()
        os._exit(0)
    os.close(writer)
    text = b""
    while select.select([reader], [], [], LIMIT)[0]:
        part = os.read(reader, 1 << 16)
        text += part
        if not part:
            break
    else:
        os.killpg(pid, signal.SIGKILL)
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    found = [json.loads(line) for line in text.decode().split("\n")[:-1]]
    if len(batch) == 1 and not found:
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        return [{"failure": "ran past the limit" if killed else f"died with status {status}"}]
    return found


def guarded(probe: dict[str, Any]) -> dict[str, Any]:
    try:
        return observe(probe)
    except BaseException as exc:  # SystemExit too: whatever a probe raises says something of that probe alone
        return {"failure": f"{type(exc).__name__}: {exc} at {traceback.extract_tb(exc.__traceback__)[-1]}"}


def main(probes: str, results: str) -> None:
    torch.set_num_threads(1)  # a pool of threads does not survive a fork
    warnings.simplefilter("ignore")
    with open(probes, encoding="utf-8") as file:
        todo = json.load(file)
    if any("op" in probe or "module" in probe for probe in todo):
        operators()
    observe_statement({"statements": ["x.sum()"]})  # what Dynamo loads and learns at first use, once for all forks
    gc.disable()  # a collection would copy, in each fork, every page that it looks at
    gc.freeze()
    with open(results, "w", encoding="utf-8") as out:
        for batch in batches(todo):
            for probe, found in zip(batch, forked(batch), strict=True):
                json.dump({**probe, **found}, out)
                out.write("\n")
            out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
