"""The arms beside the floors: how far attention is above counting words."""

from __future__ import annotations

from typing import Any

import altair as alt

from attnlab.report import numbers
from attnlab.report.pictures import palette
from attnlab.report.pictures.picture import Frame, Picture, finished, picture, untold
from attnlab.report.studied import Studied


def floors_picture(study: Studied) -> Picture | None:
    """None unless both the floors' and some arm's test perplexity are known."""
    floors: list[dict[str, Any]] = [
        {"name": name, "perplexity": float(facts["perplexity"]), "kind": "floor"}
        for name, facts in study.floors.items()
        if facts.get("perplexity")
    ]
    arms: list[dict[str, Any]] = [
        {"name": arm.name, "perplexity": value, "kind": "arm", "seed": seed}
        for arm in study.arms
        if arm.ranked
        for seed, value in arm.by_seed("test_perplexity").items()
    ]
    if not floors or not arms:
        return None
    data = [
        {**d, "told": f"{d['name']}: perplexity {numbers.plain(d['perplexity'])}"} for d in [*floors, *arms]
    ]
    best: dict[str, float] = {}
    for datum in data:
        best[datum["name"]] = min(datum["perplexity"], best.get(datum["name"], datum["perplexity"]))
    order = sorted(best, key=best.__getitem__)

    def draw(frame: Frame) -> alt.TopLevelMixin:
        words = list(palette.WORDS.values())
        chart = (
            alt.Chart(frame.data(data))
            .mark_point(size=80, filled=True, opacity=0.9)
            .encode(
                x=alt.X(
                    "perplexity:Q",
                    scale=alt.Scale(type="log", nice=False, padding=12),
                    axis=alt.Axis(
                        title="test perplexity, log scale (lower is better)", tickCount=6, format="~r"
                    ),
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

    caption = (
        "N-gram models counted on the same training text, scored on the same test tokens. Each dot is a seed."
    )
    told = {f"{name}: from {numbers.plain(value)}" for name, value in best.items()}
    return picture("floors", "Beside the floors", caption, "; ".join(sorted(told)), draw, untold(data))
