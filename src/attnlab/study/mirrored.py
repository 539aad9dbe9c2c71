"""A study at a URL: where it was begun, one process gives out its cells; where a cell is worked on, its files
are fetched first and sent while it goes on.

Object stores keep no locks. What locks do in a directory is done here by there being one process that gives
out cells: it leaves a sign at the URL, and another one that finds a fresh sign does not begin. A cell that is
given out again because its machine seems dead, and is not, is worked on twice; both write the same numbers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.errors import RequestError, StoreError, WorkError
from attnlab.record import RunResult
from attnlab.study.mirror import Mirror
from attnlab.study.store import URL_NOTE, Cell, Store
from attnlab.study.study import Study
from attnlab.tokens import cache
from attnlab.wholefile import claimed

SEND_SECONDS = 5.0  # between two looks at what changed
_LOOK_SECONDS = 5.0  # between two looks at how far runs are
_WATCHED = ("metrics.jsonl", "notes.txt", ".alive")  # what is looked at while a run goes on
_SIGN = "given-out-by.json"
_SIGN_SECONDS = 30.0  # between two signs
_STALE_SECONDS = 120.0  # a sign older than this is of a process that died


class MirroredStore(Store):
    """The store of a study at a URL, as the process has it that gives out the cells."""

    def __init__(self, path: Path, mirror: Mirror) -> None:
        super().__init__(path)
        self.mirror = mirror
        self._looked = -_LOOK_SECONDS

    @property
    def address(self) -> str:
        return self.mirror.url

    def write_header(self, study: Study, header: Mapping[str, Any]) -> None:
        super().write_header(study, header)
        self.mirror.send("study.json")

    def write_result(self, result: RunResult) -> None:
        super().write_result(result)
        folder = self.folder(Cell(result.arm, result.seed)).relative_to(self.path)
        self.mirror.send((folder / "result.json").as_posix())

    def look_at(self, cells: Sequence[Cell]) -> None:
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            folders = [self._name(cell) for cell in cells]
            with contextlib.suppress(StoreError):  # what is not seen now is seen at the next look
                self.mirror.fetch(f"{folder}/{name}" for folder in folders for name in _WATCHED)
            self._looked = time.monotonic()

    def bring(self, cell: Cell) -> None:
        self.mirror.fetch(name for name in self.mirror.names(self._name(cell)) if not _is_heavy(name))

    def wish(self, name: str) -> None:
        super().wish(name)
        self.mirror.send(name)

    def unwish(self, name: str) -> None:
        super().unwish(name)
        self.mirror.remove(name)

    def _name(self, cell: Cell) -> str:
        return self.folder(cell).relative_to(self.path).as_posix()


def _is_heavy(name: str) -> bool:
    """Checkpoints stay where they are: of ten thousand runs they would fill a disk."""
    return name.endswith(".safetensors")


@contextlib.contextmanager
def given_out(url: str, path: Path) -> Iterator[Callable[[Path], Store]]:
    """While this process gives out the cells of the study at a URL, whose directory here is `path`: what
    makes its store. At the end everything that is here is there."""
    note = path / URL_NOTE
    theirs = note.read_text("utf-8").strip() if note.is_file() else None
    if theirs != url.rstrip("/") and path.is_dir() and any(path.iterdir()):
        of = f"the study at {theirs}" if theirs else "a study of its own"
        raise StoreError(f"{path}, where what is at {url} would be kept, holds {of}: run it from elsewhere")
    mirror = Mirror(url, path)
    path.mkdir(parents=True, exist_ok=True)
    with _alone(mirror):
        if (path / "study.json").is_file() and not mirror.has("study.json"):
            raise StoreError(f"{path} holds a study of {url}, where there is none any more: remove it first")
        note.write_text(f"{mirror.url}\n", "utf-8")
        mirror.fetch(name for name in mirror.names() if not _is_heavy(name) and name != _SIGN)
        yield lambda path: MirroredStore(path, mirror)
        mirror.send(*(file.name for file in sorted(path.glob("*.json"))))


def publish(path: Path, *names: str) -> None:
    """Send what was made of a study afterwards, where it has a URL."""
    note = path / URL_NOTE
    if note.is_file():
        Mirror(note.read_text("utf-8").strip(), path).send(*names)


@contextlib.contextmanager
def _alone(mirror: Mirror) -> Iterator[None]:
    """Leave a sign again and again that cells are given out from here; refuse where somebody else does."""
    mine = {"id": uuid.uuid4().hex, "who": f"process {os.getpid()} on {socket.gethostname()}"}
    other = _sign(mirror)
    age = time.time() - other.get("at", 0.0)
    if age < _STALE_SECONDS:
        raise StoreError(
            f"{mirror.url}: {other.get('who')} gives out this study's runs (its last sign is {age:.0f} s "
            "old). An object store keeps no locks, so two would do the same runs; if it is gone, begin again "
            f"in {_STALE_SECONDS - age:.0f} s"
        )
    over = threading.Event()

    def leave() -> None:
        mirror.write(_SIGN, json.dumps({**mine, "at": time.time()}))

    def again() -> None:
        while not over.wait(_SIGN_SECONDS):
            with contextlib.suppress(StoreError):  # the next one may arrive
                leave()

    leave()
    if _sign(mirror).get("id") != mine["id"]:
        raise StoreError(f"{mirror.url}: another process began to give out its runs at the same time")
    thread = threading.Thread(target=again, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        mirror.remove(_SIGN)


def _sign(mirror: Mirror) -> Mapping[str, Any]:
    try:
        found = json.loads(mirror.read(_SIGN) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("at"), int | float) else {}


# ---- where a cell is worked on -----------------------------------------------------------------------------


@contextlib.contextmanager
def at_hand(url: str, cell: Cell, stop_file: str) -> Iterator[Path | None]:
    """A directory of this machine with what the URL has of a cell, whose files are sent while it is worked
    on; None where another process of this machine is at the cell."""
    root = cache.folder().path / "studies" / hashlib.sha256(url.encode()).hexdigest()[:16]
    mirror = Mirror(url, root)
    name = Store(root).folder(cell).relative_to(root).as_posix()
    mirror.fetch(["study.json"])
    if not (root / "study.json").is_file():
        raise WorkError(f"{url} holds no study: there is no study.json at it")
    with claimed(root / name / ".lock") as ours:
        if not ours:
            yield None
            return
        for left in (root / name).iterdir():  # by an earlier run here: what is at the URL went on since
            if left.name != ".lock":
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        mirror.fetch(mirror.names(name))
    over = threading.Event()

    def hear() -> None:
        if mirror.has(stop_file):
            (root / stop_file).touch()

    def again() -> None:
        while not over.wait(SEND_SECONDS):
            with contextlib.suppress(StoreError, OSError):  # what could not be sent now is sent the next time
                mirror.send_changed(name)
                hear()

    hear()  # who begins after all were asked to stop has no time to begin
    thread = threading.Thread(target=again, daemon=True)
    thread.start()
    try:
        yield root
    finally:
        over.set()
        thread.join()
        mirror.send_changed(name)
        (root / stop_file).unlink(missing_ok=True)


def refuse_if_unsafe(study: Study, executor: object, url: str) -> None:
    """What cannot be done at a URL."""
    if not getattr(getattr(executor, "yard", None), "takes_urls", False):
        raise RequestError(
            f"{url}: results at a URL are for --on ray, whose machines need no common directory; elsewhere "
            "name a directory with --out"
        )
    sharing = {arm.name: shared for arm in study.arms if (shared := study.setup_of(arm.name).shares)}
    if sharing:
        arm, what = next(iter(sharing.items()))
        raise RequestError(
            f"{url}: the runs of {arm!r} share {what}, which needs locks, and a URL has none: name a "
            "directory that all machines see with --out"
        )
