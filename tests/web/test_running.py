"""Studies started from the page: they outlive it, stop at a checkpoint, and go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.web.app import make_app
from attnlab.web.running import Runner
from attnlab.web.settings import Settings

from .page import Page, free_port, served_here

TINY = """\
name = "tiny"
question = "Does it run?"
seeds = 1

[corpus]
part = "sotu"
addresses = 8

[model]
layers = 1
heads = 1
width = 8

[training]
steps = {steps}
batch = 8
evaluations = 1

[measure]
samples = 0

[[arms]]
name = "dot"
"""


def wait_for(what: Callable[[], object], seconds: float = 150.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.2)


def test_a_study_outlives_the_page_that_started_it_and_stops_for_the_next(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    folder = root / "tiny"
    metrics = folder / "runs" / "dot" / "0" / "metrics.jsonl"
    runner = Runner(root)
    first = Page(root)
    started = first.send("/start", declaration=TINY.format(steps=20_000))
    assert (started.status, started.headers["location"]) == (303, "/studies/tiny")
    assert "being prepared" in first.ask("/studies/tiny/runs").text or folder.exists()
    assert first.send("/start", declaration=TINY.format(steps=20_000)).status == 422  # it runs already
    wait_for(lambda: metrics.is_file() and metrics.stat().st_size)
    assert "Stop" in first.ask("/studies/tiny").text
    assert first.send("/studies/tiny/continue").status == 422
    first.close()

    second = Page(root)
    try:
        assert runner.process("tiny") is not None
        assert "running" in second.ask("/list").text
        size = metrics.stat().st_size
        wait_for(lambda: metrics.stat().st_size > size)
    finally:
        assert second.send("/studies/tiny/stop").status == 303
        wait_for(lambda: runner.process("tiny") is None)
        assert second.send("/studies/tiny/stop").status == 422  # nothing is left to stop
        second.close()
    assert "interrupted" in runner.said("tiny")
    assert (folder / "runs" / "dot" / "0" / "checkpoint.safetensors").is_file()


class Noting(Runner):
    """Notes what it would start."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.started: list[tuple[str, list[str]]] = []

    def start(self, name: str, arguments: Sequence[str]) -> None:
        self.started.append((name, list(arguments)))


def test_more_seeds_are_what_the_command_line_makes_of_them(root: Path) -> None:
    settings = Settings(root, port=free_port())
    app = make_app(settings)
    noting = app.state.runner = Noting(root)
    with served_here(settings, app) as client:
        for seeds in ("0", "4", "x", "-1", "1001", "٥"):
            assert client.send("/studies/score/continue", seeds=seeds).status == 422, seeds
        assert client.send("/studies/scoer/continue").status == 404
        assert client.send("/studies/score/continue", seeds="8").status == 303
        assert client.send("/studies/half%20done/continue", seeds="").status == 303
    assert noting.started == [
        ("score", ["run", str(root / "score"), "--seeds", "8"]),
        ("half done", ["run", str(root / "half done")]),
    ]


def test_a_process_that_is_gone_is_not_there(tmp_path: Path) -> None:
    """A number left behind may be another process's by now: the lock decides."""
    runner = Runner(tmp_path)
    runner.home.mkdir()
    (runner.home / "x.json").write_text('{"pid": 1, "began": 0, "command": []}')
    assert runner.process("x") is None
    (runner.home / "x.lock").touch()
    assert runner.process("x") is None
    with pytest.raises(RequestError, match="not running"):
        runner.stop("x")
