"""Numbers, the same ones twice, rows that do not meet, prefixes that do not know how long they will be.

Shapes: B batch, T time, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.audit.models.subject import Model
from attnlab.audit.randomness import reseed
from attnlab.audit.rule import Seen, fine, found, rule, skipped


@rule(
    "shape",
    tests="logits have a row per token and a column per word of the vocabulary, and are numbers",
    claims="one distribution over the vocabulary per position",
    threshold="exact",
)
def shape(model: Model) -> Seen:
    T = min(12, model.longest)
    with torch.no_grad():
        logits = model(model.tokens(2, T, seed=0))
    if logits.shape[:2] != (2, T):
        return found(f"logits of shape {tuple(logits.shape)} came from tokens of shape (2, {T})")
    if logits.shape[2] < model.vocabulary:
        return found(f"logits for {logits.shape[2]} words came from a vocabulary of {model.vocabulary}")
    if not bool(torch.isfinite(logits).all()):
        return found(f"{int((~torch.isfinite(logits)).sum())} of {logits.numel()} logits are not numbers")
    return fine(f"logits {tuple(logits.shape)}, all numbers")


@rule(
    "determinism",
    tests="in evaluation mode, calls on the same tokens agree, also after calls on others and "
    "after training mode",
    claims="no dropout in evaluation, and no state kept between calls",
    threshold="1e-7 of the largest logit in fp64, 1e-4 in fp32 (rounding)",
)
def determinism(model: Model) -> Seen:
    T = min(12, model.longest)
    ours, others = model.tokens(2, T, seed=0), model.tokens(2, T, seed=1)
    module = model.fresh().module.eval()
    stray = [name for name, part in module.named_modules() if part.training]
    with torch.no_grad():
        first = model(ours)
        reseed(1)
        second = model.unseeded(ours)
        gap = apart(first, second)
        if not gap <= model.tolerance:
            left = f" ({', '.join(stray[:3])} stay in training mode)" if stray else ""
            return found(
                f"two calls in evaluation mode are {gap:.2g} of the logits' size apart: dropout, or other "
                f"randomness, is on{left}",
                by=gap,
            )
        model(others)
        gap = apart(first, model(ours))
        if not gap <= model.tolerance:
            return found(
                f"after other tokens the same ones give logits {gap:.2g} away: state is kept", by=gap
            )
    return fine("evaluation mode gives the same logits every time")


@rule(
    "batch",
    tests="a row's logits do not move when the other rows change, nor when it is alone",
    claims="rows of a batch do not influence each other",
    threshold="1e-7 of the largest logit in fp64, 1e-4 in fp32 (matrix products of other shapes "
    "round otherwise)",
)
def batch(model: Model) -> Seen:
    T = min(12, model.longest)
    tokens, others = model.tokens(3, T, seed=3), model.tokens(3, T, seed=4)
    others[0] = tokens[0]
    with torch.no_grad():
        for training in (False, True):
            gap = apart(model(tokens, training=training)[0], model(others, training=training)[0])
            if not gap <= model.tolerance:
                mode = "training" if training else "evaluation"
                return found(
                    f"row 0 moved by {gap:.2g} of its size when rows 1 and 2 changed ({mode} mode)", by=gap
                )
        gap = apart(model(tokens)[0], model(tokens[:1])[0])
    if not gap <= model.tolerance:
        return found(f"row 0 is {gap:.2g} of its size away when it is alone in the batch", by=gap)
    return fine("a row's logits do not depend on its neighbours")


@rule(
    "length",
    tests="a prefix gives the same logits when the sequence ends there and when it goes on",
    claims="logits do not depend on how long the sequence is",
    threshold="1e-7 of the largest logit in fp64, 1e-4 in fp32 (rounding)",
)
def length(model: Model) -> Seen:
    pairs = [(full, part) for full, part in ((12, 5), (12, 1), (66, 33), (130, 65)) if full <= model.longest]
    if not pairs:
        return skipped(f"it takes no more than {model.longest} tokens")
    for full, part in pairs:
        tokens = model.tokens(2, full, seed=5)
        with torch.no_grad():
            gap = apart(model(tokens[:, :part]), model(tokens)[:, :part])
        if not gap <= model.tolerance:
            return found(
                f"the first {part} tokens give logits {gap:.2g} of their size away when "
                f"{full - part} more follow: "
                "decoding step by step will not match training", by=gap, full=full, part=part,
            )  # fmt: skip
    return fine("a prefix gives what it gives in a longer sequence")


def apart(one: Tensor, two: Tensor) -> float:
    """The largest difference beside the largest value; infinite where only one of them is a number."""
    both = torch.isnan(one) & torch.isnan(two)
    gap = torch.where(both, 0.0, (one - two).abs()).nan_to_num(nan=float("inf")).max().item()
    numbers = one[torch.isfinite(one)]
    return gap / max(numbers.abs().max().item() if numbers.numel() else 0.0, 1e-30)
