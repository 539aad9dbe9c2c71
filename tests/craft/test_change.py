"""The key to change: against scipy's descent over keys, free or of a given length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from attnlab.craft import FOUR, Average, Scene, Select, course, find_key
from attnlab.craft.course import TWO
from attnlab.errors import RequestError

from .scenes import scenes


def error_of(scene: Scene, query: Any, key: int, k: Any, target: Any) -> float:
    return float(np.linalg.norm(scene.with_key(key, k).output(query) - target))


def test_the_two_tasks() -> None:
    third = find_key(FOUR, TWO, 2, Average((0, 1, 2)))
    assert third.verdict == "exact"
    assert third.solved
    assert third.scores[2] == pytest.approx(third.scores[0]) == pytest.approx(third.scores[1])
    alone = find_key(FOUR, TWO, 2, Select(2), length=1.0)
    np.testing.assert_allclose(alone.vector, np.asarray(TWO) / np.linalg.norm(TWO), atol=1e-12)
    assert alone.solved
    assert alone.verdict == "impossible"
    assert any("at most" in reason for reason in alone.why)


@settings(max_examples=15, deadline=None)
@given(scenes(keys=(2, 5), width=(2, 3)), st.booleans(), st.data())
def test_no_key_does_better(scene: Scene, is_free: bool, data: Any) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    query, key = rng.normal(0, 2, scene.K_nd.shape[1]), int(rng.integers(scene.size))
    target = Average(tuple(rng.permutation(scene.size)[: rng.integers(1, scene.size + 1)].tolist()))
    length = None if is_free else float(rng.uniform(0.2, 2))
    answer = find_key(scene, query, key, target, length=length, tolerance=1e-3)
    assert answer.error == pytest.approx(error_of(scene, query, key, answer.vector, answer.target))
    if length is not None:
        assert np.linalg.norm(answer.vector) == pytest.approx(length)

    def off(x: Any) -> float:
        k = x if length is None else length * x / max(np.linalg.norm(x), 1e-12)
        return error_of(scene, query, key, k, answer.target)

    found = min(
        minimize(off, rng.normal(size=len(query)), method="Nelder-Mead", options={"maxiter": 800}).fun
        for _ in range(2)
    )
    assert found >= answer.floor - 1e-9
    # With its length free, the best may lie at the end of the segment, which is a limit.
    assert answer.error <= found + (1e-3 if length is None else 1e-6)


def test_of_all_keys_that_do_the_nearest_is_taken() -> None:
    answer = find_key(FOUR, TWO, 2, Average((0, 1, 2)))
    moved = answer.vector - np.asarray(FOUR.keys[2])
    q = np.asarray(TWO)
    assert np.linalg.norm(moved - (moved @ q) / (q @ q) * q) < 1e-12  # along the query only


def test_a_limit_comes_within_the_tolerance() -> None:
    for tolerance in (0.1, 1e-3, 1e-6):
        answer = find_key(FOUR, TWO, 2, Select(2), tolerance=tolerance)
        assert answer.verdict == "limit"
        assert answer.solved


def test_a_query_of_zero_hears_no_key() -> None:
    answer = find_key(FOUR, [0, 0, 0], 1, Select(1))
    assert answer.verdict == "impossible"
    assert answer.error == pytest.approx(answer.floor)
    assert any("The query is 0" in reason for reason in answer.why)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": 7}, "there is no key 7"),
        ({"query": [1, 2]}, "3 numbers"),
        ({"length": -1.0}, "length is -1"),
    ],
)
def test_what_is_wrong_is_said(arguments: dict[str, Any], message: str) -> None:
    given_: dict[str, Any] = {"query": TWO, "key": 2, **arguments}
    with pytest.raises(RequestError, match=message):
        find_key(FOUR, given_.pop("query"), given_.pop("key"), Select(2), **given_)


def test_the_course_is_solved_and_says_what_cannot_be() -> None:
    tasks = {task.name: task for task in course()}
    assert len(tasks) == len(course())
    for task in tasks.values():
        for answer in task.answers:
            assert answer.error <= task.goal
            assert answer.solved == (task.name != "within")
    assert tasks["within"].answers[0].verdict == "impossible"
    assert tasks["within"].goal > 0.05
