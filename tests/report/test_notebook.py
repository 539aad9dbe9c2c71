"""What a study found, as a notebook shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import attnlab

from ..browser import needs_browser, show, strangers
from .synthetic_study import INVALID


@pytest.fixture
def results(tmp_path: Path) -> attnlab.Results:
    path = INVALID.write(tmp_path / "study")
    return attnlab.Results(path, json.loads((path / "results.json").read_text()))


@needs_browser
def test_a_result_draws_itself(browser: Any, results: attnlab.Results, tmp_path: Path) -> None:
    drawn = results._repr_html_()
    assert drawn is not None
    (tmp_path / "cell.html").write_text(f"<!doctype html><title>A cell</title>{drawn}", encoding="utf-8")
    show(browser, tmp_path / "cell.html")
    browser.switch_to.frame(0)
    assert browser.find_element("css selector", "h1").text == INVALID.question
    assert "cannot be ranked" in browser.find_element("css selector", ".verdict").text
    assert len(browser.find_elements("css selector", "figure")) == 1
    assert len(browser.find_elements("css selector", ".tabled > .scroll > table")) >= 1
    assert not browser.find_elements("css selector", "[id$=h-again]")  # the rest is in the report
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []
    assert strangers(browser, "about:srcdoc") == []


def test_without_reports_it_is_not_drawn(results: attnlab.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attnlab.Results, "drawing", None)
    assert results._repr_html_() is None
