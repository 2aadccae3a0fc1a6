"""Trying `torch.compiler.disable`: which function of a break's stack, and what it would change."""

from __future__ import annotations

import ast
import functools
import gc
import inspect
import json
import linecache
import types
from collections.abc import Callable
from typing import Any

from .capture import RESUME, Seen, Watcher, step_of

MOST = 8  # trials a target
FURTHEST = 3  # functions on the way to a break


def candidates(watcher: Watcher, project: Callable[[str], bool], target: Any) -> list[list[dict[str, Any]]]:
    """Functions to disable: for each break, the project's on its stack, innermost first.

    Never the compiled root, which does nothing once it is disabled. Code objects are told by their place, since the
    trial runs in another process.
    """
    # A resume function has a first line of its own, but says whom it resumes: names are compared without that prefix.
    steps = [step_of(code, 0, None) for code in watcher.codes.values() if not RESUME.match(code.co_name)]
    originals = {(step.path, step.name): step.code for step in steps}
    root = getattr(inspect.unwrap(getattr(target, "forward", target)), "__code__", None)
    return [
        [
            {
                "path": code.co_filename,
                "line": code.co_firstlineno,
                "name": code.co_name,
                "function": getattr(code, "co_qualname", code.co_name),
                "edits": edits(code, seen.gb_type),
                "breaks": [f"b{number}"],
            }
            for code in way(seen, originals, project, root)[:FURTHEST]
        ]
        for number, seen in enumerate(watcher.breaks.values(), 1)
        if not seen.intended
    ]


def way(
    seen: Seen,
    originals: dict[tuple[str, str], types.CodeType],
    project: Callable[[str], bool],
    root: types.CodeType | None,
) -> list[types.CodeType]:
    """The functions below the root that lead to a break, innermost first. Only what has a `def` can be decorated."""
    found: list[types.CodeType] = []
    for step in reversed(seen.stacks[0]):
        code = originals.get((step.path, step.name))
        if code is root and root is not None:
            break
        if code is not None and code not in found and project(step.path) and definition(code) is not None:
            found.append(code)
    return found


def helps(before: dict[str, int], after: dict[str, int]) -> bool:
    """A `disable` takes a break away. It costs the operators of what it disables, which must not be most of them."""
    return after["breaks"] < before["breaks"] and after["ops"] * 2 > before["ops"]


def counts(watcher: Watcher) -> dict[str, int]:
    unintended = sum(not seen.intended for seen in watcher.breaks.values())
    return {"graphs": watcher.graphs, "ops": watcher.ops, "breaks": unintended}


def codes_of(candidate: dict[str, Any]) -> set[types.CodeType]:
    """The code objects at a candidate's place, among those of all functions that exist now."""
    place = (candidate["path"], candidate["line"], candidate["name"])
    # Not `isinstance`, which asks a weak reference for the class of what may be gone.
    functions = [value for value in gc.get_objects() if type(value) is types.FunctionType]
    pending = [f.__code__ for f in functions if f.__code__.co_filename == candidate["path"]]
    found = set()
    while pending:
        code = pending.pop()
        if (code.co_filename, code.co_firstlineno, code.co_name) == place:
            found.add(code)
        pending += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return found


@functools.cache
def tree_of(path: str) -> ast.Module:
    return ast.parse("".join(linecache.getlines(path)))


def first_line(node: Any) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def definition(code: types.CodeType) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The statement that defines a code object, whose `co_firstlineno` is the first decorator's line."""
    for node in ast.walk(tree_of(code.co_filename)):
        match node:
            case ast.FunctionDef(name=code.co_name) | ast.AsyncFunctionDef(name=code.co_name):
                if first_line(node) == code.co_firstlineno:
                    return node
    return None


def edits(code: types.CodeType, reason: str) -> list[dict[str, Any]]:
    """The decorator directly above the `def`, below other decorators, and the import of torch if the file lacks it."""
    node, tree = definition(code), tree_of(code.co_filename)
    if node is None:  # a lambda, or code made at run time: there is no line to put a decorator above
        return []
    names = [
        alias.asname or "torch"
        for statement in tree.body
        if isinstance(statement, ast.Import)
        for alias in statement.names
        if alias.name == "torch" or (alias.name.startswith("torch.") and not alias.asname)
    ]
    torch = names[0] if names else "torch"
    text = f"{' ' * node.col_offset}@{torch}.compiler.disable(reason={json.dumps(reason)})\n"
    imports = [] if names else [{"line": import_line(tree), "text": "import torch\n"}]
    return [*imports, {"line": node.lineno, "text": text}]


def import_line(tree: ast.Module) -> int:
    """The first line after the docstring and the `__future__` imports."""
    for statement in tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not docstring and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            return first_line(statement)
    return 1
