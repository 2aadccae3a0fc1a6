"""Which targets there are, found without importing anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tlint.analyzer.config import Settings
from tlint.analyzer.model import Root, RootKind
from tlint.analyzer.project import open_workspace
from tlint.compiler.targets import Request, discover, locate

Project = Callable[..., Path]


def found(root: Path, *targets: str, roots: tuple[Root, ...] = ()) -> tuple[tuple[Request, ...], tuple[str, ...]]:
    workspace = open_workspace([Path(".")], Settings(), root)
    located, missing = locate(workspace, targets)
    requests, undeclared = discover(workspace, roots, located)
    return (requests, (*missing, *undeclared)) if located or not targets else ((), missing)


def test_file_with_a_name(project: Project) -> None:
    root = project({"a.py": "class Net: ..."})
    (request,), errors = found(root, "a.py:Net.forward")
    assert errors == ()
    assert (request.id, request.name, request.module, request.qualname) == ("t1", "a:Net.forward", "a", "Net.forward")
    assert request.path == str(root / "a.py") and request.search[0] == str(root)


def test_file_in_a_package_is_imported_as_part_of_it(project: Project) -> None:
    root = project({"src/pkg/__init__.py": "", "src/pkg/sub/__init__.py": "", "src/pkg/sub/a.py": "def f(): ..."})
    for target in ("src/pkg/sub/a.py:f", "pkg.sub.a:f"):
        (request,), _ = found(root, target)
        assert (request.module, request.search[0]) == ("pkg.sub.a", str(root / "src"))
        assert request.path == str(root / "src/pkg/sub/a.py")


def test_file_with_relative_imports_and_no_package(project: Project) -> None:
    root = project({"tlint.toml": "", "ns/a.py": "from .b import c"})
    (request,), _ = found(root, "ns/a.py:c")
    assert (request.module, request.search[0]) == ("ns.a", str(root))


def test_installed_module_has_no_path(project: Project) -> None:
    (request,), _ = found(project({"a.py": ""}), "package.module:f")
    assert (request.path, request.module) == ("", "package.module")


def test_bare_name(project: Project) -> None:
    root = project({"a.py": "def f(): ...", "b.py": "def g(): ...\nh = g", "c.py": "def g(): ..."})
    (request, alias), errors = found(root, "f", "h", "g", "nothing")
    assert (request.name, alias.name) == ("a:f", "b:h")
    assert errors[0] == "g: 2 files define it (b.py, c.py): name one, as FILE.py:NAME"
    assert errors[1].startswith("nothing: ")


def test_what_does_not_exist_is_an_error_and_the_rest_is_found(project: Project) -> None:
    root = project({"a.py": "def f(): ..."})
    requests, errors = found(root, "missing.py:f", "a.py:", "a.py", "a.py:f")
    assert [request.name for request in requests] == ["a:f"]
    assert [error.partition(": ")[0] for error in errors] == ["missing.py:f", "a.py:", "a.py"]


def test_keys_of_declared_inputs_are_targets(project: Project) -> None:
    text = """
        def f(x): ...
        def g(x): ...
        def tlint_inputs():
            return {"f": (1,), "g": (2,)}
    """
    root = project({"a.py": text, "b.py": "def get_inputs(): ..."})
    for asked in ((), ("a.py",)):
        requests, _ = found(root, *asked)
        assert [request.name for request in requests] == ["a:f", "a:g"]


def test_module_class_beside_declared_inputs(project: Project) -> None:
    text = """
        from torch import nn
        class Other(nn.Module): ...
        class Model(nn.Module): ...
        class Last(nn.Module): ...
        def get_inputs(): ...
    """
    root = project({"a.py": text, "b.py": text.replace("Model", "First")})
    assert [request.name for request in found(root)[0]] == ["a:Model", "b:Last"]


def test_roots_beside_declared_inputs(project: Project) -> None:
    root = project({"a.py": "def f(): ...\ndef get_inputs(): ...", "b.py": "def g(): ..."})
    roots = tuple(
        Root(name, kind, True, path, 1, 1, "@torch.compile")
        for name, kind, path in [
            ("a:f", RootKind.explicit, "a.py"),
            ("a:h", RootKind.assumed, "a.py"),
            ("b:g", RootKind.explicit, "b.py"),
        ]
    )
    (request,), _ = found(root, roots=roots)
    assert (request.name, request.fullgraph, request.config) == ("a:f", True, {"fullgraph": True})


def test_same_target_twice_is_run_once(project: Project) -> None:
    root = project({"a.py": "f = g = None"})
    assert len(found(root, "a.py:f", "a.py:f")[0]) == 1


def test_file_that_does_not_parse_declares_nothing(project: Project) -> None:
    assert found(project({"a.py": "def f(:\ndef get_inputs(): ..."})) == ((), ())


def test_a_name_that_only_running_makes_is_left_to_the_worker(project: Project) -> None:
    texts = ["from b import *", "globals().update(f=1)", "def __getattr__(name): ..."]
    root = project({f"{name}.py": text for name, text in zip("acd", texts, strict=True)})
    assert [request.name for request in found(root, "a.py:f", "c.py:f", "d.py:f")[0]] == ["a:f", "c:f", "d:f"]
    root = project({"e.py": "from x import f as g\nif g:\n    h = 1\nfor i in range(3): ..."})
    assert [request.name for request in found(root, "e.py:g", "e.py:h", "e.py:i.j")[0]] == ["e:g", "e:h", "e:i.j"]
    assert found(root, "e.py:f")[1] == ("e.py:f: e.py has no 'f'",)


def test_inputs_without_a_name_are_those_of_the_one_root(project: Project) -> None:
    root = project({"a.py": "def f(): ...\ndef g(): ...\nstep = f"})

    def alone(target: str, *names: str) -> bool:
        roots = tuple(Root(name, RootKind.explicit, False, "a.py", 1, 1, "@torch.compile") for name in names)
        return found(root, target, roots=roots)[0][0].alone

    assert alone("a.py:f") and alone("a.py:f", "a:f") and alone("a.py:step", "a:f")
    assert not alone("a.py:g", "a:f")
    assert not alone("a.py:f", "a:f", "a:g") and not alone("a.py:step", "a:f", "a:g")
