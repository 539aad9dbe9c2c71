"""Colours that everyone can tell apart, never alone: with each goes a dash and a shape.

After Okabe and Ito, darkened where theirs are too pale for a thin line on white. Each has a counterpart
for a dark page: pictures carry the light one, and the page's style sheet exchanges it.
"""

from __future__ import annotations

from dataclasses import dataclass

INK, SOFT, FAINT, PAPER = "#1f2328", "#5c6370", "#d5d3cd", "#ffffff"
BAND, NOISE = "#e4e2dc", "#8a8578"

_SERIES = ("#3b3b3b", "#0072b2", "#d55e00", "#00805f", "#b1478f", "#6e3b00")
_DASHES = ((1, 0), (6, 2), (2, 2), (8, 2, 2, 2), (12, 3), (4, 2, 1, 2, 1, 2))
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")

WORDS = {"better": "#0072b2", "worse": "#d55e00", "equivalent": "#00805f"}  # anything else: SOFT

# Light to dark, for every colour a picture may hold.
DARK = {
    INK: "#e8e6e1",
    SOFT: "#a5abb6",
    FAINT: "#3d424b",
    PAPER: "#16181d",
    BAND: "#2b3038",
    NOISE: "#9a9588",
    "#3b3b3b": "#d8d6d0",
    "#0072b2": "#56b4e9",
    "#d55e00": "#ff9248",
    "#00805f": "#3cc9a3",
    "#b1478f": "#e79bcb",
    "#6e3b00": "#f0d000",
}


@dataclass(frozen=True)
class Look:
    """How one arm is drawn, wherever it is drawn."""

    colour: str
    dash: tuple[int, ...]
    shape: str


INVALID = Look(NOISE, (1, 3), "cross")  # its figures do not belong beside the others'


def look(place: int) -> Look:
    """The look of the arm at a place in the study; no two of the first 36 share colour and dash."""
    colours = len(_SERIES)
    return Look(
        _SERIES[place % colours],
        _DASHES[(place + place // colours) % len(_DASHES)],
        _SHAPES[place % len(_SHAPES)],
    )
