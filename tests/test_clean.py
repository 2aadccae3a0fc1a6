"""Right code, as people write it: it compiles as one graph (tried with torch 2.13), so nothing may be found in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import check

CLEAN = {
    "attention": """
import math
from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self, dim: int, heads: int = 2, bias: bool = False, dropout: float = 0.0):
        super().__init__()
        assert dim % heads == 0, f"{dim} is not divisible by {heads}"
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim, bias=bias)
        self.out = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout) if dropout > 0 else nn.Identity()
        self.norm: Optional[nn.Module] = nn.LayerNorm(dim)
        self.register_buffer("cos", torch.ones(16, dim // heads), persistent=False)

    def rotate(self, x):
        left, right = x.chunk(2, dim=-1)
        return torch.cat((-right, left), dim=-1)

    def forward(self, x, mask: Optional[torch.Tensor] = None, *, causal: bool = True, need_weights=False):
        b, n, d = x.shape
        if self.norm is not None:
            x = self.norm(x)
        q, k, v = (t.reshape(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        cos = self.cos[:n]
        q = q * cos + self.rotate(q)
        scores = q @ k.transpose(-2, -1) * self.scale / math.sqrt(self.heads)
        if causal and n > 1:
            keep = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
            scores = scores.masked_fill(~keep, float("-inf"))
        if mask is not None:
            if mask.dim() == 2:
                mask = mask[:, None, None, :]
            if mask.dtype == torch.bool:
                scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
            else:
                scores = scores + mask
        weights = self.dropout(scores.softmax(dim=-1))
        y = (weights @ v).transpose(1, 2).reshape(b, n, d)
        y = self.out(y)
        return (y, weights) if need_weights else y

    def extra_repr(self) -> str:
        return f"heads={self.heads}"

class Net(nn.Module):
    def __init__(self, dim=8, depth=2):
        super().__init__()
        self.layers = nn.ModuleList(Attention(dim) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.GELU(), nn.Linear(dim, 4))

    def forward(self, x, mask=None, labels=None):
        hidden = []
        for i, layer in enumerate(self.layers):
            x = x + layer(x, mask, causal=i % 2 == 0)
            hidden.append(x)
        logits = self.head(x)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        return {"loss": loss, "logits": logits, "hidden": tuple(hidden)}

model = torch.compile(Net(), fullgraph=True)

def main():
    x = torch.randn(2, 5, 8)
    out = model(x, torch.ones(2, 5, dtype=torch.bool), torch.zeros(2, 5, dtype=torch.long))
    print(out["loss"].item(), out["logits"].argmax(-1).tolist())
    if out["loss"] > 3:
        print("high")
""",
    "a cache of keys and values": """
from dataclasses import dataclass, field

import torch
from torch import nn

@dataclass
class Config:
    dim: int = 8
    window: int | None = None
    dtype: torch.dtype = torch.float32
    steps: list = field(default_factory=list)

class Cache:
    def __init__(self, length: int):
        self.length = length
        self.keys: list[torch.Tensor] = []

    def update(self, key: torch.Tensor, layer: int) -> torch.Tensor:
        if layer >= len(self.keys):
            self.keys.append(key)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], key], dim=1)
        return self.keys[layer]

class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.linear = nn.Linear(config.dim, config.dim)

    def forward(self, x, cache: Cache | None = None, index: int = 0):
        key = self.linear(x).to(self.config.dtype)
        if cache is not None:
            key = cache.update(key, index)
        if self.config.window is not None and key.shape[1] > self.config.window:
            key = key[:, -self.config.window :]
        return x + key.mean(dim=1, keepdim=True)

class Net(nn.Module):
    def __init__(self, config: Config = Config()):
        super().__init__()
        self.blocks = nn.ModuleList([Block(config) for _ in range(2)])

    def forward(self, x, use_cache: bool = True):
        cache = Cache(16) if use_cache else None
        for index, block in enumerate(self.blocks):
            x = block(x, cache=cache, index=index)
        return x, cache.keys if cache is not None else None

model = torch.compile(Net())

def main():
    model(torch.randn(2, 3, 8))
""",
    "losses and updates": """
import torch
import torch.nn.functional as F

@torch.compile
def update(params: list[torch.Tensor], grads: list[torch.Tensor], lr: float = 0.1, clip: float | None = 1.0):
    with torch.no_grad():
        total = torch.stack([g.norm() for g in grads]).norm()
        if clip is not None:
            factor = torch.clamp(clip / (total + 1e-6), max=1.0)
            grads = [g * factor for g in grads]
        for p, g in zip(params, grads, strict=True):
            p.add_(g, alpha=-lr)
    return total

@torch.compile
def focal(logits: torch.Tensor, target: torch.Tensor, gamma: float = 2.0, reduction: str = "mean"):
    if logits.ndim != target.ndim + 1:
        raise ValueError(f"{tuple(logits.shape)} does not fit {tuple(target.shape)}")
    logp = F.log_softmax(logits.float(), dim=-1)
    p = logp.exp().gather(-1, target.unsqueeze(-1)).squeeze(-1)
    loss = -((1 - p) ** gamma) * p.log()
    loss = torch.where(target >= 0, loss, torch.zeros_like(loss))
    if reduction == "mean":
        return loss.sum() / (target >= 0).sum().clamp(min=1)
    return {"sum": loss.sum, "none": lambda: loss}[reduction]()

def main():
    history = []
    for step in range(2):
        total = update([torch.ones(3)], [torch.ones(3)])
        history.append(total.item())
        loss = focal(torch.randn(4, 5), torch.zeros(4, dtype=torch.long))
        if not torch.isfinite(loss):
            break
        print(f"step {step}: {loss:.3f}")
""",
    "shapes": """
import torch
from torch import Tensor

def pad_to(x: Tensor, multiple: int) -> tuple[Tensor, int]:
    missing = -x.shape[-1] % multiple
    if missing == 0:
        return x, 0
    return torch.nn.functional.pad(x, (0, missing)), missing

@torch.compile
def step(x: Tensor, sizes: tuple[int, ...] = (2, 4)):
    shape = x.size()
    rows, columns = shape[0], x.size(1)
    parts = []
    for size in sizes:
        y, missing = pad_to(x, size)
        if missing:
            y = y[..., :columns]
        parts.append(y)
    out = torch.cat(parts, dim=-1)
    assert out.shape[-1] == columns * len(sizes), (out.shape, sizes)
    if out.is_floating_point() and out.device.type in ("cpu", "cuda"):
        out = out.to(torch.float32)
    steps = torch.arange(rows, device=x.device)[:, None]
    first, *rest = out.split(columns, dim=1)
    best = max(rows, columns) if rows != columns else min(rows, 7)
    table = {str(i): part for i, part in enumerate(rest)}
    total = sum(part.sum() for part in table.values())
    index = [i for i in range(best) if i % 2]
    if "1" in table and len(index) > 1 and not torch.is_complex(x):
        total = total + first[:, index[0]].sum()
    return out.view(rows, -1, columns), total + steps.float().mean()

def main():
    step(torch.randn(3, 5))
""",
    "tensors that decide nothing": """
import torch

class Router(torch.nn.Module):
    def __init__(self, dim: int = 8, experts: int = 4, top: int = 2):
        super().__init__()
        self.gate = torch.nn.Linear(dim, experts)
        self.experts = torch.nn.ModuleList([torch.nn.Linear(dim, dim) for _ in range(experts)])
        self.top = top
        self.register_buffer("load", torch.zeros(experts))

    def forward(self, x):
        scores = self.gate(x).softmax(-1)
        weights, chosen = torch.topk(scores, self.top, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            share = torch.where(chosen == i, weights, 0.0).sum(-1, keepdim=True)
            out = out + share * expert(x)
        if self.training:
            self.load.copy_(0.9 * self.load + 0.1 * scores.mean((0, 1)))
        aux = torch.ones((), device=x.device)
        for part in scores.unbind(-1):
            aux = aux + part.mean() ** 2
        return out, aux if self.training else None

model = Router()
compiled = torch.compile(model, mode="default", dynamic=None)

def main():
    out, aux = compiled(torch.randn(2, 3, 8))
    out.sum().backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and parameter.grad.abs().max() > 1e6:
            print("large", name, parameter.grad.max().item())
""",
    "helpers that know they are compiled": """
import functools
import logging
import warnings

import torch

log = logging.getLogger(__name__)

def checked(f):
    @functools.wraps(f)
    def inner(x, *args, **kwargs):
        if not torch.compiler.is_compiling():
            if torch.isnan(x).any():
                warnings.warn("not a number")
            log.debug("%s %s", f.__name__, x.shape)
        return f(x, *args, **kwargs)
    return inner

@checked
def scale(x, by: float = 2.0):
    return x * by

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        if torch.zeros(1).item() > 0:
            print("never")
        self.count = int(torch.ones(1).sum())

    @torch.no_grad()
    def statistics(self, x):
        return x.mean().item()

    def forward(self, x):
        return scale(x, by=3.0) * self.count

compiled = torch.compile(Net(), fullgraph=True)

def main():
    x = torch.randn(3)
    compiled(x)
    log.info("mean %s", compiled.statistics(x) if False else x.mean().item())
""",
}


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found(name: str, tmp_path: Path) -> None:
    analysis = check(tmp_path, CLEAN[name])
    assert any(r.resolved for r in analysis.roots)
