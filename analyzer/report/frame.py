"""A piece of source with carets under a span, in the room there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from tlint.analyzer.model import Span

TAB = 4
# Of a span with more lines than this, the first two and the last are shown.
TALLEST = 4


def frame(lines: Sequence[str], span: Span, room: int, cut: str) -> Iterator[tuple[str, str, str]]:
    """Each line of the span as (what belongs in the gutter, code, carets). `cut` stands for what was left out.

    Nothing is wider than `room` cells: the frame slides sideways until the first carets are in sight.
    """
    last = span.end_line - (span.end_column == 1 and span.end_line > span.line)
    numbers = [number for number in range(span.line, last + 1) if number <= len(lines)]
    shift = None
    for number in numbers if len(numbers) <= TALLEST else (*numbers[:2], None, numbers[-1]):
        if number is None:
            yield cut, "", ""
            continue
        line = lines[number - 1]
        shown = list(characters(line))
        indent = len(line) - len(line.lstrip())
        start = max(span.column - 1, indent) if number == span.line else indent
        end = span.end_column - 1 if number == span.end_line else len(line.rstrip())
        left, right = cell_len("".join(shown[:start])), cell_len("".join(shown[:end]))
        right = max(right, left + 1)
        code = "".join(shown).rstrip()
        if shift is None:
            shift = slide(max(cell_len(code), right), left, right, room)
        length = min(right, shift + room) - max(left, shift) if code else 0
        carets = " " * max(left - shift, 0) + "^" * length if length > 0 else ""
        yield str(number), window(code, shift, room, cut), carets


def characters(line: str) -> Iterator[str]:
    """What each character is shown as."""
    cell = 0
    for character in line:
        shown = " " * (TAB - cell % TAB) if character == "\t" else visible(character)
        cell += cell_len(shown)
        yield shown


def visible(text: str) -> str:
    """The text without what would steer the terminal: source code may hold escape sequences, or turn its direction."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def slide(total: int, left: int, right: int, room: int) -> int:
    """How many cells to leave out on the left, so that the carets from `left` to `right` are seen in their context."""
    return 0 if total <= room or right < room else min(left - room // 4, total - room)


def window(text: str, shift: int, room: int, cut: str) -> str:
    """The cells from `shift` to `shift + room`; the outermost are `cut` where the text goes on."""
    before, after = (cut if shift else ""), (cut if cell_len(text) > shift + room else "")
    first, last = shift + len(before), shift + room - len(after)
    inner, cell = [], 0
    for character in text:
        width = cell_len(character)
        inside = min(cell + width, last) - max(cell, first)
        inner.append(character if inside == width else " " * inside)  # Half of a wide character is a space.
        cell += width
    return before + "".join(inner) + after
