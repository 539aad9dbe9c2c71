"""A directory and its counterpart at a URL, such as a bucket of an object store: files go up and come down.

Any file system that fsspec knows will do. An object store keeps no locks and cannot append, so files are sent
whole, under another name first where a name could be seen half written, and who may send which is decided
elsewhere (`mirrored.py`).
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attnlab.errors import RequestError, StoreError, unknown

GROWING = (".jsonl", ".txt")  # files that lines are added to; every other one is replaced as a whole
TRIES, AGAIN_SECONDS = 4, 2.0  # to reach a store, and between two of them
_AT_ONCE = 8  # files that come down
_SIGN = ".alive"  # the one hidden file that is for others
_URL = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_PARTIAL = ".partial-"


def is_url(text: str | os.PathLike[str]) -> bool:
    return _URL.match(str(text)) is not None


class Mirror:
    """A directory of this machine, and the same at a URL."""

    def __init__(self, url: str, root: Path) -> None:
        self.files, self.base = _opened(url)
        self.url, self.root = url.rstrip("/"), root
        self._sent: dict[Path, tuple[int, int]] = {}  # as it was when it was last sent

    # ---- up ------------------------------------------------------------------------------------------------

    def send(self, *names: str) -> None:
        """These files, whether they changed or not."""
        for name in names:
            self._put(self.root / name, name)

    def send_changed(self, name: str) -> None:
        """Whatever in a folder changed since it was last sent.

        Checkpoints are held as they are before the curve is sent that leads up to them, and sent after it: at
        the URL a curve never ends before the checkpoint that it is continued from. The result goes last.
        """
        now = {path: _sign_of(path) for path in self._in(name)}
        changed = [path for path, sign in now.items() if sign is not None and sign != self._sent.get(path)]
        growing = [path for path in changed if path.suffix in GROWING]
        with tempfile.TemporaryDirectory(dir=self.root, prefix=".sending-") as folder:
            held: dict[Path, Path] = {}
            for number, path in enumerate(sorted({*changed} - {*growing}, key=_result_last)):
                with contextlib.suppress(FileNotFoundError):  # it was there a moment ago
                    os.link(path, held.setdefault(path, Path(folder, str(number))))
            for path, content in [*((path, path) for path in growing), *held.items()]:
                if content.exists():
                    self._put(content, path.relative_to(self.root).as_posix())
                    self._sent[path] = now[path] or (0, 0)
        gone = [path for path in self._sent if path.is_relative_to(self.root / name) and path not in now]
        for path in gone:
            self.remove(path.relative_to(self.root).as_posix())
            del self._sent[path]

    def write(self, name: str, content: str) -> None:
        """A file that is there only."""
        self._make(self.base)
        self._reach(self.files.pipe_file, f"{self.base}/{name}", content.encode())

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._reach(self.files.rm_file, f"{self.base}/{name}")

    def _in(self, name: str) -> list[Path]:
        paths = (self.root / name).rglob("*")
        return [p for p in paths if p.is_file() and (p.name == _SIGN or not p.name.startswith("."))]

    def _put(self, path: Path, name: str) -> None:
        """Sent under a name of its own, and then moved: nobody sees half a file."""
        target = f"{self.base}/{name}"
        partial = f"{target}{_PARTIAL}{uuid.uuid4().hex[:8]}"
        self._make(target.rpartition("/")[0])
        self._reach(self.files.put_file, str(path), partial)
        self._reach(self.files.mv, partial, target)

    def _make(self, folder: str) -> None:
        self._reach(lambda: self.files.makedirs(folder, exist_ok=True))

    # ---- down ----------------------------------------------------------------------------------------------

    def names(self, name: str = "") -> list[str]:
        """Every file there, or in a folder of it."""
        start = f"{self.base}/{name}".rstrip("/")
        self.files.invalidate_cache()
        try:
            found = self._reach(self.files.find, start)
        except FileNotFoundError:
            return []
        names = [str(path).lstrip("/").removeprefix(f"{self.base.lstrip('/')}/") for path in found]
        return [name for name in names if _PARTIAL not in name and _is_below(name)]

    def fetch(self, names: Iterable[str]) -> None:
        """Have these files here as they are there. Those that are not there, or the same, are left alone."""
        wanted = list(names)
        if not wanted:
            return
        self.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.root, prefix=".fetching-") as folder:

            def get(number: int, name: str) -> None:
                part = Path(folder, str(number))
                with contextlib.suppress(FileNotFoundError):
                    self._reach(self.files.get_file, f"{self.base}/{name}", str(part))
                target = self.root / name
                if part.is_file() and not (target.is_file() and filecmp.cmp(part, target, shallow=False)):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    part.replace(target)

            with ThreadPoolExecutor(_AT_ONCE) as pool:
                for done in [pool.submit(get, number, name) for number, name in enumerate(wanted)]:
                    done.result()

    def read(self, name: str) -> str:
        """What is in a file there; nothing where there is none."""
        try:
            content: bytes = self._reach(self.files.cat_file, f"{self.base}/{name}")
        except FileNotFoundError:
            return ""
        return content.decode("utf-8", "replace")

    def has(self, name: str) -> bool:
        self.files.invalidate_cache()
        return bool(self._reach(self.files.exists, f"{self.base}/{name}"))

    def _reach(self, ask: Callable[..., Any], *of: Any) -> Any:
        """Ask the store, again where it is busy for a moment."""
        for left in reversed(range(TRIES)):
            try:
                return ask(*of)
            except FileNotFoundError:
                raise
            except Exception as error:  # the library of a store may raise anything
                if not left:
                    said = f"{self.url}: cannot be reached or written ({_in_words(error)})"
                    raise StoreError(said) from None
                time.sleep(AGAIN_SECONDS)
        raise AssertionError("a last try returns or raises")


def _opened(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path there."""
    import fsspec

    protocol, _, place = url.partition("://")
    known = {*fsspec.available_protocols(), *fsspec.registry}
    if protocol not in known:
        raise RequestError(unknown("protocol of a URL", protocol, known))
    if not place.strip("/"):
        raise RequestError(f"{url!r} names no place for a study: put a name behind it, as in {url}my-study")
    try:
        files, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise RequestError(f"{url}: another package is needed ({error})") from None
    except Exception as error:  # the library of a store may raise anything
        raise StoreError(f"{url}: cannot be reached ({_in_words(error)})") from None
    return files, str(path).rstrip("/")


def _is_below(name: str) -> bool:
    """Whether a name from a store stays in the directory it is fetched into."""
    return bool(name) and not name.startswith("/") and ".." not in name.split("/")


def _result_last(path: Path) -> tuple[bool, str]:
    return path.name == "result.json", path.name


def _sign_of(path: Path) -> tuple[int, int] | None:
    try:
        known = path.stat()
    except FileNotFoundError:
        return None
    return known.st_mtime_ns, known.st_size


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip() or 'no reason given'}"
