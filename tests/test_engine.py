"""From events to findings: where they lie, how sure and how grave they are, how they are reached, their ids."""

from __future__ import annotations

import ast
import random
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest
from project import analyse, check

from tlint.analyzer import bridge
from tlint.analyzer.engine import header, span_of
from tlint.analyzer.index import ModuleDef
from tlint.analyzer.model import Confidence, Finding, RootKind, Severity, Span


def only(folder: Path, text: str, **settings: object) -> Finding:
    """The one finding of a project."""
    (finding,) = analyse(folder, text, **settings).findings
    return finding


def source(text: str, span: Span) -> str:
    """The code at a span of one line."""
    assert span.line == span.end_line
    return text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1]


# Places --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "found"),
    [
        ("if torch.all(x > 0): pass", "TL102", "torch.all(x > 0)"),
        ("if not torch.all(x > 0): pass", "TL102", "torch.all(x > 0)"),
        ("if n > 3 and x.sum() > 0: pass", "TL102", "x.sum() > 0"),
        ("if (x.sum() > 0): pass", "TL102", "x.sum() > 0"),
        ("y = x / x.max().item() + 1", "TL101", "x.max().item()"),
        ("y = 1 if x.sum() else 2", "TL102", "x.sum()"),
        ("y = [t for t in x.split(2) if t.sum() > 0]", "TL102", "t.sum() > 0"),
        ("while x.sum() > 0: x = x - 1", "TL102", "x.sum() > 0"),
        ("ä = 'äöü', x.max().item(), '🙂'", "TL101", "x.max().item()"),
        ("print('äöü🙂', x.max(), '🙂')", "TL111", "print('äöü🙂', x.max(), '🙂')"),
    ],
)
def test_a_finding_is_the_expression_that_decides(line: str, code: str, found: str, tmp_path: Path) -> None:
    text = f"import torch\n\n@torch.compile\ndef step(x, n: int):\n    {line}\n    return x\n"
    finding = next(f for f in analyse(tmp_path, {"main.py": text}).findings if f.code == code)
    assert source(text, finding.span) == found


def test_an_expression_on_several_lines(tmp_path: Path) -> None:
    finding = only(
        tmp_path, "import torch\n@torch.compile\ndef step(x):\n    return (\n        x.max(\n        ).item())\n"
    )
    assert finding.span == Span(5, 9, 6, 17)


def test_paths_are_relative_to_the_working_directory(tmp_path: Path) -> None:
    files = {"a/b.py": "import torch\n@torch.compile\ndef step(x):\n    return x.max().item()\n"}
    assert only(tmp_path, files).path == "a/b.py"


# Severity and confidence ---------------------------------------------------------------------------------------------

BODY = """
import torch

def scale(x):
    return x / x.max().item()

def branch(x):
    if x.sum() > 0:
        return x
    return x + 1

class Net(torch.nn.Module):
    def forward(self, x):
        return scale(branch(x))
"""


@pytest.mark.parametrize(
    ("compiled", "severities"),
    [
        ("", {"TL101": Severity.info, "TL102": Severity.info}),
        ("model = torch.compile(Net())", {"TL101": Severity.warning, "TL102": Severity.warning}),
        # Scalars are captured under fullgraph: the number is a symbol, the branch an error.
        ("model = torch.compile(Net(), fullgraph=True)", {"TL102": Severity.error}),
        ("def step(x): return branch(x)\nf = torch.compile(step, fullgraph=True)\n", {"TL102": Severity.error}),
    ],
    ids=["assumed", "explicit", "fullgraph", "fullgraph and assumed"],
)
def test_severity_is_that_of_the_roots(compiled: str, severities: dict[str, Severity], tmp_path: Path) -> None:
    found = {f.code: f.severity for f in analyse(tmp_path, BODY + compiled + "\n").findings}
    if "step" in compiled:
        assert found.pop("TL101") is Severity.info
    assert found == severities


LOSING = {
    "loop": "for _ in range(2):\n        x = shown(x)",
    "`try`": "try:\n        x = shown(x)\n    except ValueError:\n        pass",
    "context manager": "with Timer():\n        x = shown(x)",
}
RESUMED = (
    "x = shown(x)",
    "with torch.no_grad():\n        x = shown(x)",
    "try:\n        pass\n    finally:\n        x = shown(x)",
)
TIMER = """
import torch

class Timer:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

def shown(x):
    y = x.sum().item()
    return x + y

@torch.compile
def root(x):
    """


@pytest.mark.parametrize("around", LOSING)
def test_a_break_that_loses_its_frame_says_so(around: str, tmp_path: Path) -> None:
    (found,) = analyse(tmp_path, TIMER + LOSING[around] + "\n    return x\n").findings
    assert found.severity is Severity.error
    assert found.message.endswith(f"; inside a {around}, so that all of `root()` runs uncompiled")


@pytest.mark.parametrize("body", RESUMED)
def test_a_break_after_which_dynamo_goes_on(body: str, tmp_path: Path) -> None:
    (found,) = analyse(tmp_path, TIMER + body + "\n    return x\n").findings
    assert found.severity is Severity.warning
    assert "uncompiled" not in found.message


def test_named_roots_count_like_explicit_ones(tmp_path: Path) -> None:
    assert {f.severity for f in analyse(tmp_path, BODY, roots="modules").findings} == {Severity.warning}
    assert analyse(tmp_path, BODY, roots="explicit").findings == ()


def test_how_sure_a_finding_is(tmp_path: Path) -> None:
    analysis = analyse(
        tmp_path,
        """
import torch
from elsewhere import helper

@torch.compile
def step(x: torch.Tensor, y):
    x.sum().item()
    y.sum().item()
    z = helper(x)
    if z:
        return x
    return y
""",
    )
    assert [(f.span.line, f.confidence) for f in analysis.findings] == [
        (6, Confidence.certain),
        (7, Confidence.likely),
        (9, Confidence.possible),
    ]


ERRORS = """
import torch

class Net(torch.nn.Module):
    def forward(self, x, n: int):
        if n > 3:
            raise ValueError(f"too many: {x.max().item()}, {x}")
        if n > 4:
            print(x)  # possible: TL111
            raise ValueError("too many")
        try:
            x = x.view(3)
        except RuntimeError as error:
            print(error)  # possible: TL111
        assert n > 2, f"too few for {x}"
        if n > 5:
            report(x)
            raise ValueError("too many")
        return x

def report(x):
    print(x)  # possible: TL111
"""


def test_what_only_an_error_reaches_is_possible(tmp_path: Path) -> None:
    check(tmp_path, ERRORS)


def test_what_an_error_reaches_too_is_as_sure_as_the_rest(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
import torch

@torch.compile
def step(x, n: int):
    if n > 3:
        report(x)
        raise ValueError("too many")
    report(x)
    return x

def report(x):
    print(x)  # expect: TL111
""",
    )


# Conditions ----------------------------------------------------------------------------------------------------------

CONDITIONS = {
    "training": ("if self.training:\n    y = x.item()", ("training",)),
    "evaluating": ("if not self.training:\n    y = x.item()", ("evaluating",)),
    "otherwise": ("if self.training:\n    pass\nelse:\n    y = x.item()", ("evaluating",)),
    "outermost first": (
        "if mask is not None:\n    if n > 3:\n        y = x.item()",
        ("mask is not None", "n > 3"),
    ),
    "not": ("if n > 3:\n    pass\nelif not flag:\n    y = x.item()", ("not (n > 3)", "not flag")),
    "and": ("y = flag and x.item()", ("flag",)),
    "if within an expression": ("y = x.item() if flag else 3", ("flag",)),
    "a comprehension": ("y = [x.item() for i in range(n) if flag]", ("flag",)),
    "of the call": ("if flag:\n    self.part(x)", ("flag",)),
    "on one way only, which comes first": ("if flag:\n    self.part(x)\nself.part(x)", ()),
    "its own, and those of one way": (
        "if flag:\n    self.inner(x, n)\nself.inner(x, n)",
        ("n > 3",),
    ),
    "on one way only": ("self.part(x)\nif flag:\n    self.part(x)", ()),
    "folded": ("if torch.compiler.is_compiling():\n    y = x.item()", ()),
    "left early": ("if flag:\n    return x\ny = x.item()", ("not flag",)),
    "raised early": ("if flag:\n    raise ValueError\ny = x.item()", ()),
    "after": ("if flag:\n    pass\ny = x.item()", ()),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_are_what_was_not_worked_out(name: str, tmp_path: Path) -> None:
    body, conditions = CONDITIONS[name]
    text = f"""
import torch

class Net(torch.nn.Module):
    def part(self, x):
        return x.item()

    def inner(self, x, n):
        if n > 3:
            return self.part(x)

    def forward(self, x, mask=None, n: int = 3, flag: bool = False):
{textwrap.indent(body, " " * 8)}
        return x
"""
    assert only(tmp_path, text).conditions == conditions


# Ways from roots -----------------------------------------------------------------------------------------------------

WAYS = """
# file: train.py
import torch
from model import Net, scale

model = torch.compile(Net())

@torch.compile(fullgraph=True, dynamic=False)
def step(x):
    return scale(
        x + 1)
# file: model.py
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return x + self.head(x)

    def head(self, x):
        return scale(x)

def scale(x):
    if x.sum() > 0:
        return x
    return x + 1
"""


def test_the_ways_from_roots(tmp_path: Path) -> None:
    finding = only(tmp_path, WAYS)
    ways = {p.root: p for p in finding.paths}
    assert finding.paths_total == 2
    assert set(ways) == {"train:step", "model:Net"}
    assert [(f.path, f.line, f.column, f.function) for f in ways["model:Net"].via] == [
        ("model.py", 5, 20, "Net.forward"),
        ("model.py", 8, 16, "Net.head"),
    ]
    assert [(f.path, f.line, f.column, f.function) for f in ways["train:step"].via] == [("train.py", 8, 12, "step")]
    assert [(p.kind, p.fullgraph) for p in finding.paths] == [(RootKind.explicit, True), (RootKind.explicit, False)]
    assert finding.severity is Severity.error


def test_a_way_through_what_was_walked_before_is_whole(tmp_path: Path) -> None:
    text = """
import torch

def outer(x):
    return inner(x)

def inner(x):
    return x.max().item()

@torch.compile
def first(x):
    return outer(x)

@torch.compile
def second(x):
    return outer(x)
"""
    ways = {p.root: [(f.line, f.function) for f in p.via] for p in only(tmp_path, text).paths}
    assert ways == {"main:first": [(11, "first"), (4, "outer")], "main:second": [(15, "second"), (4, "outer")]}


def test_many_ways_are_counted_and_few_are_kept(tmp_path: Path) -> None:
    steps = "".join(f"@torch.compile\ndef step{i}(x):\n    return scale(x)\n" for i in range(9))
    text = f"import torch\ndef scale(x):\n    return x.max().item()\n{steps}"
    finding = only(tmp_path, text)
    assert finding.paths_total == 9
    assert len(finding.paths) == 5
    assert len({p.root for p in finding.paths}) == 5


def test_a_finding_in_the_root_has_no_way(tmp_path: Path) -> None:
    finding = only(tmp_path, "import torch\n@torch.compile\ndef step(x):\n    return x.max().item()\n")
    assert [(p.root, p.via) for p in finding.paths] == [("main:step", ())]


def test_what_was_looked_at_is_counted(tmp_path: Path) -> None:
    analysis = analyse(tmp_path, WAYS)
    assert (analysis.files, analysis.functions) == (2, 4)
    assert [(r.name, r.kind.name) for r in analysis.roots] == [("model:Net", "explicit"), ("train:step", "explicit")]


# Ids -----------------------------------------------------------------------------------------------------------------

STABLE = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x.max().item()
        return x.max().item()

    def other(self, x):
        return x.max().item()

@torch.compile
def step(x):
    Net().other(x)
    y = x.max().item(), x.max().item()
    return y
"""


def ids(folder: Path, text: str) -> list[str]:
    return [f.id for f in analyse(folder, text).findings]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import torch\n", "import torch\n\nmore = 1\n\n"),
        ("if x.sum() > 0:", "if  x.sum()>0 :  # why"),
        ("return x.max().item()\n", "return x.max(  # why\n            ).item()\n"),
        ("        return x.max().item()\n\n    def", "        # a comment\n        return x.max().item()\n\n    def"),
        ("    def other", "    def another(self):\n        pass\n\n    def other"),
        ("def step(x):\n", 'def step(x):\n    """What it does."""\n'),
    ],
    ids=["moved", "header", "on several lines", "comment", "neighbour", "docstring"],
)
def test_ids_survive(old: str, new: str, tmp_path: Path) -> None:
    assert old in STABLE
    before = ids(tmp_path / "before", STABLE)
    after = ids(tmp_path / "after", STABLE.replace(old, new))
    assert before == after
    assert len(set(before)) == len(before) >= 5


@pytest.mark.parametrize(
    ("old", "new"),
    [("x.sum() > 0", "x.sum() > 1"), ("def other", "def renamed"), ("y = x.max().item(), ", "y = x.min().item(), ")],
)
def test_ids_change_with_what_they_are_about(old: str, new: str, tmp_path: Path) -> None:
    text = STABLE.replace("Net().other(x)", "Net().renamed(x)" if "renamed" in new else "Net().other(x)")
    before = ids(tmp_path / "before", STABLE)
    after = ids(tmp_path / "after", text.replace(old, new))
    assert len(before) == len(after)
    assert before != after


def test_analysing_twice_gives_the_same(tmp_path: Path) -> None:
    first, second = analyse(tmp_path, WAYS), analyse(tmp_path, WAYS)
    assert first == second


# Bad input -----------------------------------------------------------------------------------------------------------

RECURSION = "(" * 150 + "x" + ")" * 150

ODD = {
    "empty": "",
    "comments": "# torch\n# torch.compile\n",
    "a docstring": '"""torch"""',
    "no newline at the end": "import torch\n@torch.compile\ndef step(x):\n    return x.max().item()  # expect: TL101",
    "parentheses": f"import torch\n@torch.compile\ndef step(x):\n    return {RECURSION}.item()  # expect: TL101\n",
    "a long chain": "import torch\n@torch.compile\ndef step(x):\n    x = x" + ".abs()" * 900 + "\n    return x\n",
    "a long sum": "import torch\n@torch.compile\ndef step(x):\n    return " + "+".join(["x"] * 3000) + "\n",
    "a large table": f"import torch\nTABLE = {list(range(50_000))}\n"
    "@torch.compile\ndef step(x):\n    return TABLE[0] * x\n",
    "deep blocks": "import torch\n@torch.compile\ndef step(x, n: int):\n"
    + "".join("    " * (i + 1) + f"if n > {i}:\n" for i in range(60))
    + "    " * 61
    + "x = x.max().item()  # expect: TL101\n    return x\n",
    "many branches": "import torch\n@torch.compile\ndef step(x, n: int):\n"
    + "".join(f"    if n == {i}:\n        x = x + {i}\n" for i in range(300))
    + "    return x\n",
    "many callers": "import torch\n"
    + "def f0(x):\n    return x.max().item()  # expect: TL101\n"
    + "".join(f"def f{i}(x):\n    return f{i - 1}(x + {i}) + f{i - 1}(x - {i})\n" for i in range(1, 25))
    + "@torch.compile\ndef step(x):\n    return f24(x)\n",
    "a class that inherits from itself": """
import torch

class A(A):
    pass

class B(C, torch.nn.Module):
    def forward(self, x):
        return super().forward(x)

class C(B):
    def forward(self, x):
        return super().forward(x)
""",
    "an object that holds itself": """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.me = self
        self.other = Net()

    def forward(self, x):
        return self.me.other.me.part(x)

    def part(self, x):
        return x / x.max().item()  # expect: TL101
""",
    "endless recursion": """
import torch

def f(x):
    return f(x)

def g(x, n=0):
    return g(g(x, n + 1), n + 2)

@torch.compile
def step(x):
    h = lambda y: h(y)
    return f(x) + g(x) + h(x)
""",
    "names that hide others": """
import torch

def print(*args):
    return 1

class torch_(torch.nn.Module):
    def forward(self, torch, list, isinstance, len):
        print(torch)
        for list in range(3):
            len = isinstance
        return torch.max().item()  # expect: TL101
""",
    "match": """
import torch

@torch.compile
def step(x, kind: str):
    match kind:
        case "a" | "b":
            return x.max().item()  # expect: TL101
        case {"c": y, **rest} if x.sum() > 0:  # expect: TL102
            return x
        case [first, *others]:
            return x + 1
        case str(text):
            return x + 2
        case _:
            return x.min().item()  # expect: TL101
""",
    "walrus": """
import torch

@torch.compile
def step(x):
    if (total := x.sum()) > 0:  # expect: TL102
        return total.item()  # expect: TL101
    while (n := x.shape[0]) > 3:
        x = x[: n // 2]
    return [y for part in x.split(2) if (y := part.sum()) is not None]
""",
    "async": """
import torch

async def load(x):
    async with x as y:
        pass
    async for z in x:
        pass
    return [z async for z in x]

class Net(torch.nn.Module):
    async def forward(self, x):
        await load(x)
        return x.max().item()  # expect: TL101
""",
    "everything else": """
from __future__ import annotations
import torch

@torch.compile
def step(x, *args, flag=..., **kwargs):
    global seen
    seen = x
    del x.grad, args
    assert True
    try:
        pass
    except* ValueError:
        pass
    else:
        pass
    finally:
        pass
    with (torch.no_grad() as a, torch.no_grad() as (b, c)):
        pass
    for i, (j, *k) in enumerate(zip(kwargs, x)):
        continue
    else:
        pass
    x[..., 1:2, None] += 3
    y: int = 3
    z: int
    {**kwargs, "a": 1}
    {1, 2, *x}
    lambda *a, b=1, **c: (yield)
    return x if not flag else -x @ ~x
""",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_code(name: str, tmp_path: Path) -> None:
    check(tmp_path, {"main.py": ODD[name].removeprefix("\n")})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def f(:\n", 1),
        ("import torch\nx = (1,\n", 2),
        ("import torch\n\tx = 1\n", 2),
        ("x = '\n", 1),
        ("import torch\nx = 1\x00\n", None),  # versions of Python place it differently
        ("import torch\n" + "(" * 300 + ")" * 300, 2),
        pytest.param(
            "def f[T](x: T): ...\n",
            1,
            marks=pytest.mark.skipif(sys.version_info >= (3, 12), reason="type parameters parse from Python 3.12 on"),
        ),
    ],
)
def test_what_does_not_parse_is_a_finding(text: str, line: int | None, tmp_path: Path) -> None:
    files = {"bad.py": text, "good.py": "import torch\n@torch.compile\ndef step(x):\n    return x.max().item()\n"}
    bad, good = analyse(tmp_path, files).findings
    assert (bad.path, bad.code, bad.severity) == ("bad.py", "TL902", Severity.error)
    assert line in (None, bad.span.line)
    assert (good.path, good.code) == ("good.py", "TL101")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters parse from Python 3.12 on")
def test_type_parameters(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
import torch

type Pair[T] = tuple[T, T]

def scale[T](x: T) -> T:
    return x / x.max().item()  # expect: TL101

class Net[T](torch.nn.Module):
    def forward(self, x):
        return scale(x)
""",
    )


def test_a_rule_that_fails_costs_its_finding_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tlint import rules

    def broken(self: object, event: object) -> object:
        raise KeyError("oops")
        yield

    monkeypatch.setattr(type(rules.load()["TL102"]), "branch", broken)
    text = "import torch\n@torch.compile\ndef step(x):\n    if x.sum() > 0:\n        pass\n    return x.max().item()\n"
    failed, found = analyse(tmp_path, {"main.py": text}).findings
    assert (failed.code, failed.span.line) == ("TL903", 4)
    assert "TL102" in failed.message
    assert "oops" in failed.message
    assert found.code == "TL101"


# The LibCST bridge ---------------------------------------------------------------------------------------------------

LIBRARY = Path(sysconfig.get_path("stdlib"))


@pytest.mark.parametrize("name", ["argparse", "ast", "dataclasses", "difflib", "enum", "inspect", "typing", "zipfile"])
def test_the_bridge_opens_what_ast_sees(name: str) -> None:
    """Of a sample of the expressions of a module of the standard library, LibCST has a node at the same place."""
    text = (LIBRARY / f"{name}.py").read_text(encoding="utf-8")
    module = ModuleDef(name, LIBRARY / f"{name}.py", text, ast.parse(text), False)
    pairs = [(s, e) for s in ast.walk(module.tree) if isinstance(s, ast.stmt) for e in expressions(s)]
    sample = random.Random(name).sample(pairs, 40)
    missed = []
    for statement, node in sample:
        first, last = header(statement)
        found = bridge.open_node(module.lines, first, last, span_of(module, node))
        if found is None:
            missed.append(f"{node.lineno}: {ast.unparse(node)}")
    assert not missed


def expressions(statement: ast.stmt) -> list[ast.expr]:
    """The calls, comparisons, attributes and subscripts in a statement's header."""
    _, last = header(statement)
    stack: list[ast.AST] = list(ast.iter_child_nodes(statement))
    found = []
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt | ast.JoinedStr | ast.Lambda) or getattr(node, "lineno", 0) > last:
            continue
        stack.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Call | ast.Compare | ast.Attribute | ast.Subscript) and (node.end_lineno or 0) <= last:
            found.append(node)
    return found


def test_what_is_nested_too_deeply_costs_its_statement(tmp_path: Path) -> None:
    text = """
    import torch

    @torch.compile
    def f(x):
        y = DEEP
        print(x)  # expect: TL111
        return y

    @torch.compile
    def g(x):
        return x.sum().item()  # expect: TL101
    """.replace("DEEP", "x" + ".sin()" * 9000 + "  # expect: TL903")
    analysis = check(tmp_path, text)
    [given_up] = [finding for finding in analysis.findings if finding.code == "TL903"]
    assert given_up.message.startswith("nested too deeply")
