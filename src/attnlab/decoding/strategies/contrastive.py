"""Contrastive search. Su et al. 2022, https://arxiv.org/abs/2202.06417.

Shapes: B continuations, K candidates of each, T tokens so far, D width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from attnlab.decoding.strategy import Continuation, Search, Task
from attnlab.decoding.writer import room
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class Contrastive(Search):
    """Of the k likeliest tokens, the one with the best (1 − α)·chance − α·likeness, where likeness is the
    largest cosine between the model's vector for it and those of all tokens before. At α = 0, greedy."""

    alpha: Annotated[float, Field(ge=0.0, le=1.0)] = 0.6
    k: Positive = 4

    def __str__(self) -> str:
        return f"of the {self.k} likeliest, take what is least like the text so far (weight {self.alpha:g})"

    def run(self, task: Task) -> list[Continuation]:
        # Rows stop at different times; each by itself is simple, and its candidates are a batch already.
        return [self._one(task, prompt_T[None]) for prompt_T in task.prompt_BT]

    def _one(self, task: Task, written_1T: Tensor) -> Continuation:
        # A candidate's vector is known once it was read, so here the last token needs room too.
        longest = room(task.writer, written_1T.shape[1] + 1, task.longest)
        if not longest:
            return Continuation((), ended=False)
        reading = task.writer.begin(vectors=True)
        logits_1V = reading.read(written_1T)
        before_TD = F.normalize(reading.vectors_BTD[0].double(), dim=-1)
        text: list[int] = []
        k = min(self.k, task.writer.size)
        for _ in range(longest):
            chances_V = task.filtered(logits_1V, written_1T)[0].softmax(-1)
            chances_K, candidates_K = chances_V.topk(k)
            reading.keep(torch.zeros(k, dtype=torch.long, device=candidates_K.device))
            logits_KV = reading.read(candidates_K[:, None])
            vectors_KD = F.normalize(reading.vectors_BTD[:, -1].double(), dim=-1)
            likeness_K = (vectors_KD @ before_TD.T).amax(-1)
            scores_K = (1 - self.alpha) * chances_K - self.alpha * likeness_K
            place = int(scores_K.where(chances_K > 0, float("-inf")).argmax())
            token = int(candidates_K[place])
            if token in task.writer.stops:
                return Continuation(tuple(text), ended=True)
            text.append(token)
            reading.keep(torch.tensor([place], device=candidates_K.device))
            logits_1V = logits_KV[place : place + 1]
            written_1T = torch.cat([written_1T, candidates_K[None, place : place + 1]], dim=1)
            before_TD = torch.cat([before_TD, vectors_KD[place : place + 1]])
        return Continuation(tuple(text), ended=False)
