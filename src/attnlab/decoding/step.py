"""One step looked at: the whole distribution, what every filter made of it, and what was chosen.

Shapes: V vocabulary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from rich.table import Table
from rich.text import Text
from torch import Tensor

from attnlab.decoding.recipe import Recipe
from attnlab.decoding.strategies import Greedy, Plain
from attnlab.decoding.strategy import Continuation, Task
from attnlab.decoding.writer import Writer
from attnlab.errors import RequestError


@dataclass(frozen=True)
class Candidate:
    """One token at one step."""

    token: int
    piece: str
    chance: float  # as the model gives it
    upto: float  # the chance of this token and all likelier ones
    after: tuple[float, ...]  # once every filter in turn was applied; 0 where it was taken away
    chosen: bool


@dataclass(frozen=True)
class Step:
    """The whole vocabulary at one step, the likeliest first."""

    step: int  # 1: the first token after the prompt
    before: str
    filters: tuple[str, ...]
    candidates: tuple[Candidate, ...]

    @property
    def kept(self) -> tuple[Candidate, ...]:
        """What has a chance after all filters."""
        return tuple(c for c in self.candidates if (c.after[-1] if c.after else c.chance) > 0)

    def plain(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def table(self, most: int = 30) -> Table:
        """What a terminal shows: the likeliest, all that was kept among them as far as there is room."""
        shown = Table("", "token", "chance", "so far", *self.filters, box=None, padding=(0, 2, 0, 0))
        shown.title = f"step {self.step}, after {self.before[-60:]!r}"
        shown.title_justify = "left"
        last = max((i for i, c in enumerate(self.candidates) if c in set(self.kept[:most])), default=0)
        rows = self.candidates[: min(most, max(last + 4, 10))]
        for candidate in rows:
            after = [f"{chance:.4f}" if chance else "–" for chance in candidate.after]
            mark = "→" if candidate.chosen else ""
            cells = [mark, repr(candidate.piece), f"{candidate.chance:.4f}", f"{candidate.upto:.4f}", *after]
            shown.add_row(*map(Text, cells))
        rest, kept = self.candidates[len(rows) :], self.kept
        if rest:
            left = [f"{sum(c.after[i] for c in rest):.4f}" for i in range(len(self.filters))]
            shown.add_row("", f"{len(rest):,} more", f"{sum(c.chance for c in rest):.4f}", "", *left)
        held = sum(c.chance for c in kept)
        shown.caption = (
            f"kept {len(kept):,} of {len(self.candidates):,} tokens, which had {held:.4f} of the chances"
        )
        shown.caption_justify = "left"
        return shown


@torch.inference_mode()
def look_at(writer: Writer, prompt: Sequence[int], recipe: Recipe, written: Continuation, step: int) -> Step:
    """The distribution from which token number `step` of a continuation was chosen."""
    if not isinstance(recipe.search, Greedy | Plain):
        raise RequestError(
            f"{recipe.search.name!r} does not choose from one distribution: look at a step of greedy or plain"
        )
    choices = [*written.tokens, *([min(writer.stops)] if written.ended else [])]
    if not 1 <= step <= len(choices):
        raise RequestError(f"there is no step {step}: this continuation has the steps 1 to {len(choices)}")
    seen = [*prompt, *choices[: step - 1]]
    logits_1V = writer.logits(torch.tensor([seen]))[:, -1]
    task = Task(writer=writer, prompt_BT=torch.tensor([seen]), filters=(), longest=1, seeds_B=[0])
    stages_FV: list[Tensor] = []
    changed_1V = task.allowed(logits_1V).double()
    chances_V = changed_1V.softmax(-1)[0]
    for change in recipe.filters:
        changed_1V = change(changed_1V, torch.tensor([seen]))
        stages_FV.append(changed_1V.softmax(-1)[0])
    order = chances_V.argsort(descending=True, stable=True).tolist()
    upto = chances_V[order].cumsum(0).tolist()
    after = [stage.tolist() for stage in stages_FV]
    candidates = tuple(
        Candidate(
            token=token,
            piece=writer.piece(token),
            chance=float(chances_V[token]),
            upto=upto[place],
            after=tuple(stage[token] for stage in after),
            chosen=token == choices[step - 1],
        )
        for place, token in enumerate(order)
    )
    names = tuple(Recipe(steps=(change,)).notation for change in recipe.filters)
    return Step(step, writer.decode(seen), names, candidates)
