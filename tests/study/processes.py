"""Processes of studies: found with everything they started, and ended as a power cut would end them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

DEAD = 20.0  # seconds that the system gets to take back what was killed


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:  # the thread has ended meanwhile
            continue
    return found


def kill_tree(process: subprocess.Popen[str]) -> list[int]:
    """SIGKILL to a process and to all below it; gives back whom. It is stopped first, so that none is started
    between looking and killing."""
    if process.poll() is None:
        os.kill(process.pid, signal.SIGSTOP)
    tree = [process.pid]
    for pid in tree:
        tree += children(pid)
    for pid in tree:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.communicate()
    _wait_until_gone(tree)
    return tree


def _wait_until_gone(tree: list[int]) -> None:
    """A process that is being ended holds its locks until it has been."""
    deadline = time.monotonic() + DEAD
    while any(_lives(pid) for pid in tree):
        if time.monotonic() > deadline:
            raise TimeoutError(f"a process was killed and lives: one of {tree}")
        time.sleep(0.005)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
