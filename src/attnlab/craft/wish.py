"""What can be wanted of a query: one value, an average, given weights, an output, or a copy of every
value."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.craft.scene import Array, Scene, vector
from attnlab.errors import RequestError, unknown


@dataclass(frozen=True)
class Wish(ABC):
    """Something wanted of one query."""

    @abstractmethod
    def weights(self, scene: Scene) -> Array | None:
        """The weights wanted, one for each key; None where any that give the output will do."""

    def output(self, scene: Scene) -> Array:
        """The output wanted."""
        weights_n = self.weights(scene)
        assert weights_n is not None  # a wish for an output says which
        out_m: Array = weights_n @ scene.V_nm
        return out_m


@dataclass(frozen=True)
class Select(Wish):
    """One value, as it is."""

    key: int

    def weights(self, scene: Scene) -> Array:
        weights_n = np.zeros(scene.size)
        weights_n[scene.index(self.key)] = 1.0
        return weights_n

    def __str__(self) -> str:
        return f"select value {self.key}"


@dataclass(frozen=True)
class Average(Wish):
    """The mean of some values; of all of them when none is named."""

    keys: tuple[int, ...] = ()

    def weights(self, scene: Scene) -> Array:
        keys = self.keys or range(scene.size)
        weights_n = np.zeros(scene.size)
        for key in keys:
            weights_n[scene.index(key)] += 1.0
        if (weights_n > 1).any():
            twice = int(np.argmax(weights_n))
            raise RequestError(f"key {twice} is named twice: use `weights` to let one value count for more")
        return weights_n / weights_n.sum()

    def __str__(self) -> str:
        if not self.keys:
            return "average every value"
        return f"average the values {', '.join(map(str, self.keys))}"


@dataclass(frozen=True)
class Weights(Wish):
    """Given weights, from zero up; they are made to add up to one."""

    given: tuple[float, ...]

    def weights(self, scene: Scene) -> Array:
        weights_n = vector("the weights", self.given, scene.size, "one for each key")
        if (weights_n < 0).any():
            raise RequestError(f"a weight is {weights_n.min():g}: a softmax gives none below zero")
        if weights_n.sum() <= 0:
            raise RequestError("all weights are zero: they should add up to one")
        return weights_n / weights_n.sum()

    def __str__(self) -> str:
        return f"the weights {', '.join(f'{w:g}' for w in self.given)}"


@dataclass(frozen=True)
class Output(Wish):
    """A given output, with whatever weights give it."""

    given: tuple[float, ...]

    def weights(self, scene: Scene) -> None:
        return None

    def output(self, scene: Scene) -> Array:
        return vector("the output", self.given, scene.V_nm.shape[1], "as the values do")

    def __str__(self) -> str:
        return f"the output {', '.join(f'{x:g}' for x in self.given)}"


KINDS = ("select", "average", "weights", "output", "identity")  # and `superpose`, which takes two keys


def wishes(words: Sequence[str], scene: Scene) -> tuple[Wish, ...]:
    """What some words ask for: `select 0`, `average 0 1`, `weights .5 .5 0 0`, `output .1 .2 .3`, `identity`.

    Numbers may stand apart or be joined by commas. One wish for each query; the identity is one for each
    value.
    """
    kind, *rest = words
    numbers = [word for text in rest for word in re.split(r"[,\s]+", text) if word]
    if kind == "select":
        if len(numbers) != 1:
            raise RequestError(
                f"`select` takes the number of one key, not {len(numbers)}; see also `average`"
            )
        found: tuple[Wish, ...] = (Select(_whole(numbers[0])),)
    elif kind == "average":
        found = (Average(tuple(map(_whole, numbers))),)
    elif kind == "weights":
        found = (Weights(tuple(map(_number, numbers))),)
    elif kind == "output":
        found = (Output(tuple(map(_number, numbers))),)
    elif kind == "identity":
        if numbers:
            raise RequestError(f"`identity` takes no numbers, not {' '.join(numbers)!r}")
        found = tuple(Select(i) for i in range(scene.size))
    else:
        raise RequestError(unknown("wish", kind, [*KINDS, "superpose"]))
    for wish in found:
        wish.weights(scene), wish.output(scene)  # what does not fit the scene is said now
    return found


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise RequestError(f"{text!r} is not the number of a key") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise RequestError(f"{text!r} is not a number") from None
