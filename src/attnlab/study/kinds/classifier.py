"""Small classifiers of texts: an encoder and a head, trained together from scratch or from a pretrained
encoder."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import torch
from pydantic import BeforeValidator, field_validator

from attnlab.attention import Layout
from attnlab.audit.classifiers import RULES
from attnlab.audit.classifiers import Classifier as Subject
from attnlab.corpus import Corpus, Sotu
from attnlab.evaluation.answering import answered, by_document, texts_of
from attnlab.evaluation.classified import Classified, confusions
from attnlab.evaluation.maps.camera import Camera
from attnlab.evaluation.maps.probes import Probe, probes_read
from attnlab.evaluation.text_floors import figures, text_floors
from attnlab.evaluation.worst import worst_answered
from attnlab.model import ClassifierModel, Encoder, Head
from attnlab.model.count import count_parameters, derive
from attnlab.record import Check, Items, RunResult
from attnlab.spec import Count
from attnlab.study.kind import Bench, CellObserver, Held, Setup
from attnlab.study.starts import Cell, Scratch, Start
from attnlab.study.trained_cell import PROBES, SHORTHANDS, Ended, Looking, train_cell
from attnlab.tokens import Examples, Reading, Tokenizer, Words
from attnlab.tokens.examples import ExampleBatches
from attnlab.tokens.labelled import UNSEEN, PreparedExamples, prepare_examples
from attnlab.training import Label, Run, Training, Watched
from attnlab.training.device import present
from attnlab.verdict import Metric


def _text_or_pair(value: Any) -> str | tuple[str, str]:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(one, str) for one in value):
        return value[0], value[1]
    shown = f", not {value!r}" if isinstance(value, list | tuple | dict) else ""  # others are shown anyway
    raise ValueError(f"should be a text, or a pair of two texts{shown}")


TextOrPair = Annotated[str | tuple[str, str], BeforeValidator(_text_or_pair)]


class Measure(Looking):
    """What is measured beside the answers on the splits."""

    probes: tuple[TextOrPair, ...] = PROBES  # on which attention maps are taken
    curve_examples: Count = 500  # of train and of dev, at every evaluation on the way
    worst: Count = 10  # wrong answers of every held-out split that are shown because they were surest


class Classifier(Setup):
    """An encoder and a head that say which label a text, or a pair of texts, has."""

    kind: ClassVar[str] = "classifier"
    default_metric: ClassVar[str] = "test_accuracy"
    default_margin: ClassVar[float] = 0.02  # two texts of a hundred
    shorthands: ClassVar[Mapping[str, str]] = {**SHORTHANDS, "pool": "head.pool"}

    corpus: Corpus = Sotu(since=1982, label="president", least=7)
    unlabelled: Corpus | None = None  # more text: the vocabulary and pretraining learn from it
    tokens: Tokenizer = Words(minimum=2)
    reading: Reading = Reading()
    model: Encoder = Encoder()
    head: Head = Head()
    start: Start = Scratch()
    training: Training = Training()
    measure: Measure = Measure()

    @field_validator("training")
    @classmethod
    def _has_no_large_head(cls, training: Training) -> Training:
        if training.precision == "bfloat16-head":
            raise ValueError('precision "bfloat16-head" is for heads over a vocabulary, as in start.training')
        return training

    @classmethod
    def metric(cls, name: str) -> Held | None:
        found = re.fullmatch(r"(?!train)([\w-]+?)_(accuracy|loss)", name)
        if found is None:
            return None
        split, measure = found.groups()
        if measure == "loss":
            return Held(split, "loss", Metric(name, "lower"), weight="examples")
        return Held(split, "correct", Metric(name, "higher"), weight="examples")

    @classmethod
    def metric_names(cls) -> tuple[str, ...]:
        splits = ("test", f"test{UNSEEN}", "dev")
        return tuple(f"{split}_{what}" for split in splits for what in ("accuracy", "loss"))

    def settled(self, environment: Mapping[str, Any]) -> Self:
        bfloat16 = bool(environment.get("bfloat16"))
        changed = {"training": self.training.settled(False), "start": self.start.settled(bfloat16)}
        return self.model_copy(update=changed)

    def prepare(self, base: Path | None) -> ClassifierBench:
        return ClassifierBench(self, base)


_AUDIT_WORDS = 97


class ClassifierBench(Bench):
    """A classifier and its prepared examples."""

    def __init__(self, setup: Classifier, base: Path | None) -> None:
        self.setup, self.base = setup, base
        self.device = present(setup.training.device)
        self.data: PreparedExamples = prepare_examples(
            setup.corpus,
            setup.tokens,
            setup.reading,
            setup.model.context,
            unlabelled=setup.unlabelled,
            vocabulary=setup.start.vocabulary(setup.tokens, setup.model, base),
            base=base,
        )

    def facts(self) -> Mapping[str, Any]:
        return self.data.facts

    @cached_property
    def _floors(self) -> Mapping[str, Mapping[str, Classified]]:
        """By split, the answers of every floor."""
        train = texts_of(self._split("train"), self.data.classes)
        return {
            name: text_floors(train, texts_of(split, self.data.classes), self.data.classes)
            for name, split in self.data.splits.items()
            if name.startswith("test")
        }

    def floors(self) -> Mapping[str, Mapping[str, float]]:
        unseen = self._floors.get(f"test{UNSEEN}", {})
        told = {name: figures(found) for name, found in self._floors["test"].items()}
        for name, found in unseen.items():
            told[name] |= {f"test{UNSEEN}_{what}": value for what, value in figures(found).items()}
        return told

    def floor_items(self) -> Mapping[str, Mapping[str, Items]]:
        found: dict[str, dict[str, Items]] = {}
        for split, floors in self._floors.items():
            for name, answers in floors.items():
                found.setdefault(name, {})[split] = by_document(answers, self._split(split))
        return found

    def parameters(self) -> tuple[int, list[dict[str, Any]]]:
        model, spec = self.model(0), self.setup.model
        sizes = {"vocabulary": self.data.vocabulary.size, "width": spec.width, "context": spec.context}
        sizes |= {"labels": len(self.data.classes), "hidden": self.setup.head.hidden}
        return count_parameters(model), [row.plain() for row in derive(model, sizes)]

    def audit(self) -> tuple[Check, ...]:
        # The arm's own model with fewer words: what mixes tokens does not know how many there are.
        labels = len(self.data.classes)
        model = ClassifierModel(self.setup.model, self.setup.head, _AUDIT_WORDS, labels).double().eval()
        subject = Subject(
            answer=lambda sequences: model(torch.cat(list(sequences)), Layout([len(s) for s in sequences])),
            vocabulary=_AUDIT_WORDS,
            longest=self.setup.model.context,
            labels=labels,
        )
        return tuple(rule(subject) for rule in RULES)

    def run(self, arm: str, seed: int, folder: Path, observer: CellObserver) -> RunResult:
        model, training = self.model(seed), self.setup.training
        begun = self.setup.start.begin(
            model, Cell(self.data, self.setup.tokens, seed, folder, self.base, observer)
        )
        untrained = copy.deepcopy(model)
        batches = ExampleBatches(self._split("train"), training.batch, seed)
        steps = training.resolve_steps(batches.per_epoch, len(self._split("train").ids))
        ended = train_cell(
            arm,
            Run(
                model=model,
                objective=Label(),
                batches=batches,
                training=training,
                steps=steps,
                seed=seed,
                evaluate=lambda: self._curve_point(model),
                checkpoint=folder / "checkpoint.safetensors",
                watched=Watched("dev_accuracy", "higher"),
            ),
            self.setup.measure,
            Camera(model.encoder, self._probes, folder),
            observer,
        )
        if ended.diverged:
            result = ended.result()
        else:
            result = self._measured(model, untrained, begun.metrics, ended, observer)
        return replace(result, seconds=result.seconds + begun.seconds)

    def _measured(
        self,
        model: ClassifierModel,
        untrained: ClassifierModel,
        begun: Mapping[str, float],
        ended: Ended,
        observer: CellObserver,
    ) -> RunResult:
        classes, splits = self.data.classes, self.data.splits
        found = {name: answered(model, split, classes) for name, split in splits.items()}
        train = found.pop("train")
        metrics = {"train_loss": train.items.mean("loss"), "train_accuracy": train.items.mean("correct")}
        for name, answers in found.items():
            metrics |= answers.metrics(name)
        before = answered(untrained, splits["test"], classes)
        metrics["test_accuracy_untrained"] = before.items.mean("correct")
        shares = np.bincount(splits["train"].labels, minlength=len(classes)) / splits["train"].n_sequences
        one_answer = found["test"].check(metrics["train_loss"], shares.tolist())
        if one_answer.status == "fail":
            observer.note(one_answer.evidence)
        worst = {
            name: worst_answered(answers, splits[name], self.setup.measure.worst)
            for name, answers in found.items()
        }
        return ended.result(
            {**metrics, **begun},
            {name: by_document(answers, splits[name]) for name, answers in found.items()},
            standing=(one_answer,),
            exhibits={"confusion": confusions(found), "wrong": worst},
        )

    def _curve_point(self, model: ClassifierModel) -> dict[str, float]:
        point: dict[str, float] = {}
        for name, split in self._curve_splits.items():
            items = answered(model, split, self.data.classes).items
            point |= {f"{name}_loss": items.mean("loss"), f"{name}_accuracy": items.mean("correct")}
        return point

    def model(self, seed: int) -> ClassifierModel:
        """With its initial values."""
        size, labels = self.data.vocabulary.size, len(self.data.classes)
        return ClassifierModel(self.setup.model, self.setup.head, size, labels, seed).to(self.device)

    def _split(self, name: str) -> Examples:
        return self.data.splits[name]

    @cached_property
    def _curve_splits(self) -> Mapping[str, Examples]:
        most = self.setup.measure.curve_examples
        return {name: self._split(name).sample(most) for name in ("train", "dev")}

    @cached_property
    def _probes(self) -> tuple[Probe, ...]:
        setup = self.setup
        return probes_read(setup.measure.probes, self.data.vocabulary, setup.reading, setup.model.context)
