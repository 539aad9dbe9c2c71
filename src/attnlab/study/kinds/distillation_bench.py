"""One arm of a distillation, ready to be audited and run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from attnlab.adapt.distil.models import Teacher
from attnlab.adapt.distil.objectives import Precision, answer_check, answer_loss
from attnlab.adapt.distil.pairs import Pair, PairBatch, PairBatches
from attnlab.adapt.distil.prompt import Asked, answer, ask, source_of
from attnlab.adapt.distil.texts import Text, Texts, keep_beside
from attnlab.adapt.pretrained import Loaded
from attnlab.adapt.tokenizer import refuse_other_vocabulary
from attnlab.corpus import Document
from attnlab.corpus.overlap import overlaps
from attnlab.corpus.split import spread
from attnlab.decoding import HubWriter, cache_check, padding_check
from attnlab.errors import DeclarationError, Problem, RequestError
from attnlab.evaluation.rouge import refuse_without_rouge, words
from attnlab.evaluation.summaries import ALL, Written, measure, opening
from attnlab.model.count import count_parameters, derive
from attnlab.record import Check, Items, RunResult
from attnlab.spec import fingerprint
from attnlab.study.kind import Bench
from attnlab.tokens.cache import folder as cache_folder
from attnlab.training import Checkpoint, Observer, Progress, Run, train
from attnlab.training.device import present
from attnlab.training.seldom import Seldom

if TYPE_CHECKING:
    from attnlab.study.kinds.distillation import Distillation

# The documents an arm is audited on: a short one and a longer one, so that there is padding.
_AUDITED = 3
_TOKENS = 24  # of an answer that is read token by token
_FLOOR = "opening words"


class DistillationBench(Bench):
    """A teacher, a student, and the documents they write from."""

    def __init__(self, setup: Distillation, base: Path | None) -> None:
        refuse_without_rouge()
        self.setup, self.base = setup, base
        self.device = present(setup.training.device)
        whole, teachers, students = _all_there(
            {
                "corpus": lambda: setup.corpus.load(base),
                "teacher": lambda: setup.teacher.tokenizer(base),
                "student": lambda: setup.student.tokenizer(base),
            }
        )
        self.tokenizer = teachers if setup.lesson.by_teacher else students
        if setup.lesson.on_logits:
            refuse_other_vocabulary(students, teachers)
        self.provenance, self.splits = whole.provenance, setup.take.of(whole)

    @property
    def _own(self) -> Teacher:
        """Who writes in this arm."""
        return self.setup.teacher if self.setup.lesson.by_teacher else self.setup.student

    # ---- before training -----------------------------------------------------------------------------------

    def facts(self) -> Mapping[str, Any]:
        held_out = {name: self.splits[name] for name in ("dev", "test")}
        overlap = overlaps(self.splits["train"], held_out)
        return {
            "provenance": self.provenance.plain(),
            "request": self.tokenizer.decode(self._asked("test").ids[0]),
            "splits": {name: self._split_facts(name) for name in self.splits},
            "overlap": {name: found.plain() for name, found in overlap.items()},
        }

    def _split_facts(self, split: str) -> dict[str, Any]:
        documents, asked = self.splits[split], self._asked(split)
        lengths = [len(words(text)) for document in documents for text in document.references]
        return {
            "documents": len(documents),
            "tokens_per_request": sum(map(len, asked.ids)) / len(asked),
            "cut_requests": asked.cut_texts,
            "cut_tokens": asked.cut_tokens,
            "references": len(lengths),
            "words_per_reference": sum(lengths) / len(lengths),
        }

    def floors(self) -> Mapping[str, Mapping[str, float]]:
        return {_FLOOR: {name: self._openings.mean(name) for name in ALL}}

    def floor_items(self) -> Mapping[str, Mapping[str, Items]]:
        return {_FLOOR: {"test": self._openings}}

    @cached_property
    def _openings(self) -> Items:
        """Every document's first words, as many as people use, as if someone had written them."""
        wanted = round(self._split_facts("train")["words_per_reference"])
        documents = self.splits["test"]
        return measure(_as_written(documents, [opening(source_of(one), wanted) for one in documents]))

    def parameters(self) -> tuple[int, list[dict[str, Any]]]:
        model = self._audited.model
        config = model.config
        sizes = {"vocabulary": config.vocab_size, "width": config.hidden_size}
        return count_parameters(model), [row.plain() for row in derive(model, sizes)]

    def audit(self) -> tuple[Check, ...]:
        """Whether the model with its cache, and with its requests padded, says what it says without; and
        whether its loss is that of the answers and of nothing else."""
        writer = self._writer(self._audited, "float32")
        asked = self._asked("dev").ids
        chosen = sorted({0, len(asked) // 2, len(asked) - 1})[:_AUDITED]
        pairs = [self._learned("dev")[place] for place in chosen]
        checks = [
            padding_check(writer, [asked[place] for place in chosen]),
            cache_check(writer, pairs[0].asked, pairs[0].answered[:_TOKENS]),
        ]
        if self.setup.lesson.trains:
            checks.append(answer_check(writer.module, PairBatch(tuple(pairs))))
        return tuple(checks)

    @cached_property
    def _audited(self) -> Loaded:
        return self._own.load(self.base)

    # ---- a run ---------------------------------------------------------------------------------------------

    def run(self, arm: str, seed: int, folder: Path, observer: Observer) -> RunResult:
        lesson = self.setup.lesson
        common: dict[str, Any] = {"arm": arm, "seed": seed}
        metrics: dict[str, float] = {}
        loaded: Loaded | None = None
        paused = 0.0
        if lesson.trains:
            loaded = self._loaded(self._own)
            progress = self._train(loaded, seed, folder, observer)
            common |= {"seconds": progress.seconds, "steps": progress.step}
            common["tokens_per_second"] = progress.tokens / progress.seconds if progress.seconds else 0.0
            if progress.status == "diverged":
                return RunResult(**common, status="diverged", reason=progress.reason)
            metrics |= {**progress.chosen, **progress.last}
            paused = progress.paused
        trained = time.perf_counter()
        test = self.splits["test"]
        asked = self._asked("test")
        identity: dict[str, Any] = self._identity(self._own)
        if lesson.trains:
            identity = {"run": fingerprint(self.setup.plain()), "seed": seed}
        texts = self._texts(identity, asked, folder / "texts" if lesson.trains else None)
        what = f"the test split, {len(asked)} texts"
        written = texts.write(
            lambda: self._writer(loaded or self._loaded(self._own), self.setup.precision), observer, what
        )
        keep_beside(folder / "texts.jsonl", test, written)
        items = measure(_as_written(test, [one.text for one in written]))
        metrics |= {f"test_{name}": items.mean(name) for name in ALL}
        metrics["test_ended"] = sum(one.ended for one in written) / len(written)
        return RunResult(
            **common,
            status="ok",
            evaluation_seconds=paused + time.perf_counter() - trained,
            metrics=metrics,
            items={"test": items},
            exhibits={"summaries": self._shown(written)},
        )

    def _train(self, loaded: Loaded, seed: int, folder: Path, observer: Observer) -> Progress:
        setup = self.setup
        lesson, training, model = setup.lesson, setup.training, loaded.model
        learned, dev = self._to_learn(observer), self._learned("dev")
        teacher = self._loaded(setup.teacher).model if lesson.on_logits else None
        batches = PairBatches(learned, training.batch, seed)
        checkpoint = folder / "checkpoint.safetensors"
        sample = [learned[place] for place in spread(len(learned), min(len(dev), len(learned)))]

        def evaluate() -> dict[str, float]:
            splits = {"train": sample, "dev": dev}
            return {f"{name}_loss": answer_loss(model, of, setup.precision) for name, of in splits.items()}

        progress = train(
            Run(
                model=model,
                objective=lesson.objective(teacher, len(loaded.tokenizer), setup.precision),
                batches=batches,
                training=training,
                steps=training.resolve_steps(batches.per_epoch, sum(map(len, learned))),
                seed=seed,
                evaluate=evaluate,
                checkpoint=checkpoint,
            ),
            Seldom(observer),
        )
        Checkpoint.of(model, None, {"seed": seed, "progress": vars(progress)}).write(checkpoint)
        return progress

    def _to_learn(self, observer: Observer) -> list[Pair]:
        """The training split with the texts of this lesson."""
        documents, own = self.splits["train"], self._learned("train")
        by_people = self.setup.lesson.with_references(len(documents))
        if len(by_people) == len(documents):
            return own
        tokenizer = self.setup.teacher.tokenizer(self.base)
        teacher = self.setup.teacher
        asked = ask(tokenizer, documents, self.setup.prompt, teacher.checkpoint)
        texts = self._texts(self._identity(teacher), asked)
        written = texts.write(
            lambda: self._writer(self._loaded(teacher), self.setup.precision),
            observer,
            f"the teacher's texts for {len(asked)} documents",
        )
        return [
            pair if place in by_people else Pair(pair.asked, self._answer(text.text, ends=text.ended))
            for place, (pair, text) in enumerate(zip(own, written, strict=True))
        ]

    # ---- requests, answers, texts --------------------------------------------------------------------------

    @cache  # noqa: B019 - a bench lives as long as its process works on the study
    def _asked(self, split: str) -> Asked:
        return ask(self.tokenizer, self.splits[split], self.setup.prompt, self._own.checkpoint)

    def _learned(self, split: str) -> list[Pair]:
        """Requests with people's texts."""
        return [
            Pair(asked, self._answer(document.references[0]))
            for asked, document in zip(self._asked(split).ids, self.splits[split], strict=True)
        ]

    def _answer(self, text: str, *, ends: bool = True) -> tuple[int, ...]:
        return answer(self.tokenizer, text, self.setup.prompt, self.setup.writing.longest, ends=ends)

    def _identity(self, writer: Teacher) -> dict[str, Any]:
        return {**writer.identity(self.base), "precision": self.setup.precision}

    def _texts(self, identity: dict[str, Any], asked: Asked, folder: Path | None = None) -> Texts:
        """Of a run in its folder; of a checkpoint as it is in the cache, for all runs and studies."""
        texts = Texts(folder or Path(), asked, self.setup.writing, identity)
        return texts if folder else texts.at(cache_folder().path / "texts" / texts.key)

    def _loaded(self, which: Teacher) -> Loaded:
        loaded = which.load(self.base)
        loaded.model.to(self.device)
        return loaded

    def _writer(self, loaded: Loaded, precision: Precision) -> HubWriter:
        if precision == "bfloat16":
            loaded.model.to(torch.bfloat16)
        writer = HubWriter(loaded.model, loaded.tokenizer, str(loaded.place))
        writer.stops |= {int(loaded.tokenizer.eos_token_id)}  # what the student learns to end with
        return writer

    def _shown(self, written: Sequence[Text]) -> dict[str, Any]:
        """A few documents, what people made of them, and what this arm did."""
        documents = self.splits["test"]
        shown = [
            {
                "name": documents[place].name,
                "source": source_of(documents[place]),
                "references": list(documents[place].references),
                "text": written[place].text,
            }
            for place in spread(len(documents), min(self.setup.measure.shown, len(documents)))
        ]
        people = [document for document in documents if len(document.references) > 1]
        compared = [
            Written(document.name, source_of(document), document.references[0], document.references[1:])
            for document in people
        ]
        return {
            "shown": shown,
            "people": {name: measure(compared).mean(name) for name in ALL} if compared else {},
        }


def _all_there(wanted: Mapping[str, Callable[[], Any]]) -> list[Any]:
    """What a study is made of, or one error that says everything that is missing."""
    found, problems = [], []
    for place, get in wanted.items():
        try:
            found.append(get())
        except RequestError as error:
            problems.append(Problem(place, str(error)))
    if problems:
        raise DeclarationError(
            problems, "what the study works on (docs/distilling.md says where it comes from)"
        )
    return found


def _as_written(documents: Sequence[Document], texts: Sequence[str]) -> list[Written]:
    return [
        Written(document.name, source_of(document), text, document.references)
        for document, text in zip(documents, texts, strict=True)
    ]
