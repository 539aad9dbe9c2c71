"""Side by side with a reference, and in what way it differs: scale, slopes, one-sided rotation, blocks.

Shapes: B batch, H heads, T queries, S keys, d width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attnlab.audit.operators.subject import Operator, Sizes
from attnlab.audit.operators.weights import NoWeights, recovered, score_slope
from attnlab.audit.rule import Seen, fine, found, rule, skipped

LENGTHS = (1, 2, 12, 33, 65, 130, 258)


@dataclass(frozen=True)
class Comparison:
    """An operator and what it is declared to be."""

    operator: Operator
    reference: Operator


@rule(
    "against",
    tests="the outputs are the reference's, at several lengths, at unit scale and ten times "
    "larger, causal or not",
    claims="it computes what the reference computes",
    threshold="1e-9 of the largest output in fp64, 1e-4 in fp32, 5e-2 in 16 bits, whichever of "
    "the two is coarser",
)
def against(comparison: Comparison) -> Seen:
    ours, reference = comparison.operator, comparison.reference
    if ours.inputs != reference.inputs:
        return skipped(f"{reference.name} takes {reference.inputs}, and this {ours.inputs}")
    limit = max(ours.tolerance, reference.tolerance)
    compared = []
    for T in dict.fromkeys((ours.home.T, *LENGTHS)):
        for scale in (1.0, 10.0):
            gap = _gap(comparison, replace(ours.home, T=T), scale)
            if gap is None:
                continue
            compared.append(T)
            if not gap[0] <= limit:
                return _different(comparison, T, scale, gap)
    if not compared:
        return skipped(f"there is no length at which both this and {reference.name} run")
    return fine(f"gives what {reference.name} gives, up to length {max(compared)}", lengths=compared)


def _gap(comparison: Comparison, sizes: Sizes, scale: float) -> tuple[float, int] | None:
    """The largest difference beside the largest output, and its position; nothing if a size is refused."""
    ours, reference = comparison.operator, comparison.reference
    inputs = {name: scale * x for name, x in ours.make(sizes, seed=31).items()}
    worst, position = 0.0, 0
    for causal in (True, False) if ours.takes_causal and reference.takes_causal else (True,):
        try:
            with torch.no_grad():
                wanted = reference(
                    {k: x.to(reference.dtype) for k, x in inputs.items()}, causal=causal
                ).double()
                got = ours(inputs, causal=causal).double()
        except Exception:  # one of the two refuses this length or mode
            continue
        gap = (got - wanted).abs().nan_to_num(nan=torch.inf) / wanted.abs().max().clamp_min(1e-30)
        if gap.max().item() >= worst:
            worst, position = gap.max().item(), int(gap.flatten(0, -3).amax(0).amax(-1).argmax())
    return worst, position


def _different(comparison: Comparison, T: int, scale: float, gap: tuple[float, int]) -> Seen:
    ours, reference = comparison.operator, comparison.reference
    size = "" if scale == 1.0 else f" with inputs {scale:g} times larger"
    reasons = [reason for look in (_scale, _slopes, _absolute) if (reason := look(ours, reference))]
    first_length = LENGTHS[2] < T and not reasons
    if first_length:
        reasons.append(
            f"shorter sequences agree: look at what happens across blocks or beyond length {T - 1}"
        )
    if scale != 1.0 and not reasons:
        reasons.append("inputs of unit scale agree: look at how running maxima or sums are carried on")
    return found(
        f"the output at position {gap[1]} is {gap[0]:.2g} of its size away from {reference.name} "
        f"at length {T}"
        f"{size}" + (f"; {'; '.join(reasons)}" if reasons else ""),
        by=gap[0],
        position=gap[1],
        length=T,
        reasons=reasons,
    )


def _scale(ours: Operator, reference: Operator) -> str | None:
    got, wanted = score_slope(ours), score_slope(reference)
    if got is None or wanted is None or abs(got - wanted) <= 1e-3 * abs(wanted):
        return None
    return f"the scale of q·k is {got:.4g}, {got / wanted:.3g} times the reference's {wanted:.4g}"


def _slopes(ours: Operator, reference: Operator) -> str | None:
    """With queries of zero only positions are left: how log-weights fall with distance, head by head."""
    got_H, wanted_H = _distance_slopes(ours), _distance_slopes(reference)
    if got_H is None or wanted_H is None or torch.allclose(got_H, wanted_H, atol=1e-4):
        return None
    alike = bool((got_H - got_H[0]).abs().max() < 1e-6) and not bool(
        (wanted_H - wanted_H[0]).abs().max() < 1e-6
    )
    said = "the slopes of all heads are alike, " if alike else "the slopes of the heads over distance are "
    return f"{said}{_listed(got_H)}, and the reference's {_listed(wanted_H)}"


def _distance_slopes(operator: Operator) -> Tensor | None:
    inputs = operator.make(replace(operator.home, T=operator.home.d), seed=21)
    try:
        logs_HTS = recovered(operator, {**inputs, "q": torch.zeros_like(inputs["q"])}).log()[0]
    except NoWeights:
        return None
    last_HS = logs_HTS[:, -1]
    slopes_H = (last_HS[:, 2:] - last_HS[:, 1:-1]).mean(-1)
    return slopes_H if bool(torch.isfinite(slopes_H).all()) else None


def _absolute(ours: Operator, reference: Operator) -> str | None:
    """The same query and key everywhere: then only positions tell one weight from another."""
    got, wanted = _by_distance(ours), _by_distance(reference)
    if got is None or wanted is None:
        return None
    if _drift(got) > 1e-4 and _drift(wanted) < 1e-6:
        return (
            "log-weights depend on absolute positions, and the reference's on distances only: as when "
            "only keys are rotated"
        )
    if got.abs().max() < 1e-6 and wanted.abs().max() > 1e-4:
        return (
            "with the same query and key everywhere, distance changes nothing, and it does for the "
            "reference: as when only queries are rotated, or positions are missing"
        )
    return None


def _by_distance(operator: Operator) -> Tensor | None:
    """(B, H, T-1): each position's log-weight on the one before it, relative to that on itself."""
    inputs = operator.make(replace(operator.home, T=operator.home.d), seed=21)
    for name in ("q", "k"):
        inputs[name] = inputs[name][..., :1, :].expand_as(inputs[name]).contiguous()
    try:
        logs = recovered(operator, inputs).log()
    except NoWeights:
        return None
    before = logs.diagonal(offset=-1, dim1=-2, dim2=-1) - logs.diagonal(dim1=-2, dim2=-1)[..., 1:]
    return before if bool(torch.isfinite(before).all()) else None


def _drift(before_BHT: Tensor) -> float:
    """How much what should depend on the distance alone changes along the sequence."""
    return (before_BHT - before_BHT[..., :1]).abs().max().item()


def _listed(values_H: Tensor) -> str:
    return ", ".join(f"{value:.3g}" for value in values_H.tolist()[:8])
