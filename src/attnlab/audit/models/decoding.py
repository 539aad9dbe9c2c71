"""Padding and caches: the same tokens, given in other ways, must give the same logits.

Shapes: B batch, T time, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.audit.models.sane import apart
from attnlab.audit.models.subject import Model, logits_in
from attnlab.audit.rule import Seen, fine, found, rule, skipped

Steps = Callable[[Tensor], Tensor]  # tokens (B, T) fed one at a time, to logits (B, T, V)


def _padded(model: Model, side: str) -> Seen:
    if "attention_mask" not in model.options:
        return skipped("it takes no attention_mask")
    T, pads = min(9, model.longest - 4), 4
    if T < 2:
        return skipped(f"it takes no more than {model.longest} tokens")
    tokens = model.tokens(2, T, seed=6)
    filler, real = (
        torch.full((2, pads), model.first_token),
        slice(pads, None) if side == "left" else slice(0, T),
    )
    parts = [filler, tokens] if side == "left" else [tokens, filler]
    masks = [torch.zeros(2, pads), torch.ones(2, T)]
    mask = torch.cat(masks if side == "left" else masks[::-1], 1).long()
    options: dict[str, Any] = {"attention_mask": mask}
    if "position_ids" in model.options:
        options["position_ids"] = (mask.cumsum(-1) - 1).clamp_min(0)
    with torch.no_grad():
        plain = model(tokens, attention_mask=torch.ones_like(tokens))
        other = model(torch.cat(parts, 1), **options)[:, real]
        unmasked = apart(model(tokens), plain)
    if not unmasked <= model.tolerance:
        return found(f"a mask of ones moves the logits by {unmasked:.2g} of their size", by=unmasked)
    gap = apart(plain, other)
    if not gap <= model.tolerance:
        given = "and position ids" if "position_ids" in options else "and no way to give position ids"
        return found(
            f"{pads} padding tokens on the {side}, with their mask {given}, move the logits of "
            "real tokens by "
            f"{gap:.2g} of their size", by=gap,
        )  # fmt: skip
    return fine(f"padding on the {side} does not touch real tokens")


_PADDING = "1e-7 of the largest logit in fp64, 1e-4 in fp32 (sums over more terms round otherwise)"


@rule(
    "padding-right",
    tests="masked tokens after the real ones do not move the logits of the real ones",
    claims="padding on the right is ignored",
    threshold=_PADDING,
)
def padding_right(model: Model) -> Seen:
    return _padded(model, "right")


@rule(
    "padding-left",
    tests="masked tokens before the real ones, with position ids where they can be given, do not "
    "move the logits",
    claims="padding on the left is ignored, and positions are counted from the first real token",
    threshold=_PADDING,
)
def padding_left(model: Model) -> Seen:
    return _padded(model, "left")


@rule(
    "cache",
    tests="tokens fed one at a time, and in pieces, with the cache, give the logits of the full pass",
    claims="decoding with the cache computes what training computed",
    threshold=_PADDING,
)
def cache(model: Model) -> Seen:
    ways = _ways_to_step(model)
    if not ways:
        return skipped("it has no cache that is known here")
    tokens = model.tokens(2, min(12, model.longest), seed=7)
    for word, steps in ways:
        with torch.no_grad():
            whole, piecewise = model(tokens), steps(tokens)
        if whole.shape != piecewise.shape:
            return found(
                f"{word}: logits {tuple(piecewise.shape)}, and {tuple(whole.shape)} in the full pass"
            )
        gap = apart(whole, piecewise)
        if not gap <= model.tolerance:
            differing = (whole - piecewise).abs().amax((0, 2)) > model.tolerance * whole.abs().max()
            first = int(differing.long().argmax())
            return found(
                f"{word}, the logits from position {first} on are {gap:.2g} of their size away "
                "from the full pass",
                by=gap, position=first,
            )  # fmt: skip
    return fine(f"{' and '.join(word for word, _ in ways)} gives the logits of the full pass")


def _ways_to_step(model: Model) -> list[tuple[str, Steps]]:
    if {"past_key_values", "use_cache"} <= model.options:
        return [
            ("token by token", lambda tokens: _with_cache(model, tokens, (1,) * tokens.shape[1])),
            ("in pieces", lambda tokens: _with_cache(model, tokens, (tokens.shape[1] - 4, 1, 3))),
        ]
    if hasattr(model.module, "begin") and hasattr(model.module, "hidden") and hasattr(model.module, "head"):
        return [("token by token", lambda tokens: _with_states(model.module, tokens))]
    return []


def _with_cache(model: Model, tokens: Tensor, sizes: tuple[int, ...]) -> Tensor:
    past, logits, start = None, [], 0
    model.module.eval()
    for size in sizes:
        piece = tokens[:, start : start + size]
        output = model.module(piece, past_key_values=past, use_cache=True, **model.always)
        past = output.past_key_values
        logits.append(logits_in(output))
        start += size
    return torch.cat(logits, 1)


def _with_states(module: Any, tokens: Tensor) -> Tensor:
    """Our own decoder: a state per layer, remembered from token to token."""
    from attnlab.attention.layout import Layout

    module.eval()
    B, T = tokens.shape
    states, logits = module.begin(), []
    for t in range(T):
        layout = Layout([1] * B, offset=t)
        logits.append(module.head(module.hidden(tokens[:, t], layout, states)).unflatten(0, (B, 1)))
    return torch.cat(logits, 1)
