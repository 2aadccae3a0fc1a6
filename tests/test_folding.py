"""Which branches are left out: only those that Dynamo leaves out for certain. A wrong fold silences what breaks."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import analyse, check

FOLDED = {
    "is_compiling": """
import torch
from torch.compiler import is_compiling as compiling

@torch.compile
def step(x):
    if not torch.compiler.is_compiling():
        print(x.max().item())
    if torch._dynamo.is_compiling():
        x = x / x.max().item()  # expect: TL101
    else:
        print("eager")
    if compiling() and x.sum() > 0:  # expect: TL102
        x = x + 1
    if torch.jit.is_scripting() or torch.jit.is_tracing():
        print("scripted")
    return x if compiling() else x.tolist()
""",
    "what torch has": """
import torch

def traced():
    if torch.jit.is_tracing():
        return True
    return hasattr(torch, "compiler") and torch.compiler.is_compiling()

@torch.compile
def step(x):
    if not traced() and x.sum() > 0:
        print("eager")
    if hasattr(torch, "nothing_of_this_name") and x.sum() > 0:  # expect: TL102
        return x + 1
    return x
""",
    "a function that returns is_compiling": """
# file: main.py
import torch
from helpers import is_eager, under_compile, is_tracing

@torch.compile
def step(x):
    if under_compile():
        x = x / x.max().item()  # expect: TL101
    else:
        print("eager")
    if is_eager():
        print("eager")
    if is_tracing(x):
        return x
    print("after")
    return x
# file: helpers.py
import torch

def under_compile():
    return torch.compiler.is_compiling()

def is_eager() -> bool:
    return not under_compile()

def is_tracing(x) -> bool:
    if under_compile():
        return True
    return torch.jit.is_tracing()
""",
    "is_compiling, wherever this torch has it": """
import torch

under_compile = getattr(torch.compiler, "is_compiling", None) or getattr(torch._dynamo, "is_compiling", None)
flag = getattr(torch.compiler, "nothing_of_this_name", None)

def compiling() -> bool:
    return bool(under_compile()) if under_compile is not None else False

@torch.compile
def step(x):
    eager = not compiling()
    if eager and x.sum() > 0:
        print("eager")
    if flag is None and x.sum() > 0:  # expect: TL102
        return x + 1
    return x if compiling() else x.tolist()
""",
    "TYPE_CHECKING": """
import torch
import typing
from typing import TYPE_CHECKING

@torch.compile
def step(x):
    if TYPE_CHECKING:
        print("never")
    if typing.TYPE_CHECKING:
        print("never")
    return x
""",
    "isinstance": """
import torch

class Config:
    pass

def scale(x):
    if isinstance(x, Config):
        print("a config")
    if isinstance(x, (list, tuple)):
        x = x[0]
    elif isinstance(x, dict):
        print("a dict")
    if not isinstance(x, torch.Tensor):
        print("no tensor")
        return x
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x: torch.Tensor):
    return scale(x) + scale([x, x])
""",
    "callable": """
import torch
from torch import nn

def default(value, other):
    if value is not None:
        return value
    return other() if not isinstance(other, nn.Module) and callable(other) else other

class Net(nn.Module):
    def __init__(self, width=None):
        super().__init__()
        self.inner = default(None, lambda: nn.Linear(3, 3))
        self.outer = default(None, nn.Identity())
        self.width = width

    def forward(self, x: torch.Tensor):
        width = default(self.width, 3)
        if callable(width) or callable(x) or not callable(self.inner):
            print("never")
        return self.outer(self.inner(x))

model = torch.compile(Net())
""",
    "what an array has": """
import torch
import numpy as np

@torch.compile
def step(x):
    array = np.sin(x.numpy())
    if hasattr(array, "tobytes"):
        print(array.tobytes())
    if not hasattr(array, "sum"):
        print("never")
    if hasattr(array, "nothing_of_this_name"):
        print("perhaps")  # expect: TL111
    return x
""",
    "is_tensor": """
import torch

def check(x):
    if torch.is_tensor(x):
        return x
    print("no tensor")
    return x

@torch.compile
def step(x: torch.Tensor):
    return check(x)
""",
    "None": """
import torch

def attend(x, mask=None, bias=None):
    if mask is None:
        return x
    if bias is not None:
        print("biased")
    if mask.all():  # expect: TL102
        return x
    return x + 1

@torch.compile
def step(x):
    attend(x)
    return attend(x, mask=x > 0)
""",
    "None after a default": """
import torch

def attend(x, mask=None):
    if mask is None:
        mask = torch.ones_like(x)
    if mask is None:
        print("never")
    return x

@torch.compile
def step(x):
    if x is None:
        print("never")
    y = x if x is not None else print("never")
    return attend(y.clone())
""",
    "an early return": """
import torch

def show(x):
    if torch.compiler.is_compiling():
        return
    print(x)

def often(x):
    if not torch.compiler.is_compiling():
        print(x)
        return x
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    show(x)
    return often(x)
""",
    "what a caller passes": """
import torch

def pick(x, kind):
    if kind == "mean":
        return x.mean()
    if kind == "largest":
        return x.max().item()  # expect: TL101
    if kind in ("a", "b"):
        print("never")
    if kind is None:
        print("never")
    return x.tolist()

@torch.compile
def step(x):
    return pick(x, "mean") + pick(x, kind="largest")
""",
    "names that hold one thing on each way": """
import torch

@torch.compile
def step(x, flag: bool):
    limit = None
    if flag:
        limit = x.sum()
    if limit is not None and limit > 0:  # expect: TL102
        return x
    return x + 1
""",
    "shapes, dtypes and devices": """
import torch

@torch.compile
def step(x):
    if x.shape[0] > 3 and x.size(1) > 2 and x.ndim == 2 and len(x) > 3:
        x = x + 1
    if x.dtype == torch.float32 or x.is_cuda or x.device.type == "cpu" or x.is_floating_point():
        x = x + 1
    n, m = x.shape
    while n > m:
        n = n - 1
    for i in range(n):
        x = x + i
    assert n > 2 and x.numel() > 0, "too small"
    if x.requires_grad or x.dim() == 3 or x.stride(0) > 1 or not x.is_contiguous():
        x = x + 1
    if not isinstance(m, int) or n % 2 or -n < 0 or max(n, m) > 3 or n is m:
        x = x + 1
    return x.view(n, -1)[:m]
""",
}

KEPT = {
    "training": """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        if self.training:
            return x / x.max().item()  # expect: TL101
        return x - x.min().item()  # expect: TL101
""",
    "configuration": """
import torch

class Config:
    def __init__(self, deep=False, kind="a", size=3):
        self.deep = deep
        self.kind = kind
        self.size = size

class Net(torch.nn.Module):
    def __init__(self, config, fast=False):
        super().__init__()
        self.config = config
        self.fast = fast

    def forward(self, x):
        if self.config.deep:
            x = x / x.max().item()  # expect: TL101
        else:
            x = x - x.min().item()  # expect: TL101
        if self.fast:
            x = x / x.max().item()  # expect: TL101
        else:
            x = x - x.min().item()  # expect: TL101
        return x
""",
    "defaults of a root": """
import torch

@torch.compile
def step(x, deep=False, kind="a", size=3, mask=None):
    if deep:
        x = x / x.max().item()  # expect: TL101
    else:
        x = x - x.min().item()  # expect: TL101
    if kind == "b":
        x = x / x.max().item()  # expect: TL101
    if size > 5:
        x = x / x.max().item()  # expect: TL101
    if mask is not None:
        x = x / x.max().item()  # expect: TL101
    else:
        x = x - x.min().item()  # expect: TL101
    return x
""",
    "switches of a module": """
# file: main.py
import torch
import switches
from switches import VERBOSE

DEBUG = False
LIMIT = 3

@torch.compile
def step(x):
    if DEBUG:
        print("debug")  # expect: TL111
    if switches.VERBOSE or VERBOSE:
        print("verbose")  # expect: TL111
    if LIMIT > 5:
        print("limit")  # expect: TL111
    return x
# file: switches.py
VERBOSE = False
""",
    "attributes that others set": """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None
        self.verbose = False

    def set_mask(self, mask):
        self.mask = mask

    def forward(self, x):
        if self.mask is None:
            return x
        if self.verbose:
            print("verbose")  # expect: TL111
        return x / x.max().item()  # expect: TL101

def debug(net):
    net.verbose = True
""",
    "attributes that a method sets on the way": """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None

    def build(self, x):
        self.mask = torch.ones(3)

    def forward(self, x):
        if self.mask is None:
            self.build(x)
        if self.mask.sum() > 0:  # expect: TL102
            return x
        return x + 1
""",
    "what an environment says": """
import os
import torch

FAST = os.environ.get("FAST") == "1"

@torch.compile
def step(x):
    if FAST:
        return x / x.max().item()  # expect: TL101
    return x - x.min().item()  # expect: TL101
""",
    "annotations that only hint": """
from __future__ import annotations
import torch
from typing import Optional

class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: Optional[torch.Tensor] = None, cache: dict | None = None, size: int = 3):
        if mask is not None:
            x = x / x.max().item()  # expect: TL101
        if cache is None:
            x = x / x.max().item()  # expect: TL101
        if size == 4:
            x = x / x.max().item()  # expect: TL101
        return x
""",
    "what may be called": """
import torch
from elsewhere import load

class Scale:
    def __call__(self, x):
        return x * 2

@torch.compile
def step(x, other=None):
    part = load("part")
    if not callable(part):
        x = x / x.max().item()  # expect: TL101
    scale = Scale()
    if callable(scale) and callable(step):
        x = x - x.min().item()  # expect: TL101
    return x
""",
    "a class that cannot be known": """
import torch
from elsewhere import Base, Special, load

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = load("part")

    def forward(self, x):
        if isinstance(self.part, Special):
            x = x / x.max().item()  # expect: TL101
        if self.part is not None:
            x = x / x.max().item()  # expect: TL101
        if hasattr(self.part, "scale"):
            x = x / x.max().item()  # expect: TL101
        if load("flag") and not load("other"):
            x = x / x.max().item()  # expect: TL101
        return x
""",
    "a loop": """
import torch

@torch.compile
def step(x):
    first = True
    best = None
    for part in x.split(2):
        if first:
            first = False
        else:
            x = x / x.max().item()  # expect: TL101
        if best is not None:
            x = x - x.min().item()  # expect: TL101
        best = part
    while True:
        if best is None:
            break
        x = x - x.mean().item()  # expect: TL101
        break
    return x
""",
    "an exception": """
import torch

@torch.compile
def step(x):
    found = None
    try:
        found = x.reshape(3)
    except RuntimeError:
        pass
    if found is None:
        return x / x.max().item()  # expect: TL101
    return x - x.min().item()  # expect: TL101
""",
    "a name that a nested function sets": """
import torch

@torch.compile
def step(x):
    done = False

    def finish():
        nonlocal done
        done = True

    finish()
    if done:
        return x / x.max().item()  # expect: TL101
    return x - 1
""",
    "a name that a function sets for all": """
import torch

seen = None

def note(x):
    global seen
    seen = x

@torch.compile
def step(x):
    if seen is not None:
        return x / x.max().item()  # expect: TL101
    return x - x.min().item()  # expect: TL101
""",
    "comparisons that a class defines": """
import torch

class Odd:
    def __bool__(self):
        return False

    def __eq__(self, other):
        return True

ODD = Odd()

@torch.compile
def step(x):
    if ODD:
        x = x / x.max().item()  # expect: TL101
    else:
        x = x - x.min().item()  # expect: TL101
    if ODD == 3:
        x = x - x.mean().item()  # expect: TL101
    return x
""",
    "a list that grows": """
import torch

@torch.compile
def step(x, flag: bool):
    found = []
    if flag:
        found.append(x)
    if found:
        x = x / x.max().item()  # expect: TL101
    table = {}
    for i, part in enumerate(x.split(2)):
        table[i] = part
    if table:
        x = x - x.min().item()  # expect: TL101
    if len(found) == 0:
        x = x - x.mean().item()  # expect: TL101
    return x
""",
}


@pytest.mark.parametrize("name", FOLDED)
def test_folded(name: str, tmp_path: Path) -> None:
    check(tmp_path, FOLDED[name])


@pytest.mark.parametrize("name", KEPT)
def test_not_folded(name: str, tmp_path: Path) -> None:
    check(tmp_path, KEPT[name])


SCALARS = """
import torch
{switch}

@torch.compile{arguments}
def step(x):
    n = x.max().item()
    if n > 3:
        return x + 1
    return x
"""


@pytest.mark.parametrize(
    ("switch", "arguments", "found"),
    [
        pytest.param("", "", {(6, "TL101")}, id="a Python number after the break"),
        pytest.param("torch._dynamo.config.capture_scalar_outputs = True", "", {(7, "TL102")}, id="captured"),
        pytest.param("torch._dynamo.config.patch(capture_scalar_outputs=True)", "", {(7, "TL102")}, id="patched"),
        pytest.param("", "(fullgraph=True)", {(7, "TL102")}, id="fullgraph captures"),
    ],
)
def test_a_number_read_out_of_a_tensor(switch: str, arguments: str, found: set, tmp_path: Path) -> None:
    analysis = analyse(tmp_path, SCALARS.format(switch=switch, arguments=arguments))
    assert {(f.span.line, f.code) for f in analysis.findings} == found


def test_before_2_10_fullgraph_captures_nothing(tmp_path: Path) -> None:
    program = SCALARS.format(switch="", arguments="(fullgraph=True)")
    assert {(f.span.line, f.code) for f in analyse(tmp_path, program, target_torch=("2.8",)).findings} == {(6, "TL101")}
    switch = "torch._dynamo.config.capture_scalar_outputs = True"
    program = SCALARS.format(switch=switch, arguments="(fullgraph=True)")
    assert {(f.span.line, f.code) for f in analyse(tmp_path, program, target_torch=("2.8",)).findings} == {(7, "TL102")}


SETTINGS = """
import logging, os, warnings
import torch
import torch._dynamo
from torch import nn
{switch}

logger = logging.getLogger(__name__)
lstm = nn.LSTM(4, 8)
weight = torch.ones(4, requires_grad=True)

def note(x):
    print("note", tuple(x.shape))  # note

@torch.compile
def step(x):
    print("mean", x.mean())  # print
    note(x)
    logger.info("once")  # info
    warnings.warn("old")  # warn
    class Point:  # class
        pass
    slope = torch.autograd.grad((x * weight).sum(), weight)  # grad
    (x * weight).sum().backward()  # backward
    return lstm(x)[0] * x.max().item()  # rnn item
"""


@pytest.mark.parametrize(
    ("switch", "silent"),
    [
        pytest.param("", set(), id="nothing set"),
        pytest.param("torch._dynamo.config.allow_rnn = True", {"rnn"}, id="allow_rnn"),
        pytest.param("torch._dynamo.config.allow_rnn = False", set(), id="turned off"),
        pytest.param("torch._dynamo.config.patch({'allow_rnn': True})", {"rnn"}, id="a dict of patches"),
        pytest.param("torch._dynamo.config.patch('allow_rnn', True)", {"rnn"}, id="a patch by name"),
        pytest.param("setattr(torch._dynamo.config, 'allow_rnn', True)", {"rnn"}, id="setattr"),
        pytest.param("torch._dynamo.config.trace_autograd_ops = True", {"grad", "backward"}, id="trace_autograd_ops"),
        pytest.param(
            "torch._dynamo.config.enable_trace_load_build_class = True", {"class"}, id="enable_trace_load_build_class"
        ),
        pytest.param("os.environ['TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS'] = '1'", {"item"}, id="environment"),
        pytest.param("os.environ.setdefault('TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS', '1')", {"item"}, id="setdefault"),
        pytest.param("os.environ['TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS'] = '0'", set(), id="environment, off"),
        pytest.param(
            "torch._dynamo.config.reorderable_logging_functions.add(print)", {"print"}, id="what cannot be moved breaks"
        ),
        pytest.param(
            "torch._dynamo.config.reorderable_logging_functions |= {print, warnings.warn}", {"print", "warn"}, id="more"
        ),
        pytest.param(
            "torch._dynamo.config.ignore_logging_functions.update([print, warnings.warn])",
            {"print", "note", "warn"},
            id="ignored",
        ),
        pytest.param(
            "torch._dynamo.config.ignore_logger_methods = {logging.Logger.info}", {"info"}, id="a method of loggers"
        ),
    ],
)
def test_settings_of_dynamo(switch: str, silent: set[str], tmp_path: Path) -> None:
    program = SETTINGS.format(switch=switch).lstrip()
    marks = dict(enumerate((line.partition("  # ")[2].split() for line in program.splitlines()), 1))
    findings = analyse(tmp_path, program, target_torch=("2.14",)).findings
    found = {"item" if f.code == "TL101" else marks[f.span.line][0] for f in findings}
    assert found == {mark for line in marks.values() for mark in line} - silent
