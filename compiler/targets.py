"""What to verify: the targets asked for, or those that declare their inputs. Nothing is imported to find out."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tlint.analyzer.model import Root, RootKind

DECLARING = ("tlint_inputs", "get_inputs")


class Workspace(Protocol):
    """What is read of `project.Workspace`."""

    @property
    def root(self) -> Path: ...

    @property
    def cwd(self) -> Path: ...

    @property
    def reported(self) -> frozenset[Path]: ...


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to verify, as the worker is told. Without `path`, `module` is found on the interpreter's own path.

    `search` goes before `sys.path`; files below `roots` are the project's. `config` is carried to the report.
    """

    id: str
    name: str
    path: str
    module: str
    qualname: str
    search: tuple[str, ...]
    roots: tuple[str, ...]
    fullgraph: bool = False
    inputs: str = "synthesised"
    train: bool | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Found:
    path: Path | None
    qualname: str
    module: str = ""


class _NotFound(Exception):
    """A target that cannot be located; the message is for the user."""


def discover(
    workspace: Workspace, roots: Sequence[Root], targets: Sequence[str]
) -> tuple[tuple[Request, ...], tuple[str, ...]]:
    """The requests, and what was asked for and does not exist."""
    found: list[_Found] = []
    errors: list[str] = []
    for target in targets:
        try:
            found += _asked(target, workspace, roots)
        except _NotFound as error:
            errors.append(f"{target}: {error}")
    if not targets:
        rooted = {workspace.cwd / root.path for root in roots if root.resolved and root.kind > RootKind.assumed}
        for path in sorted(workspace.reported | rooted):
            found += _declared(path, workspace, roots)
    unique = dict.fromkeys(found)
    return tuple(_request(f"t{n}", item, workspace, roots) for n, item in enumerate(unique, 1)), tuple(errors)


def _asked(target: str, workspace: Workspace, roots: Sequence[Root]) -> list[_Found]:
    """`TARGET = [FILE.py|MODULE:]QUALNAME | FILE.py`, split at the last colon."""
    owner, colon, qualname = target.rpartition(":")
    if not colon and target.endswith(".py"):
        path = _existing(target, workspace)
        found = _declared(path, workspace, roots)
        if not found:
            raise _NotFound("nothing here declares inputs: name a function or class after ':', or add tlint_inputs()")
        return found
    if not qualname:
        raise _NotFound("nothing is named after ':'")
    if owner.endswith(".py"):
        return [_Found(_existing(owner, workspace), qualname)]
    if colon:
        return [_Found(_module_file(owner, workspace), qualname, owner)]
    return [_by_name(qualname, workspace, roots)]


def _existing(name: str, workspace: Workspace) -> Path:
    path = workspace.cwd / name
    if not path.is_file():
        raise _NotFound("no such file")
    return path


def _module_file(module: str, workspace: Workspace) -> Path | None:
    relative = Path(*module.split("."))
    for top in (workspace.root, workspace.root / "src", workspace.cwd):
        for path in (top / relative.with_suffix(".py"), top / relative / "__init__.py"):
            if path.is_file():
                return path
    return None


def _by_name(qualname: str, workspace: Workspace, roots: Sequence[Root]) -> _Found:
    paths = {workspace.cwd / root.path for root in roots if root.name.rpartition(":")[2] in _spellings(qualname)}
    if not paths:
        first = qualname.partition(".")[0]
        paths = {path for path in workspace.reported if first in {*_definitions(path), *_assigned(path)}}
    if not paths:
        raise _NotFound("no file below the paths defines it: name its file as FILE.py:NAME")
    if len(paths) > 1:
        files = ", ".join(str(path) for path in sorted(paths))
        raise _NotFound(f"several files define it ({files}): name one as FILE.py:NAME")
    return _Found(paths.pop(), qualname)


def _declared(path: Path, workspace: Workspace, roots: Sequence[Root]) -> list[_Found]:
    """The targets of a file that declares inputs: those it names, else its roots, else its module class."""
    definitions = _definitions(path)
    declaring = next((definitions[name] for name in DECLARING if name in definitions), None)
    if declaring is None:
        return []
    names = list(_keys(declaring)) or [
        root.name.rpartition(":")[2]
        for root in roots
        if root.resolved and root.kind > RootKind.assumed and workspace.cwd / root.path == path
    ]
    if not names:
        modules = [name for name, node in definitions.items() if isinstance(node, ast.ClassDef) and _is_module(node)]
        names = ["Model"] if "Model" in modules else modules[-1:]
    return [_Found(path, name) for name in names]


def _is_module(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).rpartition(".")[2].endswith("Module") for base in node.bases)


def _keys(function: ast.AST) -> Iterator[str]:
    """The names for which `tlint_inputs` returns inputs, where it returns a dict that is written out."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
            for key in node.value.keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value


def _tree(path: Path) -> ast.Module:
    """The syntax tree, empty for a file that does not parse: the static stage has reported that (TL902)."""
    try:
        with tokenize.open(path) as file:
            return ast.parse(file.read())
    except (SyntaxError, UnicodeDecodeError, ValueError, OSError):
        return ast.Module([], [])


def _definitions(path: Path) -> dict[str, ast.AST]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name: node for node in _tree(path).body if isinstance(node, kinds)}


def _assigned(path: Path) -> Iterator[str]:
    for node in _tree(path).body:
        match node:
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def _spellings(qualname: str) -> set[str]:
    return {qualname, f"{qualname}.forward", qualname.removesuffix(".forward")}


def _request(identifier: str, found: _Found, workspace: Workspace, roots: Sequence[Root]) -> Request:
    folders = [workspace.root, workspace.root / "src", workspace.cwd]
    module = found.module
    if found.path is not None:
        module, top = _module_name(found.path, workspace)
        folders.insert(0, top)
    fullgraph = any(
        root.fullgraph
        for root in roots
        if workspace.cwd / root.path == found.path and root.name.rpartition(":")[2] in _spellings(found.qualname)
    )
    project = {str(folder).rstrip("/") + "/" for folder in (workspace.root, folders[0])}
    return Request(
        id=identifier,
        name=f"{module}:{found.qualname}",
        path=str(found.path or ""),
        module=module,
        qualname=found.qualname,
        search=tuple(dict.fromkeys(str(folder) for folder in folders if folder.is_dir())),
        roots=tuple(sorted(project)),
        fullgraph=fullgraph,
        config={"fullgraph": True} if fullgraph else {},
    )


def _module_name(path: Path, workspace: Workspace) -> tuple[str, Path]:
    """The dotted name by which a file is imported, and the folder that must be on the path for it."""
    parts = [] if path.stem == "__init__" else [path.stem]
    top = path.parent
    while (top / "__init__.py").is_file():
        parts.insert(0, top.name)
        top = top.parent
    if len(parts) == 1 and any(isinstance(node, ast.ImportFrom) and node.level for node in _tree(path).body):
        # Relative imports without __init__.py: a namespace package, named from the top of the project.
        for base in (workspace.root / "src", workspace.root):
            if path.is_relative_to(base):
                return ".".join(path.relative_to(base).with_suffix("").parts), base
    return ".".join(parts), top
