"""Continuing a text, token by token.

Shapes: B continuations, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attnlab.attention import Layout
from attnlab.model import DecoderModel


@torch.inference_mode()
def sample(
    model: DecoderModel,
    prompt: Sequence[int],
    *,
    count: int,
    longest: int,
    stop: int,
    seed: int,
    never: Sequence[int] = (),
) -> list[list[int]]:
    """`count` continuations of a prompt, drawn from the model's own distribution, each to its stop token or
    `longest` tokens in all; tokens in `never` are not drawn.

    The model sees only what was already written: a decoding state holds it, so that each new token costs one
    step and not the whole text again.
    """
    was_training = model.training
    model.eval()
    # A stream of random numbers per continuation: how many are drawn together changes none of them.
    generators = [torch.Generator().manual_seed(seed * 1_000_003 + row) for row in range(count)]
    texts: list[list[int]] = [[] for _ in range(count)]
    open_rows = list(range(count))
    states = model.begin()
    tokens_BT = torch.tensor([list(prompt)] * count).to(model.device)
    seen = 0
    while open_rows and seen + tokens_BT.shape[1] <= longest:
        layout = Layout([tokens_BT.shape[1]] * len(open_rows), offset=seen, device=model.device)
        hidden_ND = model.hidden(tokens_BT.reshape(-1), layout, states)
        seen += tokens_BT.shape[1]
        drawn = _draw(
            model.head(hidden_ND[layout.last_B]).cpu(), [generators[row] for row in open_rows], never
        )
        for row, token in zip(open_rows, drawn, strict=True):
            if token != stop:
                texts[row].append(token)
        still = [place for place, token in enumerate(drawn) if token != stop]
        if len(still) < len(open_rows):
            for state in states:
                state.keep(torch.tensor(still, dtype=torch.long).to(model.device))
        open_rows = [open_rows[place] for place in still]
        tokens_BT = torch.tensor([[drawn[place]] for place in still]).to(model.device)
    model.train(was_training)
    return texts


def _draw(logits_BV: Tensor, generators: Sequence[torch.Generator], never: Sequence[int]) -> list[int]:
    logits_BV[:, list(never)] = float("-inf")
    chances_BV = logits_BV.softmax(-1)
    return [
        int(torch.multinomial(row, 1, generator=generator))
        for row, generator in zip(chances_BV, generators, strict=True)
    ]
