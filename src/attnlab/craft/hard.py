"""Attention that takes the best key only, and the gradient that it does not have.

The output is the best key's value. It stays the same, to the last bit, while the query (or a key) moves by
less than it takes for another key to become the best. A function that is constant around a point has the
derivative zero there: no gradient reaches the query or the keys, and nothing that follows gradients ever
moves them. (Where two keys tie the output jumps, and there is no derivative at all.)

Shapes: n keys, d their width, m width of a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from attnlab.craft.scene import Array, Scene
from attnlab.craft.words import in_brackets, weight_table


@dataclass(frozen=True)
class Hard:
    """What argmax attention does with a query, how firmly, and how it would have been with a softmax."""

    best: int
    ties: tuple[int, ...]  # keys that score as much
    scores: Array
    output: Array
    radius: float  # by how much the query may move, in whatever direction, before the output changes
    key_radii: Array  # the same for every key
    gradient_md: Array  # of the output by the query, by finite differences
    key_gradient: Array  # (m, n, d)
    soft_output: Array
    soft_gradient_md: Array  # of the softmax's output by the query, in closed form

    def __str__(self) -> str:
        weights = np.zeros(len(self.scores))
        weights[self.best] = 1.0
        lines = [
            "argmax attention: all the weight on the best key",
            *weight_table(self.scores, weights),
            f"  output  {in_brackets(self.output)}, value {self.best}",
            f"  gradient of the output by the query, largest part: {_largest(self.gradient_md):g}; by the "
            f"keys: "
            f"{_largest(self.key_gradient):g}",
        ]
        if self.ties:
            tied = ", ".join(map(str, self.ties))
            lines.append(
                f"  · Key {self.best} ties with {tied}: the first one is taken, and the output jumps here."
            )
        else:
            lines += [
                f"  · The query can move by {self.radius:.4g} in any direction, and a key by "
                f"{self.key_radii.min():.4g}, before another",
                "    key is the best. Until then nothing changes, so every derivative is exactly zero: it "
                "cannot be",
                "    trained through.",
            ]
        lines.append(
            f"  · With a softmax the output is {in_brackets(self.soft_output)}, and its gradient by the "
            f"query has "
            f"parts up to {_largest(self.soft_gradient_md):.4g}."
        )
        return "\n".join(lines)


def hard_attention(scene: Scene, query: ArrayLike) -> Hard:
    """Argmax attention for a query: the output of the best key (the first, of several)."""
    q_d = scene.query(query)
    scores = scene.scores(q_d)
    best = int(np.argmax(scores))
    gaps = scores[best] - scores
    apart = np.linalg.norm(scene.K_nd[best] - scene.K_nd, axis=1)
    others = np.arange(scene.size) != best
    radius = float((gaps[others] / np.maximum(apart[others], 1e-300)).min()) if others.any() else np.inf
    length = float(np.linalg.norm(q_d)) * scene.scale
    key_radii = np.where(others, gaps, gaps[others].min() if others.any() else np.inf) / (length or 1e-300)
    step = 0.5 * min(1.0, radius, float(key_radii.min())) or 1e-6
    weights = scene.weights(q_d)
    soft = weights @ scene.V_nm
    return Hard(
        best=best,
        ties=tuple(np.flatnonzero(others & (gaps == 0)).tolist()),
        scores=scores,
        output=scene.V_nm[best],
        radius=radius,
        key_radii=key_radii,
        gradient_md=_differences(lambda x: _hard(scene.K_nd, x, scene.V_nm), q_d, step),
        key_gradient=_differences(
            lambda x: _hard(x.reshape(scene.K_nd.shape) * scene.scale, q_d, scene.V_nm),
            np.asarray(scene.keys).ravel(),
            step,
        ).reshape(-1, *scene.K_nd.shape),
        soft_output=soft,
        soft_gradient_md=(scene.V_nm - soft).T @ (weights[:, None] * scene.K_nd),
    )


def _hard(K_nd: Array, q_d: Array, V_nm: Array) -> Array:
    value_m: Array = V_nm[int(np.argmax(K_nd @ q_d))]
    return value_m


def _differences(function: Callable[[Array], Array], x: Array, step: float) -> Array:
    """Central differences of every output by every input."""
    columns = []
    for i in range(x.size):
        moved = np.zeros(x.size)
        moved[i] = step
        columns.append((function(x + moved) - function(x - moved)) / (2 * step))
    return np.stack(columns, axis=1)


def _largest(x: Array) -> float:
    return float(np.abs(x).max())
