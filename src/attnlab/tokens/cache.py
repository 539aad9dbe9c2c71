"""Prepared corpora on disk: one `.npz` file each, named by what it was made from.

A file is written beside its place and moved there whole. Its parts carry checksums, so a damaged one is
noticed, and is then the same as none.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.errors import StoreError
from attnlab.tokens.encoded import Encoded
from attnlab.tokens.vocabulary import Vocabulary

Entry = tuple[Vocabulary, Mapping[str, Encoded], Mapping[str, Any]]
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
        with np.load(_place(folder, key), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        head = json.loads(arrays.pop("head").tobytes())
        vocabulary = Vocabulary.from_json(head["vocabulary"])
        splits = {
            name: Encoded(
                **{field: arrays[f"{name}/{field}"] for field in _ARRAYS},
                **{**fields, "names": tuple(fields["names"])},
            )
            for name, fields in head["splits"].items()
        }
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return vocabulary, splits, head["facts"]


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
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder.path, prefix=f"{key}.", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
            os.replace(name, _place(folder, key))
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        if folder.asked_for:
            raise StoreError(
                f"the cache folder {folder.path} cannot be written ({error.strerror or error}); "
                "name another in ATTNLAB_CACHE, or none"
            ) from None


def _place(folder: Folder, key: str) -> Path:
    return folder.path / f"{key}.npz"
