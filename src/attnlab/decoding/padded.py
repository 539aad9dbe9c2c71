"""Prompts of different lengths continued together, by models of transformers: padded on the left, so that
all of them end at the same place.

What is padding is seen by nobody, and every prompt has the positions that it would have alone. In its place
stands the prompt's own first token again: a filter that looks at what is written finds nothing new there.

Shapes: B prompts, T places of the longest, t of any one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from attnlab.decoding.hub import CachedReading, HubWriter
from attnlab.decoding.recipe import Recipe
from attnlab.decoding.strategies import Greedy, Plain
from attnlab.decoding.strategy import Continuation, Task
from attnlab.decoding.writer import Reading, room
from attnlab.errors import RequestError
from attnlab.record import Check

_TOLERANCE = 1e-4  # of the largest logit: fp32 sums over another number of places differ by less


@torch.inference_mode()
def write_each(
    writer: HubWriter,
    prompts: Sequence[Sequence[int]],
    recipe: Recipe,
    *,
    longest: int,
    seeds: Sequence[int],
    beat: Callable[[], None] = lambda: None,
) -> list[Continuation]:
    """A continuation of every prompt, of at most `longest` tokens; the random numbers of each follow from its
    seed. `beat` is called before every step, and may raise to end the work."""
    if not prompts:
        return []
    empty = next((place for place, prompt in enumerate(prompts) if not prompt), None)
    if empty is not None:
        raise RequestError(f"prompt {empty + 1} holds no tokens")
    T = max(map(len, prompts))
    fitting = room(writer, T, longest)
    if fitting < longest:
        raise RequestError(
            f"a prompt of {T} tokens and {longest} more are too many: {writer.name} reads {writer.longest}"
        )
    # A search that follows several texts of a prompt works on one prompt at a time.
    size = len(prompts) if isinstance(recipe.search, Greedy | Plain) else 1
    texts: list[Continuation] = []
    for start in range(0, len(prompts), size):
        some = prompts[start : start + size]
        task = Task(
            writer=_Padded(writer, some, beat),
            prompt_BT=_together(some),
            filters=recipe.filters,
            longest=longest,
            seeds_B=list(seeds[start : start + size]),
        )
        texts += recipe.search.run(task)
    return texts


def _together(prompts: Sequence[Sequence[int]]) -> Tensor:
    T = max(map(len, prompts))
    return torch.tensor([[prompt[0]] * (T - len(prompt)) + list(prompt) for prompt in prompts])


@torch.inference_mode()
def padding_check(writer: HubWriter, prompts: Sequence[Sequence[int]]) -> Check:
    """The logits after each of some prompts, padded together, against those of the prompt alone."""
    together_BV = _Padded(writer, prompts, lambda: None).begin().read(_together(prompts)).float()
    alone_BV = torch.cat([writer.logits(torch.tensor([list(prompt)]))[:, -1] for prompt in prompts]).float()
    lengths = [len(prompt) for prompt in prompts]
    apart = float((together_BV - alone_BV).abs().max() / alone_BV.abs().max())
    agree = int((together_BV.argmax(-1) == alone_BV.argmax(-1)).sum())
    evidence = (
        f"the logits after {len(prompts)} prompts of {min(lengths)} to {max(lengths)} tokens, padded "
        f"together, are at most {apart:.2g} of their size away from those of each alone, the likeliest token "
        f"is the same for {agree}"
    )
    detail = {"apart": apart, "tolerance": _TOLERANCE, "same": agree}
    return Check("padding", "pass" if apart <= _TOLERANCE else "fail", evidence, detail)


class _Padded(HubWriter):
    """A writer whose readings begin with prompts of these lengths."""

    def __init__(self, writer: HubWriter, prompts: Sequence[Sequence[int]], beat: Callable[[], None]) -> None:
        self.__dict__ |= vars(writer)
        self.lengths_B, self.beat = torch.tensor([len(prompt) for prompt in prompts]), beat

    def begin(self, *, vectors: bool = False) -> Reading:
        return _PaddedReading(self.module, self.lengths_B, self.beat, vectors)


class _PaddedReading(CachedReading):
    """A model of transformers by its own cache, told what of it is padding."""

    def __init__(self, module: Any, lengths_B: Tensor, beat: Callable[[], None], wants_vectors: bool) -> None:
        super().__init__(module, wants_vectors)
        self.beat = beat
        self.lengths_B = lengths_B.to(module.device)  # of what each text holds
        self.seen_BT: Tensor | None = None  # whether a place holds a text's own token
        self.takes = inspect.signature(module.forward).parameters.keys()

    def read(self, tokens_BT: Tensor) -> Tensor:
        self.beat()
        T = tokens_BT.shape[1]
        if self.seen_BT is None:
            places_T = torch.arange(T, device=self.module.device)
            self.seen_BT = places_T >= T - self.lengths_B[:, None]
            positions_BT = (self.seen_BT.cumsum(1) - 1).clamp(min=0)
        else:
            self.seen_BT = torch.cat([self.seen_BT, self.seen_BT.new_ones(len(tokens_BT), T)], dim=1)
            positions_BT = self.lengths_B[:, None] + torch.arange(T, device=self.module.device)
            self.lengths_B = self.lengths_B + T
        # Not every model takes these two; what it makes of padding without them, `padding_check` says.
        wanted = {"position_ids": positions_BT, "logits_to_keep": 1}
        output = self.module(
            input_ids=tokens_BT.to(self.module.device),
            attention_mask=self.seen_BT.long(),
            past_key_values=self.cache,
            use_cache=True,
            output_hidden_states=self.wants_vectors,
            **{name: value for name, value in wanted.items() if name in self.takes},
        )
        return self.taken(output)

    def keep(self, rows_B: Tensor) -> None:
        super().keep(rows_B)
        rows_B = rows_B.to(self.module.device)
        assert self.seen_BT is not None
        self.seen_BT, self.lengths_B = self.seen_BT[rows_B], self.lengths_B[rows_B]
