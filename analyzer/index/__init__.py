"""The index: what a name in the project means. Files are parsed when they are first needed."""

from __future__ import annotations

import ast
import gc
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from tlint.analyzer.index.definitions import (
    Assigned,
    ClassDef,
    FunctionDef,
    ImportOf,
    ModuleDef,
    Symbol,
    scan,
)

__all__ = ["Assigned", "ClassDef", "FunctionDef", "ImportOf", "ModuleDef", "Project", "Symbol", "paused_gc"]

# Modules of installed packages that are read in a run; further ones are what nothing is known of.
MOST_INSTALLED = 500

Reader = Callable[[Path], str]

# `model.mask = …`, but not `self.mask = …`; and the names after `global`.
STORES = re.compile(r"^[ \t]*(?!self\.)[\w.\[\]\"']+\.(\w+)[ \t]*=(?!=)", re.MULTILINE)
# The dotted name of what decorates something.
DECORATORS = re.compile(r"^[ \t]*@([\w.]+)", re.MULTILINE)
GLOBALS = re.compile(r"^[ \t]+global[ \t]+([\w, \t]+)", re.MULTILINE)


class Project:
    """The modules of a project by name and by path.

    `read` returns a file's text; a file that does not parse is left out and its error kept in `errors`. `packages` are
    installed packages that may be followed, with the folder that each lies in.
    """

    def __init__(self, root: Path, files: Iterable[Path], read: Reader) -> None:
        self.root = root
        self.packages: dict[str, Path] = {}
        self.read = read
        self.files = tuple(files)
        self._own = frozenset(self.files)
        self.errors: dict[Path, SyntaxError] = {}
        self.texts: dict[Path, str] = {}
        self._modules: dict[Path, ModuleDef | None] = {}
        self._packages: dict[Path, bool] = {}
        self._starred: dict[Path, dict[str, Symbol]] = {}
        self._names: dict[str, list[Path]] = {}
        for path in self.files:
            if path.suffix == ".ipynb":
                continue  # nothing imports a notebook
            for name in self._candidates(path, self._own):
                self._names.setdefault(name, []).append(path)
        self._prefixes = {name[:i] for name in self._names for i, c in enumerate(name) if c == "."} | set(self._names)

    def _candidates(self, path: Path, known: Collection[Path]) -> Iterator[str]:
        """The names under which a file may be imported: from its top package, from the root, and from `src/`."""
        parts = [] if path.name == "__init__.py" else [path.stem]
        folder = path.parent
        while self._is_package(folder, known):
            parts.insert(0, folder.name)
            folder = folder.parent
        yield ".".join(parts)
        if path.is_relative_to(self.root):
            whole = list(path.relative_to(self.root).with_suffix("").parts)
            if whole and whole[-1] == "__init__":
                whole.pop()
            for start in (0, 1 if whole[:1] == ["src"] else 0):
                name = ".".join(whole[start:])
                if name != ".".join(parts):
                    yield name

    def _is_package(self, folder: Path, known: Collection[Path]) -> bool:
        if folder not in self._packages:
            init = folder / "__init__.py"
            self._packages[folder] = init in known or init.exists()
        return self._packages[folder]

    def text(self, path: Path) -> str:
        if path not in self.texts:
            self.texts[path] = self.read(path)
        return self.texts[path]

    def module_at(self, path: Path) -> ModuleDef | None:
        """The module in a file, parsed on first use; None where it does not parse."""
        if path not in self._modules:
            self._modules[path] = None  # an import cycle meets this
            text = self.text(path)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", SyntaxWarning)  # the user's own interpreter tells them
                    tree = ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                self.errors[path] = (
                    error if isinstance(error, SyntaxError) else SyntaxError(str(error) or type(error).__name__)
                )
                return None
            name = next(self._candidates(path, set()))
            module = ModuleDef(name, path, text, tree, path.name == "__init__.py", path not in self._own)
            scan(module)
            self._modules[path] = module
        return self._modules[path]

    def give_up(self, path: Path) -> None:
        """Leave a file out that cannot be read as text."""
        self.texts[path] = ""
        self._modules[path] = None

    def find(self, name: str, near: Path | None = None) -> ModuleDef | None:
        """The project's module of that name; of several, the one nearest to the file that imports it."""
        paths = self._names.get(name)
        if not paths:
            return self._installed(name)
        if len(paths) > 1 and near is not None:
            paths = sorted(paths, key=lambda p: -len(shared(p, near)))
        return self.module_at(paths[0])

    def _installed(self, name: str) -> ModuleDef | None:
        """The module of an installed package; the project's own name for something wins."""
        top = name.partition(".")[0]
        if top not in self.packages or self.is_project(top):
            return None
        base = self.packages[top].joinpath(*name.split("."))
        path = next(
            (p for p in (base / "__init__.py", base.with_suffix(".py")) if p in self._modules or p.is_file()), None
        )
        known = len(self._modules) - len(self._own) < MOST_INSTALLED
        return self.module_at(path) if path is not None and (known or path in self._modules) else None

    def is_project(self, name: str) -> bool:
        """Whether the name is a module or package of the project (a folder without `__init__.py` too)."""
        return name in self._prefixes

    @cached_property
    def reset(self) -> frozenset[str]:
        """Names that some file gives a value from elsewhere: as an attribute of what is not `self`, or by `global`."""
        texts = self.texts.values()
        stored = {name for text in texts for name in STORES.findall(text)}
        return frozenset(stored.union(*(re.split(r"[, \t]+", names) for t in texts for names in GLOBALS.findall(t))))

    @cached_property
    def decorating(self) -> dict[str, list[Path]]:
        """The files in which a name decorates something: `register` and `tables` of `@tables.register("a")`."""
        found: dict[str, list[Path]] = {}
        for path, text in self.texts.items():
            for name in dict.fromkeys(part for dotted in DECORATORS.findall(text) for part in dotted.split(".")):
                found.setdefault(name, []).append(path)
        return found

    def symbol(self, module: ModuleDef, name: str) -> Symbol | None:
        """What a name at a module's level means, through `from … import *`."""
        found = module.symbols.get(name)
        if found is None and module.stars:
            found = self.starred(module).get(name)
            if (
                found is None
                and len(module.stars) == 1
                and not name.startswith("_")
                and not self.is_project(module.stars[0])
            ):
                return ImportOf(module.stars[0], name)  # the only package that it can come from
        return found

    def starred(self, module: ModuleDef) -> dict[str, Symbol]:
        """What a module's `from … import *` bring, by name; the last one wins."""
        if module.path not in self._starred:
            names: dict[str, Symbol] = {}
            self._starred[module.path] = names  # modules that import each other meet this
            for star in module.stars:
                source = self.find(star, module.path)
                if source is not None and source is not module:
                    listed = exports(source)
                    for name in (*self.starred(source), *source.symbols):
                        if name in listed or (not listed and not name.startswith("_")):
                            names[name] = ImportOf(star, name)
        return self._starred[module.path]


def exports(module: ModuleDef) -> frozenset[str]:
    """The names in `__all__`; empty where the module has none."""
    listed = module.symbols.get("__all__")
    values = listed.values if isinstance(listed, Assigned) else []
    return frozenset(
        n.value
        for node, _ in values
        for n in ast.walk(node)
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
    )


def shared(a: Path, b: Path) -> tuple[str, ...]:
    """The folders that two paths have in common."""
    common = []
    for x, y in zip(a.parts, b.parts, strict=False):
        if x != y:
            break
        common.append(x)
    return tuple(common)


@contextmanager
def paused_gc() -> Iterator[None]:
    """Trees are acyclic and live to the end: collecting while they are built took 30% of the time (measured)."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
