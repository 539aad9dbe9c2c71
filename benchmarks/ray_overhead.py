"""What a cluster costs: one study by worker processes of this machine, and by as many processors of a Ray
cluster of this machine, one after the other.

    python -m benchmarks.ray_overhead [SEEDS] [STEPS]

Two arms, so that there are twice as many runs as SEEDS; STEPS are to be so many that a run takes a minute.
What processes take to load PyTorch is counted on both sides; the start of the cluster itself is said apart.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from attnlab.study import Arm, LanguageModel, Results, Study, run
from attnlab.study.environment import cores
from attnlab.study.executors import Afar, Local, RayYard
from attnlab.training import Training

WANTED = 0.15  # more than local, for runs of a minute


def main(seeds: int = 3, steps: int = 1200) -> None:
    study = Study(
        name="overhead",
        question="What does a cluster cost?",
        setup=LanguageModel(training=Training(steps=steps)),
        arms=[Arm(name="dot"), Arm(name="unscaled", score="unscaled")],
        seeds=seeds,
    )
    workers = min(cores(), 2 * seeds)
    with tempfile.TemporaryDirectory() as folder:
        short = study.model_copy(update={"setup": LanguageModel(training=Training(steps=1)), "seeds": 1})
        run(short, out=Path(folder) / "first", on=Local(workers))  # the corpus and its floors, for both
        here, local = _timed(study, Path(folder) / "local", Local(workers))
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # 15 otherwise: beside other work that would decide
        began = time.perf_counter()
        import ray

        ray.init("local", num_cpus=workers, include_dashboard=False, log_to_driver=False)
        started = time.perf_counter() - began
        there, far = _timed(study, Path(folder) / "ray", Afar(RayYard()))
        ray.shutdown()
    a_run = _seconds(local) / (2 * seeds)
    print(f"{2 * seeds} runs of {a_run:.0f} s of training each, {workers} at a time")
    print(f"local: {here:.1f} s; on Ray: {there:.1f} s, and {started:.1f} s before for the cluster's start")
    print(f"more by {there / here - 1:.1%}; {WANTED:.0%} are allowed. The same results: {_same(local, far)}")
    print(
        f"training alone took {_seconds(far) / _seconds(local) - 1:+.1%} there: what else ran on the machine"
    )


def _timed(study: Study, out: Path, on: Any) -> tuple[float, Results]:
    began = time.perf_counter()
    found = run(study, out=out, on=on)
    return time.perf_counter() - began, found


def _seconds(found: Results) -> float:
    return sum(run["seconds"] for arm in found.plain["arms"] for run in arm["runs"])


def _same(local: Results, far: Results) -> bool:
    def measured(found: Results) -> str:
        runs = [run["metrics"] for arm in found.plain["arms"] for run in arm["runs"]]
        return json.dumps([{key: run[key] for key in run if key.endswith("_loss")} for run in runs])

    return measured(local) == measured(far)


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:]))
