"""Problems in the style of public kernel suites, and a script that takes them all to machine code.

    python tests/kernel_suite.py [NAME…] [--gpu h100 --gpu a100] [--jobs N]

prints a line a problem and exits 1 if one does not get there. Run it once a supported torch; it takes minutes.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Problem:
    """`make` gives the function or module and its arguments; `train` compiles the backward too."""

    name: str
    make: Callable[[], tuple[Any, tuple[Any, ...]]]
    train: bool
    dynamic: bool | None


PROBLEMS: dict[str, Problem] = {}


def problem(*, train: bool = False, dynamic: bool | None = None) -> Callable[..., Any]:
    def register(make: Callable[[], tuple[Any, tuple[Any, ...]]]) -> Callable[..., Any]:
        PROBLEMS[make.__name__] = Problem(make.__name__, make, train, dynamic)
        return make

    return register


def rand(*size: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> torch.Tensor:
    return torch.randn(*size, dtype=dtype).requires_grad_(grad)


# --- elementwise, reductions, scans


@problem()
def elementwise():
    return lambda x, y: F.gelu(x * y + 1).clamp(-1, 1).sigmoid() - x.abs().sqrt(), (rand(64, 1024), rand(1024))


@problem()
def swiglu():
    return lambda x, y: F.silu(x) * y, (rand(64, 1024, dtype=torch.bfloat16), rand(64, 1024, dtype=torch.bfloat16))


@problem(dynamic=True)
def elementwise_dynamic():
    return lambda x: (x.exp() + x.size(0)).mean(-1), (rand(37, 129),)


@problem()
def reductions():
    return lambda x: (x.sum(-1), x.amax(0), x.var(1), x.prod(-1), x.argmin(-1), x.norm(dim=-1)), (rand(128, 4096),)


@problem()
def full_reduction():
    return lambda x: x.square().mean(), (rand(1024, 4096),)


@problem()
def softmax_wide():
    return lambda x: (x.softmax(-1), x.log_softmax(-1)), (rand(16, 65536),)


@problem(train=True)
def softmax_dynamic():
    return lambda x: x.softmax(-1), (rand(33, 257, grad=True),)


@problem()
def cumulative():
    return lambda x: (x.cumsum(-1), x.cumprod(-1), x.cumsum(0).flip(0), x.logcumsumexp(1)), (rand(32, 513),)


@problem()
def sort_and_topk():
    return lambda x: (x.sort(-1), x.topk(8, -1), x.argsort(-1)), (rand(64, 512),)


@problem()
def integer_ops():
    return lambda x, y: (x // (y | 1), x % 7, x << 2, x ^ y), (torch.arange(4096), torch.arange(4096))


# --- matrices


@problem()
def matmul():
    return lambda a, b: a @ b, (rand(256, 512), rand(512, 128))


@problem()
def matvec():
    return lambda a, b: a @ b, (rand(256, 1024), rand(1024))


@problem()
def outer_and_diagonal():
    return lambda a, b: (torch.outer(a, b).tril(), torch.diag(a) @ b), (rand(128), rand(128))


@problem(train=True)
def batched_einsum():
    return lambda a, b: torch.einsum("bij,bkj->bik", a, b).relu(), (rand(8, 32, 64, grad=True), rand(8, 16, 64))


@problem()
def matmul_one_row():
    return lambda a, b, c: torch.addmm(c, a, b), (rand(1, 16), rand(16, 16), rand(16))


# --- convolution and pooling


@problem()
def conv_bn_eval():
    return nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU()).eval(), (rand(4, 3, 32, 32),)


@problem(train=True)
def conv_bn_train():
    return nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU()), (rand(4, 3, 32, 32),)


@problem()
def conv1d_dilated():
    return nn.Sequential(nn.Conv1d(8, 16, 5, dilation=2, groups=4), nn.Hardswish()), (rand(4, 8, 256),)


@problem()
def conv3d_transposed():
    return nn.ConvTranspose3d(4, 8, 3, stride=2, output_padding=1), (rand(2, 4, 8, 8, 8),)


@problem(train=True)
def depthwise_separable():
    return nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 16, 1)), (rand(2, 8, 16, 16, grad=True),)


@problem(train=True)
def pooling():
    def pooled(x):
        return F.max_pool2d(x, 2), F.avg_pool2d(x, 3), F.adaptive_avg_pool2d(x, 1), F.max_pool2d(x, 5, 2, 2)

    return pooled, (rand(2, 8, 32, 32, grad=True),)


@problem(train=True)
def upsampling():
    def resized(x):
        return F.interpolate(x, scale_factor=2), F.interpolate(x, size=(48, 48), mode="bilinear", antialias=False)

    return resized, (rand(2, 3, 32, 32, grad=True),)


@problem()
def grid_sample():
    return lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), (rand(2, 3, 16, 16), rand(2, 8, 8, 2))


# --- normalisation


@problem(train=True)
def layer_norm():
    return nn.LayerNorm(768), (rand(64, 768, grad=True),)


@problem(train=True)
def rms_norm():
    return nn.RMSNorm(512), (rand(64, 512, grad=True),)


@problem(train=True)
def group_norm():
    return nn.Sequential(nn.GroupNorm(4, 16), nn.SiLU()), (rand(4, 16, 16, 16, grad=True),)


@problem()
def instance_norm_and_l2():
    return lambda x: F.normalize(F.instance_norm(x), dim=1), (rand(4, 16, 16, 16),)


# --- attention


@problem(train=True)
def attention():
    q, k, v = (rand(2, 4, 128, 64, grad=True) for _ in range(3))
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (q, k, v)


@problem(train=True)
def attention_half_causal():
    q, k, v = (rand(2, 4, 128, 64, dtype=torch.float16, grad=True) for _ in range(3))
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v)


@problem(train=True)
def attention_bool_mask():
    q, k, v = (rand(2, 4, 100, 64, grad=True) for _ in range(3))
    mask = torch.ones(100, 100, dtype=torch.bool).tril()
    return lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), (q, k, v, mask)


@problem()
def attention_grouped_query():
    q = rand(2, 8, 64, 64, dtype=torch.bfloat16)
    k, v = (rand(2, 2, 64, 64, dtype=torch.bfloat16) for _ in range(2))
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), (q, k, v)


@problem()
def attention_odd_head():
    q, k, v = (rand(2, 4, 64, 50, dtype=torch.float16) for _ in range(3))
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (q, k, v)


@problem()
def attention_three_dimensional():
    q, k, v = (rand(4, 64, 33) for _ in range(3))
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (q, k, v)


@problem(train=True)
def attention_by_hand():
    def attend(q, k, v):
        return (q @ k.transpose(-2, -1) / math.sqrt(64)).softmax(-1) @ v

    return attend, tuple(rand(2, 4, 64, 64, grad=True) for _ in range(3))


@problem(train=True)
def multihead_attention():
    attend = nn.MultiheadAttention(64, 4, dropout=0.1, batch_first=True)
    return lambda x: attend(x, x, x, need_weights=False)[0], (rand(2, 32, 64),)


# --- indexing and embedding


@problem(train=True)
def embedding():
    return nn.Embedding(1000, 64, padding_idx=0), (torch.randint(0, 1000, (8, 32)),)


@problem()
def embedding_bag():
    return nn.EmbeddingBag(1000, 64, mode="sum"), (torch.randint(0, 1000, (8, 32)),)


@problem(train=True)
def gather_and_scatter():
    def moved(x, i):
        return torch.zeros_like(x).scatter_add(1, i, x), x.gather(1, i), x.scatter_reduce(1, i, x, "amax")

    return moved, (rand(16, 64, grad=True), torch.randint(0, 64, (16, 64)))


@problem(train=True)
def index_put_and_select():
    def indexed(x, i):
        return x.index_add(0, i, x), x[i], x.index_select(0, i), torch.where(x > 0, x, x[0])

    return indexed, (rand(16, 64, grad=True), torch.randint(0, 16, (16,)))


@problem()
def cat_stack_pad_roll():
    return lambda x, y: (F.pad(torch.cat([x, y], 1), (1, 2)), torch.stack([x, y]).roll(3, -1)), (
        rand(8, 32),
        rand(8, 32),
    )


@problem()
def nonzero_sized():
    return lambda x: x[x > 0].cumsum(0) * 2, (rand(512),)


@problem()
def tensor_constants():
    def weighed(x):
        kernel = torch.tensor([[0.1, 0.2, 0.1], [0.2, 0.4, 0.2], [0.1, 0.2, 0.1]])
        return F.conv2d(x, kernel[None, None]) * torch.tensor(3.0) + torch.tensor([1.0, 2.0])[0]

    return weighed, (rand(2, 1, 16, 16),)


# --- losses


@problem(train=True)
def cross_entropy():
    return lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), (
        rand(64, 1000, grad=True),
        torch.randint(0, 1000, (64,)),
    )


@problem(train=True)
def regression_losses():
    def losses(x, y):
        return F.smooth_l1_loss(x, y) + F.huber_loss(x, y) + F.mse_loss(x, y) + F.l1_loss(x, y)

    return losses, (rand(64, 128, grad=True), rand(64, 128))


@problem(train=True)
def contrastive_losses():
    def losses(a, b, c):
        return F.triplet_margin_loss(a, b, c) + F.cosine_embedding_loss(a, b, torch.ones(32)) + F.logsigmoid(a).mean()

    return losses, (rand(32, 64, grad=True), rand(32, 64), rand(32, 64))


@problem(train=True)
def divergence_losses():
    def losses(x, y):
        return F.kl_div(x.log_softmax(-1), y.softmax(-1)) + F.binary_cross_entropy_with_logits(x, y.sigmoid())

    return losses, (rand(64, 128, grad=True), rand(64, 128))


# --- random, mutation, control flow


@problem(train=True)
def dropout():
    return nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.2), nn.AlphaDropout(0.1)), (rand(32, 64, grad=True),)


@problem()
def random_draws():
    return lambda x: x + torch.randn_like(x) * torch.rand(x.shape) + torch.randint(0, 3, x.shape), (rand(64, 64),)


@problem()
def mutated_inputs():
    def update(parameter, gradient, momentum):
        momentum.mul_(0.9).add_(gradient)
        parameter.sub_(momentum, alpha=0.1)
        return parameter.norm()

    return update, (rand(256, 256), rand(256, 256), rand(256, 256))


@problem()
def conditional():
    def branch(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: (x @ x).cos(), (x,))

    return branch, (rand(64, 64),)


@problem(train=True)
def recurrent_by_hand():
    cell, out = nn.GRUCell(32, 32), nn.Linear(32, 8)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.out = cell, out

        def forward(self, xs):
            state = xs.new_zeros(xs.size(1), 32)
            for x in xs:
                state = self.cell(x, state)
            return self.out(state)

    return Recurrent(), (rand(5, 16, 32),)


# --- whole small networks


@problem(train=True)
def mlp():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10)), (
        rand(32, 64),
    )


@problem(train=True)
def cnn():
    def block(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))

    return nn.Sequential(block(3, 8), block(8, 16), nn.Flatten(), nn.Linear(16 * 64, 10)), (rand(4, 3, 32, 32),)


@problem()
def residual_block_eval():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
            self.na, self.nb = nn.BatchNorm2d(16), nn.BatchNorm2d(16)

        def forward(self, x):
            return F.relu(x + self.nb(self.b(F.relu(self.na(self.a(x))))))

    return Residual().eval(), (rand(2, 16, 32, 32),)


@problem(train=True)
def transformer_block():
    return nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), (rand(2, 32, 64),)


@problem()
def transformer_block_eval():
    return nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval(), (rand(2, 32, 64),)


@problem(train=True)
def autocast_mlp():
    net = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 8))

    def forward(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return net(x).float().sum()

    return forward, (rand(32, 64),)


@problem(train=True, dynamic=True)
def mlp_dynamic():
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10)), (rand(33, 64),)


def worker() -> ModuleType:
    """The module as it is run: by path, with nothing of tlint."""
    spec = importlib.util.spec_from_file_location("lowering", ROOT / "compiler" / "worker" / "lowering.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["lowering"] = module
    spec.loader.exec_module(module)
    return module


def gpus(*names: str) -> list[dict[str, Any]]:
    known = tomllib.loads((ROOT / "compiler" / "gpus.toml").read_text(encoding="utf-8"))
    return [known[name] for name in names]


def lower(name: str, devices: list[dict[str, Any]], jobs: int = 1) -> dict[str, Any]:
    """Take one problem to machine code."""
    asked = PROBLEMS[name]
    torch.manual_seed(0)
    fn, args = asked.make()
    return worker().lower(fn, args, {}, train=asked.train, gpus=devices, jobs=jobs, dynamic=asked.dynamic)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--gpu", action="append")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    devices, reached, began = gpus(*(options.gpu or ("h100", "a100"))), 0, time.perf_counter()
    print(f"torch {torch.__version__}; ops forward, backward; kernels, extern calls, bytes; built per architecture")
    for name in options.names:
        start = time.perf_counter()
        result = lower(name, devices, options.jobs)
        reached += result["gate"] == "pass"
        figures = [*(result["aot"] or {}).values(), *(result["inductor"] or {}).values()]
        built = " ".join(f"{arch}:{one['compiled']}/{one['kernels']}" for arch, one in (result["triton"] or {}).items())
        seconds = time.perf_counter() - start
        print(f"{result['gate']:8}{name:28}{''.join(f'{figure:10}' for figure in figures)}  {built}  {seconds:.1f} s")
        if result["gate"] != "pass":
            print(f"        {result['phase']}: {result['detail']}")
    print(f"{reached} of {len(options.names)} in {time.perf_counter() - began:.0f} s")
    return 0 if reached == len(options.names) else 1


if __name__ == "__main__":
    sys.exit(main())
