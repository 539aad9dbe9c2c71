"""What a search tries: a list of values, or a range."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Self

from pydantic import model_validator

from attnlab.spec import Spec

_DECADE = 10  # a range of numbers above nothing that spans more than this is tried on a log scale


class Range(Spec):
    """Numbers from `low` to `high`, both included; whole ones where both ends are."""

    low: int | float
    high: int | float
    log: bool | None = None  # as the ends suggest unless given

    @model_validator(mode="after")
    def _goes_up(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"a range goes up, and {self.low:g} is not below {self.high:g}")
        if self.log and self.low <= 0:
            raise ValueError(f"a log scale has no {self.low:g}")
        return self

    @property
    def is_log(self) -> bool:
        return self.log if self.log is not None else self.low > 0 and self.high / self.low >= _DECADE

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


Values = Range | tuple[Any, ...]
Space = Mapping[str, Values]


def ends(values: Values) -> tuple[Any, ...]:
    """What a declaration must be able to hold, if it is to hold all the values."""
    return (values.low, values.high) if isinstance(values, Range) else values


def size(space: Space) -> int | None:
    """How many settings there are; None where they cannot be counted."""
    if any(isinstance(values, Range) for values in space.values()):
        return None
    return math.prod(len(ends(values)) for values in space.values())


# A category is anything a declaration can hold, a table too; it is kept as its JSON.
def encoded(values: tuple[Any, ...]) -> list[str]:
    return [json.dumps(value, sort_keys=True) for value in values]


def decoded(space: Space, found: Mapping[str, Any]) -> dict[str, Any]:
    """A setting in the declaration's own words."""
    return {
        place: found[place] if isinstance(values, Range) else json.loads(found[place])
        for place, values in space.items()
    }
