"""Let a model continue prompts by a recipe.

Shapes: B continuations, T tokens of the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from attnlab.decoding.recipe import Recipe
from attnlab.decoding.strategy import Continuation, Task
from attnlab.decoding.writer import Writer, room
from attnlab.errors import RequestError

_STREAMS = 1_000_003  # seeds of two runs do not meet before so many rows


@torch.inference_mode()
def write(
    writer: Writer, prompt: Sequence[int], recipe: Recipe, *, count: int, longest: int, seed: int
) -> list[Continuation]:
    """`count` continuations of a prompt, of at most `longest` tokens each, or as many as there is room for.

    The random numbers of a continuation follow from the seed and its number alone: how many others are made
    at the same time changes nothing. Where chance has no part, one is made and given `count` times.
    """
    outside = [token for token in prompt if not 0 <= token < writer.size]
    if not prompt or outside:
        what = f"the token {outside[0]}, which {writer.name} does not have" if outside else "no tokens"
        raise RequestError(f"the prompt holds {what}")
    distinct = count if recipe.search.draws else min(count, 1)
    task = Task(
        writer=writer,
        prompt_BT=torch.tensor([list(prompt)] * distinct, dtype=torch.long).reshape(distinct, len(prompt)),
        filters=recipe.filters,
        longest=room(writer, len(prompt), longest),
        seeds_B=[seed * _STREAMS + row for row in range(distinct)],
    )
    made = recipe.search.run(task)
    return made if recipe.search.draws else made * count
