"""Pretrained models, tuned to tell labels apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from attnlab.adapt.search import Search
from attnlab.adapt.search.space import ends
from attnlab.adapt.tuned import Tunable
from attnlab.corpus import Corpus, Sotu
from attnlab.errors import DeclarationError, Problem
from attnlab.spec import Count, Spec
from attnlab.study.changes import changed
from attnlab.study.kind import Bench, Held, Setup
from attnlab.training import AdamW, Linear, Optimizer, Schedule, Training, Watched
from attnlab.verdict import Metric

_EPOCHS = 3  # unless a budget is given
_MEASURES = {"accuracy": "correct", "loss": "loss"}
# By what an arm's texts are read, once for all trials of its search.
_READ_BY = ("checkpoint", "revision", "tokenizer", "longest", "trust_remote_code")


class Measure(Spec):
    """What is measured beside the answers on dev and test."""

    train_texts: Count = 1000  # of the training split, for its curve and its loss
    choose: Literal["accuracy", "loss"] = "accuracy"  # by which the state, and a search's setting, is chosen

    @property
    def watched(self) -> Watched:
        return Watched(f"dev_{self.choose}", "higher" if self.choose == "accuracy" else "lower")


class FurtherTraining(Training):
    """Training with the defaults that suit a model which knows something already: three epochs at a low rate
    that falls to nothing, dev looked at after each, and the best state kept."""

    optimizer: Optimizer = AdamW(learning_rate=5e-5, beta2=0.999, weight_decay=0.01)
    schedule: Schedule = Linear()
    keep: Literal["last", "best"] = "best"

    @model_validator(mode="after")
    def _has_no_large_head(self) -> Self:
        if self.precision == "bfloat16-head":
            raise ValueError(
                'precision "bfloat16-head" is for heads over a vocabulary; take the products of a '
                'checkpoint in bfloat16 with model.products = "bfloat16"'
            )
        return self

    def resolve_steps(self, per_epoch: int, tokens_per_epoch: int) -> int:
        if self.steps is None and self.tokens is None and self.epochs is None:
            return _EPOCHS * per_epoch
        return super().resolve_steps(per_epoch, tokens_per_epoch)


class Tuning(Setup):
    """A checkpoint trained further to give every text its label."""

    kind: ClassVar[str] = "tuning"
    default_metric: ClassVar[str] = "test_accuracy"
    default_margin: ClassVar[float] = 0.01  # one text in a hundred
    shorthands: ClassVar[Mapping[str, str]] = {
        **{name: f"model.{name}" for name in ("checkpoint", "amount", "attention", "dropout", "longest")},
        **{name: f"training.{name}" for name in ("optimizer", "schedule", "epochs", "batch")},
        "learning_rate": "training.optimizer.learning_rate",
        "space": "search.space",
    }

    corpus: Corpus = Sotu(
        label="president",
        presidents=("Franklin D. Roosevelt", "Dwight D. Eisenhower", "Ronald Reagan", "William J. Clinton"),
        units=60,
    )
    model: Tunable = Tunable()
    training: FurtherTraining = FurtherTraining()
    search: Search | None = None
    measure: Measure = Measure()

    @model_validator(mode="after")
    def _searches_what_is_there(self) -> Self:
        """Every value of the search's space must be one that the declaration could hold."""
        if self.search is None:
            return self
        whole = self.model_copy(update={"search": None})
        problems: list[Problem] = []
        for place, values in self.search.space.items():
            refused = self._not_searched(place)
            if refused:
                problems.append(Problem(f"search.space.{place}", refused))
                continue
            for value in ends(values):
                try:
                    changed(whole, {place: value}, None)
                except DeclarationError as error:
                    problems += [Problem(f"search.space.{place}", p.message) for p in error.problems]
        if problems:
            text = "; ".join(map(str, problems))
            raise PydanticCustomError("part", "{text}", {"text": text, "problems": problems})
        return self

    @property
    def shares(self) -> str:
        return "the journal of their search" if self.search else ""

    @classmethod
    def _not_searched(cls, place: str) -> str:
        """Why no search may change what is at this place; nothing where one may, or where there is none."""
        first, *rest = place.split(".")
        section, *below = [*cls.shorthands.get(first, first).split("."), *rest]
        if section in cls.model_fields and section not in ("model", "training"):
            return "a search may change the model and the training only"
        if section == "model" and (not below or below[0] in _READ_BY):
            return "all trials of an arm read the same texts by the same checkpoint; let arms differ in that"
        return ""

    @classmethod
    def metric(cls, name: str) -> Held | None:
        found = re.fullmatch(r"(?!train)([\w-]+?)_(accuracy|loss)", name)
        if found is None:
            return None
        split, what = found.groups()
        better: Literal["higher", "lower"] = "higher" if what == "accuracy" else "lower"
        return Held(split, _MEASURES[what], Metric(name, better), weight="texts")

    @classmethod
    def metric_names(cls) -> tuple[str, ...]:
        return tuple(f"{split}_{what}" for split in ("test", "dev") for what in _MEASURES)

    def settled(self, environment: Mapping[str, Any]) -> Self:
        bfloat16 = bool(environment.get("bfloat16_products"))
        update = {"model": self.model.settled(bfloat16), "training": self.training.settled(False)}
        return self.model_copy(update=update)

    def prepare(self, base: Path | None) -> Bench:
        from attnlab.study.kinds.tuning_bench import TuningBench

        return TuningBench(self, base)
