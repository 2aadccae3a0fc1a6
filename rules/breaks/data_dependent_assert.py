"""TL104."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from tlint.analyzer.interp.values import Function
from tlint.rules.base import Event, Finding, Rule
from tlint.rules.breaks.tensor_to_python import VALUE
from tlint.rules.reading import breaking, callee, spelled, tensors


class DataDependentAssert(Rule):
    """A check of a tensor's value that cannot be put into the graph.

    An `assert` on a tensor with a message that is built at run time, or with `and`, `or` or `not` in its condition;
    `torch._assert` and `torch._check_tensor_all` on tensors; a `torch._check` whose message is built from tensors or
    their shapes.

    ## Why it breaks

    Dynamo turns `assert t` and `assert t, "text"` into a check inside the graph. A message that has to be computed
    (an f-string, `%`, a variable) cannot go there, and `and`, `or` and `not` jump before the check is reached: the
    assertion becomes a branch on data. Checks that read the
    value in Python, and messages in a closure over tensors, break for the same reason.

    ## Bad

    ```python
    import torch


    @torch.compile
    def logarithm(x):
        assert (x > 0).all(), f"not positive: {tuple(x.shape)}"
        return x.log()


    logarithm(torch.rand(8) + 1)
    ```

    ## Good

    ```python
    import torch


    @torch.compile
    def logarithm(x):
        assert (x > 0).all(), "not positive"
        return x.log()


    logarithm(torch.rand(8) + 1)
    ```

    ## Fix safety

    With a constant message the check moves into the graph: it raises RuntimeError instead of AssertionError when it
    fails.
    """

    code, name = "TL104", "data-dependent-assert"
    kind = "data-dependent-assert"
    remedy = 'give the assertion a constant message, or use torch._assert_async(condition, "message")'
    gb_types = ("Data-dependent branching", "Data-dependent assertion failed (cannot compile partial graph)", VALUE)

    def branch(self, event: Event) -> Iterator[Finding]:
        if event.construct == "asserted" and event.value.is_tensor:
            yield event.finding(f"the value of the tensor `{spelled(event.node)}` decides a jump inside an assertion")
        elif event.construct == "assert" and event.value.is_tensor and not event.confirm(has_constant_message):
            yield event.finding(
                f"assertion on the value of the tensor `{spelled(event.node)}` has a message that is built at run time"
            )

    def call(self, event: Event) -> Iterator[Finding]:
        fact = breaking(event, self.kind)
        if fact and fact.only == "closure":
            yield event.finding(f"the message of `{callee(event)}` is built from a tensor", gb_types=(fact.gb_type,))
        elif fact and any(tensors(*event.args)):
            yield event.finding(
                f"`{callee(event)}` reads the value of a tensor", gb_types=(fact.gb_type, VALUE), when=fact.when
            )
        elif fact and any(isinstance(value, Function) for value in event.args):  # up to torch 2.9, whatever it holds
            yield event.finding(f"the message of `{callee(event)}` is a function", gb_types=(fact.gb_type,))


def has_constant_message(statement: Any) -> bool:
    """Whether Dynamo can keep the assertion in the graph."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assert(msg=message), *_]) | cst.Assert(msg=message):
            return message is None or isinstance(message, (cst.SimpleString, cst.ConcatenatedString))
    return False
