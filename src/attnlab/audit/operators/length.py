"""The same prefix in sequences of different lengths: a dependence on the length is not a leak of content."""

from __future__ import annotations

from dataclasses import replace

import torch

from attnlab.audit.operators.fading import EPSILON_SHRINKAGE, faded
from attnlab.audit.operators.subject import Operator
from attnlab.audit.rule import Seen, fine, found, rule, skipped


@rule(
    "length",
    tests="a prefix gives the same outputs when the sequence ends there and when it goes on",
    claims="outputs do not depend on how long the sequence is",
    threshold="1e-9 of the largest output in fp64, 1e-4 in fp32, 5e-2 in 16 bits",
)
def length(operator: Operator) -> Seen:
    if not operator.claims_causal:
        return skipped("it is declared to see the future, so a longer sequence may change everything")
    tried = []
    for full, part in _pairs(operator):
        try:
            whole = operator.make(replace(operator.home, T=full), seed=4)
            prefix = {name: x[..., :part, :].contiguous() for name, x in whole.items()}
            with torch.no_grad():
                short, long = operator(prefix), operator(whole)[..., :part, :]
        except Exception:  # a length it refuses; the audit told that it runs at its home length
            continue
        tried.append(full)
        size = short[torch.isfinite(short)].abs().max().item() if torch.isfinite(short).any() else 0.0
        gap, limit = (short - long).abs(), operator.tolerance * size
        # An epsilon in a denominator weighs more in longer sequences, and is no dependence to speak of.
        if not (bool((gap <= limit).all()) or faded(short, long, limit, EPSILON_SHRINKAGE)):
            position = int(gap.nan_to_num(nan=torch.inf).flatten(0, -3).amax(0).amax(-1).argmax())
            by = gap[..., position, :].max().item()
            return found(
                f"the output at position {position} is {by:.2g} away when the same {part} positions are the "
                f"start of {full}: it depends on the length of the sequence, so decoding by steps will not "
                "match training. See causality for whether the content of the future matters",
                position=position, by=by, part=part, full=full,
            )  # fmt: skip
    if not tried:
        return skipped(f"it runs at length {operator.home.T} only")
    return fine("a prefix gives what it gives in a longer sequence", lengths=tried)


def _pairs(operator: Operator) -> list[tuple[int, int]]:
    T = operator.home.T
    pairs = [(T, T // 2), (T, 1), (2 * T, T), (T + 1, T), (66, 63), (130, 127), (260, 100), (520, 300)]
    pairs += [(n + 1, n) for n in operator.mentioned if 24 < n <= 600][:8]
    return [(full, part) for full, part in pairs if part >= 1]
