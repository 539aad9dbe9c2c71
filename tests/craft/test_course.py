"""The course: every task is solved within its tolerance, or its floor is explained."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.craft import TOLERANCE, Task, course

K = np.array([[0.47, 0.65, 0.60], [0.64, 0.50, -0.59], [-0.03, -0.48, -0.88], [0.43, -0.83, 0.35]])
V = np.array([[-0.07, -0.88, 0.47], [0.37, -0.93, -0.07], [-0.25, -0.75, 0.61], [0.94, 0.20, 0.28]])
WANTED = {"select": [V[0]], "identity": [*V], "average": [V.mean(0)], "two": [V[:2].mean(0)]}
TASKS = {task.name: task for task in course()}


def output(q: np.ndarray) -> np.ndarray:
    """softmax(K q) V, written out."""
    weights = np.exp(K @ q - (K @ q).max())
    out: np.ndarray = weights / weights.sum() @ V
    return out


@pytest.mark.parametrize("name", WANTED)
def test_the_four_tasks_are_solved_within_a_twentieth(name: str) -> None:
    task = TASKS[name]
    assert task.goal == TOLERANCE == 0.05
    for answer, wanted in zip(task.answers, WANTED[name], strict=True):
        assert np.linalg.norm(output(answer.vector) - wanted) <= 0.05 + 1e-9
        assert answer.verdict == ("exact" if name == "average" else "limit")
        if answer.verdict == "limit":
            assert "No finite query does it" in answer.why[0]


def test_what_was_found_by_hand_before_counts_too() -> None:
    assert np.linalg.norm(output(10 * (K[0] + K[1])) - V[:2].mean(0)) == pytest.approx(0.0075, abs=5e-5)
    assert np.linalg.norm(output(K.mean(0)) - V.mean(0)) == pytest.approx(0.025, abs=5e-4)
    assert np.linalg.norm(output(np.zeros(3)) - V.mean(0)) < 1e-12


def test_what_is_out_of_reach_says_why_and_asks_for_no_more() -> None:
    task: Task = TASKS["within"]
    (answer,) = task.answers
    assert answer.verdict == "impossible"
    assert task.goal == pytest.approx(1.05 * answer.error)
    assert 0 < answer.floor <= answer.error
    assert any("mixture" in line for line in answer.why)
    assert TASKS["take-over"].goal == 0.05  # out of reach too, and near enough
    assert TASKS["take-over"].answers[0].error < 0.05
