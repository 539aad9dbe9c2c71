"""What a kind of study is: its sections, and how one cell of it is run.

A language model, a classifier, a decoding comparison or a distillation is a kind: it says what its
declaration holds and how one arm with one seed is measured. Everything else (arms, seeds, resuming, audits,
verdicts, reports) is the same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from attnlab.record import Check, Items, RunResult
from attnlab.spec import Spec
from attnlab.training import Observer
from attnlab.verdict import Metric


@dataclass(frozen=True)
class Held:
    """A metric a study can be judged by: the split whose items are paired, what is measured of each, how much
    each counts, and the good direction."""

    split: str
    measure: str  # of each item, as the runs keep it
    metric: Metric
    weight: str | None = None  # the measure that says how much an item counts; without one, all alike
    # Why an arm whose weights are not the baseline's cannot be compared with it; nothing where it can.
    unlike: str = ""


class CellObserver(Observer, Protocol):
    """Who wants to know how the run of a cell is going, also where it is trained more than once."""

    def aside(self, name: str) -> Observer:
        """For a training that comes before the one the study is about: its curve is kept apart, as
        `<name>.jsonl`."""


class Setup(Spec, ABC):
    """The sections of one kind of study, as one arm has them."""

    kind: ClassVar[str]
    shorthands: ClassVar[Mapping[str, str]] = {}  # what an arm may write instead of the full place
    default_metric: ClassVar[str]
    default_margin: ClassVar[float]
    trains_once: ClassVar[bool] = False  # whether a run is one training, which several processes can share

    @classmethod
    @abstractmethod
    def metric(cls, name: str) -> Held | None:
        """The metric of that name, if this kind measures it."""

    @classmethod
    @abstractmethod
    def metric_names(cls) -> tuple[str, ...]:
        """Metrics to name when one does not exist."""

    @property
    def shares(self) -> str:
        """What an arm's runs write together, outside their own folders: usually nothing."""
        return ""

    @property
    def device(self) -> str:
        """Where its runs are worked on: `cpu` or `cuda`."""
        return getattr(getattr(self, "training", None), "device", "cpu")

    def settled(self, environment: Mapping[str, Any]) -> Self:
        """With everything decided that the declaration leaves to the machine the study began on."""
        return self

    @abstractmethod
    def prepare(self, base: Path | None) -> Bench:
        """Everything that is ready before a run begins: data, vocabulary, sizes."""


class Bench(ABC):
    """One arm, ready to be audited and run."""

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """What the data is: provenance, counts, overlap; plain."""

    def shown(self) -> tuple[str, ...]:
        """What a person should see before anything is trained."""
        return ()

    @abstractmethod
    def floors(self) -> Mapping[str, Mapping[str, float]]:
        """What simple methods reach on the same items; plain."""

    def floor_items(self) -> Mapping[str, Mapping[str, Items]]:
        """By floor and split what it measured of every item, where it can be paired with the arms."""
        return {}

    @abstractmethod
    def parameters(self) -> tuple[int, list[dict[str, Any]]]:
        """How many there are, and the derivation, row by row."""

    @abstractmethod
    def audit(self) -> tuple[Check, ...]:
        """Whether the arm, before any training, is what it claims to be."""

    @abstractmethod
    def run(self, arm: str, seed: int, folder: Path, observer: CellObserver) -> RunResult:
        """Train and measure one seed, going on from the checkpoint in `folder` where there is one."""
