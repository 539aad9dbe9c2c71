"""A whole study against the runs it replaces: two arms × five seeds, and ten stock runs one after the other.

Both at the common set-up with the same numbers of steps. What is timed of ours is the command, from its start
to its written report: preparation, audits, workers, training, evaluation, prefix-only scoring, samples,
verdicts. A stock run is timed from the model's construction to its last step, and evaluates nothing.

An epoch of ten runs is too long for a benchmark. Two short studies tell what a step costs and what comes
once: the rows for a whole epoch are computed from these two, and say so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import training
from benchmarks.alternating import ROOT

ARMS, SEEDS = 2, 5
SHORT, LONG = 40, 160  # steps
DECLARED = """
name = "speed-{steps}"
question = "How long does a study take?"
seeds = {seeds}

[training]
steps = {steps}

[[arms]]
name = "separate"

[[arms]]
name = "queries are keys"
project = "query-is-key"
"""


@dataclass(frozen=True)
class Measured:
    """Seconds of a study's command, and of its runs by their own records."""

    steps: int
    command: float
    training: float
    evaluation: float


def study(steps: int, folder: Path) -> Measured:
    """Run one by the command a user would give."""
    declared = folder / f"{steps}.toml"
    declared.write_text(DECLARED.format(steps=steps, seeds=SEEDS))
    out = folder / f"out-{steps}"
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "attnlab", "run", str(declared), "--out", str(out)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    seconds = time.perf_counter() - started
    arms = json.loads((out / "results.json").read_text())["arms"]
    runs = [run for arm in arms for run in arm["runs"]]
    assert len(runs) == ARMS * SEEDS, "a run is missing"
    total = {name: sum(run[name] for run in runs) for name in ("seconds", "evaluation_seconds")}
    return Measured(steps, seconds, total["seconds"], total["evaluation_seconds"])


def stock(steps: int) -> float:
    """Seconds of ten stock runs of so many steps, one after the other, in a process of their own."""
    code = (
        "import time, torch; torch.set_num_threads(2); from benchmarks import training as t;"
        f"t.STEPS = {steps}; t.corpus(); t.gpt2()(0); started = time.perf_counter();"
        f"[t.gpt2()(0) for _ in range({ARMS * SEEDS})]; print(time.perf_counter() - started)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def main() -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder:
        study(1, Path(folder))  # prepares the corpus, as an earlier study would have
        short, long = (study(steps, Path(folder)) for steps in (SHORT, LONG))
    theirs = stock(SHORT)
    data = training.corpus()
    epoch = -(-data.splits["train"].n_sequences // training.BATCH)
    per_step = (long.command - short.command) / (LONG - SHORT)
    whole = long.command + per_step * (epoch - LONG)
    stock_long, stock_whole = (theirs * steps / SHORT for steps in (LONG, epoch))
    trained = long.training * epoch / LONG
    name = "seconds: a study of 2 arms × 5 seeds / ten stock GPT-2 runs"
    return [
        {
            "name": f"{name}, {LONG} steps each (the stock runs' from {SHORT} steps)",
            "ratio": round(stock_long / long.command, 2),
            "peer": round(stock_long, 1),
            "ours": round(long.command, 1),
        },
        {
            "name": f"{name}, one epoch of {epoch:,} steps each, computed from short ones",
            "ratio": round(stock_whole / whole, 2),
            "peer": round(stock_whole, 1),
            "ours": round(whole, 1),
            "target": "at least 16",
        },
        {
            "name": "seconds of evaluation and prefix-only scoring / with training, one epoch, computed",
            "ratio": round(long.evaluation / (long.evaluation + trained), 3),
            "peer": round(long.evaluation + trained, 1),
            "ours": round(long.evaluation, 1),
            "target": "under 0.15",
        },
    ]
