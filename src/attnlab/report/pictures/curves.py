"""Loss against steps, with every seed visible: held out, and as trained."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import altair as alt

from attnlab.report import numbers
from attnlab.report.logs import Point, series, thinned
from attnlab.report.names import label, quoted
from attnlab.report.pictures import palette
from attnlab.report.pictures.legend import coloured, dashed, marked
from attnlab.report.pictures.picture import Datum, Frame, Picture, finished, picture, untold
from attnlab.report.studied import Run, Studied

TOGETHER = 7  # so many arms share one panel; with more, each has its own
MOST_POINTS = 3000  # in one picture, over all its lines
END = 0.4  # the last share of the steps, shown enlarged
STROKE = 0.2  # an arm of less than this share of the longest one's steps would be a stroke at the left
BEGINNING = 0.25  # the first share of the steps, left out where panels are small: its fall flattens the rest
_CROSS = "M-1,-1L1,1M1,-1L-1,1"

Lines = Mapping[tuple[str, int], Sequence[Point]]  # by arm and seed


def curve_pictures(study: Studied) -> list[Picture]:
    """The held-out loss at every evaluation and the loss of the training batches, where they were logged."""
    wanted = [
        (
            "dev_loss",
            "Held-out loss",
            "The dev split in evaluation mode, by the same function for every arm.",
            80,
        ),
        (
            "dev_accuracy",
            "Held-out accuracy",
            "The dev split in evaluation mode, by the same function for every arm.",
            80,
        ),
        (
            "train_accuracy",
            "Accuracy on what is trained on",
            "A sample of the training split, in evaluation mode and by the function that looks at dev.",
            80,
        ),
        ("loss", "Training loss", "The batches trained on, as the optimiser saw them.", 50),
    ]
    found = [_curves(study, quantity, title, what, most) for quantity, title, what, most in wanted]
    return [one for one in found if one is not None]


def _curves(study: Studied, quantity: str, title: str, what: str, most: int) -> Picture | None:
    lines = {
        (arm.name, run.seed): points
        for arm in study.arms
        for run in arm.runs
        if len(points := series(run.log, quantity)) > 1
    }
    if not lines:
        return None
    drawing = _Curves(study, quantity, title, lines, min(most, max(12, MOST_POINTS // len(lines))))
    caption = f"{what} {drawing.key()}"
    if drawing.merged > 1:
        caption += f" Each point is the mean of {drawing.merged} logged steps."
    if drawing.ends:
        caption += " A cross marks where a run diverged."
    key = f"curve-{quantity.replace('_', '-')}"
    return picture(key, title, caption, drawing.label(), drawing.draw, untold(drawing.data))


def _ran(lines: Lines, broken: Collection[tuple[str, int]]) -> dict[str, float]:
    """How many steps the runs of each arm took; for an arm of which all broke off, as many as any arm's."""
    last = {key: points[-1][0] for key, points in lines.items()}
    whole = {key: step for key, step in last.items() if key not in broken}
    most = max(last.values())
    return {
        arm: max((step for (name, _), step in whole.items() if name == arm), default=most)
        for arm in dict.fromkeys(arm for arm, _ in lines)
    }


class _Curves:
    def __init__(self, study: Studied, quantity: str, title: str, lines: Lines, most: int) -> None:
        self.quantity, self.title, self.lines, self.baseline = quantity, title, lines, study.baseline
        broken = [run for run in study.runs if run.status == "diverged" and (run.arm, run.seed) in lines]
        self.ran = _ran(lines, {(run.arm, run.seed) for run in broken})
        self.by_share = min(self.ran.values()) < STROKE * max(self.ran.values())
        self.at = "share" if self.by_share else "step"
        self.below = "share of the arm's own steps" if self.by_share else "step"
        self.format = "%" if self.by_share else alt.Undefined
        self.data: list[dict[str, Any]] = []
        self.merged = 1
        for (arm, seed), points in lines.items():
            kept, each = thinned(points, most)
            self.merged = max(self.merged, each)
            last = f"{numbers.plain(points[-1][1])} at step {numbers.count(points[-1][0])}"
            told = f"{arm}, seed {seed}: {last}"
            self.data += [
                {"arm": arm, "seed": seed, **self._place(arm, s), quantity: v, "told": told} for s, v in kept
            ]
        self.invalid = [arm.name for arm in study.arms if not arm.ranked]
        self.looks = {
            arm.name: palette.look(place) if arm.ranked else palette.INVALID
            for place, arm in enumerate(study.arms)
            if any(arm.name == name for name, _ in lines)
        }
        self.means = self._means([(run.arm, run.seed) for run in broken])
        self.ends = [self._end(run) for run in broken]

    def _place(self, arm: str, step: float) -> dict[str, float]:
        """Where a point stands from left to right."""
        return {"step": step, **({"share": step / self.ran[arm]} if self.by_share else {})}

    def _end(self, run: Run) -> dict[str, Any]:
        """Where a run broke off."""
        step, value = self.lines[run.arm, run.seed][-1]
        told = f"{run.arm}, seed {run.seed}, diverged after step {numbers.count(step)}"
        return {"arm": run.arm, **self._place(run.arm, step), self.quantity: value, "told": told}

    def _means(self, broken: Collection[tuple[str, int]]) -> list[dict[str, Any]]:
        """An arm's mean wherever all its lines have a point, if it has more than one; what diverged stays
        out."""
        whole = [key for key in self.lines if key not in broken]
        at: dict[tuple[str, float], list[float]] = {}
        for datum in self.data:
            if (datum["arm"], datum["seed"]) in whole:
                at.setdefault((datum["arm"], datum["step"]), []).append(datum[self.quantity])
        seeds = {arm: sum(name == arm for name, _ in whole) for arm in self.looks}
        return [
            {
                "arm": arm,
                **self._place(arm, step),
                self.quantity: statistics.fmean(values),
                "told": f"{arm}, mean",
            }
            for (arm, step), values in at.items()
            if len(values) == seeds[arm] > 1
        ]

    def key(self) -> str:
        """What the lines are."""
        own = " From left to right: the share of an arm's own steps, since arms take unlike numbers of them."
        return self._what_lines_are() + (own if self.by_share else "")

    def _what_lines_are(self) -> str:
        if len(self.looks) > TOGETHER:
            behind = f"A line is one seed; grey, behind, the seeds of {quoted(self.baseline)}."
            return f"{behind} The first quarter of the steps is not drawn."
        return f"A thin line is one seed{', a thick one the mean of an arm' if self.means else ''}."

    def label(self) -> str:
        """What the lines end at, for someone who cannot see them."""
        ends = {
            arm: numbers.spread(points[-1][1] for (name, _), points in self.lines.items() if name == arm)
            for arm in self.looks
        }
        told = [f"{arm} ends at {numbers.with_error(end)}" for arm, end in ends.items()]
        return f"{self.title} against {self.below if self.by_share else 'steps'}. {'; '.join(told)}."

    def draw(self, frame: Frame) -> alt.TopLevelMixin:
        chart = self._together(frame) if len(self.looks) <= TOGETHER else self._apart(frame)
        return finished(chart, self.title)

    def _reach(self, shown: Sequence[Datum]) -> alt.Scale:
        """As far as the values go. Where all are one, as those of a model that always gives the same answer,
        some room around it: else its axis would have no numbers to read it by."""
        values = [datum[self.quantity] for datum in shown]
        if len(set(values)) > 1:
            return alt.Scale(zero=False)
        room = abs(values[0]) / 10 or 1.0
        return alt.Scale(domain=[values[0] - room, values[0] + room])

    # ---- few arms: one panel, and its end enlarged ---------------------------------------------------------

    def _together(self, frame: Frame) -> Any:
        last = max(datum[self.at] for datum in self.data)
        first = (1 - END) * last
        enough = self._all_go_on_from(first)
        end = f"{self.below}: the end, enlarged"
        if frame.narrow:
            inner = frame.width - 62
            panels = [self._panel(frame, 0, inner, 220, self.below)]
            panels += [self._panel(frame, first, inner, 220, end)] if enough else []
            return alt.vconcat(*panels, spacing=22)
        if not enough:
            return alt.hconcat(self._panel(frame, 0, frame.width - 62, 300, self.below))
        inner = (frame.width - 140) // 2
        return alt.hconcat(
            self._panel(frame, 0, inner, 290, self.below),
            self._panel(frame, first, inner, 290, end),
            spacing=24,
        )

    def _all_go_on_from(self, first: float) -> bool:
        """Whether every arm that ran to its end has a line there: what shows some arms only looks as if the
        others were none."""
        at: dict[str, set[float]] = {}
        for datum in self.data:
            at.setdefault(datum["arm"], set()).add(datum[self.at])
        ends = [
            {place for place in places if place >= first} for places in at.values() if max(places) > first
        ]
        return all(len(places) > 1 for places in ends) and any(len(places) > 2 for places in ends)

    def _panel(self, frame: Frame, first: float, width: int, height: int, below: str) -> Any:
        """Everything from a step on: each seed thin and pale, the mean of each arm over it."""
        place = {
            "x": alt.X(
                f"{self.at}:Q",
                axis=alt.Axis(title=below, tickCount=5, grid=False, format=self.format),
                scale=alt.Scale(zero=False),
            ),
            "y": alt.Y(
                f"{self.quantity}:Q",
                axis=alt.Axis(title=label(self.quantity), tickCount=6),
                scale=self._reach([datum for datum in self.data if datum[self.at] >= first]),
            ),
            "color": coloured(frame, self.looks, self.invalid),
            "description": "told:N",
        }
        dashes = dashed(frame, self.looks, self.invalid)

        def shown(data: Sequence[Datum]) -> alt.Chart:
            return alt.Chart(frame.data([datum for datum in data if datum[self.at] >= first]))

        thin, pale = (1.0, 0.45) if self.means else (1.8, 1.0)
        seeds = shown(self.data).mark_line(strokeWidth=thin, opacity=pale)
        layers = [seeds.encode(detail="seed:N", strokeDash=dashes, **place)]
        if self.means:
            layers.append(shown(self.means).mark_line(strokeWidth=2.4).encode(strokeDash=dashes, **place))
        if any(end[self.at] >= first for end in self.ends):
            cross = shown(self.ends).mark_point(shape=_CROSS, size=60, strokeWidth=2.5, opacity=1)
            layers.append(cross.encode(**place))
        return alt.layer(*layers).properties(width=width, height=height)

    # ---- many arms: a panel each, the baseline behind it ---------------------------------------------------

    def _apart(self, frame: Frame) -> Any:
        columns = 2 if frame.narrow else 4
        width = (frame.width - 48) // columns - 18
        place = {
            "x": alt.X(
                f"{self.at}:Q",
                axis=alt.Axis(title=None, tickCount=3, grid=False, format=self.format),
                scale=alt.Scale(zero=False),
            ),
            "y": alt.Y(
                f"{self.quantity}:Q",
                axis=alt.Axis(title=None, tickCount=4),
                scale=self._reach(self.data),
            ),
        }
        last = max(datum[self.at] for datum in self.data)
        shown = [d for d in [*self.data, *self.ends] if d[self.at] >= BEGINNING * last]
        behind = [
            {"seed": d["seed"], self.at: d[self.at], self.quantity: d[self.quantity]}
            for d in shown
            if d["arm"] == self.baseline and "seed" in d
        ]
        # The layers that are to be split by arm have no data of their own: those of the facet reach them.
        seeds = alt.Chart().mark_line(strokeWidth=1.3, color=palette.WORDS["better"])
        layers = [
            alt.Chart(frame.data(behind))
            .mark_line(strokeWidth=1, color=palette.NOISE, opacity=0.6, aria=False)
            .encode(detail="seed:N", **place),
            seeds.transform_filter("isValid(datum.seed)").encode(
                detail="seed:N", description="told:N", **place
            ),
        ]
        if self.ends:
            cross = alt.Chart().mark_point(
                shape=_CROSS, size=60, strokeWidth=2.5, color=palette.WORDS["worse"]
            )
            layers.append(
                cross.transform_filter("!isValid(datum.seed)").encode(description="told:N", **place)
            )
        data = frame.data(shown)
        panels = alt.layer(*layers).properties(width=width, height=110)
        split = alt.Facet("arm:N", sort=list(self.looks), header=alt.Header(labelExpr=marked(self.invalid)))
        return panels.facet(facet=split, columns=columns, spacing=14, data=data)
