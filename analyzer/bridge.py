"""From an `ast` span to the LibCST node at the same place. Only a statement that is suspected is opened."""

from __future__ import annotations

import textwrap

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
        if isinstance(at, CodeRange) and at == self.wanted and isinstance(node, (cst.BaseExpression, cst.BaseStatement, cst.BaseSmallStatement, cst.BaseSlice)):
            self.found = node
            return False
        return True


def open_node(lines: list[str], first: int, last: int, span: Span) -> cst.CSTNode | None:
    """The node at `span` in the statement on `lines[first - 1:last]`; None where LibCST sees no node there.

    A compound statement is opened by its header alone, with `pass` for a body.
    """
    text = textwrap.dedent("".join(lines[first - 1 : last]))
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    kept = len(text) - len(text.lstrip())
    shift = indent - kept
    for source in (text, text.rstrip().rstrip("\\") + " pass\n", "try:\n pass\n" + text):
        try:
            wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
            break
        except (cst.ParserSyntaxError, RecursionError):
            continue
    else:
        return None

    def place(line: int, column: int) -> tuple[int, int]:
        return line - first + 1, column - 1 - shift

    finder = Finder(CodeRange(start=place(span.line, span.column), end=place(span.end_line, span.end_column)))
    wrapper.visit(finder)
    return finder.found
