"""Which weights a softmax over given keys can have, and which of those come nearest to some that it cannot.

Weights w come from a query exactly if all are above zero and their logarithms, up to a constant, are a
linear function of the keys: if `log w` less its mean lies in the space of the columns of K less its mean.
As queries grow, they tend to weights of the same kind on a face of the keys' hull, with zero elsewhere.

The nearest to wanted weights w* by relative entropy, Σ w* log(w*/w), are those ŵ of the closure with the
same mean key: Kᵀŵ = Kᵀw*. They are found by minimising a convex function, and they are their own proof,
because for whatever query, with weights w, and for them the same sum splits: D(w*‖w) = D(w*‖ŵ) + D(ŵ‖w).

Shapes: n keys, d their width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, xlogy

from attnlab.craft.polytope import TINY, Face, centred, face_of, size_of
from attnlab.craft.scene import Array, softmax

SAME = 1e-9  # relative entropy below which weights are the same


@dataclass(frozen=True)
class Projection:
    """The nearest weights there are to wanted ones, and how a query gets there."""

    weights_n: Array
    query_d: Array  # the shortest that gives them among the keys on the face
    face: Face  # where it has keys beside it, the weights are a limit: query + t · direction, as t grows
    divergence: float  # D(wanted ‖ weights), in nats; no query gets below it
    moment_gap: float  # largest part of Kᵀ(weights - wanted): zero proves that nothing is nearer
    relation_n: Array | None  # r with Σ r log w = 0 for every query, which the wanted weights break

    @property
    def is_wanted(self) -> bool:
        return self.divergence < SAME

    @property
    def is_attained(self) -> bool:
        """Whether a finite query has these weights."""
        return len(self.face.members) == len(self.weights_n)


def project(keys_nd: Array, wanted_n: Array) -> Projection:
    """The weights nearest to the wanted ones among all that queries have or tend to."""
    face = face_of(keys_nd, np.flatnonzero(wanted_n > 0).tolist())
    on = list(face.members)
    K_fd, wanted_f = centred(keys_nd[on]), wanted_n[on]
    query_d, relation_f = _solve(K_fd, wanted_f) if (wanted_f > 0).all() else (None, None)
    if query_d is None:
        query_d = _minimise(K_fd, wanted_f)
    weights_n = np.zeros(len(keys_nd))
    weights_n[on] = softmax(K_fd @ query_d)
    relation_n = None
    if relation_f is not None:
        relation_n = np.zeros(len(keys_nd))
        relation_n[on] = relation_f
    return Projection(
        weights_n=weights_n,
        query_d=query_d,
        face=face,
        divergence=divergence(wanted_n, weights_n),
        moment_gap=float(np.abs(K_fd.T @ (weights_n[on] - wanted_f)).max(initial=0.0)),
        relation_n=relation_n,
    )


def divergence(wanted_n: Array, weights_n: Array) -> float:
    """Relative entropy in nats; infinite where nothing is left for what is wanted."""
    on = wanted_n > 0
    with np.errstate(divide="ignore"):
        found = float(np.sum(xlogy(wanted_n[on], wanted_n[on]) - wanted_n[on] * np.log(weights_n[on])))
    return max(0.0, found)


def _solve(K_fd: Array, wanted_f: Array) -> tuple[Array | None, Array | None]:
    """The shortest query with these weights, or the relation among logarithms that they break."""
    logs_f = np.log(wanted_f)
    logs_f -= logs_f.mean()
    query_d = np.asarray(np.linalg.pinv(K_fd, rcond=TINY * len(K_fd)) @ logs_f, dtype=float)
    left_f = logs_f - K_fd @ query_d
    if np.abs(left_f).max() <= 1e-8 * max(1.0, float(np.abs(logs_f).max())):
        return query_d, None
    return None, left_f / np.abs(left_f).max()


def _minimise(K_fd: Array, wanted_f: Array, steps: int = 200) -> Array:
    """Newton's method on log Σ exp(K q) - w*·K q, which is convex, in the space that the keys span."""
    _, sizes, rows = np.linalg.svd(K_fd, full_matrices=False)
    basis_dr = rows[sizes > TINY * size_of(K_fd) * len(K_fd)].T
    Z_fr = K_fd @ basis_dr
    z_r = np.zeros(basis_dr.shape[1])

    def height(z_r: Array) -> float:
        s_f = Z_fr @ z_r
        return float(logsumexp(s_f) - wanted_f @ s_f)

    for _ in range(steps):
        w_f = softmax(Z_fr @ z_r)
        slope_r = Z_fr.T @ (w_f - wanted_f)
        if not slope_r.size or np.abs(slope_r).max() < 1e-14 * size_of(Z_fr):
            break
        spread_fr = Z_fr - w_f @ Z_fr
        bend_rr = (spread_fr * w_f[:, None]).T @ spread_fr
        step_r = np.linalg.lstsq(bend_rr, -slope_r)[0]
        length, now = 1.0, height(z_r)
        slack = 1e-14 * (
            1 + abs(now)
        )  # close to the bottom, heights no longer differ in the digits there are
        while height(z_r + length * step_r) > now + 1e-4 * length * float(slope_r @ step_r) + slack:
            length /= 2
        z_r = z_r + length * step_r
    query_d: Array = basis_dr @ z_r
    return query_d
