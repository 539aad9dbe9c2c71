"""An encoder in a directory of its own: weights, the tokenizer they belong to, and what is known of both.

A model that is fed another tokenizer's ids runs without complaint and means nothing. So the two travel
together, and weights are never put under another vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from attnlab.errors import RequestError, StoreError
from attnlab.model import Encoder, EncoderModel
from attnlab.spec import differences
from attnlab.tokens import Vocabulary
from attnlab.training.checkpoint import Checkpoint
from attnlab.wholefile import write_json, write_whole

WEIGHTS, TOKENIZER, FACTS = "encoder.safetensors", "tokenizer.json", "encoder.json"
_SCHEMA = 1
_WORDS = "embedding.weight"


@dataclass(frozen=True)
class SavedEncoder:
    """What such a directory holds."""

    directory: Path
    weights: Mapping[str, Tensor]
    vocabulary: Vocabulary
    facts: Mapping[str, Any]  # the encoder's declaration under `model`, the tokenizer's under `tokens`

    def restore(self, encoder: EncoderModel, vocabulary: Vocabulary) -> None:
        """Put the weights into an encoder of the same declaration, over the same vocabulary."""
        if vocabulary.fingerprint != self.vocabulary.fingerprint:
            raise RequestError(
                f"{self.directory}: these weights belong to the tokenizer beside them "
                f"({_told(self.vocabulary)}), not to another ({_told(vocabulary)}): the same ids would stand "
                "for other words"
            )
        self.refuse_other(encoder.spec)
        start_from(self.weights, encoder)

    def refuse_other(self, spec: Encoder) -> None:
        """An error where an encoder so declared is another one; its dropout aside, which holds no weights."""
        found = differences(dict(self.facts["model"]), spec.plain())
        told = "; ".join(f"model.{change}" for change in found if change.place != "dropout")
        if told:
            raise RequestError(f"{self.directory}: its encoder is declared otherwise than the model: {told}")


def start_from(weights: Mapping[str, Tensor], encoder: EncoderModel) -> None:
    """Weights of another encoder of the same declaration. One that filled in masks has a row more in its
    embedding, the mask's, which nobody else reads."""
    words = encoder.embedding.num_embeddings
    encoder.load_state_dict({**weights, _WORDS: weights[_WORDS][:words]})


def save_encoder(
    directory: Path, encoder: EncoderModel, vocabulary: Vocabulary, facts: Mapping[str, Any]
) -> None:
    """The directory, made or written anew; the facts last, so that it is whole when they are there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{directory}: cannot be made ({error.strerror})") from None
    checkpoint = Checkpoint.of(encoder, None, {"vocabulary": vocabulary.fingerprint})
    checkpoint.write(directory / WEIGHTS)
    (directory / f"{Path(WEIGHTS).stem}.previous.safetensors").unlink(missing_ok=True)
    write_whole(directory / TOKENIZER, vocabulary.to_json() + "\n")
    head = {"schema": _SCHEMA, "model": encoder.spec.plain(), "vocabulary": vocabulary.fingerprint}
    write_json(directory / FACTS, {**head, **facts})


def open_encoder(directory: Path) -> SavedEncoder:
    """What lies in a directory; an error where it is no encoder, is damaged, or holds parts of two."""
    try:
        facts = json.loads((directory / FACTS).read_text("utf-8"))
        vocabulary = Vocabulary.from_json((directory / TOKENIZER).read_text("utf-8"))
        told = {key: facts[key] for key in ("model", "vocabulary", "tokens")}
    except OSError as error:
        raise RequestError(
            f"{directory}: not the directory of an encoder ({error.strerror}: {Path(error.filename).name}); "
            f"one holds {WEIGHTS}, {TOKENIZER} and {FACTS}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{directory}: damaged ({type(error).__name__}: {error})") from None
    checkpoint = Checkpoint.read(directory / WEIGHTS)
    for file, found in ((FACTS, told["vocabulary"]), (WEIGHTS, checkpoint.facts.get("vocabulary"))):
        if found != vocabulary.fingerprint:
            raise RequestError(
                f"{directory}: {file} belongs to a tokenizer of fingerprint {found}, and {TOKENIZER} is "
                f"another ({_told(vocabulary)}): the same ids would stand for other words"
            )
    weights = {name.removeprefix("model/"): tensor for name, tensor in checkpoint.tensors.items()}
    return SavedEncoder(directory, weights, vocabulary, facts)


def _told(vocabulary: Vocabulary) -> str:
    return f"{vocabulary.kind}, {vocabulary.size:,} ids, fingerprint {vocabulary.fingerprint}"
