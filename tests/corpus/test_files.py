"""Files that cannot be read as text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from attnlab.corpus import Text
from attnlab.corpus.files import locate, read_text
from attnlab.errors import CorpusError


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\t\n", "the file is empty"),
        (b"good\nba\xe9d\n", "byte 0xe9 at offset 7 does not belong"),
        (b"\xef\xbb\xbfab\xff", "byte 0xff at offset 5 does not belong"),
        (b"ab\0cd", "null byte at offset 2"),
        (b"\xff\xfea\0b\0", "looks like UTF-16"),
        (b"\x1f\x8b\x08\x00 more", "looks like a gzip archive"),
        (b"PK\x03\x04 more", "looks like a zip archive"),
    ],
)
def test_not_text(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(raw)
    with pytest.raises(CorpusError, match=message):
        read_text(path)


def test_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read_text(path) == "a\nb\nc\n"


def test_names_that_are_no_file(tmp_path: Path) -> None:
    (tmp_path / "speeches.txt").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    for name, message in {
        "speechs.txt": "did you mean 'speeches.txt'",
        "nowhere/x.txt": "there is no directory",
        "a\0b": "null character",
        " ": "cannot be empty",
        ".": "is a directory; name a file, such as one of: .*speeches.txt",
        "pipe": "not a regular file",
        "x" * 5000: "not a usable path",
        "~nobody-of-this-name/x": "not a usable path",
    }.items():
        with pytest.raises(CorpusError, match=message):
            locate(name, tmp_path)
    assert locate("speeches.txt", tmp_path) == tmp_path / "speeches.txt"
    assert locate(str(tmp_path / "speeches.txt")) == tmp_path / "speeches.txt"


@pytest.mark.parametrize("lines", [1, 2, 150])
def test_a_text_too_short_to_divide(tmp_path: Path, lines: int) -> None:
    (tmp_path / "x.txt").write_text("a line\n" * lines)
    with pytest.raises(CorpusError, match=r"x\.txt\): \d documents? (is|are) too few to hold out 1 for dev"):
        Text(train="x.txt").load(tmp_path)
    with pytest.raises(CorpusError, match=r"\(one is 100 lines in a row; see corpus\.block and corpus\.doc"):
        Text(train="x.txt").load(tmp_path)


def test_a_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.txt"
    path.write_text("x")

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(CorpusError, match=r"cannot be read \(Permission denied\)"):
        read_text(path)
