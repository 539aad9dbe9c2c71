"""The trials of a search, one after another, kept in optuna's journal: whoever comes back goes on with the
trial that was begun, and with the ones still missing.

One process at a time works on a search, so what is tried next follows from what was tried before, and the
same declaration tries the same settings again.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from attnlab.adapt.search.evenly import evenly
from attnlab.adapt.search.search import Search, library
from attnlab.adapt.search.space import Range, decoded, encoded
from attnlab.errors import StoreError
from attnlab.training import Interrupted, Watched
from attnlab.wholefile import write_whole

Ending = Literal["done", "pruned", "diverged"]
_UNPRUNED = 3  # trials that are never ended early: there is nothing yet to hold them against
_WAIT = 0.5  # seconds between two looks at a search that another process is at


@dataclass(frozen=True)
class Tried:
    """One trial as it ended."""

    number: int
    setting: Mapping[str, Any]
    ending: Ending
    values: tuple[tuple[int, float], ...]  # after which step, and what was measured on dev
    right: tuple[str, ...] = field(repr=False)  # at each of these: which items were right, a 0 or 1 each
    best: float | None  # None where it was ended before its end
    seconds: float

    def plain(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "setting": dict(self.setting),
            "ending": self.ending,
            "values": [list(pair) for pair in self.values],
            "best": self.best,
            "seconds": self.seconds,
        }


class Trial:
    """A trial that is being worked on: its setting, and where its measurements go."""

    def __init__(self, of: Any, search: Search, folder: Path) -> None:
        self._of = of
        self.number: int = of.number
        self.setting = decoded(search.space, of.params)
        self.checkpoint = folder / f"trial-{of.number}.safetensors"
        self.hopeless = False

    def measured(self, step: int, value: float, right: str, seconds: float) -> None:
        """What the trial reached after a step; from then on it may be known to be hopeless."""
        self._of.set_user_attr(f"right {step}", right)
        self._of.set_user_attr("seconds", seconds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a trial that goes on, steps may be reported again
            self._of.report(value, step)
        self.hopeless = bool(self._of.should_prune())

    @classmethod
    def under_way(cls, study: Any, search: Search, folder: Path, number: int) -> Self | None:
        """The trial of that number: begun before, or new; None where it has ended."""
        optuna = library()
        known = {trial.number: trial for trial in study.get_trials(deepcopy=False)}
        if number in known:
            ended = known[number].state.is_finished()
            return None if ended else cls(optuna.trial.Trial(study, known[number]._trial_id), search, folder)
        _begin(study, search, number)
        (begun,) = (trial for trial in study.get_trials(deepcopy=False) if trial.number == number)
        return cls(optuna.trial.Trial(study, begun._trial_id), search, folder)


Work = Callable[[Trial], Ending]


def search(
    wanted: Search,
    folder: Path,
    watched: Watched,
    work: Work,
    stop: Callable[[], bool],
    *,
    keeps_best: bool = True,
) -> tuple[Tried, ...]:
    """Make the trials that are missing; gives back all of them. `work` trains one, whose worth is what its
    best state reached, or its last one where a run does not keep the best."""
    with _alone(folder, stop):
        study = _open(wanted, folder, watched)
        for number in range(wanted.count):
            trial = Trial.under_way(study, wanted, folder, number)
            if trial is not None:
                _tell(study, number, work(trial), watched, keeps_best)
                for left in folder.glob(f"*trial-{number}.*"):
                    left.unlink(missing_ok=True)
        return tried_in(study, wanted)


def tried_in(study: Any, wanted: Search) -> tuple[Tried, ...]:
    return tuple(
        _read(trial, wanted) for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()
    )


def best_of(tried: tuple[Tried, ...], watched: Watched) -> Tried | None:
    """The trial with the best value; of equal ones the first. None where none came to its end."""
    best: Tried | None = None
    for one in tried:
        if one.best is not None and watched.is_better(one.best, best.best if best else None):
            best = one
    return best


def _begin(study: Any, wanted: Search, number: int) -> None:
    """A new trial in one line of the journal, its whole setting in it: a kill here leaves all of it
    or nothing. The setting is drawn beside the journal, from the same trials."""
    optuna = library()
    aside = optuna.create_study(direction=study.direction.name.lower(), sampler=wanted.sampler(number))
    aside.add_trials(study.get_trials(deepcopy=False))
    if number < wanted.spread:
        aside.enqueue_trial(evenly(wanted.space, number, wanted.spread, wanted.seed))
    aside.ask(_distributions(wanted))
    study.add_trial(aside.get_trials(deepcopy=False)[-1])


class _NoLock:
    """The journal's own lock is a file that stays where a process is killed; we hold one that does not."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None: ...


def _cut_to_whole_lines(journal: Path) -> None:
    """A line that was cut off when its process died is taken off: no line could follow it."""
    if not journal.exists():
        return
    kept = journal.read_bytes()
    if not kept.endswith(b"\n"):
        write_whole(journal, kept[: kept.rfind(b"\n") + 1])


def _open(wanted: Search, folder: Path, watched: Watched) -> Any:
    optuna = library()
    journal = folder / "journal.log"
    _cut_to_whole_lines(journal)
    backend = optuna.storages.journal.JournalFileBackend(str(journal), lock_obj=_NoLock())
    pruner = optuna.pruners.MedianPruner(n_startup_trials=_UNPRUNED, n_warmup_steps=0)
    return optuna.create_study(
        storage=optuna.storages.JournalStorage(backend),
        study_name=folder.name,
        direction="minimize" if watched.better == "lower" else "maximize",
        load_if_exists=True,
        pruner=pruner if wanted.prune else optuna.pruners.NopPruner(),
    )


def _distributions(wanted: Search) -> dict[str, Any]:
    kinds = library().distributions
    made: dict[str, Any] = {}
    for place, values in wanted.space.items():
        if not isinstance(values, Range):
            made[place] = kinds.CategoricalDistribution(encoded(values))
        elif values.is_whole:
            made[place] = kinds.IntDistribution(int(values.low), int(values.high), log=values.is_log)
        else:
            made[place] = kinds.FloatDistribution(float(values.low), float(values.high), log=values.is_log)
    return made


def _tell(study: Any, number: int, ending: Ending, watched: Watched, keeps_best: bool) -> None:
    trial = next(t for t in study.get_trials(deepcopy=False) if t.number == number)
    states = library().trial.TrialState
    # A sampler may want to end its study when there is nothing more to try; how many there are is ours.
    study.sampler = library().samplers.RandomSampler()
    values = [value for _, value in sorted(trial.intermediate_values.items()) if math.isfinite(value)]
    values = values if keeps_best else values[-1:]
    if ending == "done" and values:
        study.tell(number, min(values) if watched.better == "lower" else max(values))
    else:
        study.tell(number, state=states.PRUNED if ending == "pruned" else states.FAIL)


def _read(trial: Any, wanted: Search) -> Tried:
    endings: dict[str, Ending] = {"COMPLETE": "done", "PRUNED": "pruned"}
    steps = sorted(trial.intermediate_values)
    done = trial.state.name == "COMPLETE"
    return Tried(
        number=trial.number,
        setting=decoded(wanted.space, trial.params),
        ending=endings.get(trial.state.name, "diverged"),
        values=tuple((step, trial.intermediate_values[step]) for step in steps),
        right=tuple(trial.user_attrs[f"right {step}"] for step in steps),
        best=trial.value if done else None,
        seconds=float(trial.user_attrs.get("seconds", 0.0)),
    )


@contextlib.contextmanager
def _alone(folder: Path, stop: Callable[[], bool]) -> Iterator[None]:
    """Wait until no other process is at this search; the system lets go of the lock when a process ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written ({error.strerror})") from None
    with lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if stop():
                    raise Interrupted from None
                time.sleep(_WAIT)
        yield
