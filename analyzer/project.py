"""Which project: its root, its Python files, the interpreter that runs it and the torch that it targets."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from tlint.analyzer import config, facts, notebook, source
from tlint.analyzer.config import Settings, patterns
from tlint.analyzer.model import TlintError

log = logging.getLogger("tlint")

SKIPPED = frozenset(
    # Besides these, no environment is walked, whatever it is called: it holds a pyvenv.cfg.
    {
        ".git",
        ".hg",
        ".svn",
        ".bzr",
        ".direnv",
        ".eggs",
        ".nox",
        ".tox",
        ".venv",
        "venv",
        "site-packages",
        "node_modules",
    }
    | {"__pycache__", "__pypackages__", ".ipynb_checkpoints", "build", "dist"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".tlint_cache"}
)
LOCKS = {"uv.lock": "package", "pylock.toml": "packages", "poetry.lock": "package", "pdm.lock": "package"}
PIN = re.compile(r"""(?<![\w.-])torch\s*(?:\[[^]]*\]\s*)?(?:=\s*["'])?===?\s*(\d{1,9}\.\d{1,9})""", re.IGNORECASE)
NEEDS_TORCH = re.compile(r"torch(?![\w.-])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TargetTorch:
    """The versions whose facts hold, like ("2.13",). `source` is one of the report's words, `origin` for people."""

    versions: tuple[str, ...]
    source: str
    origin: str


@dataclass(frozen=True, slots=True)
class Workspace:
    """What a run looks at. `files` make the call graph, `reported` are those below the PATHs asked for."""

    root: Path
    cwd: Path
    paths: tuple[Path, ...]
    files: tuple[Path, ...]
    reported: frozenset[Path]
    python: str | None
    torch: TargetTorch
    buffer: source.Source | None = None

    @property
    def target_torch(self) -> tuple[str, ...]:
        return self.torch.versions

    @property
    def target_torch_source(self) -> str:
        return self.torch.source

    def read(self, path: Path) -> source.Source:
        """The text of a file, or the buffer that stands for it."""
        if self.buffer is not None and path == self.buffer.path:
            return self.buffer
        return source.read(path)

    def cells(self, name: str) -> tuple[notebook.Cell, ...]:
        """The cells with code of a file, by the path that findings have; none where it is no notebook or unreadable."""
        if name.endswith(notebook.SUFFIX):
            with contextlib.suppress(source.SourceError):  # the engine reports it as TL902
                return self.read(self.cwd / name).cells
        return ()

    def display(self, path: Path) -> str:
        return display(path, self.cwd)

    def texts(self, found: Iterable[str] = ()) -> dict[str, str]:
        """The text of each file that is reported on or in which something is found, by the path that findings have.

        What is no text has none.
        """
        texts = {}
        for path in self.reported.union(self.cwd / name for name in found):
            with contextlib.suppress(source.SourceError):  # the engine reports it as TL902
                texts[self.display(path)] = self.read(path).text
        return texts


def display(path: Path, cwd: Path) -> str:
    """`path` as reports name it: relative to the working directory if below it, else absolute."""
    return (path.relative_to(cwd) if path.is_relative_to(cwd) else path).as_posix()


def open_workspace(
    paths: Sequence[Path], settings: Settings, cwd: Path, buffer: source.Source | None = None
) -> Workspace:
    """Find everything a run needs to know before it reads a line. `buffer` is a file given by its text."""
    cwd = cwd.resolve()
    # Links are not resolved: people see the names they typed. But a file has one name, whatever `..` it is asked by.
    asked = tuple(dict.fromkeys(Path(os.path.abspath(cwd / path)) for path in paths))
    for path in asked:
        if not (buffer and path == buffer.path) and (trouble := source.trouble(path)):
            raise TlintError(f"{path}: {trouble}")
    root = find_root(asked, cwd)
    exclude = _Ignore(root, patterns(settings.exclude)[0])
    reported = frozenset(file for path in asked for file in _below(path, root, exclude))
    files = reported | frozenset(_project_files(root, asked, exclude))
    if not reported:
        left_out = "" if any(path.is_dir() for path in asked) else ": `exclude` leaves out what was named"
        log.warning("no Python files below %s%s", ", ".join(map(str, paths)), left_out)
    python = find_python(settings.python, root)
    torch = find_torch(settings, root, python)
    log.info("project %s: %d Python files, %d of them reported on", root, len(files), len(reported))
    log.info("interpreter: %s", python or "none found")
    log.info("torch %s from %s", ", ".join(torch.versions), torch.origin)
    return Workspace(root, cwd, asked, tuple(sorted(files)), reported, python, torch, buffer)


# Files ----------------------------------------------------------------------------------------------------------------


def find_root(paths: Sequence[Path], cwd: Path) -> Path:
    """The nearest folder above all PATHs that has a marker of a project, else the folder that holds them."""
    common = _common(paths, cwd)
    return next((folder for folder in (common, *common.parents) if is_project(folder)), common)


def _common(paths: Sequence[Path], cwd: Path) -> Path:
    absolute = [os.path.abspath(cwd / path) for path in paths]
    folders = [path if os.path.isdir(path) else os.path.dirname(path) for path in absolute]
    return Path(os.path.commonpath(folders or [os.fspath(cwd)]))


def is_project(folder: Path) -> bool:
    # A home folder kept in git is no project: it would be walked as a whole.
    return config.table(folder) is not None or (os.path.exists(folder / ".git") and folder != Path.home())


def _project_files(root: Path, paths: Iterable[Path], exclude: _Ignore) -> Iterator[Path]:
    """The files of the project. A folder without a marker is not walked: only what a script there could import."""
    if is_project(root):
        yield from _below(root, root, exclude)
        return
    for folder in {path.parent for path in paths if os.path.isfile(path)}:
        for entry in _entries(folder):
            path = folder / entry.name
            if (path.suffix == ".py" and os.path.isfile(path)) or os.path.isfile(path / "__init__.py"):
                yield from _below(path, root, exclude)


@dataclass(frozen=True, slots=True)
class _Ignore:
    """The patterns that hold below a folder."""

    folder: Path
    spec: GitIgnoreSpec

    def covers(self, path: Path, is_folder: bool) -> bool | None:
        """True if ignored, False if kept by a "!" pattern, None if no pattern matches."""
        name = path.relative_to(self.folder).as_posix()
        return self.spec.check_file(f"{name}/" if is_folder else name).include


def _below(top: Path, root: Path, exclude: _Ignore) -> Iterator[Path]:
    """The Python files at or below `top`. What was asked for by name is taken despite a .gitignore, not `exclude`."""
    if not os.path.isdir(top):
        if not exclude.covers(top, False):
            yield top
        return
    above = [_gitignore(folder) for folder in reversed(top.parents) if folder.is_relative_to(root)]
    yield from _walk(top, [exclude, *(ignore for ignore in above if ignore and not ignore.covers(top, True))])


def _walk(folder: Path, ignores: Sequence[_Ignore]) -> Iterator[Path]:
    own = _gitignore(folder)
    ignores = [*ignores, own] if own else ignores
    for entry in _entries(folder):
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):  # links to folders are not followed: they could lead in circles
            if not (entry.name in SKIPPED or os.path.exists(path / "pyvenv.cfg") or _ignored(path, True, ignores)):
                yield from _walk(path, ignores)
        elif (
            entry.name.endswith((".py", notebook.SUFFIX))
            and (entry.is_file(follow_symlinks=False) or os.path.isfile(path))
            and not _ignored(path, False, ignores)
        ):
            yield path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder below those that were asked for, by name; nothing of one that cannot be listed."""
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        log.warning("%s is left out: it cannot be listed (%s)", folder, error.strerror)
        return []


def _gitignore(folder: Path) -> _Ignore | None:
    file = folder / ".gitignore"
    if not os.path.isfile(file):
        return None
    try:
        spec, _ = patterns(source.read_plain(file).splitlines())  # git, too, passes over what is no pattern
    except TlintError as error:
        log.warning("ignored: %s", error)
        return None
    return _Ignore(folder, spec)


def _ignored(path: Path, is_folder: bool, ignores: Sequence[_Ignore]) -> bool:
    """What the innermost file with a matching pattern says, as git has it."""
    said = (ignore.covers(path, is_folder) for ignore in reversed(ignores))
    return next((answer for answer in said if answer is not None), False)


# The interpreter ------------------------------------------------------------------------------------------------------


def find_python(named: str | None, root: Path) -> str | None:
    """The interpreter of the project: --python or configuration, the active environment, the project's own, or ours."""
    if named:
        python = _interpreter(Path(named))
        if python is None:
            raise TlintError(f"{named}: no Python interpreter (name a file, or the folder of an environment)")
        return str(python)
    active = os.environ.get("VIRTUAL_ENV")
    candidates = [root / ".venv", root / "venv"]
    if active and Path(active) != Path(sys.prefix):
        candidates.insert(0, Path(active))
    found = next(filter(None, map(_interpreter, candidates)), None)
    if found is None and _installed_torch(Path(sys.executable)):
        found = Path(sys.executable)
    return str(found) if found else None


def _interpreter(path: Path) -> Path | None:
    # Never resolved: the link is what makes it the environment's own interpreter.
    candidates = [path / "bin" / "python", path / "Scripts" / "python.exe"] if os.path.isdir(path) else [path]
    return next((Path(os.path.abspath(file)) for file in candidates if os.access(file, os.X_OK)), None)


def site_packages(python: Path) -> tuple[Path, ...]:
    """Where an interpreter's packages are, by the layout of environments: it is not run."""
    if python == Path(sys.executable):
        return tuple({Path(sysconfig.get_path(name)): None for name in ("purelib", "platlib")})
    prefix = python.parent.parent
    patterns = ("lib/python3*/site-packages", "lib/python3/dist-packages", "Lib/site-packages")
    return tuple(sorted(folder for pattern in patterns for folder in prefix.glob(pattern)))


def torch_packages(python: Path) -> dict[str, Path]:
    """The installed packages that build on torch, by the name they are imported by: what their metadata requires."""
    found: dict[str, Path] = {}
    for folder in site_packages(python):
        for package in importlib.metadata.distributions(path=[str(folder)]):
            if any(NEEDS_TORCH.match(requirement) for requirement in package.requires or ()):
                tops = (file.parent for file in package.files or () if file.name == "__init__.py")
                found |= {top.name: folder for top in tops if len(top.parts) == 1}
    return found


def _installed_torch(python: Path) -> str | None:
    """ "2.13" where torch 2.13.0+cpu is installed."""
    infos = (info for folder in site_packages(python) for info in folder.glob("torch-*.dist-info"))
    return _newest(info.name.removeprefix("torch-") for info in infos)


# The target torch -----------------------------------------------------------------------------------------------------


def find_torch(settings: Settings, root: Path, python: str | None) -> TargetTorch:
    """Flag, configuration, lock file or pin, the interpreter's metadata, else the newest torch that has facts."""
    if settings.target_torch:
        flag = "target_torch" in settings.flags
        versions = dict.fromkeys(_known(version) for version in settings.target_torch)
        return TargetTorch(tuple(versions), "flag" if flag else "config", "--target-torch" if flag else "configuration")
    for file, version in _pins(root):
        return _nearest(version, "lock", file.name)
    installed = _installed_torch(Path(python)) if python else None
    if python and installed:
        environment = Path(python).parent.parent
        return _nearest(installed, "environment", display(environment, root))
    return TargetTorch((facts.versions()[-1],), "newest", "the newest known")


def _known(text: str) -> str:
    versions = facts.versions()
    match = re.match(r"v?(\d+\.\d+)", text.strip())
    if match is None or match[1] not in versions:
        raise TlintError(f"target torch {text}: nothing is known of it; known are {', '.join(versions)}")
    return match[1]


def _nearest(version: str, kind: str, origin: str) -> TargetTorch:
    """The facts of the newest version not newer than what is used."""
    versions = facts.versions()
    older = [known for known in versions if _key(known) <= _key(version)]
    best = older[-1] if older else versions[0]
    if best != version:
        log.info("%s says torch %s, of which there are no facts: those of %s are used", origin, version, best)
    return TargetTorch((best,), kind, origin)


def _pins(root: Path) -> Iterator[tuple[Path, str]]:
    """Each file that pins torch, with the version; what cannot be read pins nothing."""
    for file in (*(root / name for name in LOCKS), *sorted(root.glob("requirements*.txt")), root / "pyproject.toml"):
        try:
            versions = (_locked if file.name in LOCKS else _required)(file) if os.path.isfile(file) else ()
        except TlintError as error:
            log.warning("ignored: %s", error)
            continue
        if newest := _newest(versions):
            yield file, newest


def _locked(file: Path) -> Iterable[str]:
    packages = config.read_toml(file).get(LOCKS[file.name])
    rows = [row for row in packages if isinstance(row, dict)] if isinstance(packages, list) else []
    return [str(row.get("version")) for row in rows if row.get("name") == "torch"]


def _required(file: Path) -> Iterable[str]:
    return PIN.findall(re.sub("#.*", "", source.read_plain(file)))


def _newest(versions: Iterable[str]) -> str | None:
    found = [match[0] for version in versions if (match := re.match(r"\d{1,9}\.\d{1,9}", version))]
    return max(found, key=_key, default=None)


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
