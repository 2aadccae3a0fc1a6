"""TL401."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterator

from tlint.analyzer.interp.values import Const, Mapping, Value
from tlint.rules.base import Confidence, Event, Finding, Rule, Severity


class InvalidCompileArgument(Rule):
    """`torch.compile` is given a keyword, mode, option or backend that it does not have.

    ## Why it fails

    An unknown keyword, mode or option raises, and so does `mode=` together with `options=`: some at once, a backend
    only at the first call. Modes and options are those of the default backend, Inductor; other backends have their
    own.

    ## Bad

    ```python
    import torch


    def scale(x):
        return x * 2


    fast = torch.compile(scale, mode="reduce-overheads")
    ```

    ## Good

    ```python
    import torch


    def scale(x):
        return x * 2


    fast = torch.compile(scale, mode="reduce-overhead")
    ```

    ## Fix safety

    The call raised before, so nothing that worked changes.
    """

    code, name = "TL401", "invalid-compile-argument"
    severity = Severity.error
    remedy = "see torch._inductor.list_mode_options() and list_options(), and torch._dynamo.list_backends()"

    def compiled(self, event: Event) -> Iterator[Finding]:
        if event.site.form == "export" or not event.facts.compile:
            return
        known = event.facts.compile
        arguments = {name: value for name, value in event.keywords if name and not name.startswith("*")}
        inductor = is_inductor(arguments.get("backend"))
        for name in arguments:
            if name not in known["keywords"] and name != "model":
                yield unknown(event, name, "keyword", name, known["keywords"])
        match arguments.get("mode"):
            case Const(value=str(mode)) if inductor and mode not in known["modes"]:
                yield unknown(event, "mode", "mode", mode, known["modes"])
        match arguments.get("options"):
            case Mapping(items=tuple() as items) if inductor:
                names = [
                    key.value.replace("-", "_")
                    for key, _ in items
                    if isinstance(key, Const) and isinstance(key.value, str)
                ]
                for option in names:
                    if option not in known["options"]:
                        yield unknown(event, "options", "option", option, known["options"])
        match arguments.get("backend"):
            # Packages register backends of their own: a name that resembles none of torch's is likely to be one.
            case Const(value=str(backend)) if backend not in known["backends"]:
                near = nearest(backend, known["backends"])
                yield unknown(
                    event, "backend", "backend", backend, known["backends"],
                    confidence=Confidence.likely if near else Confidence.possible,
                )  # fmt: skip
        if is_given(arguments.get("mode")) and is_given(arguments.get("options")):
            yield event.finding("`mode` and `options` exclude each other", node=written(event, "options"))


def is_inductor(backend: Value | None) -> bool:
    return backend is None or (isinstance(backend, Const) and backend.value == "inductor")


def is_given(value: Value | None) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, Const) and value.value is not None)


def unknown(event: Event, argument: str, what: str, name: str, known: Collection[str], **more: Confidence) -> Finding:
    near = nearest(name, known)
    hint = f": did you mean {near!r}?" if near else f"; torch {event.facts.version} has none of that name"
    return event.finding(f"`torch.compile` has no {what} {name!r}{hint}", node=written(event, argument), **more)


def nearest(name: str, known: Collection[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, 1, 0.75)), None)


def written(event: Event, argument: str) -> ast.AST:
    """Where the argument stands in the call."""
    keywords = event.node.keywords if isinstance(event.node, ast.Call) else []
    return next((keyword.value for keyword in keywords if keyword.arg == argument), event.node)
