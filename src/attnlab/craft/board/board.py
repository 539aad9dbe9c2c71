"""The board: keys, values and a query to drag, what attention makes of them, and the course.

Board()                  # the course; in a notebook, shows itself
Board(scene)             # with keys and values of your own instead
Board().widget()         # in a notebook, with what is done on it read back: widget.state["query"]
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from attnlab.craft.course import TRIANGLE, WITHIN, course
from attnlab.craft.scene import BEST_KEY, FOUR, Scene
from attnlab.errors import RequestError

SCRIPTS = ("attend.js", "plane.js", "board.js")  # in this order
STYLE = "board.css"
_MOST_KEYS, _SIZES = 8, (2, 3)
_ALONE = "body { margin: 0; } main { padding: 1rem; }"

# Keys at right angles; v0 and v2 live in the plane of x and y, v1 at right angles to it.
CROSSED = Scene(keys=((1, 0, 0), (0, 1, 0), (0, 0, 1)), values=((0.8, 0.5, 0), (0, 0, 0.9), (-0.4, 0.6, 0)))


@dataclass(frozen=True)
class Board:
    """The course of attention by hand, with a few scenes to play in; or a scene alone."""

    scene: Scene | None = None

    def __post_init__(self) -> None:
        if self.scene is None:
            return
        widths = np.shape(self.scene.keys)[1], np.shape(self.scene.values)[1]
        if widths[0] not in _SIZES or widths[0] != widths[1] or self.scene.size > _MOST_KEYS:
            raise RequestError(
                f"the scene has {self.scene.size} keys with {widths[0]} and values with {widths[1]} numbers: "
                f"a board shows up to {_MOST_KEYS} keys, with two or three numbers each, and values with as "
                "many"
            )

    def plain(self) -> Mapping[str, Any]:
        """What the script makes the board of."""
        if self.scene is not None:
            return {"tasks": [], "scenes": [_plain("own", "Your scene", self.scene)]}
        return {"tasks": [task.plain() for task in course()], "scenes": scenes()}

    def markup(self) -> str:
        """An element with its data, for a page that has the scripts and the style sheet."""
        return f'<div data-craft><script type="application/json">{_as_data(self.plain())}</script></div>'

    def page(self) -> str:
        """A page that holds everything it shows."""
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
            f"<title>Attention by hand</title><style>{read(STYLE)}{_ALONE}</style></head>"
            f'<body><main class="craft"><h1>Attention by hand</h1>{self.markup()}</main>'
            f"<script>{''.join(map(read, SCRIPTS))}\nattnlabBoard.mount();</script></body></html>"
        )

    def _repr_html_(self) -> str:
        """In a notebook: a frame of its own, so that neither's styles and scripts reach the other's."""
        return (
            f'<iframe srcdoc="{html.escape(self.page())}" title="Attention by hand" '
            'style="width: 100%; height: 66rem; border: 0"></iframe>'
        )

    def widget(self) -> Any:
        """The board as a widget, for a notebook that is to read what is done on it: `state` holds the task,
        the query, keys, values, weights, output, error and the tasks solved so far."""
        return _widget_class()(board=self.plain())


def scenes() -> Sequence[Mapping[str, Any]]:
    """Keys and values to begin with, where nothing is asked."""
    return [
        _plain("triangle", "Three keys in a plane", TRIANGLE),
        _plain("four", "Four keys in space", FOUR),
        _plain("within", "A key between the others", WITHIN),
        _plain(
            "best", "The best key only (argmax)", BEST_KEY, start=[-2, 1, 1], weighing="argmax", wanted=[0]
        ),
        _plain("crossed", "Two values in one output", CROSSED, wanted=[0, 1]),
    ]


def _plain(name: str, title: str, scene: Scene, **more: Any) -> Mapping[str, Any]:
    rows = {"keys": [list(k) for k in scene.keys], "values": [list(v) for v in scene.values]}
    return {"name": name, "title": title, **rows, "scale": scene.scale, **more}


@cache
def read(name: str) -> str:
    """One of the component's files."""
    return resources.files("attnlab.craft.board").joinpath(name).read_text(encoding="utf-8")


def _as_data(plain: Mapping[str, Any]) -> str:
    """JSON of which no character can end the element it stands in."""
    data = json.dumps(plain, ensure_ascii=False)
    for character, instead in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        data = data.replace(character, instead)
    return data


_RENDER = """
export default { render({ model, el }) {
  new globalThis.attnlabBoard.Board(el, model.get("board"), (state) => {
    model.set("state", structuredClone(state));
    model.save_changes();
  });
} };
"""


@cache
def _widget_class() -> type:
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise RequestError(
            "a widget needs anywidget: pip install 'attnlab[notebook]' (the board itself shows without it)"
        ) from None

    class BoardWidget(anywidget.AnyWidget):
        _esm = "".join(map(read, SCRIPTS)) + _RENDER
        _css = read(STYLE)
        board = traitlets.Dict().tag(sync=True)
        state = traitlets.Dict().tag(sync=True)

    return BoardWidget
