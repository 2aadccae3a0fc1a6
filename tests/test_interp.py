"""What the interpreter follows, what it knows of values, and what it must not fold."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import check

METHODS = {
    "through self": """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return self.head(x)

    def head(self, x):
        return self._scale(x, 2)

    def _scale(self, x, by):
        return by * x / x.max().item()  # expect: TL101
""",
    "inherited": """
# file: main.py
import torch
from base import Base

class Net(Base):
    def head(self, x):
        return x / x.max().item()  # expect: TL101
# file: base.py
import torch

class Base(torch.nn.Module):
    def forward(self, x):
        return self.head(x)

    def head(self, x):
        raise NotImplementedError
""",
    "super": """
import torch

class Base(torch.nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

    @classmethod
    def shift(cls, x):
        return x - x.min().item()  # expect: TL101

class Middle(Base):
    pass

class Net(Middle):
    def forward(self, x):
        y = super().forward(x)
        z = super(Net, self).shift(x)
        if y.sum() > 0:  # expect: TL102
            return y
        return z
""",
    "super of the class that defines the method": """
import torch

class Base(torch.nn.Module):
    def head(self, x):
        return x / x.max().item()  # expect: TL101

class Middle(Base):
    def head(self, x):
        return super().head(x)

class Net(Middle):
    def head(self, x):
        return super().head(x)

    def forward(self, x):
        return self.head(x)
""",
    "several bases": """
import torch

class Scale:
    def head(self, x):
        return super().head(x / x.max().item())  # expect: TL101

class Shift:
    def head(self, x):
        return x - x.min().item()  # expect: TL101

class Net(Scale, Shift, torch.nn.Module):
    def forward(self, x):
        return self.head(x)
""",
    "of the class": """
import torch

class Net(torch.nn.Module):
    @staticmethod
    def scale(x):
        return x / x.max().item()  # expect: TL101

    @classmethod
    def shift(cls, x):
        return cls.scale(x) - x.min().item()  # expect: TL101

    def forward(self, x):
        return self.scale(x) + Net.shift(x) + Net.lower(self, x) + type(self).scale(x)

    def lower(self, x):
        return x - x.mean().item()  # expect: TL101
""",
    "a property": """
import torch
from functools import cached_property

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    @property
    def largest(self):
        return self.weight.max().item()  # expect: TL101

    @cached_property
    def smallest(self):
        return self.weight.min().item()  # expect: TL101

    @property
    def size(self):
        return self.weight.shape[0]

    @largest.setter
    def largest(self, value):
        self.weight.data.fill_(value.item())

    def forward(self, x):
        if self.size > 2:
            return x / self.largest
        return x / self.smallest
""",
    "called as an object": """
import torch

class Scale:
    def __call__(self, x):
        return x / x.max().item()  # expect: TL101

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale()

    def forward(self, x):
        return self.scale(x)
""",
    "__call__ before forward": """
import torch

class Net(torch.nn.Module):
    def __call__(self, x):
        return super().__call__(x / x.max().item())  # expect: TL101

    def forward(self, x):
        return x - x.min().item()  # expect: TL101
""",
    "a bound method in a variable": """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        head = self.head
        return head(x)

    def head(self, x):
        return x / x.max().item()  # expect: TL101
""",
    "by name": """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return getattr(self, "head")(x) + getattr(self, "missing", None)(x)

    def head(self, x):
        return x / x.max().item()  # expect: TL101
""",
    "an operator of a class": """
import torch

class Scale:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        print("left")  # expect: TL111

    def __getitem__(self, i):
        print("item")  # expect: TL111
        return 2.0

    def __len__(self):
        print("length")  # expect: TL111
        return 3

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale()

    def forward(self, x):
        with self.scale:
            return x * self.scale[0] * len(self.scale)
""",
}

ATTRIBUTES = {
    "a module": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        y = self.block(self.linear(x))
        if self.block.forward(y).sum() > 0:  # expect: TL102
            return y
        return self.linear.weight
""",
    "set by a helper": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.build()

    def build(self):
        self.block = self.make()

    def make(self):
        return Block()

    def forward(self, x):
        return self.block(x)
""",
    "set by an inherited __init__": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Other(nn.Module):
    def forward(self, x):
        return x - x.min().item()  # expect: TL101

class Base(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.block = kind()

class Net(Base):
    def __init__(self):
        super().__init__(Block)
        self.other = Other()

    def forward(self, x):
        return self.other(self.block(x))
""",
    "one of two": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Other(nn.Module):
    def forward(self, x):
        return x - x.min().item()  # expect: TL101

class Net(nn.Module):
    def __init__(self, small, skip):
        super().__init__()
        if small:
            self.block = Block()
        else:
            self.block = Other()
        self.skip = Block() if skip else nn.Identity()

    def forward(self, x):
        return self.skip(self.block(x))
""",
    "None or a module": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Net(nn.Module):
    def __init__(self, skip):
        super().__init__()
        self.block = None
        if not skip:
            self.block = Block()

    def forward(self, x):
        if self.block is not None:
            x = self.block(x)
        return x
""",
    "set later": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None

    def update(self, x):
        self.mask = torch.ones(3)

    def forward(self, x):
        if self.mask is None:
            return x
        self.update(x)
        if self.mask.sum() > 0:  # expect: TL102
            return x
        return x + 1
""",
    "buffers": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.zeros(3, dtype=torch.bool))
        self.register_parameter("weight", nn.Parameter(torch.ones(3)))
        self.register_buffer("empty", None)
        self.add_module("linear", nn.Linear(3, 3))

    def forward(self, x):
        if self.mask.any():  # expect: TL102
            return x
        if self.weight.sum() > 0:  # expect: TL102
            return x
        return x if self.empty is None else self.linear(x)
""",
    "setattr": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        setattr(self, "block", Block())

    def forward(self, x):
        return self.block(x)
""",
    "an argument of the constructor": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Wrap(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)

model = Wrap(Wrap(Block()))

@torch.compile
def step(x):
    return model(x)
""",
    "a class attribute": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Base(nn.Module):
    kind = None
    steps = 3

    def __init__(self):
        super().__init__()
        self.block = self.kind()

    def forward(self, x):
        for _ in range(self.steps):
            x = self.block(x)
        return x

class Net(Base):
    kind = Block
""",
    "of an attribute": """
import torch
from torch import nn

class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.scale = torch.ones(1)

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        if self.inner.scale > 0:  # expect: TL102
            return self.inner.block(x)
        return x
""",
    "a factory": """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()

    def forward(self, x):
        return x / x.max().item()  # expect: TL101

def build(width, depth=2):
    return nn.Sequential(*[Block(width) for _ in range(depth)])

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = build(3)

    def forward(self, x):
        return self.blocks(x)
""",
}

CONTAINERS = {
    "a list of modules": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x, scale=1):
        return scale * x / x.max().item()  # expect: TL101

class Other(nn.Module):
    def forward(self, x):
        return x - x.min().item()  # expect: TL101

class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(depth)])
        self.others = nn.ModuleList()
        for _ in range(depth):
            self.others.append(Other())

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        for i, block in enumerate(self.blocks[1:]):
            x = block(x, i)
        for block, other in zip(self.blocks, self.others):
            x = other(block(x))
        return self.blocks[0](x) + self.others[-1](x)
""",
    "an element of a list": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Other:
    def __call__(self, x):
        return x - x.min().item()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Other()])

    def forward(self, x):
        return self.blocks[0](x)

net = Net()

@torch.compile
def step(x):
    return net(x)
""",
    "a dict of modules": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Other(nn.Module):
    def forward(self, x):
        return x - x.min().item()  # expect: TL101

class Last(nn.Module):
    def forward(self, x):
        return x - x.mean().item()  # expect: TL101

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleDict({"a": Block(), "b": Other()})
        self.rest = nn.ModuleDict()
        self.rest["c"] = Last()

    def forward(self, x, key: str):
        for name, block in self.blocks.items():
            x = block(x)
        for block in self.rest.values():
            x = block(x)
        return self.blocks["a"](x) + self.blocks[key](x)
""",
    "in a row": """
import torch
from collections import OrderedDict
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Other(nn.Module):
    def forward(self, x):
        return x - x.min().item()  # expect: TL101

class Last(nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # expect: TL102
            return x
        return x + 1

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Sequential(nn.Linear(3, 3), Block(), nn.ReLU())
        self.two = nn.Sequential(OrderedDict(a=Other(), b=nn.ReLU()))
        layers = [nn.Linear(3, 3)]
        layers.append(Last())
        self.three = nn.Sequential(*layers)

    def forward(self, x):
        return self.three(self.two(self.one(x)))
""",
    "subclasses": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Blocks(nn.ModuleList):
    def forward(self, x):
        for block in self:
            x = block(x)
        return x

class Row(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 3), Other())

class Other(nn.Module):
    def forward(self, x):
        return x - x.min().item()  # expect: TL101

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = Blocks([Block(), Block()])
        self.row = Row()

    def forward(self, x):
        return self.row(self.blocks(x))
""",
    "Python's own": """
import torch

def scale(x):
    return x / x.max().item()  # expect: TL101

def shift(x):
    return x - x.min().item()  # expect: TL101

def lower(x):
    return x - x.mean().item()  # expect: TL101

TABLE = {"scale": scale, "shift": shift}
STEPS = (lower, scale)

@torch.compile
def step(x, name: str = "scale"):
    x = TABLE[name](x)
    for one in STEPS:
        x = one(x)
    return TABLE.get(name, scale)(x)
""",
    "tensors in containers": """
import torch

@torch.compile
def step(x):
    pair = (x, x.shape[0])
    if pair[1] > 3:
        x = x + 1
    if pair[0].sum() > 0:  # expect: TL102
        x = x + 1
    table = {"value": x, "size": x.shape[0]}
    if table["size"] > 3:
        x = x + 1
    if table["value"].sum() > 0:  # expect: TL102
        x = x + 1
    first, *rest = [x, 1, 2]
    if first.sum() > 0:  # expect: TL102
        x = x + 1
    found = []
    for one in x.split(2):
        found.append(one.sum())
    if found[0] > 0:  # expect: TL102
        x = x + 1
    if len(found) > 3 or not found:
        x = x + 1
    if any(t > 0 for t in found):  # expect: TL102
        x = x + 1
    kept = list(filter(lambda t: t > 0, found))  # expect: TL102
    return x + len(kept)
""",
    "records": """
import torch
from dataclasses import dataclass
from typing import NamedTuple, Optional

@dataclass
class Output:
    loss: Optional[torch.Tensor]
    count: int = 0

class Pair(NamedTuple):
    left: torch.Tensor
    size: int

class Net(torch.nn.Module):
    def inner(self, x):
        return Output(loss=x.sum(), count=x.shape[0])

    def pair(self, x):
        return Pair(x, x.shape[0])

    def forward(self, x):
        out = self.inner(x)
        if out.count > 3:
            x = x + 1
        if out.loss > 0:  # expect: TL102
            x = x + 1
        pair = self.pair(x)
        if pair.size > 3:
            x = x + 1
        left, size = pair
        if size > 3:
            x = x + 1
        if pair.left.sum() > 0:  # expect: TL102
            x = x + 1
        return x
""",
}

FUNCTIONS = {
    "a decorator": """
import functools
import torch

def logged(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        print(f.__name__)  # expect: TL111
        return f(*args, **kwargs)
    return inner

@logged
def scale(x, by=1):
    return by * x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    return scale(x, by=2)
""",
    "a decorator with arguments": """
import functools
import torch

def logged(text):
    def decorate(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            print(text)  # expect: TL111
            return f(*args, **kwargs)
        return inner
    return decorate

@logged("scale")
def scale(x):
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    return scale(x)
""",
    "a decorator that takes both forms": """
import functools
import torch

def logged(f=None, *, text=""):
    if f is None:
        return functools.partial(logged, text=text)
    @functools.wraps(f)
    def inner(x):
        return f(x)
    return inner

@logged
def scale(x):
    return x / x.max().item()  # expect: TL101

@logged(text="shift")
def shift(x):
    return x - x.min().item()  # expect: TL101

@torch.compile
def step(x):
    return scale(x) + shift(x)
""",
    "a decorator that is a class": """
import torch

class Logged:
    def __init__(self, f):
        self.f = f

    def __call__(self, *args):
        print("called")  # expect: TL111
        return self.f(*args)

@Logged
def scale(x):
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    return scale(x)
""",
    "a decorator of a method": """
import functools
import torch

def logged(f):
    @functools.wraps(f)
    def inner(self, *args):
        print(self.name)  # expect: TL111
        return f(self, *args)
    return inner

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.name = "net"

    @logged
    def forward(self, x):
        return x / x.max().item()  # expect: TL101
""",
    "decorators from elsewhere": """
import torch
from somewhere import registered
from functools import lru_cache

@registered("scale")
@torch.no_grad()
def scale(x):
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    return scale(x)
""",
    "a decorator that only notes the function": """
import torch

FOUND = {}

def register(name):
    def note(f):
        FOUND[name] = f
        return f
    return note

@register("scale")
def scale(x):
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    return scale(x)
""",
    "partial": """
import torch
from functools import partial

def scale(by, x, shift=0):
    if shift > 0:
        x = x + shift
    return by * x / x.max().item()  # expect: TL101

double = partial(scale, 2)

class Net(torch.nn.Module):
    def __init__(self, act=partial(scale, 3)):
        super().__init__()
        self.act = partial(double, shift=1)

    def forward(self, x):
        return self.act(x)
""",
    "a closure": """
import torch

def make(bias):
    def add(x):
        if bias.sum() > 0:  # expect: TL102
            return x + bias
        return x
    return add

@torch.compile
def step(x):
    return make(x.mean(0))(x)
""",
    "a nested function": """
import torch

@torch.compile
def step(x):
    limit = x.sum()

    def inner(y):
        if y.sum() > limit:  # expect: TL102
            return y
        return x

    return inner(x + 1)
""",
    "a lambda": """
import torch

scale = lambda x: x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    f = lambda y, by=2: by * y if y.sum() > 0 else y  # expect: TL102
    return f(scale(x))
""",
    "a function as an argument": """
import torch

def twice(f, x):
    return f(f(x))

def scale(x):
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    y = twice(scale, x)
    return sum(map(scale, [y]))
""",
    "a generator": """
import torch

def parts(x):
    for part in x.split(2):
        yield part.sum()

def more(x):
    yield from parts(x)
    print("done")  # expect: TL111

@torch.compile
def step(x):
    for part in more(x):
        if part > 0:  # expect: TL102
            x = x + 1
    return x
""",
    "a context manager": """
import torch
from contextlib import contextmanager

@contextmanager
def scaled(x):
    print("entered")  # expect: TL111
    yield x.sum()

@torch.compile
def step(x):
    with scaled(x) as total:
        if total > 0:  # expect: TL102
            return x
    return x + 1
""",
    "forwarded arguments": """
import torch

def inner(x, *, by, bias=None):
    if bias is not None:
        x = x + bias
    return by * x / x.max().item()  # expect: TL101

def outer(*args, **kwargs):
    return middle(*args, **kwargs)

def middle(x, **kwargs):
    if kwargs["by"] > 2:
        x = x + 1
    return inner(x, **kwargs)

@torch.compile
def step(x):
    return outer(x, by=3, bias=x)
""",
    "forwarded arguments of a forward": """
import torch

class Block(torch.nn.Module):
    def forward(self, x, mask=None):
        if mask is not None and mask.all():  # expect: TL102
            return x
        return x / x.max().item()  # expect: TL101

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x, mask=None, **kwargs):
        return self.block(x, mask=mask, **kwargs)
""",
    "checkpoint": """
import torch
from torch.utils.checkpoint import checkpoint
import torch.utils.checkpoint as ckpt

class Net(torch.nn.Module):
    def body(self, x):
        return x / x.max().item()  # expect: TL101

    def other(self, x, by):
        return by * x - x.min().item()  # expect: TL101

    def forward(self, x):
        x = checkpoint(self.body, x, use_reentrant=False)
        return ckpt.checkpoint(self.other, x, 2, use_reentrant=False)
""",
    "a recursion": """
import torch

def scale(x, depth):
    if depth == 0:
        return x / x.max().item()  # expect: TL101
    return scale(x, depth - 1)

def odd(x):
    return even(x + 1)

def even(x):
    if x.sum() > 0:  # expect: TL102
        return odd(x)
    return x

@torch.compile
def step(x):
    return scale(x, 3) + even(x)
""",
    "the same function with other arguments": """
import torch

def check(x):
    if x > 0:  # expect: TL102
        return 1
    return 2

@torch.compile
def step(x):
    return x * check(3) * check(x.shape[0]) * check(x.sum())
""",
    "wrappers inside each other": """
import functools
import torch

def logged(f):
    @functools.wraps(f)
    def inner(*args):
        return f(*args)
    return inner

@logged
def one(x):
    return two(x)

@logged
def two(x):
    return three(x)

@logged
def three(x):
    return four(x)

@logged
def four(x):
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    return one(x)
""",
    "modules of one class inside each other": """
import torch
from torch import nn

class Skip(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

model = Skip(Skip(Skip(Skip(Skip(Block())))))

@torch.compile
def step(x):
    return model(x)
""",
    "what is not compiled": """
import torch

def show(x):
    print(x.max().item())

class Trainer:
    def fit(self, x):
        show(step(x))

@torch.compile
def step(x):
    return x + 1
""",
}

OUTSIDE = {
    "stops at disable": """
import torch

@torch.compiler.disable
def bare(x):
    return x.max().item()

@torch.compiler.disable(reason="reads a value")
def reasoned(x):
    return x.max().item()

@torch.compile
def step(x):
    return x / reasoned(x)
""",
    "a forward that is disabled": """
import torch

class Net(torch.nn.Module):
    @torch.compiler.disable(recursive=True, reason="reads values")
    def forward(self, x):
        return x / x.max().item()
""",
    "stops at operators of one's own": """
import torch

@torch.library.custom_op("mine::scale", mutates_args=())
def scale(x: torch.Tensor) -> torch.Tensor:
    return x / x.max().item()

@torch.compile
def step(x):
    y = scale(x)
    if y.sum() > 0:  # expect: TL102
        return y
    return x
""",
    "other libraries": """
import torch
import einops
from timm.layers import DropPath
from elsewhere import Block, helper

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = DropPath(0.1)
        self.block = Block()

    def forward(self, x):
        y = einops.rearrange(x, "a b -> b a")
        z = self.drop(self.block(y))
        if helper(3) > 2:
            return y
        for part in self.block.parts:
            z = z + part
        return z
""",
}


MORE = {
    "a part of an attribute's name is a string": """
import torch

class Net(torch.nn.Module):
    def forward(self, x, kind):
        scale = getattr(self, f"{kind}_scale")
        if kind > "b":  # ok: TL102
            x = x + 1
        return x * scale / x.max().item()  # expect: TL101
""",
    "the forward of an autograd.Function": """
import torch
from torch.autograd import Function

class Scale(Function):
    @staticmethod
    def forward(ctx, x, by):
        ctx.save_for_backward(x)
        return x * by if x.sum() > 0 else x  # expect: TL102

    @staticmethod
    def backward(ctx, grad):
        return grad, None

class Shift(Function):
    @staticmethod
    def forward(x, by):
        return x + by.item()  # expect: TL101

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

@torch.compile
def root(x):
    return Shift.apply(Scale.apply(x, 2), x.max())
""",
    "a set keeps equal constants once": """
import torch

KINDS = ["a", "b", "a", "b"]

@torch.compile
def root(x):
    if len(set(KINDS)) == 2 and len({"a", "a"}) == 1:
        return x / x.max().item()  # expect: TL101
    return x.min().item()  # ok: TL101
""",
    "a field that is None until it is set": """
import torch
from dataclasses import dataclass

@dataclass
class Config:
    sizes: list | None = None

class Net(torch.nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config

    def forward(self, x):
        if not isinstance(self.config.sizes, list):
            raise TypeError("sizes")
        return x / x.max().item()  # expect: TL101
""",
    "what may be None is walked over where it is not": """
import torch

class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, sizes: torch.Tensor | None = None):
        for part, size in zip(x, sizes):
            height, width = size
            x = x + part.reshape(height, width).sum()  # expect: TL107
        return x
""",
    "a function of autograd": """
import torch

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return grad * grad.max().item()

@torch.compile
def step(x):
    y = Double.apply(x)
    if y.sum() > 0:  # expect: TL102
        return y
    return x
""",
    "a layer of torch as a base": """
import torch

class Scaled(torch.nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        if y.sum() > 0:  # expect: TL102
            return y * self.weight.max().item()  # expect: TL101
        return torch.nn.functional.linear(x, self.weight, self.bias)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scaled = Scaled(3, 3, bias=False)

    def forward(self, x):
        return self.scaled(x)
""",
    "a base under another name": """
import torch

Base = torch.nn.Module

class Layer(Base):
    pass

class Net(Layer):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101
""",
    "a base from elsewhere": """
import torch
from framework import Model

class Net(Model):
    def __init__(self, config):
        super().__init__(config)
        self.linear = torch.nn.Linear(3, 3)
        self.post_init()

    def forward(self, x):
        x = self.prepare(x)
        y = self.linear(x)
        if y.sum() > 0:  # expect: TL102
            return y
        return x
""",
    "a class under construction": """
import torch

class Net(torch.nn.Module):
    def __init__(self, kind="a"):
        super().__init__()
        self.act = {"a": torch.relu, "b": scale}[kind]
        self.choose = scale if kind == "b" else torch.relu

    def forward(self, x, flag: bool = False):
        part = self.one if flag else self.two
        x = part(self.choose(x))
        return (scale if flag else torch.relu)(self.act(x))

    def one(self, x):
        return x - x.min().item()  # expect: TL101

    def two(self, x):
        return x - x.mean().item()  # expect: TL101

def scale(x):
    return x / x.max().item()  # expect: TL101
""",
    "numbered attributes": """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x / x.max().item()  # expect: TL101

class Net(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        for i in range(depth):
            setattr(self, f"block{i}", Block())
        self.depth = depth

    def forward(self, x):
        for i in range(self.depth):
            x = getattr(self, f"block{i}")(x)
        return x
""",
    "children": """
import torch
from torch import nn

class Block:
    def __call__(self, x):
        return x / x.max().item()

class Inner(nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # expect: TL102
            return x
        return x + 1

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.inner = Inner()

    def forward(self, x):
        for child in self.children():
            x = child(x)
        for name, child in self.named_children():
            x = child(x)
        return x
""",
    "conditional operators of torch": """
import torch

def scale(x):
    return x * 2

def shift(x):
    return x + 1

@torch.compile
def step(x):
    y = torch.cond(x.sum() > 0, scale, shift, (x,))
    y = torch.func.vmap(shift)(y)
    if y.sum() > 0:  # expect: TL102
        return y
    return torch.where(x > 0, x, y)
""",
    "a contextmanager or none": """
import contextlib
import torch

@torch.compile
def step(x, fast: bool = False):
    context = torch.autocast("cpu") if fast else contextlib.nullcontext()
    with context, torch.no_grad():
        y = x @ x
    with torch.set_grad_enabled(fast):
        y = y + 1
    if y.sum() > 0:  # expect: TL102
        return y
    return x
""",
    "enumerations": """
import enum
import torch

class Kind(enum.Enum):
    A = "a"
    B = "b"

class Level(enum.IntEnum):
    LOW = 1

@torch.compile
def step(x, kind: Kind = Kind.A):
    if kind == Kind.A or kind is Kind.B or kind.value == "a":
        x = x + Level.LOW
    if Level.LOW > 2 or kind in (Kind.A, Kind.B):
        x = x / x.max().item()  # expect: TL101
    match kind:
        case Kind.A:
            return x - x.min().item()  # expect: TL101
    return x
""",
    "arguments by name": """
import torch

def attend(x, **kwargs):
    mask = kwargs.pop("mask", None)
    scale = kwargs.get("scale", 2)
    if mask is not None and mask.all():  # expect: TL102
        return x * scale
    if "bias" in kwargs:
        x = x + kwargs["bias"]
    return x

@torch.compile
def step(x, **kwargs):
    attend(x)
    options = dict(mask=x > 0)
    options.update(scale=3)
    return attend(x, **options)
""",
    "a table that gets a key under a condition": """
import torch

def attend(x, **kwargs):
    if kwargs.get("verbose", False):
        print("verbose")
    if "mask" in kwargs:
        if kwargs["mask"].all():  # expect: TL102
            return x
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x, mask: bool = False):
    options = {"bias": x}
    if mask:
        options["mask"] = x > 0
    return attend(x, **options)
""",
    "a loop that leaves": """
import torch

@torch.compile
def step(x, parts: list[torch.Tensor]):
    best = None
    for part in parts:
        if part.shape[0] > 3:
            best = part
            break
    else:
        best = x
    if best.sum() > 0:  # expect: TL102
        return best
    for row in x:
        x = x + row
    return x
""",
    "a value that comes back on one of several ways": """
import torch

def pick(x, n: int):
    if n > 3:
        return x, None
    elif n > 2:
        return x.sum(), x
    return None, None

@torch.compile
def step(x, n: int):
    first, second = pick(x, n)
    if first is None:
        return x
    if second is not None and second.sum() > 0:  # expect: TL102
        return x
    if first.sum() > 0:  # expect: TL102
        return x
    return x + 1
""",
    "try and finally": """
import torch

@torch.compile
def step(x):
    try:
        y = x.sum()
    finally:
        z = x + 1
    if y > 0:  # expect: TL102
        return z
    try:
        return x.abs()
    except ValueError:
        raise
    finally:
        x = x + 1
""",
    "methods that hand on": """
import torch

class Wrapper(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)

class Net(torch.nn.Module):
    def forward(self, x, flag=False):
        return x / x.max().item()  # expect: TL101

model = torch.compile(Wrapper(Net()))
""",
    "a property by call": """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def _get_largest(self):
        return self.weight.max().item()  # expect: TL101

    largest = property(_get_largest)

    def forward(self, x):
        return x / self.largest
""",
    "parameters in a list": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(3)])
        self.table = nn.ParameterDict({"a": nn.Parameter(torch.ones(3))})

    def forward(self, x):
        for weight in self.weights:
            if weight.sum() > 0:  # expect: TL102
                x = x * weight
        if self.table["a"].sum() > 0:  # expect: TL102
            x = x + 1
        for parameter in self.parameters():
            if parameter.sum() > 0:  # expect: TL102
                x = x + 1
        return x
""",
    "disable of one frame": """
import torch

def inner(x):
    return x / x.max().item()  # todo: TL101

@torch.compiler.disable(recursive=False)
def outer(x):
    print(x)
    return inner(x)

@torch.compile
def step(x):
    return outer(x)  # expect: TL141
""",
    "scripted": """
import torch

@torch.jit.script
def scale(x: torch.Tensor):
    return x / float(x.max())

@torch.compile
def step(x):
    y = scale(x)
    if y.sum() > 0:  # expect: TL102
        return y
    return x
""",
    "a compiled function calls another": """
import torch

@torch.compile
def inner(x):
    return x / x.max().item()  # expect: TL101

@torch.compile
def step(x):
    y = inner(x)
    if y.sum() > 0:  # expect: TL102
        return y
    return x
""",
    "torch.where, given values by position": """
import torch

class Net(torch.nn.Module):
    def forward(self, x, y, mask):
        kept = torch.where(mask > 0, x, torch.zeros_like(x))
        if kept.max() > 0:  # expect: TL102
            return kept
        ones = torch.where(mask > 0, 1.0, 0.0)
        rows, columns = torch.where(mask)  # expect: TL105
        return kept[rows] + ones.sum()
""",
    "an optional argument that is used as only a tensor can be": """
import torch

class Net(torch.nn.Module):
    def forward(self, x, mask=None, other=None):
        if mask is not None:
            x = x * mask[:, None]
            if 0.0 in mask:  # expect: TL102
                x = x + 1
        if other is not None and other > 3:  # possible: TL102
            x = x + 1
        return x
""",
    "a method that the module's own code calls on one of two alike": """
import torch

class Scheduler:
    def __init__(self):
        self.timesteps = torch.linspace(0, 1, 8)
        self.begin = None

    def begin_at(self, index):
        self.begin = index

    def step(self, x, t):
        if self.begin is None:
            return x * (self.timesteps == t).nonzero()[0].item()  # expect: TL101, TL105
        return x * self.begin

first = Scheduler()
second = Scheduler()
second.begin_at(0)

class Net(torch.nn.Module):
    def forward(self, x, t):
        return first.step(x, t)
""",
    "classes made of containers": """
import collections
import torch

class Scale:
    def __call__(self, x):
        return x / x.max().item()  # expect: TL101

class Chain(list):
    def __call__(self, x):
        for one in self:
            x = one(x)
        return x

chain = Chain([Scale()])
found = collections.defaultdict(dict)
parts = collections.defaultdict(list)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = collections.defaultdict(lambda: torch.zeros(()))

    def forward(self, x, key: str):
        x = chain(x)
        found[key] = {"first": x, "last": x + 1}
        if self.seen[key] > 0:  # expect: TL102
            x = x + 1
        if sum(v.item() for v in found[key].values()):  # expect: TL101
            return x
        return x - len(parts[key])
""",
    "what an object does when it is made": """
import torch
from dataclasses import dataclass

class Positive:
    def check(self, value):
        return value > 0

class Distribution:
    constraints = {}

    def __init__(self, validate=True):
        if validate:
            for name, constraint in self.constraints.items():
                if not constraint.check(getattr(self, name)).all():  # expect: TL102
                    raise ValueError(name)

class Normal(Distribution):
    constraints = {"scale": Positive()}

    def __init__(self, loc, scale, validate=True):
        self.loc, self.scale, self.count = loc, scale, 0
        super().__init__(validate)

@dataclass
class Box:
    low: torch.Tensor
    high: torch.Tensor

    def __post_init__(self):
        if (self.low > self.high).any():  # expect: TL102
            raise ValueError("empty")

@torch.compile
def step(loc, scale):
    normal = Normal(loc, scale)
    box = Box(loc, loc + scale)
    if normal.count > 3:
        return loc
    return normal.scale * box.high

@torch.compile
def unchecked(loc, scale):
    return Normal(loc, scale, validate=False).loc
""",
    "tables that decorators fill": """
# file: main.py
import torch
from tables import LAYERS, OPS, put
import parts

KEPT = {}

def kept(key, make):
    if key in KEPT:
        return KEPT[key]
    KEPT[key] = make()
    return KEPT[key]

@put("shift")
def shift(x):
    return x - x.min().item()  # expect: TL101

@torch.compile
def step(x, name: str):
    x = OPS[name](x)
    mean = kept("mean", lambda: x.mean())
    if kept("mean", lambda: x.mean()) > 0:  # expect: TL102
        return mean
    return LAYERS.get("last")(x)
# file: tables.py
OPS = {}

def put(name):
    def note(f):
        OPS[name] = f
        return f
    return note

class Registry:
    def __init__(self):
        self.found = {}

    def put(self, name):
        def note(cls):
            self.found[name] = cls
            return cls
        return note

    def get(self, name):
        return self.found[name]()

LAYERS = Registry()
# file: parts.py
from tables import LAYERS, put

@put("scale")
def scale(x):
    return x / x.max().item()  # expect: TL101

@LAYERS.put("last")
class Last:
    def __call__(self, x):
        return x / x.mean().item()  # expect: TL101
""",
    "a table that a module's own statements fill": """
import torch

def scale(x):
    return x / x.max().item()  # expect: TL101

OPS = {}
OPS["scale"] = scale
OPS["abs"] = torch.abs

@torch.compile
def step(x, name: str):
    if "sin" in OPS and x.sum() > 0:
        return x
    return OPS["abs"](OPS[name](x))
""",
}


def cases(table: dict[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in table.items()])


@cases(METHODS)
def test_methods(text: str, tmp_path: Path) -> None:
    follow(tmp_path, text)


@cases(ATTRIBUTES)
def test_attributes(text: str, tmp_path: Path) -> None:
    follow(tmp_path, text)


@cases(CONTAINERS)
def test_containers(text: str, tmp_path: Path) -> None:
    follow(tmp_path, text)


@cases(FUNCTIONS)
def test_functions(text: str, tmp_path: Path) -> None:
    follow(tmp_path, text)


@cases(OUTSIDE)
def test_where_it_stops(text: str, tmp_path: Path) -> None:
    follow(tmp_path, text)


@cases(MORE)
def test_more(text: str, tmp_path: Path) -> None:
    follow(tmp_path, text)


def follow(folder: Path, text: str) -> None:
    """Check what the one root reaches: `Net` where nothing is compiled. No other `forward` is entered on its own."""
    check(folder, text, roots="explicit", root=() if "torch.compile" in text else ("main:Net",))


def test_a_helper_of_many_callers_hands_each_its_own(tmp_path: Path) -> None:
    """Beyond the budget of contexts arguments are widened, but neither mixed nor answered with another's result."""
    blocks = "".join(
        f"""
class Block{i}(nn.Module):
    def forward(self, x, size: tuple[int, int]):
        h, w = size
        if h > w:
            x = x + {i}
        return x, size
"""
        for i in range(40)
    )
    held = "".join(f"        self.block{i} = Block{i}()\n" for i in range(40))
    calls = "".join(f"        x, size = run(self.block{i}, x, size)\n" for i in range(40))
    follow(
        tmp_path,
        f"""
import torch
from torch import nn

def run(f, *args, **kwargs):
    return f(*args, **kwargs)
{blocks}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
{held}
    def forward(self, x):
        size = x.shape[:2]
{calls}
        h, w = size
        if h > w:
            x = x + 1
        y = run(torch.relu, x)
        if y.sum() > 0:  # expect: TL102
            return y
        return x.reshape(h, w)
""",
    )
