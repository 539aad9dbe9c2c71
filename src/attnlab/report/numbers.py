"""Numbers as a reader wants them: as many digits as their error allows, a true minus, words for time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attnlab.verdict.wording import number

MINUS = "−"
PLUS_MINUS = "±"
NOTHING = "–"


@dataclass(frozen=True)
class Spread:
    """What several seeds measured: their mean, and how far they scatter (none for a single seed)."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        return statistics.stdev(self.values) if len(self.values) > 1 else None


def spread(values: Iterable[float | None]) -> Spread | None:
    """The finite values among these, or None when there is none."""
    finite = tuple(v for v in values if v is not None and math.isfinite(v))
    return Spread(finite) if finite else None


def decimals_for(error: float) -> int:
    """Decimal places that show two digits of an error."""
    if not math.isfinite(error) or error <= 0:
        return 3
    return min(6, max(0, 1 - math.floor(math.log10(error))))


def decimals_of(value: float, digits: int = 4) -> int:
    """Decimal places that show so many significant digits of a value."""
    if not math.isfinite(value) or value == 0:
        return 0
    return min(6, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


def fixed(value: float, decimals: int, *, sign: bool = False) -> str:
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:{'+' if sign else ''},.{decimals}f}"
    if float(text.replace(",", "")) == 0:  # neither +0.00 nor −0.00
        text = f"{0:.{decimals}f}"
    return text.replace("-", MINUS)


def short(value: float, digits: int, *, sign: bool = False) -> str:
    """Very large or very small, as in verdicts: `−540,000`, `8.9 × 10⁻⁸`."""
    before = MINUS if value < 0 else "+" if sign and value > 0 else ""
    return before + number(abs(value), digits)


def plain(value: float, digits: int = 4) -> str:
    """A single figure, with about so many significant digits."""
    if float(value).is_integer() and abs(value) < 1e15:
        return count(value)
    if value and (abs(value) < 1e-4 or abs(value) >= 1e9):
        return short(value, digits - 1)
    return fixed(value, decimals_of(value, digits))


def with_error(found: Spread | None) -> str:
    """`5.724 ± 0.012`, or the bare figure of a single seed."""
    if found is None:
        return NOTHING
    if found.deviation is None:
        return plain(found.mean)
    if found.deviation == 0:
        return f"{plain(found.mean)} {PLUS_MINUS} 0"
    places = decimals_for(found.deviation)
    return f"{fixed(found.mean, places)} {PLUS_MINUS} {fixed(found.deviation, places)}"


def interval(effect: float | None, ci: Sequence[float | None]) -> str:
    """`−0.021 [−0.031, −0.011]`; ends that are open are said to be."""
    if effect is None:
        return NOTHING
    low, high = ci
    if low is None or high is None:
        return f"{fixed(effect, decimals_of(effect, 2), sign=True)} [not bounded]"
    half = (high - low) / 2
    if half >= 1000 or 0 < half < 1e-5:  # so wide or so narrow that digits after the point mislead
        return "{} [{}, {}]".format(*(short(x, 2, sign=True) for x in (effect, low, high)))
    places = decimals_for(half) if half else decimals_of(effect, 2)
    shown = [fixed(x, places, sign=True) for x in (effect, low, high)]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def count(value: float) -> str:
    return f"{round(value):,}".replace("-", MINUS)


def duration(seconds: float) -> str:
    """`0.8 s`, `41 s`, `3 min 20 s`, `2 h 5 min`."""
    if not math.isfinite(seconds):
        return NOTHING
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def share(value: float) -> str:
    """A fraction as a percentage; what is above nothing is never shown as nothing."""
    percent = 100 * value
    if 0 < percent < 0.01:
        return "under 0.01 %"
    return f"{percent:.3g} %"


def ratio(value: float) -> str:
    if value == 1:
        return "the same"
    if abs(value - 1) < 0.01:  # 1.00× would deny a difference
        return f"{fixed(value, min(4, decimals_of(value - 1, 1)))}×"
    return f"{fixed(value, decimals_of(value, 3) if value < 100 else 0)}×"


def times(amount: int, noun: str) -> str:
    return f"{count(amount)} {noun}" if amount == 1 else f"{count(amount)} {noun}s"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
