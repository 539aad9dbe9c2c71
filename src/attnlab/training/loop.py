"""The one training loop.

It knows neither what is trained nor on what: a model, an objective and numbered batches are given to it. A
step depends on the parameters, the seed and its own number alone, so a run that was killed goes on from its
last checkpoint to the same numbers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

import torch
from torch import nn

from attnlab.model.initial import stream
from attnlab.training.best import Best, Watched
from attnlab.training.checkpoint import Checkpoint
from attnlab.training.objectives import Objective, Work
from attnlab.training.optimizers.schedule_free import Averaging
from attnlab.training.team import Elsewhere, Losses, Team
from attnlab.training.team import team as team_of_this_process
from attnlab.training.training import Training

M = TypeVar("M", bound=nn.Module)
W = TypeVar("W", bound=Work)
W_co = TypeVar("W_co", covariant=True)
Row = Mapping[str, Any]
Status = Literal["ok", "diverged"]

_LOGGED_ROWS = 200  # lines of a run's curve
_EXPLODED = 3.0  # times the first loss, on the running mean below: worse than knowing nothing
_MEMORY = 0.9  # of the running mean of the loss


class Steps(Protocol[W_co]):
    """The batch of every step, a function of the step alone."""

    def __getitem__(self, step: int, /) -> W_co: ...


class Observer(Protocol):
    """Who wants to know how a run is going."""

    def begin(self, step: int) -> None:
        """The run starts, or goes on, after this many steps."""

    def row(self, row: Row) -> None:
        """A line of the curve: `step` and what was measured there."""

    def note(self, text: str) -> None:
        """Something a person should know."""

    def should_save(self) -> bool:
        """Whether to write a checkpoint now, and go on."""

    def should_stop(self) -> bool:
        """Whether to write a checkpoint and leave now."""


class Interrupted(Exception):
    """The run stopped because it was asked to; its checkpoint is written."""


@dataclass(frozen=True, kw_only=True)
class Run(Generic[M, W]):
    """Everything one training run needs."""

    model: M
    objective: Objective[M, W]
    batches: Steps[W]
    training: Training
    steps: int
    seed: int
    evaluate: Callable[[], Row]  # train and dev loss, in evaluation mode
    checkpoint: Path | None = None
    watched: Watched = Watched()  # by what the best state is chosen, where the training keeps the best
    # Who else looks at the model, and after which steps (0: before the first; a run that ends early is looked
    # at then). It comes before that step's checkpoint: a run that goes on has nothing to catch up on.
    look: Callable[[int], None] | None = None
    look_at: Collection[int] = ()


@dataclass
class Progress:
    """How far a run has come: what a checkpoint holds beside the tensors."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    paused: float = 0.0  # seconds in which it was looked at and not trained
    first_loss: float = math.nan
    mean_loss: float = math.nan
    status: Status = "ok"
    reason: str | None = None
    last: dict[str, Any] = field(default_factory=dict)  # the latest evaluation
    best: float | None = None  # the best evaluation, where the best state is kept
    best_step: int = 0
    waited: int = 0  # evaluations since
    stopped_early: bool = False

    @property
    def over(self) -> bool:
        """Whether no step will follow, whatever the budget."""
        return self.status != "ok" or self.stopped_early

    @property
    def chosen(self) -> dict[str, float]:
        """Which state was tested, for the record; nothing where it simply is the last."""
        if not self.best_step:
            return {}
        return {"best_step": self.best_step, "stopped_early": float(self.stopped_early)}

    def take_in(self, loss: float, tokens: int) -> None:
        """One more step; notices when the run has diverged."""
        self.step += 1
        self.tokens += tokens
        self.first_loss = loss if self.step == 1 else self.first_loss
        self.mean_loss = loss if self.step == 1 else _MEMORY * self.mean_loss + (1 - _MEMORY) * loss
        if not math.isfinite(loss):
            self.status, self.reason = "diverged", f"the loss was {loss} at step {self.step}"
        elif self.mean_loss > _EXPLODED * self.first_loss:
            self.status = "diverged"
            self.reason = (
                f"the loss grew from {self.first_loss:.3g} to {self.mean_loss:.3g} by step {self.step}"
            )

    def evaluated(self, row: Row) -> None:
        """What was measured after this step; the last update of all may be the one that went wrong."""
        self.last = dict(row)
        lost = [name for name, value in row.items() if not math.isfinite(value)]
        if lost:
            self.status, self.reason = "diverged", f"the {lost[0]} was {row[lost[0]]} at step {self.step}"


def train(run: Run[Any, Any], observer: Observer) -> Progress:
    """Train until the budget is used, the run diverges, or the observer asks to stop (`Interrupted`)."""
    optimizer = run.training.optimizer.build(run.model)
    rates = [group["lr"] for group in optimizer.param_groups]
    team = team_of_this_process()
    losses = team.losses(run.model, run.objective)
    progress = _resume(run, optimizer, observer)
    observer.begin(progress.step)
    best = Best(run.checkpoint)
    log_every = max(1, run.steps // _LOGGED_ROWS)
    evaluate_at = run.training.evaluate_at(run.steps)
    started = time.perf_counter()
    before = progress.seconds
    run.model.train()
    look = run.look if team.is_first else None
    if progress.step == 0 and look and 0 in run.look_at:
        look(0)
        progress.paused += time.perf_counter() - started
        started = time.perf_counter()
    while progress.step < run.steps and not progress.over:
        factor = run.training.schedule.factor(progress.step, run.steps)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        batch = run.batches[progress.step]
        loss = _step(run, optimizer, batch, progress.step, team, losses)
        progress.take_in(loss, batch.tokens)
        progress.seconds = before + time.perf_counter() - started
        row: dict[str, Any] = {"step": progress.step, "loss": loss, "learning_rate": rates[0] * factor}
        row |= {"of": run.steps, "tokens": progress.tokens, "seconds": progress.seconds}
        paused = time.perf_counter()
        if progress.step in evaluate_at and progress.status == "ok":
            with _as_tested(optimizer):
                progress.evaluated(team.told(run.evaluate))
                row |= progress.last
                if run.training.keep == "best" and progress.status == "ok":
                    _choose(run, best if team.is_first else None, progress)
            run.model.train()
        looked_at = progress.step in run.look_at or (progress.stopped_early and run.look_at)
        if look and looked_at and progress.status == "ok":
            with _as_tested(optimizer):
                look(progress.step)
        # Not training: its time is not counted as such.
        away = time.perf_counter() - paused
        started, progress.paused = started + away, progress.paused + away
        if (
            progress.step % log_every == 0
            or progress.step == 1
            or progress.step in evaluate_at
            or progress.over
        ):
            observer.row(row)
        stop = team.agree(observer.should_stop)
        if team.is_first and (stop or observer.should_save()):
            _save(run, optimizer, progress)
        if stop:
            raise Interrupted
    if not team.is_first:
        raise Elsewhere
    if progress.best_step and progress.status == "ok":
        best.restore(run.model)
    elif isinstance(optimizer, Averaging):
        optimizer.settle()
    return progress


def _as_tested(optimizer: torch.optim.Optimizer) -> AbstractContextManager[None]:
    """With the values in the model that are tested, where the optimiser trains on others."""
    return optimizer.evaluated() if isinstance(optimizer, Averaging) else nullcontext()


def _choose(run: Run[Any, Any], best: Best | None, progress: Progress) -> None:
    """Put this state aside if it is the best so far; end the run where better ones are no longer expected."""
    value = progress.last[run.watched.name]
    if run.watched.is_better(value, progress.best):
        progress.best, progress.best_step, progress.waited = value, progress.step, 0
        if best:
            best.keep(run.model, progress.step)
    else:
        progress.waited += 1
    patience = run.training.patience
    progress.stopped_early = (
        patience is not None and progress.waited >= patience and progress.step < run.steps
    )


def _step(
    run: Run[Any, Any], optimizer: torch.optim.Optimizer, batch: Work, step: int, team: Team, losses: Losses
) -> float:
    """One step; gives back the mean loss over the batch's targets."""
    torch.manual_seed(stream(run.seed, "step", step, *team.place))
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    mine, counts = team.share(batch)
    pieces = [mine] if run.training.accumulate == 1 else [*mine.split(run.training.accumulate)]
    for number, piece in enumerate(pieces, start=1):
        with team.adding_up(losses, last=number == len(pieces)):
            # By the targets of the whole batch: pieces of unequal length then add up to the same gradient.
            loss = losses(piece) * counts / batch.targets
            loss.backward()
        total += loss.item()
    if run.training.clip is not None:
        nn.utils.clip_grad_norm_(run.model.parameters(), run.training.clip)
    optimizer.step()
    return team.total(total)


def _save(run: Run[Any, Any], optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    if run.checkpoint is not None:
        facts = {"seed": run.seed, "progress": vars(progress)}
        Checkpoint.of(run.model, optimizer, facts).write(run.checkpoint)


def _resume(run: Run[Any, Any], optimizer: torch.optim.Optimizer, observer: Observer) -> Progress:
    checkpoint = Checkpoint.read_last_good(run.checkpoint, observer.note) if run.checkpoint else None
    if checkpoint is None:
        return Progress()
    progress = Progress(**checkpoint.facts["progress"])
    # Of a run that was measured the optimiser is no longer kept.
    checkpoint.restore(run.model, optimizer if checkpoint.has_optimizer else None)
    return progress
