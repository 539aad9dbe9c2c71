"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnlab.errors import StoreError


def write_whole(path: Path, content: bytes | str) -> None:
    """Write beside the old file, then take its place: neither a reader nor a power cut sees half of it."""
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        _forget(partial)


def _forget(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # where nothing could be written, nothing need be removed
        return


def write_json(path: Path, value: Any) -> None:
    """JSON for programs and people: indented, in the order given, no NaN (which JSON does not have)."""
    write_whole(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


@contextlib.contextmanager
def claimed(lock: Path) -> Iterator[bool]:
    """Hold a file as a lock, so that no other process does the work it stands for; gives False where another
    one holds it.

    The operating system lets go of the lock when its process ends, however it ends.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    except OSError as error:
        raise StoreError(f"{lock.parent}: cannot be written ({error.strerror})") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError as error:
            raise StoreError(
                f"{lock.parent}: its file system keeps no locks ({error.strerror}), and without them two "
                "processes could do the same work; name another directory"
            ) from None
        yield True
