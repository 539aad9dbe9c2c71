"""What quality costs: the metric against the time a run took, a mark per seed."""

from __future__ import annotations

from typing import Any

import altair as alt

from attnlab.report import numbers
from attnlab.report.names import label
from attnlab.report.pictures import palette
from attnlab.report.pictures.picture import Frame, Picture, finished, picture, untold
from attnlab.report.studied import Studied

_MANY_TIMES = 6  # from such a ratio between the dearest and the cheapest, the scale is logarithmic
_TITLE = "Quality against cost"


def cost_picture(study: Studied) -> Picture | None:
    """None unless two arms have both a time and a figure; invalid arms stay out, as in the ranking."""
    drawing = _Cost(study)
    if len(drawing.looks) < 2:
        return None
    left_out = [arm.name for arm in study.arms if not arm.ranked]
    corner = "lower" if study.metric.lower_is_better else "upper"
    caption = (
        f"Cheap and good is the {corner} left corner. A small mark is one run, a large one an arm's mean."
    )
    if left_out:
        caption += f" Not shown, as invalid: {numbers.listed(left_out)}."
    said = "; ".join(mean["told"] for mean in drawing.means)
    return picture("cost", _TITLE, caption, said, drawing.draw, untold(drawing.runs))


class _Cost:
    def __init__(self, study: Studied) -> None:
        self.key = key = study.metric.key
        self.runs: list[dict[str, Any]] = []
        self.means: list[dict[str, Any]] = []
        self.looks: dict[str, palette.Look] = {}
        for place, arm in enumerate(study.arms):
            runs = [run for run in arm.runs if run.counts and run.seconds and key in run.metrics]
            seconds, quality = arm.seconds, arm.values(key)
            if not (runs and arm.ranked and seconds and quality):
                continue
            self.looks[arm.name] = palette.look(place)
            told = f"{label(key)} {numbers.with_error(quality)} in {numbers.duration(seconds.mean)} a run"
            mean = {
                "arm": arm.name,
                "seconds": seconds.mean,
                key: quality.mean,
                "told": f"{arm.name}: {told}",
            }
            self.means.append(mean)
            for run in filter(lambda run: run.alone, runs):
                told = (
                    f"{label(key)} {numbers.plain(run.metrics[key])} in {numbers.duration(run.seconds or 0)}"
                )
                self.runs.append(
                    {
                        "arm": arm.name,
                        "seed": run.seed,
                        "seconds": run.seconds,
                        key: run.metrics[key],
                        "told": f"{arm.name}, seed {run.seed}: {told}",
                    }
                )

    def draw(self, frame: Frame) -> alt.TopLevelMixin:
        seconds = [run["seconds"] for run in self.runs]
        log = max(seconds) > _MANY_TIMES * min(seconds)
        below = f"training time of a run, seconds{', log scale' if log else ''}"
        names, looks = list(self.looks), list(self.looks.values())
        legend = alt.Legend(columns=2 if frame.narrow else min(5, len(names)))
        place = {
            "x": alt.X(
                "seconds:Q",
                scale=alt.Scale(type="log" if log else "linear", zero=False, nice=True, padding=14),
                axis=alt.Axis(title=below, tickCount=5, format=",~r"),
            ),
            "y": alt.Y(
                f"{self.key}:Q",
                scale=alt.Scale(zero=False, padding=14),
                axis=alt.Axis(title=label(self.key), tickCount=6),
            ),
            "color": alt.Color(
                "arm:N", scale=alt.Scale(domain=names, range=[look.colour for look in looks]), legend=legend
            ),
            "shape": alt.Shape(
                "arm:N", scale=alt.Scale(domain=names, range=[look.shape for look in looks]), legend=legend
            ),
            "description": "told:N",
        }
        small = alt.Chart(frame.data(self.runs)).mark_point(size=28, opacity=0.7, strokeWidth=1.2)
        large = alt.Chart(frame.data(self.means)).mark_point(size=130, filled=True, opacity=1)
        chart = alt.layer(small.encode(**place), large.encode(**place))
        return finished(chart.properties(width=frame.width - 70, height=250 if frame.narrow else 300), _TITLE)
