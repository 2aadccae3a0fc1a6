"""What the index knows of a project: its modules, classes and functions, before anything is interpreted.

Definitions are compared by identity. They hold the `ast` nodes of their own module; nothing here knows about torch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
# A statement that begins by giving an attribute a value, alone or with others.
STORE = re.compile(
    r"^[ \t]*[(\w]\w*\.\w+[ \t]*(?:,|:|//?=|[-+*%|&^@]?=(?!=))|,[ \t]*\w+\.\w+[ \t)]*(?:,|=(?!=))", re.MULTILINE
)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(eq=False)
class ImportOf:
    """`import module as name` (attribute "") or `from module import attribute as name`."""

    module: str
    attribute: str = ""


@dataclass(eq=False)
class Assigned:
    """A module- or class-level name that statements give a value: all of them, in order."""

    values: list[tuple[ast.stmt, ast.expr | None]] = field(default_factory=list)
    annotation: ast.expr | None = None


@dataclass(eq=False)
class FunctionDef:
    name: str
    qualname: str
    module: ModuleDef
    node: FunctionNode
    cls: ClassDef | None = None
    parent: FunctionDef | None = None
    # Functions and classes that the body makes: each has one identity.
    nested: dict[ast.AST, FunctionDef] = field(default_factory=dict)
    local_classes: dict[ast.AST, ClassDef] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> list[ast.arg]:
        a = self.node.args
        return [*a.posonlyargs, *a.args, *a.kwonlyargs]

    @cached_property
    def defaults(self) -> dict[str, ast.expr]:
        """The defaults of its parameters, by name."""
        a = self.node.args
        positional = [*a.posonlyargs, *a.args][len(a.posonlyargs) + len(a.args) - len(a.defaults) :]
        found = {p.arg: d for p, d in zip(positional, a.defaults, strict=True)}
        return found | {p.arg: d for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}

    @cached_property
    def is_generator(self) -> bool:
        return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own_nodes(self.node))

    @cached_property
    def loads(self) -> frozenset[str]:
        """Names that the body reads, nested functions included: what it may capture."""
        return frozenset(n.id for n in ast.walk(self.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))

    @cached_property
    def own_names(self) -> tuple[str, ...]:
        """Attributes of its first parameter that a method reads."""
        first = self.parameters[0].arg if self.parameters else ""
        found = {
            n.attr
            for n in own_nodes(self.node)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == first
        }
        return tuple(sorted(found))

    def decorators(self) -> list[ast.expr]:
        return getattr(self.node, "decorator_list", [])


@dataclass(eq=False)
class ClassDef:
    name: str
    qualname: str
    module: ModuleDef
    node: ast.ClassDef
    methods: dict[str, FunctionDef] = field(default_factory=dict)
    setters: set[str] = field(default_factory=set)
    assigned: dict[str, Assigned] = field(default_factory=dict)
    classes: dict[str, ClassDef] = field(default_factory=dict)
    parent: FunctionDef | None = None

    @cached_property
    def stores(self) -> frozenset[str]:
        """Attributes that methods other than `__init__` store on their `self`."""
        # Most methods store nothing, which their text tells at a hundredth of the cost of a walk.
        lines = self.module.lines
        storing = (
            m.node
            for m in self.methods.values()
            if m.name != "__init__" and STORE.search("".join(lines[m.node.lineno - 1 : m.node.end_lineno]))
        )
        nodes = (n for method in storing for n in ast.walk(method))
        return frozenset(
            n.attr
            for n in nodes
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name)
        )


Symbol = ImportOf | Assigned | FunctionDef | ClassDef


@dataclass(eq=False)
class ModuleDef:
    name: str
    path: Path
    text: str
    tree: ast.Module
    is_package: bool
    # Of an installed package: read on the way from a root, and never reported on.
    installed: bool = False
    symbols: dict[str, Symbol] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    # What its top level makes when it is interpreted.
    nested: dict[ast.AST, FunctionDef] = field(default_factory=dict)
    local_classes: dict[ast.AST, ClassDef] = field(default_factory=dict)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines(keepends=True)

    @property
    def package(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]

    def functions(self) -> Iterator[FunctionDef]:
        """Functions and methods, not those made inside functions."""

        def of_class(cls: ClassDef) -> Iterator[FunctionDef]:
            yield from cls.methods.values()
            for inner in cls.classes.values():
                yield from of_class(inner)

        for symbol in self.symbols.values():
            if isinstance(symbol, FunctionDef):
                yield symbol
            elif isinstance(symbol, ClassDef):
                yield from of_class(symbol)

    def classes(self) -> Iterator[ClassDef]:
        def inside(cls: ClassDef) -> Iterator[ClassDef]:
            yield cls
            for inner in cls.classes.values():
                yield from inside(inner)

        for symbol in self.symbols.values():
            if isinstance(symbol, ClassDef):
                yield from inside(symbol)


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body that belong to no nested scope."""
    body = function.body if isinstance(function.body, list) else [function.body]  # type: ignore[attr-defined]
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, SCOPES):
            stack.extend(ast.iter_child_nodes(node))


def scan(module: ModuleDef) -> None:
    """Fill in a module's symbols from its own statements; function bodies are not entered."""
    scan_body(module.tree.body, module, module.symbols, None)


def scan_body(body: list[ast.stmt], module: ModuleDef, symbols: dict[str, Symbol], cls: ClassDef | None) -> None:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                add_function(node, module, symbols, cls)
            case ast.ClassDef():
                symbols[node.name] = class_of(node, module, cls.qualname + "." if cls else "")
            case ast.Import():
                for alias in node.names:
                    if alias.asname:
                        symbols[alias.asname] = ImportOf(alias.name)
                    else:
                        symbols[alias.name.partition(".")[0]] = ImportOf(alias.name.partition(".")[0])
            case ast.ImportFrom():
                source = absolute(module, node)
                for alias in node.names:
                    if alias.name == "*":
                        module.stars.append(source)
                    else:
                        symbols[alias.asname or alias.name] = ImportOf(source, alias.name)
            case ast.Assign():
                for target in node.targets:
                    add_assigned(symbols, target, node, node.value)
            case ast.AnnAssign(target=ast.Name(id=name)):
                entry = assigned(symbols, name)
                entry.annotation = node.annotation
                if node.value is not None:
                    entry.values.append((node, node.value))
            case ast.AugAssign(target=ast.Name(id=name)):
                assigned(symbols, name).values.append((node, None))
            case ast.If() | ast.While():
                scan_body(node.orelse, module, symbols, cls)
                scan_body(node.body, module, symbols, cls)
            case ast.For() | ast.AsyncFor():
                add_assigned(symbols, node.target, node, None)
                scan_body(node.body, module, symbols, cls)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars is not None:
                        add_assigned(symbols, item.optional_vars, node, None)
                scan_body(node.body, module, symbols, cls)
            case ast.Try():
                # A fallback for an optional import comes second; the first is what runs where the package is there.
                for handler in node.handlers:
                    scan_body(handler.body, module, symbols, cls)
                scan_body(node.body, module, symbols, cls)
                scan_body(node.orelse, module, symbols, cls)
                scan_body(node.finalbody, module, symbols, cls)


def add_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, module: ModuleDef, symbols: dict[str, Symbol], cls: ClassDef | None
) -> None:
    for decorator in node.decorator_list:
        match decorator:
            case ast.Attribute(attr="setter" | "deleter") if cls is not None:
                cls.setters.add(node.name)
                return
            case ast.Name(id="overload") | ast.Attribute(attr="overload"):
                return
    qualname = f"{cls.qualname}.{node.name}" if cls else node.name
    symbols[node.name] = FunctionDef(node.name, qualname, module, node, cls)


def class_of(node: ast.ClassDef, module: ModuleDef, prefix: str) -> ClassDef:
    cls = ClassDef(node.name, prefix + node.name, module, node)
    symbols: dict[str, Symbol] = {}
    scan_body(node.body, module, symbols, cls)
    for name, symbol in symbols.items():
        match symbol:
            case FunctionDef():
                cls.methods[name] = symbol
            case ClassDef():
                cls.classes[name] = symbol
            case Assigned():
                cls.assigned[name] = symbol
    return cls


def assigned(symbols: dict[str, Symbol], name: str) -> Assigned:
    old = symbols.get(name)
    if not isinstance(old, Assigned):
        new = Assigned()
        symbols[name] = new
        return new
    return old


def add_assigned(symbols: dict[str, Symbol], target: ast.expr, node: ast.stmt, value: ast.expr | None) -> None:
    match target:
        case ast.Name(id=name):
            assigned(symbols, name).values.append((node, value))
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            paired = len(parts) == len(targets)
            for i, inner in enumerate(targets):
                add_assigned(symbols, inner, node, parts[i] if paired else None)
        case ast.Starred(value=inner):
            add_assigned(symbols, inner, node, None)


def absolute(module: ModuleDef, node: ast.ImportFrom) -> str:
    """The absolute name that a `from … import` names."""
    if not node.level:
        return node.module or ""
    base = module.package.split(".") if module.package else []
    base = base[: len(base) - (node.level - 1)] if node.level > 1 else base
    return ".".join([*base, *([node.module] if node.module else [])])
