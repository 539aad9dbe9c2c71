"""Beam search: several texts side by side, the likeliest of all their continuations kept at every step.

Shapes: B prompts, W beams, T tokens so far, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from attnlab.decoding.strategy import Continuation, Search, Task
from attnlab.spec import Positive


@dataclass(frozen=True, kw_only=True)
class Beam(Search):
    """The `width` likeliest texts. Of those that ended, the best is taken by log-probability divided by
    length to the power `length_penalty`: at 0 short texts win, above 0 long ones are let off."""

    width: Positive = 4
    length_penalty: float = 1.0

    def __str__(self) -> str:
        return f"follow the {self.width} likeliest texts (length penalty {self.length_penalty:g})"

    def run(self, task: Task) -> list[Continuation]:
        # The same prompt has the same best text: asked twice, it is searched for once.
        done: dict[tuple[int, ...], Continuation] = {}
        for prompt_T in task.prompt_BT:
            key = tuple(prompt_T.tolist())
            if key not in done:
                done[key] = self.texts(task, prompt_T)[0]
        return [done[tuple(prompt_T.tolist())] for prompt_T in task.prompt_BT]

    def texts(self, task: Task, prompt_T: Tensor) -> list[Continuation]:
        """The best texts after one prompt, at most `width` of them, the best first."""
        if not task.longest:
            return [Continuation((), ended=False)]
        stops, size = task.writer.stops, task.writer.size
        reading = task.writer.begin()
        written_WT, scores_W = prompt_T[None], torch.zeros(1, dtype=torch.double, device=prompt_T.device)
        finished = _Finished(self.width, self.length_penalty, len(prompt_T))
        new_WT = written_WT
        for step in range(1, task.longest + 1):
            logits_WV = task.allowed(reading.read(new_WT)).double().log_softmax(-1)
            for change in task.filters:  # of the log-probabilities, as elsewhere: not made to add up again
                logits_WV = change(logits_WV, written_WT)
            total_N = (scores_W[:, None] + logits_WV).flatten()
            # As many as can stop, and `width` more to go on with.
            some = min((len(stops) + 1) * self.width, int(total_N.isfinite().sum()))
            best_N, places_N = total_N.topk(some)
            tokens, parents = (places_N % size).tolist(), places_N // size
            going_on: list[int] = []
            for place, (token, score) in enumerate(zip(tokens, best_N.tolist(), strict=True)):
                if token in stops or step == task.longest:
                    if place < self.width:
                        finished.add(written_WT[parents[place]], token, score, step, token in stops)
                elif len(going_on) < self.width:
                    going_on.append(place)
            if not going_on or finished.beats(float(best_N[going_on[0]]), step):
                break
            kept = torch.tensor(going_on, device=prompt_T.device)
            reading.keep(parents[kept])
            new_WT, scores_W = (places_N[kept] % size)[:, None], best_N[kept]
            written_WT = torch.cat([written_WT[parents[kept]], new_WT], dim=1)
        return finished.best()


@dataclass
class _Finished:
    """The best texts that ended."""

    most: int
    length_penalty: float
    prompt: int
    kept: list[tuple[float, Continuation]] = field(default_factory=list)

    def add(self, written_T: Tensor, token: int, score: float, length: int, stopped: bool) -> None:
        text = written_T.tolist()[self.prompt :] + ([] if stopped else [token])
        self.kept.append((score / length**self.length_penalty, Continuation(tuple(text), stopped)))
        self.kept.sort(key=lambda one: -one[0])
        del self.kept[self.most :]

    def beats(self, score: float, length: int) -> bool:
        """Whether no text that goes on from here, at its present length, would still come among the best."""
        return len(self.kept) == self.most and score / length**self.length_penalty <= self.kept[-1][0]

    def best(self) -> list[Continuation]:
        return [text for _, text in self.kept]
