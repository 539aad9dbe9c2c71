"""The best state on dev: kept, restored, found again after an interruption; runs that end early."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import DeclarationError
from attnlab.model import DecoderModel
from attnlab.training import Interrupted, Progress, Run, Training, Watched, train

from .small import Quiet, a_run, same_bits, weights

# What dev says after steps 2, 4, …: best after step 6.
SEEN = {2: 5.0, 4: 4.0, 6: 3.0, 8: 3.5, 10: 3.0, 12: 3.2, 14: 3.4}


def scripted(training: Training, checkpoint: Path | None = None) -> tuple[Run[Any, Any], dict[int, Any]]:
    """A run whose evaluations say what stands above, and its weights at each."""
    states: dict[int, Any] = {}
    observed = Steps()

    def evaluate() -> Mapping[str, float]:
        step = observed.done
        states[step] = weights(run.model)
        return {"dev_loss": SEEN[step], "dev_accuracy": -SEEN[step]}

    run = a_run(training, checkpoint=checkpoint, evaluate=evaluate)
    run = dataclasses.replace(run, objective=observed.counting(run.objective))
    return run, states


class Steps:
    """Counts the steps through the objective, which every step calls once."""

    done = 0

    def counting(self, objective: Any) -> Any:
        def counted(model: DecoderModel, batch: Any) -> Any:
            self.done += 1
            return objective(model, batch)

        return counted


BEST = Training(steps=14, batch=4, evaluate_every=2, keep="best")


@pytest.mark.parametrize("in_a_file", [True, False])
def test_the_state_of_the_best_evaluation_is_restored(tmp_path: Path, in_a_file: bool) -> None:
    run, states = scripted(BEST, tmp_path / "checkpoint.safetensors" if in_a_file else None)
    progress = train(run, Quiet())
    assert (progress.best, progress.best_step, progress.step) == (3.0, 6, 14)  # a tie is no improvement
    assert same_bits(weights(run.model), states[6])


def test_higher_may_be_better() -> None:
    run, states = scripted(BEST)
    progress = train(dataclasses.replace(run, watched=Watched("dev_accuracy", "higher")), Quiet())
    assert progress.best_step == 6
    assert same_bits(weights(run.model), states[6])


def test_the_last_state_is_kept_unless_asked() -> None:
    run, states = scripted(BEST.model_copy(update={"keep": "last"}))
    progress = train(run, Quiet())
    assert (progress.best, progress.best_step) == (None, 0)
    assert same_bits(weights(run.model), states[14])


def test_patience_ends_a_run_and_the_record_says_so() -> None:
    run, states = scripted(BEST.model_copy(update={"patience": 2}))
    quiet = Quiet()
    progress = train(run, quiet)
    assert (progress.step, progress.stopped_early, progress.best_step) == (10, True, 6)
    assert quiet.rows[-1]["step"] == 10
    assert same_bits(weights(run.model), states[6])


def interrupted(training: Training, path: Path, stops: Iterator[int]) -> tuple[Progress, DecoderModel]:
    """A run that is stopped before certain of its steps and begun anew from its checkpoint each time."""
    for stop in stops:
        run = real(training, path)
        with pytest.raises(Interrupted):
            train(run, Quiet(stop_at=stop))
    run = real(training, path)
    return train(run, Quiet()), run.model


def real(training: Training, path: Path | None) -> Run[DecoderModel, Any]:
    """A run whose dev loss is its own weights', first falling and then rising."""
    run = a_run(training, checkpoint=path)

    def evaluate() -> Mapping[str, float]:
        total = sum(p.double().square().sum().item() for p in run.model.parameters())
        return {"dev_loss": abs(total % 0.02 - 0.01)}

    return dataclasses.replace(run, evaluate=evaluate)


@pytest.mark.parametrize("patience", [None, 2])
def test_going_on_finds_the_same_best_bit_for_bit(tmp_path: Path, patience: int | None) -> None:
    training = BEST.model_copy(update={"patience": patience, "evaluate_every": 1})
    whole = real(training, None)
    once = train(whole, Quiet())
    again, model = interrupted(training, tmp_path / "checkpoint.safetensors", iter((3, 4)))
    assert (again.best, again.best_step, again.step) == (once.best, once.best_step, once.step)
    assert same_bits(weights(model), weights(whole.model))


def test_evaluations_come_at_the_end_too() -> None:
    assert Training(evaluate_every=100).evaluate_at(250) == {100, 200, 250}
    assert Training(evaluate_every=100).evaluate_at(200) == {100, 200}
    assert Training(evaluations=3).evaluate_at(10) == {3, 7, 10}


def test_patience_without_a_best_state_is_refused() -> None:
    with pytest.raises(DeclarationError, match='patience goes with keep = "best"'):
        Training(patience=3)
