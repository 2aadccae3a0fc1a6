"""Names, attributes, classes and instances: what a name means and what an object holds."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tlint.analyzer.index import Assigned, ClassDef, FunctionDef, ImportOf, ModuleDef, Symbol
from tlint.analyzer.interp import calls, expressions, hints, library, statements
from tlint.analyzer.interp.machine import CONSTRUCTOR, Frame, Machine
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
    Module,
    Partial,
    Scalar,
    Sequence,
    Tensor,
    Value,
    join,
    members,
    present,
)
from tlint.analyzer.model import Confidence

BUILTINS = frozenset(dir(builtins))
# The key of the attributes that are set by a name worked out on the way: `setattr(self, f"block{i}", …)`.
NUMBERED = "$numbered"
# A folder of the project without `__init__.py` does not hide these.
INSTALLED = ("torch", "numpy", "triton")
MODULE_NAMES = ("torch.nn.Module", "torch.nn.modules.module.Module")
AUTOGRAD = ("torch.autograd.Function", "torch.autograd.function.Function")
NOT_MODULES = (
    *AUTOGRAD,
    "builtins.object",
    "abc.ABC",
    "typing.Generic",
    "typing.Protocol",
    "enum.Enum",
)
# Attributes that hold tensors on torch's own layers.
PARAMETERS = (
    "weight",
    "in_proj_weight",
    "weight_ih_l0",
    "weight_hh_l0",
    "running_mean",
    "running_var",
    "num_batches_tracked",
)
OPTIONAL_PARAMETERS = ("bias", "in_proj_bias")
SELF_METHODS = frozenset(
    (
        "to",
        "cuda",
        "cpu",
        "eval",
        "train",
        "half",
        "float",
        "bfloat16",
        "double",
        "requires_grad_",
        "type",
        "share_memory",
    )
)
# Registered before a module is compiled, these break where it is called.
BACKWARD_HOOKS = ("register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook")
# How a value says that it has one: an attribute of an instance, a keyword of what torch made.
HOOKED = "$backward_hook"


# Names ----------------------------------------------------------------------------------------------------------------


def global_value(m: Machine, module: ModuleDef, name: str) -> Value:
    """What a name at a module's level is, worked out once."""
    key = (name, id(module))
    if key not in m.globals:
        m.globals[key] = UNKNOWN  # a definition that refers to itself meets this
        symbol = m.project.symbol(module, name)
        if symbol is not None:
            found = symbol_value(m, module, symbol)
            if isinstance(symbol, Assigned) and name in hooked_names(module):
                found = join(*(hooked(v) for v in members(found)))
            m.globals[key] = unsettled(found) if isinstance(symbol, Assigned) and name in m.project.reset else found
            if isinstance(symbol, Assigned):
                fill(m, module, name, m.globals[key])
        elif name in BUILTINS:
            m.globals[key] = External("builtins." + name)
        elif name == "__name__":
            m.globals[key] = Scalar("str")
        elif module.is_package and m.project.is_project(f"{module.name}.{name}"):
            m.globals[key] = module_value(m, f"{module.name}.{name}")
    return m.globals[key]


# Definitions that are put into one table by what decorates them: beyond these it is no choice between a few.
MOST_REGISTERED = 64


def fill(m: Machine, module: ModuleDef, name: str, value: Value) -> None:
    """Put into a module's table, empty at first, what decorators and the module's own statements put there.

    Functions that store in it may be called later too: it holds what is found here, and perhaps more.
    """
    makers: list[str] = []
    if value == Mapping(()) and f"{name}[" in module.text:
        own: list[ast.stmt] = [
            s for s in module.tree.body if isinstance(s, ast.Assign) and any(item_of(t, name) for t in s.targets)
        ]
        makers = [f.name for f in module.functions() if any(item_of(n, name) for n in ast.walk(f.node))]
        m.globals[name, id(module)] = Mapping((), open=bool(makers))
        statements.block(m, m.module_frame(module), own)
    elif isinstance(value, Instance) and name in m.project.decorating:
        makers = [name]
    paths = dict.fromkeys(path for maker in makers for path in m.project.decorating.get(maker, ()))
    for definition in [d for path in paths for d in decorated_by(m, path, makers)][:MOST_REGISTERED]:
        frame = m.module_frame(definition.module)
        if isinstance(definition, FunctionDef):
            decorated(m, frame, definition)
        else:
            for decorator in definition.node.decorator_list:
                calls.decorate(m, frame, decorator, Class(definition))


def item_of(node: ast.AST, name: str) -> bool:
    """Whether a node is the target of `name[…] = …`."""
    match node:
        case ast.Subscript(value=ast.Name(id=held), ctx=ast.Store()):
            return held == name
    return False


def decorated_by(m: Machine, path: Path, names: list[str]) -> Iterator[FunctionDef | ClassDef]:
    """The functions and classes of a file in whose decorators one of these names stands."""
    module = m.project.module_at(path)
    definitions: list[FunctionDef | ClassDef] = [*module.functions(), *module.classes()] if module is not None else []
    for definition in definitions:
        inside = [n for decorator in getattr(definition.node, "decorator_list", ()) for n in ast.walk(decorator)]
        if any(getattr(n, "attr", getattr(n, "id", "")) in names for n in inside):
            yield definition


def rebound(m: Machine, f: Frame, name: str, value: Value) -> None:
    """Code that is not compiled has put something into a table of a module."""
    module: ModuleDef | None = f.module
    symbol = f.module.symbols.get(name)
    while module is not None and isinstance(symbol, ImportOf) and symbol.attribute:
        module, name = m.project.find(symbol.module, module.path), symbol.attribute
        symbol = module.symbols.get(name) if module is not None else None
    if module is not None and isinstance(symbol, Assigned):
        m.globals[name, id(module)] = value


def hooked_names(module: ModuleDef) -> set[str]:
    """Names that a module's top level registers backward hooks on."""
    if "_backward_" not in module.text:
        return set()
    calls_made = [s.value.func for s in module.tree.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    return {
        c.value.id
        for c in calls_made
        if isinstance(c, ast.Attribute) and c.attr in BACKWARD_HOOKS and isinstance(c.value, ast.Name)
    }


def hooked(v: Value) -> Value:
    """A layer of torch that has a backward hook. Containers without a `forward` are not called."""
    if isinstance(v, ExternalInstance) and (v.cls not in library.CONTAINERS or v.cls.endswith(".Sequential")):
        return v if (HOOKED, TRUE) in v.keywords else replace(v, keywords=(*v.keywords, (HOOKED, TRUE)))
    return v


def symbol_value(m: Machine, module: ModuleDef, symbol: Symbol) -> Value:
    match symbol:
        case ImportOf(module=source, attribute=""):
            return module_value(m, source, module)
        case ImportOf(module=source, attribute=attribute):
            return imported(m, module, source, attribute)
        case FunctionDef():
            return decorated(m, m.module_frame(module), symbol)
        case ClassDef():
            return Class(symbol)
        case Assigned():
            return assigned_value(m, m.module_frame(module), symbol)
    return UNKNOWN


def module_value(m: Machine, name: str, importer: ModuleDef | None = None) -> Value:
    found = m.project.find(name, importer.path if importer else None)
    if found is not None:
        return Module(found)
    return External(name)


def imported(m: Machine, importer: ModuleDef, source: str, attribute: str) -> Value:
    """`from source import attribute`."""
    found = m.project.find(source, importer.path)
    if found is not None and found is not importer:
        if m.project.symbol(found, attribute) is not None:
            return global_value(m, found, attribute)
        inner = m.project.find(f"{source}.{attribute}", importer.path)
        return Module(inner) if inner is not None else UNKNOWN
    inner = m.project.find(f"{source}.{attribute}", importer.path)
    if inner is not None:
        return Module(inner)
    if m.project.is_project(source) and source.partition(".")[0] not in INSTALLED:
        return UNKNOWN
    name = f"{source}.{attribute}"
    return library.FOLDED_NAMES.get(name, External(m.facts.canonical(name)))


def assigned_value(m: Machine, frame: Frame, symbol: Assigned) -> Value:
    """A module- or class-level name: the join of what it is given. Numbers may be set elsewhere and are not folded.

    A None that is declared to be something else as well waits to be set: the field of a dataclass, a configuration.
    """
    results: list[Value] = []
    for _statement, value in symbol.values:
        results.append(UNKNOWN if value is None else soften(expressions.evaluate(m, frame, value)))
    hint = hints.value_of(m, frame, symbol.annotation)
    if symbol.annotation is not None and results == [NONE]:
        results.append(hint)
    if not results or UNKNOWN in results:
        results = [r for r in results if r is not UNKNOWN] + (
            [hint] if hint is not UNKNOWN or not results else [UNKNOWN]
        )
    return join(*results)


def soften(v: Value) -> Value:
    """Switches that other modules may flip: their type is kept, their value is not."""
    match v:
        case Const(value=bool() | int() | float() as value):
            return Scalar(type(value).__name__)
    return v


def unsettled(v: Value) -> Value:
    """What holds this at first, and may be given another value before it is read."""
    return join(v, UNKNOWN) if v.is_none else soften(v)


def make_function(m: Machine, f: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str) -> Value:
    """A function made while another runs: it captures what its body reads."""
    owner = (f.function or f.module).nested
    definition = owner.get(node)
    if definition is None:
        inside = f"{f.function.qualname}.<locals>.{name}" if f.function is not None else name
        definition = FunctionDef(name, inside, f.module, node, f.cls, f.function)
        owner[node] = definition
    if "nonlocal" in f.module.text:
        f.shared |= {name for n in ast.walk(node) if isinstance(n, ast.Nonlocal) for name in n.names}
        f.env.update((name, unsettled(f.env[name])) for name in f.shared & f.env.keys())
    captured = {**f.closure, **f.env}
    if f.function is None:  # a module's names are looked up when the function runs
        captured = {k: v for k, v in captured.items() if k not in f.module.symbols}
    closure = tuple(sorted(((k, captured[k]) for k in definition.loads if k in captured), key=lambda kv: kv[0]))
    if f.receiver is not None and "super" in definition.loads:
        closure += (("$self", f.receiver),)
    return Function(definition, None, closure)


def decorated(m: Machine, f: Frame, definition: FunctionDef, value: Value | None = None) -> Value:
    """A function as its decorators leave it. `value` is the bare function where it captures something."""
    if value is None and definition in m.decorated:
        return m.decorated[definition]
    bare = value if value is not None else Function(definition)
    if value is None:
        m.decorated[definition] = bare
    result = bare
    for decorator in reversed(definition.decorators()):
        result = calls.decorate(m, f, decorator, result)
    if value is None:
        m.decorated[definition] = result
    return result


# Classes --------------------------------------------------------------------------------------------------------------


def mro(m: Machine, cls: ClassDef) -> list[ClassDef | str]:
    """The class, its project bases, and the dotted names of the others; bases after all that derive from them."""
    if cls not in m.mros:
        m.mros[cls] = [cls]  # a class that inherits from itself meets this
        order: list[ClassDef | str] = [cls]
        for base in base_values(m, cls):
            inherited = mro(m, base.definition) if isinstance(base, Class) else [base.qualname] if base.qualname else []
            for entry in inherited:
                if entry in order:
                    order.remove(entry)
                order.append(entry)
        m.mros[cls] = order
    return m.mros[cls]


def base_values(m: Machine, cls: ClassDef) -> Iterator[Value]:
    frame = m.module_frame(cls.module)
    for base in cls.node.bases:
        node = base.value if isinstance(base, ast.Subscript) else base
        for value in members(expressions.evaluate(m, frame, node)):
            if isinstance(value, (Class, External)):
                yield value


def is_module(m: Machine, cls: ClassDef) -> bool:
    """Whether a class is an nn.Module, as far as its bases tell. A class with a `forward` and a base that is not the
    project's is taken for one."""
    if torch_base(m, cls):
        return True
    outside = [e for e in mro(m, cls) if isinstance(e, str)]
    foreign = [e for e in outside if e not in NOT_MODULES and not e.startswith("builtins.")]
    return bool(foreign) and find_method(m, cls, "forward") is not None


def torch_base(m: Machine, cls: ClassDef) -> str:
    """The first of torch's modules among a class's bases, or ""."""
    outside = (m.facts.canonical(e) for e in mro(m, cls) if isinstance(e, str))
    return next((e for e in outside if e in m.facts.modules), "")


def is_layer(m: Machine, v: Value) -> bool:
    """Whether a value is an nn.Module: the project's, or one of torch's own."""
    match v:
        case Instance(cls=cls):
            return is_module(m, cls.definition)
        case ExternalInstance(cls=name):
            return m.facts.canonical(name) in m.facts.modules
    return False


def find_method(m: Machine, cls: ClassDef, name: str) -> FunctionDef | None:
    for entry in mro(m, cls):
        if isinstance(entry, ClassDef) and name in entry.methods:
            return entry.methods[name]
    return None


def reads(m: Machine, cls: ClassDef, definition: FunctionDef) -> tuple[tuple[str, ...], tuple[FunctionDef, ...]]:
    """What a method reads of its instance, through the methods that it calls: attributes, and those methods."""
    known = m.reads.get((cls, definition))
    if known is None:
        names: dict[str, None] = {}
        methods: dict[FunctionDef, None] = {}
        waiting = [definition]
        while waiting:
            for name in waiting.pop().own_names:
                method = find_method(m, cls, name)
                if method is None:
                    names[name] = None
                elif method not in methods:
                    methods[method] = None
                    waiting.append(method)
        known = m.reads[cls, definition] = tuple(names), tuple(methods)
    return known


def after(m: Machine, cls: ClassDef, module_name: str, qualname: str) -> list[ClassDef | str]:
    """The MRO of `cls` behind the class that `super()` was called in."""
    order = mro(m, cls)
    for i, entry in enumerate(order):
        if isinstance(entry, ClassDef) and entry.qualname == qualname and entry.module.name == module_name:
            return order[i + 1 :]
    return []


# Attributes -----------------------------------------------------------------------------------------------------------


def get_attribute(m: Machine, f: Frame, value: Value, name: str, node: ast.AST) -> Value:
    return join(*(attribute_of(m, f, v, name, node) for v in present(value)))


def attribute_of(m: Machine, f: Frame, v: Value, name: str, node: ast.AST) -> Value:
    match v:
        case Tensor():
            return tensor_attribute(m, f, v, name, node)
        case Module(definition=definition):
            found = global_value(m, definition, name)
            if found is UNKNOWN and m.project.find(f"{definition.name}.{name}") is not None:
                return module_value(m, f"{definition.name}.{name}", definition)
            return found
        case External(name=outer):
            full = f"{outer}.{name}"
            if full in library.FOLDED_NAMES:
                return library.FOLDED_NAMES[full]
            inner = m.project.find(full)
            return Module(inner) if inner is not None else External(m.facts.canonical(full))
        case Instance():
            return instance_attribute(m, f, v, name, node)
        case Class(definition=cls):
            return class_attribute(m, f, cls, name, None)
        case ExternalInstance():
            return external_attribute(m, v, name)
        case Bound(receiver=Instance() as receiver, name=method) if method.startswith("super:"):
            _, module_name, qualname = method.split(":", 2)
            return super_attribute(m, receiver, module_name, qualname, name)
        case Bound(receiver=Class(definition=cls), name=method) if method.startswith("super:"):
            _, module_name, qualname = method.split(":", 2)
            for entry in after(m, cls, module_name, qualname):
                if isinstance(entry, ClassDef) and name in entry.methods:
                    return Function(entry.methods[name], v.receiver)
            return UNKNOWN
        case Function() | Partial():
            if name in ("__wrapped__", "func"):
                return v
            return Bound(v, name)
        case Mapping() if (
            (found := library.looked_up(v, Const(name))) is not UNKNOWN
            and v.items is not None
            and any(k == Const(name) for k, _ in v.items)
        ):
            return found  # ModelOutput-like records: a dict that answers attributes too
        case Sequence() | Mapping() | Const() | Scalar() | Bound():
            return Bound(v, name)
    return UNKNOWN if not v.qualname else Bound(v, name)


# Methods and attributes that only a tensor has: reading one says that a doubtful value is a tensor.
TELLING = frozenset(
    "any all sum mean max min argmax argmin float long half bool dtype shape device ndim size dim numel unsqueeze "
    "squeeze view reshape permute transpose contiguous expand masked_fill masked_fill_ nonzero detach requires_grad "
    "item tolist cpu cuda flatten type_as new_zeros clamp repeat softmax matmul bmm index_select gather scatter "
    "cumsum chunk split".split()
)


def tensor_attribute(m: Machine, f: Frame, v: Tensor, name: str, node: ast.AST) -> Value:
    if v.certain is Confidence.possible and name in TELLING:
        v = replace(v, certain=Confidence.likely)
        if isinstance(node, ast.Attribute):
            told(f, node.value)
    owner = "numpy.ndarray" if v.numpy else "torch.Tensor"
    match name:
        case "shape":
            return Sequence(
                "Size", None if v.rank is None else (Scalar("int", "shape"),) * v.rank, Scalar("int", "shape")
            )
        case "T" | "mT" | "H" | "mH" | "real" | "imag" | "data":
            m.emit("attribute", f, node, value=v, method=name)
            return v
        case "grad":
            return join(NONE, Tensor(v.kind, v.rank, "op", v.certain))
    kind = m.facts.attributes.get(f"{owner}.{name}")
    if kind:
        m.emit("attribute", f, node, value=v, method=name)
        return library.typed(kind, (v,), (), v)
    return Bound(v, name)


def told(f: Frame, node: ast.expr) -> None:
    """Something is done that only a tensor can do: from here on the name most likely holds one."""
    key = expressions.dotted(node)
    if key is not None and key in f.env:
        f.env[key] = join(
            *(
                replace(v, certain=Confidence.likely) if isinstance(v, Tensor) and not v.certain else v
                for v in members(f.env[key])
            )
        )


def external_attribute(m: Machine, v: ExternalInstance, name: str) -> Value:
    """An attribute of a torch layer, or of any object that is not the project's."""
    cls = m.facts.canonical(v.cls)
    if cls in m.facts.modules:
        if name in PARAMETERS:
            return Tensor("float", None, "parameter", Confidence.certain)
        if name in OPTIONAL_PARAMETERS:
            return join(NONE, Tensor("float", None, "parameter", Confidence.certain))
        if name == "training":
            return Scalar("bool", "training")
        if cls == "torch.nn.ModuleDict":
            inside = library.modules_in(v)
            if isinstance(inside, Mapping) and not hasattr(dict, name):
                return library.looked_up(inside, Const(name))
    if cls == "inspect.Signature" and name == "parameters" and v.args:
        return library.parameters_of(v.args[0])
    kind = m.facts.attributes.get(f"{cls}.{name}")
    return library.typed(kind, (), (), v) if kind else Bound(v, name)


def super_attribute(m: Machine, receiver: Instance, module_name: str, qualname: str, name: str) -> Value:
    for entry in after(m, receiver.cls.definition, module_name, qualname):
        if isinstance(entry, ClassDef):
            if name in entry.methods:
                return bound_method(m, entry.methods[name], receiver)
        elif name == "__call__" and entry in MODULE_NAMES:
            forward = find_method(m, receiver.cls.definition, "forward")
            return bound_method(m, forward, receiver) if forward is not None else UNKNOWN
        elif entry not in NOT_MODULES:
            return Bound(ExternalInstance(entry), name)
    return UNKNOWN


def bound_method(m: Machine, method: FunctionDef, receiver: Value) -> Value:
    value = decorated(m, m.module_frame(method.module), method)
    return bind_receiver(value, receiver)


def bind_receiver(value: Value, receiver: Value) -> Value:
    """A function read through an instance or a class becomes a method."""
    match value:
        case Function(receiver=None) if "static" not in value.wrappers:
            if "class" in value.wrappers and isinstance(receiver, Instance):
                receiver = receiver.cls
            return Function(value.definition, receiver, value.closure, value.wrappers)
        case Partial(function=Function(receiver=None) as inner):
            return Partial(bind_receiver(inner, receiver), value.args, value.keywords)
    return value


def class_attribute(m: Machine, f: Frame, cls: ClassDef, name: str, receiver: Value | None) -> Value:
    """An attribute found on the class: a method (bound to `receiver`), an assigned name or an inner class."""
    for entry in mro(m, cls):
        if isinstance(entry, str):
            if name == "apply" and entry in AUTOGRAD:
                return applied(m, cls)
            if receiver is None and entry not in NOT_MODULES:
                return External(f"{entry}.{name}")
            continue
        if name in entry.methods:
            value = decorated(m, m.module_frame(entry.module), entry.methods[name])
            if receiver is not None:
                return bind_receiver(value, receiver)
            return (
                bind_receiver(value, Class(cls)) if isinstance(value, Function) and "class" in value.wrappers else value
            )
        if name in entry.assigned:
            env = dict(m.module_frame(entry.module).env)
            for _, given in entry.assigned[name].values:  # `largest = property(_largest)`: names of the class body
                for n in ast.walk(given) if given is not None else ():
                    if isinstance(n, ast.Name) and n.id in entry.methods and n.id != name:
                        env[n.id] = decorated(m, m.module_frame(entry.module), entry.methods[n.id])
            value = assigned_value(m, Frame(entry.module, None, env, silent=True, cls=entry), entry.assigned[name])
            return bind_receiver(value, receiver) if receiver is not None and isinstance(value, Function) else value
        if name in entry.classes:
            return Class(entry.classes[name])
    return UNKNOWN


def applied(m: Machine, cls: ClassDef) -> Value:
    """`apply` of a `torch.autograd.Function`: Dynamo traces its `forward`, which may leave `ctx` to `setup_context`."""
    forward = find_method(m, cls, "forward")
    if forward is None:
        return UNKNOWN
    apart = find_method(m, cls, "setup_context") is not None
    context = () if apart else (ExternalInstance("torch.autograd.function.FunctionCtx"),)
    return Partial(decorated(m, m.module_frame(forward.module), forward), context)


def instance_attribute(m: Machine, f: Frame, v: Instance, name: str, node: ast.AST) -> Value:
    cls = v.cls.definition
    method = find_method(m, cls, name)
    own = attributes_of(m, v)
    if name in own:
        stored = m.stored.get((cls, name))
        return own[name] if stored is None else join(own[name], stored)
    if method is not None:
        value = bound_method(m, method, v)
        if isinstance(value, Function) and "property" in value.wrappers:
            return calls.invoke(m, f, value, (), (), node)
        return join(value, m.stored[cls, name]) if (cls, name) in m.stored else value
    for entry in mro(m, cls):
        if isinstance(entry, ClassDef) and (entry, name) in m.stored:
            return m.stored[entry, name]
    found = class_attribute(m, f, cls, name, v)
    if isinstance(found, Function) and "property" in found.wrappers:
        return calls.invoke(m, f, found, (), (), node)
    if found is not UNKNOWN:
        return found
    if name == "__class__":
        return v.cls
    if name == "__dict__":
        return Mapping()
    if is_module(m, cls):
        if name == "training":
            return Scalar("bool", "training")
        for entry in mro(m, cls):
            if isinstance(entry, str) and entry not in NOT_MODULES:
                outside = external_attribute(m, ExternalInstance(entry), name)
                if not isinstance(outside, Bound):
                    return outside
                if name in SELF_METHODS or name in ("compile", "children", "named_children"):
                    return Bound(v, name)
                known = m.facts.lookup(f"{entry}.{name}") or m.facts.lookup(f"torch.nn.Module.{name}")
                if known is not None or m.facts.canonical(entry) not in m.facts.modules:
                    return outside
    return hinted(m, cls, name)


def hinted(m: Machine, cls: ClassDef, name: str) -> Value:
    """The annotation of an attribute that nothing assigns (a dataclass field, a declaration)."""
    for entry in mro(m, cls):
        if isinstance(entry, ClassDef) and name in entry.assigned and entry.assigned[name].annotation is not None:
            return hints.value_of(m, m.module_frame(entry.module), entry.assigned[name].annotation)
    return UNKNOWN


def attributes_of(m: Machine, instance: Instance) -> dict[str, Value]:
    """What `__init__` leaves on an instance, worked out when an attribute is first read."""
    known = m.attributes.get(instance)
    if known is not None:
        return known
    own: dict[str, Value] = {}
    m.attributes[instance] = own
    cls = instance.cls.definition
    init = find_method(m, cls, "__init__")
    if init is None:
        fields(m, instance, own)
    else:
        frame = m.module_frame(init.module)
        value = Function(init, instance)
        m.making.append(instance)
        with m.shallow(CONSTRUCTOR):
            if instance.args is None:
                calls.run(m, frame, value, calls.root_arguments(m, value, tensors=False), init.node)
            else:
                calls.run_bound(m, frame, value, instance.args, instance.keywords, init.node)
        m.making.pop()
    later = m.project.reset.union(*(e.stores for e in mro(m, cls) if isinstance(e, ClassDef)))
    own.update((name, unsettled(own[name])) for name in own.keys() & later)
    return own


def fields(m: Machine, instance: Instance, own: dict[str, Value]) -> None:
    """Dataclasses and named tuples: the annotated names of the class body, in order, given by the call."""
    names: list[tuple[str, ClassDef]] = []
    for entry in reversed([e for e in mro(m, instance.cls.definition) if isinstance(e, ClassDef)]):
        names += [
            (n, entry) for n, a in entry.assigned.items() if a.annotation is not None and n not in [k for k, _ in names]
        ]
    if instance.args is None or not names:
        return
    given = {n: v for (n, _), v in zip(names, instance.args, strict=False)} | dict(instance.keywords)
    for name, entry in names:
        if name in given:
            own[name] = given[name]
        elif entry.assigned[name].values:
            own[name] = assigned_value(m, m.module_frame(entry.module), entry.assigned[name])


def set_attribute(m: Machine, f: Frame, target: ast.Attribute, value: Value) -> None:
    owner = expressions.evaluate(m, f, target.value)
    for v in members(owner):
        if v.is_tensor:
            m.emit("attribute", f, target, value=v, method=target.attr, stored=value, store=True)
        elif isinstance(v, Instance):
            store_attribute(m, f, v, target.attr, value)
    key = expressions.dotted(target)
    if key is not None:
        f.env[key] = value


def store_attribute(m: Machine, f: Frame, instance: Instance, name: str, value: Value) -> None:
    if instance in m.making and f.silent and f.receiver == instance:
        # Still in `__init__` (or what it calls): the first value replaces, one in a branch is one of several.
        own = m.attributes[instance]
        own[name] = join(own[name], value) if name in own and (f.branches or name == NUMBERED) else value
        return
    if f.function is not None and f.function.name == "__init__" and f.receiver == instance:
        return  # it is made anew, in compiled code: what it holds is worked out where it is read
    m.store(instance.cls.definition, name, value)


def get_item(m: Machine, f: Frame, node: ast.AST, v: Value, index: Value) -> Value:
    """`v[index]` for instances and classes."""
    match v:
        case Instance() if is_record(m, v.cls.definition):
            record = as_record(m, v)
            if isinstance(index, Const) and isinstance(index.value, int):
                values = [a for _, a in record.items or () if not a.is_none]
                return values[index.value] if -len(values) <= index.value < len(values) else UNKNOWN
            return library.looked_up(record, index)
        case Instance():
            if find_method(m, v.cls.definition, "__getitem__") is not None:
                return call_method(m, f, v, "__getitem__", (index,), (), node)
            return UNKNOWN
        case ExternalInstance(
            cls="torch.nn.ModuleList"
            | "torch.nn.Sequential"
            | "torch.nn.ModuleDict"
            | "torch.nn.ParameterList"
            | "torch.nn.ParameterDict"
        ):
            inside = library.modules_in(v)
            if isinstance(inside, Mapping):
                return library.looked_up(inside, index)
            if isinstance(index, Sequence) and index.type == "slice":
                return v
            if (
                isinstance(inside, Sequence)
                and inside.items is not None
                and isinstance(index, Const)
                and isinstance(index.value, int)
                and -len(inside.items) <= index.value < len(inside.items)
            ):
                return inside.items[index.value]
            return library.element_of(m, inside)
        case Class() | External():
            return v  # a subscripted generic
    return UNKNOWN


def is_record(m: Machine, cls: ClassDef) -> bool:
    """A dict with attributes, such as Hugging Face's ModelOutput: fields answer `x.name`, `x["name"]` and `x[0]`."""
    return any(e in library.MAPPINGS for e in mro(m, cls))


def as_record(m: Machine, v: Instance) -> Mapping:
    """Its fields, as far as they are not None: which is what such a record holds."""
    own = {Const(k): a for k, a in attributes_of(m, v).items() if not a.is_none}
    return Mapping(tuple(own.items()))


def call_method(
    m: Machine, f: Frame, instance: Instance, name: str, args: library.Args, keywords: library.Keywords, node: ast.AST
) -> Value:
    method = find_method(m, instance.cls.definition, name)
    if method is None:
        return UNKNOWN
    return calls.call_value(m, f, bound_method(m, method, instance), args, keywords, node)


def iterate_instance(m: Machine, f: Frame, v: Instance, node: ast.AST) -> Value:
    if find_method(m, v.cls.definition, "__iter__") is not None:
        return library.element_of(m, call_method(m, f, v, "__iter__", (), (), node))
    if find_method(m, v.cls.definition, "__getitem__") is not None:
        return call_method(m, f, v, "__getitem__", (Scalar("int"),), (), node)
    for entry in mro(m, v.cls.definition):
        if entry in ("builtins.list", "builtins.tuple", "builtins.set", "collections.deque", "collections.UserList"):
            return library.element_of(m, library.first(calls.made_like(m, v, entry).args))
        if entry in ("torch.nn.ModuleList", "torch.nn.Sequential"):
            inside = library.element_of(m, calls.made_like(m, v, entry))
            return join(*(e for e in (inside, child_of(m, v, False)) if e is not UNKNOWN))
    return UNKNOWN


def child_of(m: Machine, v: Instance, named: bool) -> Value:
    """Any of the modules that an instance holds, or a pair of a name and one."""
    found = [
        member
        for name, value in attributes_of(m, v).items()
        if name != "$super"
        for member in members(value)
        if is_layer(m, member)
    ]
    child = join(*found) if found else UNKNOWN
    return Sequence("tuple", (Scalar("str"), child)) if named else child
