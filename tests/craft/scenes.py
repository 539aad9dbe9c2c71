"""Random keys and values for hypothesis, some of them degenerate on purpose."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from attnlab.craft import Scene
from attnlab.craft.scene import Array


@st.composite
def scenes(draw: st.DrawFn, keys: tuple[int, int] = (2, 6), width: tuple[int, int] = (1, 3)) -> Scene:
    """Keys in general position, or on a small grid, where they coincide, line up and lie within one
    another."""
    n, d, m = draw(st.integers(*keys)), draw(st.integers(*width)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    on_grid = draw(st.booleans())
    K = rng.integers(-2, 3, (n, d)).astype(float) if on_grid else rng.normal(size=(n, d))
    return Scene(K.tolist(), rng.normal(size=(n, m)).tolist())


@st.composite
def mixtures(draw: st.DrawFn, n: int) -> Array:
    """Weights that add up to one, some of them zero."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = rng.dirichlet(np.ones(n))
    weights[rng.permutation(n)[: draw(st.integers(0, n - 1))]] = 0.0
    return weights / weights.sum()


def far_and_near(scene: Scene, count: int, seed: int = 0) -> Array:
    """Many queries of all lengths."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(count, scene.K_nd.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * rng.gamma(1.0, 8.0, (count, 1))


def outputs(scene: Scene, queries: Array) -> Array:
    scores = queries @ scene.K_nd.T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return (weights / weights.sum(1, keepdims=True)) @ scene.V_nm
