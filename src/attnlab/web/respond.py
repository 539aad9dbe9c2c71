"""Answers: templates, forms, and mistakes as sentences."""

from __future__ import annotations

import time
from functools import cache
from typing import Any
from urllib.parse import parse_qs

import jinja2
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from attnlab.errors import AttnlabError, RequestError
from attnlab.report.marks import MARKS
from attnlab.web.settings import Settings
from attnlab.web.shelf import NotHere

_MOST_FIELDS = 2000


def settings_of(request: Request) -> Settings:
    found: Settings = request.app.state.settings
    return found


def page(request: Request, template: str, status: int = 200, **shown: Any) -> HTMLResponse:
    """A template filled in: a whole page, or a piece of one that htmx asked for."""
    context = {"here": request.url.path, "settings": settings_of(request), **shown}
    return HTMLResponse(_environment().get_template(template).render(context), status)


async def form_of(request: Request) -> dict[str, list[str]]:
    """The fields of a form that was sent."""
    body = (await request.body()).decode("utf-8", "replace")
    try:
        return parse_qs(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise RequestError(f"a form of more than {_MOST_FIELDS} fields") from None


def field(form: dict[str, list[str]], name: str) -> str:
    """One field's value; line ends as they are in files."""
    return form.get(name, [""])[0].replace("\r\n", "\n")


def redirect(request: Request, place: str) -> Response:
    """On to another page, whoever asked."""
    if "hx-request" in request.headers:
        return Response(headers={"HX-Redirect": place})
    return Response(status_code=303, headers={"location": place})


async def on_error(request: Request, error: Exception) -> Response:
    """A mistake of the user's, or a place that does not exist, as a sentence."""
    if isinstance(error, HTTPException):
        status, text = error.status_code, f"{request.url.path}: there is no such page"
        if status != 404:
            text = str(error.detail)
    else:
        status = 404 if isinstance(error, NotHere) else 422 if isinstance(error, AttnlabError) else 500
        text = str(error) if status != 500 else "This is a defect of attnlab; the terminal has its traceback."
    template = "complaint.html" if "hx-request" in request.headers else "error.html"
    return page(request, template, status, text=text)


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("attnlab.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["ago"] = _ago
    made.filters["figure"] = _figure
    made.globals["marks"] = MARKS
    return made


def _ago(moment: float) -> str:
    """How long ago, in words."""
    seconds = max(0.0, time.time() - moment)
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {word}{'s' if count > 1 else ''} ago"
    return "just now"


def _figure(value: float) -> str:
    """A measured number with as many digits as are read."""
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
