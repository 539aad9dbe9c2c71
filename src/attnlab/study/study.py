"""A study: a question, a set-up, the arms that change it, the seeds, and what counts as a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    SerializeAsAny,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from attnlab.errors import DeclarationError, Problem, unknown
from attnlab.spec import Part, Plain, Positive, Spec, fingerprint, validate
from attnlab.study.changes import changed
from attnlab.study.kind import Held, Setup
from attnlab.study.kinds.language_model import LanguageModel

# What of a study no run depends on: it decides how much is asked of the results, and how they are shown.
UNDECIDING = ("name", "question", "seeds", "metric", "margin")


class Arm(Spec):
    """One variant: a name, and beside it what it changes in the set-up, in full (`model={"layers": 4}`) or by
    a shorthand (`score="additive"`). The first arm of a study is its baseline."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f/\\]+$")

    @property
    def changes(self) -> Plain:
        return dict(self.model_extra or {})

    def plain(self) -> Plain:
        return {"name": self.name, **{key: _plain(value) for key, value in self.changes.items()}}


class Study(Spec):
    """What is asked, of what, and how the answer will be judged."""

    name: str = Field(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$")
    question: str = Field(min_length=1)
    setup: SerializeAsAny[Setup] = LanguageModel()
    arms: tuple[Arm, ...] = Field(min_length=1)
    seeds: Positive = 5
    metric: str = LanguageModel.default_metric
    margin: float = Field(default=LanguageModel.default_margin, ge=0.0)

    _base: Path | None = PrivateAttr(default=None)
    _setups: dict[str, Setup] = PrivateAttr(default_factory=dict)

    @field_validator("arms")
    @classmethod
    def _distinct(cls, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        taken: dict[str, str] = {}
        for arm in arms:
            folder = slug(arm.name)
            if folder in taken:
                raise ValueError(
                    f"the arms {taken[folder]!r} and {arm.name!r} would share the folder {folder!r}"
                )
            taken[folder] = arm.name
        return arms

    @model_validator(mode="before")
    @classmethod
    def _metric_of_the_kind(cls, data: Any) -> Any:
        if isinstance(data, dict):
            setup = data.get("setup")
            kind = type(setup) if isinstance(setup, Setup) else LanguageModel
            defaults = {"metric": kind.default_metric, "margin": kind.default_margin}
            return {**defaults, **data}
        return data

    @model_validator(mode="after")
    def _hangs_together(self, info: ValidationInfo) -> Self:
        problems: list[Problem] = []
        if self.setup.metric(self.metric) is None:
            problems.append(Problem("metric", unknown("metric", self.metric, self.setup.metric_names())))
        self._base = (info.context or {}).get("base")
        self._setups, in_arms = arms_in(self.setup, self.arms, self._base)
        problems += in_arms
        if problems:
            text = "; ".join(str(problem) for problem in problems)
            raise PydanticCustomError("part", "{text}", {"text": text, "problems": problems})
        return self

    def at(self, base: Path | None) -> Study:
        """The same study with relative paths counted from `base`."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return validate(Study, fields, source=f"the study {self.name!r}", base=base)

    def with_seeds(self, seeds: int) -> Study:
        """The same study with another number of seeds."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return validate(Study, {**fields, "seeds": seeds}, source=f"the study {self.name!r}", base=self._base)

    @property
    def base(self) -> Path | None:
        """The folder that relative paths in the declaration count from."""
        return self._base

    @property
    def baseline(self) -> Arm:
        return self.arms[0]

    @property
    def judged_by(self) -> Held:
        held = self.setup.metric(self.metric)
        assert held is not None  # validated
        return held

    def setup_of(self, arm: str) -> Setup:
        """The whole set-up of an arm: the study's, with the arm's changes laid over it."""
        return self._setups[arm]

    def plain(self) -> Plain:
        """The declaration as a file would hold it, with every default written out."""
        return {
            "name": self.name,
            "question": self.question,
            "kind": self.setup.kind,
            "seeds": self.seeds,
            "metric": self.metric,
            "margin": self.margin,
            **self.setup.plain(),
            "arms": [arm.plain() for arm in self.arms],
        }

    @property
    def fingerprint(self) -> str:
        """Changes when any result could: with the set-up, the arms, their code; not with the number of seeds,
        the question or the margin, which only decide how much is asked of the results."""
        deciding = {arm.name: self.setup_of(arm.name).plain() for arm in self.arms}
        return fingerprint({"kind": self.setup.kind, "arms": deciding})


def arms_in(
    setup: Setup, arms: Sequence[Arm | Mapping[str, Any]], base: Path | None
) -> tuple[dict[str, Setup], list[Problem]]:
    """The whole set-up of every arm, and what is wrong with the changes of those that have none."""
    setups: dict[str, Setup] = {}
    problems: list[Problem] = []
    for index, arm in enumerate(arms):
        plain = {"name": arm.name, **arm.changes} if isinstance(arm, Arm) else arm
        if not isinstance(plain, Mapping):
            continue
        name = str(plain.get("name", "without a name"))
        # YAML has keys that are no text; that they must be is said where arms are validated.
        changes = {key: value for key, value in plain.items() if key != "name" and isinstance(key, str)}
        try:
            setups[name] = changed(setup, changes, base)
        except DeclarationError as error:
            place = f"arms[{index}] ({name})"
            problems += [
                Problem(f"{place}.{p.place}" if p.place else place, p.message) for p in error.problems
            ]
    return setups, problems


def slug(name: str) -> str:
    """An arm's name as a folder's."""
    kept = "".join(c if c.isalnum() or c in "-_.=" else "-" for c in name.strip()).strip("-.") or "arm"
    return kept.lower()


def _plain(value: Any) -> Any:
    if isinstance(value, Part | Spec):
        return value.plain()
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return value
