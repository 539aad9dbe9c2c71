"""What the runs of all kinds that train have in common: the training itself, looked at by a camera, its last
checkpoint, and what of it goes into the record."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attnlab.evaluation.maps.camera import Camera, steps_of
from attnlab.record import Check, Items, RunResult
from attnlab.spec import Count, Spec
from attnlab.training import Checkpoint, Observer, Progress, Run, train

# What an arm may write instead of the full place, where the model is a stack of blocks.
SHORTHANDS: Mapping[str, str] = {
    **{part: f"model.mixer.{part}" for part in ("score", "mask", "weigh", "project", "kernel")},
    **{name: f"model.{name}" for name in ("mixer", "position", "layers", "heads", "width", "dropout")},
    "optimizer": "training.optimizer",
    "schedule": "training.schedule",
    "learning_rate": "training.optimizer.learning_rate",
}


PROBES = (  # texts on which attention maps are taken, unless a declaration has others
    "The state of our Union is strong.",
    "The Congress will do its duty, and the people of the United States will do theirs.",
)


class Looking(Spec):
    """When attention maps are taken."""

    maps: Count = 2  # how often, evenly over the run: before the first step, after the last; 0: never
    maps_at: tuple[Count, ...] = ()  # further steps at which they are


@dataclass(frozen=True)
class Ended:
    """A run that was trained, for whoever measures it."""

    arm: str
    seed: int
    progress: Progress
    exhibits: Mapping[str, Any]
    checks: tuple[Check, ...]  # of the maps
    at: float  # on the clock: what comes between this and the result is measuring

    @property
    def diverged(self) -> bool:
        return self.progress.status == "diverged"

    def result(
        self,
        metrics: Mapping[str, float] | None = None,
        items: Mapping[str, Items] | None = None,
        checks: Sequence[Check] = (),
        standing: Sequence[Check] = (),
        exhibits: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> RunResult:
        """The record: invalid where a check failed. Those that are `standing` tell of a run whose figures are
        what they say they are all the same. Of a run that diverged there is nothing to measure."""
        pace = self.progress.tokens / self.progress.seconds if self.progress.seconds else 0.0
        common: dict[str, Any] = {
            "arm": self.arm,
            "seed": self.seed,
            "seconds": self.progress.seconds,
            "evaluation_seconds": self.progress.paused + time.perf_counter() - self.at,
            "tokens_per_second": pace,
            "steps": self.progress.step,
            "exhibits": {**self.exhibits, **(exhibits or {})},
        }
        if self.diverged:
            return RunResult(**common, status="diverged", reason=self.progress.reason)
        wrong = next((check for check in (*checks, *self.checks) if check.status == "fail"), None)
        told = next((check for check in standing if check.status == "fail"), None)
        named = wrong or told
        return RunResult(
            **common,
            **others,
            status="invalid" if wrong else "ok",
            metrics={**(metrics or {}), **self.progress.chosen},
            items=items or {},
            checks=(*checks, *self.checks, *standing),
            reason=named.evidence if named else None,
        )


def train_cell(arm: str, run: Run[Any, Any], looking: Looking, camera: Camera, observer: Observer) -> Ended:
    """Train to the end, going on from the run's checkpoint where there is one. The last checkpoint is written
    before anything is measured: a run that is killed while it is measured goes on there."""
    at = camera.at(steps_of(run.steps, looking.maps, looking.maps_at))
    progress = train(replace(run, look=camera.take, look_at=at), observer)
    trained = time.perf_counter()
    if run.checkpoint is not None:
        facts = {"seed": run.seed, "progress": vars(progress)}
        Checkpoint.of(run.model, None, facts).write(run.checkpoint)
    maps, checks = camera.seen()
    return Ended(arm, run.seed, progress, {"attention": maps} if maps else {}, checks, trained)
