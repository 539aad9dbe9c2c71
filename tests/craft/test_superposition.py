"""Two values in one output, and one taken out again."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.craft import Scene, superpose, take_out, taking_out
from attnlab.craft.superposition import example
from attnlab.errors import RequestError


def test_the_mean_comes_as_the_scale_grows() -> None:
    scene, _ = example()
    found = [superpose(scene, 0, 3, beta) for beta in (0.0, 1.0, 4.0, 8.0, 16.0)]
    errors = [one.error for one in found]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-6
    for one in found:  # β for the two, 0 for the others
        assert one.weights[0] == pytest.approx(1 / (2 + 2 * np.exp(-one.beta)))
        assert one.weights[0] == pytest.approx(one.weights[3])


@pytest.mark.parametrize("seed", range(5))
def test_a_value_in_its_own_subspace_is_recovered(seed: int) -> None:
    scene, plane = example(seed)
    M = taking_out(plane)
    np.testing.assert_allclose(M, 2 * plane.T @ plane, atol=1e-12)
    mean = superpose(scene, 0, 1, 60.0).output
    np.testing.assert_allclose(M @ mean, scene.V_nm[0], atol=1e-9)
    assert take_out(M, scene.V_nm[0], scene.V_nm[1]).is_exact


def test_directions_need_not_be_orthonormal() -> None:
    _, plane = example()
    skewed = np.array([[2.0, 1.0], [0.5, -3.0], [2.5, -2.0]]) @ plane
    np.testing.assert_allclose(taking_out(skewed), taking_out(plane), atol=1e-12)


def test_what_is_lost_and_what_is_added() -> None:
    rng = np.random.default_rng(0)
    basis, v_a, v_b = rng.normal(size=(2, 4)), rng.normal(size=4), rng.normal(size=4)
    found = take_out(taking_out(basis), v_a, v_b)
    np.testing.assert_allclose(found.recovered, v_a - found.lost + found.added)
    assert not found.is_exact
    assert np.abs(basis @ found.lost).max() < 1e-12


@pytest.mark.parametrize(
    ("keys", "a", "b", "message"),
    [
        ([[1, 0], [1, 1]], 0, 1, "key 1 has length 1.414|not at right angles"),
        ([[2, 0], [0, 1]], 0, 1, "key 0 has length 2"),
        ([[1, 0], [0, 1]], 0, 0, "two different keys"),
        ([[1, 0], [0, 1]], 0, 5, "there is no key 5"),
    ],
)
def test_what_is_wrong_is_said(keys: list[list[float]], a: int, b: int, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        superpose(Scene(keys, keys), a, b, 1.0)


def test_a_subspace_of_nothing() -> None:
    with pytest.raises(RequestError, match="all zero"):
        taking_out([[0, 0]])
    with pytest.raises(RequestError, match="3 numbers"):
        take_out(taking_out([[1, 0, 0]]), [1, 2], [1, 2])
