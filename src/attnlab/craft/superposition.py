"""Two values in one output, and how to take one out of it again.

With keys of length one at right angles, the query β · (k_a + k_b) scores those two β and all others 0: as β
grows, the output is the mean of v_a and v_b. Their sum is all that is left, unless they live in different
subspaces: with v_a in the span of A's orthonormal columns and v_b at right angles to it, M = 2 · A · Aᵀ
takes v_a out of the mean.

Shapes: n keys, d their width, m width of a value, r dimensions of a subspace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from attnlab.craft.polytope import TINY, size_of
from attnlab.craft.scene import Array, Scene, table, vector
from attnlab.craft.words import in_brackets
from attnlab.errors import RequestError


@dataclass(frozen=True)
class Superposed:
    """The mean of two values, as attention gives it at some scale."""

    a: int
    b: int
    beta: float
    query: Array
    weights: Array
    output: Array
    target: Array

    @property
    def error(self) -> float:
        return float(np.linalg.norm(self.output - self.target))

    def __str__(self) -> str:
        both = self.weights[self.a] + self.weights[self.b]
        return (
            f"query {self.beta:g} · (k{self.a} + k{self.b}): the two share {both:.6f} of the weight; "
            f"output {in_brackets(self.output)}, {self.error:.3g} from the mean of v{self.a} and v{self.b}"
        )


def superpose(scene: Scene, a: int, b: int, beta: float) -> Superposed:
    """The query β · (k_a + k_b) on keys of length one at right angles."""
    scene.index(a), scene.index(b)
    if a == b:
        raise RequestError(f"two different keys are wanted, not key {a} twice")
    K_nd = np.asarray(scene.keys)
    off = np.abs(K_nd @ K_nd.T - np.eye(scene.size))
    if off.max() > 1e-6:
        i, j = np.unravel_index(int(np.argmax(off)), off.shape)
        what = (
            f"key {i} has length {np.linalg.norm(K_nd[i]):.4g}"
            if i == j
            else (f"keys {i} and {j} are not at right angles (their product is {K_nd[i] @ K_nd[j]:.4g})")
        )
        raise RequestError(f"superposition wants keys of length one at right angles: {what}")
    query = beta * (K_nd[a] + K_nd[b])
    target = (scene.V_nm[a] + scene.V_nm[b]) / 2
    return Superposed(a, b, beta, query, scene.weights(query), scene.output(query), target)


def taking_out(basis: ArrayLike) -> Array:
    """M = 2 · A · Aᵀ for the subspace that the rows of `basis` span: it takes a value in that subspace out
    of its mean with one at right angles to it. The rows need not be orthonormal; they are made so first."""
    rows_rm = table("directions of the subspace", basis)
    _, sizes, across = np.linalg.svd(rows_rm, full_matrices=False)
    A_mr = across[sizes > TINY * size_of(rows_rm) * max(rows_rm.shape)].T
    if not A_mr.size:
        raise RequestError("the directions of the subspace are all zero")
    M_mm: Array = 2 * A_mr @ A_mr.T
    return M_mm


@dataclass(frozen=True)
class TakenOut:
    """What M makes of a mean, and what is wrong with it: a part of v_a that lies outside the subspace is
    lost, and the part of v_b that lies inside is added."""

    recovered: Array
    lost: Array
    added: Array

    @property
    def error(self) -> float:
        return float(np.linalg.norm(self.added - self.lost))

    @property
    def is_exact(self) -> bool:
        return self.error <= 1e-9 * size_of(self.recovered)


def take_out(M_mm: Array, v_a: ArrayLike, v_b: ArrayLike) -> TakenOut:
    """M applied to the mean of two values: M (v_a + v_b) / 2 = v_a - lost + added."""
    width = len(M_mm)
    a_m = vector("the first value", v_a, width, "as the subspace's directions do")
    b_m = vector("the second value", v_b, width, "as the subspace's directions do")
    P_mm = M_mm / 2
    return TakenOut(M_mm @ (a_m + b_m) / 2, a_m - P_mm @ a_m, P_mm @ b_m)


def example(seed: int = 0) -> tuple[Scene, Array]:
    """Four orthonormal keys; v0 and v2 in one plane of four dimensions, v1 and v3 in the plane across it;
    and the directions of the first plane."""
    rng = np.random.default_rng(seed)
    keys = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    frame = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    planes = frame[:2], frame[2:]
    values = [rng.normal(size=2) @ planes[i % 2] for i in range(4)]
    return Scene(keys.tolist(), [v.tolist() for v in values]), planes[0]
