"""A small decoder that a study trains for itself, so that there is one to decode on any machine: trained
once, kept in the cache, and found there by all that it depends on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import field_validator

from attnlab.corpus import Corpus, Sotu
from attnlab.decoding import OwnWriter
from attnlab.errors import StoreError
from attnlab.model import Decoder, DecoderModel
from attnlab.spec import Spec, fingerprint
from attnlab.study.kinds.language_model import LanguageModel, LanguageModelBench
from attnlab.tokens import Framing, Sentences, Tokenizer, Words
from attnlab.tokens import cache as entries
from attnlab.tokens.batches import Batches
from attnlab.training import Checkpoint, Interrupted, NextToken, Observer, Run, Training, train
from attnlab.wholefile import claimed

_WAIT_SECONDS = 0.5


class Trained(Spec):
    """What the decoder is trained on, and how."""

    corpus: Corpus = Sotu()
    tokens: Tokenizer = Words()
    framing: Framing = Sentences()
    model: Decoder = Decoder()
    training: Training = Training()

    @field_validator("training")
    @classmethod
    def _keeps_the_last(cls, training: Training) -> Training:
        if training.keep != "last":
            raise ValueError('this decoder is not measured on the way: its last state writes (keep = "last")')
        return training

    def bench(self, base: Path | None) -> LanguageModelBench:
        """Corpus and model, as a study of language models has them."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return LanguageModelBench(LanguageModel(**fields), base)


def trained_writer(trained: Trained, bench: LanguageModelBench, seed: int, observer: Observer) -> OwnWriter:
    """The decoder with the weights it has after training with this seed: from the cache, or trained now.

    Of several processes that want it one trains, and the others wait. A training that is interrupted goes on
    from where it was.
    """
    place = _place(trained, bench, seed)
    model = bench.model(seed)
    with _turn(place.with_suffix(".lock"), observer):
        if not place.is_file():
            _train(trained, bench, model, seed, place, observer)
    Checkpoint.read(place).restore(model)
    return OwnWriter(model.eval(), bench.vocabulary, f"the decoder trained with seed {seed}")


def _place(trained: Trained, bench: LanguageModelBench, seed: int) -> Path:
    depends_on = {
        "trained": trained.plain(),
        "text": bench.facts()["provenance"]["sha256"],
        "vocabulary": bench.vocabulary.fingerprint,
        "seed": seed,
        "torch": torch.__version__,
    }
    return entries.folder().path / f"decoder-{fingerprint(depends_on)}.safetensors"


def _train(
    trained: Trained,
    bench: LanguageModelBench,
    model: DecoderModel,
    seed: int,
    place: Path,
    observer: Observer,
) -> None:
    training, split = trained.training, bench.prepared.splits["train"]
    batches = Batches(split, training.batch, seed)
    steps = training.resolve_steps(batches.per_epoch, split.n_targets)
    begun = place.with_suffix(".part.safetensors")
    observer.note(f"training the decoder that is to write (seed {seed}, {steps} steps), once")
    progress = train(
        Run(
            model=model,
            objective=NextToken(training.head_dtype),
            batches=batches,
            training=training,
            steps=steps,
            seed=seed,
            evaluate=dict,
            checkpoint=begun,
        ),
        _InTheBackground(observer),
    )
    if progress.status != "ok":
        raise StoreError(f"the decoder that was to write cannot be trained: {progress.reason}")
    Checkpoint.of(model, None, {"seed": seed, "progress": vars(progress)}).write(place)
    begun.unlink(missing_ok=True)


@dataclass
class _InTheBackground:
    """Observes a training that is not the run itself: its curve is not the run's."""

    observer: Observer

    def begin(self, step: int) -> None: ...

    def row(self, row: Mapping[str, Any]) -> None: ...

    def note(self, text: str) -> None:
        self.observer.note(text)

    def should_save(self) -> bool:
        return self.observer.should_save()

    def should_stop(self) -> bool:
        return self.observer.should_stop()


@contextlib.contextmanager
def _turn(lock: Path, observer: Observer) -> Iterator[None]:
    """Alone at this, as soon as no other process is."""
    while True:
        with claimed(lock) as ours:
            if ours:
                yield
                return
        if observer.should_stop():
            raise Interrupted
        time.sleep(_WAIT_SECONDS)
