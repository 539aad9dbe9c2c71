"""The page in a real browser: every control used, nothing said to the console, nothing asked of a network."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from attnlab import report

from ..browser import axe, needs_browser, show, strangers
from .synthetic_study import CASES, HOSTILE, INVALID, NORMAL

pytestmark = needs_browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("studies")
    written = {name: report.write(case.write(root / name)) for name, case in CASES.items()}
    written["joined"] = report.write([root / NORMAL.name, root / INVALID.name], root / "joined.html")
    return written


@pytest.mark.parametrize("name", [*CASES, "joined"])
def test_quiet_and_alone(browser: Any, pages: dict[str, Path], name: str) -> None:
    show(browser, pages[name])
    assert browser.get_log("browser") == []
    assert strangers(browser) == []


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("name", ["score", "hostile", "projections", "joined"])
def test_nothing_sticks_out(browser: Any, pages: dict[str, Path], name: str, width: int) -> None:
    """Wide tables scroll within themselves; the page does not."""
    show(browser, pages[name], width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_one_drawing_of_each_picture_at_a_time(browser: Any, pages: dict[str, Path]) -> None:
    for width, shown in ((390, "narrow"), (1280, "wide")):
        show(browser, pages["score"], width)
        seen = browser.execute_script(
            """return [...document.querySelectorAll('.drawn')]
                 .filter(drawn => drawn.offsetParent).map(drawn => drawn.className)"""
        )
        assert seen
        assert set(seen) == {f"drawn {shown}"}


def test_every_picture_downloads_in_four_forms(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    show(browser, pages["hostile"])
    buttons = browser.find_elements("css selector", "button[data-download]")
    keys = {f.get_attribute("id")[3:] for f in browser.find_elements("css selector", "figure")}
    assert len(buttons) == 4 * len(keys)
    for button in buttons:
        browser.execute_script("arguments[0].click()", button)
        time.sleep(0.2)  # the browser asks leave for downloads that come too fast
    wanted = {f"{HOSTILE.name}-{key}.{kind}" for key in keys for kind in ("svg", "pdf", "png", "csv")}
    for _ in range(50):
        if wanted <= {path.name for path in tmp_path.iterdir()}:
            break
        time.sleep(0.1)
    assert {path.name for path in tmp_path.iterdir()} == wanted
    begins = {"svg": b"<svg ", "pdf": b"%PDF-", "png": b"\x89PNG"}
    for path in tmp_path.iterdir():
        assert path.read_bytes().startswith(begins.get(path.suffix[1:], b"")), path.name
        assert path.stat().st_size > 100
    assert "<script>alert(1)</script>" in (tmp_path / f"{HOSTILE.name}-effects.csv").read_text()
    assert browser.get_log("browser") == []


def test_every_table_and_text_is_copied(browser: Any, pages: dict[str, Path]) -> None:
    asked = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.execute_cdp_cmd("Browser.grantPermissions", asked)
    show(browser, pages["hostile"])
    # A clipboard is for the window in front, which a browser without windows has not.
    browser.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    buttons = browser.find_elements("css selector", "button[data-copy]")
    assert len(buttons) == 2 * len(browser.find_elements("css selector", "table")) + 2
    for button in buttons:
        browser.execute_script("arguments[0].click()", button)
        copied = browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
        kind, label = button.get_attribute("data-copy"), button.get_attribute("aria-label")
        begins = {"markdown": "| ", "latex": "\\begin{table}", "code": ("attnlab run", "name = ")}
        assert copied.startswith(begins[kind]), label
    assert browser.get_log("browser") == []


def test_a_mark_tells_its_numbers(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["score"])
    told = browser.execute_script(
        """const mark = [...document.querySelectorAll('.wide [role=graphics-symbol][aria-label]')]
             .find(m => m.getAttribute('aria-label').startsWith('additive: better'));
           mark.dispatchEvent(new PointerEvent('pointermove', {bubbles: true, clientX: 100, clientY: 100}));
           const tip = document.getElementById('tip');
           return [mark.getAttribute('aria-label'), tip.hidden ? '' : tip.textContent];"""
    )
    assert told[0] == told[1] != ""


def test_the_keyboard_reaches_every_control(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["masking"])
    reached = browser.execute_script(
        """const all = [...document.querySelectorAll('button, summary, a[href], [tabindex="0"]')]
             .filter(e => e.checkVisibility());
           return all.filter(e => { e.focus(); return document.activeElement !== e; }).length;"""
    )
    assert reached == 0


def test_paper_shows_what_is_folded(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["score"])
    opened = browser.execute_script(
        """window.dispatchEvent(new Event('beforeprint'));
           const left = document.querySelectorAll('details:not([open])').length;
           window.dispatchEvent(new Event('afterprint'));
           return [left, document.querySelectorAll('details:not([open])').length > 0];"""
    )
    assert opened == [0, True]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["score", "masking", "diverged", "half done", "joined"])
def test_axe_finds_nothing(browser: Any, pages: dict[str, Path], name: str, width: int, scheme: str) -> None:
    show(browser, pages[name], width, scheme)
    assert axe(browser) == []
