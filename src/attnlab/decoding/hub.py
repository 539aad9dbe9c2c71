"""Causal language models of transformers as writers, with their own tokenizers and caches.

Shapes: B continuations, T tokens, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from attnlab.audit import hub
from attnlab.decoding.writer import Reading
from attnlab.errors import RequestError, TargetError


def open_pretrained(where: str) -> HubWriter:
    """A model and its tokenizer from a directory or the hub; safetensors only."""
    module, transformers = hub.pretrained(where), hub.library()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(where)
    except Exception as error:  # theirs are of many kinds
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise TargetError(f"hf:{where}: its tokenizer could not be loaded: {reason}") from None
    return HubWriter(module, tokenizer, f"hf:{where}")


class HubWriter:
    """A model of transformers, and its tokenizer."""

    def __init__(self, module: Any, tokenizer: Any, name: str = "the model") -> None:
        self.module, self.tokenizer, self.name = module.eval(), tokenizer, name
        config = module.config.get_text_config()
        self.size = int(module.get_output_embeddings().weight.shape[0])
        self.longest: int | None = getattr(config, "max_position_embeddings", None)
        ends = module.generation_config.eos_token_id
        self.stops = frozenset(ends if isinstance(ends, list) else [] if ends is None else [ends])
        self.never: tuple[int, ...] = ()

    def begin(self, *, vectors: bool = False) -> Reading:
        return CachedReading(self.module, vectors)

    def logits(self, tokens_BT: Tensor) -> Tensor:
        logits: Tensor = self.module(input_ids=tokens_BT.to(self.module.device), use_cache=False).logits
        return logits

    def encode(self, text: str) -> list[int]:
        tokens = [int(token) for token in self.tokenizer(text).input_ids]
        if not tokens:
            start = self.tokenizer.bos_token_id
            if start is None:
                raise RequestError(f"the prompt is empty, and {self.name} has no token to begin a text with")
            tokens = [int(start)]
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=True))

    def piece(self, token: int) -> str:
        return str(self.tokenizer.decode([token]))


class CachedReading:
    """A model of transformers by its own cache."""

    def __init__(self, module: Any, vectors: bool) -> None:
        self.module, self.wants_vectors = module, vectors
        self.cache: Any = None

    def read(self, tokens_BT: Tensor) -> Tensor:
        output = self.module(
            input_ids=tokens_BT.to(self.module.device),
            past_key_values=self.cache,
            use_cache=True,
            output_hidden_states=self.wants_vectors,
        )
        return self.taken(output)

    def taken(self, output: Any) -> Tensor:
        """What is to be remembered of a pass; the logits (B, V) at its end."""
        self.cache = output.past_key_values
        if self.cache is None:
            raise TargetError(f"{type(self.module).__name__} keeps no cache that transformers gives out")
        if self.wants_vectors:
            self.vectors_BTD: Tensor = output.hidden_states[-1]
        logits_BV: Tensor = output.logits[:, -1]
        return logits_BV

    def keep(self, rows_B: Tensor) -> None:
        self.cache.reorder_cache(rows_B.to(self.module.device))
