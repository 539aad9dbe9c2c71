"""One run by two processes, as torchrun starts them: the losses of one, and checkpoints to go on from."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import RequestError
from attnlab.study import load_study, run
from attnlab.study.curve import read_curve
from attnlab.study.executors import Silent
from attnlab.study.executors.ranks import Ranks
from attnlab.study.store import Cell, Store
from attnlab.training import Checkpoint

from .small import DECLARATION, InProcess, measured

pytestmark = pytest.mark.slow
_CLOSE = 1e-5


def start(study: Path, out: Path, processes: int) -> subprocess.Popen[str]:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    attnlab = ["-m", "attnlab", "run", str(study), "--out", str(out)]
    command = [*torchrun, "--nproc-per-node", str(processes), *attnlab]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def without_dropout(folder: Path, steps: int, extra: str = "") -> Path:
    """What depends on how a batch is shared out is left away: each process draws its own dropout, and sums in
    bfloat16 are as coarse as the differences looked for."""
    path = folder / "plain.toml"
    text = DECLARATION.replace("steps = 12", f"steps = {steps}\nprecision = 'float32'\n{extra}").replace(
        "seeds = 2", "seeds = 1"
    )
    path.write_text(text.replace("context = 16", "context = 16\ndropout = 0.0"))
    return path


def losses(out: Path, arm: str) -> list[float]:
    return [row["loss"] for row in read_curve(out / "runs" / arm / "0" / "metrics.jsonl")]


def apart(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> float:
    """The largest difference between two studies' metrics."""
    gaps = [
        abs(value - other[cell][1][name])
        for cell, (_, metrics) in one.items()
        for name, value in metrics.items()
        if name.endswith("loss")
    ]
    assert gaps
    return max(gaps)


@pytest.mark.parametrize(
    "extra", ["", "accumulate = 2", "batch = 1"], ids=["plain", "in pieces", "one sequence"]
)
def test_two_processes_have_the_losses_of_one(folder: Path, extra: str) -> None:
    study = without_dropout(folder, 30, extra)
    if extra.startswith("batch"):
        study.write_text(study.read_text().replace("batch = 8\n", ""))
    process = start(study, folder / "two", 2)
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert output.count("report:") == 1  # the first process speaks
    alone = run(study, out=folder / "one", on=InProcess())
    together = json.loads((folder / "two" / "results.json").read_text("utf-8"))
    assert apart(measured(alone.plain), measured(together)) < _CLOSE
    for arm in ("dot", "additive"):
        pairs = zip(losses(folder / "one", arm), losses(folder / "two", arm), strict=True)
        assert max(abs(a - b) for a, b in pairs) < _CLOSE
    header = json.loads((folder / "two" / "study.json").read_text("utf-8"))
    assert header["environment"]["processes"] == 2


def test_a_checkpoint_of_two_is_gone_on_from_by_one(folder: Path) -> None:
    study = without_dropout(folder, 600)
    out = folder / "moved"
    process = start(study, out, 2)
    curve = out / "runs" / "dot" / "0" / "metrics.jsonl"
    deadline = time.monotonic() + 200
    while not (curve.exists() and len(read_curve(curve)) > 3):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)  # as torchrun passes it on to all of them
    process.communicate(timeout=120)
    kept = Checkpoint.read(out / "runs" / "dot" / "0" / "checkpoint.safetensors").facts["progress"]
    assert 0 < kept["step"] < 600
    went_on = run(study, out=out, on=InProcess())
    alone = run(study, out=folder / "alone", on=InProcess())
    assert apart(measured(alone.plain), measured(went_on.plain)) < 1e-3  # hundreds of steps later
    first = losses(out, "dot")[: kept["step"] // 3]
    assert max(abs(a - b) for a, b in zip(first, losses(folder / "alone", "dot"), strict=False)) < _CLOSE


def test_a_run_that_may_be_more_than_one_training_is_refused(folder: Path) -> None:
    study = load_study("speeches-classifier")
    store = Store(folder / "out")
    store.open_for(study, {})
    with pytest.raises(RequestError, match="a run of the kind 'classifier' may be more than one training"):
        Ranks().run(store, [Cell(study.baseline.name, 0)], {"threads": 1}, Silent())


def test_under_torchrun_there_is_no_other_place_to_run_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from attnlab.cli import main

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    assert main(["run", str(folder / "small.toml"), "--on", "ray"]) == 2
    assert "under torchrun its processes do the work" in capsys.readouterr().err
