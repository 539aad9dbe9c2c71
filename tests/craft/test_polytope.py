"""Shortest points and faces, against scipy's linear and general programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from attnlab.craft import FOUR, Scene
from attnlab.craft.polytope import face_of, nearest_in_hull, rank_of, shortest

from .scenes import scenes


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_the_shortest_point_is_what_a_general_program_finds(scene: Scene) -> None:
    points = scene.K_nd
    mixture = shortest(points)
    assert mixture.min() >= 0
    assert mixture.sum() == pytest.approx(1, abs=1e-12)
    found = minimize(
        lambda x: float((x @ points) @ (x @ points)),
        np.full(len(points), 1 / len(points)),
        jac=lambda x: 2 * points @ (x @ points),
        bounds=[(0, 1)] * len(points),
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(len(x))},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    length = np.linalg.norm(mixture @ points)
    assert length <= np.sqrt(max(found.fun, 0.0)) + 1e-6
    # The hull lies beyond the plane through its shortest point: that proves it, whatever scipy says.
    assert (points @ (mixture @ points)).min() >= length**2 - 1e-9


def strictly_favours(keys: Any, chosen: list[int]) -> bool:
    """Whether a direction scores the chosen keys alike and all others lower, by a linear program."""
    others = [j for j in range(len(keys)) if j not in chosen]
    if not others:
        return True
    done = linprog(
        np.zeros(keys.shape[1]),
        A_ub=keys[others] - keys[chosen[0]],
        b_ub=-np.ones(len(others)),
        A_eq=keys[chosen] - keys[chosen[0]],
        b_eq=np.zeros(len(chosen)),
        bounds=(None, None),
    )
    return bool(done.status == 0)


@settings(max_examples=150, deadline=None)
@given(scenes(), st.data())
def test_a_face_is_one_exactly_if_a_linear_program_finds_its_direction(scene: Scene, data: Any) -> None:
    keys = scene.K_nd
    chosen = sorted(data.draw(st.sets(st.integers(0, len(keys) - 1), min_size=1)))
    face = face_of(keys, chosen)
    assert set(chosen) <= set(face.members)
    assert strictly_favours(keys, list(face.members))
    assert strictly_favours(keys, chosen) == (list(face.members) == chosen)
    for extra in set(face.members) - set(chosen):  # and no smaller one would do
        smaller = [i for i in face.members if i != extra]
        assert not strictly_favours(keys, smaller) or set(chosen) - set(smaller)
    scores = keys @ face.direction
    on = list(face.members)
    assert np.ptp(scores[on]) < 1e-7
    others = [j for j in range(len(keys)) if j not in on]
    if others:
        assert scores[on].min() - scores[others].max() >= 1 - 1e-6
    if face.witness is not None:
        flat = keys[chosen] - keys[chosen[0]]
        apart = face.witness @ keys - keys[chosen[0]]
        assert np.linalg.norm(apart - np.linalg.pinv(flat.T) @ apart @ flat) < 1e-7
        assert face.witness[chosen].sum() == 0


def test_no_direction_is_ahead_by_more() -> None:
    """The margin of k0, against the best of many directions and a descent from there."""
    face = face_of(FOUR.K_nd, [0])
    assert np.linalg.norm(face.direction) == pytest.approx(1 / face.margin)
    behind = FOUR.K_nd[0] - FOUR.K_nd[1:]
    directions = np.random.default_rng(0).normal(size=(20_000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    best = (directions @ behind.T).min(1).max()
    assert best <= face.margin + 1e-12
    assert best == pytest.approx(face.margin, abs=0.01)


def test_a_point_in_the_hull_is_no_distance_away() -> None:
    square = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])
    mixture, distance = nearest_in_hull(square, np.array([0.3, 0.4]))
    assert distance == 0
    np.testing.assert_allclose(mixture @ square, [0.3, 0.4], atol=1e-12)
    assert nearest_in_hull(square, np.array([2.0, 0.5]))[1] == pytest.approx(1)
    assert nearest_in_hull(square, np.array([2.0, 2.0]))[1] == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize(
    ("points", "rank"), [([[1, 1]], 0), ([[1, 1], [1, 1]], 0), ([[0, 0], [1, 2], [2, 4]], 1)]
)
def test_rank(points: list[list[float]], rank: int) -> None:
    assert rank_of(np.asarray(points, dtype=float)) == rank
