"""The reasons behind a verdict, in words for someone who does not do statistics."""

from __future__ import annotations

import math

from attnlab.verdict.needed import Needed
from attnlab.verdict.pairs import ROUNDING, Pairs
from attnlab.verdict.result import Metric

# With fewer, document effects of a long tail to one side mislead oftener than 5 % (docs/calibration.md).
ENOUGH_DOCUMENTS = 100

# A difference below this share of the measure itself is practically none, where equivalence is shown too.
PRACTICALLY_NONE = 1e-4


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """So many digits, in a form anyone reads: `0.0123`, `545,000`, `8.9 × 10⁻⁸`."""
    text = f"{value:.{digits}g}"
    rounded = float(text)
    size = abs(rounded)
    if not math.isfinite(size) or size == 0 or 1e-4 <= size < 10**digits:
        return text
    if 1e-4 <= size < 1e9:
        return f"{rounded:,.0f}"
    mantissa, _, exponent = f"{rounded:e}".partition("e")
    return f"{float(mantissa):g} × 10{str(int(exponent)).translate(_RAISED)}"


def count(amount: int, noun: str) -> str:
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def basis(pairs: Pairs) -> str:
    return f"{count(pairs.seeds, 'seed')} and {count(pairs.documents, 'document')}"


def gap(effect: float, metric: Metric, pairs: Pairs) -> str:
    """`loss is 0.02 lower`; what rounding left of nothing is nothing."""
    if abs(effect) <= pairs.rounding:
        return f"the {metric.name} is the same"
    return f"the {metric.name} is {number(abs(effect))} {'lower' if effect < 0 else 'higher'}"


def reach(low: float, high: float) -> str:
    """An interval in words: `0.01 to 0.03 lower`, `0.01 lower to 0.02 higher`."""
    if high <= 0:
        return f"{number(-high)} to {number(-low)} lower"
    if low >= 0:
        return f"{number(low)} to {number(high)} higher"
    return f"{number(-low)} lower to {number(high)} higher"


def differs(effect: float, ci: tuple[float, float], margin: float, metric: Metric, pairs: Pairs) -> str:
    small = ""
    if abs(effect) < margin:
        small = (
            f"; this is smaller than the margin of {number(margin)}, under which a difference does not matter"
        )
    return f"{gap(effect, metric, pairs)} (somewhere from {reach(*ci)}), by {basis(pairs)}{small}"


def equivalent(effect: float, margin: float, metric: Metric, pairs: Pairs) -> str:
    size = pairs.rounding / ROUNDING  # of what was measured, in either arm
    seen = gap(effect, metric, pairs)
    if pairs.rounding < abs(effect) < PRACTICALLY_NONE * size:
        direction = "lower" if effect < 0 else "higher"
        seen = f"practically no difference in the {metric.name} ({number(abs(effect))} {direction})"
    return f"{seen}, and by {basis(pairs)} the true difference is smaller than the margin of {number(margin)}"


def identical(pairs: Pairs) -> str:
    return (
        f"not one value differs, in {basis(pairs)}; if a difference was meant, see whether the change "
        "reaches the model"
    )


def undecided(
    effect: float, ci: tuple[float, float], metric: Metric, pairs: Pairs, needed: Needed, margin: float
) -> str:
    seen = f"{gap(effect, metric, pairs)}, but by {basis(pairs)} anything from {reach(*ci)} is possible"
    return f"{seen}; {_remedy(needed, pairs, margin)}"


def _remedy(needed: Needed, pairs: Pairs, margin: float) -> str:
    seeds = f"about {count(needed.seeds, 'seed')}" if needed.seeds else ""
    documents = f"about {count(needed.documents, 'document')}" if needed.documents else ""
    if needed.together:
        return f"neither more seeds nor more documents alone would decide, {seeds} with {documents} would"
    if seeds and documents:
        return f"{seeds} in all would decide, or {documents} with the seeds at hand"
    if seeds:
        return f"{seeds} in all would decide"
    if documents:
        return f"more seeds would not help, as the documents disagree: {documents} would decide"
    if margin == 0:
        return "no number of seeds would decide: give the margin under which a difference does not matter"
    return "no number of seeds would decide: the difference is too close to nothing or to the margin"


def one_seed(pairs: Pairs, metric: Metric) -> str:
    if pairs.identical:
        return f"one seed, and not one value differs; does the change reach the model? {ONE_SEED_LACKS}"
    why = "every seed gave the very same numbers, so they count as one" if pairs.seeds > 1 else "one seed"
    return f"{gap(pairs.effect, metric, pairs)}, but {why}: {ONE_SEED_LACKS}"


ONE_SEED_LACKS = "another seed could turn it round, and one seed cannot tell how far seeds move the result"


def diverged(pairs: Pairs) -> str:
    """Which runs are not there to be compared, or nothing."""
    parts = [
        f"{count(lost, 'run')} of {whose} diverged or {'is' if lost == 1 else 'are'} missing"
        for lost, whose in ((pairs.arm_diverged, "the arm"), (pairs.baseline_diverged, "the baseline"))
        if lost
    ]
    if pairs.marked_diverged:
        parts.append(f"{count(pairs.marked_diverged, 'pair')} of runs marked as diverged")
    return ", ".join(parts)


def left_out(pairs: Pairs) -> str:
    """What to add about runs that diverged, or nothing."""
    if not pairs.lost:
        return ""
    return f" ({diverged(pairs)} and left the comparison: it holds for runs that finish)"


def preliminary(seeds: int, first: int) -> str:
    return (
        f" (preliminary: {count(seeds, 'seed')}, and the first look is at {first}; until then only what "
        "is very clear is called)"
    )


def few_documents(pairs: Pairs) -> str:
    """What to add where documents are too few to speak for others, or nothing."""
    worth = round(pairs.effective_documents)
    if worth == 1:
        return " (one document, or one number a run: this says nothing about other documents)"
    if worth < ENOUGH_DOCUMENTS:
        few = f"{worth} documents" if worth == pairs.documents else f"{worth} documents' worth"
        return f" (only {few}: see whether one or two of them make the difference)"
    return ""
