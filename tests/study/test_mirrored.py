"""Studies at a URL: everything is there afterwards, what is there is not done again, runs go on from where
another machine left them, and what cannot be done safely is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from attnlab.errors import RequestError, StoreError
from attnlab.study import mirrored, run
from attnlab.study.executors import Afar, RayYard
from attnlab.study.executors.afar import Lost
from attnlab.study.executors.remote import Errand, Report, run_errand
from attnlab.study.mirror import Mirror, is_url
from attnlab.study.store import Store

from .small import InProcess, measured
from .test_afar import Scripted, Told

URL = "memory://bucket/small"


class Unreachable(MemoryFileSystem):
    """A store that nobody can write to."""

    protocol = "unreachable"

    def put_file(self, *_: Any, **__: Any) -> None:
        raise ConnectionError("no route to the store")


class Busy(MemoryFileSystem):
    """A store that says at every third file that it is busy."""

    protocol = "busy"
    asked = 0

    def put_file(self, *args: Any, **options: Any) -> None:
        Busy.asked += 1
        if Busy.asked % 3 == 0:
            raise ConnectionError("slow down")
        super().put_file(*args, **options)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryFileSystem]:
    """A store that is empty, and a place of its own for what is here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(mirrored, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(mirrored, "SEND_SECONDS", 0.05)
    monkeypatch.setattr("attnlab.study.mirror.AGAIN_SECONDS", 0.05)
    for kind in (Unreachable, Busy):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)
    files = MemoryFileSystem()
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    yield files
    MemoryFileSystem.store.clear()


class Reaching(Scripted):
    """A yard whose machines see no directory of ours."""

    takes_urls = True


def there(files: MemoryFileSystem) -> set[str]:
    return {path.removeprefix("/bucket/small/") for path in files.find("/bucket/small")}


def test_a_study_at_a_url_is_the_study_in_a_directory(folder: Path, store: MemoryFileSystem) -> None:
    found = run(folder / "small.toml", out=URL, on=Afar(Reaching()))
    assert found.path == Path("attnlab-runs/small")
    alone = run(folder / "small.toml", out=folder / "a", on=InProcess())
    assert measured(found.plain) == measured(alone.plain)
    assert found.plain["verdicts"] == alone.plain["verdicts"]
    names = there(store)
    assert {"study.json", "results.json", "audit.json", "floors.json"} <= names
    for cell in ("dot/0", "dot/1", "additive/0", "additive/1"):
        kept = {"result.json", "metrics.jsonl", "spec.json", "checkpoint.safetensors"}
        assert {f"runs/{cell}/{name}" for name in kept} <= names
    assert not [name for name in names if "partial" in name or "given-out" in name or ".lock" in name]
    assert not list(found.path.rglob("*.safetensors"))  # checkpoints stay there
    results = json.loads(store.cat_file("/bucket/small/results.json"))
    assert results["verdicts"] == found.plain["verdicts"]


def test_what_is_there_is_not_done_again_on_another_machine(folder: Path, tmp_path: Path) -> None:
    run(folder / "small.toml", out=URL, on=Afar(Reaching()))
    Path("attnlab-runs").rename(tmp_path / "as if it had never been here")
    yard = Reaching()
    found = run(folder / "small.toml", out=URL, seeds=3, on=Afar(yard))
    assert yard.sent == 2  # the third seed of both arms
    assert {status for status, _ in measured(found.plain).values()} == {"ok"}
    assert len(measured(found.plain)) == 6


def test_a_run_goes_on_from_the_checkpoint_of_a_machine_that_stopped(
    folder: Path, tmp_path: Path, store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(folder / "small.toml", out=URL, on=Afar(Reaching("interrupt")))
    left = there(store)
    assert "runs/dot/0/checkpoint.safetensors" in left
    assert "runs/dot/0/result.json" not in left
    assert not [name for name in left if name.startswith((".stop", "given-out"))]
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "another machine"))
    begun: list[int] = []
    steps = mirrored.Mirror.fetch

    def fetch(self: Mirror, names: Any) -> None:
        wanted = list(names)
        begun.extend("checkpoint.safetensors" in name for name in wanted)
        steps(self, wanted)

    monkeypatch.setattr(mirrored.Mirror, "fetch", fetch)
    found = run(folder / "small.toml", out=URL, on=Afar(Reaching()))
    assert sum(begun) == 2  # both runs that were out when it was interrupted
    alone = run(folder / "small.toml", out=folder / "a", on=InProcess())
    assert measured(found.plain) == measured(alone.plain)
    curves = [path.read_text().count("\n") for path in sorted(found.path.glob("runs/*/*/metrics.jsonl"))]
    assert curves == [
        path.read_text().count("\n") for path in sorted((folder / "a").glob("runs/*/*/metrics.jsonl"))
    ]


def test_a_run_that_is_lost_is_taken_up(folder: Path) -> None:
    told = Told()
    lost = Afar(Reaching(Lost("its machine died")), workers=1)
    found = run(folder / "small.toml", out=URL, seeds=1, on=lost, listener=told)
    assert {status for status, _ in measured(found.plain).values()} == {"ok"}
    assert "dot, seed 0: its machine died; another goes on with it" in told.notes


def test_a_store_that_is_busy_for_a_moment_costs_nothing(folder: Path) -> None:
    found = run(folder / "small.toml", out="busy://bucket/small", seeds=1, on=Afar(Reaching()))
    assert found.is_clean
    assert Busy.asked > 6


class Hanging(Reaching):
    """The first errand gives one sign of life and one row of its curve at the URL, and nothing more."""

    def ended(self, handles: Sequence[int], seconds: float) -> Mapping[int, Report | Lost]:
        if not self.hanging and not self.script and self.sent == 1:
            self.hanging.add(1)
            place = f"/bucket/small/{Store(Path()).folder(self.out[1].cell).as_posix()}"
            MemoryFileSystem().pipe_file(f"{place}/.alive", b"1")
            MemoryFileSystem().pipe_file(f"{place}/metrics.jsonl", b'{"step": 1}\n')
        return super().ended(handles, seconds)


def test_silence_at_the_url_is_a_run_that_hangs(folder: Path) -> None:
    on, told = Afar(Hanging(), workers=1, patience=0.2), Told()
    found = run(folder / "small.toml", out=URL, seeds=1, on=on, listener=told)
    assert told.rows == 1
    assert "it hung: no sign of life" in found.failed[0]
    assert "dot" in found.failed[0]


def test_two_processes_do_not_give_out_the_runs_of_one_study(folder: Path, store: MemoryFileSystem) -> None:
    sign = {"id": "other", "who": "process 7 on elsewhere", "at": time.time() - 20}
    store.pipe_file("/bucket/small/given-out-by.json", json.dumps(sign).encode())
    with pytest.raises(StoreError, match=r"process 7 on elsewhere gives out .* begin again in \d+ s"):
        run(folder / "small.toml", out=URL, on=Afar(Reaching()))
    sign["at"] = time.time() - 1000  # it died
    for left in (json.dumps(sign), "[]", "{", '{"at": "x"}'):
        store.pipe_file("/bucket/small/given-out-by.json", left.encode())
        assert run(folder / "small.toml", out=URL, seeds=1, on=Afar(Reaching())).is_clean


def test_another_study_at_the_url_or_here_is_not_mixed_with(folder: Path) -> None:
    run(folder / "small.toml", out=URL, seeds=1, on=Afar(Reaching()))
    with pytest.raises(StoreError, match="holds another version of this study"):
        run(folder / "small.toml", out=URL, settings=["training.steps=13"], on=Afar(Reaching()))
    with pytest.raises(StoreError, match="holds the study at memory://bucket/small"):
        run(folder / "small.toml", out="memory://other/small", on=Afar(Reaching()))
    MemoryFileSystem.store.clear()
    with pytest.raises(StoreError, match="where there is none any more"):
        run(folder / "small.toml", out=URL, seeds=1, on=Afar(Reaching()))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("memry://bucket/small", "no protocol of a URL is called 'memry'; did you mean 'memory'"),
        ("memory://", "names no place for a study"),
        (
            "unreachable://bucket/small",
            "cannot be reached or written .ConnectionError: no route",
        ),
    ],
)
def test_urls_that_cannot_be_used(folder: Path, url: str, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        run(folder / "small.toml", out=url, on=Afar(Reaching()))


def test_a_store_whose_package_is_not_there_says_which(folder: Path) -> None:
    try:
        import s3fs  # noqa: F401
    except ImportError:
        with pytest.raises(RequestError, match=r"another package is needed .*s3fs"):
            run(folder / "small.toml", out="s3://bucket/small", on=Afar(Reaching()))
    else:
        pytest.skip("s3fs is installed")


def test_a_url_is_for_ray(folder: Path) -> None:
    for on in (None, InProcess(), Afar(Scripted())):
        with pytest.raises(RequestError, match="results at a URL are for --on ray"):
            run(folder / "small.toml", out=URL, on=on)
    assert RayYard().takes_urls


def test_a_study_that_is_not_there_is_not_worked_on() -> None:
    errand = Errand(directory=URL, arm="dot", seed=0, threads=1, save_seconds=20, stop_file=".stop")
    report = run_errand(errand)
    assert report.outcome == "broken"
    assert "holds no study" in report.reason


def test_a_cell_that_another_process_here_is_at_is_left_to_it(folder: Path) -> None:
    run(folder / "small.toml", out=URL, seeds=1, on=Afar(Reaching()))
    errand = Errand(directory=URL, arm="dot", seed=0, threads=1, save_seconds=20, stop_file=".stop")
    with mirrored.at_hand(URL, errand.cell, ".stop") as here:
        assert here is not None
        with Store(here).claimed(errand.cell):
            assert run_errand(errand).outcome == "busy"


def test_nothing_is_fetched_beside_the_directory(tmp_path: Path, store: MemoryFileSystem) -> None:
    store.pipe_file("/bucket/small/../escaped.json", b"{}")
    store.pipe_file("/bucket/small/runs/x/result.json", b"{}")
    mirror = Mirror(URL, tmp_path / "here")
    mirror.fetch(mirror.names())
    assert sorted(p.name for p in tmp_path.rglob("*.json")) == ["result.json"]


def test_the_checkpoint_goes_after_the_curve_that_leads_to_it_and_the_result_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_folder = tmp_path / "here" / "runs" / "dot" / "0"
    run_folder.mkdir(parents=True)
    for name in ("result.json", "checkpoint.safetensors", "metrics.jsonl", ".lock", ".alive"):
        (run_folder / name).write_text("1\n")
    mirror = Mirror(URL, tmp_path / "here")
    order: list[str] = []
    put = Mirror._put

    def noted(self: Mirror, path: Path, name: str) -> None:
        order.append(name.rpartition("/")[2])
        if order == ["metrics.jsonl"]:  # a newer checkpoint comes while the curve is on its way
            (run_folder / "new").write_text("2\n")
            (run_folder / "new").replace(run_folder / "checkpoint.safetensors")
        put(self, path, name)

    monkeypatch.setattr(Mirror, "_put", noted)
    mirror.send_changed("runs/dot/0")
    assert order == ["metrics.jsonl", ".alive", "checkpoint.safetensors", "result.json"]
    assert mirror.files.cat_file("/bucket/small/runs/dot/0/checkpoint.safetensors") == b"1\n"
    mirror.send_changed("runs/dot/0")
    assert mirror.files.cat_file("/bucket/small/runs/dot/0/checkpoint.safetensors") == b"2\n"
    (run_folder / "checkpoint.safetensors").unlink()
    mirror.send_changed("runs/dot/0")
    assert not mirror.has("runs/dot/0/checkpoint.safetensors")


def test_a_url_is_told_from_a_path() -> None:
    assert is_url("s3://bucket/x")
    assert is_url("file:///tmp/x")
    assert not any(map(is_url, ("runs/x", "/tmp/x", "c:/x", "a b://x")))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_on_ray_through_a_url(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # 15 otherwise, and nothing beside other tests
    from ray.cluster_utils import Cluster

    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        url = f"file://{tmp_path}/far/small"
        found = run(folder / "small.toml", out=url, on=Afar(RayYard(machines.address)))
    finally:
        machines.shutdown()
    alone = run(folder / "small.toml", out=folder / "a", on=InProcess())
    assert measured(found.plain) == measured(alone.plain)
    far = tmp_path / "far" / "small"
    assert len(list(far.glob("runs/*/*/result.json"))) == len(list(far.glob("runs/*/*/checkpoint.*"))) == 4
