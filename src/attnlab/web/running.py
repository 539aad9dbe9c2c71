"""Studies that run: child processes of the page that outlive it.

Each is the command that a terminal would run. It holds a lock on a file from its first moment to its last,
however that comes, so whoever looks (this page, or the next one over the same directory) knows whether it
still runs and which process it is.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from attnlab.errors import RequestError, StoreError
from attnlab.wholefile import write_json

_TAIL = 6000  # bytes of what a process said that are shown


@dataclass(frozen=True)
class Process:
    """A process that works on a study."""

    pid: int
    began: float
    command: tuple[str, ...]


class Runner:
    """Starts and stops the processes of a directory's studies."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / ".page"  # locks, process numbers, and what the processes said
        self._children: list[subprocess.Popen[bytes]] = []
        self._looking = threading.Lock()  # to look whether a lock is free is to hold it for a moment

    def start(self, name: str, arguments: Sequence[str]) -> None:
        """Run `attnlab` with these arguments for the study `name`, unless it runs already."""
        self._bury()
        try:
            self.home.mkdir(exist_ok=True)
            lock = (self.home / f"{name}.lock").open("w")
        except OSError as error:
            raise StoreError(f"{self.home}: cannot be written ({error.strerror})") from None
        with self._looking, lock:
            if not _taken(lock):
                raise RequestError(f"{name!r} is running already")
            with (self.home / f"{name}.log").open("wb") as log:
                child = subprocess.Popen(
                    [sys.executable, "-m", "attnlab", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=(lock.fileno(),),  # with it goes the lock: let go when the last holder ends
                    start_new_session=True,
                    env={**os.environ, "PYTHONUNBUFFERED": "1"},
                )
            self._children.append(child)
            known = {"pid": child.pid, "began": time.time(), "command": ["attnlab", *arguments]}
            write_json(self.home / f"{name}.json", known)

    def process(self, name: str) -> Process | None:
        """The process that works on a study, if one does that was started from a page."""
        self._bury()
        try:
            with self._looking, (self.home / f"{name}.lock").open("r") as lock:
                if _taken(lock):
                    return None
            known = json.loads((self.home / f"{name}.json").read_text("utf-8"))
            return Process(int(known["pid"]), float(known["began"]), tuple(known["command"]))
        except (OSError, ValueError, KeyError):
            return None

    def begun(self, name: str) -> tuple[str, ...]:
        """The arguments with which a study was last started from a page; none, if it never was."""
        if name not in {path.stem for path in self.home.glob("*.json")}:
            return ()
        try:
            return tuple(json.loads((self.home / f"{name}.json").read_text("utf-8"))["command"][1:])
        except (OSError, ValueError, KeyError):
            return ()

    def stop(self, name: str) -> None:
        """Ask a study to stop; its runs leave checkpoints first, and go on from there another time."""
        process = self.process(name)
        if process is None:
            raise RequestError(f"{name!r} is not running, or was started from a terminal: stop it there")
        os.kill(process.pid, signal.SIGINT)

    def said(self, name: str) -> str:
        """The end of what the last process of a study said."""
        try:
            with (self.home / f"{name}.log").open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL))
                return log.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def _bury(self) -> None:
        """Take leave of children that have ended, so that none stays behind as a zombie."""
        self._children = [child for child in self._children if child.poll() is None]


def _taken(lock: IO[str]) -> bool:
    """Take a lock, if nobody has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
