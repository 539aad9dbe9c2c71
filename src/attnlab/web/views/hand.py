"""Attention by hand."""

from __future__ import annotations

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from attnlab.web.respond import page


def craft(request: Request) -> HTMLResponse:
    """The board with its course."""
    from attnlab.craft.board import SCRIPTS, Board  # with scipy, which no other page needs

    return page(request, "craft.html", board=Markup(Board().markup()), scripts=SCRIPTS)
