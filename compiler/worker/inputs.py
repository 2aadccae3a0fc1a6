"""The arguments a target is called with: what the file declares, else what its signature suggests."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from .channel import Failed

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
ROWS = 2
TRIES = 16  # of made-up arguments: each is a fork that runs the target once


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


Guess = tuple[tuple[str, tuple[int, ...], torch.dtype], ...]  # a tensor's shape and dtype by its parameter's name


def suggested(target: Any, errors: Sequence[str]) -> Iterator[tuple[Callable[[], Arguments], list[str]]]:
    """Arguments that may fit, best first, each with what it assumes; at most TRIES.

    To `errors` the caller adds what they raised: what the last one says of shapes and dtypes is tried next.
    """
    called = target.forward if isinstance(target, torch.nn.Module) else target
    parameters = required(called)
    simple = {p.name: SIMPLE[annotation(p)] for p in parameters if annotation(p) in SIMPLE}
    tensors = [p.name for p in parameters if p.name not in simple]
    guesses: list[Guess] = [tuple((name, shape, dtype) for name in tensors) for shape, dtype in shapes(target)]
    tried = set[Guess]()
    while guesses and len(tried) < TRIES:
        guess = guesses.pop(0)
        if guess in tried:
            continue
        tried.add(guess)
        described = {name: f"{shape} {dtype}".replace("torch.", "") for name, shape, dtype in guess}
        make = functools.partial(made, parameters, simple, guess)
        yield make, [f"{p.name}: {simple.get(p.name, described.get(p.name))}" for p in parameters]
        guesses[:0] = mended(guess, errors[-1])


def made(parameters: list[inspect.Parameter], simple: dict[str, Any], guess: Guess) -> Arguments:
    values = {**simple, **{name: tensor(shape, dtype) for name, shape, dtype in guess}}
    positional = [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    return tuple(values.pop(name) for name in positional), values


def mended(guess: Guess, error: str) -> list[Guess]:
    """The guess as the error asks for it: in all of its tensors, then in each alone, as it names none of them."""
    for pattern, mend in MENDS:
        if match := re.search(pattern, error):
            new = [(name, *mend(shape, dtype, *map(int, match.groups()))) for name, shape, dtype in guess]
            alone = [(*guess[:n], item, *guess[n + 1 :]) for n, item in enumerate(new)]
            return [tuple(new), *alone]
    return []


def last(shape: tuple[int, ...], dtype: torch.dtype, old: int, size: int) -> tuple[tuple[int, ...], torch.dtype]:
    return ((*shape[:-1], size) if shape[-1] == old else shape), dtype


def ranked(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """A shape of that rank: the last size is kept, as layers fix it; of images all are free but the batch's."""
    if rank > 3:
        return (ROWS, 3, *[32] * (rank - 2))
    return (ROWS, 4, 8)[:rank] if len(shape) > 3 else (*(ROWS, 4)[: rank - 1], shape[-1])


# What torch's errors say about shapes and dtypes, and what to make of a tensor then.
MENDS: tuple[tuple[str, Callable[..., tuple[tuple[int, ...], torch.dtype]]], ...] = (
    (r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", last),
    (r"normalized_shape=\[(?:\d+, )*(\d+)\]", lambda shape, dtype, size: ((*shape[:-1], size), dtype)),
    (
        r"to have (\d+) channels, but got \d+ channels",
        lambda shape, dtype, size: ((shape[0], size, *shape[2:]) if len(shape) > 2 else shape, dtype),
    ),
    (r"or (\d)D \(batched\) input", lambda shape, dtype, rank: (ranked(shape, rank), dtype)),
    (r"values to unpack \(expected (\d)\b", lambda shape, dtype, rank: (ranked(shape, max(1, rank)), dtype)),
    (r"scalar types: Long, Int; but got", lambda shape, dtype: (shape, torch.int64)),
    (r"(?:same dtype|expected scalar type Float)", lambda shape, dtype: (shape, torch.float32)),
    (r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", last),
)


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
