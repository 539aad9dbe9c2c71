"""Prepared corpora on disk: one file each, named by what it was made from.

A file is the sha256 of what follows it, and then arrays as numpy's `.npz` with a head in JSON. A damaged one
is noticed, and is then the same as none.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.errors import StoreError
from attnlab.tokens.encoded import Encoded
from attnlab.tokens.vocabulary import Vocabulary
from attnlab.wholefile import write_whole

Entry = tuple[Vocabulary, Mapping[str, Encoded], Mapping[str, Any]]
_DIGEST = 32  # bytes
_FIELDS = ("names", "size", "start", "stop", "unknown", "cut_sequences", "cut_tokens")
_ARRAYS = ("ids", "starts", "document", "bytes")


@dataclass(frozen=True)
class Folder:
    """Where entries are kept, and whether the user asked for this place."""

    path: Path
    asked_for: bool


def folder(given: Path | None = None) -> Folder:
    """The folder given, else the one in $ATTNLAB_CACHE, else the platform's place for caches."""
    named = os.environ.get("ATTNLAB_CACHE")
    if given is not None or named:
        return Folder(given or Path(str(named)).expanduser(), asked_for=True)
    home = Path.home()
    if sys.platform == "darwin":
        return Folder(home / "Library" / "Caches" / "attnlab", asked_for=False)
    return Folder(Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "attnlab", asked_for=False)


def read(folder: Folder, key: str) -> Entry | None:
    """The entry, or nothing where there is none or it is damaged."""
    try:
        raw = memoryview(_place(folder, key).read_bytes())
    except OSError:
        return None
    if hashlib.sha256(raw[_DIGEST:]).digest() != raw[:_DIGEST]:
        return None
    with np.load(io.BytesIO(raw[_DIGEST:]), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    head = json.loads(arrays.pop("head").tobytes())
    splits = {
        name: Encoded(
            **{field: arrays[f"{name}/{field}"] for field in _ARRAYS},
            **{**fields, "names": tuple(fields["names"])},
        )
        for name, fields in head["splits"].items()
    }
    return Vocabulary.from_json(head["vocabulary"]), splits, head["facts"]


def write(
    folder: Folder, key: str, vocabulary: Vocabulary, splits: Mapping[str, Encoded], facts: Mapping[str, Any]
) -> None:
    """Keep an entry. Where nothing can be written, that is an error only if the user named the place."""
    head = {
        "vocabulary": vocabulary.to_json(),
        "facts": facts,
        "splits": {
            name: {field: getattr(encoded, field) for field in _FIELDS} for name, encoded in splits.items()
        },
    }
    arrays = {
        f"{name}/{field}": getattr(encoded, field) for name, encoded in splits.items() for field in _ARRAYS
    }
    arrays["head"] = np.frombuffer(json.dumps(head, ensure_ascii=False).encode(), dtype=np.uint8)
    stored = io.BytesIO()
    np.savez(stored, allow_pickle=False, **arrays)
    body = stored.getvalue()
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        write_whole(_place(folder, key), hashlib.sha256(body).digest() + body)
    except (OSError, StoreError) as error:
        if folder.asked_for:
            raise StoreError(
                f"the cache folder {folder.path} cannot be written ({error}); "
                "name another in ATTNLAB_CACHE, or unset it"
            ) from None


def kept_beside(name: str, make: Callable[[], Any]) -> Any:
    """What `make` gives, plain: made once and kept under a name among the prepared corpora. A damaged file is
    the same as none, and where none can be written it is made every time."""
    path = folder().path / name
    with contextlib.suppress(OSError):
        raw = path.read_bytes()
        if hashlib.sha256(raw[_DIGEST:]).digest() == raw[:_DIGEST]:
            return json.loads(raw[_DIGEST:])
    value = make()
    body = json.dumps(value).encode()
    with contextlib.suppress(OSError, StoreError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, hashlib.sha256(body).digest() + body)
    return value


def _place(folder: Folder, key: str) -> Path:
    return folder.path / f"{key}.prepared"
