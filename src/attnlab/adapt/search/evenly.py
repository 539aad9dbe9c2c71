"""The first settings of a search, spread evenly: every part of a range is tried before any is tried twice.

Drawn one by one they fall together: of three rates between 2e-5 and 5e-4, two were once 2.8e-5 and 2.7e-5.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attnlab.adapt.search.space import Range, Space, Values, encoded
from attnlab.model.initial import stream


def evenly(space: Space, number: int, of: int, seed: int) -> dict[str, Any]:
    """The setting of one of so many trials: each place is cut into as many parts as there are trials, the
    parts are shuffled, and a value is drawn within the trial's own (Latin hypercube sampling, McKay, Beckman
    and Conover 1979, https://doi.org/10.2307/1268522)."""
    setting = {}
    for place, values in space.items():
        order = np.random.default_rng(stream(seed, "evenly", place)).permutation(of)
        within = np.random.default_rng(stream(seed, "evenly", place, number)).random()
        setting[place] = _at(values, float((order[number] + within) / of))
    return setting


def _at(values: Values, share: float) -> Any:
    """What stands so far along the values."""
    if not isinstance(values, Range):
        named = encoded(values)
        return named[min(int(share * len(named)), len(named) - 1)]
    low, high = (float(values.low), float(values.high))
    if values.is_whole:  # every whole number has as much room, the first and the last too
        low, high = low - 0.5, high + 0.5
    if values.is_log:
        low, high = math.log(low), math.log(high)
    value = low + share * (high - low)
    value = math.exp(value) if values.is_log else value
    return int(min(max(round(value), values.low), values.high)) if values.is_whole else value
