"""What the worker sees of real targets, under this interpreter and every one of TLINT_TEST_PYTHONS."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tlint.analyzer.config import VerifySettings
from tlint.analyzer.model import Observation, Root, RootKind, Span, Target
from tlint.compiler import judge, runner, targets

PYTHONS = [sys.executable, *filter(None, os.environ.get("TLINT_TEST_PYTHONS", "").split(os.pathsep))]

FILES = {
    "pkg/__init__.py": "",
    "pkg/helpers.py": """
        def report(x):
            print("moyenne é", x.mean().item())
            return x
    """,
    "pkg/model.py": """
        import torch
        from torch import nn
        from .helpers import report


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                return report(self.layer(x)).relu()


        class Clean(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.layer = nn.Linear(width, width)

            def forward(self, x):
                return torch.nn.functional.gelu(self.layer(x))

            def loss(self, x):
                return self(x).mean()


        class Trainer:
            def __init__(self):
                self.net = Clean(4)

            def step(self, x):
                return self.net(x).sum()


        def get_init_inputs():
            return (4,)


        def get_inputs():
            return (torch.randn(2, 4),)
    """,
    "plain.py": """
        import torch
        from torch import nn


        def é(x): return ("é", x.sum().item())  # noqa


        def loop(x):
            for _ in range(3):
                if x.sum() > 0:
                    x = x + 1
            return x


        def generator(x):
            yield x + 1


        @torch.compiler.disable
        def outside(x):
            return x.mean()


        def intended(x):
            return x.sin() - outside(x)


        def short_circuit(x, flag=False):
            if flag and x.sum() > 0:
                return x
            return x.cos()


        def condition(x):
            if x.dtype == torch.float32 and (x.isinf().any() or x.isnan().any()):
                return x
            return x + 1


        @torch.compile(fullgraph=True)
        def compiled(x):
            return x * x.sum().item()


        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(4))

            def forward(self, x):
                if x.sum() > 0:
                    return x * self.weight
                return x


        class Decorated(Module):
            @torch.compile(fullgraph=True)
            def forward(self, x):
                if x.sum() > 0:
                    return x * self.weight
                return x


        instance = Module()
        in_place = Module()
        in_place.compile()
        wrapped = torch.compile(Module())
        optimizer = torch.optim.Adam(instance.parameters())


        def optimizer_step():
            optimizer.step()


        def accelerated(x):
            return x.to("cuda:0") + torch.ones(4, device="cuda")


        def synchronized(x):
            torch.cuda.synchronize()
            return x + 1


        def inner(x):
            if x.sum() > 0:
                x = x + 1
            return x


        def most(x):
            x = inner(x.sin().cos().exp().tanh())
            return x.sin().cos().exp().tanh().neg().abs()


        def outer(x):
            return most(x) * 2


        def once(x, seen=[]):
            if not seen:
                seen.append(1)
                print("first")
            return x + 1


        def tlint_inputs():
            x = torch.rand(2, 4)
            instance(x.abs()).sum().backward()
            functions = "é loop generator intended short_circuit condition compiled accelerated synchronized outer"
            modules = "Module Decorated instance in_place wrapped"
            return {
                **{name: (x,) for name in f"{functions} {modules}".split()},
                "optimizer_step": (),
                "once": ((x,), {"seen": []}),
            }
    """,
    "single.py": """
        import torch


        @torch.compile
        def root(x):
            return x + 1


        def other(x):
            return x + 2


        def tlint_inputs():
            return (torch.ones(2),)
    """,
    "made_up.py": """
        import torch
        from torch import nn


        class Layers(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(32, 4)  # the first, and not what `x` goes to
                self.body = nn.Linear(16, 32)

            def forward(self, x):
                return self.head(self.body(x))


        class Tokens(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Linear(4, 4)
                self.embedding = nn.Embedding(10, 4)

            def forward(self, features, tokens):
                return self.scale(features) + self.embedding(tokens).mean(1)


        weight = torch.randn(5, 6, 3, 3)


        def images(x):
            batch, channels, height, width = x.shape
            return torch.conv2d(x, weight).reshape(batch, -1)


        def sequence(x):
            batch, length, width = x.shape
            return torch.layer_norm(x, (24,)) + length
    """,
    "synthetic.py": """
        from torch import nn


        class Wide(nn.Module):
            def __init__(self, width: int):
                super().__init__()
                self.layer = nn.Linear(width, 3)

            def forward(self, x, scale: float):
                return self.layer(x) * scale


        class Unbuildable(nn.Module):
            def __init__(self, config):
                super().__init__()
    """,
}

TARGETS = [
    "pkg/model.py:Net",
    "pkg.model:Clean",
    "pkg/model.py:Clean.loss",
    "pkg/model.py:Trainer.step",
    *(
        f"plain.py:{name}"
        for name in "é loop generator intended short_circuit condition compiled accelerated synchronized outer once "
        "optimizer_step "
        "Module.forward Decorated instance in_place wrapped".split()
    ),
    "made_up.py:Layers",
    "made_up.py:Tokens",
    "made_up.py:images",
    "made_up.py:sequence",
    "synthetic.py:Wide",
    "synthetic.py:Unbuildable",
]


class Workspace:
    def __init__(self, root: Path):
        self.root = self.cwd = root
        self.reported = frozenset(root.rglob("*.py"))


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.strip("\n").splitlines()
        indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        path.write_text("".join(f"{line[indent:]}\n" for line in lines), encoding="utf-8")
    return root


def run(root: Path, names: list[str], python: str, **limits: object) -> dict[str, Observation]:
    located, errors = targets.locate(Workspace(root), names)
    assert not errors
    requests, errors = targets.discover(Workspace(root), (), located)
    assert not errors
    settings = replace(VerifySettings(), **limits)
    observations = runner.run(requests, settings, python, root)
    return dict(zip(names, observations, strict=True))


@pytest.fixture(scope="module", params=PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    if subprocess.run([request.param, "-c", "import torch"], capture_output=True).returncode:
        pytest.skip(f"{request.param} has no torch")
    return request.param


@pytest.fixture(scope="module")
def seen(python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Observation]:
    return run(write(tmp_path_factory.mktemp("project"), FILES), TARGETS, python)


def judged(observation: Observation) -> Target:
    return judge.judge((), [observation])[1][0]


def types(observation: Observation) -> list[str]:
    return [one.gb_type for one in observation.target.breaks]


ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"
BRANCH = "Data-dependent branching"


def test_clean_target_reaches_machine_code(seen: dict[str, Observation]) -> None:
    target = judged(seen["pkg.model:Clean"])
    assert (target.status, target.gate, target.detail) == ("fullgraph", "pass", "")
    assert target.train and target.inputs == "declared"
    assert target.stages["dynamo"] == {"graphs": 1, "ops": 2}
    assert target.stages["aot"]["backward_ops"] > 0
    triton = target.stages["triton"]["sm_90"]
    assert triton["kernels"] == triton["compiled"] > 0
    assert target.torch and target.python and target.triton and target.peak_bytes and target.seconds


def test_breaks_of_helpers_lie_where_they_arise(seen: dict[str, Observation]) -> None:
    target = judged(seen["pkg/model.py:Net"])
    assert target.status == "breaks"
    assert target.name == "pkg.model:Net"
    assert {one.path for one in target.breaks} == {"pkg/helpers.py"}
    item = next(one for one in target.breaks if one.gb_type == ITEM)
    assert item.stack == (("pkg/model.py", 12, "Net.forward"), ("pkg/helpers.py", 2, "report"))
    assert item.gb_id == "GB0124"


def test_columns_count_code_points_from_1(seen: dict[str, Observation]) -> None:
    (item,) = seen["plain.py:é"].target.breaks
    assert item.span == Span(5, 24, 5, 38)


def test_break_in_a_loop_is_its_cause_with_the_frame_lost(seen: dict[str, Observation]) -> None:
    (branch,) = seen["plain.py:loop"].target.breaks
    assert (branch.gb_type, branch.frame_lost, branch.line) == (BRANCH, True, 10)
    assert branch.span == Span(10, 12, 10, 23)


def test_jump_is_placed_at_the_operand_that_it_tests(seen: dict[str, Observation]) -> None:
    breaks = seen["plain.py:condition"].target.breaks
    assert [one.span for one in breaks] == [Span(35, 38, 35, 53), Span(35, 57, 35, 72)]


def test_frames_that_dynamo_skips_in_silence_are_breaks(seen: dict[str, Observation]) -> None:
    (generator,) = seen["plain.py:generator"].target.breaks
    assert (generator.gb_type, generator.frame_lost) == ("Attempt to trace generator", True)
    assert generator.line == 15


def test_what_the_user_or_torch_asked_for_is_intended(seen: dict[str, Observation]) -> None:
    disabled = judged(seen["plain.py:intended"])
    assert disabled.status == "intended_breaks"
    assert [one.intended for one in disabled.breaks] == [True]
    optimizer = judged(seen["plain.py:optimizer_step"])
    assert all(one.intended for one in optimizer.breaks if one.gb_type.startswith("Call to"))


def test_each_target_is_run_by_us_however_it_was_compiled(seen: dict[str, Observation]) -> None:
    assert types(seen["plain.py:compiled"]) == [ITEM]
    for name in "Module.forward Decorated instance in_place wrapped".split():
        observation = seen[f"plain.py:{name}"]
        assert (types(observation), judged(observation).status) == ([BRANCH], "breaks"), name
    for name in ("pkg/model.py:Trainer.step", "pkg/model.py:Clean.loss"):
        assert judged(seen[name]).status == "fullgraph", name


def test_executed_spans_tell_what_a_short_circuit_left_out(seen: dict[str, Observation]) -> None:
    executed = seen["plain.py:short_circuit"].executed["plain.py"]
    assert Span(29, 8, 29, 12) in executed  # flag
    assert Span(29, 17, 29, 28) not in executed  # x.sum() > 0
    assert Span(31, 12, 31, 19) in executed  # x.cos()


def test_accelerators_are_mapped_to_the_cpu(seen: dict[str, Observation]) -> None:
    target = judged(seen["plain.py:accelerated"])
    assert (target.status, target.detail) == ("fullgraph", "")
    assert target.config["accelerator_devices_mapped_to_cpu"] == 2


def test_each_stage_starts_from_the_same_state(seen: dict[str, Observation]) -> None:
    observation = seen["plain.py:once"]
    assert observation.target.breaks
    assert observation.target.gate == "fail"


@pytest.mark.parametrize(
    ("name", "assumed"),
    [
        ("Layers", ("x: (2, 16) float32",)),
        ("Tokens", ("features: (2, 4) float32", "tokens: (2, 4) int64")),
        ("images", ("x: (2, 6, 32, 32) float32",)),
        ("sequence", ("x: (2, 4, 24) float32",)),
    ],
)
def test_errors_say_what_inputs_fit(seen: dict[str, Observation], name: str, assumed: tuple[str, ...]) -> None:
    target = judged(seen[f"made_up.py:{name}"])
    assert (target.status, target.inputs, target.assumed) == ("fullgraph", "synthesised", assumed)


def test_inputs_are_made_up_where_none_are_declared(seen: dict[str, Observation]) -> None:
    wide = judged(seen["synthetic.py:Wide"])
    assert (wide.status, wide.inputs) == ("fullgraph", "synthesised")
    assert wide.assumed == ("x: (2, 8) float32", "scale: 0.5")
    unbuildable = judged(seen["synthetic.py:Unbuildable"])
    assert (unbuildable.status, unbuildable.phase) == ("skipped", "construct")
    assert "'config'" in unbuildable.detail and "get_init_inputs()" in unbuildable.detail


def test_a_disable_tried_is_what_the_decorator_does(seen: dict[str, Observation], python: str, tmp_path: Path) -> None:
    (trial,) = seen["pkg/model.py:Net"].trials
    assert trial["function"] == "report"
    assert len(trial["breaks"]) == trial["before"]["breaks"] == 2
    root = write(tmp_path, FILES)
    lines = (root / trial["path"]).read_text("utf-8").splitlines(keepends=True)
    for edit in reversed(trial["edits"]):
        lines.insert(edit["line"] - 1, edit["text"])
    assert "import torch\n" in lines
    (root / trial["path"]).write_text("".join(lines), encoding="utf-8")
    target = judged(run(root, ["pkg/model.py:Net"], python)["pkg/model.py:Net"])
    assert target.status == "intended_breaks"
    assert target.stages["dynamo"] == {key: trial["after"][key] for key in ("graphs", "ops")}


def test_root_is_never_suggested_for_disable(seen: dict[str, Observation]) -> None:
    assert seen["plain.py:loop"].trials == seen["plain.py:instance"].trials == ()


def test_controls_of_a_device_do_nothing(seen: dict[str, Observation]) -> None:
    target = judged(seen["plain.py:synchronized"])
    assert (target.detail, target.gate) == ("", "pass")


def test_disable_goes_where_it_helps_and_costs_few_operators(seen: dict[str, Observation]) -> None:
    (trial,) = seen["plain.py:outer"].trials
    assert trial["function"] == "inner"
    assert trial["after"]["breaks"] < trial["before"]["breaks"] and trial["after"]["ops"] * 2 > trial["before"]["ops"]


def test_disable_that_loses_most_operators_is_no_suggestion(python: str, tmp_path: Path) -> None:
    text = """
        import torch


        def all_of_it(x):
            x = x.sin().cos().exp()
            if x.sum() > 0:
                x = x + 1
            return x.sin().cos()


        def target(x):
            return all_of_it(x) * 2


        def tlint_inputs():
            return (torch.rand(4),)
    """
    observation = run(write(tmp_path, {"a.py": text}), ["a.py:target"], python)["a.py:target"]
    assert (len(observation.target.breaks), observation.trials) == (1, ())
    assert judged(observation).suggestions == ()


def test_inputs_without_a_name_are_not_given_to_another_target(python: str, tmp_path: Path) -> None:
    root = write(tmp_path, {"single.py": FILES["single.py"]})
    roots = (Root("single:root", RootKind.explicit, False, "single.py", 5, 2, "@torch.compile"),)
    requests, _ = targets.discover(Workspace(root), roots, ["single.py:root", "single.py:other"])
    first, second = map(judged, runner.run(requests, VerifySettings(), python, root))
    assert (first.status, first.inputs) == ("fullgraph", "declared")
    assert (second.status, second.phase) == ("skipped", "construct")
    assert "'other'" in second.detail and "return a dict" in second.detail


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune"])
def test_mode_is_that_of_the_compiler_and_told(python: str, tmp_path: Path, mode: str) -> None:
    (observation,) = run(write(tmp_path, FILES), ["pkg.model:Clean"], python, mode=mode).values()
    target = judged(observation)
    assert (target.status, target.config) == ("fullgraph", {"mode": mode})


def test_without_triton_the_graph_is_captured_and_that_is_said(python: str, tmp_path: Path) -> None:
    text = """
        from importlib import util

        find = util.find_spec
        util.find_spec = lambda name, *rest: None if name == "triton" else find(name, *rest)


        def target(x):
            return x + 1
    """
    target = judged(run(write(tmp_path, {"a.py": text}), ["a.py:target"], python)["a.py:target"])
    assert (target.status, target.gate, target.phase) == ("fullgraph", "pass", "inductor")
    assert "Triton is not installed" in target.detail
    assert "triton" not in target.stages
