"""Studies in processes: killed at any moment, asked to stop, two at once, with a part of the user's own."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import WorkError
from attnlab.study import run
from attnlab.study.environment import cores
from attnlab.study.executors import Local
from attnlab.study.store import Cell, Store
from attnlab.training import Checkpoint

from .processes import children, kill_tree
from .small import DECLARATION, InProcess, measured, records

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds processes in /proc")

# A file's optimiser that notes down every training that begins: what "each cell once" is counted by.
OWN = """\
import os
from dataclasses import dataclass
from pathlib import Path

from attnlab.attention import Dot
from attnlab.training import AdamW


@dataclass(frozen=True, kw_only=True)
class Noted(AdamW):
    def build(self, model):
        with open(Path(__file__).with_name("begun.txt"), "a") as file:
            file.write(f"{os.getpid()}\\n")
        return super().build(model)


@dataclass(frozen=True, kw_only=True)
class Mine(Dot):
    pass
"""

# The command line has no word for the time between checkpoints; an executor has.
RUN = """\
import sys
from attnlab.study import run
from attnlab.study.environment import cores
from attnlab.study.executors import Local
if __name__ == "__main__":
    run(sys.argv[1], out=sys.argv[2], on=Local(workers=2, save_seconds=float(sys.argv[3])))
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a Python process that does not outlive its test."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        kill_tree(process)


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str], seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise AssertionError(f"ended too early: {process.communicate()}")
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def longer(folder: Path, steps: int, extra: str = "") -> Path:
    path = folder / "longer.toml"
    path.write_text(DECLARATION.replace("steps = 12", f"steps = {steps}\n{extra}"))
    return path


def test_killed_at_random_moments_it_ends_with_the_same_numbers(folder: Path, start: Start) -> None:
    study, out = longer(folder, 900), folder / "killed"
    (folder / "go.py").write_text(RUN)
    undisturbed = run(study, out=folder / "undisturbed", on=InProcess())
    draw = random.Random()
    went_on = 0
    for _ in range(3):
        process = start(str(folder / "go.py"), str(study), str(out), "0.02")
        before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*/checkpoint.safetensors")}

        def moved() -> bool:
            return any(
                before.get(path) != path.stat().st_mtime_ns  # noqa: B023 - called in this turn only
                for path in out.glob("runs/*/*/checkpoint.safetensors")
            )

        wait_for(moved, process)
        time.sleep(draw.uniform(0, 0.4))
        kill_tree(process)
        unfinished = [
            p.parent for p in out.glob("runs/*/*/spec.json") if not (p.parent / "result.json").exists()
        ]
        went_on += any((cell / "checkpoint.safetensors").exists() for cell in unfinished)
    assert went_on, "no run was ever killed between a checkpoint and its end"
    last = start(str(folder / "go.py"), str(study), str(out), "20")
    _, errors = last.communicate(timeout=120)
    assert last.returncode == 0, errors

    results = json.loads((out / "results.json").read_text("utf-8"))
    expected = json.loads((folder / "undisturbed" / "results.json").read_text("utf-8"))
    assert measured(results) == measured(undisturbed.plain)
    assert results["verdicts"] == expected["verdicts"]
    assert records(out) == records(folder / "undisturbed")
    assert not list(out.rglob("*.partial")) or all(p.name.startswith(".") for p in out.rglob("*.partial"))
    for cell in ("dot/0", "additive/1"):
        mine, theirs = (
            Checkpoint.read(where / "runs" / cell / "checkpoint.safetensors").tensors
            for where in (out, folder / "undisturbed")
        )
        assert all(mine[name].equal(theirs[name]) for name in theirs)


# Ends as a power cut would have it: when the training is done, and prefixes are being scored.
ENDS_WHILE_MEASURING = """\
import os, signal, sys
sys.path.insert(0, sys.argv[3])
import attnlab.study.kinds.language_model as kind
from attnlab.study import run
from tests.study.small import InProcess

kind.prefix_score = lambda *what: os.kill(os.getpid(), signal.SIGKILL)
run(sys.argv[1], out=sys.argv[2], on=InProcess())
"""


def test_killed_while_prefixes_are_scored_a_run_is_measured_again_and_not_trained_again(
    folder: Path, start: Start
) -> None:
    study, out = longer(folder, 60), folder / "killed"
    root = Path(__file__).parents[2]
    process = start("-c", ENDS_WHILE_MEASURING, str(study), str(out), str(root))
    _, errors = process.communicate(timeout=250)
    assert process.returncode == -signal.SIGKILL, errors
    cell = out / "runs" / "dot" / "0"
    assert not (cell / "result.json").exists()
    trained = Checkpoint.read(cell / "checkpoint.safetensors")
    assert trained.facts["progress"]["step"] == 60
    curve = (cell / "metrics.jsonl").read_text()

    whole = run(study, out=out, on=InProcess())
    undisturbed = run(study, out=folder / "undisturbed", on=InProcess())
    assert measured(whole.plain) == measured(undisturbed.plain)
    assert records(out) == records(folder / "undisturbed")
    assert (cell / "metrics.jsonl").read_text() == curve
    again = Checkpoint.read(cell / "checkpoint.safetensors")
    assert all(again.tensors[name].equal(kept) for name, kept in trained.tensors.items())


def test_ctrl_c_leaves_a_checkpoint_and_exit_code_130(folder: Path, start: Start) -> None:
    study, out = longer(folder, 1_000_000), folder / "stopped"
    process = start("-m", "attnlab", "run", str(study), "--out", str(out))
    wait_for(lambda: len(list(out.glob("runs/*/*/metrics.jsonl"))) >= min(2, cores()), process)
    wait_for(lambda: all(p.stat().st_size for p in out.glob("runs/*/*/metrics.jsonl")), process)
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "attnlab: interrupted: what is done is kept, and the same command goes on from there" in errors
    assert "Traceback" not in output + errors
    assert not any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers)
    checkpoints = list(out.glob("runs/*/*/checkpoint.safetensors"))
    assert checkpoints
    for path in checkpoints:
        assert Checkpoint.read(path).facts["progress"]["step"] > 0
        assert not path.with_name("result.json").exists()
    assert json.loads((out / "results.json").read_text())["verdicts"] == []


def test_workers_do_not_outlive_the_process_that_hired_them(folder: Path, start: Start) -> None:
    study, out = longer(folder, 1_000_000), folder / "orphaned"
    process = start("-m", "attnlab", "run", str(study), "--out", str(out))
    wait_for(lambda: len(list(out.glob("runs/*/*/metrics.jsonl"))) >= min(2, cores()), process)
    workers = children(process.pid)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker goes on without anyone to work for"
        time.sleep(0.05)
    assert list(out.glob("runs/*/*/checkpoint.safetensors"))


def test_two_at_once_do_each_cell_once_and_agree(folder: Path, start: Start) -> None:
    """With an optimiser and a score from the user's own file, which reach the workers."""
    (folder / "own.py").write_text(OWN)
    study = longer(folder, 60, 'optimizer = {part = "own.py:Noted"}')
    study.write_text(study.read_text() + '\n[[arms]]\nname = "mine"\nscore = "own.py:Mine"\n')
    out = folder / "shared"
    # A worker per core has one thread, as the run in this process that it is compared with.
    command = ["-m", "attnlab", "run", str(study), "--out", str(out), "--workers", str(cores())]
    both = [start(*command) for _ in range(2)]
    for process in both:
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert "additive" in output
    begun = (folder / "begun.txt").read_text().split()
    assert len(begun) == 6  # 3 arms, 2 seeds
    found = measured(json.loads((out / "results.json").read_text("utf-8")))
    assert {status for status, _ in found.values()} == {"ok"}
    # The user's score is the dot product under another name.
    assert found["mine", 0] == found["dot", 0]
    alone = run(study, out=folder / "alone", on=InProcess())
    assert measured(alone.plain) == found


def test_a_worker_that_dies_fails_its_cell_and_the_others_go_on(folder: Path) -> None:
    (folder / "own.py").write_text(
        "import os\nfrom dataclasses import dataclass\nfrom attnlab.training import AdamW\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Deadly(AdamW):\n    code: int = 0\n"
        "    def build(self, model):\n        os._exit(self.code)\n"
    )
    text = DECLARATION.replace("seeds = 2", "seeds = 1")
    for code in (0, 3):
        arm = f'optimizer = {{part = "own.py:Deadly", code = {code}}}'
        text += f'\n[[arms]]\nname = "deadly {code}"\n{arm}\n'
    (folder / "small.toml").write_text(text)
    results = run(folder / "small.toml", out=folder / "out", on=Local(workers=1))
    found = {name: status for (name, _), (status, _) in measured(results.plain).items()}
    assert found == {"dot": "ok", "additive": "ok", "deadly 0": "failed", "deadly 3": "failed"}
    assert "exit code 3; see" in (Store(folder / "out").failure(Cell("deadly 3", 0)) or "")
    assert len(results.failed) == 2


def test_a_worker_that_hangs_is_noticed_and_the_others_go_on(folder: Path) -> None:
    (folder / "own.py").write_text(
        "import time\nfrom dataclasses import dataclass\nfrom attnlab.training import AdamW\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Hanging(AdamW):\n"
        "    def build(self, model):\n        time.sleep(3600)\n"
    )
    text = DECLARATION.replace("seeds = 2", "seeds = 1")
    text += '\n[[arms]]\nname = "hanging"\noptimizer = "own.py:Hanging"\n'
    (folder / "small.toml").write_text(text)
    results = run(folder / "small.toml", out=folder / "out", on=Local(workers=1, patience=15.0))
    found = {name: status for (name, _), (status, _) in measured(results.plain).items()}
    assert found == {"dot": "ok", "additive": "ok", "hanging": "failed"}
    assert "it hung: no sign of life for 15 seconds" in (
        Store(folder / "out").failure(Cell("hanging", 0)) or ""
    )
    assert "in build" in (folder / "out" / "workers.log").read_text()


def test_workers_that_cannot_begin_say_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sitecustomize.py").write_text(
        "import sys\nif 'attnlab.study.worker' in sys.orig_argv: sys.exit('no room to begin in')\n"
    )
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *([before] if before else [])]))
    with pytest.raises(
        WorkError, match=r"exit code 1 before it began: .*no room to begin in; see .*workers\.log"
    ):
        run(folder / "small.toml", out=folder / "out", on=Local(workers=1))


def test_what_a_part_prints_does_not_disturb(folder: Path) -> None:
    (folder / "own.py").write_text(
        "import os, sys\nfrom dataclasses import dataclass\nfrom attnlab.training import AdamW\n"
        'print(\'{"event": "ended", "outcome": "done"}\')\n'
        "@dataclass(frozen=True, kw_only=True)\nclass Loud(AdamW):\n"
        "    def build(self, model):\n"
        "        print('not an event', flush=True)\n        os.write(1, b'nor this\\n')\n"
        "        return super().build(model)\n"
    )
    text = DECLARATION.replace("evaluations = 2", 'evaluations = 2\noptimizer = "own.py:Loud"')
    (folder / "small.toml").write_text(text)
    results = run(folder / "small.toml", out=folder / "out", seeds=1, on=Local(workers=1))
    assert {status for status, _ in measured(results.plain).values()} == {"ok"}
    log = (folder / "out" / "workers.log").read_text()
    assert log.count("not an event") == log.count("nor this") == 2


def test_a_plan_shares_the_cores_and_keeps_the_threads() -> None:
    for cells in (1, 2, 100):
        plan = Local().plan(cells)
        assert 1 <= plan["workers"] <= min(cells, cores())
        assert 1 <= plan["workers"] * plan["threads"] <= cores()
    assert Local(workers=3).plan(8)["workers"] == 3
    # What was begun with so many threads goes on with as many, however many workers are asked for now.
    assert Local(workers=2).plan(8, threads=5) == {"executor": "local", "workers": 2, "threads": 5}
    assert Local().plan(8, threads=10_000)["workers"] == 1


def test_workers_keep_their_memory_and_what_a_person_says_of_it_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "own.py").write_text(
        "import os\nfrom dataclasses import dataclass\nfrom attnlab.training import AdamW\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Telling(AdamW):\n    def build(self, model):\n"
        "        kept = [os.environ[f'MALLOC_{name}_THRESHOLD_'] for name in ('MMAP', 'TRIM')]\n"
        "        print('kept', *kept, flush=True)\n"
        "        return super().build(model)\n"
    )
    text = DECLARATION.replace("evaluations = 2", 'evaluations = 2\noptimizer = "own.py:Telling"')
    (folder / "small.toml").write_text(text)
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "4096")
    run(folder / "small.toml", out=folder / "out", seeds=1, on=Local(workers=1))
    assert f"kept {1 << 30} 4096" in (folder / "out" / "workers.log").read_text()
