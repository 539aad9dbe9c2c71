"""Runs side by side: their curves, their figures, and where their set-ups differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse

from attnlab.errors import RequestError
from attnlab.web.progress import curves, progress, shown
from attnlab.web.respond import page
from attnlab.web.shelf import Shelf, read_json

MOST = 24  # runs at a time: more lines than that are not told apart


def compare(request: Request) -> HTMLResponse:
    """Choose runs, and see them."""
    shelf: Shelf = request.app.state.shelf
    chosen = _chosen(request)
    choices = []
    for card in shelf.cards():
        if not card.problem:
            runs = progress(shelf.folder(card.name), card.arms, card.seeds)
            choices.append((card, shown([run for run in runs if run.place])))
    folders = [shelf.run(place) for place in chosen]
    return page(
        request,
        "compare.html",
        choices=choices,
        chosen=chosen,
        titles=[_title(folder) for folder in folders],
        figures=_figures(folders),
        different=_different(folders),
        most=MOST,
    )


def curves_of(request: Request) -> JSONResponse:
    shelf: Shelf = request.app.state.shelf
    folders = [shelf.run(place) for place in _chosen(request)]
    titles = [_title(folder) for folder in folders]
    drawn = curves([(title, title, folder) for title, folder in zip(titles, folders, strict=True)])
    return JSONResponse({**drawn, "arms": titles, "invalid": []})


def _chosen(request: Request) -> list[str]:
    chosen = list(dict.fromkeys(request.query_params.getlist("run")))
    if len(chosen) > MOST:
        raise RequestError(f"{len(chosen)} runs: up to {MOST} are compared at a time")
    return chosen


def _title(folder: Path) -> str:
    spec = _read(folder / "spec.json")
    return f"{folder.parents[2].name}: {spec.get('arm', folder.parent.name)}, seed {folder.name}"


def _figures(folders: list[Path]) -> list[tuple[str, list[float | None]]]:
    """Every figure that a run ended with, and each run's."""
    metrics = [_read(folder / "result.json").get("metrics", {}) for folder in folders]
    keys = dict.fromkeys(
        key for row in metrics for key, value in row.items() if isinstance(value, int | float)
    )
    return [(key, [row.get(key) for row in metrics]) for key in keys]


def _different(folders: list[Path]) -> list[tuple[str, list[str]]]:
    """Every place at which the runs' set-ups differ, and what each has there."""
    flat = [_flat(_read(folder / "spec.json").get("setup", {})) for folder in folders]
    places = dict.fromkeys(place for one in flat for place in one)
    rows = [(place, [one.get(place, "–") for one in flat]) for place in places]
    return [(place, values) for place, values in rows if len(set(values)) > 1]


def _flat(value: Any, place: str = "") -> dict[str, str]:
    if isinstance(value, dict) and value:
        inner = [_flat(v, f"{place}.{key}" if place else str(key)) for key, v in value.items()]
        return {at: text for one in inner for at, text in one.items()}
    return {place: str(value)}


def _read(path: Path) -> Any:
    try:
        return read_json(path)
    except (OSError, ValueError):  # not there yet
        return {}
