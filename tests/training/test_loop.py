"""The loop: batches, accumulation, divergence, and going on after an interruption bit for bit."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from attnlab.attention import Additive, Attention
from attnlab.model import Decoder, DecoderModel
from attnlab.tokens.batches import Batch, Batches
from attnlab.training import (
    AdamW,
    Checkpoint,
    Cosine,
    Interrupted,
    NextToken,
    Optimizer,
    Run,
    Sgd,
    Training,
    train,
)

from .small import SPEC, SPLIT, Quiet, a_run, same_bits, weights

TRAINING = Training(
    steps=14, batch=4, evaluations=3, schedule=Cosine(warmup=4), optimizer=AdamW(learning_rate=3e-3)
)


class Spy:
    """The usual objective; keeps the batches, and makes the loss at one step another one."""

    def __init__(self, at: int | None = None, factor: float = 1.0) -> None:
        self.at, self.factor = at, factor
        self.batches: list[Batch] = []

    def __call__(self, model: DecoderModel, batch: Batch) -> Tensor:
        self.batches.append(batch)
        loss = NextToken()(model, batch)
        return loss * self.factor if len(self.batches) == self.at else loss


# ---- batches -----------------------------------------------------------------------------------------------


def test_two_arms_of_a_seed_see_the_same_batches() -> None:
    seen = []
    for spec in (SPEC, SPEC.model_copy(update={"mixer": Attention(score=Additive()), "dropout": 0.0})):
        spy = Spy()
        train(dataclasses.replace(a_run(TRAINING, spec=spec), objective=spy), Quiet())
        seen.append(spy.batches)
    assert len(seen[0]) == 14
    for one, other in zip(*seen, strict=True):
        assert np.array_equal(one.inputs_N, other.inputs_N)
        assert np.array_equal(one.targets_N, other.targets_N)
        assert np.array_equal(one.sequences_B, other.sequences_B)


def test_an_epoch_is_every_sequence_once_in_an_order_of_its_own() -> None:
    epochs = {}
    for seed in (0, 1):
        batches = Batches(SPLIT, 4, seed)
        assert batches.per_epoch == 4
        for epoch in (0, 1):
            drawn = [set(batches[epoch * 4 + i].sequences_B.tolist()) for i in range(4)]
            assert sorted(s for part in drawn for s in part) == list(range(13))
            epochs[seed, epoch] = [frozenset(part) for part in drawn]
    assert len({tuple(order) for order in epochs.values()}) == 4


def test_inputs_and_targets_are_neighbours_in_the_text() -> None:
    batch = Batches(SPLIT, 5, 0)[1]
    start = 0
    for sequence, length in zip(batch.sequences_B, batch.lengths_B, strict=True):
        text = SPLIT.ids[SPLIT.starts[sequence] : SPLIT.starts[sequence + 1]]
        assert batch.inputs_N[start : start + length].tolist() == text[:-1].tolist()
        assert batch.targets_N[start : start + length].tolist() == text[1:].tolist()
        start += length
    assert start == batch.tokens


@pytest.mark.parametrize("pieces", [2, 3, 4, 9])
def test_accumulation_is_the_whole_batch(pieces: int) -> None:
    """The pieces hold unequal numbers of tokens: a mean of means would be another gradient."""
    plain = SPEC.model_copy(update={"dropout": 0.0})
    lengths = [piece.tokens for piece in Batches(SPLIT, 4, 3)[0].split(pieces)]
    assert len(set(lengths)) > 1
    runs = [
        a_run(TRAINING.model_copy(update={"accumulate": n}), spec=plain, dtype=torch.float64)
        for n in (1, pieces)
    ]
    observers = [Quiet(), Quiet()]
    for run, observer in zip(runs, observers, strict=True):
        train(run, observer)
    assert list(observers[0].losses.values()) == pytest.approx(list(observers[1].losses.values()), rel=1e-10)
    for one, other in zip(runs[0].model.parameters(), runs[1].model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


# ---- the curve ---------------------------------------------------------------------------------------------


def test_evaluations_are_spread_over_the_run_and_the_last_is_at_its_end() -> None:
    observer = Quiet()
    progress = train(a_run(TRAINING, evaluate=lambda: {"dev_loss": 2.0}), observer)
    assert [row["step"] for row in observer.rows if "dev_loss" in row] == [5, 9, 14]
    assert progress.last == {"dev_loss": 2.0}
    assert [row["tokens"] for row in observer.rows] == sorted(row["tokens"] for row in observer.rows)


def test_evaluating_changes_nothing() -> None:
    runs = []
    for evaluations in (1, 7):
        run = a_run(TRAINING.model_copy(update={"evaluations": evaluations}))

        def look(model: DecoderModel = run.model) -> dict[str, float]:
            model.eval()
            return {"dev_loss": model(torch.arange(8)[None]).mean().item()}

        run = dataclasses.replace(run, evaluate=look)
        train(run, Quiet())
        runs.append(weights(run.model))
    assert same_bits(*runs)


# ---- divergence --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_ends_the_run(factor: float) -> None:
    observer = Quiet()
    progress = train(dataclasses.replace(a_run(TRAINING), objective=Spy(at=3, factor=factor)), observer)
    assert (progress.status, progress.step) == ("diverged", 3)
    assert progress.reason == f"the loss was {factor} at step 3"
    assert observer.rows[-1]["step"] == 3


def test_a_loss_that_explodes_ends_the_run() -> None:
    training = Training(steps=300, batch=4, clip=None, optimizer=Sgd(learning_rate=50.0, momentum=0.0))
    progress = train(a_run(training), Quiet())
    assert progress.status == "diverged"
    assert progress.step < 100
    assert progress.reason is not None
    assert "the loss grew from" in progress.reason or "the loss was" in progress.reason


def test_one_bad_batch_is_no_explosion() -> None:
    progress = train(dataclasses.replace(a_run(TRAINING), objective=Spy(at=6, factor=10.0)), Quiet())
    assert (progress.status, progress.step) == ("ok", 14)


def test_an_update_that_ruins_the_model_is_noticed_at_the_next_evaluation() -> None:
    progress = train(a_run(TRAINING, evaluate=lambda: {"train_loss": 1.0, "dev_loss": math.nan}), Quiet())
    assert (progress.status, progress.step) == ("diverged", 5)
    assert progress.reason == "the dev_loss was nan at step 5"


def test_a_diverged_run_stays_diverged(tmp_path: Path) -> None:
    run = dataclasses.replace(
        a_run(TRAINING, checkpoint=tmp_path / "c"), objective=Spy(at=3, factor=math.nan)
    )
    progress = train(run, Quiet())
    Checkpoint.of(run.model, None, {"progress": vars(progress)}).write(tmp_path / "c")
    again = train(a_run(TRAINING, checkpoint=tmp_path / "c"), Quiet())
    assert (again.status, again.step, again.reason) == ("diverged", 3, progress.reason)


# ---- going on ----------------------------------------------------------------------------------------------


def undisturbed(training: Training, spec: Decoder = SPEC) -> tuple[dict[str, Tensor], dict[int, float]]:
    run, observer = a_run(training, spec=spec), Quiet()
    train(run, observer)
    return weights(run.model), observer.losses


OPTIMIZERS: dict[str, Optimizer] = {
    "adamw": AdamW(learning_rate=3e-3),
    "momentum": Sgd(),
    "sgd": Sgd(momentum=0.0),
}


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_asked_to_stop_it_goes_on_to_the_same_bits(tmp_path: Path, optimizer: Optimizer, tied: bool) -> None:
    training = TRAINING.model_copy(update={"optimizer": optimizer})
    spec = SPEC.model_copy(update={"tied": tied})
    expected, losses = undisturbed(training, spec)
    found: dict[int, float] = {}
    for stop_at in (1, 5, 6, 13):
        observer = Quiet(stop_at=stop_at)
        with pytest.raises(Interrupted):
            train(a_run(training, spec=spec, checkpoint=tmp_path / "c"), observer)
        found |= observer.losses
    last, observer = a_run(training, spec=spec, checkpoint=tmp_path / "c"), Quiet()
    train(last, observer)
    assert observer.began == [13]
    assert found | observer.losses == losses
    assert same_bits(weights(last.model), expected)


def test_killed_it_goes_on_from_its_last_checkpoint_to_the_same_bits(tmp_path: Path) -> None:
    expected, losses = undisturbed(TRAINING)
    found: dict[int, float] = {}
    for saves, dies in (((2,), 4), ((), 7), ((5, 8), 11)):
        observer = Quiet(save_at=saves, break_at=dies)
        with pytest.raises(KeyboardInterrupt):
            train(a_run(TRAINING, checkpoint=tmp_path / "c"), observer)
        found |= observer.losses
    last, observer = a_run(TRAINING, checkpoint=tmp_path / "c"), Quiet()
    progress = train(last, observer)
    assert observer.began == [8]
    assert found | observer.losses == losses
    assert same_bits(weights(last.model), expected)
    assert progress.tokens == sum(Batches(SPLIT, 4, 3)[step].tokens for step in range(14))


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    run = a_run(TRAINING, checkpoint=tmp_path / "c")
    progress = train(run, Quiet())
    Checkpoint.of(run.model, None, {"progress": vars(progress)}).write(tmp_path / "c")
    again, spy = a_run(TRAINING, checkpoint=tmp_path / "c"), Spy()
    assert train(dataclasses.replace(again, objective=spy), Quiet()) == progress
    assert spy.batches == []
    assert same_bits(weights(again.model), weights(run.model))


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-9] ^= 64
    path.write_bytes(content)


@pytest.mark.parametrize("cut", [False, True], ids=["a flipped bit", "cut short"])
def test_a_damaged_checkpoint_is_told_and_the_one_before_it_is_used(tmp_path: Path, cut: bool) -> None:
    expected, losses = undisturbed(TRAINING)
    path = tmp_path / "c.safetensors"
    first = Quiet(save_at=(3, 5), break_at=7)
    with pytest.raises(KeyboardInterrupt):
        train(a_run(TRAINING, checkpoint=path), first)
    if cut:
        path.write_bytes(path.read_bytes()[:-40])
    else:
        damage(path)
    again, observer = a_run(TRAINING, checkpoint=path), Quiet()
    train(again, observer)
    assert observer.began == [3]
    assert "c.safetensors" in observer.notes[0]
    assert observer.notes[0].endswith("going on from the one before it")
    assert (tmp_path / "c.safetensors.damaged").exists()
    assert same_bits(weights(again.model), expected)
    assert first.losses | observer.losses == losses


def test_where_no_checkpoint_is_whole_the_run_begins_anew(tmp_path: Path) -> None:
    expected, _ = undisturbed(TRAINING)
    path = tmp_path / "c.safetensors"
    for notes in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            train(a_run(TRAINING, checkpoint=path), Quiet(save_at=(5, 6)[:notes], break_at=7))
        for file in tmp_path.glob("c*.safetensors"):
            damage(file)
        again, observer = a_run(TRAINING, checkpoint=path), Quiet()
        train(again, observer)
        assert observer.began == [0]
        assert len(observer.notes) == notes
        assert observer.notes[-1].endswith("beginning anew")
        assert same_bits(weights(again.model), expected)
        for file in tmp_path.iterdir():
            file.unlink()


def test_dropout_follows_the_seed_and_the_step_and_nothing_else() -> None:
    torch.manual_seed(1)
    first = undisturbed(TRAINING)
    torch.manual_seed(2)
    assert undisturbed(TRAINING)[1] == first[1]
    other = Quiet()
    train(a_run(TRAINING, seed=4), other)
    assert other.losses != first[1]


def test_a_run_learns() -> None:
    """Sequences that can be learnt by heart are."""
    training = Training(steps=150, batch=13, optimizer=AdamW(learning_rate=1e-2))
    observer = Quiet()
    spec = Decoder(layers=1, heads=2, width=32, context=16, dropout=0.0)
    run: Run[DecoderModel] = a_run(training, spec=spec)
    train(run, observer)
    losses = list(observer.losses.values())
    assert losses[0] == pytest.approx(math.log(37), abs=0.1)  # knowing nothing
    assert losses[-1] < 1.0
