"""Where a classifier's encoder begins: at its initial values, pretrained in the run itself, or saved before.

Pretraining hides words of the text and trains the encoder to say what stood there. It needs no labels, so it
may read more text than the labelled one; it never reads a held-out split.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attnlab.errors import RequestError
from attnlab.evaluation.masking import masked_score, most_frequent
from attnlab.model import ClassifierModel, Encoder, MaskedModel
from attnlab.spec import Part
from attnlab.study.kind import CellObserver
from attnlab.tokens import Masking, Tokenizer, Vocabulary
from attnlab.tokens.labelled import PreparedExamples
from attnlab.tokens.masking import MaskedBatches, MaskedSplit
from attnlab.training import Checkpoint, MaskedTokens, Run, Training, train
from attnlab.training.saved_encoder import SavedEncoder, open_encoder, save_encoder, start_from

FOLDER = "encoder"  # of a run: its pretrained encoder


@dataclass(frozen=True)
class Cell:
    """The run whose encoder begins."""

    data: PreparedExamples
    tokens: Tokenizer
    seed: int
    folder: Path
    base: Path | None
    observer: CellObserver


@dataclass(frozen=True)
class Begun:
    """What came before the first labelled step."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0  # of training: it is part of what the run costs


class Start(Part, ABC, family="start"):
    """What the encoder's weights are before the first labelled step."""

    def vocabulary(self, tokens: Tokenizer, model: Encoder, base: Path | None) -> Vocabulary | None:
        """The vocabulary that the weights bring with them, refused where tokenizer or model are declared
        otherwise; without one it is made from the text."""
        return None

    def settled(self, bfloat16: bool) -> Start:
        """With everything decided that is left to the machine."""
        return self

    @abstractmethod
    def begin(self, model: ClassifierModel, cell: Cell) -> Begun:
        """Set the encoder's weights; gives back what was measured on the way, and how long it took."""


@dataclass(frozen=True, kw_only=True)
class Scratch(Start):
    """Initial values."""

    def begin(self, model: ClassifierModel, cell: Cell) -> Begun:
        return Begun()


@dataclass(frozen=True, kw_only=True)
class Pretrained(Start):
    """Trained here, in every run anew, to fill in masked words of the training text."""

    masking: Masking = Masking()
    training: Training = Training(epochs=10)

    def settled(self, bfloat16: bool) -> Start:
        return replace(self, training=self.training.settled(bfloat16))

    def begin(self, model: ClassifierModel, cell: Cell) -> Begun:
        spec, vocabulary = model.encoder.spec, cell.data.vocabulary
        masked = MaskedModel(spec, vocabulary.size, cell.seed).to(model.device)
        read = MaskedSplit(cell.data.text, self.masking, masked.mask)
        held_out = {
            name: MaskedSplit(cell.data.splits[name], self.masking, masked.mask) for name in ("dev", "test")
        }
        batches = MaskedBatches(read, self.training.batch, cell.seed)
        checkpoint = cell.folder / "pretraining.safetensors"
        progress = train(
            Run(
                model=masked,
                objective=MaskedTokens(self.training.head_dtype),
                batches=batches,
                training=self.training,
                steps=self.training.resolve_steps(batches.per_epoch, len(cell.data.text.ids)),
                seed=cell.seed,
                evaluate=lambda: masked_score(masked, held_out["dev"]).metrics("dev"),
                checkpoint=checkpoint,
            ),
            cell.observer.aside("pretraining"),
        )
        if progress.status == "diverged":
            raise RequestError(f"the pretraining diverged ({progress.reason}); try a lower learning rate")
        Checkpoint.of(masked, None, {"seed": cell.seed, "progress": vars(progress)}).write(checkpoint)
        metrics: dict[str, float] = {"pretraining_steps": progress.step}
        for name, split in held_out.items():
            metrics |= masked_score(masked, split).metrics(f"masked_{name}")
        metrics |= most_frequent(read, held_out["test"]).metrics("most_frequent_word")
        facts = {"tokens": cell.tokens.plain(), "start": self.plain(), "seed": cell.seed, "measured": metrics}
        save_encoder(cell.folder / FOLDER, masked.encoder, vocabulary, facts)
        start_from(dict(masked.encoder.state_dict()), model.encoder)
        return Begun(metrics, progress.seconds)


@dataclass(frozen=True, kw_only=True)
class Saved(Start):
    """Read from a directory that a pretrained run left (`runs/ARM/SEED/encoder`), with its tokenizer."""

    directory: str

    def vocabulary(self, tokens: Tokenizer, model: Encoder, base: Path | None) -> Vocabulary:
        saved = self._open(base)
        saved.refuse_other(model)
        declared: Mapping[str, Any] = saved.facts["tokens"]
        if dict(declared) != tokens.plain():
            raise RequestError(
                f"start.directory {self.directory!r} holds an encoder over the tokenizer {dict(declared)}, "
                f"and tokens is {tokens.plain()}: a model with another tokenizer than its own means nothing; "
                "declare its own"
            )
        return saved.vocabulary

    def begin(self, model: ClassifierModel, cell: Cell) -> Begun:
        self._open(cell.base).restore(model.encoder, cell.data.vocabulary)
        return Begun()

    def _open(self, base: Path | None) -> SavedEncoder:
        return open_encoder((base or Path()) / Path(self.directory).expanduser())
