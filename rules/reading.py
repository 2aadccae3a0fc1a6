"""What rules ask of an event again and again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tlint.analyzer.interp.values import Const, Function, Mapping, Sequence, Tensor, Value, members
from tlint.rules.base import Confidence, Event, Fact

# Where a tensor comes from that enters the graph, rather than being computed in it.
OUTSIDE = ("input", "parameter", "buffer", "attribute")


def spelled(node: ast.AST, width: int = 60) -> str:
    """The source of an expression on one line, shortened where it is long."""
    text = ast.unparse(node)
    return text if len(text) <= width else text[: width - 1] + "…"


def callee(event: Event) -> str:
    """How the source names what is called: `logger.warning()`."""
    return f"{spelled(event.node.func)}()" if isinstance(event.node, ast.Call) else spelled(event.node)


def tensors(*values: Value | None) -> Iterator[Tensor]:
    """Every tensor in these values and in the containers they are."""
    for value in values:
        for member in members(value) if value is not None else ():
            match member:
                case Tensor():
                    yield member
                case Sequence(items=None) | Mapping(items=None):
                    yield from tensors(member.item)
                case Sequence(items=tuple() as items):
                    yield from tensors(*items)
                case Mapping(items=tuple() as pairs):
                    yield from tensors(*(part for pair in pairs for part in pair))


def sure(*values: Value | None) -> Confidence:
    """How sure it is that one of these is or holds a tensor: what may as well be something else is only possible."""
    return max((surest(value) for value in values if value is not None), default=Confidence.possible)


def surest(value: Value) -> Confidence:
    held = [member for member in members(value) if not member.is_none]
    found = [Confidence.possible]
    for member in held if len(held) == 1 or all(m.is_tensor for m in held) else ():
        match member:
            case Tensor():
                found.append(member.sure)
            case Sequence(items=None) | Mapping(items=None):  # any of its items, one after the other
                found += [t.sure for t in tensors(member.item)]
            case Sequence(items=tuple() as items):
                found += [surest(item) for item in items]
            case Mapping(items=tuple() as pairs):
                found += [surest(part) for pair in pairs for part in pair]
    return max(found)


def given(event: Event) -> list[Value]:
    """All arguments of a call, without the receiver."""
    return [*event.args, *(value for _, value in event.keywords)]


def breaking(event: Event, kind: str) -> Fact | None:
    """The callee's row in the facts, where it is of this kind and breaks when called as it is here."""
    fact = event.fact
    if fact is None or fact.kind != kind or not fact.gb_type:
        return None
    return fact if concerns(event, fact.only) and not captured(event, fact) else None


# The settings, by Dynamo's type of the break, that keep in the graph what breaks by default. Captures are others.
ALLOWED_BY = {
    "Attempted to wrap RNN, GRU, or LSTM": "allow_rnn",
    "Invalid call to __build_class__": "enable_trace_load_build_class",
    "Unsupported Tensor.backward() call": "trace_autograd_ops",
    "using `torch.autograd.grad` with `torch._dynamo.config.trace_autograd_ops=False`": "trace_autograd_ops",
}


def captured(event: Event, fact: Fact) -> bool:
    """Whether the compiler's settings keep in the graph what breaks by default."""
    if fact.gb_type in ALLOWED_BY:
        return bool(getattr(event.settings, ALLOWED_BY[fact.gb_type]))
    shapes = fact.gb_type == "Dynamic shape operator"
    captures = event.settings.capture_dynamic_output_shape_ops if shapes else event.settings.capture_scalar_outputs
    # Before torch 2.10 `fullgraph=True` turns neither on, so that rows do not tell what the settings capture.
    return captures and (fact.when == "default" or shapes or fact.gb_type.startswith("Unsupported Tensor.item()"))


def concerns(event: Event, only: str) -> bool:
    """Whether the call is of the form that a row is about (`Fact.only`)."""
    match only.split(":"):
        case ["one-argument"]:
            return len(given(event)) == 1
        case ["tensor-argument"]:
            return any(tensors(*given(event)))
        case ["without", name]:
            return all(keyword != name for keyword, _ in event.keywords)
        case ["keyword", name]:
            return any(keyword == name for keyword, _ in event.keywords)
        case ["input"]:
            about = event.receiver if event.receiver is not None else event.argument(0, "input")
            return isinstance(about, Tensor) and about.origin in OUTSIDE
        case ["storage-argument"]:
            return any(value.qualname.endswith("Storage") for value in given(event))
        case ["backward-hook"]:
            return event.construct == "backward-hook"
        case ["compiled-argument"]:
            functions = [one for value in given(event) for one in members(value) if isinstance(one, Function)]
            return any("compile" in function.wrappers for function in functions)
        case ["closure"]:
            functions = [value for value in given(event) if isinstance(value, Function)]
            return any(tensors(*(captive for function in functions for _, captive in function.closure)))
        case ["arguments"]:
            return False  # some calls of it break, and which is not known
    return True


def is_true(value: Value | None) -> bool:
    return isinstance(value, Const) and value.value is True
