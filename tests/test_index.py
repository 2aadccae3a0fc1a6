"""Names across files: what is imported from where, and what is not taken for the project's."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import check, write

from tlint.analyzer.index import Assigned, ClassDef, FunctionDef, ImportOf, Project

IMPORTS = {
    "from a module": """
# file: main.py
import torch
from ops import scale

@torch.compile
def step(x):
    return scale(x)
# file: ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101
""",
    "under another name": """
# file: main.py
import torch as th
from ops import scale as s

@th.compile
def step(x):
    return s(x)
# file: ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101
""",
    "a module": """
# file: main.py
import torch
import pkg.ops

@torch.compile
def step(x):
    return pkg.ops.scale(x)
# file: pkg/__init__.py
# file: pkg/ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101
""",
    "a module under another name": """
# file: main.py
import torch
import pkg.ops as o

@torch.compile
def step(x):
    return o.scale(x)
# file: pkg/__init__.py
# file: pkg/ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101
""",
    "a module from its package": """
# file: main.py
import torch
from pkg import ops

@torch.compile
def step(x):
    return ops.scale(x)
# file: pkg/__init__.py
# file: pkg/ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101
""",
    "relative": """
# file: pkg/__init__.py
# file: pkg/model.py
import torch
from .ops import scale
from . import ops
from .sub import deep

@torch.compile
def step(x):
    return scale(x) + ops.shift(x) + deep.lower(x)
# file: pkg/ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101

def shift(x):
    return x - x.min().item()  # expect: TL101
# file: pkg/sub/__init__.py
# file: pkg/sub/deep.py
from ..ops import scale
from .. import more

def lower(x):
    return scale(x) + more.mean(x)
# file: pkg/more.py
def mean(x):
    return x - x.mean().item()  # expect: TL101
""",
    "re-exported": """
# file: main.py
import torch
import pkg
from pkg import shift

@torch.compile
def step(x):
    return pkg.rescale(x) + shift(x)
# file: pkg/__init__.py
from .ops import scale as rescale
from .inner import shift
# file: pkg/ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101
# file: pkg/inner/__init__.py
from .ops import shift
# file: pkg/inner/ops.py
def shift(x):
    return x - x.min().item()  # expect: TL101
""",
    "star": """
# file: main.py
import torch
from pkg import *

@torch.compile
def step(x):
    return scale(x) + shift(x)
# file: pkg/__init__.py
from .ops import *
from .more import *
# file: pkg/ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101
# file: pkg/more.py
def shift(x):
    return x - x.min().item()  # expect: TL101
""",
    "star leaves private names": """
# file: main.py
import torch
from ops import *

def _scale(x):
    return x

@torch.compile
def step(x):
    return _scale(x)
# file: ops.py
def _scale(x):
    return x / x.max().item()
""",
    "star with __all__": """
# file: main.py
import torch
from ops import *

@torch.compile
def step(x):
    return _scale(x)
# file: ops.py
__all__ = ["_scale"]

def _scale(x):
    return x / x.max().item()  # expect: TL101
""",
    "src layout": """
# file: src/pkg/__init__.py
# file: src/pkg/ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101
# file: train.py
import torch
from pkg.ops import scale

@torch.compile
def step(x):
    return scale(x)
""",
    "folders without __init__.py": """
# file: train.py
import torch
from lib.nn.ops import scale
import lib.nn.more as more

@torch.compile
def step(x):
    return scale(x) + more.shift(x)
# file: lib/nn/ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101
# file: lib/nn/more.py
def shift(x):
    return x - x.min().item()  # expect: TL101
""",
    "scripts beside each other": """
# file: scripts/train.py
import torch
from helpers import scale

@torch.compile
def step(x):
    return scale(x)
# file: scripts/helpers.py
def scale(x):
    return x / x.max().item()  # expect: TL101
""",
    "the nearest of several": """
# file: one/train.py
import torch
from helpers import scale

@torch.compile
def step(x):
    return scale(x)
# file: one/helpers.py
def scale(x):
    return x / x.max().item()  # expect: TL101
# file: two/helpers.py
def scale(x):
    return x.tolist()
""",
    "an import cycle": """
# file: a.py
import torch
from b import shift

def scale(x):
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    return shift(x)
# file: b.py
import a

def shift(x):
    return a.scale(x)
""",
    "a name that refers to itself": """
# file: a.py
import torch
from b import scale

@torch.compile
def step(x):
    return scale(x)
# file: b.py
from a import scale
""",
    "star imports in a circle": """
# file: a.py
import torch
from b import *

@torch.compile
def step(x):
    return scale(x) + nothing(x)
# file: b.py
from c import *
# file: c.py
from b import *

def scale(x):
    return x / x.max().item()  # expect: TL101
""",
    "inside a function": """
# file: main.py
import torch

@torch.compile
def step(x):
    from ops import scale
    import more
    return scale(x) + more.shift(x)
# file: ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101
# file: more.py
def shift(x):
    return x - x.min().item()  # expect: TL101
""",
    "with a fallback": """
# file: main.py
import torch

try:
    from ops import scale
except ImportError:
    def scale(x):
        return x

try:
    import apex
    from apex import norm
except ImportError:
    from ops import norm

@torch.compile
def step(x):
    return scale(x)
# file: ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101

def norm(x):
    return x.tolist()
""",
    "under a condition": """
# file: main.py
import sys
import torch

if sys.version_info >= (3, 11):
    from ops import scale
else:
    scale = None

@torch.compile
def step(x):
    return scale(x)
# file: ops.py
def scale(x):
    return x / x.max().item()  # expect: TL101
""",
    "only for the type checker": """
# file: main.py
from __future__ import annotations
from typing import TYPE_CHECKING
import torch

if TYPE_CHECKING:
    from ops import Config

class Net(torch.nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config

    def forward(self, x):
        return self.config.rescale(x)
# file: ops.py
class Config:
    def rescale(self, x):
        return x / x.max().item()  # expect: TL101
""",
    "a method of an imported class": """
# file: main.py
import torch
from pkg import Scaler

scaler = Scaler(2)

@torch.compile
def step(x):
    return scaler.scale(x) + Scaler.shift(x)
# file: pkg/__init__.py
from .scaling import Scaler
# file: pkg/scaling.py
class Scaler:
    def __init__(self, by):
        self.by = by

    def scale(self, x):
        return self.by * x / x.max().item()  # expect: TL101

    @staticmethod
    def shift(x):
        return x - x.min().item()  # expect: TL101
""",
    "another project's name": """
# file: main.py
import torch
from elsewhere import scale
from elsewhere.ops import *

@torch.compile
def step(x):
    return scale(x) + shift(x)
# file: ops.py
def scale(x):
    return x / x.max().item()

def shift(x):
    return x / x.max().item()
""",
    "a folder named like a package": """
# file: main.py
import torch
from torch import compile

@compile
def step(x):
    return x / x.max().item()  # expect: TL101
# file: torch/notes.py
text = "a folder without __init__.py does not hide the package torch"
""",
    "a later definition wins": """
import torch

def scale(x):
    return x.tolist()

def scale(x):
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    return scale(x)
""",
    "an alias at module level": """
import torch

def _scale(x):
    return x / x.max().item()  # expect: TL101

scale = _scale

@torch.compile
def step(x):
    return scale(x)
""",
    "typing.overload": """
import torch
from typing import overload

@overload
def scale(x: torch.Tensor) -> torch.Tensor: ...
@overload
def scale(x: int) -> int: ...
def scale(x):
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    return scale(x)
""",
}


@pytest.mark.parametrize("name", IMPORTS)
def test_imports(name: str, tmp_path: Path) -> None:
    check(tmp_path, IMPORTS[name])


def opened(folder: Path, text: str) -> Project:
    contents = write(folder, text)
    return Project(folder, [folder / name for name in contents], lambda path: path.read_text(encoding="utf-8"))


def test_a_file_has_every_name_it_can_be_imported_by(tmp_path: Path) -> None:
    project = opened(
        tmp_path,
        """
# file: src/pkg/__init__.py
# file: src/pkg/sub/__init__.py
# file: src/pkg/sub/ops.py
x = 1
# file: tools/run.py
""",
    )
    ops = project.find("pkg.sub.ops")
    assert ops is not None
    assert ops is project.find("src.pkg.sub.ops")
    assert (ops.name, ops.package) == ("pkg.sub.ops", "pkg.sub")
    assert project.find("tools.run") is project.find("run")
    assert project.find("sub.ops") is None
    assert project.is_project("tools")
    assert not project.is_project("too")


def test_symbols_are_what_a_module_defines(tmp_path: Path) -> None:
    project = opened(
        tmp_path,
        """
import os.path
import numpy as np
from json import loads as load

a = b = 1
c, (d, *e) = f()
g: int
for h in range(3):
    i = h
with open("x") as j:
    pass
try:
    k = 1
except ImportError as error:
    l = 2
finally:
    m = 3

async def n(): ...

class O:
    p = 1
    def q(self): ...
    class R:
        def s(self): ...

if a:
    def t(): ...
else:
    u = lambda: 0
""",
    )
    module = project.find("main")
    assert module is not None
    kinds = {name: type(symbol) for name, symbol in module.symbols.items()}
    assert kinds == {
        **dict.fromkeys(("os", "np", "load"), ImportOf),
        **dict.fromkeys("abcdeghijklmu", Assigned),
        **dict.fromkeys("nt", FunctionDef),
        "O": ClassDef,
    }
    assert [f.qualname for f in module.functions()] == ["n", "O.q", "O.R.s", "t"]
    assert [c.qualname for c in module.classes()] == ["O", "O.R"]
    assert (module.symbols["np"].module, module.symbols["load"].attribute) == ("numpy", "loads")


def test_a_file_that_does_not_parse_is_left_out(tmp_path: Path) -> None:
    project = opened(tmp_path, "# file: a.py\ndef f(:\n# file: b.py\nfrom a import f\n")
    assert project.find("a") is None
    assert project.find("b") is not None
    assert [(path.name, error.lineno) for path, error in project.errors.items()] == [("a.py", 1)]
