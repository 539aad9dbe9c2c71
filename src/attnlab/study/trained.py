"""Models that studies trained, by where they lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attnlab.adapt.places import PACKAGE, find
from attnlab.decoding import OwnWriter, Writer, open_pretrained
from attnlab.errors import RequestError, StoreError, unknown
from attnlab.study.kinds.language_model import LanguageModel
from attnlab.study.store import open_study
from attnlab.study.study import slug
from attnlab.training import Checkpoint

HUB = "hf:"

Told = Callable[[str], None]


def open_writer(
    target: str,
    arm: str | None = None,
    seed: int = 0,
    base: Path | None = None,
    unfinished: Told | None = None,
) -> Writer:
    """The language model that `target` names: `hf:directory-or-name`, `package:NAME`, a directory with a
    checkpoint of transformers, the folder of a run, or the directory of a study, of which `arm` (its baseline
    unless given) and `seed` say which run. A run that has not ended is refused, unless there is someone to be
    told of it."""
    if target.startswith(HUB):
        named = target.removeprefix(HUB)
        beside = (base or Path()) / Path(named).expanduser()
        return open_pretrained(str(beside) if beside.is_dir() else named)
    if target.startswith(PACKAGE):
        return open_pretrained(find(target).source)
    path = (base or Path()) / Path(target).expanduser()
    if (path / "config.json").is_file():
        return open_pretrained(str(path))
    if not path.is_dir():
        raise RequestError(
            f"{target!r} is not a directory: name the folder of a run (attnlab-runs/STUDY/runs/ARM/SEED) or "
            f"of a study, or {HUB}directory-or-name for a model of transformers, or {PACKAGE}NAME"
        )
    if (path / "study.json").is_file():
        return open_run(_run_of(path, arm, seed), unfinished)
    return open_run(path, unfinished)


def _run_of(directory: Path, arm: str | None, seed: int) -> Path:
    study = open_study(directory).study()
    names = [one.name for one in study.arms]
    if arm is not None and arm not in names:
        raise RequestError(unknown("arm", arm, names))
    runs = directory / "runs" / slug(arm or study.baseline.name)
    if not (runs / str(seed)).is_dir():
        there = sorted(folder.name for folder in runs.glob("*") if folder.name.isdecimal())
        raise RequestError(f"{runs} has no seed {seed} (there: {', '.join(there) or 'none'})")
    return runs / str(seed)


def open_run(folder: Path, unfinished: Told | None = None) -> OwnWriter:
    """The decoder of one run of a study, with its vocabulary."""
    file = folder / "checkpoint.safetensors"
    if not file.is_file():
        raise StoreError(f"{folder} holds no checkpoint: it is not the folder of a run that trained a model")
    store = open_study(folder.resolve().parents[2])
    study = store.study()
    names = {slug(arm.name): arm.name for arm in study.arms}
    name = names.get(folder.resolve().parent.name)
    if name is None:
        raise StoreError(f"{folder} is of no arm of {store.path}")
    setup = study.setup_of(name)
    if not isinstance(setup, LanguageModel):
        raise RequestError(f"{folder} is a run of the kind {setup.kind!r}, which writes no text")
    checkpoint = Checkpoint.read(file)
    if not (folder / "result.json").is_file():
        said = f"{folder}: this run has not ended; this is its model after {_steps(checkpoint)}"
        if unfinished is None:
            raise RequestError(f"{said}, and will be another one: run its study to the end first")
        unfinished(said)
    bench = setup.prepare(study.base)
    model = bench.model(0)
    checkpoint.restore(model)
    return OwnWriter(model.eval(), bench.vocabulary, str(folder))


def _steps(checkpoint: Checkpoint) -> str:
    step = checkpoint.facts["progress"]["step"]
    return f"{step:,} step{'s' * (step != 1)}"
