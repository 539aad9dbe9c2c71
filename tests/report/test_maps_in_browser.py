"""The viewer of attention maps in a real browser: pointer, keyboard, light and dark, and what it saves."""

from __future__ import annotations

import csv
import io
import json
import re
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab import report
from attnlab.evaluation.maps.shot import Shot, shots_in
from attnlab.report.viewer import maps_of

from ..browser import needs_browser, show, strangers
from .made_up_maps import PROBES, add_maps
from .synthetic_study import NORMAL

pytestmark = needs_browser


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = replace(NORMAL, arms=NORMAL.arms[:3], seeds=2)
    path = made.write(tmp_path_factory.mktemp("maps") / "study")
    return add_maps(path, without=("bilinear",), signed=("additive",))


@pytest.fixture(scope="module")
def page(study: Path) -> Path:
    return report.write(study)


@pytest.fixture
def opened(browser: Any, page: Path) -> Iterator[Any]:
    show(browser, page)
    yield browser
    assert browser.get_log("browser") == []
    assert strangers(browser) == []


def kept(study: Path, arm: str, at: int, probe: int = 0, layer: int = 1) -> np.ndarray:
    return Shot.read(shots_in(study / "runs" / arm / "0")[at]).stacks[probe, layer].weights_HTT


def choose(browser: Any, label: str, option: str) -> None:
    chosen = browser.execute_script(
        """const labels = [...document.querySelectorAll('.maps label')];
           const label = labels.find(l => l.textContent.startsWith(arguments[0]));
           const select = label.querySelector('select');
           const option = [...select.options].find(o => o.textContent === arguments[1]);
           if (!option) return false;
           select.value = option.value;
           select.dispatchEvent(new Event('change'));
           return true;""",
        label,
        option,
    )
    assert chosen, (label, option)


def told(browser: Any) -> str:
    return str(browser.find_element("css selector", ".maps-told").text)


def press(browser: Any, *keys: str) -> None:
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


LEFT, UP, RIGHT, DOWN, TAB, END = "\ue012", "\ue013", "\ue014", "\ue015", "\ue004", "\ue010"


def test_every_head_is_there_and_one_is_large(opened: Any) -> None:
    labels = [
        b.get_attribute("aria-label") for b in opened.find_elements("css selector", ".maps [role=radio]")
    ]
    assert len(labels) == 2 * 3
    assert all(re.match(r"layer [12], head [123]: entropy \d", label) for label in labels)
    titles = opened.execute_script(
        "return [...document.querySelectorAll('.maps-drawing svg text:first-child')].map(t => t.textContent)"
    )
    assert titles == ["before: step 0", "after: step 400"]
    axis = opened.execute_script(
        "return [...document.querySelector('.maps-pane').querySelectorAll('text')].map(t => t.textContent)"
    )
    assert axis.count("fox") == 2  # down and across
    assert axis.count("<script>alert…") == 2


def test_the_keyboard_goes_from_head_to_head_and_from_weight_to_weight(opened: Any, study: Path) -> None:
    chosen = "return document.activeElement.getAttribute('data-at')"
    opened.execute_script("document.querySelector('.maps [role=radio][tabindex=\"0\"]').focus()")
    assert opened.execute_script(chosen) == "0/1/0"
    press(opened, RIGHT, RIGHT)
    assert opened.execute_script(chosen) == "0/1/2"
    press(opened, RIGHT)  # round
    press(opened, UP)
    assert opened.execute_script(chosen) == "0/0/0"
    press(opened, DOWN, LEFT)
    assert opened.execute_script(chosen) == "0/1/2"
    press(opened, TAB)  # one stop for all heads
    assert "maps-drawing" in opened.execute_script("return document.activeElement.className")
    press(opened, DOWN, DOWN, RIGHT)
    before, after = (kept(study, "dot", at)[2, 3, 1] for at in (0, 1))
    assert told(opened).startswith("“fox” (4) from “the” (2): ")
    figures = [float(figure) for figure in re.findall(r"([\d.]+) at step", told(opened))]
    assert figures == pytest.approx([before, after], abs=0.006)
    press(opened, END)
    assert "from “considerable-disappointment” (9): 0 at step 0, 0 at step 400" in told(opened)  # the future


def test_pointing_tells_the_weight(opened: Any, study: Path) -> None:
    opened.execute_script(
        """const holder = document.querySelectorAll('.maps-drawing')[1];
           const cell = document.querySelector('.maps').viewer.maps[1];
           const box = holder.firstChild.getBoundingClientRect();
           const at = (start, place) => start + (place + 0.5) * cell.cell * box.width / cell.width;
           const [x, y] = [at(box.left + cell.left, 2), at(box.top + cell.top, 6)];
           const where = { clientX: x, clientY: y, bubbles: true };
           holder.dispatchEvent(new PointerEvent('pointermove', where));"""
    )
    wanted = kept(study, "dot", 1)[0, 6, 2]
    assert told(opened).startswith("“was” (7) from “<script>alert(1)</script>” (3): ")
    assert float(re.findall(r"([\d.]+) at step 400", told(opened))[0]) == pytest.approx(wanted, abs=0.006)


def test_difference_arms_side_by_side_and_an_arm_without_maps(opened: Any, study: Path) -> None:
    choose(opened, "Show", "after less before")
    assert len(opened.find_elements("css selector", ".maps-drawing")) == 1
    change = kept(study, "dot", 1)[0, 1, 0] - kept(study, "dot", 0)[0, 1, 0]
    figure = re.findall(r": ([+−]?[\d.]+) since step 0", told(opened))[0].replace("−", "-")
    assert float(figure) == pytest.approx(change, abs=0.006)
    choose(opened, "Show", "after")
    choose(opened, "beside", "additive, seed 0")
    assert len(opened.find_elements("css selector", ".maps-drawing")) == 2
    assert len(opened.find_elements("css selector", ".maps [role=radiogroup]")) == 2
    assert "dot, at step 400" in told(opened)
    assert "additive, at step 400" in told(opened)
    choose(opened, "beside", "bilinear, seed 0")
    assert "one vector stands for <all> tokens" in opened.find_element("css selector", ".maps-panes").text
    choose(opened, "Text", "12 random tokens, twice")
    assert told(opened).startswith("“w0” (2) from “<START>” (1)")


def test_going_through_the_steps(browser: Any, tmp_path: Path) -> None:
    """With the slider, by keyboard; a colour means the same weight at every step."""
    made = replace(NORMAL, arms=NORMAL.arms[:2], seeds=1)
    path = add_maps(made.write(tmp_path / "steps"), steps=(0, 100, 250, 400))
    show(browser, report.write(path))
    slider = browser.find_element("css selector", ".maps-step input")
    assert not slider.is_displayed()
    choose(browser, "Show", "step by step")
    assert slider.is_displayed()
    top = "return [...document.querySelectorAll('.maps-drawing svg text')].at(-1).textContent"
    titles = (
        "return [...document.querySelectorAll('.maps-drawing svg text:first-child')].map(t => t.textContent)"
    )
    scales = set()
    for place, step in enumerate((0, 100, 250, 400)):
        assert slider.get_attribute("aria-valuetext") == f"step {step}"
        (title,) = browser.execute_script(titles)
        assert title.endswith(f"step {step}")
        wanted = kept(path, "dot", place)[0, 1, 0]
        assert float(re.findall(r"([\d.]+) at step", told(browser))[0]) == pytest.approx(wanted, abs=0.006)
        assert (
            f"entropy {entropy(path, place):.2f}" in browser.find_element("css selector", ".maps-facts").text
        )
        scales.add(browser.execute_script(top))
        slider.send_keys(RIGHT)
    assert len(scales) == 1
    choose(browser, "beside", "additive, seed 0")
    assert len(browser.execute_script(titles)) == 2
    choose(browser, "Show", "before and after")
    assert not slider.is_displayed()
    assert browser.get_log("browser") == []


def entropy(study: Path, at: int) -> float:
    """Of the first head of the second layer, as the run keeps it."""
    shot = Shot.read(shots_in(study / "runs" / "dot" / "0")[at])
    return float(shot.figures["heads"][1]["entropy"][0])


def test_the_numbers_are_a_table_too(opened: Any, study: Path) -> None:
    opened.execute_script("document.querySelector('.maps details').open = true")
    time.sleep(0.2)
    rows = opened.execute_script(
        """return [...document.querySelectorAll('.maps details tbody tr')]
             .map(row => [...row.children].map(cell => cell.textContent))"""
    )
    assert [row[0] for row in rows] == list(PROBES[0])
    row = kept(study, "dot", 1)[0, 5]
    best = int(row.argmax())
    assert rows[5][2].startswith(f"{PROBES[0][best]} {row[best]:.2f}")


def test_what_is_shown_is_saved(opened: Any, study: Path, tmp_path: Path) -> None:
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    for kind in ("svg", "png", "pdf", "csv"):
        opened.execute_script(f"document.querySelector('.maps [data-save={kind}]').click()")
        time.sleep(0.3)
    name = "score-attention-layer-2-head-1"
    for _ in range(60):
        if {path.name for path in tmp_path.iterdir()} == {
            f"{name}.{k}" for k in ("svg", "png", "pdf", "csv")
        }:
            break
        time.sleep(0.1)
    svg = (tmp_path / f"{name}.svg").read_text("utf-8")
    assert svg.count("&lt;script&gt;alert…") == 4  # two maps with two axes
    assert "<script" not in svg
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO((tmp_path / f"{name}.csv").read_text("utf-8"))))
    assert len(rows) == len(PROBES[0]) ** 2
    for row in rows:
        wanted = kept(study, "dot", 1)[0, int(row["query"]), int(row["key"])]
        assert float(row["after: step 400"]) == pytest.approx(wanted, abs=1e-3)
    _is_a_page_with_a_picture((tmp_path / f"{name}.pdf").read_bytes(), svg)


def _is_a_page_with_a_picture(pdf: bytes, svg: str) -> None:
    """Every object stands where the table says, and the picture unpacks to as many pixels as it says."""
    table = int(re.findall(rb"startxref\n(\d+)\n%%EOF\n$", pdf)[0])
    places = [int(place) for place in re.findall(rb"(\d{10}) 00000 n ", pdf[table:])]
    assert [pdf[place : place + 7] for place in places] == [b"%d 0 obj" % n for n in range(1, 6)]
    width, height = (
        int(pdf[places[4] :].split(what)[1].split(b"/")[0]) for what in (b"/Width ", b"/Height ")
    )
    length = int(pdf[places[4] :].split(b"/Length ")[1].split(b">>")[0])
    start = pdf.index(b">>stream\n", places[4]) + len(b">>stream\n")
    pixels = zlib.decompress(pdf[start : start + length])
    assert len(pixels) == 3 * width * height
    assert len(set(pixels[::3])) > 20  # something is on it
    shown = re.findall(r'viewBox="0 0 (\d+) (\d+)"', svg)[0]
    assert (width, height) == (3 * int(shown[0]), 3 * int(shown[1]))


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_sticks_out_on_any_screen(opened: Any, page: Path, width: int) -> None:
    show(opened, page, width)
    choose(opened, "beside", "additive, seed 0")
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_dark_screen_has_dark_maps_and_paper_light_ones(opened: Any, page: Path) -> None:
    inside = "return document.querySelector('.maps-drawing svg rect').getAttribute('fill')"
    assert opened.execute_script(inside) == "#ffffff"
    show(opened, page, scheme="dark")
    assert opened.execute_script(inside) == "#16181d"
    opened.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert opened.execute_script(inside) == "#ffffff"
    opened.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert opened.execute_script(inside) == "#16181d"


def test_more_is_darker_for_every_eye(opened: Any) -> None:
    """Lightness falls all the way along both scales, so a colour-blind reader loses nothing."""
    opened.execute_script("document.querySelector('.maps').viewer.state.when = 'difference'")
    opened.execute_script("document.querySelector('.maps').viewer.refresh()")
    fills = opened.execute_script(
        """return [...document.querySelectorAll('.maps-drawing svg rect[height="9"]')]
             .map(r => r.getAttribute('fill')).filter(f => f.startsWith('rgb'));"""
    )
    light = [
        np.dot([0.2126, 0.7152, 0.0722], json.loads(fill.replace("rgb(", "[").replace(")", "]")))
        for fill in fills
    ]
    middle = len(light) // 2
    assert len(light) == 32
    assert (np.diff(light[:middle]) > 0).all()
    assert (np.diff(light[middle:]) < 0).all()


def test_a_page_of_its_own_and_a_frame_in_a_notebook(browser: Any, study: Path, tmp_path: Path) -> None:
    viewer = maps_of(study)
    (tmp_path / "own.html").write_text(viewer.page(), "utf-8")
    (tmp_path / "notebook.html").write_text(f"<!doctype html><body>{viewer._repr_html_()}", "utf-8")
    show(browser, tmp_path / "own.html")
    assert len(browser.find_elements("css selector", ".maps [role=radio]")) == 6
    show(browser, tmp_path / "notebook.html")
    browser.switch_to.frame(0)
    assert len(browser.find_elements("css selector", ".maps [role=radio]")) == 6
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []
