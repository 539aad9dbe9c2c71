"""The arms beside the floors: how far attention is above simple methods, such as counting words."""

from __future__ import annotations

from typing import Any

import altair as alt

from attnlab.report import numbers
from attnlab.report.names import label
from attnlab.report.pictures import palette
from attnlab.report.pictures.picture import Frame, Picture, finished, picture, untold
from attnlab.report.studied import Studied


def floors_picture(study: Studied) -> Picture | None:
    """None unless the floors and some arm have a measure in common."""
    floored = study.floored
    if floored is None:
        return None
    what, better = floored.what, min if floored.lower_is_better else max
    shown = {arm.name: arm.alone for arm in study.arms}
    data: list[dict[str, Any]] = [
        {"name": name, what: value, "kind": "floor"} for name, value in floored.values.items()
    ]
    data += [
        {"name": arm.name, what: value, "kind": "arm", "seed": seed}
        for arm in study.arms
        if arm.ranked
        for seed, value in arm.by_seed(floored.key).items()
        if seed in shown[arm.name]
    ]
    if not any(datum["kind"] == "arm" for datum in data):
        return None
    data = [{**d, "told": f"{d['name']}: {label(what)} {numbers.plain(d[what])}"} for d in data]
    best: dict[str, float] = {}
    for datum in data:
        best[datum["name"]] = better(datum[what], best.get(datum["name"], datum[what]))
    order = sorted(best, key=best.__getitem__, reverse=not floored.lower_is_better)
    log = what == "perplexity"
    below = f"{label(floored.key)}{', log scale' if log else ''} "
    below += f"({'lower' if floored.lower_is_better else 'higher'} is better)"

    def draw(frame: Frame) -> alt.TopLevelMixin:
        words = list(palette.WORDS.values())
        chart = (
            alt.Chart(frame.data(data))
            .mark_point(size=80, filled=True, opacity=0.9)
            .encode(
                x=alt.X(
                    f"{what}:Q",
                    scale=alt.Scale(type="log" if log else "linear", nice=False, zero=False, padding=12),
                    axis=alt.Axis(title=below, tickCount=6, format="~r"),
                ),
                y=alt.Y("name:N", sort=order, axis=alt.Axis(title=None, grid=True, labelColor=palette.INK)),
                color=alt.Color(
                    "kind:N",
                    scale=alt.Scale(domain=["arm", "floor"], range=[words[0], palette.NOISE]),
                    legend=None,
                ),
                shape=alt.Shape(
                    "kind:N",
                    scale=alt.Scale(domain=["arm", "floor"], range=["circle", "diamond"]),
                    legend=alt.Legend(),
                ),
                description="told:N",
            )
            .properties(width=frame.width - (120 if frame.narrow else 190), height=alt.Step(26))
        )
        return finished(chart, "Beside the floors")

    caption = "Simple methods, fitted to the same training text and scored on the same test split. "
    caption += "Each dot is a seed."
    told = {f"{name}: from {numbers.plain(value)}" for name, value in best.items()}
    return picture("floors", "Beside the floors", caption, "; ".join(sorted(told)), draw, untold(data))
