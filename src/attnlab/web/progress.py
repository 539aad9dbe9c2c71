"""How far the runs of a study are, from what they have written so far."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from attnlab.errors import RequestError
from attnlab.report.logs import read_log, series, thinned
from attnlab.web.shelf import read_json

FRESH = 30.0  # seconds after its last line during which a run counts as going on
_MOST_POINTS = 400  # of one curve
_BESIDES = ("step", "of", "tokens", "seconds", "learning_rate")  # what a row holds that is no measurement


@dataclass(frozen=True)
class Progress:
    """One run: how far it is, and its latest figures."""

    arm: str
    seed: int
    place: str  # <arm>/<seed>, as it lies in the study's folder
    status: str  # waiting, running, stopped, or how it ended
    step: int = 0
    of: int = 0
    latest: Mapping[str, float] | None = None
    reason: str = ""

    @property
    def share(self) -> float:
        if self.status not in ("running", "stopped", "waiting"):
            return 1.0
        return min(1.0, self.step / self.of) if self.of else 0.0


def progress(folder: Path, arms: Sequence[str], seeds: int) -> list[Progress]:
    """Every run of a study, arm by arm; those not begun are waiting."""
    begun = {(p.arm, p.seed): p for path in folder.glob("runs/*/*") if (p := _of_run(path)) is not None}
    places = [(arm, seed) for arm in arms for seed in range(seeds)]
    return [begun.get(place) or Progress(*place, "", "waiting") for place in places]


MOST = 400  # runs of a study that its page shows one by one
_URGENT = ("running", "stopped", "error", "failed", "diverged", "invalid")


def shown(runs: Sequence[Progress]) -> list[Progress]:
    """Those that a page shows: of very many, first what is under way or ended badly, in the usual order."""
    if len(runs) <= MOST:
        return list(runs)
    order = sorted(range(len(runs)), key=lambda at: (runs[at].status not in _URGENT, at))
    return [runs[at] for at in sorted(order[:MOST])]


def _of_run(path: Path) -> Progress | None:
    """What is known of the run in a folder. A run that ended is read once, unless it is written again."""
    try:
        return _ended_run(path, (path / "result.json").stat().st_mtime_ns)
    except OSError:
        return _read_run(path)


@lru_cache(maxsize=50_000)
def _ended_run(path: Path, written: int) -> Progress | None:
    return _read_run(path)


def _read_run(path: Path) -> Progress | None:
    try:
        spec = read_json(path / "spec.json")
        arm, seed = str(spec["arm"]), int(spec["seed"])
    except (RequestError, OSError, ValueError, KeyError, TypeError):  # not written yet, or no folder of a run
        return None
    place = f"{path.parent.name}/{path.name}"
    last = _last_row(path / "metrics.jsonl")
    latest = {key: value for key, value in last.items() if key not in _BESIDES and _is_number(value)}
    step, of = int(last.get("step", 0)), int(last.get("of", 0))
    status, reason = "stopped", ""
    if (path / "result.json").is_file():
        status, reason = _ended(path / "result.json")
    elif _is_fresh(path):
        status = "running"
    return Progress(arm, seed, place, status, step, of, latest, reason)


def _ended(path: Path) -> tuple[str, str]:
    """How a run ended, and why; a damaged file is said of its run, and takes no page down."""
    try:
        result = read_json(path)
        return str(result.get("status")), str(result.get("reason") or "")
    except (RequestError, OSError, ValueError) as error:
        return "error", f"{path.name} cannot be read ({error})"


def _is_fresh(path: Path) -> bool:
    # A run that is pretrained first has a curve of that too.
    written = [p.stat().st_mtime for p in (*path.glob("*.jsonl"), path / "spec.json") if p.is_file()]
    return bool(written) and time.time() - max(written) < FRESH


def _last_row(path: Path) -> Mapping[str, Any]:
    """The last whole line, without reading those before it."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    for line in reversed(lines):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            return row
    return {}


def curves(runs: Sequence[tuple[str, str, Path]]) -> dict[str, Any]:
    """The curves of runs, given as (title, arm, folder), for the browser to draw: for every quantity and run
    its steps and values."""
    drawn: dict[str, list[dict[str, Any]]] = {}
    for title, arm, folder in runs:
        log = read_log(folder / "metrics.jsonl")
        quantities = dict.fromkeys(k for row in log for k, v in row.items() if _is_number(v))
        for quantity in quantities:
            if quantity not in _BESIDES:
                points, _ = thinned(series(log, quantity), _MOST_POINTS)
                steps, values = [p[0] for p in points], [round(p[1], 6) for p in points]
                drawn.setdefault(quantity, []).append(
                    {"title": title, "arm": arm, "steps": steps, "values": values}
                )
    return {"quantities": drawn}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
