"""Compile roots: what the code compiles, what the user names, and every `forward`; and how each is entered."""

from __future__ import annotations

import ast
import bisect
import contextlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tlint.analyzer.config import Settings
from tlint.analyzer.index import Assigned, ClassDef, FunctionDef, ImportOf, ModuleDef
from tlint.analyzer.index.definitions import SCOPES
from tlint.analyzer.interp import calls, expressions, library, objects, statements
from tlint.analyzer.interp.machine import SCRIPT, Dynamo, Frame, Machine
from tlint.analyzer.interp.values import (
    UNKNOWN,
    Bound,
    Class,
    Const,
    External,
    ExternalInstance,
    Function,
    Instance,
    Mapping,
    Partial,
    Sequence,
    Tensor,
    Value,
    join,
    members,
    unbound,
)
from tlint.analyzer.model import Confidence, Root, RootKind, TlintError


@dataclass(frozen=True, slots=True)
class Entry:
    """A root to walk: what is compiled, with the inputs that are known for it."""

    name: str
    kind: RootKind
    value: Value
    module: ModuleDef
    dynamo: Dynamo
    inputs: tuple[Value, ...] | None = None
    # Every `forward` is one: it is not entered where an earlier root has been.
    every: bool = False
    # Where it is compiled: the call, the function and the statement around it.
    site: tuple[ModuleDef, ast.AST, str, ast.stmt] | None = None


def find_roots(
    m: Machine, run: Any, settings: Settings, progress: Callable[[str, int, int], None]
) -> tuple[list[Entry], list[Root]]:
    """The entries to walk in order, explicit roots first, and all roots as `tlint roots` lists them."""
    project = project_settings(m)
    entries: dict[tuple[str, Dynamo, Value], Entry] = {}
    roots: list[Root] = []
    with m.shallow(SCRIPT):
        drive(m, run, progress)
    for node, (frame, site, _callee, _args, keywords) in run.sites.items():
        if dict(keywords).get("disable") == Const(True):
            continue  # nothing is compiled
        how = {"method": "`.compile()`", "export": "`torch.export`"}.get(site.form, "`torch.compile`")
        dynamo = in_force(m, project, dict(keywords), site.form)
        around = (frame.module, node, frame.qualname, site.statement)
        made = [replace(e, site=around) for e in entries_of(m, site.target, frame.module, RootKind.explicit, dynamo)]
        if name := bound_to(site.statement, node):
            made = [e if e.inputs is not None else replace(e, inputs=inputs_of(m, frame.module, name)) for e in made]
        resolved = bool(made) or any(isinstance(v, (ExternalInstance, External, Bound)) for v in members(site.target))
        shown = run.shown(frame.module.path)
        at = (shown, getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1)
        for entry in made:
            entries.setdefault((entry.name, dynamo, entry.value), entry)
            roots.append(Root(entry.name, RootKind.explicit, dynamo.fullgraph, *at, how))
        if not made:
            roots.append(Root(ast.unparse(node)[:60], RootKind.explicit, dynamo.fullgraph, *at, how, resolved))
    for how, entry in asked(m, run, settings, project):
        if not any(e.name == entry.name and e.dynamo == entry.dynamo for e in entries.values()):
            entries[entry.name, entry.dynamo, entry.value] = entry
            at = run.shown(entry.module.path), *place(entry.value)
            roots.append(Root(entry.name, entry.kind, False, *at, how))
    if settings.roots != "explicit":
        kind = RootKind.named if settings.roots == "modules" else RootKind.assumed
        held, assumed = set(), []
        for module in list(loaded(m)):
            for cls in module.classes():
                if ("forward" in cls.methods or fills_in(m, cls)) and objects.is_module(m, cls):
                    assumed.append((module, cls))
                held |= constructed(cls)
        assumed.sort(key=lambda pair: pair[1].name in held)  # what nothing else holds comes first
        names = {entry.name for entry in entries.values()}
        for module, cls in assumed:
            name = f"{module.name}:{cls.qualname}"
            entry = Entry(name, kind, Instance(Class(cls), None), module, project, every=True)
            if name not in names:
                entries[name, entry.dynamo, entry.value] = entry
                roots.append(
                    Root(
                        name,
                        kind,
                        False,
                        run.shown(module.path),
                        cls.node.lineno,
                        cls.node.col_offset + 1,
                        "nn.Module.forward",
                    )
                )
    return list(entries.values()), list(dict.fromkeys(roots))


def fills_in(m: Machine, cls: ClassDef) -> bool:
    """Whether a class leaves `forward` to a base of the project and overrides what that may call."""
    own = [name for name in cls.methods if not name.startswith("__")]
    return bool(own and cls.node.bases) and objects.find_method(m, cls, "forward") is not None


def loaded(m: Machine) -> Iterator[ModuleDef]:
    for path in m.project.files:
        if "torch" in m.project.texts.get(path, ""):
            module = m.project.module_at(path)
            if module is not None:
                yield module


def constructed(cls: ClassDef) -> set[str]:
    """Names of what a class's `__init__` calls: the classes it holds, among others."""
    init = cls.methods.get("__init__")
    if init is None:
        return set()
    return {
        n.func.id if isinstance(n.func, ast.Name) else n.func.attr
        for n in ast.walk(init.node)
        if isinstance(n, ast.Call) and isinstance(n.func, (ast.Name, ast.Attribute))
    }


def place(value: Value) -> tuple[int, int]:
    node: ast.AST | None = None
    match value:
        case Function(definition=definition):
            node = definition.node
        case Instance(cls=cls):
            node = cls.definition.node
    return (node.lineno, node.col_offset + 1) if node is not None else (1, 1)  # type: ignore[attr-defined]


# Settings in force ----------------------------------------------------------------------------------------------------


# Settings that have another name as well, and variables of the environment that decide them.
ALSO = {
    "ignore_logger_methods": "ignore_logging_functions",
    "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS": "capture_scalar_outputs",
    "TORCHDYNAMO_CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS": "capture_dynamic_output_shape_ops",
}


def project_settings(m: Machine) -> Dynamo:
    """The settings of the compiler that the project turns on or adds functions to, wherever it does so."""
    switches = {field.name: field.default for field in fields(Dynamo) if field.name != "fullgraph"}
    found: dict[str, Any] = {}
    for module in loaded(m):
        if not any(name in module.text for name in (*switches, *ALSO)):
            continue
        frame = m.module_frame(module)
        for name, node in (given for one in ast.walk(module.tree) for given in set_by(one)):
            name = ALSO.get(name, name)
            if switches.get(name) == frozenset():
                value = expressions.evaluate(m, frame, node)
                held = library.element_of(m, value) if isinstance(value, Sequence) else value
                found[name] = found.get(name, frozenset()) | {unbound(v) for v in members(held) if v.qualname}
            elif name in switches and isinstance(node, ast.Constant) and node.value in (True, "1"):
                found[name] = True
    return Dynamo(**found)


def set_by(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What a statement or a call gives to settings, by their names: as attributes, patches, or in the environment."""
    match node:
        case (
            ast.Assign(targets=[ast.Attribute(attr=name)], value=value)
            | ast.AugAssign(target=ast.Attribute(attr=name), value=value)
            | ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str() as name))], value=value)
            | ast.Call(func=ast.Attribute(value=ast.Attribute(attr=name), attr="add" | "update"), args=[value])
            | ast.Call(func=ast.Attribute(attr="patch" | "setdefault"), args=[ast.Constant(value=str() as name), value])
            | ast.Call(func=ast.Attribute(attr="object"), args=[_, ast.Constant(value=str() as name), value])
            | ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str() as name), value])
        ):
            yield name, value
        case ast.Call(func=ast.Attribute(attr="patch"), args=[ast.Dict(keys=keys, values=given)]):
            yield from ((str(k.value), v) for k, v in zip(keys, given, strict=True) if isinstance(k, ast.Constant))
        case ast.Call(func=ast.Attribute(attr="patch"), keywords=keywords):
            yield from ((k.arg, k.value) for k in keywords if k.arg)


def in_force(m: Machine, project: Dynamo, keywords: dict[str, Value], form: str) -> Dynamo:
    if form != "export" and keywords.get("fullgraph") != Const(True):
        return project
    item = m.facts.lookup("torch.Tensor.item")
    if item is not None and item.when == "default":  # before torch 2.10, `fullgraph=True` captures neither
        project = replace(project, capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True)
    return replace(project, fullgraph=True)


# What the code compiles -----------------------------------------------------------------------------------------------


def drive(m: Machine, run: Any, progress: Callable[[str, int, int], None]) -> None:
    """Interpret, without events, the code that calls torch.compile, so that each call says what it compiles."""
    pending: list[FunctionDef] = []
    modules = [
        module
        for module in loaded(m)
        if any(word in module.text for word in ("compile", "torch.export", "torch._dynamo"))
    ]
    for i, module in enumerate(modules):
        progress("looking for roots", i, len(modules))
        names = COMPILING | aliases(module)
        lines = lines_with(module, names)
        driven = [f for f in module.functions() if covers(f.node, lines) and mentions(f.node, names)]
        if not driven and not any(covers(s, lines) and mentions(s, names) for s in module.tree.body):
            continue
        top = m.module_frame(module)
        statements.block(m, top, module.tree.body)
        for function in module.functions():
            if function.cls is not None and any(mentions(d, names) for d in function.decorators()):
                objects.decorated(m, top, function)
        for cls in module.classes():
            for decorator in cls.node.decorator_list:
                if mentions(decorator, names):
                    calls.decorate(m, top, decorator, Class(cls))
        for function in driven:
            pending.append(function)
            enter(m, function)
    # What a wrapper compiles its callers say.
    waiting = {
        frame.function for frame, site, *_ in run.sites.values() if not any(v.qualname for v in members(site.target))
    }
    wrappers = frozenset(f.name for f in pending if f in waiting and f.parameters and not f.name.startswith("__"))
    for path in m.project.files if wrappers else ():
        if any(name in m.project.texts.get(path, "") for name in wrappers) and (caller := m.project.module_at(path)):
            lines = lines_with(caller, wrappers)
            loose = (s for s in caller.tree.body if not isinstance(s, SCOPES) and covers(s, lines))
            if caller not in modules and any(mentions(s, wrappers) for s in loose):
                statements.block(m, m.module_frame(caller), caller.tree.body)
            for function in caller.functions():
                if function not in pending and covers(function.node, lines) and mentions(function.node, wrappers):
                    enter(m, function)


def lines_with(module: ModuleDef, names: frozenset[str]) -> list[int]:
    """The lines on which one of these names stands, if only in a comment: where it is worth looking."""
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b")
    return [n for n, line in enumerate(module.lines, 1) if pattern.search(line)]


def covers(node: ast.stmt | ast.Lambda, lines: list[int]) -> bool:
    first = min((d.lineno for d in getattr(node, "decorator_list", ())), default=node.lineno)
    at = bisect.bisect_left(lines, first)
    return at < len(lines) and lines[at] <= (node.end_lineno or node.lineno)


def enter(m: Machine, function: FunctionDef) -> None:
    receiver: Value | None = None
    if function.cls is not None:
        decorated = objects.decorated(m, m.module_frame(function.module), function)
        kinds = decorated.wrappers if isinstance(decorated, Function) else ()
        receiver = (
            None
            if "static" in kinds
            else Class(function.cls)
            if "class" in kinds
            else Instance(Class(function.cls), None)
        )
    value = Function(function, receiver)
    calls.run(m, m.module_frame(function.module), value, calls.root_arguments(m, value, tensors=False), function.node)


COMPILING = frozenset(("compile", "optimize", "export"))


def aliases(module: ModuleDef) -> frozenset[str]:
    """Names of a module that stand for torch.compile: `from torch import compile as c`, `c = torch.compile`."""
    found = set()
    for name, symbol in module.symbols.items():
        match symbol:
            case ImportOf(attribute=attribute) if attribute in COMPILING:
                found.add(name)
            case Assigned(values=values) if any(v is not None and mentions(v, COMPILING | found) for _, v in values):
                found.add(name)
    return frozenset(found)


def mentions(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether a node reads one of these names, or an attribute of that name."""
    for n in ast.walk(node):
        match n:
            case ast.Attribute(value=ast.Name(id="re")):
                continue
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in names:
                return True
    return False


def entries_of(m: Machine, target: Value, module: ModuleDef, kind: RootKind, dynamo: Dynamo) -> Iterator[Entry]:
    """The roots that a compiled value stands for."""
    for value in members(target):
        match value:
            case Function(definition=definition):
                yield Entry(
                    name_of(value),
                    kind,
                    value,
                    definition.module,
                    dynamo,
                    inputs_of(m, definition.module, definition.qualname),
                )
            case Instance(cls=Class(definition=cls)):
                yield Entry(
                    f"{cls.module.name}:{cls.qualname}",
                    kind,
                    value,
                    cls.module,
                    dynamo,
                    inputs_of(m, cls.module, cls.qualname),
                )
            case Class(definition=cls) if objects.is_module(m, cls):
                yield Entry(
                    f"{cls.module.name}:{cls.qualname}",
                    kind,
                    Instance(value, None),
                    cls.module,
                    dynamo,
                    inputs_of(m, cls.module, cls.qualname),
                )
            case Partial():
                inner = value.function
                if isinstance(inner, Function):
                    yield Entry(name_of(inner), kind, value, inner.definition.module, dynamo)
            case ExternalInstance(cls=name) if m.facts.canonical(name) in m.facts.modules and holds_project(value):
                yield Entry(
                    f"{module.name}:{name.rpartition('.')[2]}", kind, value, module, dynamo, inputs_of(m, module, "")
                )
            case Bound(receiver=ExternalInstance()):
                yield Entry(f"{module.name}:{value.qualname}", kind, value, module, dynamo)


def bound_to(statement: ast.stmt, node: ast.AST) -> str:
    """The name that holds what is compiled here: of `net = torch.compile(Net())` and of `net.compile()`."""
    match statement, node:
        case ast.Assign(targets=[ast.Name(id=name)]), _:
            return name
        case ast.Expr(), ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="compile"), args=[]):
            return name
    return ""


def holds_project(v: Value) -> bool:
    match v:
        case Instance() | Function():
            return True
        case ExternalInstance(args=args):
            return any(holds_project(a) for a in args)
        case Sequence(items=tuple() as items):
            return any(holds_project(i) for i in items)
        case Sequence(item=item):
            return any(holds_project(i) for i in members(item))
        case Mapping(items=tuple() as pairs):
            return any(holds_project(v) for _, v in pairs)
    return False


def name_of(value: Function) -> str:
    definition = value.definition
    owner = value.receiver.cls.definition if isinstance(value.receiver, Instance) else None
    qualname = (
        f"{owner.qualname}.{definition.name}"
        if owner is not None and definition.cls is not None
        else definition.qualname
    )
    return f"{definition.module.name}:{qualname}"


# What the user names --------------------------------------------------------------------------------------------------


def asked(m: Machine, run: Any, settings: Settings, project: Dynamo) -> Iterator[tuple[str, Entry]]:
    """The roots of --root, and the targets of verification, with where they come from."""
    for target in settings.root:
        try:
            yield from (("--root", entry) for entry in named(m, target, project))
        except TlintError as error:  # the rest is looked at all the same
            run.errors.append(str(error))
    if settings.root_decorators:
        yield from (("root-decorators", entry) for entry in decorated(m, frozenset(settings.root_decorators), project))
    for target in settings.verify_settings.targets:
        # The worker tells what is wrong with a target; one that only running makes is none of the static stage's.
        with contextlib.suppress(TlintError):
            yield from (("target", entry) for entry in named(m, target, project))


def decorated(m: Machine, decorators: frozenset[str], project: Dynamo) -> Iterator[Entry]:
    """What the project's own decorators compile. They are told by the names that the imports give them."""
    for module in loaded(m):
        for function in module.functions():
            if any(written(module, decorator) in decorators for decorator in function.decorators()):
                for entry in named(m, f"{module.path}:{function.qualname}", project):
                    yield replace(entry, kind=RootKind.explicit)


def written(module: ModuleDef, decorator: ast.expr) -> str:
    """The qualified name of a decorator, called or not."""
    name = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
    first, dot, rest = name.partition(".")
    match module.symbols.get(first):
        case ImportOf(module=source, attribute=attribute):
            return ".".join(filter(None, (source, attribute))) + dot + rest
    return f"{module.name}.{name}"


def named(m: Machine, target: str, project: Dynamo) -> list[Entry]:
    """`FILE.py:QUALNAME` or `MODULE:QUALNAME`."""
    where, _, qualname = target.rpartition(":")
    if not where:
        raise TlintError(f"--root {target}: give it as FILE.py:NAME or MODULE:NAME")
    path = Path(os.path.realpath(where))  # unlike `resolve`, at a link to itself too
    known = path in m.project.files or os.path.isfile(path)
    in_file = where.endswith((".py", ".ipynb"))
    module = (m.project.module_at(path) if known else None) if in_file else m.project.find(where)
    if module is None:
        if in_file and not known:
            raise TlintError(f"--root {target}: no such file in the working directory {Path.cwd()}")
        reason = "it does not parse" if known else f"the project at {m.project.root} has no such module"
        raise TlintError(f"--root {target}: {reason}")
    top = m.module_frame(module)
    first, *rest = qualname.split(".")
    value = module_level(m, module, first)
    for part in rest:
        value = objects.get_attribute(m, top, value, part, module.tree)
    if value is UNKNOWN and first not in module.symbols:
        near = ", ".join(sorted(n for n, s in module.symbols.items() if isinstance(s, (FunctionDef, ClassDef)))[:8])
        raise TlintError(
            f"--root {target}: {module.path.name} defines no {qualname}; it defines {near or 'nothing to compile'}"
        )
    entries = list(entries_of(m, value, module, RootKind.named, project))
    inputs = inputs_of(m, module, qualname)
    return [replace(e, inputs=e.inputs if e.inputs is not None else inputs) for e in entries]


def module_level(m: Machine, module: ModuleDef, name: str) -> Value:
    """A module-level name after the whole module has run, so that `model.step = compile(model.step)` counts."""
    top = m.module_frame(module)
    if not top.env:
        statements.block(m, top, module.tree.body)
    return top.env.get(name, objects.global_value(m, module, name))


def inputs_of(m: Machine, module: ModuleDef, qualname: str) -> tuple[Value, ...] | None:
    """What `tlint_inputs()` or `get_inputs()` beside a root gives, read statically."""
    for name in ("tlint_inputs", "get_inputs"):
        symbol = module.symbols.get(name)
        if isinstance(symbol, FunctionDef):
            value = calls.run(m, m.module_frame(module), Function(symbol), {}, symbol.node)
            for one in members(value):
                if isinstance(one, Mapping) and one.items is not None:
                    chosen = [v for k, v in one.items if k in (Const(qualname), Const(qualname.partition(".")[0]))]
                    one = chosen[0] if chosen else UNKNOWN
                if isinstance(one, Tensor):
                    return (certain(one),)
                if isinstance(one, Sequence) and one.items is not None:
                    return tuple(certain(i) for i in one.items)
    return None


def certain(v: Value) -> Value:
    return replace(v, certain=Confidence.certain, origin="input") if isinstance(v, Tensor) else v


# Walking --------------------------------------------------------------------------------------------------------------


def walk(m: Machine, entry: Entry) -> None:
    """Interpret a root as Dynamo would. A `forward` that an earlier root has reached is none by assumption."""
    frame = Frame(entry.module, None, {}, dynamo=entry.dynamo)
    value = entry.value
    method: FunctionDef | None = None
    if isinstance(value, Instance):
        name = "__call__" if objects.find_method(m, value.cls.definition, "__call__") is not None else "forward"
        method = objects.find_method(m, value.cls.definition, name)
        if method is None:
            return
        own = value.cls.definition
        if (
            entry.every
            and method in m.functions
            and (method.cls is own or m.functions.issuperset(own.methods.values()))
        ):
            return
        bound = objects.bound_method(m, method, value)
        value = bound if isinstance(bound, (Function, Partial)) else Function(method, value)
    if isinstance(value, Function) and any(w.startswith("disable") for w in value.wrappers):
        return
    if isinstance(value, Partial):
        calls.call_value(
            m, frame, value, entry.inputs or (), () if entry.inputs else left_open(m, value), entry.module.tree
        )
        return
    if not isinstance(value, Function):
        calls.call_value(
            m, frame, value, entry.inputs or (Tensor(origin="input", certain=Confidence.likely),), (), entry.module.tree
        )
        return
    if method is not None and value.definition is not method:
        # A decorator's wrapper takes what the function it wraps declares: by name, if it takes names.
        declared = calls.root_arguments(m, Function(method, value.receiver))
        own = method.node.args
        rest = {
            own.vararg.arg if own.vararg else "",
            own.kwarg.arg if own.kwarg else "",
            *(p.arg for p in method.parameters[:1]),
        }
        named = tuple((k, v) for k, v in declared.items() if k not in rest)
        inputs = entry.inputs or ()
        if value.definition.node.args.kwarg is None:
            inputs = (*inputs, *(v for _, v in named[len(inputs) : len(own.posonlyargs) + len(own.args) - 1]))
        more = (("**", UNKNOWN),) if own.kwarg else ()
        calls.invoke(m, frame, value, inputs, named[len(inputs) :] + more, value.definition.node)
        return
    arguments = calls.root_arguments(m, value)
    if entry.inputs is None and entry.kind is RootKind.explicit:
        arguments |= handed(m, value)
    elif entry.inputs is not None:
        given = entry.inputs if value.receiver is None else (value.receiver, *entry.inputs)
        known = calls.bind_arguments(m, value.definition, given, ())
        own = value.definition.node.args  # parameters that are not given stay what they are declared to be
        told = {p.arg for p in [*own.posonlyargs, *own.args][: len(given)] + [v for v in [own.vararg] if v]}
        arguments |= {k: v for k, v in known.items() if k in told and v is not UNKNOWN}
    calls.run(m, frame, value, arguments, value.definition.node)


def handed(m: Machine, value: Function) -> dict[str, Value]:
    """What the calls that were met give a root, for the parameters of which each call tells it.

    A number is one of many, and that None was given says nothing of other calls.
    """
    first = () if value.receiver is None else (value.receiver,)
    bound = [calls.bind_arguments(m, value.definition, first + a, k) for a, k in m.calls.get(value.definition, ())]
    seen: dict[str, Value] = {}
    for name in dict.fromkeys(name for one in bound for name in one):
        values = [objects.soften(one.get(name, UNKNOWN)) for one in bound]
        if not any(UNKNOWN in members(v) or v.is_none for v in values):
            seen[name] = join(*(certain(v) for v in values))
    return seen


def left_open(m: Machine, value: Partial) -> tuple[tuple[str, Value], ...]:
    """What a root that is a partial is still given, by name."""
    inner = value.function
    if not isinstance(inner, Function):
        return ()
    a = inner.definition.node.args
    positional = [p.arg for p in (*a.posonlyargs, *a.args)][len(value.args) + (inner.receiver is not None) :]
    wanted = {*positional, *(p.arg for p in a.kwonlyargs)} - {name for name, _ in value.keywords}
    return tuple((name, v) for name, v in calls.root_arguments(m, inner).items() if name in wanted)
