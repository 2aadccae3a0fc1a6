"""From an `ast` span to the LibCST node at the same place. Only a statement that is suspected is opened."""

from __future__ import annotations

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from tlint.analyzer.model import Span


class Finder(cst.CSTVisitor):
    """The outermost node whose code is exactly a range."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, wanted: CodeRange) -> None:
        self.wanted = wanted
        self.found: cst.CSTNode | None = None

    def on_visit(self, node: cst.CSTNode) -> bool:
        if self.found is not None:
            return False
        at = self.get_metadata(PositionProvider, node, None)
        if (
            isinstance(at, CodeRange)
            and at == self.wanted
            and isinstance(node, (cst.BaseExpression, cst.BaseStatement, cst.BaseSmallStatement, cst.BaseSlice))
        ):
            self.found = node
            return False
        return True


# Where a statement's first line is the middle of one.
OPENINGS = {
    **dict.fromkeys(("elif", "else:", "else"), "{0}if 1:\n{0} pass\n"),
    **dict.fromkeys(("except", "except:", "except*", "finally:", "finally"), "{0}try:\n{0} pass\n"),
}


def open_node(lines: list[str], first: int, last: int, span: Span) -> cst.CSTNode | None:
    """The node at `span` in the statement on `lines[first - 1:last]`; None where LibCST sees no node there.

    A compound statement is opened by its header alone, with `pass` for a body. Columns stay what they are: an indented
    statement becomes the body of an `if`, as what a string on several lines holds must not be moved.
    """
    text = "".join(lines[first - 1 : last]).rstrip() + "\n"
    indent = text[: len(text) - len(text.lstrip())]
    before = ("if 1:\n" if indent else "") + OPENINGS.get(text.split(maxsplit=1)[0], "").format(indent)
    for body in ("", f"{indent} pass\n"):
        try:
            wrapper = MetadataWrapper(cst.parse_module(before + text + body), unsafe_skip_copy=True)
            break
        except (cst.ParserSyntaxError, RecursionError):
            continue
    else:
        return None
    above = first - 1 - before.count("\n")
    wanted = CodeRange((span.line - above, span.column - 1), (span.end_line - above, span.end_column - 1))
    finder = Finder(wanted)
    wrapper.visit(finder)
    return finder.found
