"""Cells given to other machines: lost and taken up again, hanging, busy, stopped. On a yard whose machines do
as they are told, on a real Ray cluster of which a node dies, and on submitit's own cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import RequestError, WorkError
from attnlab.study import run
from attnlab.study.executors import Afar, Local, RayYard, Silent, SlurmYard, executor_named
from attnlab.study.executors.afar import TRIES, Lost
from attnlab.study.executors.remote import Errand, Report, run_errand
from attnlab.study.store import Cell, Store

from .small import DECLARATION, InProcess, measured

# Notes down every training that begins: what "each cell once" is counted by.
COUNTING = """\
import os
from dataclasses import dataclass
from pathlib import Path
from attnlab.training import AdamW


@dataclass(frozen=True, kw_only=True)
class Noted(AdamW):
    def build(self, model):
        with open(Path(__file__).with_name("begun.txt"), "a") as file:
            file.write(f"{os.getpid()}\\n")
        return super().build(model)
"""


class Told(Silent):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.done: list[Cell] = []
        self.rows = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def ended(self, cell: Cell) -> None:
        self.done.append(cell)

    def row(self, cell: Cell, row: Mapping[str, Any]) -> None:
        self.rows += 1


class Scripted:
    """A yard in this process. Errands run when they are waited for, unless the script has another end for the
    next one: `Lost`, a report, "hang" (until it is ended) or "interrupt" (Ctrl-C while everything is out)."""

    name = "scripted"

    def __init__(self, *script: object) -> None:
        self.script = list(script)
        self.out: dict[int, Errand] = {}
        self.hanging: set[int] = set()
        self.sent = 0
        self.closed = False

    def open(self, gpus: int) -> int:
        return 2

    def send(self, errand: Errand) -> int:
        self.sent += 1
        self.out[self.sent] = errand
        return self.sent

    def ended(self, handles: Sequence[int], seconds: float) -> Mapping[int, Report | Lost]:
        ends: dict[int, Report | Lost] = {}
        for handle in handles:
            if handle in self.hanging:
                continue
            step = self.script.pop(0) if self.script else None
            if step == "hang":
                self.hanging.add(handle)
                errand = self.out[handle]
                cell = Store(Path(errand.directory)).folder(errand.cell)
                cell.mkdir(parents=True)
                (cell / ".alive").touch()
            elif step == "interrupt":
                raise KeyboardInterrupt
            elif isinstance(step, Report | Lost):
                ends[handle] = step
            else:
                ends[handle] = run_errand(self.out[handle])
        return ends

    def end(self, handle: int) -> None:
        self.hanging.discard(handle)
        self.script.insert(0, Lost("it was ended"))

    def close(self) -> None:
        self.closed = True


def test_what_is_lost_with_its_machine_is_taken_up_by_another(folder: Path) -> None:
    yard, told = Scripted(Lost("its machine died"), None, Lost("its process died")), Told()
    found = run(folder / "small.toml", out=folder / "out", on=Afar(yard), listener=told)
    assert measured(found.plain) == measured(
        run(folder / "small.toml", out=folder / "a", on=InProcess()).plain
    )
    assert yard.sent == 6  # 4 cells, 2 of them twice
    assert yard.closed
    assert sorted(told.done, key=str) == sorted({*told.done}, key=str)
    assert len(told.done) == 4
    assert "dot, seed 0: its machine died; another goes on with it" in told.notes


def test_what_takes_every_machine_down_is_given_up(folder: Path) -> None:
    yard = Scripted(*[Lost("its machine ran out of memory")] * TRIES)
    found = run(folder / "small.toml", out=folder / "out", seeds=1, on=Afar(yard, workers=1))
    statuses = {name: status for (name, _), (status, _) in measured(found.plain).items()}
    assert statuses == {"dot": "failed", "additive": "ok"}
    assert "lost 4 times, the last time because its machine ran out of memory" in found.failed[0]


def test_a_run_that_hangs_elsewhere_is_ended(folder: Path) -> None:
    yard = Scripted("hang")
    found = run(folder / "small.toml", out=folder / "out", seeds=1, on=Afar(yard, patience=0.0, workers=1))
    assert "it hung: no sign of life for 0 seconds" in found.failed[0]
    assert {status for status, _ in measured(found.plain).values()} == {"ok", "failed"}


def test_what_another_process_holds_is_waited_for(folder: Path) -> None:
    told = Told()
    found = run(folder / "small.toml", out=folder / "out", on=Afar(Scripted(Report("busy"))), listener=told)
    assert {status for status, _ in measured(found.plain).values()} == {"ok"}
    assert "dot, seed 0: another process is at it; waiting for it" in told.notes


def test_a_place_that_cannot_work_ends_the_study_with_the_reason(folder: Path) -> None:
    with pytest.raises(WorkError, match="this machine has attnlab 9"):
        run(
            folder / "small.toml",
            out=folder / "out",
            on=Afar(Scripted(Report("broken", "this machine has attnlab 9"))),
        )


def test_ctrl_c_asks_every_run_to_stop_and_leaves_no_wish_behind(folder: Path) -> None:
    out = folder / "out"
    yard = Scripted("interrupt")
    with pytest.raises(KeyboardInterrupt):
        run(folder / "small.toml", out=out, on=Afar(yard))
    # What was out ran while its wish to stop lay there: it left a checkpoint, and no result.
    assert not list(out.glob("runs/*/*/result.json"))
    assert len(list(out.glob("runs/*/*/checkpoint.safetensors"))) == 2
    assert not list(out.glob(".stop-*"))
    again = run(folder / "small.toml", out=out, on=Afar(Scripted()))
    assert measured(again.plain) == measured(
        run(folder / "small.toml", out=folder / "a", on=InProcess()).plain
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda header: header["environment"].update(attnlab="0.0.1"), "and the study is of 0.0.1"),
        (lambda header: header.update(fingerprint="other"), "reads another way on this machine"),
    ],
)
def test_a_machine_that_differs_does_not_work(folder: Path, change: Any, reason: str) -> None:
    out = folder / "out"
    run(folder / "small.toml", out=out, seeds=1, on=InProcess())
    header = json.loads((out / "study.json").read_text())
    change(header)
    (out / "study.json").write_text(json.dumps(header))
    errand = Errand(directory=str(out), arm="dot", seed=7, threads=1, save_seconds=20, stop_file=".stop")
    report = run_errand(errand)
    assert report.outcome == "broken"
    assert reason in report.reason


def test_a_place_is_named_as_a_person_writes_it() -> None:
    assert isinstance(executor_named("local", 3), Local)
    ray = executor_named("ray:10.0.0.1:6379")
    assert isinstance(ray, Afar)
    assert isinstance(ray.yard, RayYard)
    assert ray.yard.address == "10.0.0.1:6379"
    slurm = executor_named("slurm:long", 4)
    assert isinstance(slurm, Afar)
    assert isinstance(slurm.yard, SlurmYard)
    assert (slurm.yard.partition, slurm.workers) == ("long", 4)
    for text, said in [("rai", "did you mean 'ray'"), ("ray:", "not 'ray:'"), ("local:3", "not 'local:3'")]:
        with pytest.raises(RequestError, match=said):
            executor_named(text)
    with pytest.raises(RequestError, match="--workers takes a number from 1 up, not 0"):
        executor_named("ray", 0)


def test_slurm_where_there_is_none_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(RequestError, match="needs Slurm's sbatch"):
        run(folder / "small.toml", out=folder / "out", on=executor_named("slurm"))


@pytest.mark.slow
def test_through_submitit_with_a_job_that_dies(folder: Path) -> None:
    pytest.importorskip("submitit")
    (folder / "own.py").write_text(
        "import os\nfrom dataclasses import dataclass\nfrom pathlib import Path\n"
        "from attnlab.training import AdamW\n"
        "@dataclass(frozen=True, kw_only=True)\nclass DiesOnce(AdamW):\n"
        "    def build(self, model):\n"
        "        if not Path(__file__).with_name('died').exists():\n"
        "            Path(__file__).with_name('died').touch()\n            os.kill(os.getpid(), 9)\n"
        "        return super().build(model)\n"
    )
    text = DECLARATION.replace("seeds = 2", "seeds = 1")
    (folder / "small.toml").write_text(text + '\n[[arms]]\nname = "frail"\noptimizer = "own.py:DiesOnce"\n')
    told = Told()
    on = Afar(SlurmYard(cluster="local"), workers=2)
    found = run(folder / "small.toml", out=folder / "out", on=on, listener=told)
    assert (folder / "died").exists()
    assert any("frail, seed 0: its job" in note for note in told.notes)
    kept = measured(found.plain)
    assert kept["frail", 0] == kept["dot", 0]
    alone = run(folder / "small.toml", out=folder / "alone", on=InProcess())
    assert kept == measured(alone.plain)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Three machines with a processor each, as Ray sees it; all of them are this one."""
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        yield machines
    finally:
        machines.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_node_of_a_ray_cluster_dies_and_nothing_is_lost(folder: Path, cluster: Any) -> None:
    (folder / "own.py").write_text(COUNTING)
    study = folder / "many.toml"
    study.write_text(DECLARATION.replace("steps = 12", 'steps = 60\noptimizer = {part = "own.py:Noted"}'))
    doomed = cluster.add_node(num_cpus=1)

    class Fate(Told):
        def ended(self, cell: Cell) -> None:
            super().ended(cell)
            if len(self.done) == 6:
                cluster.remove_node(doomed, allow_graceful=False)

    told = Fate()
    on = Afar(RayYard(cluster.address), save_seconds=0.2)
    found = run(study, out=folder / "out", seeds=12, on=on, listener=told)
    assert len(told.done) == len({*told.done}) == 24
    kept = measured(found.plain)
    assert {status for status, _ in kept.values()} == {"ok"}
    lost = [note for note in told.notes if "another goes on with it" in note]
    begun = (folder / "begun.txt").read_text().split()
    assert 24 <= len(begun) <= 24 + len(lost)  # a cell was begun twice only where it was lost
    assert len({*begun}) >= 2  # processes
    assert os.getpid() not in {int(pid) for pid in begun}
    alone = run(study, out=folder / "alone", seeds=12, on=InProcess())
    assert kept == measured(alone.plain)
    assert found.plain["verdicts"] == alone.plain["verdicts"]


@pytest.mark.parametrize(
    ("address", "why"),
    [("127.0.0.1:1", "refused"), ("ray://127.0.0.1:1", "refused"), ("127.0.0.1:x", "HOST:PORT")],
)
def test_a_cluster_that_is_not_there_says_so(folder: Path, address: str, why: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(WorkError, match=f"no Ray cluster could be reached '{address}': .*{why}"):
        run(folder / "small.toml", out=folder / "out", on=executor_named(f"ray:{address}"))
