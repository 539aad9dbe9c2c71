"""The picture of the verdict: every arm's difference to the baseline, with what it could really be."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import altair as alt

from attnlab.report import numbers
from attnlab.report.names import quoted
from attnlab.report.pictures import palette
from attnlab.report.pictures.picture import HATCH, Datum, Frame, Picture, finished, picture
from attnlab.report.studied import Arm, Studied

_SHAPES = {"better": "circle", "worse": "diamond", "equivalent": "square"}


def effects_picture(study: Studied) -> Picture | None:
    """None when there is nothing to compare yet."""
    drawing = _Effects(study)
    if not drawing.rows or not (drawing.intervals or drawing.seeds):
        return None
    caption = (
        f"Each arm's {study.metric.title} less that of {quoted(study.baseline)}, paired by seed: "
        "the mark is the difference, the line what it may really be, each small tick one seed."
    )
    if drawing.goes_on():
        caption += " A line that ends at the edge goes on."
    return picture("effects", drawing.title, caption, drawing.label(), drawing.draw, drawing.numbers())


FAR = 10  # times the largest difference or margin: how far an interval is followed
_SIGNED = "datum.value === 0 ? '0' : format(datum.value, '+~g')"


class _Effects:
    def __init__(self, study: Studied) -> None:
        self.study = study
        arms = [arm for arm in study.arms if arm.name != study.baseline]
        base = [study.base] if study.base else []
        self.rows = [self._row(arm, place) for place, arm in enumerate([*base, *arms])] if arms else []
        self.intervals = [row for row in self.rows if row["effect"] is not None]
        self.seeds = [datum for arm in [*base, *arms] for datum in self._seeds(arm)]
        self.margin, self.noise = study.margin, study.noise
        self.title = f"Difference in {study.metric.title} to {quoted(study.baseline)}"

    def _row(self, arm: Arm, place: int) -> dict[str, Any]:
        verdict = arm.verdict or {}
        effect, (low, high) = verdict.get("effect"), verdict.get("ci") or (None, None)
        if not arm.ranked:
            effect = low = high = None
        word = "baseline" if arm.name == self.study.baseline and not arm.word else arm.word or "not judged"
        told = numbers.interval(effect, (low, high)) if effect is not None else ""
        return {
            "place": place,
            "arm": arm.name,
            "word": word,
            "effect": effect,
            "low": low,
            "high": high,
            "told": f"{arm.name}: {word}{', ' if told else ''}{told}",
        }

    def _seeds(self, arm: Arm) -> list[dict[str, Any]]:
        """The paired difference of each seed; of the baseline, how far each seed is from their mean."""
        if arm.name == self.study.baseline:
            found = arm.values(self.study.metric.key)
            own = arm.by_seed(self.study.metric.key)
            values = {seed: v - found.mean for seed, v in own.items()} if found and len(own) > 1 else {}
        else:
            values = self.study.differences(arm) if arm.ranked else {}
        place = next(row["place"] for row in self.rows if row["arm"] == arm.name) if self.rows else 0
        alone = arm.alone
        return [
            {
                "place": place,
                "arm": arm.name,
                "seed": seed,
                "difference": value,
                "told": f"{arm.name}, seed {seed}: {numbers.fixed(value, 4, sign=True)}",
            }
            for seed, value in values.items()
            if seed in alone
        ]

    # ---- the scale -----------------------------------------------------------------------------------------

    def reach(self) -> tuple[float, float]:
        """From the leftmost to the rightmost thing shown, zero and the margin among them, with air around.

        What reaches very far, an interval by two documents or a wide margin of noise, ends at the edge.
        """
        near = [0.0, -self.margin, self.margin, *(row["effect"] for row in self.intervals)]
        near += [datum["difference"] for datum in self.seeds]
        farthest = FAR * (max(map(abs, near)) or 1.0)
        far = [end for row in self.intervals for end in (row["low"], row["high"]) if end is not None]
        far += [-self.noise, self.noise] if self.noise is not None else []
        shown = [*near, *(min(max(end, -farthest), farthest) for end in far)]
        low, high = min(shown), max(shown)
        air = 0.06 * (high - low or 1.0)
        return low - air, high + air

    def goes_on(self) -> bool:
        """Whether some interval reaches beyond the picture, or has no end."""
        low, high = self.reach()
        return any(
            row["low"] is None or row["high"] is None or row["low"] < low or row["high"] > high
            for row in self.intervals
        )

    # ---- drawing -------------------------------------------------------------------------------------------

    def draw(self, frame: Frame) -> alt.TopLevelMixin:
        step = 46 if frame.narrow else 38 if len(self.rows) <= 12 else 26
        names = 0 if frame.narrow else min(180, 24 + 7 * max(len(row["arm"]) for row in self.rows))
        inner = frame.width - names - (16 if frame.narrow else 116)
        low, high = self.reach()
        x = alt.Scale(domain=[low, high], nice=False, zero=False)
        y = alt.Scale(domain=[-0.5, len(self.rows) - 0.5], reverse=True, nice=False)
        layers = [
            *self._ground(frame, x, y, low, high),
            *self._intervals(frame, x, y, low, high),
            *self._words(y, frame, inner),
        ]
        chart = alt.layer(*layers).properties(width=inner, height=step * len(self.rows))
        return finished(chart, _broken(self.title) if frame.narrow else self.title, self._key(frame))

    def _key(self, frame: Frame) -> list[str]:
        lines = []
        if self.margin:
            lines.append(f"shaded: the margin, ±{self.margin:g}, within which it does not matter")
        if self.noise is not None:
            lines.append(
                f"dotted: the noise floor, ±{numbers.plain(self.noise, 2)}, by which two runs of the "
                "baseline differ on average"
            )
        return lines if frame.narrow is False else [part for line in lines for part in _broken(line)]

    def _axis(self) -> alt.Axis:
        left, right = ("better", "worse") if self.study.metric.lower_is_better else ("worse", "better")
        return alt.Axis(
            title=f"← {left}\u2003\u2003{right} →", tickCount=5, labelExpr=_SIGNED, orient="bottom", grid=True
        )

    def _ground(self, frame: Frame, x: alt.Scale, y: alt.Scale, low: float, high: float) -> list[Any]:
        """Hatched rows, the margin, the noise of seeds, and zero."""
        above = 0.1 if frame.narrow else 0.42  # where the name stands above its row, it keeps clear
        hatched = [
            {
                "from": row["place"] - above,
                "to": row["place"] + 0.42,
                "a": low,
                "b": high,
                "told": row["told"],
            }
            for row in self.rows
            if row["word"] in ("invalid", "diverged", "failed")
        ]
        layers: list[Any] = []
        if self.margin:
            band = frame.data([{"a": max(low, -self.margin), "b": min(high, self.margin)}])
            layers.append(
                alt.Chart(band)
                .mark_rect(color=palette.BAND, aria=False)
                .encode(x=alt.X("a:Q", scale=x, axis=self._axis()), x2="b:Q")
            )
        layers.append(
            alt.Chart(frame.data([{"at": 0}]))
            .mark_rule(color=palette.INK, strokeWidth=1, aria=False)
            .encode(x=alt.X("at:Q", scale=x, axis=self._axis()))
        )
        if self.noise is not None:
            ends = [{"at": end} for end in (-self.noise, self.noise) if low <= end <= high]
            layers.append(
                alt.Chart(frame.data(ends))
                .mark_rule(color=palette.NOISE, strokeWidth=1.5, strokeDash=[1, 3], aria=False)
                .encode(x=alt.X("at:Q", scale=x))
            )
        if hatched:
            layers.append(
                alt.Chart(frame.data(hatched))
                .mark_rect(color=HATCH)
                .encode(
                    x=alt.X("a:Q", scale=x),
                    x2="b:Q",
                    y=alt.Y("from:Q", scale=y, axis=None),
                    y2="to:Q",
                    description="told:N",
                )
            )
        return layers

    def _intervals(self, frame: Frame, x: alt.Scale, y: alt.Scale, low: float, high: float) -> list[Any]:
        layers: list[Any] = []
        for sure in (True, False):
            rows = [
                {
                    **row,
                    "low": _within(row["low"], low, low, high),
                    "high": _within(row["high"], high, low, high),
                }
                for row in self.intervals
                if (row["word"] in palette.WORDS) == sure
            ]
            if rows:
                dash = [1, 0] if sure else [5, 3]
                layers.append(
                    alt.Chart(frame.data(rows))
                    .mark_rule(strokeWidth=2.5, strokeDash=dash, strokeCap="butt")
                    .encode(
                        x=alt.X("low:Q", scale=x),
                        x2="high:Q",
                        y=alt.Y("place:Q", scale=y, axis=None),
                        color=_coloured(),
                        description="told:N",
                    )
                )
        if self.seeds:
            layers.append(
                alt.Chart(frame.data(self.seeds))
                .mark_tick(orient="vertical", thickness=1.5, size=11, yOffset=9, color=palette.SOFT)
                .encode(
                    x=alt.X("difference:Q", scale=x),
                    y=alt.Y("place:Q", scale=y, axis=None),
                    description="told:N",
                )
            )
        for row in self.intervals:
            sure = row["word"] in palette.WORDS
            colour = palette.WORDS.get(row["word"], palette.SOFT)
            layers.append(
                alt.Chart(frame.data([row]))
                .mark_point(
                    shape=_SHAPES.get(row["word"], "circle"),
                    size=110,
                    filled=True,
                    fill=colour if sure else palette.PAPER,
                    stroke=colour,
                    strokeWidth=2,
                    opacity=1,
                )
                .encode(
                    x=alt.X("effect:Q", scale=x), y=alt.Y("place:Q", scale=y, axis=None), description="told:N"
                )
            )
        return layers

    def _words(self, y: alt.Scale, frame: Frame, inner: int) -> list[Any]:
        """Each arm's name and its word, beside its row or, where room is short, above it."""
        up = -15 if frame.narrow else 0
        at = alt.Y("place:Q", scale=y, axis=None)
        names = (
            alt.Chart(frame.data(self.rows))
            .mark_text(
                align="left" if frame.narrow else "right",
                dx=0 if frame.narrow else -12,
                dy=up,
                color=palette.INK,
                fontSize=12,
                limit=inner * 0.62 if frame.narrow else 180,
                aria=False,
            )
            .encode(x=alt.value(0), y=at, text="arm:N")
        )
        words = (
            alt.Chart(frame.data(self.rows))
            .mark_text(
                align="right" if frame.narrow else "left",
                dx=0 if frame.narrow else 12,
                dy=up,
                fontSize=12,
                fontWeight="bold",
                aria=False,
            )
            .encode(x=alt.value(inner), y=at, text="word:N", color=_coloured())
        )
        return [names, words]

    # ---- words and numbers ---------------------------------------------------------------------------------

    def label(self) -> str:
        return "; ".join(row["told"] for row in self.rows)

    def numbers(self) -> list[Datum]:
        rows = [
            {
                "arm": row["arm"],
                "verdict": row["word"],
                "difference": row["effect"],
                "low": row["low"],
                "high": row["high"],
                "margin": self.margin,
                "noise": self.noise,
            }
            for row in self.rows
        ]
        seeds = [{"arm": d["arm"], "seed": d["seed"], "difference": d["difference"]} for d in self.seeds]
        return [*rows, *seeds]


def _coloured() -> alt.Color:
    words = list(palette.WORDS)
    other = ["undecided", "invalid", "diverged", "failed", "waiting", "half done", "baseline", "not judged"]
    colours = [*palette.WORDS.values(), *[palette.SOFT] * len(other)]
    return alt.Color("word:N", scale=alt.Scale(domain=[*words, *other], range=colours), legend=None)


def _within(value: float | None, otherwise: float, low: float, high: float) -> float:
    return min(max(value, low), high) if value is not None and math.isfinite(value) else otherwise


def _broken(line: str) -> list[str]:
    """A line in several, where it is too long for a phone."""
    return textwrap.wrap(line, 42, subsequent_indent="  ") or [line]
