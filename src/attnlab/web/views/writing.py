"""What a model that a study trained writes: several strategies of decoding, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse

from attnlab.errors import RequestError
from attnlab.web.asking import ask
from attnlab.web.progress import progress
from attnlab.web.respond import field, form_of, page, settings_of
from attnlab.web.shelf import Shelf, read_json

STRATEGIES = "greedy\nplain\ntemperature=0.7\ntop-k=20\ntop-p=0.7\nbeam=4"
_MOST = {"strategies": 12, "count": 20, "longest": 400, "prompt": 4000}
_PATIENCE = 300.0  # seconds: twenty continuations by a search of some width take their time
_Run = tuple[str, str]  # its place, as the directory lists it, and what it is called

_EMPTY = {"run": "", "prompt": "", "strategies": STRATEGIES, "count": "3", "longest": "40", "seed": "0"}


def form(request: Request) -> HTMLResponse:
    """Choose a model, a prompt and strategies."""
    filled = {**_EMPTY, "run": request.query_params.get("run", "")}
    return page(request, "decode.html", runs=_runs(request.app.state.shelf), filled=filled, written=())


async def write(request: Request) -> HTMLResponse:
    """Let the model go on from the prompt by each strategy."""
    sent = await form_of(request)
    filled = {name: field(sent, name) for name in _EMPTY}
    written = await run_in_threadpool(_written, request, filled)
    if "hx-request" in request.headers:
        return page(request, "decoded.html", written=written)
    runs = await run_in_threadpool(_runs, request.app.state.shelf)
    return page(request, "decode.html", runs=runs, filled=filled, written=written)


def _written(request: Request, filled: Mapping[str, str]) -> list[Mapping[str, Any]]:
    shelf: Shelf = request.app.state.shelf
    if not filled["run"]:
        raise RequestError("no model is chosen: run a study of language models first")
    folder = shelf.run(filled["run"])
    strategies = [line.strip() for line in filled["strategies"].splitlines() if line.strip()]
    if not 1 <= len(strategies) <= _MOST["strategies"]:
        raise RequestError(
            f"{len(strategies)} strategies: from 1 to {_MOST['strategies']} are put side by side"
        )
    code = [one for one in strategies if ":" in one]
    if code and not settings_of(request).allow_code:
        raise RequestError(f"{code[0]!r} is code, which this page runs only if started with --allow-code")
    if len(filled["prompt"]) > _MOST["prompt"] or "\0" in filled["prompt"]:
        raise RequestError(f"the prompt takes up to {_MOST['prompt']} characters of text")
    return ask(
        [
            "decode",
            str(folder),
            f"--prompt={filled['prompt']}",
            *(f"--strategy={one}" for one in strategies),
            f"--n={_number(filled, 'count', 1, _MOST['count'])}",
            f"--max-new={_number(filled, 'longest', 1, _MOST['longest'])}",
            f"--seed={_number(filled, 'seed', 0, 10**6)}",
            "--json",
        ],
        shelf.root,
        _PATIENCE,
    )


def _number(filled: Mapping[str, str], name: str, low: int, high: int) -> int:
    text = filled[name].strip()
    if not (text.isascii() and text.isdecimal() and low <= int(text) <= high):
        raise RequestError(f"{name}: a number from {low} to {high}, not {text!r}")
    return int(text)


def _runs(shelf: Shelf) -> list[_Run]:
    """Every run that left a model which writes text, what was written last first."""
    found = []
    for card in shelf.cards():
        folder = shelf.root / card.name
        if card.problem or not _writes(folder):
            continue
        for run in progress(folder, card.arms, card.seeds):
            home = folder / "runs" / run.place
            if run.place and (home / "checkpoint.safetensors").is_file():
                found.append((f"{card.name}/{run.place}", f"{card.name}: {run.arm}, seed {run.seed}"))
    return found


def _writes(folder: Path) -> bool:
    """Whether a study's models continue texts."""
    try:
        study = read_json(folder / "study.json").get("study", {})
        return str(study.get("kind")) == "language-model"
    except (RequestError, OSError, ValueError, AttributeError):
        return False
