"""Schedules against torch's and transformers' own."""

from __future__ import annotations

import pytest
import torch

from attnlab.errors import DeclarationError
from attnlab.training import Constant, Cosine, Schedule


def test_constant() -> None:
    assert [Constant().factor(step, 9) for step in range(9)] == [1.0] * 9
    assert [Constant(warmup=3).factor(step, 9) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]


@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_cosine_is_torchs(floor: float) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50, eta_min=floor)
    for step in range(50):
        assert Cosine(floor=floor).factor(step, 50) == pytest.approx(theirs.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        theirs.step()


def test_after_the_warm_up_it_is_transformers() -> None:
    optimization = pytest.importorskip("transformers.optimization", reason="the schedule to compare with")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = optimization.get_cosine_schedule_with_warmup(
        optimizer, num_warmup_steps=10, num_training_steps=60
    )
    for step in range(60):
        if step >= 10:
            assert Cosine(warmup=10).factor(step, 60) == pytest.approx(theirs.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        theirs.step()


@pytest.mark.parametrize("steps", [1, 5, 10])
def test_a_warm_up_longer_than_the_run_only_rises(steps: int) -> None:
    factors = [Cosine(warmup=20).factor(step, steps) for step in range(steps)]
    assert factors == sorted(factors)
    assert all(0 < factor < 1 for factor in factors)


def test_a_schedule_is_a_part() -> None:
    assert Schedule.resolve({"part": "cosine", "warmup": 5}) == Cosine(warmup=5)
    with pytest.raises(DeclarationError, match="warmup"):
        Schedule.resolve({"part": "cosine", "warmup": -1})
