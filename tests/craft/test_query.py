"""The query that does what is wanted: the built-in tasks, limits and their scales, what cannot be had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from attnlab.craft import FOUR, Average, Output, Scene, Select, Weights, find_query, wishes
from attnlab.craft.query import scale_within
from attnlab.errors import RequestError

from .scenes import mixtures, scenes


def recomputed(scene: Scene, query: Any) -> Any:
    """Attention once more, by other means."""
    scores = np.array([sum(a * b for a, b in zip(k, query, strict=True)) for k in scene.keys]) * scene.scale
    weights = np.exp(scores) / np.exp(scores).sum()
    return sum(w * np.asarray(v) for w, v in zip(weights, scene.values, strict=True))


@pytest.mark.parametrize(
    ("words", "targets"),
    [
        (["select", "0"], [[-0.07, -0.88, 0.47]]),
        (["identity"], [list(v) for v in FOUR.values]),
        (["average"], [[0.2475, -0.59, 0.3225]]),
        (["average", "0", "1"], [[0.15, -0.905, 0.2]]),
    ],
)
def test_the_four_tasks_are_within_their_tolerance(words: list[str], targets: list[list[float]]) -> None:
    answers = [find_query(FOUR, wish) for wish in wishes(words, FOUR)]
    assert len(answers) == len(targets)
    for answer, target in zip(answers, targets, strict=True):
        assert answer.solved
        np.testing.assert_allclose(recomputed(FOUR, answer.vector), answer.output, atol=1e-12)
        assert np.linalg.norm(recomputed(FOUR, answer.vector) - target) <= 0.05 * (1 + 1e-9)


def test_the_mean_is_exact_at_zero_and_only_nearly_so_at_the_mean_of_the_keys() -> None:
    answer = find_query(FOUR, Average())
    assert (answer.verdict, answer.error, answer.vector.tolist()) == ("exact", pytest.approx(0), [0, 0, 0])
    off = np.linalg.norm(FOUR.output(FOUR.K_nd.mean(0)) - FOUR.V_nm.mean(0))
    assert 0.02 < off < 0.03


def test_two_of_four_are_a_limit_and_not_attained() -> None:
    answer = find_query(FOUR, Average((0, 1)), 1e-6)
    assert (answer.verdict, answer.floor) == ("limit", 0.0)
    assert answer.solved
    assert any("No finite query" in reason for reason in answer.why)
    assert FOUR.weights(answer.vector)[2:].min() > 0


@settings(max_examples=40, deadline=None)
@given(scenes(), st.data())
def test_a_verdict_is_true(scene: Scene, data: Any) -> None:
    wanted = data.draw(mixtures(scene.size))
    answer = find_query(scene, Weights(tuple(wanted)), 0.01)
    np.testing.assert_allclose(scene.output(answer.vector), answer.output)
    if answer.verdict == "exact":
        assert answer.error < 1e-7
    elif answer.verdict == "limit":
        assert answer.solved
        assert answer.direction is not None
        assert answer.scale is not None
        start = answer.vector - answer.scale * answer.direction
        for factor in (1.0, 1.5, 3.0, 10.0):  # and stays there
            query = start + factor * answer.scale * answer.direction
            assert np.linalg.norm(scene.output(query) - answer.target) <= 0.01 + 1e-6
    else:
        assert 0 < answer.floor <= answer.error + 1e-9


@settings(max_examples=15, deadline=None)
@given(scenes(keys=(3, 5), width=(1, 2)), st.data())
def test_a_descent_does_not_come_nearer_than_what_is_said_to_be_out_of_reach(scene: Scene, data: Any) -> None:
    wanted = data.draw(mixtures(scene.size))
    answer = find_query(scene, Weights(tuple(wanted)))
    rng = np.random.default_rng(5)
    for _ in range(6):
        start = rng.normal(0, 3, scene.K_nd.shape[1])
        done = minimize(
            lambda q: float(np.sum((scene.output(q) - answer.target) ** 2)), start, method="Nelder-Mead"
        )
        assert np.sqrt(done.fun) >= answer.floor - 1e-9


def test_no_shorter_query_gives_the_same_weights() -> None:
    """Keys on a line leave a whole plane of queries alike; the shortest lies along the line."""
    scene = Scene([[0, 1, 0], [1, 1, 0], [2, 1, 0]], np.eye(3).tolist())
    answer = find_query(scene, Weights(tuple(scene.weights([0.7, -3.0, 5.0]))))
    assert answer.verdict == "exact"
    np.testing.assert_allclose(answer.vector, [0.7, 0, 0], atol=1e-9)


def test_the_scale_is_the_least_one() -> None:
    answer = find_query(FOUR, Select(0), 0.02)
    assert answer.scale is not None
    assert answer.direction is not None
    assert answer.error == pytest.approx(0.02, rel=1e-6)
    shorter = FOUR.output(0.999 * answer.scale * answer.direction)
    assert np.linalg.norm(shorter - answer.target) > 0.02
    assert scale_within(FOUR, np.zeros(3), answer.direction, answer.target, 10.0) == 0.0


def test_a_scale_of_the_scores_shortens_the_query() -> None:
    four = Scene(FOUR.keys, FOUR.values, scale=0.5)
    np.testing.assert_allclose(find_query(four, Select(1)).vector, 2 * find_query(FOUR, Select(1)).vector)


def test_a_key_within_the_others_is_never_alone() -> None:
    scene = Scene([[-1, 0], [1, 0], [0, 0], [0, 1]], np.eye(4).tolist())
    answer = find_query(scene, Select(2))
    assert answer.verdict == "impossible"
    assert answer.floor > 0.8
    assert "mixture of keys 0 and 1" in answer.why[0]


def test_keys_in_one_place_share() -> None:
    scene = Scene([[1, 0], [1, 0], [0, 1]], np.eye(3).tolist())
    answer = find_query(scene, Select(0))
    assert answer.verdict == "impossible"
    assert answer.error == pytest.approx(np.sqrt(0.5), abs=0.01)
    assert find_query(scene, Average((0, 1))).verdict == "limit"


def test_an_output_outside_the_hull() -> None:
    answer = find_query(FOUR, Output((1.0, 1.0, 1.0)))
    assert answer.verdict == "impossible"
    assert answer.floor == pytest.approx(np.linalg.norm([0.06, 0.8, 0.72]), rel=1e-6)
    assert "outside their hull" in answer.why[0]


def test_an_output_that_many_weights_give() -> None:
    """Values on a line: keys that cannot be selected may still give the value of one of them."""
    scene = Scene([[-1], [0], [1]], [[0.0], [1.0], [2.0]])
    answer = find_query(scene, Select(1))
    assert answer.verdict == "exact"
    assert answer.error < 1e-9
    assert any("many weights" in reason for reason in answer.why)


def test_an_output_with_one_mixture_only_is_held_to_it() -> None:
    inside = 0.4 * FOUR.V_nm[0] + 0.3 * FOUR.V_nm[1] + 0.2 * FOUR.V_nm[2] + 0.1 * FOUR.V_nm[3]
    answer = find_query(FOUR, Output(tuple(inside)))
    assert answer.verdict == "exact"
    np.testing.assert_allclose(answer.weights, [0.4, 0.3, 0.2, 0.1], atol=1e-9)
    edge = find_query(FOUR, Output(tuple((FOUR.V_nm[2] + FOUR.V_nm[3]) / 2)))
    assert edge.verdict == "limit"


def test_one_key_is_all_there_is() -> None:
    scene = Scene([[1, 2]], [[3, 4]])
    assert find_query(scene, Select(0)).verdict == "exact"
    assert find_query(scene, Output((0, 0))).floor == pytest.approx(5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["select", "4"], "there is no key 4"),
        (["select", "0", "1"], "takes the number of one key"),
        (["select", "one"], "'one' is not the number of a key"),
        (["average", "1", "1"], "named twice"),
        (["weights", "1", "0"], "the weights has 2 numbers|the weights .* 4 numbers"),
        (["weights", "1", "-1", "0", "0"], "below zero"),
        (["weights", "0", "0", "0", "0"], "all weights are zero"),
        (["output", "1", "2"], "3 numbers"),
        (["output", "1", "2", "nan"], "nan"),
        (["identity", "3"], "takes no numbers"),
        (["avrage"], "did you mean 'average'"),
    ],
)
def test_what_is_wrong_is_said(words: list[str], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        [find_query(FOUR, wish) for wish in wishes(words, FOUR)]


@pytest.mark.parametrize("tolerance", [0, -1, float("inf"), float("nan")])
def test_a_tolerance_is_a_distance(tolerance: float) -> None:
    with pytest.raises(RequestError, match="tolerance"):
        find_query(FOUR, Select(0), tolerance)


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        ([], [], "no keys"),
        ([[1]], [[1], [2]], "1 keys and 2 values"),
        ([[1, 2], [1]], [[1], [2]], "not of one length: 1, 2"),
        ([["a"]], [[1]], "numbers are wanted"),
        ([[float("nan")]], [[1]], "nan"),
        ([[1e12]], [[1]], "1e9"),
        ([[0]] * 65, [[0]] * 65, "up to 64"),
    ],
)
def test_a_scene_that_is_none(keys: Any, values: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        Scene(keys, values)
