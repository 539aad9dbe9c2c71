"""The query that does what is wanted, or the nearest to it there is.

Shapes: n keys, d their width, m width of a value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from attnlab.craft import words
from attnlab.craft.answer import Answer, Verdict
from attnlab.craft.family import Projection, project
from attnlab.craft.nearest import nearest_output
from attnlab.craft.polytope import nearest_in_hull, rank_of
from attnlab.craft.scene import Array, Scene, softmax
from attnlab.craft.wish import Wish
from attnlab.errors import RequestError

TOLERANCE = 0.05


def find_query(scene: Scene, wish: Wish, tolerance: float = TOLERANCE) -> Answer:
    """A query for a wish: the shortest that meets it, one that is within the tolerance of a limit, or the
    nearest there is, each with the reasons."""
    if not 0 < tolerance < float("inf"):
        raise RequestError(f"the tolerance is {tolerance!r}: a distance above 0 is wanted")
    weights_n, target_m = wish.weights(scene), wish.output(scene)
    if weights_n is None:
        weights_n = _only_weights(scene, target_m)
    if weights_n is not None:
        projection = project(scene.K_nd, weights_n)
        if projection.is_wanted:
            return _reached(scene, wish, tolerance, projection)
        return _not_reached(scene, wish, tolerance, words.why_no_weights(projection, weights_n))
    return _not_reached(scene, wish, tolerance, ())


def _only_weights(scene: Scene, target_m: Array) -> Array | None:
    """The weights that mix the values into a target, where there are none other: where the values are corners
    of a simplex and the target lies in it."""
    if rank_of(scene.V_nm) < scene.size - 1:
        return None
    mixture_n, distance = nearest_in_hull(scene.V_nm, target_m)
    if distance:
        return None
    mixture_n[mixture_n < 1e-9] = 0.0  # of a target on the border of the values' hull
    return mixture_n / mixture_n.sum()


def _reached(scene: Scene, wish: Wish, tolerance: float, projection: Projection) -> Answer:
    face = projection.face
    if projection.is_attained:
        return _answer(scene, wish, "exact", projection.query_d, tolerance, 0.0, words.why_exact(projection))
    start_d, target_m = projection.query_d, wish.output(scene)
    scale = scale_within(scene, start_d, face.direction, target_m, tolerance)
    why = words.why_limit(projection, scale, tolerance)
    query_d = start_d + scale * face.direction
    return _answer(scene, wish, "limit", query_d, tolerance, 0.0, why, face.direction, scale)


def _not_reached(scene: Scene, wish: Wish, tolerance: float, why: tuple[str, ...]) -> Answer:
    """The weights that were wanted are out of reach, or any will do: what comes nearest to the output?"""
    target_m = wish.output(scene)
    near = nearest_output(scene, target_m)
    finite = len(near.face.members) == scene.size
    said = (*why, *words.why_nearest(near, tolerance))
    if finite:
        verdict: Verdict = "impossible" if near.distance else "exact"
        return _answer(scene, wish, verdict, near.query_d, tolerance, near.floor, said)
    limit_m = near.weights_n @ scene.V_nm
    # Near enough to what the query tends to: within the tolerance where the limit itself is, else closely.
    room = tolerance - near.distance if near.distance < tolerance else max(1e-3, 0.01 * near.distance)
    scale = scale_within(scene, near.query_d, near.face.direction, limit_m, room)
    query_d = near.query_d + scale * near.face.direction
    verdict = "impossible" if near.distance else "limit"
    return _answer(scene, wish, verdict, query_d, tolerance, near.floor, said, near.face.direction, scale)


def _answer(
    scene: Scene,
    wish: Wish,
    verdict: Verdict,
    query_d: Array,
    tolerance: float,
    floor: float,
    why: tuple[str, ...],
    direction_d: Array | None = None,
    scale: float | None = None,
) -> Answer:
    return Answer(
        wish=str(wish),
        verdict=verdict,
        vector=query_d,
        scores=scene.scores(query_d),
        weights=scene.weights(query_d),
        output=scene.output(query_d),
        target=wish.output(scene),
        tolerance=tolerance,
        floor=floor,
        why=why,
        direction=direction_d,
        scale=scale,
    )


def scale_within(
    scene: Scene, start_d: Array, direction_d: Array, target_m: Array, tolerance: float
) -> float:
    """The least scale from which on `start + scale · direction` stays within the tolerance of a target that
    it tends to. The keys that are left behind weigh less and less, which bounds the error from some scale
    on; before that it is followed step by step."""

    def error(scale: float) -> float:
        return float(np.linalg.norm(scene.output(start_d + scale * direction_d) - target_m))

    def bound(scale: float) -> float:
        """Nothing further out has a larger error."""
        query_d = start_d + scale * direction_d
        lead_n = scene.K_nd @ direction_d
        behind_n = lead_n < lead_n.max() - 0.5  # a direction of a face leaves the others behind by 1 at least
        return float(scene.weights(query_d)[behind_n].sum()) * farthest

    farthest = float(np.linalg.norm(scene.V_nm - target_m, axis=1).max())
    beyond = 1.0
    while bound(beyond) > tolerance:
        beyond *= 2
    steps = np.linspace(0.0, beyond, 2001)
    scores_in = (start_d + steps[:, None] * direction_d) @ scene.K_nd.T
    errors_i = np.linalg.norm(softmax(scores_in) @ scene.V_nm - target_m, axis=1)
    outside = np.flatnonzero(errors_i > tolerance)
    if not len(outside):
        return 0.0
    last = int(outside[-1])
    if last == len(steps) - 1:  # only by rounding: the bound is tight there
        return beyond
    return _root(lambda scale: error(scale) - tolerance, steps[last], steps[last + 1])


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function falls through zero; on the side where it is not above."""
    at = float(brentq(function, low, high, xtol=1e-12))
    return at if function(at) <= 0 else min(high, at * (1 + 1e-9) + 1e-12)
