"""Colours told apart by every eye: drawn by a browser as different eyes see them, and measured."""

from __future__ import annotations

import base64
import itertools
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.craft.board import STYLE
from attnlab.craft.board.board import read
from attnlab.report.pictures import palette

from ..browser import needs_browser, show

EYES = ("none", "protanopia", "deuteranopia", "tritanopia")
SIDE = 20  # pixels of a swatch
APART = 8.0  # in CIELAB, where 2.3 is just seen; between lines of different dashes


def seen(browser: Any, colours: Sequence[str], eye: str, folder: Path) -> list[np.ndarray]:
    """The colours as an eye sees them, in CIELAB; the simulation is the browser's own."""
    page = folder / "swatches.html"
    swatches = "".join(
        f'<i style="position:absolute;left:{at * SIDE}px;width:{SIDE}px;height:{SIDE}px;background:{c}"></i>'
        for at, c in enumerate(colours)
    )
    page.write_text(f"<!doctype html><title>Swatches</title><body style='margin:0'>{swatches}")
    show(browser, page, width=1280)
    browser.execute_cdp_cmd("Emulation.setEmulatedVisionDeficiency", {"type": eye})
    clip = {"x": 0, "y": 0, "width": SIDE * len(colours), "height": SIDE, "scale": 1}
    drawn = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})["data"]
    browser.execute_cdp_cmd("Emulation.setEmulatedVisionDeficiency", {"type": "none"})
    rows = pixels(base64.b64decode(drawn))
    return [lab(rows[SIDE // 2, at * SIDE + SIDE // 2, :3]) for at in range(len(colours))]


def pixels(png: bytes) -> np.ndarray:
    """The pixels of a PNG of eight bits a channel."""
    width, height, _, kind = struct.unpack(">IIBB", png[16:26])
    channels = {2: 3, 6: 4}[kind]
    at, packed = 8, b""
    while at < len(png):
        size, what = struct.unpack(">I4s", png[at : at + 8])
        packed += png[at + 8 : at + 8 + size] if what == b"IDAT" else b""
        at += size + 12
    raw = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels).astype(int)
    out = np.zeros((height, width, channels), int)
    for y in range(height):
        line = raw[y, 1:].reshape(width, channels)
        above = out[y - 1] if y else np.zeros((width, channels), int)
        for x in range(width):
            left = out[y, x - 1] if x else np.zeros(channels, int)
            corner = above[x - 1] if x else np.zeros(channels, int)
            guess = left + above[x] - corner
            far = np.abs(np.stack([guess - left, guess - above[x], guess - corner]))
            paeth = np.where(far.argmin(0) == 0, left, np.where(far.argmin(0) == 1, above[x], corner))
            add = (0, left, above[x], (left + above[x]) // 2, paeth)[raw[y, 0]]
            out[y, x] = (line[x] + add) % 256
    return out


def lab(rgb: np.ndarray) -> np.ndarray:
    """sRGB to CIELAB under D65."""
    linear = np.where((c := rgb / 255) <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    matrix = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    xyz = matrix @ linear / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def closest(browser: Any, colours: Sequence[str], eye: str, folder: Path) -> tuple[float, str, str]:
    """The two that are hardest to tell apart, and by how much they differ."""
    found = seen(browser, colours, eye, folder)
    pairs = itertools.combinations(zip(colours, found, strict=True), 2)
    return min((float(np.linalg.norm(a - b)), one, other) for (one, a), (other, b) in pairs)


LIGHT = [palette.look(place).colour for place in range(6)]
PALETTES: Mapping[str, Sequence[str]] = {
    "arms by day": LIGHT,
    "arms by night": [palette.DARK[colour] for colour in LIGHT],
    "verdicts by day": [*palette.WORDS.values(), palette.SOFT],
    "verdicts by night": [*(palette.DARK[c] for c in palette.WORDS.values()), palette.DARK[palette.SOFT]],
}


@needs_browser
@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("name", PALETTES)
def test_colours_are_told_apart_by_every_eye(browser: Any, tmp_path: Path, name: str, eye: str) -> None:
    distance, one, other = closest(browser, PALETTES[name], eye, tmp_path)
    assert distance > APART, (one, other)


@needs_browser
def test_a_pair_that_is_not_is_found_out(browser: Any, tmp_path: Path) -> None:
    """A green and a brown that most people see apart, and others do not."""
    pair = ("#6b7a1f", "#94691f")
    assert closest(browser, pair, "none", tmp_path)[0] > 2 * APART
    assert closest(browser, pair, "deuteranopia", tmp_path)[0] < APART


def test_no_arm_is_told_by_its_colour_alone() -> None:
    looks = [palette.look(place) for place in range(36)]
    assert len({(look.colour, look.dash) for look in looks}) == 36
    assert len({look.dash for look in looks[:6]}) == len({look.shape for look in looks[:6]}) == 6


def test_the_board_names_what_it_colours() -> None:
    """Eight colours are too many for every eye: each point has its name beside it."""
    assert len(set(re.findall(r"--c\d: (#\w+)", read(STYLE)))) == 16
    assert "text: id" in read("board.js")
