"""The only reader and writer of files: bytes in, text with its encoding and newlines out. Syntax is for others."""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import re
import secrets
import shutil
import stat
import tokenize
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tlint.analyzer import notebook
from tlint.analyzer.model import Edit, TlintError


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file, its newlines turned into "\\n"; `encoding` and `newline` are what to write it back with.

    Of a notebook, the text is that of its `cells` with code, one after the other.
    """

    path: Path
    text: str
    encoding: str = "utf-8"
    newline: str = "\n"
    cells: tuple[notebook.Cell, ...] = ()


class SourceError(TlintError):
    """A file that cannot be read as text, and where."""

    def __init__(self, path: Path, line: int, column: int, message: str) -> None:
        super().__init__(f"{path}:{line}:{column}: {message}")
        self.path, self.line, self.column, self.message = path, line, column, message


def read(path: Path) -> Source:
    """Read a file as Python would: an encoding cookie (PEP 263), a byte order mark, else UTF-8."""
    return decode(path, contents(path))


def contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceError(path, 1, 1, f"cannot be read: {error.strerror or error}") from error


def read_plain(path: Path) -> str:
    """The text of a file that is not Python: as its byte order mark says, else UTF-8."""
    try:
        data = path.read_bytes()
        return data.decode("utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig")
    except OSError as error:
        raise TlintError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TlintError(f"{path}: not valid {error.encoding} ({error.reason})") from error


def trouble(path: str | Path) -> str:
    """Why a file or folder cannot be read; "" where it can."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "no such file or folder"
    except OSError as error:
        return error.strerror or str(error)
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # reading a pipe or a device may never end
        return "neither a file nor a folder (`tlint -` reads standard input)"
    needed = os.R_OK | (os.X_OK if stat.S_ISDIR(mode) else 0)
    return "" if os.access(path, needed) else os.strerror(errno.EACCES)


def decode(path: Path, data: bytes) -> Source:
    """What `read` does, for bytes at hand (standard input, an editor's buffer)."""
    read = _decode(path, data)
    if path.suffix != notebook.SUFFIX:
        return read
    try:
        text, cells = notebook.read(read.text)
    except json.JSONDecodeError as error:
        raise SourceError(path, error.lineno, error.colno, f"no notebook, which is JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(path, 1, 1, str(error)) from error
    return replace(read, text=text, cells=cells)


def _decode(path: Path, data: bytes) -> Source:
    if b"\0" in data:
        line, column = _position(data, data.index(b"\0"), "latin-1")
        raise SourceError(path, line, column, "holds NUL bytes: this is no text file")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise SourceError(path, 1, 1, f"{error.msg}; name the encoding in the first line or save as UTF-8") from error
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line, column = _position(data, error.start, encoding)
        message = f"not valid {encoding} ({error.reason}); name the encoding in the first line or save as UTF-8"
        raise SourceError(path, line, column, message) from error
    except (UnicodeError, LookupError) as error:  # of a codec that is named here and is none of text
        raise SourceError(path, 1, 1, f"cannot be read as {encoding}, which it names; save as UTF-8") from error
    newline = "\r\n" if "\r\n" in text else "\r" if "\r" in text and "\n" not in text else "\n"
    return Source(path, text.replace("\r\n", "\n").replace("\r", "\n"), encoding, newline)


def edit(path: Path, edits: Collection[Edit]) -> None:
    """Make disjoint edits in a file, at lines of the text that is read of it. Its encoding and newlines stay."""
    data = contents(path)
    read = decode(path, data)
    text = data.decode(read.encoding)
    if read.cells:
        text = notebook.edited(text, read.cells, lambda cell: edited(cell.code, _in_cell(cell, read.cells, edits)))
    else:
        text = edited(text, edits, read.newline)
    try:
        data = text.encode(read.encoding)
    except UnicodeEncodeError as error:
        raise TlintError(f"{path}: {text[error.start : error.end]!r} cannot be written in {read.encoding}") from error
    write(path, data)


def _in_cell(cell: notebook.Cell, cells: Sequence[notebook.Cell], edits: Iterable[Edit]) -> Iterator[Edit]:
    for one in edits:
        number, before = notebook.place(cells, one.span.line)
        if number == cell.number:
            yield replace(one, span=notebook.moved(one.span, before))


def edited(text: str, edits: Iterable[Edit], newline: str = "\n") -> str:
    """Text, whatever its newlines are, with edits made at lines and columns."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n?|\n", text))]
    for one in sorted(edits, key=lambda one: one.span, reverse=True):
        first = starts[one.span.line - 1] + one.span.column - 1
        last = starts[one.span.end_line - 1] + one.span.end_column - 1
        text = text[:first] + one.text.replace("\n", newline) + text[last:]
    return text


def write(path: Path, data: bytes) -> None:
    """Replace what a file holds, as a whole or not at all. Its permissions stay, and a link stays a link."""
    path = path.resolve()
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        try:
            new.write_bytes(data)
            if path.exists():
                shutil.copymode(path, new)
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise TlintError(f"{path}: cannot be written: {error.strerror or error}") from error


def _position(data: bytes, offset: int, encoding: str) -> tuple[int, int]:
    start = data.rfind(b"\n", 0, offset) + 1
    return data.count(b"\n", 0, offset) + 1, len(data[start:offset].decode(encoding, "replace")) + 1
