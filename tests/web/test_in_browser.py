"""The page in a real browser: every control used, nothing said to the console, nothing asked of a network."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..browser import axe, needs_browser, show, strangers
from .page import Page
from .test_running import TINY

pytestmark = needs_browser

ROOMS = [
    "/",
    "/studies/score",
    "/studies/half%20done",
    "/new",
    "/compare?run=score/dot/0&run=score/additive/0",
]
ROOMS += ["/decode", "/audit", "/craft"]


@pytest.fixture
def at(browser: Any, page: Page) -> Iterator[Callable[..., Any]]:
    def shown(path: str, **how: Any) -> Any:
        show(browser, page.address + path, **how)
        return browser

    yield shown
    assert [entry for entry in browser.get_log("browser") if "422" not in entry["message"]] == []
    assert strangers(browser, page.address) == []


def until(what: Callable[[], object], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.2)


def text_of(browser: Any, selector: str) -> str:
    return str(
        browser.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)
    )


def press(browser: Any, selector: str) -> None:
    """Click, wherever it is on the page: what is renewed every few seconds may just have been exchanged."""
    ask = "const found = document.querySelector(arguments[0]); found?.click(); return Boolean(found)"
    until(lambda: browser.execute_script(ask, selector))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ROOMS)
def test_every_room_is_quiet_narrow_and_readable(at: Any, path: str, scheme: str) -> None:
    for width in (360, 1280):
        browser = at(path, width=width, scheme=scheme)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert axe(browser) == []


def test_the_rooms_are_reached_from_each_other(at: Any) -> None:
    browser = at("/")
    names = [link.text for link in browser.find_elements("css selector", ".rooms a")]
    assert names == ["attnlab", "Studies", "New study", "Compare", "Decode", "Audit", "By hand"]
    for name in names:
        browser.find_element("link text", name).click()
        here = browser.find_elements("css selector", ".rooms [aria-current]")
        assert [link.text for link in here] == ["Studies" if name == "attnlab" else name]


def test_a_declaration_is_checked_as_it_is_typed(at: Any) -> None:
    browser = at("/new")
    until(lambda: "it goes into" in text_of(browser, "#checked"))
    field = browser.find_element("id", "declaration")
    field.send_keys('\n[[arms]]\nname = "third"\nscore = "aditive"\n')
    until(lambda: "did you mean 'additive'" in text_of(browser, "#checked"))
    assert "arms[2] (third)" in text_of(browser, "#checked")
    press(browser, "button.main")  # nothing starts that does not hold
    until(lambda: "problem" in text_of(browser, "#checked"))
    assert browser.current_url.endswith("/new")
    browser.find_element("link text", "masking").click()
    until(lambda: "it goes into" in text_of(browser, "#checked") or "already" in text_of(browser, "#checked"))
    assert "after the softmax" in browser.find_element("id", "declaration").get_attribute("value")


def test_curves_are_drawn_and_an_arm_is_hidden(at: Any) -> None:
    browser = at("/studies/score")
    until(lambda: len(browser.find_elements("css selector", "[data-legend] button")) == 4)
    assert browser.find_elements("css selector", ".uplot canvas")
    press(browser, "[data-legend] li:nth-child(2) button")
    pressed = [
        b.get_attribute("aria-pressed") for b in browser.find_elements("css selector", "[data-legend] button")
    ]
    assert pressed.count("false") == 1
    select = browser.find_element("css selector", "[data-quantity]")
    select.find_element("css selector", "option[value=dev_loss]").click()
    assert browser.find_elements("css selector", ".uplot canvas")


def test_runs_are_chosen_and_compared(at: Any) -> None:
    browser = at("/compare")
    for place in ("score/dot/0", "score/additive/0"):
        box = browser.find_element("css selector", f'input[value="{place}"]')
        browser.execute_script("arguments[0].closest('details').open = true; arguments[0].click()", box)
    browser.find_element("css selector", "form button").click()
    until(lambda: "test perplexity" in text_of(browser, "main"))
    assert "score.part" in text_of(browser, "main")
    until(lambda: browser.find_elements("css selector", ".uplot canvas"))


def test_a_report_is_read_in_a_sandbox_and_two_are_joined(at: Any) -> None:
    browser = at("/studies/score")
    browser.find_element("id", "to-report").click()
    assert "Does additive attention" in text_of(browser, "h1")
    assert browser.execute_script("return window.origin") == "null"  # it is nobody to the page
    browser.back()
    browser = at("/")
    for name in ("score", "masking"):
        press(browser, f"#join-{name}")
    press(browser, ".actions button")
    assert text_of(browser, "h1") == "2 studies"


def test_an_audit_says_what_it_saw_and_pasted_code_is_not_run(at: Any) -> None:
    browser = at("/audit")
    target = browser.find_element("name", "target")
    target.clear()
    target.send_keys("sparsmax")
    browser.find_element("xpath", "//button[text()='Audit']").click()
    until(lambda: "did you mean" in text_of(browser, "#audited"))
    target.clear()
    target.send_keys("sparsemax")
    browser.find_element("xpath", "//button[text()='Audit']").click()
    until(lambda: "Nothing was found" in text_of(browser, "#audited"))
    assert not browser.find_elements("id", "code")
    assert "--allow-code" in text_of(browser, "main")


def test_the_course_is_on_the_page(at: Any) -> None:
    browser = at("/craft")
    for axis, number in zip("xy", (-1.5, 2.25), strict=True):
        field = browser.find_element("css selector", f'input[aria-label="q {axis}"]')
        field.clear()
        field.send_keys(str(number))
    assert "Solved." in text_of(browser, ".craft-state")


# ---- a study from beginning to end -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    root = tmp_path_factory.mktemp("trained").resolve()
    page = Page(root)
    yield page
    assert page.close() == ""


@pytest.mark.timeout(900)  # two beginnings of a study, where others may be using the processor
def test_a_study_is_started_stopped_continued_extended_and_written_with(browser: Any, trained: Page) -> None:
    show(browser, trained.address + "/new")
    browser.execute_script(
        "const field = document.getElementById('declaration'); field.value = arguments[0];"
        "field.dispatchEvent(new Event('input', {bubbles: true}))",
        TINY.format(steps=12),
    )
    until(lambda: "it goes into" in text_of(browser, "#checked"))
    press(browser, "button.main")
    until(lambda: browser.current_url.endswith("/studies/tiny"))
    until(lambda: "0 of 1 runs done" in text_of(browser, "#live"))
    press(browser, "#stop button")
    until(lambda: not browser.find_elements("css selector", "#stop"))  # it has kept its checkpoint
    browser.refresh()
    browser.execute_script("document.querySelector('[name=seeds]').value = 2")
    press(browser, "#complaint + form button")
    until(lambda: "2 of 2 runs done" in text_of(browser, "#live"))
    until(lambda: browser.find_elements("id", "to-report") and not browser.find_elements("id", "stop"))
    browser.get(trained.address + "/decode?run=tiny/dot/1")
    assert "seed 1" in browser.find_element("css selector", "option:checked").text
    field = browser.find_element("id", "strategies")
    field.clear()
    field.send_keys("greedy\ntop-k=1\nplain\ntop-k=5")
    browser.find_element("id", "prompt").send_keys("the -people")
    browser.find_element("xpath", "//button[text()='Write']").click()
    until(lambda: browser.find_elements("css selector", "#written section"))
    columns = {
        section.find_element("css selector", "h2").text: [
            item.text for item in section.find_elements("css selector", "li")
        ]
        for section in browser.find_elements("css selector", "#written section")
    }
    assert [*columns] == ["greedy", "top-k=1", "plain", "top-k=5"]
    greedy = columns["greedy"]
    assert len(greedy) == 1
    assert columns["top-k=1"] == greedy * 3  # the best one only, drawn three times
    field.clear()
    field.send_keys("gredy")
    browser.find_element("xpath", "//button[text()='Write']").click()
    until(lambda: "did you mean 'greedy'" in text_of(browser, "#written"))
    assert strangers(browser, trained.address) == []


def test_what_may_not_be_asked_of_a_model(trained: Page, page: Page) -> None:
    """After the test above, which leaves a model."""
    fields = {"run": "tiny/dot/0", "prompt": "a", "count": "1", "longest": "5", "seed": "0"}
    refused = trained.send("/decode", **fields, strategies="evil.py:Strategy")
    assert refused.status == 422
    assert "--allow-code" in refused.text
    for name, wrong in (
        ("run", "tiny/dot/9"),
        ("run", "../tiny/dot/0"),
        ("run", ""),
        ("count", "0"),
        ("longest", "9999"),
        ("seed", "x"),
        ("strategies", ""),
        ("prompt", "a" * 5000),
    ):
        answer = trained.send("/decode", **{"strategies": "greedy", **fields, name: wrong})
        assert answer.status in (404, 422), (name, wrong)
    assert "No model here yet" in page.ask("/decode").text  # made-up studies left none


def test_a_broken_study_is_said_and_the_page_goes_on(browser: Any, tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "torn").mkdir()
    (root / "torn" / "study.json").write_text(json.dumps({"study": {"arms": 3}}))
    page = Page(root)
    try:
        show(browser, page.address)
        assert "cannot be read" in text_of(browser, ".shelf")
        browser.find_element("link text", "New study").click()
        assert browser.find_elements("id", "declaration")
    finally:
        assert page.close() == ""
