"""Ways to choose what is tried next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attnlab.adapt.search.space import Range, Space, encoded, ends, size
from attnlab.errors import RequestError
from attnlab.model.initial import stream
from attnlab.spec import Count, Part, Positive


class Search(Part, family="search"):
    """Settings to try before an arm is run: each is trained on a seed of its own and judged on dev; the best
    is then run afresh on the study's seeds."""

    space: Mapping[str, Range | tuple[Any, ...]]  # a place of the declaration, and what may stand there
    seed: int
    prune: bool  # whether a trial that is worse than most at the same point ends there

    def __post_init__(self) -> None:
        if not self.space:
            raise ValueError("a search needs a space: places of the declaration, and the values to try there")
        empty = next((place for place, values in self.space.items() if not ends(values)), None)
        if empty is not None:
            raise ValueError(f"there is nothing to try for {empty!r}: its list is empty")

    @property
    def count(self) -> int:
        """How many trials there are."""
        raise TypeError(f"the search {self.name!r} does not say how many trials it makes")

    @property
    def spread(self) -> int:
        """How many of the first trials are spread evenly over the space, whatever was tried before."""
        return 0

    def sampler(self, trial: int) -> Any:
        """What chooses the setting of a trial, by its number and what was tried before."""
        raise TypeError(f"the search {self.name!r} chooses nothing")

    def seed_of(self, trial: int) -> int:
        """For the sampler: 32 bits."""
        return stream(self.seed, "search", trial) % 2**32


@dataclass(frozen=True, kw_only=True)
class Grid(Search):
    """Every combination of the values listed."""

    space: Space = field(default_factory=dict, hash=False)
    seed: Count = 0
    prune: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if size(self.space) is None:
            ranges = [place for place, values in self.space.items() if isinstance(values, Range)]
            raise ValueError(f"a grid takes lists of values, and {ranges[0]!r} is a range")

    @property
    def count(self) -> int:
        return size(self.space) or 0

    def sampler(self, trial: int) -> Any:
        grid = {place: encoded(ends(values)) for place, values in self.space.items()}
        return library().samplers.GridSampler(grid, seed=self.seed)


@dataclass(frozen=True, kw_only=True)
class Random(Search):
    """Settings spread evenly, on a log scale where the range says so."""

    space: Space = field(default_factory=dict, hash=False)
    trials: Positive = 8
    seed: Count = 0
    prune: bool = True

    @property
    def count(self) -> int:
        return self.trials

    @property
    def spread(self) -> int:
        return self.trials

    def sampler(self, trial: int) -> Any:
        return library().samplers.RandomSampler(seed=self.seed_of(trial))


@dataclass(frozen=True, kw_only=True)
class Tpe(Search):
    """Settings drawn where those that did well lie denser than those that did not (Bergstra and others 2011,
    https://papers.nips.cc/paper/4443), after some spread evenly."""

    space: Space = field(default_factory=dict, hash=False)
    trials: Positive = 8
    first: Positive = 4  # spread evenly
    seed: Count = 0
    prune: bool = True

    @property
    def count(self) -> int:
        return self.trials

    @property
    def spread(self) -> int:
        return min(self.first, self.trials)

    def sampler(self, trial: int) -> Any:
        return library().samplers.TPESampler(n_startup_trials=self.first, seed=self.seed_of(trial))


def library() -> Any:
    """optuna, without its remarks."""
    try:
        import optuna
    except ImportError:
        raise RequestError("a search needs the package optuna: pip install 'attnlab[search]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
