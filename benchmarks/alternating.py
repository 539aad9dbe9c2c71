"""Measure several subjects in turn, each in a process of its own.

A process each, because what is compared includes how memory is kept, which is a setting of the process; in
turn, so that whatever else the machine is doing meets all of them alike. Only one works at a time.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
TUNED = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "2147483647",
    "MALLOC_TOP_PAD_": "67108864",
}

Work = Callable[[int], int]  # do round n; give back how many units (tokens) that was


@dataclass
class Subject:
    """Something to measure: `build` names a function `module:function` that makes its `Work`."""

    name: str
    build: str
    environment: dict[str, str] = field(default_factory=dict)
    threads: int = 2
    seconds: list[float] = field(default_factory=list)
    units: list[int] = field(default_factory=list)
    peak_mb: float = 0.0

    def start(self) -> None:
        environment = {**os.environ, **self.environment, "OMP_NUM_THREADS": str(self.threads)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.alternating", self.build, str(self.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment,
            text=True,
        )
        self._answer()

    def round(self, number: int, keep: bool) -> None:
        assert self.process.stdin is not None
        print(number, file=self.process.stdin, flush=True)
        answer = self._answer()
        self.peak_mb = answer["peak_mb"]
        if keep:
            self.seconds.append(answer["seconds"])
            self.units.append(answer["units"])

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _answer(self) -> dict[str, float]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with exit code {self.process.wait()}")
        return json.loads(line)

    @property
    def rate(self) -> float:
        """Units per second, the median over rounds."""
        return median(u / s for u, s in zip(self.units, self.seconds, strict=True))


def measure(subjects: Sequence[Subject], rounds: int, warm: int = 1) -> None:
    """`warm` rounds that do not count, then `rounds` that do, every subject in turn."""
    for subject in subjects:
        subject.start()
    try:
        for number in range(warm + rounds):
            for subject in subjects:
                subject.round(number, keep=number >= warm)
    finally:
        for subject in subjects:
            subject.stop()


def ratios(ours: Subject, peer: Subject) -> list[float]:
    """How many times the peer's rate ours is, of every round, each with its neighbour."""
    pairs = zip(ours.seconds, ours.units, peer.seconds, peer.units, strict=True)
    return [(u / s) / (pu / ps) for s, u, ps, pu in pairs]


def ratio(ours: Subject, peer: Subject) -> float:
    """The median of them."""
    return median(ratios(ours, peer))


def compared(name: str, ours: Subject, peer: Subject, **more: object) -> dict[str, object]:
    """A row of results: rates and their ratio, the median over rounds with the smallest and the largest."""
    every = ratios(ours, peer)
    return {
        "name": f"{name}: {ours.name} / {peer.name}",
        "ratio": round(ratio(ours, peer), 2),
        "spread": [round(min(every), 2), round(max(every), 2)],
        "peer": round(peer.rate),
        "ours": round(ours.rate),
        **more,
    }


def _peak_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    build, threads = sys.argv[1], int(sys.argv[2])
    import torch

    torch.set_num_threads(threads)
    module, function = build.split(":")
    work: Work = getattr(importlib.import_module(module), function)()
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        started = time.perf_counter()
        units = work(int(line))
        seconds = time.perf_counter() - started
        print(
            json.dumps({"seconds": seconds, "units": units, "peak_mb": _peak_mb()}), file=answers, flush=True
        )


if __name__ == "__main__":
    _serve()
