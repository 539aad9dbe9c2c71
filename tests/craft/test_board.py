"""The board in a real browser: its sums are Python's; its course by pointer, by keyboard and by typing."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnlab.attention.weigh import Weigh
from attnlab.craft import FOUR, Board, Scene, course
from attnlab.craft.board import SCRIPTS
from attnlab.craft.board.board import read, scenes
from attnlab.errors import RequestError

from ..browser import axe, needs_browser, show, strangers

LEFT, UP, RIGHT, DOWN, PAGE_UP, TAB = "\ue012", "\ue013", "\ue014", "\ue015", "\ue00e", "\ue004"
SAME_FORWARD = {"straight-through-argmax"}  # argmax, but for the gradient


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("board") / "board.html"
    path.write_text(Board().page(), encoding="utf-8")
    return path


@pytest.fixture
def board(browser: Any, page: Path) -> Iterator[Any]:
    show(browser, page)
    yield browser
    assert browser.get_log("browser") == []
    assert strangers(browser) == []


def state(browser: Any) -> dict[str, Any]:
    found: dict[str, Any] = browser.execute_script(
        "return document.querySelector('[data-craft]').board.state()"
    )
    return found


def said(browser: Any) -> str:
    return str(browser.find_element("css selector", ".craft-state").text)


def press(browser: Any, text: str) -> None:
    """The button with this text, as a click does it."""
    for button in browser.find_elements("css selector", ".craft button"):
        if button.text.removeprefix("✓ ") == text:
            button.click()
            return
    raise AssertionError(f"no button says {text!r}")


def put(browser: Any, what: str, numbers: Any) -> None:
    """Type coordinates into their fields."""
    for axis, number in zip("xyz", numbers, strict=False):
        field = browser.find_element("css selector", f'input[aria-label="{what} {axis}"]')
        field.clear()
        field.send_keys(f"{number:.5f}")


def weighed(name: str, scores_S: torch.Tensor) -> torch.Tensor:
    """What the part makes of one row of scores."""
    visible = torch.ones(1, len(scores_S), dtype=torch.bool)
    weights: torch.Tensor = Weigh.resolve(name)(scores_S[None, None, None], visible)
    return weights[0, 0, 0]


# ---- the same sums -----------------------------------------------------------------------------------------


@needs_browser
def test_every_weighing_gives_the_weights_of_the_part_of_its_name(board: Any) -> None:
    known = board.execute_script("return Object.keys(attnlabAttend.WEIGHINGS)")
    assert set(known) == set(Weigh.members) - SAME_FORWARD
    rng = np.random.default_rng(0)
    cases = [(rng.normal(size=(n, 3)) * s, rng.normal(size=(n, 3))) for n in (1, 2, 5) for s in (0.3, 1, 8)]
    cases.append((np.ones((3, 3)), np.eye(3)))  # all scores alike
    for (keys, values), name, heat in itertools.product(cases, known, (0.25, 1.0, 4.0)):
        query = rng.normal(size=3)
        got = board.execute_script(
            "const [keys, values, q, name, heat] = arguments;"
            "return attnlabAttend.attend({keys, values, scale: 0.7}, q, name, heat)",
            keys.tolist(), values.tolist(), query.tolist(), name, heat,
        )  # fmt: skip
        scores = torch.tensor(0.7 * keys @ query / heat, dtype=torch.float64)
        weights = Weigh.resolve(name)(scores[None, None, None], torch.ones(1, len(keys), dtype=torch.bool))[
            0, 0, 0
        ]
        assert got["scores"] == pytest.approx(scores.tolist(), abs=1e-12)
        assert got["weights"] == pytest.approx(weights.tolist(), abs=1e-9), (name, heat)
        assert got["output"] == pytest.approx((weights.numpy() @ values).tolist(), abs=1e-9)


@needs_browser
def test_the_slope_is_the_gradients_length_and_argmax_has_none(board: Any) -> None:
    q, target = np.array([0.4, -0.2, 0.7]), np.array([0.1, 0.2, -0.3])
    ask = (
        "const [keys, values, q, target, name] = arguments;"
        "return attnlabAttend.slope({keys, values, scale: 1}, q, target, name, 1)"
    )
    keys, values = FOUR.K_nd, FOUR.V_nm
    for name in ("softmax", "entmax15", "sigmoid", "relu", "softmax-plus-one"):
        x = torch.tensor(q, requires_grad=True)
        scores = torch.tensor(keys) @ x
        weights = weighed(name, scores)
        (weights @ torch.tensor(values) - torch.tensor(target)).norm().backward()
        assert x.grad is not None
        got = board.execute_script(ask, *(x.tolist() for x in (keys, values, q, target)), name)
        assert got == pytest.approx(float(x.grad.norm()), rel=1e-5), name
    assert (
        board.execute_script(ask, keys.tolist(), values.tolist(), q.tolist(), target.tolist(), "argmax") == 0
    )


# ---- the course --------------------------------------------------------------------------------------------


@needs_browser
@pytest.mark.parametrize("place", range(len(course())))
def test_a_task_is_solved_exactly_where_python_says_so(board: Any, place: int) -> None:
    """Along the way from the start to the solution: the same error, and solved from the same point on."""
    task = course()[place]
    press(board, task.title)
    began = state(board)
    assert began["solved"] == [], "solved before anything was done"
    vectors = [np.asarray(answer.vector) for answer in task.answers]
    ids = ["q"] if task.free == "query" else [f"k{task.key}"]
    agreed = set()
    start = np.asarray(began["query"] if task.free == "query" else task.scene.keys[task.key or 0])
    for share in (0.0, 0.5, 0.9, 0.97, 1.0, 1.0 + 1e-6, 1.1):
        errors = []
        for which, vector in enumerate(vectors):
            at = start + share * (vector - start)
            board.execute_script(
                "const board = document.querySelector('[data-craft]').board;"
                "board.asked = arguments[0]; board.move(arguments[1], arguments[2]);",
                which, ids[0], at.tolist(),
            )  # fmt: skip
            if task.free == "key":
                if task.length:
                    at = at * task.length / np.linalg.norm(at)
                assert task.query is not None
                assert task.key is not None
                output = task.scene.with_key(task.key, at).output(task.query)
            else:
                output = task.scene.output(at)
            errors.append(float(np.linalg.norm(output - task.wishes[which].output(task.scene))))
        assert state(board)["error"] == pytest.approx(errors[-1], abs=1e-9)
        right = all(error <= task.goal * (1 + 1e-9) for error in errors)
        assert ("Solved." in said(board)) == right, (share, errors)
        agreed.add(right)
        if right:
            assert state(board)["solved"] == [task.name]
    assert agreed == {True, False}


@needs_browser
def test_the_first_task_by_keyboard_alone(board: Any) -> None:
    """Tab to the query, point it away from the others, make it longer."""
    keys = board.switch_to.active_element
    for _ in range(40):
        keys.send_keys(TAB)
        keys = board.switch_to.active_element
        if (keys.get_attribute("aria-label") or "").startswith("q, query at"):
            break
    else:
        raise AssertionError("Tab never came to the query")
    for _ in range(12):
        keys.send_keys(UP)
    for _ in range(30):
        keys.send_keys(LEFT)
    for _ in range(20):
        keys.send_keys("+")
    assert "Solved." in said(board)
    assert board.find_element("css selector", ".craft-course button.solved").text == "A query points"
    keys.send_keys("0")
    assert state(board)["query"] == [0, 0]
    assert "Solved." not in said(board)
    assert state(board)["solved"] == ["first"]  # once found, found


@needs_browser
def test_the_query_is_dragged_and_space_turns(board: Any) -> None:
    from selenium.webdriver import ActionChains

    press(board, "Average the first two")
    handle = board.find_element("css selector", ".craft-left [data-id='q']")
    before = state(board)["query"]
    ActionChains(board).move_to_element(handle).click_and_hold().move_by_offset(30, -40).release().perform()
    moved = np.subtract(state(board)["query"], before)
    assert np.linalg.norm(moved) > 0.1
    fixed = board.find_element("css selector", ".craft-left [data-id='k0']")
    placed = fixed.get_attribute("transform")
    ActionChains(board).move_to_element_with_offset(
        board.find_element("css selector", ".craft-left svg"), -150, 150
    ).click_and_hold().move_by_offset(60, 0).release().perform()
    assert fixed.get_attribute("transform") != placed  # the ground has turned
    assert np.subtract(state(board)["query"], before) == pytest.approx(moved)  # and nothing has moved
    ActionChains(board).move_to_element(fixed).click_and_hold().move_by_offset(30, 0).release().perform()
    assert state(board)["keys"][0] == list(FOUR.keys[0])  # it is the query's turn


@needs_browser
@pytest.mark.parametrize("place", [1, 5])
def test_the_keys_move_a_point_as_they_say_in_space(board: Any, place: int) -> None:
    """Across the drawing and in its depth the same way, and back to where it was."""
    task = course()[place]
    press(board, task.title)
    label = "q" if task.free == "query" else f"k{task.key}"
    handle = board.find_element("css selector", f".craft-left [data-id='{label}']")
    at = lambda: np.array(state(board)["query"] if label == "q" else state(board)["keys"][task.key])  # noqa: E731
    start = at()
    for there, back in ((LEFT, RIGHT), (UP, DOWN), (PAGE_UP, "\ue00f"), ("+", "-")):
        handle.send_keys(there)
        assert np.linalg.norm(at() - start) > 0.01
        handle.send_keys(back)
        assert at() == pytest.approx(start, abs=1e-9)


@needs_browser
def test_hints_come_one_by_one_and_a_shown_solution_does_not_count(board: Any) -> None:
    press(board, "Let a third one in")
    hints = course()[5].hints
    for shown, press_on in enumerate(["A hint", "Another hint", "Another hint"], start=1):
        press(board, press_on)
        listed = board.find_elements("css selector", ".craft-help ul[aria-label='Hints'] li")
        assert [item.text for item in listed] == list(hints[:shown])
    press(board, "Show a solution")
    assert "worked out for you" in said(board)
    assert state(board)["solved"] == []
    assert course()[5].answers[0].why[0] in board.find_element("css selector", ".craft-help").text
    press(board, "Start over")
    put(board, "k2", course()[5].answers[0].vector)
    assert "Solved." in said(board)
    press(board, "Next: Take over")
    assert state(board)["task"] == "take-over"
    put(board, "k2", (3, 4, 0))
    assert np.linalg.norm(state(board)["keys"][2]) == pytest.approx(1)


@needs_browser
def test_switches_change_what_is_seen_and_not_what_counts(board: Any) -> None:
    put(board, "q", course()[0].answers[0].vector * 1.2)
    assert "Solved." in said(board)
    press(board, "Start over")
    weighing = board.find_element("css selector", ".craft-switches select")
    weighing.find_element("css selector", "option[value='argmax']").click()
    put(board, "q", (-1, 1.2))
    assert state(board)["weights"] == [0, 1, 0]
    assert "no gradient reaches the query" in board.find_element("css selector", ".craft-table dl").text
    assert "by which the goal is judged" in said(board)
    assert "Solved." not in said(board)
    weighing.find_element("css selector", "option[value='softmax']").click()
    soft = state(board)["weights"][1]
    slider = board.find_element("css selector", ".craft-switches input[type=range]")
    for _ in range(5):
        slider.send_keys(LEFT)
    assert state(board)["weights"][1] > soft  # colder, and nearer to the best one
    press(board, "Temperature 1")
    assert state(board)["weights"][1] == pytest.approx(soft)


# ---- one's own ---------------------------------------------------------------------------------------------


@needs_browser
def test_everything_of_ones_own_moves_and_the_command_asks_the_same(board: Any) -> None:
    from attnlab.cli import app

    press(board, "Your own")
    labels = {e.get_attribute("data-id") for e in board.find_elements("css selector", ".craft-point.movable")}
    assert labels == {"q", "k0", "k1", "k2", "v0", "v1", "v2"}
    press(board, "Add a key")
    choose = """const label = [...document.querySelectorAll('.craft-asks label')]
          .find(one => one.textContent.startsWith(arguments[0]));
        const select = label.querySelector('select');
        select.value = arguments[1];
        select.dispatchEvent(new Event('change'));"""
    board.execute_script(choose, "Dimensions", "3")
    assert np.shape(state(board)["keys"]) == np.shape(state(board)["values"]) == (4, 3)
    put(board, "v3", (0.25, -0.5, 0.75))
    put(board, "k0", (1, 0.5, -0.25))
    for i in (0, 3):
        board.find_element("css selector", f"input[aria-label='average value {i}']").click()
    now = state(board)
    want = np.mean([now["values"][0], now["values"][3]], axis=0)
    assert now["error"] == pytest.approx(float(np.linalg.norm(np.subtract(now["output"], want))))
    command = board.find_element("css selector", ".craft-help pre").text
    words = re.findall(r'"[^"]*"|\S+', command)
    assert words[:2] == ["attnlab", "craft"]
    _, bound, _ = app.parse_args([w.strip('"') for w in words[1:]], exit_on_error=False, print_error=False)
    assert bound.arguments["wish"] == ("average", "0", "3")
    kept = [[float(x) for x in row.split(",")] for row in bound.arguments["keys"].split(";")]
    assert kept == [pytest.approx(row, abs=1e-4) for row in now["keys"]]
    press(board, "Take the last away")
    assert len(state(board)["keys"]) == 3
    for scene in scenes():
        board.execute_script(choose, "Begin with", scene["name"])
        assert state(board)["keys"] == scene["keys"]


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing_and_nothing_sticks_out(browser: Any, page: Path, width: int, scheme: str) -> None:
    show(browser, page, width, scheme)
    for title in ("Select one value", "Copy every value", "Your own"):
        press(browser, title)
        assert axe(browser) == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width


# ---- in a notebook -----------------------------------------------------------------------------------------


def test_a_scene_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(RequestError, match=r"keys with 4 and values with 2 numbers"):
        Board(Scene(keys=[[1, 0, 0, 0]], values=[[1, 0]]))
    with pytest.raises(RequestError, match="9 keys"):
        Board(Scene(keys=[[1, 0]] * 9, values=[[1, 0]] * 9))


def test_no_text_ends_the_element_that_holds_it() -> None:
    assert Board().markup().count("</script>") == 1
    assert not any("</script" in read(name) for name in SCRIPTS)


@needs_browser
def test_in_a_notebook_it_shows_itself(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "cell.html"
    page.write_text(f"<!doctype html><title>A cell</title>{Board(FOUR)._repr_html_()}", encoding="utf-8")
    show(browser, page)
    browser.switch_to.frame(0)
    assert state(browser)["keys"] == [list(key) for key in FOUR.keys]
    assert [b.text for b in browser.find_elements("css selector", ".craft-course button")] == ["Your own"]
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []


@needs_browser
def test_as_a_widget_it_tells_what_is_done_on_it(browser: Any, tmp_path: Path) -> None:
    """The widget's own module, in a browser, with a model as a notebook gives it."""
    pytest.importorskip("anywidget", reason="needs anywidget")
    widget = Board().widget()
    assert widget.state == {}
    (tmp_path / "widget.html").write_text(
        "<!doctype html><title>A widget</title><div id=here></div><script>window.kept = {};</script>"
        f"<script type=module>{widget._esm.replace('export default', 'const widget =')}\n"
        f"const data = {{board: {json.dumps(dict(widget.board))}}};"
        "const model = {get: (name) => data[name], set: (name, value) => { data[name] = value; },"
        "  save_changes: () => { window.kept = data.state; }};"
        "widget.render({model, el: document.getElementById('here')});</script>",
        encoding="utf-8",
    )
    show(browser, tmp_path / "widget.html")
    put(browser, "q", (-1.5, 2.25))
    kept = browser.execute_script("return window.kept")
    assert kept["query"] == [-1.5, 2.25]
    assert kept["output"] == pytest.approx(course()[0].scene.output((-1.5, 2.25)).tolist())
    assert kept["solved"] == ["first"]
    widget.state = kept  # what a notebook does with it
    assert widget.state["query"] == [-1.5, 2.25]
