"""What is taken for a compile root: explicit, named and assumed; and what cannot be worked out."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import analyse, check

from tlint.analyzer.model import RootKind

HEAD = """
import functools
import torch
from torch import nn

def scale(x):
    return x / x.max().item()  # expect: TL101

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        if x.sum() > 0:  # MARK
            return self.linear(x)
        return x

    def other(self, x):
        return x

"""

# What compiles, and the roots it makes.
EXPLICIT = {
    "decorator": (
        """
@torch.compile
def step(x):
    return scale(x)
""",
        {"main:step"},
    ),
    "decorator with arguments": (
        """
@torch.compile(mode="max-autotune", dynamic=True)
def step(x):
    return scale(x)
""",
        {"main:step"},
    ),
    "decorator through partial": (
        """
compiled = functools.partial(torch.compile, dynamic=True)

@compiled
def step(x):
    return scale(x)

@functools.partial(torch.compile, backend="eager")
def other(x):
    return scale(x)
""",
        {"main:step", "main:other"},
    ),
    "decorator under another name": (
        """
from torch import compile as compile_
jit = torch.compile
fast = jit(dynamic=True)

@compile_
def one(x):
    return scale(x)

@jit
def two(x):
    return scale(x)

@fast
def three(x):
    return scale(x)
""",
        {"main:one", "main:two", "main:three"},
    ),
    "decorator of one's own": (
        """
def optimized(f):
    return torch.compile(f, dynamic=False)

@optimized
def step(x):
    return scale(x)
""",
        {"main:step"},
    ),
    "decorator that compiles on demand": (
        """
def maybe(enabled=True):
    def decorate(f):
        return torch.compile(f) if enabled else f
    return decorate

@maybe(enabled=False)
def step(x):
    return scale(x)

@maybe()
def other(x):
    return scale(x)
""",
        {"main:other"},
    ),
    "decorator among others": (
        """
def passed(f):
    @functools.wraps(f)
    def inner(*args):
        return f(*args)
    return inner

@torch.no_grad()
@torch.compile
@passed
def step(x):
    return scale(x)
""",
        {"main:passed.<locals>.inner"},
    ),
    "decorator of a method": (
        """
class Trainer:
    @torch.compile
    def step(self, x):
        return scale(x)

    @staticmethod
    @torch.compile
    def static(x):
        return scale(x)

class Own(nn.Module):
    @torch.compile(fullgraph=False)
    def forward(self, x):
        return self.part(x)

    def part(self, x):
        return scale(x)
""",
        {"main:Trainer.step", "main:Trainer.static", "main:Own.forward"},
    ),
    "decorator of a class": (
        """
@torch.compile
class Own(nn.Module):
    def forward(self, x):
        return scale(x)
""",
        {"main:Own"},
    ),
    "call": (
        """
compiled = torch.compile(scale)
compiled(torch.ones(3))
""",
        {"main:scale"},
    ),
    "call with the model by name": (
        """
def main():
    compiled = torch.compile(model=scale, backend="eager")
    return compiled(torch.ones(3))
""",
        {"main:scale"},
    ),
    "call at once": (
        """
def main(x):
    return torch.compile(fullgraph=False)(scale)(x)  # expect: TL403
""",
        {"main:scale"},
    ),
    "call on a lambda": (
        """
compiled = torch.compile(lambda x: scale(x))
""",
        {"main:<lambda>"},
    ),
    "call on a partial": (
        """
def by(x, factor):
    return scale(x) * factor

compiled = torch.compile(functools.partial(by, factor=2))
""",
        {"main:by"},
    ),
    "call on a nested function": (
        """
def main(bias):
    def step(x):
        return scale(x) + bias
    return torch.compile(step)
""",
        {"main:main.<locals>.step"},
    ),
    "call under a condition": (
        """
import argparse

if __name__ == "__main__":
    args = argparse.ArgumentParser().parse_args()
    step = scale
    if args.compile:
        step = torch.compile(step)
""",
        {"main:scale"},
    ),
    "call in a method": (
        """
class Trainer:
    def __init__(self):
        self.step = torch.compile(self._step)

    def _step(self, x):
        return scale(x)
""",
        {"main:Trainer._step"},
    ),
    "call through a wrapper": (
        """
def maybe_compile(f, enabled):
    if not enabled:
        return f
    return torch.compile(f)

def main(enabled):
    return maybe_compile(scale, enabled)
""",
        {"main:scale"},
    ),
    "call on functions in a table": (
        """
TABLE = {"scale": scale}
for name in TABLE:
    TABLE[name] = torch.compile(TABLE[name])
""",
        {"main:scale"},
    ),
}


@pytest.mark.parametrize("name", EXPLICIT)
def test_functions(name: str, tmp_path: Path) -> None:
    text, roots = EXPLICIT[name]
    analysis = check(tmp_path, HEAD + text, roots="explicit")
    assert {r.name for r in analysis.roots if r.kind is RootKind.explicit} == roots
    assert all(r.resolved for r in analysis.roots)


MODULES = {
    "an instance": ("model = torch.compile(Net())", {"main:Net"}),
    "an instance in a variable": ("model = Net()\nmodel = torch.compile(model)", {"main:Net"}),
    "an instance on a device": ("model = torch.compile(Net().to('cuda').eval())", {"main:Net"}),
    "an instance under another name": ("from torch import compile\nmodel = compile(Net())", {"main:Net"}),
    "in place": ("model = Net()\nmodel.compile()", {"main:Net"}),
    "in place with arguments": ("def main():\n    model = Net()\n    model.compile(dynamic=True)", {"main:Net"}),
    "its forward": ("model = Net()\nmodel.forward = torch.compile(model.forward)", {"main:Net.forward"}),
    "the forward of the class": ("Net.forward = torch.compile(Net.forward)", {"main:Net.forward"}),
    "a row of modules": ("model = torch.compile(nn.Sequential(nn.Linear(3, 3), Net()))", {"main:Sequential"}),
    "what a function makes": ("def build():\n    return Net()\n\nmodel = torch.compile(build())", {"main:Net"}),
    "an annotated argument": ("def main(model: Net):\n    return torch.compile(model)", {"main:Net"}),
    "what a function is called with": (
        "def prepare(model):\n    return torch.compile(model)\n\nprepare(Net())",
        {"main:Net"},
    ),
    "what a function is called with, again and again": (
        "class Other(Net):\n    pass\n\ndef prepare(model):\n    return torch.compile(model)\n\n"
        "prepare(Net())\nprepare(Other())",
        {"main:Net", "main:Other"},
    ),
    "each of a list": ("models = [Net(), Net()]\nmodels = [torch.compile(m) for m in models]", {"main:Net"}),
    "an attribute": (
        "class Trainer:\n    def __init__(self):\n        self.model = Net()\n\n"
        "    def start(self):\n        self.model = torch.compile(self.model)",
        {"main:Net"},
    ),
    "itself": ("class Own(Net):\n    def start(self):\n        self.compile()", {"main:Own"}),
    "one of two": ("def main(big):\n    model = Net() if big else None\n    return torch.compile(model)", {"main:Net"}),
    "exported": ("program = torch.export.export(Net(), (torch.ones(3),))", {"main:Net"}),
    "exported under another name": (
        "from torch.export import export\nprogram = export(Net(), (torch.ones(3),))",
        {"main:Net"},
    ),
    "with dynamo's own name": ("import torch._dynamo\nmodel = torch._dynamo.optimize('eager')(Net())", {"main:Net"}),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str, tmp_path: Path) -> None:
    text, roots = MODULES[name]
    source = HEAD.replace("MARK", "expect: TL102").replace("  # expect: TL101", "")
    analysis = check(tmp_path, source + text + "\n", roots="explicit")
    assert {r.name for r in analysis.roots if r.kind is RootKind.explicit} == roots


def test_across_files(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
# file: train.py
from model import build
from speed import faster

def main():
    model = build()
    model = faster(model)
# file: speed.py
import torch

def faster(model):
    return torch.compile(model)
# file: model.py
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

def build():
    return Net()
""",
        roots="explicit",
    )


UNRESOLVED = {
    "from elsewhere": ("from elsewhere import load\nmodel = torch.compile(load('net'))  # expect: TL904", False),
    "an argument": ("def prepare(model):\n    return torch.compile(model)  # expect: TL904", False),
    "a registry": ("def main(name):\n    return torch.compile(globals()[name])  # expect: TL904", False),
    "a layer of torch": ("model = torch.compile(nn.Linear(3, 3))", True),
    "a model of torchvision": ("import torchvision\nmodel = torch.compile(torchvision.models.ResNet())", True),
}


@pytest.mark.parametrize("name", UNRESOLVED)
def test_what_cannot_be_worked_out(name: str, tmp_path: Path) -> None:
    text, resolved = UNRESOLVED[name]
    source = HEAD.replace("  # expect: TL101", "")
    analysis = check(tmp_path, source + text + "\n", roots="explicit")
    assert [r.resolved for r in analysis.roots] == [resolved]


def test_models_made_with_other_arguments_are_roots_of_their_own(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
import torch

class Net(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        if self.kind == "a":
            return x / x.max().item()  # expect: TL101
        if self.kind == "c":
            print("never")
        return x - x.min().item()  # expect: TL101

a = torch.compile(Net("a"))
b = torch.compile(Net("b"))
""",
    )


NOT_COMPILED = """
import re
import torch

class Compiler:
    def compile(self, x):
        return x

def scale(x):
    return x / x.max().item()

pattern = re.compile("x")
code = compile("1", "x", "eval")
Compiler().compile(scale)
torch.compiler.reset()
same = torch.compile(scale, disable=True)
"""


def test_other_things_are_called_compile(tmp_path: Path) -> None:
    assert analyse(tmp_path, NOT_COMPILED).roots == ()


PROJECT = """
# file: pkg/__init__.py
# file: pkg/model.py
import torch

def scale(x):
    return x / x.max().item()

def shift(x):
    return x - x.min().item()

class Net(torch.nn.Module):
    def forward(self, x):
        return scale(x)

    def encode(self, x):
        return shift(x)

model = Net()
"""


@pytest.mark.parametrize(
    ("target", "name", "lines"),
    [
        ("pkg/model.py:scale", "pkg.model:scale", {4}),
        ("pkg.model:scale", "pkg.model:scale", {4}),
        ("pkg.model:Net", "pkg.model:Net", {4}),
        ("pkg.model:Net.encode", "pkg.model:Net.encode", {7}),
        ("pkg.model:model", "pkg.model:Net", {4}),
        ("pkg.model:model.encode", "pkg.model:Net.encode", {7}),
    ],
)
def test_named(target: str, name: str, lines: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    analysis = analyse(tmp_path, PROJECT, root=(target,), roots="explicit")
    assert [(r.name, r.kind) for r in analysis.roots] == [(name, RootKind.named)]
    assert {f.span.line for f in analysis.findings} == lines


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("scale", "FILE.py:NAME"),
        ("pkg/none.py:scale", "no such file"),
        ("pkg.none:scale", "no such module"),
        ("pkg.model:none", "it defines Net, scale, shift"),
    ],
)
def test_named_wrongly(target: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    analysis = analyse(tmp_path, PROJECT, root=(target,))
    (error,) = analysis.errors
    assert target in error and message in error
    assert analysis.roots, "the rest is looked at"


def test_decorators_of_the_project(tmp_path: Path) -> None:
    analysis = check(
        tmp_path,
        """
        # file: mine/__init__.py
        from .core import compiled
        # file: mine/core.py
        def compiled(function=None, **options):
            return function
        def other(function):
            return function
        # file: main.py
        import mine
        import torch
        from mine import compiled as short
        from mine.core import compiled, other

        @short
        def f(x: torch.Tensor):
            return x.item()  # expect: TL101

        @mine.core.compiled(fullgraph=True)
        def g(x: torch.Tensor):
            return x.item()  # expect: TL101

        class Net(torch.nn.Module):
            @compiled
            def forward(self, x):
                return x.item()  # expect: TL101

        @other
        def h(x: torch.Tensor):
            return x.item()
        """,
        root_decorators=("mine.compiled", "mine.core.compiled"),
        roots="explicit",
    )
    assert [(root.name, root.kind, root.how) for root in analysis.roots] == [
        (f"main:{name}", RootKind.explicit, "root-decorators") for name in ("f", "g", "Net.forward")
    ]


@pytest.mark.parametrize(
    ("roots", "kinds"),
    [("auto", [RootKind.assumed]), ("modules", [RootKind.named]), ("explicit", [])],
)
def test_every_forward_is_a_root_by_assumption(roots: str, kinds: list[RootKind], tmp_path: Path) -> None:
    analysis = analyse(tmp_path, PROJECT, roots=roots)
    assert [r.kind for r in analysis.roots] == kinds
    assert len(analysis.findings) == len(kinds)


def test_a_class_that_only_looks_like_a_module(tmp_path: Path) -> None:
    analysis = analyse(
        tmp_path,
        """
import torch

class Plain:
    def forward(self, x):
        return x.max().item()

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x.max().item()
""",
    )
    assert analysis.roots == ()


def test_inputs_beside_a_root_say_what_it_gets(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
import torch

@torch.compile
def step(x, n, flags=None):
    if n > 3:
        x = x + 1
    if flags is None:
        return x
    if flags.any():  # expect: TL102
        return x
    return x + 1

def tlint_inputs():
    return torch.ones(3), 4, torch.zeros(3, dtype=torch.bool)
""",
    )


def test_inputs_of_a_compiled_module_are_given_under_its_name(tmp_path: Path) -> None:
    """What they leave out stays what the parameter is declared to be."""
    check(
        tmp_path,
        """
import torch

class Net(torch.nn.Module):
    def forward(self, x, flags=None, mask=None):
        if flags > 0:  # expect: TL102
            x = x + 1
        if mask is not None and mask > 0:  # possible: TL102
            x = x + 1
        return x

class Other(torch.nn.Module):
    def forward(self, x, n=None):
        if n > 3:
            x = x + 1
        return x / x.max().item()  # expect: TL101

net = torch.compile(Net())
other = Other()
other.compile()

def tlint_inputs():
    return {"net": (torch.ones(3), torch.zeros(3)), "other": (torch.ones(3), 4)}
""",
    )


def test_a_root_is_given_what_its_calls_give_it(tmp_path: Path) -> None:
    """Numbers are numbers, though not which; what one call does not tell stays a tensor, most likely."""
    report = check(
        tmp_path,
        """
import torch

@torch.compile
def step(x, n, scale, more):
    for _ in range(n):  # ok: TL107
        x = x * scale if scale > 1.0 else x  # ok: TL102
    return x if more > 0 else -x  # expect: TL102

class Net(torch.nn.Module):
    def forward(self, x, steps):
        return x if steps > 2 else x / x.max().item()  # expect: TL101

def main(loader):
    net = torch.compile(Net())
    for more in loader:
        step(net(torch.randn(3), 4), 3, 0.5, more)

step(torch.randn(4), 4, scale=2.0, more=torch.ones(()))
""",
    )
    assert {f.code for f in report.findings} == {"TL101", "TL102"}
