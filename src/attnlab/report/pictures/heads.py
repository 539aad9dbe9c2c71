"""What heads do while a model is trained: a line for each, where attention was looked at often enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from attnlab.evaluation.maps.heads import MEASURES
from attnlab.report import numbers
from attnlab.report.pictures import palette
from attnlab.report.pictures.legend import coloured
from attnlab.report.pictures.picture import Datum, Frame, Picture, finished, picture, untold
from attnlab.report.studied import Run, Studied

ENOUGH = 3  # times that attention was looked at, for a line
_MOST = 16  # heads of a layer
_DASHES = ([1, 0], [4, 2], [2, 2], [7, 2, 2, 2], [1, 2], [10, 3])  # of layers, from the last one to the first
_SCORE, _AGAIN = "induction score of a head", "loss, said again"


def induction_picture(study: Studied) -> Picture | None:
    """The induction score of every head beside the loss on what is said again; None where no run was looked
    at often enough."""
    found = _Looked(study, seeds=None)
    losses = list(_losses(found.runs, found.depth))
    scores = found.of("induction")
    if not scores or not losses:
        return None

    def draw(frame: Frame) -> alt.TopLevelMixin:
        width = frame.width - 66 if frame.narrow else (frame.width - 130) // 2
        height = 220 if frame.narrow else 270
        left = found.panel(frame, scores, _SCORE, width, height, [0, 1])
        right = found.panel(frame, losses, _AGAIN, width, height, None)
        side_by_side = alt.vconcat if frame.narrow else alt.hconcat
        return finished(side_by_side(left, right, spacing=24), "Induction heads")

    seeds = len({run.seed for run in found.runs})
    caption = (
        "On random tokens said twice. Left: how much of its weight each head puts, the second time, on what "
        "followed the same token the first time. Right: the loss the second time, when all can be known. "
        f"A line on the left is one head{' of one seed' if seeds > 1 else ''}, on the right one seed."
    )
    ends = []
    for arm in found.looks:
        best = max((d for d in scores if d["arm"] == arm), key=lambda d: (d["step"], d["value"]))
        last = numbers.spread(d["value"] for d in losses if d["arm"] == arm and d["step"] == best["step"])
        ends.append(
            f"{arm}: the best head ends at {best['value']:.2f}, the loss at {numbers.with_error(last)}"
        )
    label = f"Induction score and loss against steps. {'; '.join(ends)}."
    return picture("induction", "Induction heads", caption, label, draw, untold([*scores, *losses]))


def heads_picture(study: Studied) -> Picture | None:
    """Every other measure of every head, in the run of one seed of each arm."""
    found = _Looked(study, seeds=1)
    panels = {name: rows for name in MEASURES if name != "induction" and (rows := found.of(name))}
    if not panels:
        return None

    def draw(frame: Frame) -> alt.TopLevelMixin:
        columns = 1 if frame.narrow else 3
        width = frame.width - 66 if frame.narrow else (frame.width - 150) // 3
        made = [
            found.panel(frame, rows, name, width, 130 if frame.narrow else 170, None)
            for name, rows in panels.items()
        ]
        rows = [alt.hconcat(*made[at : at + columns], spacing=18) for at in range(0, len(made), columns)]
        return finished(alt.vconcat(*rows, spacing=14), "What each head does, step by step")

    told = "; ".join(f"{name}: {MEASURES[name]}" for name in panels)
    label = f"{numbers.listed(list(panels))} of every head against steps."
    data = [datum for rows in panels.values() for datum in rows]
    caption = f"A line is one head in the run of one seed. {told[0].upper()}{told[1:]}."
    return picture("heads", "What each head does", caption, label, draw, untold(data))


class _Looked:
    """The runs that were looked at often enough: all, or the first few seeds of each arm."""

    def __init__(self, study: Studied, seeds: int | None) -> None:
        self.runs: list[Run] = []
        self.looks: dict[str, palette.Look] = {}
        for place, arm in enumerate(study.arms):
            runs = [
                run for run in arm.runs if len(run.exhibits.get("attention", {}).get("steps", ())) >= ENOUGH
            ]
            self.runs += runs[:seeds]
            if runs:
                self.looks[arm.name] = palette.look(place) if arm.ranked else palette.INVALID
        self.invalid = [arm.name for arm in study.arms if not arm.ranked]
        self.depth = max((len(run.exhibits["attention"]["layers"]) for run in self.runs), default=0)

    def of(self, measure: str) -> list[Datum]:
        """A row for every head and step."""
        return [row for run in self.runs for row in _rows(run, measure)]

    def panel(
        self,
        frame: Frame,
        data: Sequence[Datum],
        title: str,
        width: int,
        height: int,
        domain: list[float] | None,
    ) -> Any:
        layers = [f"layer {layer + 1}" for layer in range(self.depth)]
        dashes = [_DASHES[min(self.depth - 1 - layer, len(_DASHES) - 1)] for layer in range(self.depth)]
        # Away from the arms' legend on its left, which may come out wider than it was measured.
        symbols = alt.Legend(
            symbolType="stroke",
            symbolSize=400,
            symbolOffset=0 if frame.narrow else 14,
            labelOffset=4 if frame.narrow else 10,
            columns=3,
            orient="bottom" if frame.narrow else "top",
        )
        dash = alt.StrokeDash("layer:N", scale=alt.Scale(domain=layers, range=dashes), legend=symbols)
        scale = alt.Scale(domain=domain) if domain else alt.Scale(zero=True)
        return (
            alt.Chart(frame.data(data))
            .mark_line(strokeWidth=1.4, opacity=0.75)
            .encode(
                x=alt.X("step:Q", axis=alt.Axis(title="step", tickCount=5, grid=False)),
                y=alt.Y("value:Q", axis=alt.Axis(title=title, tickCount=5), scale=scale),
                color=coloured(frame, self.looks, self.invalid),
                strokeDash=dash,
                detail=["seed:N", "head:N"],
                description="told:N",
            )
            .properties(width=width, height=height)
        )


def _rows(run: Run, measure: str) -> Iterator[dict[str, Any]]:
    kept: Mapping[str, Any] = run.exhibits["attention"]
    for step, layers in zip(kept["steps"], kept["heads"], strict=True):
        for depth, figures in enumerate(layers):
            for head, value in enumerate(figures.get(measure, ())[:_MOST]):
                told = f"{run.arm}, seed {run.seed}, layer {depth + 1}, head {head + 1}"
                yield {
                    "arm": run.arm,
                    "seed": run.seed,
                    "layer": f"layer {depth + 1}",
                    "head": head + 1,
                    "measure": measure,
                    "step": step,
                    "value": value,
                    "told": told,
                }


def _losses(runs: Sequence[Run], depth: int) -> Iterator[dict[str, Any]]:
    """Drawn as the last layer is."""
    for run in runs:
        kept: Mapping[str, Any] = run.exhibits["attention"]
        for step, losses in zip(kept["steps"], kept["losses"], strict=True):
            if "again" in losses:
                yield {
                    "arm": run.arm,
                    "seed": run.seed,
                    "layer": f"layer {depth}",
                    "head": 0,
                    "measure": "loss, said again",
                    "step": step,
                    "value": losses["again"],
                    "told": f"{run.arm}, seed {run.seed}",
                }
