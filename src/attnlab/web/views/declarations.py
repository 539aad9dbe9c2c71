"""Starting a study: a built-in one, or a declaration written on the page and checked as it is typed."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from attnlab.errors import RequestError, unknown
from attnlab.web.declaring import Checked, check, keep
from attnlab.web.respond import field, form_of, page, redirect, settings_of
from attnlab.web.running import Runner
from attnlab.web.shelf import NotHere, Shelf

OWN = """name = "my-study"
question = "Does additive attention reach a lower loss than the dot product?"
seeds = 3

[training]
steps = 200

[[arms]]
name = "dot"

[[arms]]
name = "additive"
score = "additive"
"""


def new(request: Request) -> HTMLResponse:
    """A text to edit: a built-in study's, another study's of the directory, or a short one to begin with."""
    named = request.query_params.get("from", "")
    kept = request.query_params.get("like", "")
    texts = _built_in_texts()
    if named and named not in texts:
        raise NotHere(unknown("study", named, texts))
    text = texts.get(named, OWN)
    if kept:
        text = _as_declared(request.app.state.shelf, kept)
    return page(request, "new.html", built_in=texts, named=named, like=kept, text=text)


async def checked(request: Request) -> HTMLResponse:
    """All that is wrong with a text, or what it will do."""
    text = field(await form_of(request), "declaration")
    found = await run_in_threadpool(check, text, settings_of(request))
    return page(request, "checked.html", found=found)


async def start(request: Request) -> Response:
    """Start a declaration that holds."""
    text = field(await form_of(request), "declaration")
    settings = settings_of(request)
    found: Checked = await run_in_threadpool(check, text, settings)
    if found.problems:
        if "hx-request" in request.headers:
            return page(request, "checked.html", 422, found=found)
        raise RequestError("\n".join(map(str, found.problems)))
    runner: Runner = request.app.state.runner
    runner.start(found.folder, keep(text, found, settings))
    return redirect(request, f"/studies/{found.folder}")


def _as_declared(shelf: Shelf, name: str) -> str:
    from attnlab.report.toml import as_toml
    from attnlab.web.shelf import read_json

    return as_toml(read_json(shelf.folder(name) / "study.json").get("study", {}))


def _built_in_texts() -> dict[str, str]:
    from attnlab.study.declaration import built_in_studies

    return {name: path.read_text("utf-8") for name, path in built_in_studies().items()}
