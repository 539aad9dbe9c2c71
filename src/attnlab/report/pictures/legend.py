"""Which line is whose: arms by colour and dash, and the word that an invalid one is never without."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import altair as alt

from attnlab.report.pictures.palette import Look
from attnlab.report.pictures.picture import Frame


def coloured(frame: Frame, looks: Mapping[str, Look], invalid: Collection[str]) -> alt.Color:
    made: alt.Color = _by_arm(alt.Color, frame, looks, [look.colour for look in looks.values()], invalid)
    return made


def dashed(frame: Frame, looks: Mapping[str, Look], invalid: Collection[str]) -> alt.StrokeDash:
    dashes = [list(look.dash) for look in looks.values()]
    made: alt.StrokeDash = _by_arm(alt.StrokeDash, frame, looks, dashes, invalid)
    return made


def _by_arm(
    channel: Any, frame: Frame, looks: Mapping[str, Look], values: list[Any], invalid: Collection[str]
) -> Any:
    longest = max(map(len, looks))
    columns = (2 if longest <= 14 else 1) if frame.narrow else len(looks) if longest <= 20 else 3
    legend = alt.Legend(
        columns=columns,
        symbolType="stroke",
        labelExpr=marked(invalid),
        symbolSize=400,
        symbolOpacity=1,
        symbolStrokeWidth=2,
    )
    return channel("arm:N", scale=alt.Scale(domain=list(looks), range=values), legend=legend)


def marked(invalid: Collection[str]) -> str:
    """An arm's name for a legend or a heading, as an expression."""
    named = f"indexof({json.dumps(list(invalid))}, datum.value) >= 0"
    return f"{named} ? datum.label + ' (invalid)' : datum.label"
