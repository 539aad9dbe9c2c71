"""The key to change, where the query and the other keys stay: with its length free, or given.

Only one score moves then, so the weights of the others keep their proportions and the output moves on a
segment: from what the others give without the key, to the key's own value. How far along it can come is
decided by the scores the key can have: all, or those from -|q| |k| to |q| |k|.

Shapes: n keys, d their width, m width of a value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logsumexp

from attnlab.craft.answer import Answer, Verdict
from attnlab.craft.query import TOLERANCE
from attnlab.craft.scene import Array, Scene, softmax
from attnlab.craft.wish import Wish
from attnlab.craft.words import in_brackets
from attnlab.errors import RequestError

_SAME = 1e-9


def find_key(
    scene: Scene,
    query: ArrayLike,
    key: int,
    wish: Wish,
    *,
    length: float | None = None,
    tolerance: float = TOLERANCE,
) -> Answer:
    """The key that brings the output of a query as near as can be to what is wanted.

    Of all keys that do, the one nearest to the present key is taken. `length` is what it must have; any
    unless given.
    """
    q_d, j = scene.query(query), scene.index(key)
    if length is not None and not 0 <= length < float("inf"):
        raise RequestError(f"the length is {length!r}: a number from 0 up is wanted")
    if scene.size == 1:
        raise RequestError("there is one key only: its value is the output, whatever the key is")
    line = _Segment(scene, q_d, j)
    size = float(np.linalg.norm(q_d)) * scene.scale
    reach = np.inf if length is None else size * length
    if not size:
        reach = 0.0  # a query of zero scores every key 0
    low, high = line.share(-reach), line.share(reach)
    wanted = line.nearest_share(wish.output(scene), low, high)
    verdict, floor = _verdict(line, wish.output(scene), wanted, reach)
    score = line.score(wanted, reach, wish.output(scene), tolerance)
    k_d = _with_score(np.asarray(scene.keys[j]), q_d, score / scene.scale, length)
    changed = scene.with_key(j, k_d)
    return Answer(
        wish=str(wish),
        verdict=verdict,
        vector=k_d,
        scores=changed.scores(q_d),
        weights=changed.weights(q_d),
        output=changed.output(q_d),
        target=wish.output(scene),
        tolerance=tolerance,
        floor=floor,
        why=tuple(_why(line, j, wanted, score, length, q_d, reach, floor)),
        of="key",
    )


class _Segment:
    """The outputs that one key's score can make: (1 - share) · what the others give + share · its value."""

    def __init__(self, scene: Scene, q_d: Array, j: int) -> None:
        others = np.arange(scene.size) != j
        scores = scene.scores(q_d)[others]
        self.log_others = float(logsumexp(scores))
        self.rest_m = softmax(scores) @ scene.V_nm[others]
        self.value_m = scene.V_nm[j]
        self.others_scores = scores

    def share(self, score: float) -> float:
        """The key's weight at a score."""
        return float(expit(score - self.log_others))

    def at(self, share: float) -> Array:
        out_m: Array = self.rest_m + share * (self.value_m - self.rest_m)
        return out_m

    def nearest_share(self, target_m: Array, low: float, high: float) -> float:
        along_m = self.value_m - self.rest_m
        size = float(along_m @ along_m)
        share = float((target_m - self.rest_m) @ along_m) / size if size > _SAME**2 else 0.0
        return min(max(share, low), high)

    def score(self, share: float, reach: float, target_m: Array, tolerance: float) -> float:
        """The score that gives the key this share; for a share of none or all, one that is within half of the
        tolerance of it."""
        if 0 < share < 1:
            return float(np.clip(np.log(share) - np.log1p(-share) + self.log_others, -reach, reach))
        room = max(tolerance - float(np.linalg.norm(self.at(share) - target_m)), 0.01 * tolerance) / 2
        whole = float(np.linalg.norm(self.value_m - self.rest_m))
        left = min(0.5, room / whole) if whole else 0.5
        edge = np.log(left) - np.log1p(-left)
        return self.log_others + (edge if share <= 0 else -edge)


def _verdict(line: _Segment, target_m: Array, share: float, reach: float) -> tuple[Verdict, float]:
    floor = float(np.linalg.norm(line.at(share) - target_m))
    if floor > _SAME:
        return "impossible", floor
    return ("limit" if share in (0.0, 1.0) and np.isinf(reach) else "exact"), 0.0


def _with_score(k_d: Array, q_d: Array, dot: float, length: float | None) -> Array:
    """The key nearest to `k_d` whose product with the query is `dot`, and whose length is as given."""
    size = float(q_d @ q_d)
    if not size:
        return k_d if length is None else _of_length(k_d, length)
    along_d = dot / size * q_d
    across_d = k_d - (k_d @ q_d) / size * q_d
    if length is None:
        moved_d: Array = along_d + across_d
        return moved_d
    room = np.sqrt(max(0.0, length**2 - float(along_d @ along_d)))
    if np.linalg.norm(across_d) < _SAME and room > _SAME:
        if len(q_d) == 1:
            raise RequestError(
                "a key of one dimension and a given length has two places only: let its length be free"
            )
        across_d = np.linalg.svd(q_d[None])[2][-1]  # any direction across the query will do
    turned_d: Array = along_d + _of_length(across_d, room)
    return turned_d


def _of_length(x_d: Array, length: float) -> Array:
    size = float(np.linalg.norm(x_d))
    if not size:
        x_d, size = np.eye(len(x_d))[0], 1.0
    scaled: Array = length / size * x_d
    return scaled


def _why(
    line: _Segment,
    j: int,
    share: float,
    score: float,
    length: float | None,
    q_d: Array,
    reach: float,
    floor: float,
) -> Sequence[str]:
    said = [
        f"Only the score of key {j} moves: the output stays on the segment from {in_brackets(line.rest_m)}, "
        f"which the others give, to value {j}, {in_brackets(line.value_m)}.",
    ]
    if not np.any(q_d):
        said.append("The query is 0, and scores every key 0: no key changes anything.")
        return said
    if share in (0.0, 1.0) and np.isinf(reach):
        said.append(
            f"Its end is a limit: the weight of key {j} would have to be {share:g}. Score {score:.4g} is "
            f"near "
            "enough."
        )
    elif length is not None and abs(abs(score) - reach) <= 1e-9 * max(1.0, reach):
        said.append(
            f"With length {length:g} its score is at most |q| · {length:g} = {reach:.4g}, where it points "
            f"as the "
            f"query does: k = {length:g} · q / |q|. So its weight is at most {share:.4f}; a longer query "
            f"would let it "
            "have more."
            if score > 0
            else f"With length {length:g} its score is at least -{reach:.4g}, where it points away."
        )
    else:
        others = ", ".join(f"{s:.4g}" for s in line.others_scores)
        said.append(
            f"Its weight should be {share:.4f}, so its score {score:.4g} (the others have {others}). Every "
            f"key "
            f"with q · k = {score:.4g} will do; this is the one nearest to the present key."
        )
    if floor > _SAME:
        said.append(f"The target is {floor:.4g} from all that can be reached on the segment.")
    return said
