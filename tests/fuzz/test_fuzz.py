"""Every subject with a few hundred inputs; `make fuzz` gives it a hundred thousand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from .subjects import SUBJECTS, Hangs, Subject

FEW = 150


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_an_error_of_ours_or_success(subject: Subject) -> None:
    fuzz(subject, FEW, derandomize=True)


def fuzz(subject: Subject, inputs: int, **options: Any) -> dict[str, int]:
    """Gives the subject so many inputs; how many were accepted and refused."""
    seen = {"accepted": 0, "refused": 0}

    @settings(
        max_examples=inputs,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        **options,
    )
    @given(subject.inputs)
    def one(given_input: Any) -> None:
        seen["accepted" if subject.survives(given_input) else "refused"] += 1

    one()
    return seen


def _fails(_: Any) -> None:
    raise KeyError("not ours")


def _hangs(_: Any) -> None:
    while True:
        pass


def test_another_exception_is_a_finding() -> None:
    with pytest.raises(KeyError):
        fuzz(Subject("broken", st.integers(), _fails), 5)


def test_a_hang_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.subjects.PATIENCE", 0.05)
    with pytest.raises(Hangs):
        Subject("endless", st.integers(), _hangs).survives(1)
