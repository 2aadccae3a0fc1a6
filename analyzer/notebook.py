"""Jupyter notebooks (format 4, Python): their code as one text, with the lines where its cells begin.

Cells are counted from 1, those without code too, as Ruff does. IPython's magics and shell commands become calls of
unknown result, so that the rest of their cell can be read; no line is added or removed.
"""

from __future__ import annotations

import functools
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tlint.analyzer.model import Finding, Frame, Related, Root, Span

SUFFIX = ".ipynb"
CALL = "get_ipython()"
# Cells under these hold code of the notebook; those under other cell magics (%%bash, %%writefile) do not.
TRANSPARENT = ("%%capture", "%%prun", "%%time", "%%timeit")
# None of these begins a statement of Python.
MAGIC = re.compile(
    r"""(?P<timed> %time(?:it)? (?:\s+-\S+(?:\s+\d+)?)* \s+) \S.*
    | (?P<target> [^=!%?\#(]+ = \s*)? [%!].*
    | [?,;/].*
    | %{0,2} [\w.*]+ \?{1,2} \s*
    | (?:pip|conda|mamba|uv|cd|ls|cat|cp|mv|rm|mkdir) \s+ (?!(?:in|is|if|and|or|not)\b) [\w./~].*""",
    re.VERBOSE,
)

Spanned = TypeVar("Spanned", Finding, Related)
Lined = TypeVar("Lined", Frame, Root)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with code: its number in the notebook, its first line in the text of all, its code as it was written."""

    number: int
    first: int
    code: str


def read(content: str) -> tuple[str, tuple[Cell, ...]]:
    """The code of a notebook as one text, and its cells. A ValueError says what is wrong with it."""
    notebook = json.loads(content)
    try:
        if (version := notebook["nbformat"]) != 4:
            raise ValueError(f"a notebook of format {version}: format 4 is what is read")
        numbered = list(codes(notebook))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("no notebook: its parts are not those of nbformat 4") from error
    cells: list[Cell] = []
    texts: list[str] = []
    first = 1
    for number, code in numbered:
        text = code.replace("\r\n", "\n").replace("\r", "\n")
        if "\0" in text or re.search("[\ud800-\udfff]", text):
            raise ValueError(f"cell {number} holds characters that no text has")
        cells.append(Cell(number, first, code))
        texts.append(plain(text))
        first += text.count("\n") + 2
    # A blank line parts them: a comment at the end of a cell does not speak for the next.
    return "\n\n".join(texts) + "\n", tuple(cells)


def codes(notebook: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The number and the code of each cell that has some; none where it is in another language."""
    metadata = notebook.get("metadata", {})
    languages = (metadata.get("kernelspec", {}).get("language"), metadata.get("language_info", {}).get("name"))
    if next(filter(None, languages), "python") == "python":
        for number, cell in enumerate(notebook["cells"], 1):
            if cell["cell_type"] == "code":
                yield number, "".join(cell["source"])


# Magics ---------------------------------------------------------------------------------------------------------------


def plain(code: str) -> str:
    """The code of a cell as Python: line for line, and column for column where it was Python before."""
    lines: list[str] = []
    began = continued = False
    for line in code.split("\n"):
        rest = line.lstrip()
        indent = line[: len(line) - len(rest)]
        if not began and rest.startswith("%%") and rest.split()[0] not in TRANSPARENT:
            return "\n" * code.count("\n")
        began = began or not (not rest or rest.startswith("%%"))
        magic = None if continued else MAGIC.fullmatch(rest)
        if continued:
            continued = line.endswith("\\")
            line = ""
        elif magic and begins_statement(lines):
            if timed := magic["timed"]:
                line = f"{indent}{'if 1':<{len(timed) - 2}}: {rest[len(timed) :]}"
            else:
                line = indent + (magic["target"] or "") + CALL
                continued = rest.endswith("\\")
        lines.append(line)
    return "\n".join(lines)


def begins_statement(before: Sequence[str]) -> bool:
    """Whether a line that follows these is not within a bracket, a string or what a backslash continues."""
    try:
        list(tokenize.generate_tokens(io.StringIO("".join(f"{line}\n" for line in before)).readline))
    except (tokenize.TokenError, SyntaxError):
        return False
    return True


# Places ---------------------------------------------------------------------------------------------------------------


def place(cells: Sequence[Cell], line: int) -> tuple[int | None, int]:
    """The number of the cell that holds a line of the text, and how many lines lie before that cell."""
    cell = next((cell for cell in reversed(cells) if cell.first <= line), None)
    return (cell.number, cell.first - 1) if cell else (None, 0)


def located(findings: Iterable[Finding], cells: Callable[[str], Sequence[Cell]]) -> tuple[Finding, ...]:
    """The findings with places in notebooks as cells, and lines there. `cells` gives those of a path."""
    return tuple(
        replace(
            _located(finding, cells),
            paths=tuple(replace(path, via=lines_located(path.via, cells)) for path in finding.paths),
            related=tuple(_located(related, cells) for related in finding.related),
        )
        for finding in findings
    )


def _located(found: Spanned, cells: Callable[[str], Sequence[Cell]]) -> Spanned:
    number, before = place(cells(found.path), found.span.line)
    if number is None:
        return found
    # Python's parser says on which line a block begins.
    message = re.sub(r"(?<=on line )\d+", lambda line: str(int(line[0]) - before), found.message)
    return replace(found, cell=number, span=moved(found.span, before), message=message)


def lines_located(found: Iterable[Lined], cells: Callable[[str], Sequence[Cell]]) -> tuple[Lined, ...]:
    """The same of what has a line and no span."""

    def moved(one: Lined) -> Lined:
        number, before = place(cells(one.path), one.line)
        return replace(one, cell=number, line=one.line - before)

    return tuple(map(moved, found))


def moved(span: Span, lines: int) -> Span:
    """A span that many lines further up."""
    return replace(span, line=span.line - lines, end_line=span.end_line - lines)


# Writing --------------------------------------------------------------------------------------------------------------


def edited(content: str, cells: Sequence[Cell], change: Callable[[Cell], str]) -> str:
    """A notebook with other code in its cells. All else in it stays as it is, to the last space."""
    escapes = content.isascii() and "\\u" in content
    dump = functools.partial(json.dumps, ensure_ascii=escapes)
    numbers = {cell.number: cell for cell in cells}
    top = {key: at for key, at, _ in members(content, len(content) - len(content.lstrip()))}
    found = [
        (numbers[number], span)
        for number, (_, start, _) in enumerate(members(content, top["cells"]), 1)
        if number in numbers
        for key, *span in members(content, start)
        if key == "source"
    ]
    for cell, (start, end) in reversed(found):
        if (code := change(cell)) != cell.code:
            content = content[:start] + rewritten(content[start:end], code, dump) + content[end:]
    return content


def rewritten(source: str, code: str, dump: Callable[[str], str]) -> str:
    """Code in place of a cell's source: a string, or a list of lines that are written as the others were."""
    if source.startswith('"'):
        return dump(code)
    items = list(members(source, 0))
    known = {json.loads(source[start:end]): source[start:end] for _, start, end in items}
    before, after = source[1 : items[0][1]], source[items[-1][2] : -1]
    between = source[items[0][2] : items[1][1]] if len(items) > 1 else f",{before or ' '}"
    lines = re.findall(r"[^\n]*\n|[^\n]+", code)
    return f"[{before}{between.join(known.get(line) or dump(line) for line in lines)}{after}]"


def members(content: str, at: int) -> Iterator[tuple[str | None, int, int]]:
    """The members of the JSON object or array that begins there: key, and where the value begins and ends."""
    decode = json.JSONDecoder().raw_decode
    is_object = content[at] == "{"
    at = after_space(content, at + 1)
    while content[at] not in "}]":
        key = None
        if is_object:
            key, at = decode(content, at)
            at = after_space(content, after_space(content, at) + 1)
        _, end = decode(content, at)
        yield key, at, end
        at = after_space(content, end)
        if content[at] == ",":
            at = after_space(content, at + 1)


def after_space(content: str, at: int) -> int:
    while content[at] in " \t\r\n":
        at += 1
    return at
