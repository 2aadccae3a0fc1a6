"""What a torch says of itself without compiling anything: run under the torch to be mined, `mine.py TABLES`, in JSON.

Return types come from the stubs (`torch/_C/*.pyi`, `nn/functional.pyi`), the annotations of the source and the schemas
of the native operators; the rest from torch's own tables.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import pathlib
import platform
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import torch
import torch._dynamo
import torch._inductor
import torch.distributed
import torch.utils.checkpoint

HOME = pathlib.Path(torch.__file__).parent

# Where the public functions are, and of two names for one object, which comes first.
NAMESPACES = (
    "torch torch.nn torch.nn.functional torch.linalg torch.fft torch.special torch.cuda torch.random torch.autograd "
    "torch.compiler torch.nn.init torch.nn.utils torch.nn.utils.rnn torch.nn.attention torch.nn.parallel torch.func "
    "torch.masked torch.sparse torch.nested torch.signal.windows torch.utils.checkpoint torch.amp torch.accelerator "
    "torch.distributed torch.overrides torch.optim torch.distributions torch.library torch.jit torch.export "
    "torch.backends "
    "torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.autograd.graph torch.autograd.functional "
    "torch.cuda.amp torch.cpu torch.mps torch.xpu torch.profiler torch.utils.data torch.utils.dlpack"
).split()

# Names in annotations, with the words of the facts for them.
SIMPLE = {
    "Tensor": "Tensor",
    "_bool": "bool",
    "bool": "bool",
    "_int": "int",
    "int": "int",
    "SymInt": "int",
    "_float": "float",
    "float": "float",
    "str": "str",
    "None": "None",
    "Size": "Size",
    "_size": "Size",
    "_dtype": "dtype",
    "dtype": "dtype",
    "_device": "device",
    "device": "device",
    "Self": "self",
    "ndarray": "ndarray",
    "Generator": "torch.Generator",
}


# ------------------------------------------------------------------------------------------------- types


@functools.cache
def structures() -> dict[str, str]:
    """torch.return_types: named tuples of tensors."""
    found = {}
    for node in parse(HOME / "return_types.pyi").body:
        if isinstance(node, ast.ClassDef):
            fields = [type_of(s.returns) for s in node.body if isinstance(s, ast.FunctionDef) and is_property(s)]
            found[node.name] = f"tuple[{','.join(fields)}]"
    return found


def is_property(node: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)


def type_of(node: ast.expr | None) -> str:
    """An annotation in the words of the facts, "" where they have none for it."""
    match node:
        case ast.Constant(value=None):
            return "None"
        case ast.Constant(value=str(text)):
            return type_of(ast.parse(text, mode="eval").body)
        case ast.Name(id=name):
            return SIMPLE.get(name, "")
        case ast.Attribute(value=ast.Attribute(attr="return_types"), attr=name):
            return structures().get(name, "")
        case ast.Attribute(attr=name):
            return SIMPLE.get(name, "")
        case ast.Subscript(
            value=ast.Name(id="tuple" | "Tuple"), slice=ast.Tuple(elts=[item, ast.Constant(value=rest)])
        ) if rest is ...:
            return f"tuple[{type_of(item)},...]" if type_of(item) else "tuple"
        case ast.Subscript(value=ast.Name(id="tuple" | "Tuple"), slice=ast.Tuple(elts=items)):
            return f"tuple[{','.join(map(type_of, items))}]"
        case ast.Subscript(value=ast.Name(id="list" | "List"), slice=item):
            return f"list[{type_of(item)}]" if type_of(item) else "list"
    return ""


@functools.cache
def parse(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


Overload = tuple[list[str], str]  # the parameters that must be given, what is returned


def overloads(body: list[ast.stmt]) -> dict[str, list[Overload]]:
    found: dict[str, list[Overload]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and not is_property(node):
            found.setdefault(node.name, []).append((required(node), type_of(node.returns)))
    return found


def required(node: ast.FunctionDef) -> list[str]:
    """Parameters without a default, and flags that a Literal type requires to be True."""
    positional = [*node.args.posonlyargs, *node.args.args]
    given = positional[: len(positional) - len(node.args.defaults)] + [
        a for a, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if default is None
    ]
    flags = [
        a for a in (*positional, *node.args.kwonlyargs) if a.annotation and ast.unparse(a.annotation) == "Literal[True]"
    ]
    return [a.arg for a in flags] + [
        a.arg for a in given if a.annotation is None or "Literal" not in ast.unparse(a.annotation)
    ]


def signature_types(rows: list[Overload]) -> dict[str, Any]:
    """What the plainest overload returns, and with which argument another type is returned."""
    plain, returns = min(rows, key=lambda row: len(row[0]))
    extra: dict[str, str] = {}
    for names, other in rows:
        if other == returns or not other or not returns:
            continue
        for name in [n for n in names if n not in plain and n not in {"input", "self"}][:1]:
            extra.setdefault(name, other)
    return {"returns": returns, **({"returns_with": extra} if extra else {})}


def stub_types() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, prefix in (
        ("_C/_VariableFunctions.pyi", "torch"),
        ("_C/__init__.pyi", "torch"),
        ("_C/_nn.pyi", "torch.nn.functional"),
        ("nn/functional.pyi", "torch.nn.functional"),
    ):
        for name, rows in overloads(parse(HOME / path).body).items():
            yield f"{prefix}.{name}", signature_types(rows)
    for path, cls in (("_C/__init__.pyi", "TensorBase"), ("_tensor.py", "Tensor")):
        [node] = [n for n in parse(HOME / path).body if isinstance(n, ast.ClassDef) and n.name == cls]
        for name, rows in overloads(node.body).items():
            in_place = name.endswith("_") and not name.endswith("__")
            found = signature_types(rows)
            yield f"torch.Tensor.{name}", {"returns": "self"} if in_place and found["returns"] == "Tensor" else found


def schema_types() -> Iterator[tuple[str, dict[str, Any]]]:
    """Native operators by their public names; the only source for torch.linalg, torch.fft and torch.special."""
    rows: dict[str, list[Overload]] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space != "aten" or schema.overload_name.endswith("out"):
            continue
        for family in ("linalg", "fft", "special"):
            if name.startswith(family + "_"):
                name = f"{family}.{name[len(family) + 1 :]}"
        results = [jit_type(str(r.type)) for r in schema.returns]
        returns = results[0] if len(results) == 1 else f"tuple[{','.join(results)}]" if results else "None"
        names = [a.name for a in schema.arguments if not a.has_default_value()]
        rows.setdefault(f"torch.{name}", []).append((names, returns))
    for name, found in rows.items():
        if isinstance(resolve(name), (types.FunctionType, types.BuiltinFunctionType)):
            yield name, signature_types(found)


def jit_type(text: str) -> str:
    return {"Tensor": "Tensor", "int": "int", "bool": "bool", "float": "float", "List[Tensor]": "list[Tensor]"}.get(
        text, ""
    )


def annotated_types() -> Iterator[tuple[str, dict[str, Any]]]:
    """Functions and forwards written in Python."""
    for name, value in public():
        if isinstance(value, types.FunctionType):
            yield name, {"returns": annotation(value)}
        if isinstance(value, type) and issubclass(value, torch.nn.Module):
            yield f"{name}.forward", {"returns": annotation(inspect.getattr_static(value, "forward"))}
    for name, value in vars(torch.Tensor).items():
        if isinstance(value, types.FunctionType):
            yield f"torch.Tensor.{name}", {"returns": annotation(value)}


def annotation(function: Any) -> str:
    text = getattr(function, "__annotations__", {}).get("return", "")
    if text is None:
        return "None"
    if isinstance(text, type):
        text = text.__name__
    try:
        return type_of(ast.parse(str(text).replace("torch.", "").replace("typing.", ""), mode="eval").body)
    except SyntaxError:  # `<function …>` and the like
        return ""


def attributes() -> dict[str, str]:
    """Attributes of a tensor: the stubs' annotated names and the source's properties."""
    [stub] = [n for n in parse(HOME / "_C/__init__.pyi").body if isinstance(n, ast.ClassDef) and n.name == "TensorBase"]
    found = {}
    for node in stub.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = type_of(node.annotation)
    for name, value in inspect.getmembers(torch.Tensor):
        if isinstance(value, (property, types.GetSetDescriptorType)):
            found.setdefault(name, annotation(value.fget) if isinstance(value, property) else "")
    # A property of the stubs says what it is only at run time.
    tensor = torch.ones(2, 2)
    for name, text in found.items():
        if not text and isinstance(value := getattr(tensor, name, None), (bool, int, str)):
            found[name] = type(value).__name__
    same = {"data", "T", "H", "mT", "mH", "grad"}
    found |= dict.fromkeys(same, "Tensor[same]") | {"real": "Tensor[number]", "imag": "Tensor[number]"}
    return {f"torch.Tensor.{name}": text for name, text in found.items() if not name.startswith("_")}


# -------------------------------------------------------------------------------------------- namespaces


def resolve(name: str) -> Any:
    value: Any = sys.modules[name.split(".")[0]]
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value


@functools.cache
def public() -> list[tuple[str, Any]]:
    """(qualname, object) of torch's functions and classes, each once, under the name people write."""
    found: dict[int, tuple[str, Any]] = {}
    for space in NAMESPACES:
        module = importlib.import_module(space)
        for name in sorted(vars(module)):
            value = vars(module)[name]
            if name.startswith("_") or not callable(value) or isinstance(value, types.ModuleType):
                continue
            if (getattr(value, "__module__", None) or "torch").startswith("torch"):
                found.setdefault(id(value), (f"{space}.{name}", value))
    return list(found.values())


def aliases() -> dict[str, str]:
    """Every other name under which a public function or class is reached."""
    names = {id(value): name for name, value in public()}
    found = {}
    for space, module in sorted(sys.modules.items()):
        if not isinstance(module, types.ModuleType) or not space.startswith("torch"):
            continue
        if any(part.startswith("_") for part in space.split(".")) and space not in {"torch._C", "torch._tensor"}:
            continue
        for name, value in list(vars(module).items()):
            canonical = names.get(id(value))
            if canonical and f"{space}.{name}" != canonical and not name.startswith("_"):
                found[f"{space}.{name}"] = canonical
    for name in dir(torch._C._VariableFunctions):
        if not name.startswith("_") and callable(getattr(torch, name, None)):
            found[f"torch._C._VariableFunctions.{name}"] = f"torch.{name}"
    # Where a class says it was defined, though no module offers it there.
    for name, value in public():
        home = (
            f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") and value.__module__ else name
        )
        if home != name and home.startswith("torch.") and "<" not in home and not home.startswith("torch._C."):
            found.setdefault(home, name)
    found.update({"torch._tensor.Tensor": "torch.Tensor", "torch._C.TensorBase": "torch.Tensor"})
    return found


def tagged() -> dict[str, str]:
    """Operators whose result, or its shape, depends on data, by torch's own tags."""
    found = {}
    for packet in sorted(dir(torch.ops.aten)):
        for overload in getattr(getattr(torch.ops.aten, packet, None), "overloads", list)():
            tags = getattr(getattr(torch.ops.aten, packet), overload).tags
            if torch.Tag.dynamic_output_shape in tags:
                found[packet] = "dynamic-shape"
            elif torch.Tag.data_dependent_output in tags:
                found.setdefault(packet, "tensor-to-python")
    return found


def callables() -> dict[str, list[str]]:
    """Names to be tried under Dynamo, by family."""
    import math

    numpy_spaces = {"numpy": numpy, "numpy.linalg": numpy.linalg, "numpy.fft": numpy.fft, "numpy.random": numpy.random}
    return {
        "tensor": sorted(n for n in dir(torch.Tensor) if not n.startswith("_") and callable(getattr(torch.Tensor, n))),
        "torch": sorted(name for name, value in public() if not isinstance(value, type)),
        "math": sorted(n for n in dir(math) if callable(getattr(math, n)) and not n.startswith("_")),
        "numpy": sorted(
            f"{space}.{n}"
            for space, module in numpy_spaces.items()
            for n in dir(module)
            if not n.startswith("_") and callable(getattr(module, n)) and not isinstance(getattr(module, n), type)
        ),
    }


# ------------------------------------------------------------------------------------------------ tables


def registry() -> dict[str, dict[str, Any]]:
    text = (HOME / "_dynamo" / "graph_break_registry.json").read_text(encoding="utf-8")
    return {
        gb_id: {
            "gb_type": entries[0]["Gb_type"],
            "context": entries[0]["Context"],
            "explanation": entries[0]["Explanation"],
            "hints": [hint.strip() for hint in entries[0]["Hints"]],
        }
        for gb_id, entries in json.loads(text).items()
        if not entries[0]["Gb_type"].startswith("_")  # the name of a variable: 2.8 does not say what it holds
    }


def compile_tables() -> dict[str, list[str]]:
    keywords = [p.name for p in inspect.signature(torch.compile).parameters.values() if p.name != "model"]
    return {
        "backends": sorted(torch._dynamo.list_backends(exclude_tags=())),
        "keywords": keywords,
        "modes": sorted(torch._inductor.list_mode_options()),
        "options": sorted(torch._inductor.list_options()),
    }


def tables() -> dict[str, Any]:
    types_found: dict[str, dict[str, Any]] = {}
    for source in (annotated_types(), schema_types(), stub_types()):
        for name, row in source:
            if row["returns"] or name not in types_found:
                types_found[name] = row
    modules = [
        n for n, v in public() if isinstance(v, type) and issubclass(v, torch.nn.Module) and n.startswith("torch.nn.")
    ]
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db

    return {
        "torch": torch.__version__.split("+")[0],
        "python": ".".join(platform.python_version_tuple()[:2]),
        "types": types_found,
        "attributes": attributes(),
        "modules": sorted(modules),
        "aliases": aliases(),
        "registry": registry(),
        "compile": compile_tables(),
        "tags": tagged(),
        "callables": callables(),
        "operators": sorted(
            {
                (op.name, kind, resolved)
                for op in op_db
                for kind, resolved in (("function", f"torch.{op.name}"), ("method", f"torch.Tensor.{op.name}"))
                if callable(resolve(resolved)) and (kind == "function" or op.method_variant)
            }
        ),
        "module_samples": sorted(
            m.module_cls.__name__ for m in module_db if f"torch.nn.{m.module_cls.__name__}" in modules
        ),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(tables(), out)
