"""Reading the user's text files, with an error that helps when one cannot be read as text."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable
from pathlib import Path

from attnlab.errors import CorpusError

_MARKS = {
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive",
}


def locate(text: str, base: Path | None = None) -> Path:
    """The file that a declaration names; a relative path counts from `base` (or the current directory)."""
    if "\0" in text:
        raise CorpusError(f"{text!r}: a path cannot hold a null character")
    if not text.strip():
        raise CorpusError(f"{text!r}: a path cannot be empty")
    try:
        path = Path(text).expanduser()
        path = path if path.is_absolute() else (base or Path.cwd()) / path
        if path.is_file():
            return path
        if path.is_dir():
            names = sorted(p.name for p in path.iterdir() if p.is_file())[:8]
            raise CorpusError(
                f"{text!r} is a directory; name a file, such as one of: {', '.join(names) or 'none'}"
            )
        if path.exists():
            raise CorpusError(f"{text!r} is not a regular file")
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    except (OSError, RuntimeError) as error:  # too long a name, no permission, a home that does not exist
        raise CorpusError(f"{text!r}: not a usable path ({error})") from None
    if not path.parent.is_dir():
        raise CorpusError(f"{text!r}: there is no directory {path.parent}")
    near = difflib.get_close_matches(path.name, siblings, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise CorpusError(f"there is no file {text!r} in {path.parent}{hint}")


def read_text(path: Path) -> str:
    """The file as text (UTF-8), with line ends as newlines."""
    raw = _read(path)
    if not raw.strip():
        raise CorpusError(f"{path}: the file is empty")
    for mark, kind in _MARKS.items():
        if raw.startswith(mark):
            raise CorpusError(f"{path}: not UTF-8 text: it looks like {kind} (from its first bytes)")
    null = raw.find(b"\0")
    if null >= 0:
        raise CorpusError(f"{path}: not text: there is a null byte at offset {null:,}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        offset = error.start + (3 if raw.startswith(b"\xef\xbb\xbf") else 0)
        raise CorpusError(
            f"{path}: not UTF-8 text: byte 0x{raw[offset]:02x} at offset {offset:,} does not belong there; "
            "convert it first, for example with `iconv -f latin1 -t utf-8`"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def digest_of(paths: Iterable[Path]) -> str:
    """The sha256 over the contents of files, in their order."""
    total = hashlib.sha256()
    for path in paths:
        total.update(hashlib.sha256(_read(path)).digest())
    return total.hexdigest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror or error})") from None
