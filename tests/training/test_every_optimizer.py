"""Every optimiser: going on bit for bit, learning at all, and against those who wrote it first."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from attnlab.training import (
    Adafactor,
    Adagrad,
    AdamW,
    Interrupted,
    Linear,
    Muon,
    Optimizer,
    ScheduleFree,
    Sgd,
    Training,
    train,
)
from attnlab.training.optimizers.optimizer import by_decay

from .small import SPEC, Quiet, a_run, same_bits, weights

PLAIN = SPEC.model_copy(update={"dropout": 0.0})
EVERY = [
    AdamW(),
    Sgd(learning_rate=0.05),
    Adagrad(),
    Adafactor(),
    Muon(learning_rate=1e-3),
    ScheduleFree(learning_rate=1e-2),
]


@pytest.mark.parametrize("optimizer", EVERY, ids=lambda optimizer: optimizer.name)
@pytest.mark.parametrize("stop_at", [7, 14])
def test_every_optimizer_goes_on_bit_for_bit(tmp_path: Path, optimizer: Optimizer, stop_at: int) -> None:
    training = Training(steps=14, batch=4, evaluations=3, optimizer=optimizer, schedule=Linear(warmup=0.2))
    whole = a_run(training, checkpoint=tmp_path / "whole.safetensors")
    train(whole, Quiet())
    cut = tmp_path / "cut.safetensors"
    with pytest.raises(Interrupted):
        train(a_run(training, checkpoint=cut), Quiet(stop_at=stop_at))
    again = a_run(training, checkpoint=cut)
    train(again, Quiet())
    assert same_bits(weights(whole.model), weights(again.model))


@pytest.mark.parametrize("optimizer", EVERY, ids=lambda optimizer: optimizer.name)
def test_every_optimizer_learns(optimizer: Optimizer) -> None:
    observer = Quiet()
    train(a_run(Training(steps=60, batch=13, optimizer=optimizer)), observer)
    losses = list(observer.losses.values())
    assert losses[-1] < losses[0] - 0.03


def test_training_does_without_pytorchs_compiler() -> None:
    """Which every worker would wait a second for, and keep 70 MB of."""
    program = (
        "import sys; from tests.training.test_every_optimizer import *\n"
        "for optimizer in EVERY[:4]: train(a_run(Training(steps=2, optimizer=optimizer)), Quiet())\n"
        "assert 'torch.optim' in sys.modules; assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


def test_muon_is_torchs_on_the_matrices_and_adamw_elsewhere() -> None:
    run, other = (a_run(Training(steps=5, optimizer=Muon()), dtype=torch.float32) for _ in range(2))
    mine = Muon().build(run.model)
    inside = {id(m.weight) for m in list(_linear(other.model))[:-1]}
    matrices = [p for p in other.model.parameters() if id(p) in inside]
    rest = [p for p in other.model.parameters() if id(p) not in inside]
    assert matrices
    theirs = [
        torch.optim.Muon(matrices, lr=5e-4, momentum=0.95, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, lr=5e-4, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
    ]
    for step in range(3):
        for of, optimizers in ((run, [mine]), (other, theirs)):
            torch.manual_seed(step)
            of.model.zero_grad()
            of.objective(of.model, of.batches[step]).backward()
            for one in optimizers:
                one.step()
    for a, b in zip(run.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)


def _linear(model: torch.nn.Module) -> Iterator[torch.nn.Linear]:
    return (module for module in model.modules() if isinstance(module, torch.nn.Linear))


def test_schedule_free_is_the_authors_own() -> None:
    """Step by step, at a warming rate, and as it is tested."""
    schedulefree = pytest.importorskip("schedulefree", reason="the authors' package is not here")
    run, other = (a_run(Training(steps=5), spec=PLAIN, dtype=torch.float64) for _ in range(2))
    mine = ScheduleFree(learning_rate=3e-3, weight_decay=0.02).build(run.model)
    groups = by_decay(other.model, 0.02)
    theirs = schedulefree.AdamWScheduleFree(groups, lr=3e-3, warmup_steps=4, foreach=False)
    theirs.train()
    for step in range(8):
        for group in mine.param_groups:
            group["lr"] = 3e-3 * min(1.0, (step + 1) / 4)
        for of, optimizer in ((run, mine), (other, theirs)):
            of.model.zero_grad()
            of.objective(of.model, of.batches[step]).backward()
            optimizer.step()
        _same(run.model, other.model)
        theirs.eval()
        with mine.evaluated():
            _same(run.model, other.model)
        theirs.train()


def _same(one: torch.nn.Module, other: torch.nn.Module) -> None:
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-9)  # our weights are summed up in fp32


def test_what_is_tested_is_the_average_and_training_goes_on_from_where_it_was() -> None:
    tested: list[dict[str, torch.Tensor]] = []
    run = a_run(Training(steps=6, evaluations=2, optimizer=ScheduleFree()))
    run = dataclasses.replace(run, evaluate=lambda: (tested.append(weights(run.model)), {"dev_loss": 1.0})[1])
    train(run, Quiet())
    unseen = a_run(Training(steps=6, evaluations=1, optimizer=ScheduleFree()))
    train(unseen, Quiet())
    assert same_bits(weights(run.model), weights(unseen.model))  # to look changes nothing
    assert same_bits(tested[-1], weights(run.model))  # what was tested last is what is left
