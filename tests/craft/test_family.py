"""The weights that queries have: exact conditions against scipy's descent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from attnlab.craft import Scene
from attnlab.craft.family import divergence, project

from .scenes import far_and_near, mixtures, scenes


@settings(max_examples=100, deadline=None)
@given(scenes(), st.data())
def test_the_nearest_weights_are_their_own_proof(scene: Scene, data: Any) -> None:
    wanted = data.draw(mixtures(scene.size))
    found = project(scene.K_nd, wanted)
    assert found.moment_gap < 1e-8
    assert found.weights_n.sum() == pytest.approx(1)
    # The split of D(wanted ‖ w), for queries of our own choosing: it never falls below.
    for query in far_and_near(scene, 20):
        weights = scene.weights(query)
        if (weights[wanted > 0] > 0).all():
            whole = divergence(wanted, weights)
            assert whole == pytest.approx(
                found.divergence + divergence(found.weights_n, weights), rel=1e-6, abs=1e-6
            )
            assert whole >= found.divergence - 1e-9


@settings(max_examples=40, deadline=None)
@given(scenes(), st.data())
def test_scipy_does_not_come_nearer(scene: Scene, data: Any) -> None:
    wanted = data.draw(mixtures(scene.size))
    best = minimize(
        lambda q: float(logsumexp(scene.scores(q)) - wanted @ scene.scores(q)),
        np.zeros(scene.K_nd.shape[1]),
        jac=lambda q: scene.K_nd.T @ (scene.weights(q) - wanted),
        method="BFGS",
        options={"gtol": 1e-9, "maxiter": 3000},
    )
    on = wanted > 0
    entropy = float(wanted[on] @ np.log(wanted[on]))
    found = project(scene.K_nd, wanted).divergence
    assert found <= entropy + best.fun + 1e-6
    assert found == pytest.approx(entropy + best.fun, abs=2e-3)  # of a limit, a descent sees only so much


@settings(max_examples=60, deadline=None)
@given(scenes(), st.data())
def test_what_a_query_gives_is_found_again_and_no_longer_query_than_that(scene: Scene, data: Any) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    query = rng.normal(size=scene.K_nd.shape[1])
    found = project(scene.K_nd, scene.weights(query))
    assert found.is_wanted
    assert found.is_attained
    np.testing.assert_allclose(scene.weights(found.query_d), scene.weights(query), atol=1e-8)
    assert np.linalg.norm(found.query_d) <= np.linalg.norm(query) + 1e-6


def test_a_relation_that_the_wanted_weights_break() -> None:
    square = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    found = project(square, np.array([0.4, 0.3, 0.2, 0.1]))
    assert not found.is_wanted
    assert found.relation_n is not None
    np.testing.assert_allclose(np.abs(found.relation_n), 1, atol=1e-9)
    assert found.relation_n[0] == pytest.approx(found.relation_n[1]) == pytest.approx(-found.relation_n[2])
    for query in far_and_near(Scene(square.tolist(), square.tolist()), 50):
        scores = square @ query
        assert found.relation_n @ (scores - logsumexp(scores)) == pytest.approx(0, abs=1e-9)
