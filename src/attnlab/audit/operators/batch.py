"""Batch rows and heads must not meet."""

from __future__ import annotations

from dataclasses import replace

import torch

from attnlab.audit.operators.subject import Inputs, Operator
from attnlab.audit.rule import Seen, fine, found, rule, skipped


@rule(
    "batch",
    tests="a batch row gives the same output beside other rows, beside larger ones, and alone",
    claims="batch rows do not influence each other",
    threshold="1e-9 of the largest output in fp64, 1e-4 in fp32, 5e-2 in 16 bits",
)
def batch(operator: Operator) -> Seen:
    inputs = operator.make(replace(operator.home, B=3), seed=6)
    for training in operator.modes:
        for size in (1.0, 30.0):
            others = {name: x.clone() for name, x in inputs.items()}
            fresh = operator.make(replace(operator.home, B=3), seed=8)
            for name in others:
                others[name][1:] = size * fresh[name][1:]
            try:
                with torch.no_grad():
                    before, after, again = (operator(x, training=training) for x in (inputs, others, inputs))
            except Exception as error:  # a batch size it refuses
                return skipped(f"it does not run on three batch rows: {type(error).__name__}")
            gap = _relative(before[0], after[0])
            noise = _relative(before[0], again[0])  # of a module that keeps state while training
            if not gap <= max(operator.tolerance, 10 * noise if noise < 1 else 0.0):
                return found(
                    f"batch row 0 moved by {gap:.2g} of its size when only the other rows changed "
                    f"({'training' if training else 'evaluation'} mode)", by=gap, training=training,
                )  # fmt: skip
    try:
        with torch.no_grad():
            together = operator(inputs)
            alone = operator({name: x[:1] for name, x in inputs.items()})
    except Exception as error:  # likewise
        return skipped(f"it does not run on one batch row: {type(error).__name__}")
    gap = _relative(alone[0], together[0])
    if not gap <= operator.tolerance:
        return found(f"batch row 0 is {gap:.2g} of its size away when it is alone in the batch", by=gap)
    return fine("a row's output does not depend on its neighbours")


@rule(
    "heads",
    tests="a head follows its own queries, keys and values and no other head's; heads given different "
    "ones do not weigh alike",
    claims="heads are split and merged in order, and each has weights of its own",
    threshold="1e-9 of the largest output in fp64, 1e-4 in fp32, 5e-2 in 16 bits",
)
def heads(operator: Operator) -> Seen:
    if operator.inputs == ("x",):
        return skipped("heads are inside the module, and not to be seen from without")
    H = operator.home.H
    if H < 2:
        return skipped("it runs with one head only")
    inputs, fresh = operator.make(operator.home, seed=6), operator.make(operator.home, seed=8)
    with torch.no_grad():
        before = operator(inputs)
        # Same values in every head, so that only the weights can tell the heads apart.
        same_v = {**inputs, "v": inputs["v"][:, :1].expand_as(inputs["v"]).contiguous()}
        weighed = operator(same_v)
        moves_with_qk = _relative(weighed, operator({**fresh, "v": same_v["v"]})) > 1e-6
        if moves_with_qk and _relative(weighed[:, 0], weighed[:, 1]) <= operator.tolerance:
            return found("heads 0 and 1 got different queries and keys, and weigh the same values alike")
        follows = {head: _followers(operator, inputs, fresh, before, head) for head in range(H)}
    lost = [head for head, followers in follows.items() if head not in followers]
    crossed = [(head, f) for head, followers in follows.items() for f in followers if f != head]
    if lost:
        where = follows[lost[0]]
        return found(
            f"output head {lost[0]} does not follow input head {lost[0]}"
            + (
                f", which output head {where[0]} follows: heads are split or merged in another order"
                if where
                else ""
            ),
            lost=lost,
        )
    if crossed:
        return skipped(
            f"output head {crossed[0][1]} also follows input head {crossed[0][0]}: heads are mixed, as "
            "they are by design in differential attention and talking heads",
            crossed=crossed[:8],
        )
    return fine("each head follows its own inputs only")


def _followers(
    operator: Operator, inputs: Inputs, fresh: Inputs, before: torch.Tensor, head: int
) -> list[int]:
    """The output heads that move when everything that goes into one head is replaced."""
    changed = {name: x.clone() for name, x in inputs.items()}
    for name in changed:
        changed[name][:, head] = fresh[name][:, head]
    after = operator(changed)
    limit = operator.tolerance
    return [h for h in range(before.shape[1]) if not _relative(before[:, h], after[:, h]) <= limit]


def _relative(before: torch.Tensor, after: torch.Tensor) -> float:
    both = torch.isnan(before) & torch.isnan(after)
    gap = torch.where(both, 0.0, (before - after).abs()).nan_to_num(nan=float("inf")).max().item()
    usable = before[torch.isfinite(before)]
    return gap / max(usable.abs().max().item() if usable.numel() else 0.0, 1e-30)
