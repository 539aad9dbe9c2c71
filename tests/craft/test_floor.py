"""What is said to be the nearest output is: against very many queries, and a twin that lies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from attnlab.craft import Scene
from attnlab.craft.floor import Boxes, proved_floor, relations_among
from attnlab.craft.nearest import faces, nearest_output
from attnlab.craft.polytope import face_of

from .scenes import far_and_near, outputs, scenes


@settings(max_examples=25, deadline=None)
@given(scenes(keys=(2, 5), width=(1, 2)))
def test_no_query_is_nearer_than_the_floor(scene: Scene) -> None:
    target = np.random.default_rng(1).dirichlet(np.full(scene.size, 0.5)) @ scene.V_nm
    found = nearest_output(scene, target)
    tried = np.linalg.norm(outputs(scene, far_and_near(scene, 4000)) - target, axis=1).min()
    assert found.floor <= tried + 1e-9
    assert found.distance <= tried + 1e-6
    assert found.floor <= found.distance + 1e-9
    assert found.floor >= 0.98 * found.distance - 1e-6


def test_a_midpoint_gets_a_third_at_most() -> None:
    """Keys -1, 0, 1 on a line: w1² = w0 · w2 for every query, so w1 is 1/3 at best."""
    scene = Scene([[-1], [0], [1]], np.eye(3).tolist())
    found = nearest_output(scene, np.array([0.0, 1.0, 0.0]))
    assert found.weights_n == pytest.approx(np.full(3, 1 / 3))
    assert found.distance == pytest.approx(np.sqrt(2 / 3))
    assert 0.979 * found.distance < found.floor <= found.distance


def test_the_proof_refuses_a_distance_that_is_too_large() -> None:
    """Were a worse output taken for the best, boxes with nearer ones would stay open: the floor gives way."""
    keys, values = np.array([[-1.0], [0], [1]]), np.eye(3)
    apart = values - np.array([0.0, 1.0, 0.0])
    assert proved_floor(keys, apart, best=1.0, gap=0.01, most=500) <= np.sqrt(2 / 3)


@settings(max_examples=40, deadline=None)
@given(scenes())
def test_relations_hold_for_all_scores_and_boxes_keep_them(scene: Scene) -> None:
    relations = relations_among(scene.K_nd)
    scores = far_and_near(scene, 200) @ scene.K_nd.T
    for keys, factors in relations:
        assert factors.sum() == pytest.approx(0, abs=1e-9)
        assert np.abs(scores[:, list(keys)] @ factors).max() < 1e-6
    best = scores.argmax(1)
    for i in set(best.tolist()):
        below = (scores - scores[:, [i]])[best == i]
        low = np.full((1, scene.size), -np.inf)
        low[0, i] = 0.0
        boxes = Boxes(low, np.zeros((1, scene.size)))
        for _ in range(4):
            boxes = boxes.narrowed(relations).halved()
        inside = (below[:, None] >= boxes.low_bn - 1e-7) & (below[:, None] <= boxes.high_bn + 1e-7)
        assert inside.all(2).any(1).all()


def test_a_bound_is_below_every_output_of_its_box() -> None:
    rng = np.random.default_rng(3)
    apart = rng.normal(size=(5, 3))
    ends = np.sort(rng.normal(-1, 1, size=(30, 2, 5)), axis=1)
    boxes = Boxes(ends[:, 0], ends[:, 1])
    bounds = boxes.bounds(apart)
    assert (bounds > 0.05).any()
    for _ in range(500):
        weights = np.exp(rng.uniform(boxes.low_bn, boxes.high_bn))
        weights /= weights.sum(1, keepdims=True)
        assert (np.linalg.norm(weights @ apart, axis=1) >= bounds - 1e-12).all()


@settings(max_examples=30, deadline=None)
@given(scenes(keys=(2, 5), width=(1, 2)))
def test_every_face_is_gone_through(scene: Scene) -> None:
    import itertools

    found = {face.members for face in faces(scene.K_nd)}
    for count in range(1, scene.size + 1):
        for chosen in itertools.combinations(range(scene.size), count):
            assert face_of(scene.K_nd, chosen).members in found
