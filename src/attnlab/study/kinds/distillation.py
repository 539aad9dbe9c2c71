"""Distillation: what a student learns from people's texts, from its teacher's, or from what the teacher
holds probable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from attnlab.adapt.distil.lessons import Lesson, References
from attnlab.adapt.distil.models import Student, Teacher
from attnlab.adapt.distil.objectives import Precision
from attnlab.adapt.distil.prompt import Prompt
from attnlab.adapt.distil.take import Take
from attnlab.adapt.distil.texts import Writing
from attnlab.corpus import Corpus, Table
from attnlab.evaluation.rouge import MEASURES
from attnlab.spec import Count, Positive, Spec
from attnlab.study.kind import Bench, Held, Setup
from attnlab.training import AdamW, Cosine, Optimizer, Schedule, Training
from attnlab.verdict import Metric


class Learning(Training):
    """As any training, with what suits a model that knows its language already."""

    batch: Positive = 16
    accumulate: Positive = 4  # pieces of a batch, each of requests of similar length: little is padded
    optimizer: Optimizer = AdamW(learning_rate=3e-4, beta2=0.999, weight_decay=0.01)
    schedule: Schedule = Cosine(warmup=10)
    precision: Literal["float32"] = "float32"  # of weights; what products are taken in is said beside it


class Measure(Spec):
    """What is kept beside the figures."""

    shown: Count = 4  # documents of the test split whose texts the report shows side by side


class Distillation(Setup):
    """A student and its teacher write texts from documents, and are scored against people's."""

    kind: ClassVar[str] = "distillation"
    default_metric: ClassVar[str] = "test_rouge_1"
    default_margin: ClassVar[float] = 0.01
    shorthands: ClassVar[Mapping[str, str]] = {
        "layers_kept": "student.layers_kept",
        "recipe": "writing.recipe",
        "optimizer": "training.optimizer",
        "schedule": "training.schedule",
        "learning_rate": "training.optimizer.learning_rate",
    }

    corpus: Corpus = Table(
        train="train.jsonl",
        dev="dev.jsonl",
        test="test.jsonl",
        text="dialogue",
        references=("summary", "summary1", "summary2", "summary3"),
    )
    take: Take = Take()
    prompt: Prompt = Prompt()
    teacher: Teacher = Teacher()
    student: Student = Student()
    lesson: Lesson = References()
    writing: Writing = Writing()
    training: Learning = Learning()
    precision: Precision = "float32"  # of products, in training and in writing
    measure: Measure = Measure()

    @classmethod
    def metric(cls, name: str) -> Held | None:
        found = re.fullmatch(r"test_(\w+)", name)
        if found is None or found[1] not in MEASURES:
            return None
        return Held("test", found[1], Metric(name, "higher"))

    @classmethod
    def metric_names(cls) -> tuple[str, ...]:
        return tuple(f"test_{measure}" for measure in MEASURES)

    def prepare(self, base: Path | None) -> Bench:
        from attnlab.study.kinds.distillation_bench import DistillationBench

        return DistillationBench(self, base)
