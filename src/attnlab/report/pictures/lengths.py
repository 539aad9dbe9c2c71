"""Loss against length: which arms work on texts longer than they were trained on."""

from __future__ import annotations

import math
import statistics
from typing import Any

import altair as alt

from attnlab.report import numbers
from attnlab.report.names import quoted
from attnlab.report.pictures import palette
from attnlab.report.pictures.legend import coloured, dashed
from attnlab.report.pictures.picture import Frame, Picture, finished, picture, untold
from attnlab.report.studied import Arm, Studied

NO_FURTHER = "knows no further position"
NOT_FINITE = "no finite loss in every seed beyond"
_TITLE = "Loss against length"
_LINE = 15  # pixels from one line of words to the next


def lengths_picture(study: Studied) -> Picture | None:
    """None unless some run read the test split in blocks of a given length."""
    drawing = _Lengths(study)
    if not drawing.runs:
        return None
    return picture("lengths", _TITLE, drawing.caption(), drawing.label(), drawing.draw, untold(drawing.runs))


class _Lengths:
    def __init__(self, study: Studied) -> None:
        self.lengths, self.trained = study.by_length(), study.trained_length
        self.runs: list[dict[str, Any]] = []
        self.means: list[dict[str, Any]] = []
        self.ends: list[dict[str, Any]] = []
        self.looks: dict[str, palette.Look] = {}
        self.nowhere: list[str] = []  # arms that have runs to show and no length they can read
        self.invalid = [arm.name for arm in study.arms if not arm.ranked]
        for place, arm in enumerate(study.arms):
            known = {length: seeds for length, key in self.lengths.items() if (seeds := arm.by_seed(key))}
            if known:
                self.looks[arm.name] = palette.look(place) if arm.ranked else palette.INVALID
                self._add(arm, known)
            elif any(run.counts for run in arm.runs):
                self.nowhere.append(arm.name)

    def _add(self, arm: Arm, known: dict[int, dict[int, float]]) -> None:
        alone = arm.alone
        for length, by_seed in known.items():
            for seed, loss in by_seed.items():
                if seed not in alone:
                    continue
                told = f"{arm.name}, seed {seed}: {numbers.plain(loss)} in blocks of {numbers.count(length)}"
                self.runs.append(
                    {"arm": arm.name, "seed": seed, "length": length, "loss": loss, "told": told}
                )
        seeds = max(map(len, known.values()))
        whole = {length: by_seed for length, by_seed in known.items() if len(by_seed) == seeds}
        for length, by_seed in whole.items():  # a mean over the seeds that are left would flatter
            over = numbers.with_error(numbers.spread(by_seed.values()))
            told = f"{arm.name}, mean: {over} in blocks of {numbers.count(length)}"
            mean = statistics.fmean(by_seed.values())
            self.means.append({"arm": arm.name, "length": length, "loss": mean, "over": over, "told": told})
        beyond = [key for length, key in self.lengths.items() if length > max(whole)]
        if beyond:
            there = any(beyond[0] in run.metrics for run in arm.runs if run.counts)
            why = NOT_FINITE if there else NO_FURTHER
            told = f"{arm.name} ends at {numbers.count(max(whole))}: {why}"
            self.ends.append({**self.means[-1], "why": why, "told": told})

    # ---- words ---------------------------------------------------------------------------------------------

    def caption(self) -> str:
        several = len(self.runs) > len(self.means)
        lines = "A thin line is one seed, a thick one the mean of an arm." if several else ""
        ends = "A hollow square ends the line of an arm that cannot be read further." if self.ends else ""
        nowhere = ""
        if self.nowhere:
            names = numbers.listed([quoted(name) for name in self.nowhere])
            nowhere = f"Without a figure at any of these lengths: {names}."
        said = ["The same test split, read in blocks of so many tokens.", lines, ends, nowhere]
        return " ".join(filter(None, said))

    def label(self) -> str:
        """Every mean and every end, for someone who cannot see them."""
        ends = {end["arm"]: f", {end['why']}" for end in self.ends}
        told = []
        for arm in self.looks:
            points = [f"{m['over']} at {numbers.count(m['length'])}" for m in self.means if m["arm"] == arm]
            told.append(f"{arm} {', '.join(points)}{ends.get(arm, '')}")
        trained = f" Trained on {numbers.times(self.trained, 'token')}." if self.trained else ""
        return f"{_TITLE}. {'; '.join(told)}.{trained}"

    # ---- drawing -------------------------------------------------------------------------------------------

    def draw(self, frame: Frame) -> alt.TopLevelMixin:
        reached = [*self.lengths, *([self.trained] if self.trained else [])]
        x = alt.X(
            "length:Q",
            scale=alt.Scale(type="log", base=2, domain=[min(reached), max(reached)], nice=False, padding=14),
            axis=alt.Axis(
                title="tokens in a block, log scale", values=list(self.lengths), format=",d", grid=False
            ),
        )
        colour = coloured(frame, self.looks, self.invalid)
        dash = dashed(frame, self.looks, self.invalid)
        width, height = frame.width - 70, 240 if frame.narrow else 300
        words = self._meanings()
        y = self._scale(height, _LINE * len(words))
        place = {"x": x, "y": y, "color": colour, "description": "told:N"}
        thin = alt.Chart(frame.data(self.runs)).mark_line(
            strokeWidth=1, opacity=0.45, point=alt.OverlayMarkDef(size=12, opacity=0.45)
        )
        thick = alt.Chart(frame.data(self.means)).mark_line(
            strokeWidth=2.4, point=alt.OverlayMarkDef(size=34, opacity=1)
        )
        layers = [
            *self._rule(frame, x),
            thin.encode(detail="seed:N", strokeDash=dash, **place),
            thick.encode(strokeDash=dash, **place),
        ]
        if self.ends:
            squares = alt.Chart(frame.data(self.ends)).mark_point(
                shape="square", size=140, filled=False, strokeWidth=2, opacity=1
            )
            layers.append(squares.encode(**place))
        middle = math.sqrt(min(reached) * max(reached))  # of a log scale
        for line, (length, said) in enumerate(words):
            right = length > middle and not frame.narrow  # where room is short, from edge to edge
            word = alt.Chart(frame.data([{"length": length, "said": said}])).mark_text(
                align="right" if right else "left",
                baseline="bottom",
                dx=7 if right else 4 if frame.narrow else -7,
                limit=width,
                color=palette.INK,
                fontSize=11,
                aria=False,
            )
            at = alt.value(0) if frame.narrow else x
            layers.append(word.encode(x=at, y=alt.value(height - 3 - _LINE * line), text="said:N"))
        return finished(alt.layer(*layers).properties(width=width, height=height), _TITLE)

    def _rule(self, frame: Frame, x: alt.X) -> list[Any]:
        """The length that was trained on."""
        if not self.trained:
            return []
        data = frame.data([{"length": self.trained, "said": f"trained on {numbers.count(self.trained)}"}])
        rule = alt.Chart(data).mark_rule(color=palette.NOISE, strokeWidth=1.5, strokeDash=[1, 3], aria=False)
        right = self.trained > max(self.lengths) / 2
        word = alt.Chart(data).mark_text(
            align="right" if right else "left",
            baseline="top",
            dx=-5 if right else 5,
            color=palette.SOFT,
            fontSize=11,
            aria=False,
        )
        return [rule.encode(x=x), word.encode(x=x, y=alt.value(0), text="said:N")]

    def _scale(self, height: int, below: int) -> alt.Y:
        """Room for every loss, and free of lines so many pixels at the bottom."""
        losses = [run["loss"] for run in self.runs]
        low, high = min(losses), max(losses)
        air = 0.06 * (high - low or abs(high) or 1.0)
        low, high = low - air, high + air
        low -= (high - low) * below / (height - below)
        return alt.Y(
            "loss:Q",
            scale=alt.Scale(domain=[low, high], nice=False, zero=False),
            axis=alt.Axis(title="test loss", tickCount=6),
        )

    def _meanings(self) -> list[tuple[int, str]]:
        """What ends where, and why, in words: a line for each length and reason."""
        found: dict[tuple[int, str], list[str]] = {}
        for end in self.ends:
            found.setdefault((end["length"], end["why"]), []).append(end["arm"])
        return [
            (length, f"{quoted(arms[0]) if len(arms) == 1 else f'{len(arms)} arms'}: {why}")
            for (length, why), arms in sorted(found.items(), reverse=True)
        ]
