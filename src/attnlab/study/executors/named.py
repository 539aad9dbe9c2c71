"""An executor by what a person writes after `--on`."""

from __future__ import annotations

from collections.abc import Callable

from attnlab.errors import RequestError, unknown
from attnlab.study.executors import ranks
from attnlab.study.executors.afar import Afar
from attnlab.study.executors.executor import Executor
from attnlab.study.executors.local import Local
from attnlab.study.executors.ray import RayYard
from attnlab.study.executors.slurm import SlurmYard

_PLACES: dict[str, Callable[[str | None, int | None], Executor]] = {
    "local": lambda _, workers: Local(workers),
    "ray": lambda address, workers: Afar(RayYard(address), workers),
    "slurm": lambda partition, workers: Afar(SlurmYard(partition), workers),
}


def executor_named(text: str, workers: int | None = None) -> Executor:
    """`local`, `ray`, `ray:ADDRESS`, `slurm` or `slurm:PARTITION`."""
    if workers is not None and workers < 1:
        raise RequestError(f"--workers takes a number from 1 up, not {workers}")
    if ranks.started():
        if text != "local" or workers is not None:
            raise RequestError("under torchrun its processes do the work: leave out --on and --workers")
        return ranks.Ranks()
    name, colon, detail = text.partition(":")
    if name not in _PLACES:
        raise RequestError(unknown("place to run on", name, _PLACES))
    if colon and (name == "local" or not detail):
        raise RequestError(f"--on takes local, ray, ray:ADDRESS, slurm or slurm:PARTITION, not {text!r}")
    return _PLACES[name](detail or None, workers)
