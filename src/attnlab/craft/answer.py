"""What came of a wish: how far it can be met, with which query, and why not further."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from attnlab.craft.scene import Array

Verdict = Literal["exact", "limit", "impossible"]


@dataclass(frozen=True)
class Answer:
    """How far a wish can be met.

    `exact`: the query (or key) does it. `limit`: none does, but growing ones come as near as is asked; the
    one shown is within the tolerance. `impossible`: nothing comes nearer than `floor`; the nearest is
    shown.
    """

    wish: str
    verdict: Verdict
    vector: Array  # the query, or the key that was free
    scores: Array
    weights: Array
    output: Array
    target: Array
    tolerance: float
    floor: float  # proved: the error of every query is at least this (or, for a limit, above it)
    why: tuple[str, ...]
    of: str = "query"
    direction: Array | None = None  # of a limit: vector = start + scale · direction
    scale: float | None = None

    @property
    def error(self) -> float:
        """The Euclidean distance between output and target."""
        return float(np.linalg.norm(self.output - self.target))

    @property
    def solved(self) -> bool:
        """Whether the output is within the tolerance of the target."""
        return self.error <= self.tolerance * (1 + 1e-9)

    @property
    def headline(self) -> str:
        """The verdict in a sentence."""
        within = f"within {self.tolerance:g}" if self.solved else f"not within {self.tolerance:g}"
        return {
            "exact": f"{self.wish}: exact, with this {self.of}",
            "limit": f"{self.wish}: in the limit of a growing {self.of}; this one is {within}",
            "impossible": f"{self.wish}: out of reach; the nearest {self.of} found is off by "
            f"{self.error:.4g}, {within}",
        }[self.verdict]

    def plain(self) -> dict[str, Any]:
        lists = {
            name: getattr(self, name).tolist() for name in ("vector", "scores", "weights", "output", "target")
        }
        return {
            "wish": self.wish,
            "verdict": self.verdict,
            "solved": self.solved,
            "of": self.of,
            **lists,
            "error": self.error,
            "tolerance": self.tolerance,
            "floor": self.floor,
            "direction": None if self.direction is None else self.direction.tolist(),
            "scale": self.scale,
            "why": list(self.why),
        }

    def __str__(self) -> str:
        from attnlab.craft.words import as_text

        return as_text(self)
