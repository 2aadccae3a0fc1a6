"""Importing the user's file and finding the target in it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import re
import sys
import types
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from typing import Any

import torch

from .channel import Failed

# Of what controls a device and gives nothing back. Dynamo knows these functions by identity: only their code changes.
CONTROLS = (
    torch.cuda.synchronize,
    torch.cuda.set_device,
    torch.cuda.reset_peak_memory_stats,
    torch.cuda.ipc_collect,
    torch.accelerator.synchronize,  # what a captured graph calls
)
ACCELERATOR = re.compile(r"(?:cuda|hip|xpu|mps)(:\d*)?$")


class OnCPU(ast.NodeTransformer):
    """Rewrites accelerator devices to the CPU in the user's source, in memory, before it is compiled.

    Dynamo then traces plain code, and positions stay those of the file; a torch function mode would be traced itself.
    """

    def __init__(self) -> None:
        self.mapped = 0

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and (match := ACCELERATOR.match(node.value)):
            self.mapped += 1
            return ast.copy_location(ast.Constant("cpu:" if match[1] == ":" else "cpu"), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            self.mapped += 1
            node.func.attr, node.args, node.keywords = "cpu", [], []
        return node


def map_devices(roots: Sequence[str]) -> OnCPU:
    """From now on, modules below `roots` are imported with their devices mapped. Returns the count, as it grows.

    There is no device to control either: what does that does nothing.
    """
    for function in CONTROLS:
        kept = {key: getattr(function.__code__, key) for key in ("co_filename", "co_name", "co_firstlineno")}
        function.__code__ = nothing.__code__.replace(**kept)
    mapping, get_code = OnCPU(), SourceFileLoader.get_code
    below = tuple(root.rstrip(os.sep) + os.sep for root in roots)

    def mapped_code(self: SourceFileLoader, name: str) -> types.CodeType | None:
        path = self.get_filename(name)
        if not path.startswith(below) or "site-packages" in path:
            return get_code(self, name)
        data = self.get_data(path)
        if not re.search(rb"cuda|hip|xpu|mps", data):
            return get_code(self, name)
        return compile(mapping.visit(ast.parse(data, path)), path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = mapped_code  # type: ignore[method-assign, assignment]
    return mapping


def nothing(device: Any = None) -> None:
    """In place of what would control a device."""


def load(path: str, name: str, search: Sequence[str]) -> types.ModuleType:
    """Import a file under a dotted name (its packages first), or a module by name where there is no path."""
    sys.path[:0] = [entry for entry in search if entry not in sys.path]
    if not path:
        return importlib.import_module(name)
    parent = name.rpartition(".")[0]
    if parent:
        importlib.import_module(parent)
    known = sys.modules.get(name)
    if known is not None and os.path.realpath(getattr(known, "__file__", None) or "") == os.path.realpath(path):
        return known
    if known is not None and not parent:  # the user's types.py must not replace the standard library's
        name = f"__target__.{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Failed(f"{path} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def resolve(module: types.ModuleType, qualname: str, construct: Any) -> Any:
    """The callable that `qualname` names; classes are constructed on the way, by `construct(class)`."""
    target: Any = module
    parts = qualname.split(".")
    for position, part in enumerate(parts):
        if isinstance(target, type):
            static = inspect.getattr_static(target, part, None)
            if not isinstance(static, (staticmethod, classmethod, type)):
                target = construct(target)
        try:
            target = getattr(target, part)
        except AttributeError:
            where = ".".join([module.__name__, *parts[:position]])
            raise Failed(f"{where} has no {part!r}", phase="import") from None
    if isinstance(target, type):
        target = construct(target)
    owner = getattr(target, "__self__", None)
    if isinstance(owner, torch.nn.Module) and target == owner.forward:
        target = owner  # with the hooks that a call of the module runs
    if not callable(target):
        raise Failed(f"{qualname} cannot be called: its type is {type(target).__name__}", phase="import")
    return target
