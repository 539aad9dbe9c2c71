"""A picture: drawn wide for a desk and narrow for a phone, with its PDF and its numbers to take along."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from attnlab.report.pictures import palette

WIDE, NARROW = 900, 350  # in CSS pixels, axes and labels included

_ENLARGED = 1.15  # that much at most, as on a wide screen the pictures that fill its width

Datum = Mapping[str, Any]
HATCH = "#fedcba"  # stands for the hatching of what is invalid, which Vega cannot draw


class Frame:
    """The room a picture is drawn in, and the data drawn there.

    The data stay out of the chart until it is finished: altair copies and checks a chart at every step.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.narrow = width < WIDE
        self.datasets: dict[str, list[Datum]] = {}

    def data(self, data: Sequence[Datum]) -> alt.NamedData:
        """Data to draw, by a name that stands for them."""
        name = f"data-{len(self.datasets)}"
        self.datasets[name] = list(data)
        return alt.NamedData(name=name)

    def svg(self, chart: alt.TopLevelMixin) -> str:
        """A chart as SVG that stands on its own."""
        plain = {**chart.to_dict(validate=False), "datasets": self.datasets}
        drawn = vl_convert.vegalite_to_svg(plain)
        for pattern, instead in _NEEDLESS:
            drawn = pattern.sub(instead, drawn)
        drawn = _GEOMETRY.sub(lambda found: _FINE.sub(r"\1", found[0]), drawn)
        if HATCH in drawn:
            name = f"hatch-{hashlib.sha256(drawn.encode()).hexdigest()[:8]}"  # one of a kind on its page
            drawn = drawn.replace(f'"{HATCH}"', f'"url(#{name})"').replace(">", f">{_HATCHING % name}", 1)
        return drawn


_NEEDLESS = (
    (re.compile(r'<path class="(?:fore|back)ground"[^>]*?(?:display="none"|d="M0,0h0v0h0Z")[^>]*?/>'), ""),
    (re.compile(r' (?:opacity="1"|aria-roledescription="[^"]*"|version="1.1")'), ""),
)
_GEOMETRY = re.compile(r' (?:d|transform|[xy][12]?|width|height)="[^"]*"')
_FINE = re.compile(r"(\.\d\d)\d+")  # a hundredth of a pixel is fine enough
_HATCHING = (
    '<defs><pattern id="%s" width="7" height="7" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="7" '
    f'stroke="{palette.FAINT}" stroke-width="3"/></pattern></defs>'
)


@dataclass(frozen=True)
class Picture:
    """What the page embeds: both drawings, the words about them, and what can be downloaded."""

    key: str
    title: str
    caption: str
    label: str  # what the picture shows, for someone who cannot see it
    wide: str
    narrow: str
    csv: str
    pdf: str  # base64


def picture(
    key: str,
    title: str,
    caption: str,
    label: str,
    draw: Callable[[Frame], alt.TopLevelMixin],
    data: Sequence[Datum],
) -> Picture:
    """Draw both sizes; `data` is what is drawn, for the CSV."""
    frames = Frame(WIDE), Frame(NARROW)
    wide, narrow = (frame.svg(draw(frame)) for frame in frames)
    pdf = base64.b64encode(vl_convert.svg_to_pdf(wide)).decode()
    return Picture(key, title, caption, label, _within_page(wide), _within_page(narrow), as_csv(data), pdf)


def _within_page(drawn: str) -> str:
    """Without a fixed size, so that the style sheet sets it: as wide as there is room, but none larger beside
    its neighbours than it was drawn."""
    width = float(re.findall(r' width="([\d.]+)"', drawn)[0])
    most = f' style="max-width:{_ENLARGED * width:.0f}px"'
    return re.sub(r' width="[\d.]+" height="[\d.]+"', most, drawn, count=1)


def as_csv(data: Sequence[Datum]) -> str:
    columns = list(dict.fromkeys(name for datum in data for name in datum))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(data)
    return text.getvalue()


def untold(data: Sequence[Datum]) -> list[Datum]:
    """The data without the words that a mark says when it is pointed at."""
    return [{name: value for name, value in datum.items() if name != "told"} for datum in data]


def finished(chart: Any, title: str | list[str], subtitle: Sequence[str] = ()) -> alt.TopLevelMixin:
    """The look all pictures share."""
    head = alt.TitleParams(title, subtitle=list(subtitle), anchor="start", frame="group")
    config: dict[str, Any] = {
        "font": "Helvetica, Arial, sans-serif",
        "background": palette.PAPER,
        "padding": 4,
        "view": {"stroke": None},
        "title": {
            "color": palette.INK,
            "fontSize": 13,
            "fontWeight": "bold",
            "subtitleColor": palette.SOFT,
            "subtitleFontSize": 11,
            "subtitlePadding": 4,
            "offset": 8,
        },
        "axis": {
            "labelColor": palette.SOFT,
            "titleColor": palette.SOFT,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "titlePadding": 9,  # as below: labels may come out wider than they were measured
            "gridColor": palette.FAINT,
            "gridOpacity": 0.6,
            "domainColor": palette.NOISE,
            "tickColor": palette.NOISE,
            "labelLimit": 170,
        },
        "legend": {
            "labelColor": palette.INK,
            "labelFontSize": 11,
            "labelLimit": 160,
            "title": None,
            "orient": "top",
            "symbolSize": 70,
            "symbolStrokeWidth": 2,
            "columnPadding": 28,  # more than needed: letters may come out wider than they were measured
            "offset": 8,
        },
        "header": {"labelColor": palette.INK, "labelFontSize": 11, "labelLimit": 160, "title": None},
    }
    made: alt.TopLevelMixin = chart.properties(title=head).configure(**config)
    return made
