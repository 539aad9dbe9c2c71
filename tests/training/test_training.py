"""The section of a declaration: budgets and precisions."""

from __future__ import annotations

import pytest
import torch

from attnlab.errors import DeclarationError
from attnlab.training import Training, precision
from attnlab.training.precision import gains_by_bfloat16


@pytest.mark.parametrize(
    ("training", "steps"),
    [
        (Training(), 40),
        (Training(steps=7), 7),
        (Training(epochs=2.5), 100),
        (Training(epochs=1e-9), 1),
        (Training(tokens=500), 20),
        (Training(tokens=1), 1),
    ],
)
def test_every_budget_comes_to_steps(training: Training, steps: int) -> None:
    assert training.resolve_steps(per_epoch=40, tokens_per_epoch=1000) == steps


@pytest.mark.parametrize(
    "budget", [{"steps": 0}, {"steps": -3}, {"epochs": 0}, {"tokens": 0}, {"steps": 1.5}]
)
def test_no_budget_at_all_is_refused(budget: dict[str, float]) -> None:
    with pytest.raises(DeclarationError, match=next(iter(budget))):
        Training(**budget)  # type: ignore[arg-type]


def test_bfloat16_is_taken_only_where_there_is_nothing_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    for has_it, compiler, gains in ((True, True, False), (True, False, True), (False, False, False)):
        monkeypatch.setattr(precision, "multiplies_bfloat16", lambda has_it=has_it: has_it)
        monkeypatch.setattr(precision, "kernel", lambda there=compiler: object() if there else None)
        assert precision.gains_by_bfloat16() is gains


def test_precisions() -> None:
    assert Training().settled(bfloat16=True).precision == "bfloat16-head"
    assert Training().settled(bfloat16=False).precision == "float32"
    assert Training(precision="bfloat16-head").settled(bfloat16=False).precision == "bfloat16-head"
    assert Training().head_dtype == Training().settled(gains_by_bfloat16()).head_dtype
    assert Training(precision="float32").head_dtype == torch.float32
    assert Training(precision="bfloat16-head").head_dtype == torch.bfloat16
    with pytest.raises(DeclarationError, match="did you mean 'float32'"):
        Training(precision="float3")  # type: ignore[arg-type]
