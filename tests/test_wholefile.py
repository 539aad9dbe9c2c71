"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attnlab.errors import StoreError
from attnlab.wholefile import claimed, write_json, write_whole


def test_text_and_bytes_come_back(tmp_path: Path) -> None:
    write_whole(tmp_path / "text", "naïve → ±\n")
    write_whole(tmp_path / "bytes", b"\0\xff")
    assert (tmp_path / "text").read_text("utf-8") == "naïve → ±\n"
    assert (tmp_path / "bytes").read_bytes() == b"\0\xff"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bytes", "text"]


def test_json_keeps_order_and_refuses_what_json_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"b": 1, "a": "é"})
    assert list(json.loads(path.read_text("utf-8"))) == ["b", "a"]
    assert "é" in path.read_text("utf-8")
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"b": float("nan")})
    assert json.loads(path.read_text("utf-8"))["b"] == 1  # the old content stands


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "x").mkdir()  # a directory where the file should go
    for path in (tmp_path / "file" / "x", tmp_path / "absent" / "x", Path("/proc/attnlab"), tmp_path / "x"):
        with pytest.raises(StoreError, match="cannot be written"):
            write_whole(path, "content")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "x"]  # nothing half-written is left


def test_a_write_that_fails_half_way_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    write_whole(path, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_killed_at_any_moment_the_file_is_one_of_the_two(tmp_path: Path) -> None:
    path = tmp_path / "x"
    contents = ["a" * 3_000_000, "b" * 3_000_000]
    write_whole(path, contents[0])
    script = (
        "import sys; from pathlib import Path; from attnlab.wholefile import write_whole\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    for c in 'ab': write_whole(Path(sys.argv[1]), c * 3_000_000)\n"
    )
    for delay in (0.0, 0.013, 0.029, 0.041):
        writer = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        assert path.read_text() in contents


def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*what: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with claimed(tmp_path / "free") as ours, claimed(tmp_path / "free") as theirs:
        assert (ours, theirs) == (True, False)
    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(StoreError, match="keeps no locks"), claimed(tmp_path / "one"):
        pass
