"""Calls: binding arguments, following functions of the project, and what decorators do to them."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from tlint.analyzer.index import FunctionDef
from tlint.analyzer.interp import expressions, hints, library, objects, statements
from tlint.analyzer.interp.machine import CONTEXTS, DECORATOR, Frame, Machine, Result
from tlint.analyzer.interp.values import (
    NONE,
    TRUE,
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
    Scalar,
    Sequence,
    Tensor,
    Union,
    Unknown,
    Value,
    join,
    members,
    present,
)
from tlint.analyzer.model import Confidence
from tlint.rules.base import Fact, Site

Args = library.Args
Keywords = library.Keywords

COMPILERS = ("torch.compile", "torch._dynamo.optimize", "torch.export.export")
DISABLERS = (
    "torch.compiler.disable",
    "torch._dynamo.disable",
    "torch._disable_dynamo",
    "torch._dynamo.external_utils.disable",
    "torch.compiler.skip",
)
# Decorators that leave a function, for Dynamo, as it is.
TRANSPARENT = (
    "functools.lru_cache", "functools.cache", "functools.singledispatch", "typing.no_type_check", "typing.final",
    "abc.abstractmethod", "torch.no_grad", "torch.inference_mode", "torch.enable_grad", "torch.set_grad_enabled",
    "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.amp.custom_fwd", "torch.amp.custom_bwd",
    "torch.cuda.amp.custom_fwd", "torch.jit.ignore", "torch.jit.unused", "torch.jit.export",
    "torch.jit.script_if_tracing", "torch.compiler.allow_in_graph", "torch.compiler.substitute_in_graph",
)  # fmt: skip
OPAQUE = (
    "torch.library.custom_op",
    "torch.library.triton_op",
    "torch.jit.script",
    "torch._jit_internal.script",
    "triton.jit",
    "torch.compiler.nonstrict_trace",
    "torch.compiler.leaf_function",
)
# What makes a TorchScript module; of a function it makes one that Dynamo calls as it is.
SCRIPTED = {
    "torch.jit.script": "torch.jit.ScriptModule",
    "torch._jit_internal.script": "torch.jit.ScriptModule",
    "torch.jit.freeze": "torch.jit.ScriptModule",
    "torch.jit.optimize_for_inference": "torch.jit.ScriptModule",
    "torch.jit.trace": "torch.jit.TopLevelTracedModule",
}
PROPERTIES = ("builtins.property", "functools.cached_property", "torch.utils._python_dispatch.cached_property")


def call(m: Machine, f: Frame, node: ast.Call) -> Value:
    """A call expression."""
    callee = expressions.evaluate(m, f, node.func)
    args, keywords = arguments(m, f, node)
    result = call_value(m, f, callee, args, keywords, node)
    mutated(m, f, node, callee, args)
    return result


def arguments(m: Machine, f: Frame, node: ast.Call) -> tuple[Args, Keywords]:
    """The values of a call's arguments. What `*rest` of unknown length gives is one `Sequence("spread")`."""
    args: list[Value] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            spread = expressions.evaluate(m, f, arg.value)
            if isinstance(spread, Sequence) and spread.items is not None:
                args.extend(spread.items)
            else:
                args.append(Sequence("spread", None, library.iterated(m, f, spread, arg)))
        else:
            args.append(expressions.evaluate(m, f, arg))
    keywords: list[tuple[str, Value]] = []
    for keyword in node.keywords:
        value = expressions.evaluate(m, f, keyword.value)
        if keyword.arg is not None:
            keywords.append((keyword.arg, value))
            continue
        value = library.together(value)
        if isinstance(value, Mapping) and value.items is not None:
            keywords.extend((k.value, v) for k, v in value.items if isinstance(k, Const) and isinstance(k.value, str))
            if value.open:
                keywords.append(("**", UNKNOWN))
        else:
            keywords.append(("**", value.item if isinstance(value, Mapping) else UNKNOWN))
    return tuple(args), tuple(keywords)


def call_value(m: Machine, f: Frame, callee: Value, args: Args, keywords: Keywords, node: ast.AST) -> Value:
    """The value of a call, whatever is called."""
    return join(*(call_one(m, f, c, args, keywords, node) for c in present(callee)))


def call_one(m: Machine, f: Frame, callee: Value, args: Args, keywords: Keywords, node: ast.AST) -> Value:
    match callee:
        case Function():
            return invoke(m, f, callee, args, keywords, node)
        case Bound():
            return call_bound(m, f, callee, args, keywords, node)
        case External(name=name):
            return call_external(m, f, name, args, keywords, node)
        case Partial(function=inner, args=first, keywords=given):
            merged = {**dict(given), **dict(keywords)}
            return call_value(m, f, inner, first + args, tuple(merged.items()), node)
        case Class(definition=cls):
            return construct(m, f, callee, args, keywords, node)
        case Instance(cls=cls):
            name = (
                "forward"
                if objects.is_module(m, cls.definition) and objects.find_method(m, cls.definition, "__call__") is None
                else "__call__"
            )
            method = objects.find_method(m, cls.definition, name)
            if method is None:
                base = objects.torch_base(m, cls.definition)
                return call_module(m, f, made_like(m, callee, base), args, keywords, node) if base else UNKNOWN
            if objects.HOOKED in m.attributes.get(callee, ()):
                emit_hooked(m, f, callee, node)
            return call_value(m, f, objects.bound_method(m, method, callee), args, keywords, node)
        case ExternalInstance():
            return call_module(m, f, callee, args, keywords, node)
    return UNKNOWN


def emit_hooked(m: Machine, f: Frame, module: Value, node: ast.AST) -> None:
    fact = m.facts.lookup("torch.nn.Module.__call__")
    m.emit("call", f, node, callee=module, receiver=module, method="__call__", fact=fact, construct="backward-hook")


def made_like(m: Machine, instance: Instance, cls: str) -> ExternalInstance:
    """A project's subclass of a torch container or layer, seen as that layer with what `super().__init__` got."""
    own = objects.attributes_of(m, instance)
    made = own.get("$super")
    if isinstance(made, ExternalInstance):
        return made
    plain = objects.find_method(m, instance.cls.definition, "__init__") is None
    return ExternalInstance(cls, instance.args or (), instance.keywords) if plain else ExternalInstance(cls)


def call_module(m: Machine, f: Frame, callee: ExternalInstance, args: Args, keywords: Keywords, node: ast.AST) -> Value:
    """An instance of a class that is not the project's is called: a torch layer runs its forward."""
    cls = m.facts.canonical(callee.cls)
    if (objects.HOOKED, TRUE) in callee.keywords:
        emit_hooked(m, f, callee, node)
    if cls == "torch.nn.Sequential":
        value = library.first(args)
        inside = library.modules_in(callee)
        layers = (
            inside.items
            if isinstance(inside, Sequence) and inside.items is not None
            else (library.element_of(m, inside),)
        )
        for layer in layers:
            value = call_value(m, f, layer, (value,), (), node)
        return value
    if cls == "contextlib._GeneratorContextManager":
        return library.first(args)
    forward = m.facts.lookup(f"{cls}.forward")
    fact = forward or m.facts.lookup(cls)
    m.emit("call", f, node, callee=callee, args=args, keywords=keywords, fact=fact, method="forward", receiver=callee)
    if forward is not None and forward.returns not in ("", "None"):  # nn.Module's own is there to be overridden
        return library.returned(forward, args, keywords)
    return Tensor("float", None, "op", Confidence.likely) if cls in m.facts.modules else UNKNOWN


def call_bound(m: Machine, f: Frame, callee: Bound, args: Args, keywords: Keywords, node: ast.AST) -> Value:
    """A method of a tensor, container, module or outside object."""
    receiver, name = callee.receiver, callee.name
    match receiver:
        case Const(value=str() as text):
            return library.text_method(text, name, args)
        case Sequence() | Mapping():
            return container_method(m, f, receiver, name, args, keywords, node)
        case Instance() if name == "compile" and objects.is_module(m, receiver.cls.definition):
            return record(m, f, node, "method", receiver, callee, args, keywords)
        case Instance() if name in objects.SELF_METHODS:
            return receiver
        case Instance() if name in ("children", "named_children"):
            return Sequence("iterator", None, objects.child_of(m, receiver, name == "named_children"))
        case Instance() if objects.is_record(m, receiver.cls.definition) and name in (
            "keys",
            "values",
            "items",
            "get",
            "pop",
        ):
            return container_method(m, f, objects.as_record(m, receiver), name, args, keywords, node)
        case ExternalInstance(cls=cls) if m.facts.canonical(cls) in m.facts.modules:
            if name == "compile":
                return record(m, f, node, "method", receiver, callee, args, keywords)
            if name == "forward":
                return call_module(m, f, receiver, args, keywords, node)
            if name in objects.SELF_METHODS:
                return receiver
            container = module_container(m, receiver, name)
            if container is not None:
                return container
            if (
                name in ("register_buffer", "register_parameter", "add_module", "register_module")
                and f.receiver is not None
            ):
                registered(m, f, args, keywords, name)
        case Function() | Partial():
            return UNKNOWN
    qualname = f"{m.facts.canonical(receiver.qualname)}.{name}" if receiver.qualname else name
    if isinstance(receiver, ExternalInstance) and name == "__init__" and isinstance(f.receiver, Instance):
        own = m.attributes.get(f.receiver)
        if own is not None:
            own["$super"] = ExternalInstance(receiver.cls, args, keywords)
        return NONE
    fact = m.facts.lookup(qualname) or (
        m.facts.lookup(f"torch.nn.Module.{name}") if isinstance(receiver, (Instance, ExternalInstance)) else None
    )
    m.emit(
        "call",
        f,
        node,
        callee=Bound(receiver, name),
        receiver=receiver,
        method=name,
        args=args,
        keywords=keywords,
        fact=fact,
    )
    if isinstance(receiver, Tensor):
        return tensor_method(m, receiver, name, args, keywords, fact)
    return (
        library.returned(fact, args, keywords, receiver)
        if fact is not None and fact.returns
        else outside(args, keywords)
    )


def registered(m: Machine, f: Frame, args: Args, keywords: Keywords, name: str) -> None:
    """`self.register_buffer("mask", tensor)` and its like set an attribute."""
    given = dict(keywords)
    key = args[0] if args else given.get("name", UNKNOWN)
    value = args[1] if len(args) > 1 else given.get("tensor", given.get("param", given.get("module", UNKNOWN)))
    if isinstance(f.receiver, Instance):
        if name == "register_buffer" and isinstance(value, Tensor):
            value = replace(value, origin="buffer")
        elif name == "register_buffer" and value is UNKNOWN:
            value = Tensor(origin="buffer", certain=Confidence.likely)
        known = isinstance(key, Const) and isinstance(key.value, str)
        objects.store_attribute(m, f, f.receiver, key.value if known else objects.NUMBERED, value)  # type: ignore[attr-defined]


def module_container(m: Machine, v: ExternalInstance, name: str) -> Value | None:
    """values(), items(), append() … of torch's module containers."""
    if m.facts.canonical(v.cls) == "torch.nn.ModuleDict":
        inside = library.modules_in(v)
        element = library.values_of(inside) if isinstance(inside, Mapping) else UNKNOWN
        match name:
            case "values":
                return Sequence("iterator", None, element)
            case "items":
                return Sequence("iterator", None, Sequence("tuple", (Scalar("str"), element)))
            case "keys":
                return Sequence("iterator", None, Scalar("str"))
    match name:
        case "parameters" | "buffers":
            return Sequence("iterator", None, Tensor("float", None, "parameter", Confidence.likely))
        case "named_parameters" | "named_buffers":
            return Sequence(
                "iterator",
                None,
                Sequence("tuple", (Scalar("str"), Tensor("float", None, "parameter", Confidence.likely))),
            )
        case "children" | "modules":
            return Sequence("iterator", None, UNKNOWN)
    return None


def tensor_method(m: Machine, t: Tensor, name: str, args: Args, keywords: Keywords, fact: Fact | None) -> Value:
    """What a tensor's method returns; conversions set the dtype's class."""
    if t.certain is Confidence.possible and name in objects.TELLING:
        t = replace(t, certain=Confidence.likely)
    match name:
        case "item":
            return Scalar({"int": "int", "bool": "bool", "float": "float"}.get(t.kind or "", "float"), "data")
        case "tolist":
            return Sequence(
                "list",
                None,
                Sequence("list", None, Scalar(t.kind or "float", "data"))
                if t.rank is None
                else Scalar(t.kind or "float", "data"),
            )
        case "long" | "int" | "short":
            return replace(t, kind="int", origin="op")
        case "float" | "half" | "bfloat16" | "double":
            return replace(t, kind="float", origin="op")
        case "bool":
            return replace(t, kind="bool", origin="op")
        case "to" | "type" | "type_as" | "view_as" | "astype":
            return replace(t, kind=converted(t, args, keywords), origin="random" if t.origin == "random" else "op")
        case "size":
            if args and not args[0].is_none:
                return Scalar("int", "shape")
        case "numpy":
            return replace(t, numpy=True)
        case "any" | "all":
            return replace(t, kind="bool", rank=0 if not args and not keywords else None, origin="op")
        case "uniform_" | "normal_" | "random_" | "bernoulli_" | "exponential_":
            return replace(t, origin="random")
        case "masked_select" | "nonzero" | "argwhere":
            return replace(t, kind="int" if name != "masked_select" else t.kind, origin="op", sized=True)
    if fact is not None and fact.returns:
        return library.returned(fact, args, keywords, t)
    return replace(t, origin="random" if t.origin == "random" else "op", rank=None)


def converted(t: Tensor, args: Args, keywords: Keywords) -> str | None:
    """The dtype class after `.to(…)`: that of a dtype or tensor among the arguments."""
    for v in (*args, *(v for _, v in keywords)):
        if isinstance(v, Tensor):
            return v.kind
        kind = dtype_kind(v)
        if kind is not None:
            return kind
    return (
        t.kind
        if not any(isinstance(v, (Unknown, Union, ExternalInstance)) for v in (*args, *(v for _, v in keywords)))
        else (t.kind if t.kind != "bool" else None)
    )


def dtype_kind(v: Value) -> str | None:
    name = v.qualname
    if not name.startswith(("torch.", "numpy.", "builtins.")) or not isinstance(v, External):
        return None
    last = name.rpartition(".")[2].rstrip("_")
    if last == "bool":
        return "bool"
    if last.startswith(("int", "uint", "long", "short")):
        return "int"
    if last.startswith(("float", "bfloat", "half", "double")):
        return "float"
    return "complex" if last.startswith("complex") else None


def container_method(
    m: Machine, f: Frame, v: Sequence | Mapping, name: str, args: Args, keywords: Keywords, node: ast.AST
) -> Value:
    if isinstance(v, Mapping):
        values = library.values_of(v)
        match name:
            case "get" | "pop" | "setdefault" if args:
                known = isinstance(args[0], Const) and v.items is not None
                if known:
                    exact = dict(v.items or ()).get(args[0])
                    default = args[1] if len(args) > 1 else NONE
                    return exact if exact is not None else join(default, UNKNOWN) if v.open else default
                return join(library.looked_up(v, args[0]), args[1] if len(args) > 1 else NONE)
            case "values":
                return Sequence("iterator", None if v.items is None else tuple(x for _, x in v.items), values)
            case "keys":
                return Sequence("iterator", None if v.items is None else tuple(k for k, _ in v.items), v.key)
            case "items":
                pairs = None if v.items is None else tuple(Sequence("tuple", pair) for pair in v.items)
                return Sequence("iterator", pairs, Sequence("tuple", (v.key, values)))
            case "copy":
                return v
            case "update":
                return NONE
        return UNKNOWN
    match name:
        case "sort":
            library.compare_all(m, f, node, library.element_of(m, v), keywords)
            return NONE
        case "append" | "extend" | "insert" | "add" | "clear" | "remove" | "reverse":
            return NONE
        case "pop" | "popleft":
            return library.element_of(m, v)
        case "copy":
            return v
        case "index" | "count":
            return Scalar("int")
        case "numel":
            return Scalar("int", "shape")
    return UNKNOWN


def mutated(m: Machine, f: Frame, node: ast.Call, callee: Value, args: Args) -> None:
    """`xs.append(x)` changes what the name holds."""
    if not isinstance(node.func, ast.Attribute):
        return
    for one in members(callee):
        if isinstance(one, Bound) and one.name in objects.BACKWARD_HOOKS and args:
            register_hook(m, f, node.func.value, one.receiver)
        elif isinstance(one, Bound) and one.name in MUTATORS and args:
            key = expressions.dotted(node.func.value)
            layers = isinstance(one.receiver, ExternalInstance) and one.receiver.cls in library.CONTAINERS
            inside = library.modules_in(one.receiver) if layers else one.receiver  # type: ignore[arg-type]
            if key is None or not isinstance(inside, (Sequence, Mapping)):
                return
            changed: Value = grown(m, f, inside, one.name, args)
            if layers and isinstance(changed, (Sequence, Mapping)):
                changed = library.refilled(one.receiver, changed)  # type: ignore[arg-type]
            if key in f.env or "." not in key:
                f.env[key] = changed
            if isinstance(node.func.value, ast.Attribute):
                objects.set_attribute(m, f, node.func.value, changed)


def register_hook(m: Machine, f: Frame, module: ast.expr, receiver: Value) -> None:
    """A module gets a backward hook: which calls of it break is known by the value from here on."""
    if isinstance(receiver, Instance):
        objects.attributes_of(m, receiver)[objects.HOOKED] = TRUE
    key = expressions.dotted(module)
    changed = objects.hooked(receiver)
    if key is not None and changed is not receiver:
        f.env[key] = changed
        if isinstance(module, ast.Attribute):
            objects.set_attribute(m, f, module, changed)


MUTATORS = frozenset(("append", "extend", "insert", "add", "appendleft", "update", "setdefault", "pop"))


def grown(m: Machine, f: Frame, v: Sequence | Mapping, name: str, args: Args) -> Value:
    if name == "pop":
        if isinstance(v, Mapping) and v.items is not None and not f.branches:
            return Mapping(tuple(kv for kv in v.items if kv[0] != args[0]), open=v.open)
        return v if isinstance(v, Mapping) else Sequence(v.type, None, library.element_of(m, v))
    if isinstance(v, Mapping):
        if name == "update" and isinstance(args[0], Mapping):
            if v.items is not None and args[0].items is not None and not f.branches:
                return Mapping(tuple({**dict(v.items), **dict(args[0].items)}.items()), open=v.open or args[0].open)
            return Mapping(None, join(v.key, args[0].key), join(library.values_of(v), library.values_of(args[0])))
        if name == "setdefault" and len(args) > 1:
            return Mapping(None, join(v.key, args[0]), join(library.values_of(v), args[1]))
        return Mapping(None, UNKNOWN, library.values_of(v))
    added = library.element_of(m, args[0]) if name == "extend" else args[-1]
    if v.items is not None and not f.loops and not f.branches and name in ("append", "extend"):
        more = args[0].items if name == "extend" and isinstance(args[0], Sequence) else (added,)
        if more is not None and len(v.items) + len(more) <= 32:
            return Sequence(v.type, v.items + more)
    before = [] if v.items == () else [library.element_of(m, v)]
    return Sequence(v.type, None, join(*before, added))


def call_external(m: Machine, f: Frame, name: str, args: Args, keywords: Keywords, node: ast.AST) -> Value:
    """A function or class that is not the project's."""
    name = m.facts.canonical(name)
    if name in library.FOLDED:
        return library.FOLDED[name]
    if name in COMPILERS:
        return compile_call(m, f, name, args, keywords, node)
    if name in DISABLERS:
        inner = library.first(args)
        return (
            wrapped(inner, "disable+reason" if any(k == "reason" for k, _ in keywords) else "disable")
            if args
            else Partial(External(name), (), keywords)
        )
    if name in TRANSPARENT and args and isinstance(args[0], (Function, Partial, Instance)):
        return args[0]
    if name in OPAQUE:
        function = next((a for a in args if isinstance(a, (Function, Partial))), None)
        if function is not None:
            return wrapped(function, "script" if "script" in name else "opaque")
        if not args or name not in SCRIPTED:
            return Partial(External(name))
    if name in PROPERTIES and args:
        return wrapped(args[0], "property")
    if name in ("builtins.staticmethod", "builtins.classmethod") and args:
        return wrapped(args[0], name.rpartition(".")[2].removesuffix("method"))
    fact = m.facts.lookup(name)
    m.emit(
        "call", f, node, callee=External(name), args=args, keywords=keywords, fact=fact, method=name.rpartition(".")[2]
    )
    given = members(library.first(args))
    if name in SCRIPTED and any(objects.is_layer(m, v) or v.qualname in SCRIPTED.values() for v in given):
        return ExternalInstance(SCRIPTED[name])
    handler = library.HANDLERS.get(name)
    if handler is not None:
        return handler(m, f, node, args, keywords)
    if name in library.DRAWS:
        breaks = fact is not None and bool(fact.gb_type)
        return library.drawn(dtyped(library.returned(fact, args, keywords), keywords), name, breaks)
    if name in m.facts.modules or (
        fact is not None and fact.kind in ("construction", "recurrent", "context") and not fact.returns
    ):
        return ExternalInstance(name, args, keywords)
    if fact is not None and fact.returns:
        return dtyped(library.returned(fact, args, keywords), keywords)
    if name == "logging.getLogger":
        return ExternalInstance("logging.Logger")
    last = name.rpartition(".")[2]
    if last[:1].isupper() and fact is None:
        return ExternalInstance(name, args, keywords, Confidence.likely)
    if name.startswith("torch."):
        tensors = [t for a in (*args, *(v for _, v in keywords)) for t in library.tensors_in(a)]
        if tensors:
            return Tensor(None, None, "op", min(Confidence.likely, *(t.certain for t in tensors)))
        return UNKNOWN
    return outside(args, keywords)


def dtyped(v: Value, keywords: Keywords) -> Value:
    """`dtype=` decides the class of a created tensor."""
    for key, value in keywords:
        if key == "dtype" and isinstance(v, Tensor):
            return replace(v, kind=dtype_kind(value))
    return v


def outside(args: Args, keywords: Keywords) -> Value:
    """What a library nobody described returns: given tensors, perhaps a tensor."""
    if any(isinstance(v, Tensor) for a in (*args, *(v for _, v in keywords)) for v in members(a)):
        return Tensor(certain=Confidence.possible)
    return UNKNOWN


def wrapped(value: Value, how: str) -> Value:
    match value:
        case Function():
            return replace(value, wrappers=(*value.wrappers, how))
        case Partial(function=inner):
            return replace(value, function=wrapped(inner, how))
    return value


# torch.compile --------------------------------------------------------------------------------------------------------


def compile_call(m: Machine, f: Frame, name: str, args: Args, keywords: Keywords, node: ast.AST) -> Value:
    """`torch.compile(x)` gives what it was given; `torch.compile(fullgraph=True)` gives a decorator."""
    given = dict(keywords)
    if name == "torch._dynamo.optimize":
        return Partial(External("torch.compile"), (), keywords)
    target = args[0] if args else given.get("model")
    if target is None or target.is_none:
        return Partial(External(name), (), keywords)
    form = (
        "export"
        if "export" in name
        else "decorator"
        if isinstance(node, ast.expr) and f.statement is not None and node in getattr(f.statement, "decorator_list", ())
        else "call"
    )
    return record(m, f, node, form, target, External(name), args, keywords)


def record(
    m: Machine, f: Frame, node: ast.AST, form: str, target: Value, callee: Value, args: Args, keywords: Keywords
) -> Value:
    statement = f.statement if f.statement is not None else ast.Expr(node)  # type: ignore[arg-type]
    function = f.function.node if f.function is not None and not isinstance(f.function.node, ast.Lambda) else None
    site = Site(form, target, statement, function, f.loops[-1] if f.loops else None, not f.silent)  # type: ignore[arg-type]
    m.listener.compiled(f, node, site, callee, args, keywords)
    return wrapped(target, "compile") if form != "method" else NONE


def decorate(m: Machine, f: Frame, decorator: ast.expr, value: Value) -> Value:
    """A function after one of its decorators. One that is not understood is taken to leave it as it is."""
    match decorator:
        case ast.Name(id="staticmethod" | "classmethod" as builtin):
            return wrapped(value, builtin.removesuffix("method"))
        case ast.Name(id="property"):
            return wrapped(value, "property")
    with m.shallow(f.depth + DECORATOR):
        maker = expressions.evaluate(m, f, decorator)
    name = maker.qualname if isinstance(maker, (External, Partial, ExternalInstance)) else ""
    if name in PROPERTIES:
        return wrapped(value, "property")
    if name == "contextlib.contextmanager":
        return wrapped(value, "contextmanager")
    if name in TRANSPARENT or name.startswith(("typing.", "abc.")):
        return value
    if name in OPAQUE:
        return wrapped(value, "script" if "script" in name else "opaque")
    if isinstance(maker, (External, Partial)) and (name in DISABLERS or name in COMPILERS):
        definition = value.definition if isinstance(value, Function) else None
        statement, f.statement = f.statement, definition.node if definition is not None else f.statement
        try:
            return call_value(m, f, maker, (value,), (), decorator)
        finally:
            f.statement = statement
    if isinstance(maker, (Function, Partial, Class)):
        silent, f.silent = f.silent, True
        with m.shallow(f.depth + DECORATOR):
            result = call_value(m, f, maker, (value,), (), decorator)
        f.silent = silent
        for one in members(result):
            if isinstance(one, (Function, Partial)) or (
                isinstance(one, Instance) and objects.find_method(m, one.cls.definition, "__call__")
            ):
                return one
    return value


# The project's functions and classes ----------------------------------------------------------------------------------


def construct(m: Machine, f: Frame, callee: Class, args: Args, keywords: Keywords, node: ast.AST) -> Value:
    cls = callee.definition
    order = objects.mro(m, cls)
    if any(e in objects.AUTOGRAD for e in order):
        return UNKNOWN
    if any(k == "**" for k, _ in keywords) or any(isinstance(a, Sequence) and a.type == "spread" for a in args):
        return Instance(callee, None)
    if any(isinstance(e, str) and e.startswith("enum.") for e in order):
        return UNKNOWN
    if (
        objects.is_record(m, cls)
        and objects.find_method(m, cls, "__init__") is None
        and not any(getattr(e, "assigned", None) for e in order)
    ):
        return Mapping(tuple((Const(k), v) for k, v in keywords))
    if objects.torch_base(m, cls):
        m.emit(
            "call",
            f,
            node,
            callee=callee,
            args=args,
            keywords=keywords,
            fact=m.facts.lookup("torch.nn.Module"),
            method="__init__",
        )
    instance = Instance(callee, small(args), small_keywords(keywords))
    if not f.silent and not objects.torch_base(m, cls):
        made(m, f, instance, args, keywords, node)
    return instance


def made(m: Machine, f: Frame, instance: Instance, args: Args, keywords: Keywords, node: ast.AST) -> None:
    """An object is made in compiled code: what `__init__` does on the way is compiled with it."""
    cls = instance.cls.definition
    init = objects.find_method(m, cls, "__init__")
    if init is not None:
        run_bound(m, f, Function(init, instance), args, keywords, node)
    else:
        objects.call_method(m, f, instance, "__post_init__", (), (), node)


def small(args: Args) -> Args:
    """Arguments that tell instances apart; numbers do not, so that a stack of layers stays one value."""
    return tuple(
        Scalar(type(a.value).__name__) if isinstance(a, Const) and type(a.value) in (int, float) else a for a in args
    )


def small_keywords(keywords: Keywords) -> Keywords:
    return tuple(zip((k for k, _ in keywords), small(tuple(v for _, v in keywords)), strict=True))


def invoke(m: Machine, f: Frame, callee: Function, args: Args, keywords: Keywords, node: ast.AST) -> Value:
    """Follow a function of the project."""
    if callee in f.dynamo.ignore_logging_functions:
        return NONE
    outer = f.silent
    if outer and ("compile" in callee.wrappers or callee.definition.name == "forward"):
        m.calls.setdefault(callee.definition, []).append((args, keywords))
    boundary = next((w for w in callee.wrappers if w.startswith("disable") or w in ("script", "opaque")), None)
    if boundary is not None:
        m.emit(
            "call",
            f,
            node,
            callee=callee,
            args=args,
            keywords=keywords,
            method=callee.definition.name,
            receiver=callee.receiver,
        )
        if boundary == "opaque":
            return hints.value_of(
                m, m.module_frame(callee.definition.module), getattr(callee.definition.node, "returns", None)
            )
        f.silent = True
    try:
        return run_bound(m, f, callee, args, keywords, node)
    finally:
        f.silent = outer


def run_bound(m: Machine, f: Frame, callee: Function, args: Args, keywords: Keywords, node: ast.AST) -> Value:
    if callee.receiver is not None:
        args = (callee.receiver, *args)
    bound = bind_arguments(m, callee.definition, args, keywords)
    for p in callee.definition.parameters:
        if (
            p.annotation is not None
            and p.arg in bound
            and contradicted(m, callee.definition, p.annotation, bound[p.arg])
        ):
            bound[p.arg] = join(*(doubted(v) for v in members(bound[p.arg])))
    return run(m, f, callee, bound, node)


def contradicted(m: Machine, definition: FunctionDef, annotation: ast.expr, value: Value) -> bool:
    """Whether a tensor is given where a container is declared: one of the two is wrong."""
    if not any(v.is_tensor for v in members(value)):
        return False
    declared = [v for v in members(hints.value_of(m, m.module_frame(definition.module), annotation)) if not v.is_none]
    return bool(declared) and all(isinstance(v, (Sequence, Mapping)) for v in declared)


def bind_arguments(m: Machine, definition: FunctionDef, args: Args, keywords: Keywords) -> dict[str, Value]:
    """Parameters by name, as Python binds them; defaults are evaluated where the function was defined."""
    a = definition.node.args
    positional = [*a.posonlyargs, *a.args]
    home = m.module_frame(definition.module)
    defaults = definition.defaults
    given = dict(keywords)
    rest = given.pop("**", None)
    bound: dict[str, Value] = {}
    spread: Value | None = None
    queue = list(args)
    for p in positional:
        if queue and isinstance(head := queue[0], Sequence) and head.type == "spread":
            spread = head.item
            del queue[0]
        if p.arg in given:
            bound[p.arg] = given.pop(p.arg)
        elif queue and spread is None:
            bound[p.arg] = queue.pop(0)
        else:
            bound[p.arg] = missing(m, home, defaults.get(p.arg), spread if spread is not None else rest)
    if a.vararg is not None:
        loose = any(isinstance(v, Sequence) and v.type == "spread" for v in queue) or spread is not None
        if loose:
            values = [v.item if isinstance(v, Sequence) and v.type == "spread" else v for v in queue]
            bound[a.vararg.arg] = Sequence("tuple", None, join(*values, *([spread] if spread is not None else [])))
        else:
            bound[a.vararg.arg] = Sequence("tuple", tuple(queue))
    for p in a.kwonlyargs:
        bound[p.arg] = given.pop(p.arg) if p.arg in given else missing(m, home, defaults.get(p.arg), rest)
    if a.kwarg is not None:
        known = tuple((Const(k), v) for k, v in given.items())
        bound[a.kwarg.arg] = Mapping(known, open=rest is not None)
    return bound


def missing(m: Machine, home: Frame, default: ast.expr | None, perhaps: Value | None) -> Value:
    """A parameter nobody named: its default, or what an unknown `*args` or `**kwargs` may have brought."""
    if default is not None:
        value = expressions.evaluate(m, home, default)
        return value if perhaps is None else join(value, UNKNOWN)
    return UNKNOWN if perhaps is None else join(*(doubted(v) for v in members(perhaps)))


def doubted(v: Value) -> Value:
    return replace(v, certain=Confidence.possible) if isinstance(v, Tensor) else v


def root_arguments(m: Machine, callee: Function, tensors: bool = True) -> dict[str, Value]:
    """What a root is called with when no call is seen: annotations, defaults, and for a `forward` tensors."""
    definition = callee.definition
    a = definition.node.args
    home = m.module_frame(definition.module)
    uses = statements.uses_of(definition) if tensors else {}
    bound: dict[str, Value] = {}
    for i, p in enumerate(definition.parameters):
        if i == 0 and callee.receiver is not None:
            bound[p.arg] = callee.receiver
            continue
        value = hints.parameter(m, home, p.annotation, definition.defaults.get(p.arg), tensors)
        if p.annotation is None and p.arg in uses and value.is_tensor:
            value = uses[p.arg]
        bound[p.arg] = value
    if a.vararg is not None:
        bound[a.vararg.arg] = Sequence(
            "tuple", None, Tensor(origin="input", certain=Confidence.likely) if tensors else UNKNOWN
        )
    if a.kwarg is not None:
        bound[a.kwarg.arg] = Mapping((), open=True)
    return bound


def run(m: Machine, f: Frame, callee: Function, bound: dict[str, Value], node: ast.AST) -> Value:
    """Interpret a function's body with its parameters bound; each set of arguments once."""
    definition = callee.definition
    silent = f.silent
    if f.depth >= m.limit:
        return UNKNOWN
    # The budget is one closure's and one class's: a decorator, its wrapper and an inherited method are many functions.
    owner = callee.receiver.cls.definition if isinstance(callee.receiver, Instance) else None
    passed = tuple(
        identity(v.cls if isinstance(v, Instance) else v)
        for v in bound.values()
        if isinstance(v, (Function, Partial, Class, Instance))
    )
    kind = (identity(callee), owner, passed, silent, f.dynamo, f.doubtful > 0)
    key: tuple[Any, ...] = (kind, callee.closure, tuple(bound.items()))
    result = m.results.get(key)
    if result is None:
        count = m.contexts.get(kind, 0)
        if count >= CONTEXTS:
            bound = {k: widen(v) for k, v in bound.items()}
            key = (kind, callee.closure, tuple(bound.items()))
            result = m.results.get(key)
            if result is None and count >= 2 * CONTEXTS:
                key = (kind, "any")
                result = m.results.get(key)
    if result is not None:
        if not silent and result.findings:
            m.listener.again(result.findings, f, node, definition)
        return left(m, f, result)
    who = (definition, callee.receiver, callee.closure)
    deep = m.active.count(who)
    if deep > 2:
        return UNKNOWN
    if deep > 1:  # the last time with any arguments: what ends the recursion is reached too
        bound = {k: v if isinstance(v, Instance) else widen(v) for k, v in bound.items()}
    m.contexts[kind] = m.contexts.get(kind, 0) + 1
    result = Result()
    m.results[key] = result
    m.active.append(who)
    m.running.append(result)
    if not silent:
        m.functions.add(definition)
    closure = dict(callee.closure)
    receiver = (
        bound.get(definition.parameters[0].arg)
        if definition.cls is not None and definition.parameters and callee.receiver is not None
        else closure.pop("$self", None)
    )
    frame = Frame(
        definition.module,
        definition,
        dict(bound),
        closure,
        definition.cls,
        f,
        node,
        silent,
        f.depth + 1,
        f.dynamo,
        receiver,
        doubtful=f.doubtful,
    )
    try:
        if silent and isinstance(receiver, Instance) and receiver in m.making:
            value = initialize(m, frame, definition, receiver, m.attributes[receiver])
        else:
            value = execute(m, frame, definition)
    finally:
        m.active.pop()
        m.running.pop()
    if definition.is_generator:
        yielded = join(*frame.yields) if frame.yields else UNKNOWN
        if "contextmanager" in callee.wrappers:
            value = ExternalInstance("contextlib._GeneratorContextManager", (yielded,))
        else:
            value = Sequence("generator", None, yielded)
    result.value = value
    return left(m, f, result)


def left(m: Machine, f: Frame, result: Result) -> Value:
    """Back in the caller: what happened below holds for its own call too."""
    if m.running:
        m.running[-1].findings |= result.findings
        m.running[-1].breaks |= result.breaks
    forget(m, f, result)
    if result.breaks:
        resume(m, f)
    return result.value


def resume(m: Machine, f: Frame) -> None:
    """After a break Dynamo goes on with a frame of its own: what was computed before it is an input there.

    Where it cannot be entered again, Python runs all of it, and its comprehensions come to Dynamo one by one.
    """
    f.env = {name: passed_in(v) for name, v in f.env.items()}
    if f.holding and not f.lost:
        f.lost = True
        for node, statement in f.apart:
            entered_apart(m, f, node, statement)


def entered_apart(m: Machine, f: Frame, node: ast.expr, statement: ast.stmt | None) -> None:
    m.emit("iterate", replace(f, statement=statement), node, value=Sequence("iterator"), construct="apart")


def passed_in(v: Value) -> Value:
    """A value that enters a frame, as far as it decides something: a number in a tensor becomes a symbol."""
    match v:
        case Tensor(kind="int" | None, origin="op"):
            return replace(v, origin="input")
        case Sequence(items=tuple() as items) if any(isinstance(i, Tensor) for i in items):
            return replace(v, items=tuple(passed_in(i) for i in items))
    return v


def forget(m: Machine, f: Frame, result: Result) -> None:
    """Attributes that a call has stored are no longer what the caller knew of them."""
    if result.stores:
        if m.running:
            m.running[-1].stores |= result.stores
        for key in [k for k in f.env if "." in k and k.rpartition(".")[2] in result.stores]:
            del f.env[key]


def initialize(m: Machine, frame: Frame, definition: FunctionDef, instance: Instance, own: dict[str, Value]) -> Value:
    """Run a method on an instance that is being made, or repeat what it left on another one.

    It depends on its arguments, on the methods that it calls, and on the attributes that it and they read.
    """
    names, methods = objects.reads(m, instance.cls.definition, definition)
    key = (definition, methods, tuple(frame.env.values())[1:], tuple(own.get(n) for n in names))
    done = m.initialized.get(key)
    if done is not None:
        own.update(done[1])
        return done[0]
    before = dict(own)
    initializes = definition.name == "__init__"
    m.limit += initializes
    try:
        value = execute(m, frame, definition)
    finally:
        m.limit -= initializes
    m.initialized[key] = value, {k: v for k, v in own.items() if before.get(k) is not v}
    return value


def identity(v: Value) -> object:
    """Which function a callable is, with the functions that it captured, but not the data."""
    match v:
        case Function():
            inside = tuple(identity(c) for _, c in v.closure if isinstance(c, (Function, Partial, Class)))
            return (v.definition, inside) if inside else v.definition
        case Partial():
            return identity(v.function)
        case Class():
            return v.definition
    return v


def execute(m: Machine, frame: Frame, definition: FunctionDef) -> Value:
    node = definition.node
    if isinstance(node, ast.Lambda):
        return expressions.evaluate(m, frame, node.body)
    if statements.block(m, frame, node.body):
        frame.returns.append(NONE)
    return join(*frame.returns) if frame.returns else UNKNOWN


def widen(v: Value) -> Value:
    """Arguments of a function that has been called with many: what they are, not which."""
    match v:
        case Const(value=bool() | int() | float() | str() as value):
            return Scalar(type(value).__name__)
        case Tensor():
            return Tensor(v.kind, None, "op", v.certain, v.numpy, v.sized)
        case Instance(cls=cls):
            return Instance(cls, None)
        case Sequence(type="tuple", items=tuple() as items) if len(items) <= 8:  # what `*args` hands on stays in place
            return Sequence("tuple", tuple(widen(i) for i in items))
        case Sequence(items=tuple() as items) if items:
            return Sequence(v.type, None, join(*(widen(i) for i in items)))
        case Union():
            return join(*(widen(i) for i in v.members))
    return v
