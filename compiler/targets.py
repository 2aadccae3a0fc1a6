"""What to verify: the targets asked for, or those that declare their inputs. Nothing is imported to find out."""

from __future__ import annotations

import ast
import difflib
import tokenize
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tlint.analyzer.model import Root, RootKind

DECLARING = ("tlint_inputs", "get_inputs")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
MOST_NAMED = 3  # of files or names in a message


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

    `search` goes before `sys.path`; files below `roots` are the project's. `config` is carried to the report. `alone`:
    no other compile root of its file could be meant by inputs that are declared without a name.
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
    alone: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Found:
    path: Path | None
    qualname: str
    module: str = ""


class _NotFound(Exception):
    """A target that cannot be located; the message is for the user."""


def locate(workspace: Workspace, targets: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The targets with their files, as FILE.py:NAME or FILE.py, and what is wrong with the others."""
    located: list[str] = []
    errors: list[str] = []
    for target in targets:
        try:
            located.append(_located(target, workspace))
        except _NotFound as error:
            errors.append(f"{target}: {error}")
    return tuple(located), tuple(errors)


def discover(
    workspace: Workspace, roots: Sequence[Root], targets: Sequence[str], reaching: Collection[str] = ()
) -> tuple[tuple[Request, ...], tuple[str, ...]]:
    """The requests for located targets, and which of these declare no inputs and have to.

    With none named: for what declares inputs, in the files reported on and in those of the roots `reaching` them.
    """
    found: list[_Found] = []
    errors: list[str] = []
    for target in targets:
        owner, _, qualname = target.rpartition(":")
        if owner:
            in_file = owner.endswith(".py")
            found.append(_Found(workspace.cwd / owner, qualname) if in_file else _Found(None, qualname, owner))
            continue
        declared = _declared(workspace.cwd / target, workspace, roots)
        found += declared
        if not declared:
            errors.append(f"{target}: it declares no inputs: name a function or class after ':', or add tlint_inputs()")
    if not targets:
        compiled = (root for root in roots if root.resolved and root.kind > RootKind.assumed)
        rooted = {workspace.cwd / root.path for root in compiled if root.name in reaching}
        for path in sorted(path for path in workspace.reported | rooted if path.suffix != ".ipynb"):
            found += _declared(path, workspace, roots)
    unique = dict.fromkeys(found)
    return tuple(_request(f"t{n}", item, workspace, roots) for n, item in enumerate(unique, 1)), tuple(errors)


def _located(target: str, workspace: Workspace) -> str:
    """`TARGET = [FILE.py|MODULE:]QUALNAME | FILE.py`, split at the last colon."""
    owner, colon, qualname = target.rpartition(":")
    if not colon and target.endswith(".py"):
        _existing(target, workspace)
        return target
    if ".ipynb" in (Path(owner).suffix, Path(target).suffix):
        raise _NotFound("a notebook is not verified: put what is compiled into a .py file")
    if not qualname:
        raise _NotFound("nothing is named after ':'")
    if colon and not owner:
        raise _NotFound("nothing is named before ':'")
    if not all(map(str.isidentifier, qualname.split("."))):
        raise _NotFound(f"{qualname!r} is no name of Python's")
    if not colon:
        owner = str(_by_name(qualname, workspace))
    elif not owner.endswith(".py"):
        if not all(map(str.isidentifier, owner.split("."))):
            raise _NotFound(f"{owner!r} is neither a .py file nor a module")
        path = _module_file(owner, workspace)
        if path is None:  # a package that is installed: the worker looks for it
            return target
        owner = str(path)
    first = qualname.partition(".")[0]
    names = _names(_existing(owner, workspace))
    if names and first not in names:
        raise _NotFound(f"{Path(owner).name} has no {first!r}{_near(first, names)}")
    return f"{owner}:{qualname}"


def _existing(name: str, workspace: Workspace) -> Path:
    path = workspace.cwd / name
    if not path.is_file():
        raise _NotFound(f"no such file in {workspace.cwd}")
    return path


def _module_file(module: str, workspace: Workspace) -> Path | None:
    relative = Path(*module.split("."))
    for top in (workspace.root, workspace.root / "src", workspace.cwd):
        for path in (top / relative.with_suffix(".py"), top / relative / "__init__.py"):
            if path.is_file():
                return path
    return None


def _by_name(qualname: str, workspace: Workspace) -> Path:
    """The one file that defines a name at its top level."""
    first = qualname.partition(".")[0]
    defined = {path: _top_level(path) for path in workspace.reported}
    paths = sorted(path for path, names in defined.items() if first in names)
    match paths:
        case [path]:
            return path
        case []:
            near = _near(first, set().union(*defined.values()))
            raise _NotFound(f"no file below the paths defines it{near or ': name its file, as FILE.py:NAME'}")
    shown = [str(path.relative_to(workspace.cwd) if path.is_relative_to(workspace.cwd) else path) for path in paths]
    files = ", ".join(shown[:MOST_NAMED]) + (", …" if len(shown) > MOST_NAMED else "")
    raise _NotFound(f"{len(paths)} files define it ({files}): name one, as FILE.py:NAME")


def _near(name: str, names: Collection[str]) -> str:
    near = difflib.get_close_matches(name, names, MOST_NAMED)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _names(path: Path) -> set[str]:
    """What a file may hold at its top level; nothing where that cannot be told from its text."""
    tree = _tree(path)
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(names=aliases) if any(alias.name == "*" for alias in aliases):
                return set()
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
            case ast.FunctionDef(name="__getattr__"):
                return set()
            case ast.Call(func=ast.Name(id="globals" | "setattr")):
                return set()
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
    return names | set(_definitions(path)) | {n.name for n in ast.walk(tree) if isinstance(n, DEFINITIONS)}


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
    return {node.name: node for node in _tree(path).body if isinstance(node, DEFINITIONS)}


def _top_level(path: Path) -> set[str]:
    """What the statements of a file define or assign."""
    names: set[str] = set()
    for node in _tree(path).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


def _spellings(qualname: str) -> set[str]:
    return {qualname, f"{qualname}.forward", qualname.removesuffix(".forward")}


def _request(identifier: str, found: _Found, workspace: Workspace, roots: Sequence[Root]) -> Request:
    folders = [workspace.root, workspace.root / "src", workspace.cwd]
    module = found.module
    if found.path is not None:
        module, top = _module_name(found.path, workspace)
        folders.insert(0, top)
    compiled = [
        root
        for root in roots
        if root.kind is RootKind.explicit and root.resolved and workspace.cwd / root.path == found.path
    ]
    own = [root for root in compiled if root.name.rpartition(":")[2] in _spellings(found.qualname)]
    others = {root.name for root in compiled} - {root.name for root in own}
    fullgraph = any(root.fullgraph for root in own)
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
        alone=not others or (not own and len(others) == 1 and not _defines(found)),
        config={"fullgraph": True} if fullgraph else {},
    )


def _defines(found: _Found) -> bool:
    """Whether the target is a function or class of its file, not another name for what is compiled there."""
    return found.path is not None and found.qualname.partition(".")[0] in _definitions(found.path)


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
