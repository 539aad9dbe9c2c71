"""From a command to what it is for: the help, the import, and a second study's first steps."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.alternating import ROOT
from benchmarks.studies import DECLARED

ROUNDS = 5
LIMITS = {"help": 0.6, "import": 0.6, "study": 3.0}
_WAIT = 300.0  # seconds after which a study that did not begin is an error


def seconds_of(*command: str) -> float:
    """The median over rounds, the first left out: it fills the disk's cache."""
    spent = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True)
        spent.append(time.perf_counter() - started)
    return median(spent[1:])


def until_training(folder: Path, steps: int) -> float:
    """Seconds from the command to the first line of a curve, for a study not run before."""
    declared, out = folder / f"{steps}.toml", folder / f"out-{steps}"
    declared.write_text(DECLARED.format(steps=steps, seeds=1))
    command = [sys.executable, "-m", "attnlab", "run", str(declared), "--out", str(out)]
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not any(curve.stat().st_size for curve in out.glob("runs/*/*/metrics.jsonl")):
            if process.poll() is not None or time.perf_counter() - started > _WAIT:
                raise RuntimeError(f"{declared} did not begin to train")
            time.sleep(0.01)
        return time.perf_counter() - started
    finally:
        process.terminate()
        process.wait()


def main() -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a worker may still be leaving
        until_training(Path(folder), 1000)  # prepares the corpus
        study = median(until_training(Path(folder), 1001 + number) for number in range(3))
    found = {
        "help": ("attnlab --help", seconds_of("-m", "attnlab", "--help")),
        "import": ("import attnlab", seconds_of("-c", "import attnlab")),
        "study": ("a second study, from the command to its first step", study),
    }
    return [
        {
            "name": f"seconds: {name} / the most it may take",
            "ratio": round(seconds / LIMITS[key], 2),
            "peer": LIMITS[key],
            "ours": round(seconds, 2),
            "target": "under 1",
        }
        for key, (name, seconds) in found.items()
    ]
