"""One probe for the future: run twice with different futures, and look at what moved before the cut.

Shapes: B batch, T time, the rest `…`; outputs are (…, T, d), with the batch first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from attnlab.audit.operators.change import Change, with_another_future
from attnlab.audit.operators.fading import EPSILON_SHRINKAGE, faded, only_underflowed
from attnlab.audit.operators.subject import Inputs, Operator, Sizes


@dataclass(frozen=True)
class Probe:
    """Which future is replaced by what. With `grouped`, each batch row has a cut of its own."""

    sizes: Sizes
    cuts: tuple[int, ...]
    names: tuple[str, ...]
    change: Change
    training: bool = False
    grouped: bool = False
    seed: int = 1
    scale: float = 1.0  # of the inputs before anything is replaced
    opposed: bool = False  # every key points away from every query

    def inputs(self, operator: Operator) -> Inputs:
        """What goes in before anything is replaced."""
        inputs = {name: self.scale * x for name, x in operator.make(self.sizes, self.seed).items()}
        if self.opposed:
            away = inputs["q"][..., :1, :]
            inputs["q"] = away + 0.01 * inputs["q"]
            inputs["k"] = 0.01 * inputs["k"] - away
        return inputs


@dataclass(frozen=True)
class Moved:
    """An output before the cut that was not the same when the future was another."""

    probe: Probe
    cut: int
    place: tuple[int, ...]  # batch row, head (if there are any), position
    before: float
    after: float
    kind: Literal["leak", "fragile", "noise"]

    @property
    def position(self) -> int:
        return self.place[-1]

    @property
    def by(self) -> float:
        return abs(self.after - self.before)


def tolerance_of(operator: Operator, change: Change) -> float:
    """Rounding errors grow with the values that are summed, also where they cancel."""
    return operator.tolerance * change.magnitude


def run(operator: Operator, probe: Probe, base: Inputs | None = None) -> Moved | None:
    """The output that moved most, or nothing. Sizes the operator refuses raise what it raises."""
    if probe.grouped:
        return _run_grouped(operator, probe)
    inputs = base or probe.inputs(operator)
    with torch.no_grad():
        before = operator(inputs, training=probe.training)
        for cut in probe.cuts:
            changed = with_another_future(inputs, probe.names, [cut], probe.change, probe.seed + 1)
            moved = _compare(operator, probe, cut, before, operator(changed, training=probe.training))
            if moved is not None:
                return _judged(operator, moved, inputs, changed, before)
    return None


def _judged(operator: Operator, moved: Moved, inputs: Inputs, changed: Inputs, before: Tensor) -> Moved:
    """A leak, unless the same inputs move it too, or a normaliser gave way."""
    if moved.kind != "leak":
        return moved
    # Some modules keep state while training (spectral norms, running statistics) or draw their own noise.
    again = operator(inputs, training=moved.probe.training)
    apart = (again[moved.place].double() - before[moved.place].double()).abs().max().item()
    if apart > 0 and math.isfinite(moved.by) and not moved.by > 10 * apart:
        return replace(moved, kind="noise")
    try:
        gave_way = (
            moved.probe.change.magnitude > 1.0
            and "k" in moved.probe.names
            and only_underflowed(operator, inputs, changed, moved.cut, training=moved.probe.training)
        )
    except Exception:  # it refuses the values that would show it: then the leak stands
        gave_way = False
    return replace(moved, kind="fragile") if gave_way else moved


def _run_grouped(operator: Operator, probe: Probe) -> Moved | None:
    """All cuts in two calls. Rows of a batch may influence each other, so a suspicion is confirmed alone."""
    sizes = replace(probe.sizes, B=len(probe.cuts))
    inputs = replace(probe, sizes=sizes).inputs(operator)
    changed = with_another_future(inputs, probe.names, probe.cuts, probe.change, probe.seed + 1)
    with torch.no_grad():
        before = operator(inputs, training=probe.training)
        after = operator(changed, training=probe.training)
    limit = tolerance_of(operator, probe.change)
    suspects = [
        cut
        for row, cut in enumerate(probe.cuts)
        if _differs(before[row, ..., : cut + 1, :], after[row, ..., : cut + 1, :], limit)
    ]
    confirmed: Moved | None = None
    for cut in suspects[:4]:
        alone = replace(probe, cuts=(cut,), grouped=False)
        confirmed = run(operator, alone)
        if confirmed is None:  # it may take this very batch row: the same rows, one cut for all
            confirmed = run(operator, replace(alone, sizes=sizes), inputs)
        if confirmed is not None and confirmed.kind == "leak":
            return confirmed
    return confirmed


def _differs(before: Tensor, after: Tensor, limit: float) -> bool:
    finite = torch.isfinite(before)
    scale = before[finite].abs().max().item() if finite.any() else 0.0
    gap = (after - before).abs()
    return bool((finite & ~(gap <= limit * max(scale, 1e-30))).any())


def _compare(operator: Operator, probe: Probe, cut: int, before: Tensor, after: Tensor) -> Moved | None:
    """What moved most. `nan > limit` is false, so it is asked the other way round."""
    seen, now = before[..., : cut + 1, :].double(), after[..., : cut + 1, :].double()
    finite = torch.isfinite(seen)
    if not finite.any():
        return None
    scale = max(seen[finite].abs().max().item(), 1e-30)
    limit = tolerance_of(operator, probe.change) * scale
    gap = (now - seen).abs()
    moved = finite & ~(gap <= limit)
    if not moved.any():
        return None
    kind: Literal["leak", "fragile"] = "leak"
    large = probe.change.magnitude > 1.0
    may_overflow = large or operator.precision is not torch.float64
    if {"k", "x"} & set(probe.names) and _only_rescaled(seen, now, moved, limit, large, may_overflow):
        kind = "fragile"
    worst = torch.where(moved, gap.nan_to_num(nan=torch.inf, posinf=torch.inf), -1.0)
    place = torch.unravel_index(worst.argmax(), worst.shape)
    place_numbers = tuple(int(n) for n in place)
    return Moved(probe, cut, place_numbers[:-1], seen[place_numbers].item(), now[place_numbers].item(), kind)


def _only_rescaled(
    seen: Tensor, now: Tensor, moved: Tensor, limit: float, large: bool, may_overflow: bool
) -> bool:
    """Whether the outputs that moved only faded: each is what it was, times a number from 0 to 1.

    That is what underflow and overflow of a normaliser do when larger keys come later, as in weights that are
    masked after the softmax and rightly renormalised. A leak brings something new into the output, or fades
    it at ordinary sizes too.
    """
    rows = moved.any(-1)
    before, after = seen[rows], now[rows]
    broken = ~torch.isfinite(after).all(-1)
    if broken.any() and not may_overflow:
        return False
    most = 1.0 if large else EPSILON_SHRINKAGE
    return faded(before[~broken], after[~broken], limit, most)


def moved_alone(
    operator: Operator, moved: Moved, names: Sequence[str], positions: Sequence[int]
) -> int | None:
    """The single later position whose change alone moves the output most, if any single one does."""
    probe = moved.probe
    inputs = probe.inputs(operator)
    best, chosen = 0.0, None
    with torch.no_grad():
        before = operator(inputs, training=probe.training)
        another = with_another_future(inputs, names, [moved.cut], probe.change, probe.seed + 1)
        for position in positions:
            changed = dict(inputs)
            for name in names:
                changed[name] = inputs[name].clone()
                changed[name][..., position, :] = another[name][..., position, :]
            after = operator(changed, training=probe.training)
            gap = (after - before)[(*moved.place[:-1], moved.position)].abs().nan_to_num(nan=torch.inf)
            if gap.max().item() > max(best, 1e-30):
                best, chosen = gap.max().item(), position
    return chosen
