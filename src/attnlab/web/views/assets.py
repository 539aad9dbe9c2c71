"""Style sheets and scripts: a fixed list, each read from the package."""

from __future__ import annotations

from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

from attnlab.errors import unknown
from attnlab.web.shelf import NotHere

_TYPES = {"css": "text/css", "js": "text/javascript"}
_HERE = "attnlab.web", "static"
_BOARD = "attnlab.craft", "board"
ASSETS = {
    "page.css": _HERE,
    "curves.js": _HERE,
    "vendor/htmx.min.js": _HERE,
    "vendor/uPlot.iife.min.js": _HERE,
    "vendor/uPlot.min.css": _HERE,
    "report.css": ("attnlab.report", "templates", "page.css"),  # the page looks as its reports do
    **{f"craft/{name}": (*_BOARD, name) for name in ("attend.js", "plane.js", "board.js", "board.css")},
    "craft.js": _HERE,
}


def static(request: Request) -> Response:
    """One of them."""
    name = request.path_params["name"]
    if name not in ASSETS:
        raise NotHere(unknown("file", name, ASSETS))
    kind = _TYPES[name.rpartition(".")[2]]
    return Response(_content(name), media_type=kind, headers={"cache-control": "no-cache"})


@cache
def _content(name: str) -> bytes:
    package, folder, *file = ASSETS[name]
    return resources.files(package).joinpath(folder, *(file or name.split("/"))).read_bytes()
