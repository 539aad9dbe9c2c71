"""What a student learns from: people's texts, its teacher's, what the teacher holds probable, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from attnlab.adapt.distil.objectives import Divergence, OnLogits, OnTexts, Precision
from attnlab.corpus.split import spread
from attnlab.spec import Part, PositiveFloat, Rate

Part_of_one = Annotated[float, Field(ge=0.0, le=1.0)]


class Lesson(Part, family="lesson"):
    """How one arm comes to write."""

    trains: ClassVar[bool] = True
    by_teacher: ClassVar[bool] = False  # whether the teacher writes, and no student
    on_logits: ClassVar[bool] = False  # whether the teacher is asked at every step
    references: float = 1.0  # of the documents, the share that is learned with a person's text

    def objective(self, teacher: Any, words: int, precision: Precision) -> Any:
        """What is made small; `teacher` is there where the lesson is on its logits."""
        return OnTexts(precision)

    def with_references(self, documents: int) -> frozenset[int]:
        """The places of the documents learned with a person's text, spread evenly; the teacher's for the
        others."""
        return frozenset(spread(documents, round(self.references * documents)))


@dataclass(frozen=True, kw_only=True)
class References(Lesson):
    """People's texts, word for word."""


@dataclass(frozen=True, kw_only=True)
class TeachersTexts(Lesson):
    """The texts that the teacher writes, word for word (sequence-level distillation, Kim and Rush 2016,
    https://arxiv.org/abs/1606.07947); people's, for a share of the documents."""

    references: Part_of_one = 0.0


@dataclass(frozen=True, kw_only=True)
class TeachersLogits(Lesson):
    """What the teacher holds probable at every token of a text: people's, or for some documents its own."""

    on_logits: ClassVar[bool] = True

    temperature: PositiveFloat = 1.0  # softens both sides
    divergence: Divergence = "forward"
    hard: Rate = 0.0  # the weight of the text's own tokens; the rest is the teacher's
    references: Part_of_one = 1.0

    def objective(self, teacher: Any, words: int, precision: Precision) -> OnLogits:
        return OnLogits(teacher, words, self.temperature, self.divergence, self.hard, precision)


@dataclass(frozen=True, kw_only=True)
class Nothing(Lesson):
    """The student as it is."""

    trains: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class TheTeacher(Lesson):
    """No student at all: the teacher is measured."""

    trains: ClassVar[bool] = False
    by_teacher: ClassVar[bool] = True
