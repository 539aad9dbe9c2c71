"""Small language models, trained from scratch."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from attnlab.audit.models import model_from, sane
from attnlab.audit.models.causality import causality
from attnlab.corpus import Corpus, Sotu
from attnlab.decoding import OwnWriter, Recipe, write
from attnlab.evaluation.floors import floors_kept
from attnlab.evaluation.losses import (
    by_document,
    mean_loss,
    perplexity,
    same_text,
    sample_of,
    sequence_losses,
    token_losses,
)
from attnlab.evaluation.maps.camera import Camera
from attnlab.evaluation.maps.probes import Probe, probes_of, repeats
from attnlab.evaluation.maps.said_twice import said_twice
from attnlab.evaluation.prefix import prefix_score
from attnlab.evaluation.worst import worst_read
from attnlab.model import Decoder, DecoderModel
from attnlab.model.count import count_parameters, derive
from attnlab.record import Check, Items, RunResult
from attnlab.spec import Count, Positive
from attnlab.study.kind import Bench, Held, Setup
from attnlab.study.trained_cell import PROBES, SHORTHANDS, Ended, Looking, train_cell
from attnlab.tokens import Blocks, Encoded, Framing, Prepared, Sentences, Tokenizer, Words, prepare
from attnlab.tokens.batches import Batch, Batches
from attnlab.training import NextToken, Observer, Run, Training
from attnlab.training.device import present
from attnlab.verdict import Metric


class Measure(Looking):
    """What is measured beside the losses of the splits."""

    sentences: tuple[str, ...] = (
        "After learning language models model natural language.",
        "The quick brown fox jumps over the lazy dog.",
        "Amidst the twilight, the ancient ruins whispered secrets long forgotten.",
        "Quantum entanglement fascinates physicists and philosophers alike, bridging worlds with invisible "
        "threads.",
    )
    samples: Count = 5  # texts drawn from every trained model
    train_tokens: Count = 40_000  # of the training split, for the train loss
    curve_tokens: Count = 10_000  # of train and of dev, at every evaluation on the way
    prefix_tokens: Count = 2_000  # predictions that are also made from the prefix alone
    lengths: tuple[Positive, ...] = ()  # the test split is also read in blocks of these many tokens
    length_tokens: Positive = 20_000  # of the test split, at every length
    probes: tuple[str, ...] = PROBES  # texts on which attention maps are taken
    repeats: Count = 8  # sequences of random tokens said twice, on which they are taken too
    worst: Count = 10  # texts of every held-out split that are shown because their loss is highest


class LanguageModel(Setup):
    """A decoder trained to predict the next token of a corpus."""

    kind: ClassVar[str] = "language-model"
    trains_once: ClassVar[bool] = True
    default_metric: ClassVar[str] = "test_loss"
    default_margin: ClassVar[float] = 0.01  # nats per token: one per cent of the perplexity
    shorthands: ClassVar[Mapping[str, str]] = SHORTHANDS

    corpus: Corpus = Sotu()
    tokens: Tokenizer = Words()
    framing: Framing = Sentences()
    model: Decoder = Decoder()
    training: Training = Training()
    measure: Measure = Measure()

    @classmethod
    def metric(cls, name: str) -> Held | None:
        found = re.fullmatch(r"(?!train)([\w-]+?)_(loss|bits_per_byte)", name)
        if found is None:
            return None
        split, measure = found.groups()
        metric = Metric(name, "lower")
        if measure == "bits_per_byte":
            return Held(split, measure, metric, weight="bytes")
        return Held(split, measure, metric, weight="tokens", unlike=_OTHER_TOKENS.format(split))

    @classmethod
    def metric_names(cls) -> tuple[str, ...]:
        return tuple(f"{split}_{what}" for split in ("test", "dev") for what in ("loss", "bits_per_byte"))

    def prepared(self, base: Path | None, framing: Framing, context: int) -> Prepared:
        """The corpus in sequences of at most `context` inputs."""
        return prepare(self.corpus, self.tokens, framing, context, base=base)

    def settled(self, environment: Mapping[str, Any]) -> Self:
        training = self.training.settled(bool(environment.get("bfloat16")))
        return self.model_copy(update={"training": training})

    def prepare(self, base: Path | None) -> LanguageModelBench:
        return LanguageModelBench(self, base)


_OTHER_TOKENS = (
    "its vocabulary is not the baseline's, and losses per token of different tokens cannot be compared; "
    "judge by {}_bits_per_byte"
)

# What must hold before a loss of an arm is shown.
_GATE = (sane.shape, sane.determinism, causality, sane.length, sane.batch)
_AUDIT_WORDS = 97


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Tensors as small as an audit's are worked on faster by one thread than by several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class LanguageModelBench(Bench):
    """A decoder and its prepared corpus."""

    def __init__(self, setup: LanguageModel, base: Path | None) -> None:
        self.setup, self.base = setup, base
        self.device = present(setup.training.device)
        self.prepared = setup.prepared(base, setup.framing, setup.model.context)
        self.vocabulary = self.prepared.vocabulary

    def facts(self) -> Mapping[str, Any]:
        return self.prepared.facts

    def floors(self) -> Mapping[str, Mapping[str, float]]:
        return floors_kept(self.prepared)

    def parameters(self) -> tuple[int, list[dict[str, Any]]]:
        model, spec = self.model(0), self.setup.model
        sizes = {"vocabulary": self.vocabulary.size, "width": spec.width, "context": spec.context}
        sizes["head width"] = spec.dims.head_width
        return count_parameters(model), [row.plain() for row in derive(model, sizes)]

    def audit(self) -> tuple[Check, ...]:
        # The arm's own model with fewer words: what mixes tokens in time does not know how many there are.
        model = model_from(self.setup.model.build(_AUDIT_WORDS), self.setup.kind)
        with _one_thread():
            return tuple(rule(model) for rule in _GATE)

    def run(self, arm: str, seed: int, folder: Path, observer: Observer) -> RunResult:
        model = self.model(seed)
        training = self.setup.training
        batches = Batches(self._split("train"), training.batch, seed)
        steps = training.resolve_steps(batches.per_epoch, self._split("train").n_targets)
        ended = train_cell(
            arm,
            Run(
                model=model,
                objective=NextToken(training.head_dtype),
                batches=batches,
                training=training,
                steps=steps,
                seed=seed,
                evaluate=lambda: self._curve_point(model),
                checkpoint=folder / "checkpoint.safetensors",
            ),
            self.setup.measure,
            Camera(model, self._probes, folder, said_twice),
            observer,
        )
        return ended.result() if ended.diverged else self._measured(model, ended)

    def _measured(self, model: DecoderModel, ended: Ended) -> RunResult:
        train_loss = mean_loss(model, self._split("train"), self._train_sample)
        metrics = {"train_loss": train_loss, "train_perplexity": perplexity(train_loss)}
        items, worst = {}, {}
        for name, split in self.prepared.splits.items():
            if name != "train":
                sums = sequence_losses(model, split)
                items[name] = by_document(split, sums)
                metrics |= self._metrics_of(name, items[name])
                worst[name] = worst_read(split, sums, self.vocabulary, self.setup.measure.worst)
        metrics |= self._by_length(model)
        prefix = prefix_score(model, self._split("test"), self._prefix_sample)
        metrics |= {
            "ordinary_perplexity": perplexity(prefix.ordinary_loss),
            "prefix_perplexity": perplexity(prefix.prefix_loss),
        }
        return ended.result(
            metrics,
            items,
            checks=(prefix.check,),
            exhibits={"worst": worst} if self.setup.measure.worst else {},
            sentences=tuple(self._scored(model, text) for text in self.setup.measure.sentences),
            samples=self._samples(model, ended.seed),
        )

    def _metrics_of(self, name: str, losses: Items) -> dict[str, float]:
        loss, bits = losses.mean("loss", "tokens"), losses.mean("bits_per_byte", "bytes")
        return {f"{name}_loss": loss, f"{name}_perplexity": perplexity(loss), f"{name}_bits_per_byte": bits}

    def _by_length(self, model: DecoderModel) -> dict[str, float]:
        """The test loss in blocks of other lengths than the trained one, as far as the positions reach: the
        same text at every length."""
        lengths, reach = self.setup.measure.lengths, model.position.longest
        if not lengths:
            return {}
        longest = self._in_blocks(max(lengths))
        chosen = sample_of(longest, self.setup.measure.length_tokens)
        return {
            f"test_loss_at_{length}": mean_loss(model, blocks, same_text(blocks, longest, chosen))
            for length in lengths
            if (reach is None or length <= reach) and (blocks := self._in_blocks(length))
        }

    def _in_blocks(self, length: int) -> Encoded:
        return self.setup.prepared(self.base, Blocks(), length).splits["test"]

    def _curve_point(self, model: DecoderModel) -> dict[str, float]:
        tokens = self.setup.measure.curve_tokens
        return {
            f"{name}_loss": mean_loss(model, self._split(name), sample_of(self._split(name), tokens))
            for name in ("train", "dev")
        }

    def _scored(self, model: DecoderModel, text: str) -> dict[str, Any]:
        known = self.vocabulary.encode(text)
        ids = [self.vocabulary.start, *known, self.vocabulary.stop][: self.setup.model.context + 1]
        row = np.asarray(ids, dtype=np.int64)
        batch = Batch(row[:-1], row[1:], np.array([len(row) - 1]), np.array([0]))
        loss = token_losses(model, batch).double().mean().item()
        unknown = 0 if self.vocabulary.unknown is None else known.count(self.vocabulary.unknown)
        return {
            "text": text,
            "tokens": batch.tokens,
            "unknown": unknown,
            "loss": loss,
            "perplexity": perplexity(loss),
        }

    def _samples(self, model: DecoderModel, seed: int) -> tuple[str, ...]:
        texts = write(
            OwnWriter(model, self.vocabulary),
            [self.vocabulary.start],
            Recipe(),
            count=self.setup.measure.samples,
            longest=self.setup.model.context,
            seed=seed,
        )
        return tuple(self.vocabulary.decode(text.tokens) for text in texts)

    def model(self, seed: int) -> DecoderModel:
        """With its initial values."""
        return self.setup.model.build(self.vocabulary.size, seed).to(self.device)

    def _split(self, name: str) -> Encoded:
        return self.prepared.splits[name]

    @cached_property
    def _probes(self) -> tuple[Probe, ...]:
        measure, context = self.setup.measure, self.setup.model.context
        texts = probes_of(measure.probes, self.vocabulary, context)
        return (*texts, *repeats(measure.repeats, self.vocabulary, context))

    @cached_property
    def _train_sample(self) -> Any:
        return sample_of(self._split("train"), self.setup.measure.train_tokens)

    @cached_property
    def _prefix_sample(self) -> Any:
        return sample_of(self._split("test"), self.setup.measure.prefix_tokens)
