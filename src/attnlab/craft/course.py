"""A short course in attention by hand: tasks that know when they are solved, hints, and the solutions.

The solutions are not written down: they are worked out, like the answer to any other wish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from attnlab.craft.answer import Answer
from attnlab.craft.change import find_key
from attnlab.craft.polytope import face_of
from attnlab.craft.query import TOLERANCE, find_query
from attnlab.craft.scene import FOUR, Scene
from attnlab.craft.wish import Average, Select, Wish

Free = Literal["query", "key"]


@dataclass(frozen=True)
class Task:
    """Something to bring about by hand: what may be moved, and what should come out."""

    name: str
    title: str
    text: str
    hints: tuple[str, ...]
    scene: Scene
    wishes: tuple[Wish, ...]  # one for each query
    free: Free = "query"
    query: tuple[float, ...] | None = None  # where it is a key that is free
    key: int | None = None
    length: float | None = None  # that the key must have
    tolerance: float = TOLERANCE

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """How it is done, or how near one can come."""
        if self.free == "query":
            return tuple(find_query(self.scene, wish, self.tolerance) for wish in self.wishes)
        assert self.query is not None
        assert self.key is not None
        found = find_key(
            self.scene, self.query, self.key, self.wishes[0], length=self.length, tolerance=self.tolerance
        )
        return (found,)

    @property
    def goal(self) -> float:
        """The error that counts as solved: the tolerance, or a hair above the best where that is out of
        reach."""
        missed = [1.05 * answer.error for answer in self.answers if not answer.solved]
        return max(missed, default=self.tolerance)

    def plain(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "text": self.text,
            "hints": list(self.hints),
            "keys": [list(k) for k in self.scene.keys],
            "values": [list(v) for v in self.scene.values],
            "scale": self.scene.scale,
            "targets": [wish.output(self.scene).tolist() for wish in self.wishes],
            "wishes": [str(wish) for wish in self.wishes],
            "free": self.free,
            "query": list(self.query) if self.query else None,
            "key": self.key,
            "length": self.length,
            "goal": self.goal,
            "answers": [answer.plain() for answer in self.answers],
        }


# The query that U2 begins with: along the direction that likes k0 and k1 alike and best, 20 long.
_along = face_of(FOUR.K_nd, (0, 1)).direction
TWO = tuple((20 * _along / np.linalg.norm(_along)).tolist())
TRIANGLE = Scene(keys=((1.0, 0.1), (-0.6, 0.9), (-0.5, -1.0)), values=((1.0, 0.0), (0.0, 1.0), (-1.0, -0.5)))
WITHIN = Scene(
    keys=((1.1, 0.0), (-0.7, 0.9), (-0.7, -0.9), (-0.1, 0.0)),
    values=((1.0, 0.2), (-0.6, 0.9), (-0.5, -1.0), (0.6, 1.0)),
)


def course() -> Sequence[Task]:
    """The tasks, in order."""
    return (
        Task(
            name="first",
            title="A query points",
            text="Three keys in a plane, and a value for each. Drag the query until the output is value 1.",
            hints=(
                "A key's score is its product with the query: large where the two point the same way.",
                "Point the query away from the other two keys, and make it longer.",
            ),
            scene=TRIANGLE,
            wishes=(Select(1),),
        ),
        Task(
            name="select",
            title="Select one value",
            text="Four keys in space. Find a query that returns v0.",
            hints=(
                "k0 itself is a good direction: a key is most like itself when all are of one length.",
                "The weights are never exactly 0 or 1. Length is what brings them close: try 5 · k0, then "
                "10 · k0.",
                "Better than k0 is the direction in which k0 is ahead of the second best by as much as can "
                "be.",
            ),
            scene=FOUR,
            wishes=(Select(0),),
        ),
        Task(
            name="average",
            title="Average all values",
            text="Find a query that returns the mean of the four values.",
            hints=(
                "Equal weights need equal scores.",
                "The mean of the keys comes close here, by luck: its products with the keys are nearly "
                "alike.",
                "Which query has the same product with every key, whatever the keys are?",
            ),
            scene=FOUR,
            wishes=(Average(),),
        ),
        Task(
            name="two",
            title="Average the first two",
            text="Find a query that returns the mean of v0 and v1, and leaves the others out.",
            hints=(
                "k0 and k1 should score alike, the others much less.",
                "The sum k0 + k1 likes both. What makes the others vanish?",
                "No finite query does it exactly, since a softmax leaves every key something; 10 · (k0 + "
                "k1) is "
                "near enough.",
            ),
            scene=FOUR,
            wishes=(Average((0, 1)),),
        ),
        Task(
            name="identity",
            title="Copy every value",
            text="Now four queries at once, one for each value: query i should return value i. Choose one, "
            "place it, and go on to the next.",
            hints=(
                "It is the second task four times over.",
                "Query i = S · k_i works for all of them with one large S, as the keys are about equally "
                "long.",
            ),
            scene=FOUR,
            wishes=tuple(Select(i) for i in range(4)),
        ),
        Task(
            name="third",
            title="Let a third one in",
            text="The query stays: it averages v0 and v1. Move only k2, to get the mean of v0, v1 and v2.",
            hints=(
                "Three equal weights need three equal scores, and k2's is the only one you can change.",
                "Only the part of k2 along the query counts. Moving it across changes nothing.",
                "q · k2 has to be what q · k0 and q · k1 are.",
            ),
            scene=FOUR,
            wishes=(Average((0, 1, 2)),),
            free="key",
            query=TWO,
            key=2,
        ),
        Task(
            name="take-over",
            title="Take over",
            text="The same query, and k2 now keeps its length of 1. Turn it so that v2 comes out.",
            hints=(
                "k2 has to score higher than k0 and k1, which point nearly, but not quite, where the query "
                "does.",
                "Of all vectors of one length, which has the largest product with q?",
                "k2 = q / |q|.",
            ),
            scene=FOUR,
            wishes=(Select(2),),
            free="key",
            query=TWO,
            key=2,
            length=1.0,
        ),
        Task(
            name="within",
            title="What cannot be had",
            text="Key 3 lies between the others. Come as near to value 3 as you can.",
            hints=(
                "Key 3 is a mixture of the other keys, so its score is the same mixture of theirs.",
                "A mixture of scores is never above the best of them: whatever the query, some other key "
                "has at "
                "least as much weight.",
                "So the query has to make the best of it: look for the place where no small step helps.",
            ),
            scene=WITHIN,
            wishes=(Select(3),),
        ),
    )
