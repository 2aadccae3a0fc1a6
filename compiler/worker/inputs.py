"""The arguments a target is called with: what the file declares, else what its signature suggests."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .channel import Failed

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
ROWS = 2


def declared(module: types.ModuleType, qualname: str, alone: bool) -> Callable[[], Arguments] | None:
    """A function that makes the declared arguments anew, or None.

    `tlint_inputs()` returns a dict of arguments by qualified name; or, where the target is `alone`, the one root of its
    file, the arguments themselves, as `get_inputs()` does.
    """
    if hasattr(module, "tlint_inputs"):
        names = (qualname, qualname.removesuffix(".forward"), f"{qualname}.forward")
        made = module.tlint_inputs()
        if not isinstance(made, dict) and not alone:
            raise Failed(
                f"tlint_inputs() returns the arguments of the file's one root, which {qualname!r} is not: "
                f'return a dict of them by name, like {{"{qualname}": (...)}}',
                "skipped",
                "construct",
            )
        if not isinstance(made, dict):
            return lambda: arguments(module.tlint_inputs())
        for name in names:
            if name in made:
                return lambda: arguments(module.tlint_inputs()[name])
    if hasattr(module, "get_inputs"):
        return lambda: (tuple(module.get_inputs()), {})
    return None


def arguments(value: Any) -> Arguments:
    match value:
        case ((*args,), dict(kwargs)) if isinstance(value[0], tuple):
            return tuple(args), kwargs
        case tuple() | list():
            return tuple(value), {}
    raise Failed(f"tlint_inputs() gave a {type(value).__name__}: a tuple of arguments is expected", phase="construct")


def construct(module: types.ModuleType, cls: type) -> Any:
    """An instance: by `get_init_inputs()`, an instance that the module holds, or with what the annotations suggest."""
    if hasattr(module, "get_init_inputs"):
        args, kwargs = arguments(tuple(module.get_init_inputs()))
        if accepts(cls, args, kwargs):  # else it speaks of another class of the file
            return cls(*args, **kwargs)
    held = [value for value in vars(module).values() if type(getattr(value, "_orig_mod", value)) is cls]
    if held:
        return held[0]
    values = {}
    for parameter in required(cls):
        value = SIMPLE.get(annotation(parameter))
        if value is None:
            raise Failed(
                f"{cls.__name__}() needs {parameter.name!r}: add get_init_inputs() beside it, returning its arguments",
                "skipped",
                "construct",
            )
        values[parameter.name] = value
    return cls(**values)


def accepts(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        inspect.signature(cls).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


SIMPLE = {"int": 8, "float": 0.5, "bool": False, "str": ""}


def annotation(parameter: inspect.Parameter) -> str:
    given = parameter.annotation
    return given if isinstance(given, str) else getattr(given, "__name__", str(given))


def required(target: Any) -> list[inspect.Parameter]:
    """The parameters that a caller must give."""
    skipped = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        parameters = inspect.signature(target).parameters.values()
    except (ValueError, TypeError) as error:  # built in
        raise Failed(f"its parameters cannot be told: {error}", "skipped", "construct") from error
    return [p for p in parameters if p.default is p.empty and p.kind not in skipped]


def suggested(target: Any) -> Iterator[tuple[Callable[[], Arguments], list[str]]]:
    """Arguments that may fit, best first, each with what it assumes."""
    called = target.forward if isinstance(target, torch.nn.Module) else target
    parameters = required(called)
    simple = {p.name: SIMPLE[annotation(p)] for p in parameters if annotation(p) in SIMPLE}
    for shape, dtype in shapes(target):

        def make(shape: tuple[int, ...] = shape, dtype: torch.dtype = dtype) -> Arguments:
            made = {p.name: simple[p.name] if p.name in simple else tensor(shape, dtype) for p in parameters}
            positional = [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
            return tuple(made.pop(name) for name in positional), made

        described = f"{shape} {dtype}".replace("torch.", "")
        yield make, [f"{p.name}: {simple.get(p.name, described)}" for p in parameters]


def tensor(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype) if dtype.is_floating_point else torch.zeros(shape, dtype=dtype)


def shapes(target: Any) -> Iterator[tuple[tuple[int, ...], torch.dtype]]:
    """Shapes that the first layer takes, then common ones."""
    if isinstance(target, torch.nn.Module):
        for layer in target.modules():
            match layer:
                case torch.nn.Linear():
                    yield (ROWS, layer.in_features), layer.weight.dtype
                    yield (ROWS, 4, layer.in_features), layer.weight.dtype
                case torch.nn.Embedding():
                    yield (ROWS, 8), torch.int64
                case torch.nn.Conv1d() | torch.nn.Conv2d() | torch.nn.Conv3d():
                    yield (ROWS, layer.in_channels, *[32] * len(layer.kernel_size)), layer.weight.dtype
                case torch.nn.LayerNorm():
                    yield (ROWS, *layer.normalized_shape), torch.float32
                case torch.nn.BatchNorm1d():
                    yield (ROWS, layer.num_features), torch.float32
                case torch.nn.BatchNorm2d() | torch.nn.GroupNorm():
                    channels = getattr(layer, "num_features", getattr(layer, "num_channels", 3))
                    yield (ROWS, channels, 32, 32), torch.float32
                case _:
                    continue
            break
    yield from [((ROWS, 8), torch.float32), ((ROWS, 8), torch.int64), ((ROWS, 3, 32, 32), torch.float32)]
