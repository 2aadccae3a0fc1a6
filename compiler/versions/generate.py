"""Mine the facts of one torch: `python compiler/versions/generate.py 2.13 [--python INTERPRETER]`.

Makes an environment for that release (or takes the interpreter given, which needs torch, numpy and expecttest), reads
what torch says of itself (mine.py), runs its operators, modules and everything in probes.py under Dynamo (observe.py),
and writes `v2_13/facts.json`, a row a line, sorted, so that a diff of two versions can be read. Then says what broke
and what healed since the version before, and runs every fixture and every rule's examples under that torch: what fails
there is what rules or an adapter have to learn. The interpreter that runs this script has tlint and pytest.

A row of "callables" has those of these keys that are known:
  returns       TYPE: Tensor, Tensor[bool|int|float|complex], Tensor[same] (the dtype class of the first tensor given),
                Tensor[number] (the same, but int for bool, as sums are), ndarray[...] likewise, scalar[same] (a Python
                number of that class), tuple[T,U], tuple[T,...], list[T], int, float, bool, str, None, Size, dtype,
                device, self, T|U, or the name of a class.
  returns_with  {argument: TYPE}, what it returns when this argument is given: torch.max with dim.
  kind          what it is in a rule's terms: the keys of PROBES in probes.py.
  tried         it was run. No gb_type then says that it did not break.
  gb_type       what Dynamo calls the break (the exception's name where torch 2.8 has no word for it), and gb_id, its
                number in torch's registry ("" where that has none).
  when          always, or default: under fullgraph=True torch turns capture on, and it does not break.
  only          the break depends on the call: one-argument, without:NAME, keyword:NAME, tensor-argument (an argument is
                a tensor, or holds one, where a number is meant), closure (a function given closes over local values),
                compiled-argument (a function given is itself compiled), backward-hook (the module has such a hook),
                input (of a tensor that comes from outside the region), or arguments (some of torch's own samples
                break; which is not known).
  also          gb_types that other calls of it break with.
  error         compiling it failed with this exception, and no break was logged.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from typing import Any

from probes import CONDITIONAL, PROBES, RETURNS, Statement  # type: ignore[import-not-found]  # the file beside this script

HERE = pathlib.Path(__file__).resolve().parent
Json = dict[str, Any]

# Calls to try of functions that nobody wrote a probe for, in this order: the first that runs in eager mode is compiled.
METHOD_CALLS = (
    "x.{}()",
    "x.{}(x)",
    "x.{}(2)",
    "x.{}(0, 1)",
    "i.{}()",
    "m.{}()",
    "s.{}()",
    "v.{}(v)",
    "i.{}(i)",
    "x.{}(v)",
    "x.{}(0, i)",
    "x.{}(torch.float64)",
    "x.{}(m, x)",
    "x.{}(0, torch.zeros(4, 4, dtype=torch.int64), x)",
    "x.{}((4, 4))",
    "x.{}((4, 4), 1.0)",
    "x.{}(m, 0.0)",
    "x.{}(0, i, x)",
    "x.{}(x, x)",
    "x.{}(i, i)",
    "x.{}(0, i, 1.0)",
    "x.{}(lambda t: t)",
    "x.{}('cpu')",
)
FUNCTION_CALLS = (
    "{}(x)",
    "{}(x, x)",
    "{}(x, 2)",
    "{}()",
    "{}(3)",
    "{}(x, x, x)",
    "{}(i)",
    "{}(m)",
    "{}(s)",
    "{}(v)",
    "{}(v, v)",
    "{}(x, 0, i)",
    "{}((2, 3))",
    "{}([x, x])",
    "{}(x, v)",
    "{}(x, m)",
    "{}(x, (4,))",
    "{}(x, 0, 1)",
    "{}([v, v])",
    "{}(i, x)",
    "{}(torch.ones(1, 4, 4, 4), 2)",
    "{}(torch.ones(1, 4, 4), 2)",
    "{}(v, v, v, v)",
    "{}('cpu')",
    "{}(torch.float32)",
)
NUMPY_CALLS = (
    "{}(a)",
    "{}(a, a)",
    "{}(a, 2)",
    "{}(3)",
    "{}((2, 3))",
    "{}([a, a])",
    "{}(a[0])",
    "{}(a[0], a[0])",
    "{}(0.0, 1.0, 5)",
    "{}(a, 1, 0)",
    "{}(2, 3)",
    "{}(a > 1)",
    "{}(a, a, a)",
    "{}()",
    "{}((4,), 0)",
    "{}(np.arange(4))",
)
MATH_CALLS = (
    "{}(0.5)",
    "{}(0.5, 0.5)",
    "{}(3)",
    "{}(3, 2)",
    "{}([1.0, 2.0])",
    "{}([1.0], [2.0])",
    "{}(1.5)",
    "{}(0.5, 1)",
)

# Nothing of these can be said by trying: they stop the process, reach for the network, or start threads.
NOT_TRIED = re.compile(
    r"torch\.(hub\.|compile$|_dynamo|set_default_tensor_type$|jit\.|export\.|library\.|distributed\.(?!is_|get_))"
    r"|numpy\.test$"
)

# What a break of this kind means in a rule's terms, where no probe says it.
KINDS = {
    "Dynamic shape operator": "dynamic-shape",
    "Data dependent operator": "tensor-to-python",
    "Unsupported Tensor.item() call with capture_scalar_outputs=False": "tensor-to-python",
    "Attempted to wrap sparse Tensor": "sparse",
    "Attempted to wrap sparse Tensor with VariableTracker": "sparse",
    "Attempted to wrap RNN, GRU, or LSTM": "recurrent",
}


# ------------------------------------------------------------------------------------------------- running


def environment(version: str, folder: pathlib.Path) -> str:
    """A new environment with that torch, from where pip is set to look."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", f"torch=={version}.*", "numpy", "expecttest"], check=True)
    return python


def under(python: str, script: str, *files: pathlib.Path) -> None:
    subprocess.run(
        [python, str(HERE / script), *map(str, files)], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def probes(mined: Json) -> Iterator[Json]:
    """All to run: torch's operators, its modules, what probes.py asks, and the other names by guessed calls."""
    asked = {name for group in PROBES.values() for name in group}
    sampled = set()
    for op, form, name in mined["operators"]:
        sampled.add(name)
        yield {"name": name, "op": op, "form": form}
    for module in mined["module_samples"]:
        yield {"name": f"torch.nn.{module}.forward", "module": module}
    for kind, group in PROBES.items():
        for name, statement in group.items():
            yield {"name": name, "kind": kind, **asked_for(statement)}
    for name, (kind, only, breaks, fine) in CONDITIONAL.items():
        yield {"name": name, "kind": kind, "only": only, **asked_for(breaks)}
        yield {"name": name, "kind": kind, "only": only, "fine": True, **asked_for(fine)}
    known = {mined["aliases"].get(name, name) for name in asked | sampled}
    families = (
        ("torch.Tensor.{}", "tensor", METHOD_CALLS, lambda name: name),
        ("{}", "torch", FUNCTION_CALLS, lambda name: name),
        ("{}", "numpy", NUMPY_CALLS, lambda name: name),
        ("math.{}", "math", MATH_CALLS, lambda name: f"math.{name}"),
    )
    for pattern, family, calls, spell in families:
        for short in mined["callables"][family]:
            name = pattern.format(short)
            if name not in known and not NOT_TRIED.match(name):
                yield {"name": name, "statements": [call.format(spell(short)) for call in calls]}


def asked_for(statement: Statement) -> Json:
    """A statement as a probe has it."""
    setup, call = ("", statement) if isinstance(statement, str) else statement
    return {"setup": setup, "statements": [call]}


# --------------------------------------------------------------------------------------------------- rows


def skeleton(returns: str) -> str:
    """A type without what is known of dtypes: Tensor[int] is a Tensor."""
    return re.sub(r"(Tensor|ndarray|scalar)\[\w+\]", r"\1", returns)


def refined(stub: str, seen: Sequence[str]) -> str:
    """What the stub says, with the dtype classes seen; what was seen where it says nothing."""
    if not stub:
        return "|".join(seen)
    exact = [s for s in seen if skeleton(s) == stub]
    if exact:
        return exact[0]
    if stub == "None" and seen:
        return "|".join(seen)
    sequences = [s for s in seen if stub.startswith(("tuple", "list")) and s.startswith(("tuple", "list"))]
    return unbounded(sequences[0]) if sequences and stub.endswith((",...]", "list[Tensor]")) else (*sequences, stub)[0]


def unbounded(returns: str) -> str:
    """The samples of an operator that returns any number of tensors may all have returned five."""
    kind, _, items = returns.partition("[")
    members = set(re.findall(r"Tensor(?:\[\w+\])?|int", items))
    return f"tuple[{members.pop()},...]" if kind == "tuple" and len(members) == 1 else returns


def add_types(row: Json, stub: Json, seen: list[str]) -> None:
    """What one observation adds to what was seen before: nothing, as the best comes first."""
    if seen and not row.get("returns"):
        in_place = stub.get("returns") == "self"
        add_stub(row, {**stub, "returns": "self" if in_place else refined(stub.get("returns", ""), seen)}, seen)


def add_stub(row: Json, stub: Json, seen: Sequence[str] = ()) -> None:
    if stub["returns"]:
        row["returns"] = stub["returns"]
    if extra := stub.get("returns_with"):
        row["returns_with"] = {name: refined(text, seen) for name, text in sorted(extra.items())}


def kind_of(name: str, gb_type: str) -> str:
    """What a callee that nobody wrote a probe for is in a rule's terms."""
    if name.startswith("numpy."):
        return "random-state" if name.startswith("numpy.random.") else "numpy"
    if not gb_type or gb_type in KINDS:
        return KINDS.get(gb_type, "")
    return "opaque" if name.startswith("torch.Tensor.") else "host"


def outcome(result: Json, gb_ids: dict[str, str]) -> Json:
    """What a probe's run says of breaking: {} if it did not."""
    default, fullgraph = result.get("default", {}), result.get("fullgraph", {})
    gb_type = default.get("gb_type") or fullgraph.get("gb_type")
    if gb_type:
        when = "always" if "gb_type" in default and fullgraph else "default" if "gb_type" in default else "fullgraph"
        return {"gb_type": gb_type, "gb_id": gb_ids.get(gb_type, ""), "when": when}
    problem = default.get("error") or default.get("skipped")
    return {"error": problem} if problem else {}


def callables(mined: Json, results: list[Json]) -> tuple[dict[str, Json], list[str]]:
    """The rows, and what could not be observed. A probe someone wrote outweighs a sample, and that a guessed call."""
    gb_ids = {entry["gb_type"]: gb_id for gb_id, entry in mined["registry"].items()}

    def canonical(name: str) -> str:
        return mined["aliases"].get(name, name)

    types = {canonical(name): row for name, row in sorted(mined["types"].items(), reverse=True)}
    rows: dict[str, Json] = {}
    notes: list[str] = []
    conditions: dict[str, dict[bool, Json]] = {}
    for result in sorted(results, key=lambda r: 0 if "kind" in r else 1 if "op" in r or "module" in r else 2):
        name = canonical(result["name"])
        if "failure" in result:
            if "kind" in result:
                notes.append(f"{name}: {result['failure']}")
            continue
        if "only" in result:
            conditions.setdefault(name, {})[result.get("fine", False)] = result
            continue
        row = rows.setdefault(name, {})
        add_types(row, types.get(name, {}), returned(result))
        found = outcome(result, gb_ids)
        # Where nobody wrote the call, an error says that the call was wrong.
        if "tried" in row or ("error" in found and "kind" not in result):
            continue
        if found and result.get("fine"):
            found["only"] = "arguments"
        row |= {"tried": True, **found}
        if kind := result.get("kind") or kind_of(name, found.get("gb_type", "")):
            row["kind"] = kind
    for name, pair in conditions.items():
        add_condition(rows.setdefault(name, {}), pair, gb_ids, notes, name)
        add_types(rows[name], types.get(name, {}), returned(pair.get(True, pair.get(False, {}))))
    for name, stub in types.items():
        if not rows.setdefault(name, {}).get("returns"):
            add_stub(rows[name], stub)
    for name in RETURNS.keys() & rows.keys():
        rows[name] |= RETURNS[name]
    for name, row in rows.items():
        if "returns" in row:
            row["returns"] = public(row["returns"], name, mined["aliases"])
    return {name: row for name, row in rows.items() if row}, notes


def public(returns: str, name: str, aliases: dict[str, str]) -> str:
    """A class by its public name: making `contextvars.ContextVar` gives what calls itself `_contextvars.ContextVar`."""
    made = "." in returns and returns.rpartition(".")[2] == name.rpartition(".")[2]
    return name if made else aliases.get(returns, returns)


def returned(result: Json) -> list[str]:
    """The types that were seen. A `with` or an assignment shows if it breaks, and gives nothing."""
    try:
        compile(result.get("statement", "0"), "probe", "eval")
    except SyntaxError:
        return []
    return result.get("returns", [])


def add_condition(row: Json, pair: dict[bool, Json], gb_ids: dict[str, str], notes: list[str], name: str) -> None:
    """Two calls of one function: one that ought to break, one that ought not."""
    if False not in pair or True not in pair:
        notes.append(f"{name}: half of a pair did not run")
        return
    breaks, fine = outcome(pair[False], gb_ids), outcome(pair[True], gb_ids)
    for key in ("gb_type", "gb_id", "when", "error", "only"):
        row.pop(key, None)
    row |= {"tried": True, "kind": pair[False]["kind"], **(breaks or fine)}
    if breaks and not fine:
        row["only"] = pair[False]["only"]
    elif breaks and fine.get("gb_type", breaks.get("gb_type")) != breaks.get("gb_type"):
        row["also"] = [fine["gb_type"]]
    if fine and not breaks:
        notes.append(f"{name}: breaks the other way round")


# -------------------------------------------------------------------------------------------------- output


def line(row: Any) -> str:
    return json.dumps(row, ensure_ascii=False, sort_keys=True)


def written(facts: Json) -> str:
    """JSON with one row a line."""
    parts = []
    for key, value in facts.items():
        if isinstance(value, dict):
            rows = [f"{json.dumps(name)}: {line(row)}" for name, row in sorted(value.items())]
            parts.append(f'"{key}": {{\n' + ",\n".join(rows) + "\n}")
        elif isinstance(value, list):
            parts.append(f'"{key}": [\n' + ",\n".join(map(line, value)) + "\n]")
        else:
            parts.append(f'"{key}": {line(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def folder(version: str) -> pathlib.Path:
    return HERE / f"v{version.replace('.', '_')}"


def previous(version: str) -> pathlib.Path | None:
    """The facts of the newest version before this one."""

    def number(path: pathlib.Path) -> tuple[int, ...]:
        return tuple(map(int, path.parent.name[1:].split("_")))

    older = [p for p in HERE.glob("v*/facts.json") if number(p) < tuple(map(int, version.split(".")))]
    return max(older, key=number, default=None)


def differences(old: Json, new: Json) -> Iterator[str]:
    """What broke and what healed, of the callables that both versions tried."""
    before, after = old["callables"], new["callables"]
    for name in sorted(before.keys() & after.keys()):
        was, now = before[name], after[name]
        if not (was.get("tried") and now.get("tried")) or was.get("gb_type") == now.get("gb_type"):
            continue
        label = "broke" if not was.get("gb_type") else "healed" if not now.get("gb_type") else "changed"
        yield f"{label:8}{name}: {was.get('gb_type', 'no break')} -> {now.get('gb_type', 'no break')}"


def generate(version: str, python: str, work: pathlib.Path, only: Sequence[str] = ()) -> None:
    under(python, "mine.py", work / "mined.json")
    mined = json.loads((work / "mined.json").read_text(encoding="utf-8"))
    if not mined["torch"].startswith(version + "."):
        raise SystemExit(f"{python} has torch {mined['torch']}, not {version}")
    chosen = [probe for probe in probes(mined) if not only or probe["name"] in only]
    (work / "probes.json").write_text(json.dumps(chosen), encoding="utf-8")
    under(python, "observe.py", work / "probes.json", work / "results.jsonl")
    results = [json.loads(text) for text in (work / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    rows, notes = callables(mined, results)
    if only:
        kept = json.loads((folder(version) / "facts.json").read_text(encoding="utf-8"))["callables"]
        rows = kept | {name: rows[name] for name in (mined["aliases"].get(name, name) for name in only) if name in rows}
    facts = {key: mined[key] for key in ("torch", "python")}
    facts["callables"] = rows
    facts |= {key: mined[key] for key in ("attributes", "modules", "aliases", "registry", "compile")}
    older = previous(version)
    folder(version).mkdir(exist_ok=True)
    (folder(version) / "facts.json").write_text(written(facts), encoding="utf-8")
    for note in notes:
        print(f"not seen: {note}")
    if older:
        for difference in differences(json.loads(older.read_text(encoding="utf-8")), facts):
            print(difference)
    tried, breaking = (sum(key in row for row in rows.values()) for key in ("tried", "gb_type"))
    print(f"{len(rows)} callables, {tried} tried, {breaking} break; torch {mined['torch']}")


def sweep(version: str, python: str) -> int:
    """Each fixture and example that is looked at for this version or verified under it. The exit code of pytest."""
    chosen = ["tests/test_fixtures.py", "tests/test_rules.py", "-k", f"{python} or -{version}]"]
    print(f"fixtures under torch {version}:", flush=True)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *chosen],
        cwd=HERE.parent.parent,
        env={**os.environ, "TLINT_TEST_PYTHONS": python},
    ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", help="major.minor, as in 2.13")
    parser.add_argument(
        "--python", type=os.path.abspath, help="an interpreter that has that torch, numpy and expecttest"
    )
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="try these again; other rows are kept")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for what was mined and observed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.keep or pathlib.Path(temporary)
        work.mkdir(exist_ok=True)
        python = options.python or environment(options.version, work / "environment")
        generate(options.version, python, work, options.only)
        return 0 if options.only else sweep(options.version, python)


if __name__ == "__main__":
    sys.exit(main())
