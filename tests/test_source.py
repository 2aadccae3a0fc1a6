"""Reading files: encodings, newlines and what is no text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tlint.analyzer import source
from tlint.analyzer.model import TlintError

HERE = Path("m.py")


def test_utf8_is_the_default() -> None:
    assert source.decode(HERE, "x = 'é'\n".encode()) == source.Source(HERE, "x = 'é'\n", "utf-8", "\n")


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    read = source.decode(HERE, b"\xef\xbb\xbfx = 1\n")
    assert (read.text, read.encoding) == ("x = 1\n", "utf-8-sig")


def test_a_cookie_names_the_encoding() -> None:
    read = source.decode(HERE, b"#!/usr/bin/env python\n# -*- coding: latin-1 -*-\nx = '\xe9'\n")
    assert (read.text.splitlines()[-1], read.encoding) == ("x = 'é'", "iso-8859-1")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_are_remembered(newline: str) -> None:
    read = source.decode(HERE, f"a = 1{newline}b = 2{newline}".encode())
    assert (read.text, read.newline) == ("a = 1\nb = 2\n", newline)


@pytest.mark.parametrize(
    ("data", "line", "column", "says"),
    [
        (b"a = 1\nb = '\xe9'\n", 2, 6, "not valid utf-8"),
        (b"a = 1\n\n\nb = '\xc3\xa9\xe9'\n", 4, 7, "not valid utf-8"),
        (b"# coding: klingon\n", 1, 1, "klingon"),
        (b"\x7fELF\x02\x01\x01\x00\x00", 1, 8, "no text file"),
    ],
)
def test_what_is_no_text_says_where(data: bytes, line: int, column: int, says: str) -> None:
    with pytest.raises(source.SourceError, match=says) as caught:
        source.decode(HERE, data)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_file_that_is_gone_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(TlintError, match=r"gone\.py:1:1: cannot be read"):
        source.read(tmp_path / "gone.py")


def test_writing_keeps_permissions_and_links(tmp_path: Path) -> None:
    file, link = tmp_path / "m.py", tmp_path / "link.py"
    file.write_bytes(b"old")
    file.chmod(0o750)
    link.symlink_to("m.py")
    source.write(link, b"new")
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o750)
    source.write(tmp_path / "other.py", b"new")
    assert sorted(os.listdir(tmp_path)) == ["link.py", "m.py", "other.py"]


def test_what_cannot_be_written_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "m.py"
    file.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(TlintError, match=r"m\.py: cannot be written: No space left on device"):
        source.write(file, b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.py"]
    with pytest.raises(TlintError, match=r"gone/m\.py: cannot be written: No such file"):
        source.write(tmp_path / "gone" / "m.py", b"")
