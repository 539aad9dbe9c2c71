"""The list of studies, and each of them while it runs and after."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from attnlab.errors import RequestError
from attnlab.web.progress import FRESH, Progress, curves, progress, shown
from attnlab.web.respond import field, form_of, page, redirect
from attnlab.web.running import Process, Runner
from attnlab.web.shelf import Card, Shelf, read_json

_MOST_SEEDS = 1000


def all_of_them(request: Request) -> HTMLResponse:
    return page(request, "studies.html", **_listed(request))


def listed(request: Request) -> HTMLResponse:
    """The list alone, as it is asked for again and again."""
    return page(request, "list.html", **_listed(request))


def _listed(request: Request) -> dict[str, Any]:
    shelf, runner = _parts(request)
    cards = shelf.cards()
    return {"cards": [(card, _state(card, runner.process(card.name))) for card in cards]}


def one(request: Request) -> HTMLResponse:
    """A study."""
    return page(request, "study.html", **_shown(request))


def live(request: Request) -> HTMLResponse:
    """What of it changes while it runs."""
    return page(request, "live.html", **_shown(request))


def runs(request: Request) -> HTMLResponse:
    """How far each of its runs is."""
    return page(request, "runs.html", **_shown(request))


def curves_of(request: Request) -> JSONResponse:
    shelf, _ = _parts(request)
    name = request.path_params["name"]
    folder, card = shelf.folder(name), shelf.card(name)
    begun = [run for run in shown(progress(folder, card.arms, card.seeds)) if run.place]
    drawn = curves([(f"{r.arm}, seed {r.seed}", r.arm, folder / "runs" / r.place) for r in begun])
    invalid = [arm for arm, word in card.verdicts if word == "invalid"]
    return JSONResponse({**drawn, "arms": list(card.arms), "invalid": invalid})


async def stop(request: Request) -> Response:
    shelf, runner = _parts(request)
    name = request.path_params["name"]
    if not runner.begun(name):
        await run_in_threadpool(shelf.folder, name)
    runner.stop(name)
    return redirect(request, f"/studies/{name}")


async def go_on(request: Request) -> Response:
    """Do what is missing of a study, with more seeds where a number of them is given."""
    shelf, runner = _parts(request)
    name = request.path_params["name"]
    seeds = field(await form_of(request), "seeds").strip()
    if name not in shelf.names() and runner.begun(name):  # it ended before anything of it was written
        runner.start(name, runner.begun(name))
        return redirect(request, f"/studies/{name}")
    folder, card = await run_in_threadpool(_folder_and_card, shelf, name)
    if seeds and not (seeds.isascii() and seeds.isdecimal() and card.seeds <= int(seeds) <= _MOST_SEEDS):
        raise RequestError(f"seeds: a number from {card.seeds} to {_MOST_SEEDS}, not {seeds!r}")
    runner.start(name, ["run", str(folder), *(["--seeds", seeds] if seeds else [])])
    return redirect(request, f"/studies/{name}")


def _folder_and_card(shelf: Shelf, name: str) -> tuple[Path, Card]:
    return shelf.folder(name), shelf.card(name)


def _shown(request: Request) -> dict[str, Any]:
    shelf, runner = _parts(request)
    name = request.path_params["name"]
    if name not in shelf.names() and runner.begun(name):  # started, and nothing written yet
        empty = Card(name, "", (), 0, 0, (), 0.0)
        return _view(empty, [], runner.process(name), runner.said(name), {}, has_report=False)
    folder, card = shelf.folder(name), shelf.card(name)
    all_runs = progress(folder, card.arms, card.seeds)
    results = read_json(folder / "results.json") if (folder / "results.json").is_file() else {}
    return _view(card, all_runs, runner.process(name), runner.said(name), results, has_report=card.done > 0)


def _view(
    card: Card,
    runs: list[Progress],
    process: Process | None,
    said: str,
    results: Any,
    *,
    has_report: bool,
) -> dict[str, Any]:
    return {
        "card": card,
        "state": _state(card, process, runs),
        "runs": shown(runs),
        "process": process,
        "said": said,
        "sentences": [(v["arm"], v["verdict"], v.get("sentence", "")) for v in results.get("verdicts", ())],
        "quantities": list(dict.fromkeys(key for run in runs for key in run.latest or {})),
        "has_report": has_report,
    }


def _state(card: Card, process: Process | None, runs: list[Progress] | None = None) -> str:
    """The one word for how a study is."""
    if card.problem:
        return "error"
    if process is not None:
        return "running"
    if card.total and card.done >= card.total:
        return "done"
    if runs and any(run.status == "running" for run in runs):
        return "running"
    if runs is None and time.time() - card.changed < FRESH:  # the list, which looks at no run
        return "running"
    return "half done" if card.done or (runs and any(run.step for run in runs)) else "waiting"


def _parts(request: Request) -> tuple[Shelf, Runner]:
    return request.app.state.shelf, request.app.state.runner
