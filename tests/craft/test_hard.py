"""Argmax attention has no gradient: against PyTorch, and against a softmax, which has one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnlab.attention import Argmax
from attnlab.craft import BEST_KEY, FOUR, Scene, hard_attention

QUERY = (-2.0, 1.0, 1.0)


def test_the_output_is_the_best_keys_value_and_nothing_moves_it() -> None:
    found = hard_attention(BEST_KEY, QUERY)
    assert found.best == 0
    assert found.output.tolist() == [3, 2, -4]
    assert found.scores.tolist() == [3, 1, 1, -3]
    assert not found.gradient_md.any()
    assert not found.key_gradient.any()
    assert "exactly zero" in str(found)


def test_pytorch_agrees_that_no_gradient_arrives() -> None:
    q = torch.tensor([[QUERY]], dtype=torch.float64, requires_grad=True)
    K = torch.tensor(BEST_KEY.keys, dtype=torch.float64, requires_grad=True)
    V = torch.tensor(BEST_KEY.values, dtype=torch.float64)
    weights = Argmax()((q @ K.T)[None], torch.ones(1, 1, 1, 4, dtype=torch.bool))
    output = weights @ V
    assert output.flatten().tolist() == [3, 2, -4]
    for x in (q, K):
        gradient = (
            torch.autograd.grad(output.sum(), x, retain_graph=True, allow_unused=True)[0]
            if (output.requires_grad)
            else None
        )
        assert gradient is None or not gradient.any()


def test_the_softmaxs_gradient_is_pytorchs() -> None:
    found = hard_attention(FOUR, QUERY)
    q = torch.tensor(QUERY, dtype=torch.float64)
    K, V = (torch.tensor(x, dtype=torch.float64) for x in (FOUR.keys, FOUR.values))
    jacobian = torch.autograd.functional.jacobian(lambda x: torch.softmax(K @ x, 0) @ V, q)
    np.testing.assert_allclose(found.soft_gradient_md, jacobian.numpy(), atol=1e-12)
    assert np.abs(found.soft_gradient_md).max() > 0.1


@pytest.mark.parametrize("seed", range(5))
def test_the_radii_are_as_far_as_nothing_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scene = Scene(rng.normal(size=(5, 3)).tolist(), rng.normal(size=(5, 2)).tolist())
    query = rng.normal(size=3)
    found = hard_attention(scene, query)
    directions = rng.normal(size=(4000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    stays = (query + 0.999 * found.radius * directions) @ scene.K_nd.T
    assert (stays.argmax(1) == found.best).all()
    goes = (query + 1.1 * found.radius * directions) @ scene.K_nd.T
    assert (goes.argmax(1) != found.best).any()
    for i in range(scene.size):
        moved = scene.K_nd[i] + 0.999 * found.key_radii[i] * directions
        scores = np.repeat(found.scores[None], len(moved), 0)
        scores[:, i] = moved @ query
        assert (scores.argmax(1) == found.best).all()


def test_a_tie_is_said() -> None:
    found = hard_attention(Scene([[1, 0], [1, 0]], [[1], [2]]), [1, 1])
    assert found.ties == (1,)
    assert "ties with 1" in str(found)
