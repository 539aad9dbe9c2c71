"""A text token by token: read, choose, read what was chosen.

Shapes: B continuations, T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attnlab.decoding.strategy import Continuation, Task

Choose = Callable[[Tensor, int, Sequence[int]], Tensor]  # logits (B, V), the step, the rows; to tokens (B,)


def token_by_token(task: Task, choose: Choose) -> list[Continuation]:
    """Rows that have stopped are left out of what follows."""
    reading = task.writer.begin()
    rows = list(range(len(task.prompt_BT)))
    texts: list[list[int]] = [[] for _ in rows]
    ended = [False for _ in rows]
    new_BT = written_BT = task.prompt_BT
    stops = task.writer.stops
    for step in range(task.longest if rows else 0):
        logits_BV = reading.read(new_BT)
        if task.filters:
            logits_BV = task.filtered(logits_BV, written_BT)
        elif task.writer.never:
            logits_BV = task.allowed(logits_BV)
        chosen_B = choose(logits_BV, step, rows)
        chosen = chosen_B.tolist()
        for row, token in zip(rows, chosen, strict=True):
            texts[row].append(token)
        new_BT = chosen_B[:, None]
        if not stops.isdisjoint(chosen):
            going_on = [place for place, token in enumerate(chosen) if token not in stops]
            for row, token in zip(rows, chosen, strict=True):
                if token in stops:
                    texts[row].pop()
                    ended[row] = True
            if not going_on:
                break
            rows = [rows[place] for place in going_on]
            kept = torch.tensor(going_on, device=chosen_B.device)
            reading.keep(kept)
            new_BT, written_BT = new_BT[kept], written_BT[kept]
        if task.filters:
            written_BT = torch.cat([written_BT, new_BT], dim=1)
    return [Continuation(tuple(text), end) for text, end in zip(texts, ended, strict=True)]
