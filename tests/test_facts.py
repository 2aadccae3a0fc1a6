"""The facts of each torch: that the tables keep their format, agree, and say what that torch is seen to do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tlint.analyzer import facts

VERSIONS = Path(__file__).parent.parent / "compiler" / "versions"
KINDS = {
    "",
    "backward",
    "construction",
    "context",
    "control-flow-op",
    "data-dependent-assert",
    "data-dependent-branch",
    "deepcopy",
    "dynamic-shape",
    "format",
    "generator",
    "hook",
    "host",
    "logging",
    "numpy",
    "opaque",
    "random-state",
    "recurrent",
    "requires-grad",
    "scripted",
    "sparse",
    "storage",
    "tensor-key",
    "tensor-sized",
    "tensor-to-python",
}
COLUMNS = {"returns", "returns_with", "kind", "gb_type", "gb_id", "when", "only", "also", "error", "tried"}
PLAIN = {
    "int",
    "float",
    "bool",
    "str",
    "None",
    "Size",
    "dtype",
    "device",
    "self",
    "Tensor",
    "ndarray",
    "tuple",
    "list",
    "complex",
}


@pytest.fixture(params=facts.versions())
def version(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """generate.py, as the script that it is: its neighbours are imported by their bare names."""
    monkeypatch.syspath_prepend(str(VERSIONS))
    import generate

    return generate


def text_of(version: str) -> str:
    return (VERSIONS / f"v{version.replace('.', '_')}" / "facts.json").read_text(encoding="utf-8")


def is_type(text: str) -> bool:
    """Whether a type of the facts is well formed; `generate.py` has the grammar."""
    depth, parts = 0, [""]
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return depth == 0 and all(map(is_member, parts))


def is_member(text: str) -> bool:
    match = re.fullmatch(r"([\w.]+)(?:\[(.*)\])?", text)
    if not match:
        return False
    name, inner = match.groups()
    if inner is None:
        return name in PLAIN or re.fullmatch(r"\w+(\.\w+)*", name) is not None
    if name in {"Tensor", "ndarray", "scalar"}:
        return inner in {"bool", "int", "float", "complex", "same", "number"}
    if name not in {"tuple", "list"}:
        return False
    members, depth = [""], 0
    for char in inner:
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            members.append("")
        else:
            members[-1] += char
    return all(member == "" or is_type(member) for member in members if member != "...")


@pytest.mark.parametrize(
    "text", ["Tensor[same]", "tuple[Tensor[int],...]", "Tensor|tuple[Tensor,Tensor[int]]", "torch.Generator"]
)
def test_the_grammar_of_types_accepts(text: str) -> None:
    assert is_type(text)


@pytest.mark.parametrize("text", ["Tensor[half]", "tuple[Tensor", "list[Tensor]]", "dict[str,int]", "Tensor or None"])
def test_the_grammar_of_types_refuses(text: str) -> None:
    assert not is_type(text)


def test_both_versions_have_facts() -> None:
    assert {"2.13", "2.14"} <= set(facts.versions())


def test_rows_keep_the_format(version: str) -> None:
    table = json.loads(text_of(version))
    assert table["torch"].startswith(version + ".")
    assert len(table["callables"]) > 3000
    for name, row in table["callables"].items():
        assert row.keys() <= COLUMNS, name
        assert row.get("kind", "") in KINDS, name
        for text in (row.get("returns"), *row.get("returns_with", {}).values()):
            assert text is None or is_type(text), f"{name}: {text}"
        assert ("gb_type" in row) == ("when" in row), name
        assert row.get("when", "always") in {"always", "default", "fullgraph"}, name


def test_breaks_are_in_the_registry(version: str) -> None:
    table = json.loads(text_of(version))
    for name, row in table["callables"].items():
        if row.get("gb_id"):
            assert table["registry"][row["gb_id"]]["gb_type"] == row["gb_type"], name
    # Where torch says no type for a break, the exception's name stands; the registry of 2.12 lacks one type.
    unknown = {row["gb_type"] for row in table["callables"].values() if "gb_type" in row and not row["gb_id"]}
    assert unknown.isdisjoint(entry["gb_type"] for entry in table["registry"].values())
    assert not unknown or version in ("2.8", "2.12")


def test_aliases_end_at_a_name_that_is_none(version: str) -> None:
    aliases = facts.load(version).aliases
    assert aliases["torch.nn.modules.linear.Linear"] == "torch.nn.Linear"
    assert aliases["torch.functional.einsum"] == "torch.einsum"
    assert not set(aliases.values()) & aliases.keys()
    assert not facts.load(version).callables.keys() & aliases.keys()


def test_the_file_is_as_written(version: str, generate: ModuleType) -> None:
    """Sorted, a row a line: a diff of two versions shows what changed and nothing else."""
    assert generate.written(json.loads(text_of(version))) == text_of(version)


def test_compile_tables(version: str) -> None:
    tables = facts.load(version).compile
    assert {"default", "max-autotune", "max-autotune-no-cudagraphs", "reduce-overhead"} <= set(tables["modes"])
    assert {"inductor", "eager", "aot_eager", "cudagraphs"} <= set(tables["backends"])
    assert {"fullgraph", "dynamic", "backend", "mode", "options", "disable"} <= set(tables["keywords"])
    assert {"max_autotune", "triton.cudagraphs", "epilogue_fusion"} <= set(tables["options"])


@pytest.mark.parametrize(
    ("name", "gb_type", "when"),
    [
        ("torch.Tensor.item", "Unsupported Tensor.item() call with capture_scalar_outputs=False", "default"),
        ("torch.nonzero", "Dynamic shape operator", "default"),
        ("builtins.print", "Failed to trace builtin operator", "always"),
        ("socket.gethostname", "Attempted to call function marked as skipped", "always"),
        ("random.uniform", None, None),
        ("os.getenv", None, None),
        ("re.match", None, None),
        ("torch.where", "Dynamic shape operator", "default"),
    ],
)
def test_what_breaks(version: str, name: str, gb_type: str | None, when: str | None) -> None:
    row = facts.load(version).callables[name]
    if version == "2.8" and when == "default":
        when = "always"  # there fullgraph=True does not capture what depends on data
    assert row["tried"]
    assert (row.get("gb_type"), row.get("when")) == (gb_type, when)


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("torch.max", "returns", "Tensor[same]"),
        ("torch.max", "returns_with", {"dim": "tuple[Tensor[same],Tensor[int]]"}),
        ("torch.Tensor.sum", "returns", "Tensor[number]"),
        ("torch.Tensor.eq", "returns", "Tensor[bool]"),
        ("torch.exp", "returns", "Tensor[float]"),
        ("torch.argmax", "returns", "Tensor[int]"),
        ("torch.Tensor.add_", "returns", "self"),
        ("torch.nn.Linear.forward", "returns", "Tensor[float]"),
        ("torch.where", "only", "one-argument"),
        ("torch.nn.functional.one_hot", "only", "without:num_classes"),
        ("torch.arange", "only", "tensor-argument"),
    ],
)
def test_what_a_row_says(version: str, name: str, column: str, value: Any) -> None:
    assert facts.load(version).callables[name][column] == value


def test_a_torch_without_an_adapter_gets_the_nearest() -> None:
    """In a process of its own: what is imported by its bare name, and what an adapter replaces, stays there."""
    pytest.importorskip("torch")
    nearest = {"2.7.1": "v2_8", "2.8.0+cpu": "v2_8", "2.11.0": "v2_8", "2.12.1": "v2_12", "2.99.0a0": "v2_12"}
    code = f"from worker.main import adapter_for\nfor v in {list(nearest)}: print(adapter_for(v).__name__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=VERSIONS.parent, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{folder}.adapter" for folder in nearest.values()]


def test_rows_are_what_this_torch_does(generate: ModuleType, tmp_path: Path) -> None:
    """Some rows, observed again under the torch at hand."""
    torch = pytest.importorskip("torch")
    version = ".".join(torch.__version__.split(".")[:2])
    if version not in facts.versions():
        pytest.skip(f"no facts for torch {version}")
    table = facts.load(version)
    gb_ids = {entry["gb_type"]: gb_id for gb_id, entry in table.registry.items()}
    kinds = {name: kind for kind, group in generate.PROBES.items() for name in group}
    names = (
        "builtins.print",
        "time.time",
        "random.uniform",
        "torch.Tensor.item",
        "threading.Lock",
        "torch.masked_select",
        "os.getenv",
    )
    probes = []
    for name in names:
        statement = generate.PROBES[kinds[name]][name]
        setup, line = ("", statement) if isinstance(statement, str) else statement
        probes.append({"name": name, "kind": kinds[name], "setup": setup, "statements": [line]})
    (tmp_path / "probes.json").write_text(json.dumps(probes), encoding="utf-8")
    files = [str(tmp_path / "probes.json"), str(tmp_path / "results.jsonl")]
    subprocess.run([sys.executable, str(VERSIONS / "observe.py"), *files], check=True, capture_output=True)
    results = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [result["name"] for result in results] == list(names)
    for result in results:
        row = table.callables[result["name"]]
        assert generate.outcome(result, gb_ids) == {
            k: row[k] for k in ("gb_type", "gb_id", "when", "error") if k in row
        }


def test_a_probe_that_dies_is_told_and_the_next_still_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    statements = ["os._exit(3)", "no_such_name", "x.sum()"]
    probes = [{"name": s, "kind": "", "statements": [s]} for s in statements]
    (tmp_path / "probes.json").write_text(json.dumps(probes), encoding="utf-8")
    files = [str(tmp_path / "probes.json"), str(tmp_path / "results.jsonl")]
    subprocess.run([sys.executable, str(VERSIONS / "observe.py"), *files], check=True, capture_output=True)
    died, raised, fine = [
        json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert "died" in died["failure"]
    assert "NameError" in raised["failure"]
    assert fine["default"] == {}


def test_an_upgrade_heals_a_break(generate: ModuleType) -> None:
    """`random.shuffle` is traced from torch 2.14 on."""
    old, new = ({"callables": facts.load(version).callables} for version in ("2.13", "2.14"))
    found = list(generate.differences(old, new))
    assert "healed  random.shuffle: Attempted to call function marked as skipped -> no break" in found
    assert not [text for text in found if text.split()[1] in {"torch.Tensor.item:", "builtins.print:"}]


def test_differences_name_what_broke_and_what_healed(generate: ModuleType) -> None:
    def table(**rows: str | None) -> dict[str, Any]:
        return {"callables": {name: {"tried": True, **({"gb_type": gb} if gb else {})} for name, gb in rows.items()}}

    found = list(generate.differences(table(a=None, b="B", c="C", d="D"), table(a="A", b=None, c="C", d="E", e="new")))
    assert found == ["broke   a: no break -> A", "healed  b: B -> no break", "changed d: D -> E"]


def test_a_function_whose_break_depends_on_the_call(generate: ModuleType) -> None:
    """Two calls of one function make one row that says which call breaks."""
    mined = {"registry": {"GB1": {"gb_type": "Broken"}}, "aliases": {}, "types": {}}
    pair = {"name": "f", "kind": "tensor-sized", "only": "tensor-argument", "returns": ["Tensor[int]"]}
    broken = {"default": {"gb_type": "Broken"}, "fullgraph": {}}
    rows, notes = generate.callables(mined, [{**pair, **broken}, {**pair, "fine": True, "default": {}}])
    assert rows["f"] == {
        "tried": True,
        "kind": "tensor-sized",
        "gb_type": "Broken",
        "gb_id": "GB1",
        "when": "default",
        "only": "tensor-argument",
        "returns": "Tensor[int]",
    }
    assert not notes


def test_an_error_of_a_guessed_call_is_no_fact(generate: ModuleType) -> None:
    mined = {"registry": {}, "aliases": {}, "types": {}}
    guess = {"name": "f", "returns": ["None"], "default": {"error": "TorchRuntimeError"}}
    assert generate.callables(mined, [guess])[0] == {"f": {"returns": "None"}}
    assert generate.callables(mined, [{**guess, "kind": "host"}])[0]["f"]["error"] == "TorchRuntimeError"
