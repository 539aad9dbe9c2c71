"""From the files of a study's runs to what the viewer shows: the first and the last maps of some runs, and as
many between them as leave the page at a size that can be sent."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.errors import StoreError
from attnlab.evaluation.maps.shot import Shot, shots_in
from attnlab.report.numbers import listed, times
from attnlab.report.reading import read
from attnlab.report.studied import Run, Studied
from attnlab.report.viewer.viewer import Viewer

ROOM = 1_500_000  # characters of a page for maps
SEEDS = 2  # of every arm, as far as there is room
BETWEEN = (21, 11, 6)  # looks at a run, evenly over its steps: the most of these that there is room for
HEADS = 16  # of every layer: an Attention Free Transformer has as many as it has channels
_SHOWN = 5  # digits of a scale

View = dict[str, Any]


def maps_of(directory: str | Path) -> Viewer:
    """The attention maps of a study that was run, to be looked at. In a notebook, shows itself."""
    study = read(Path(directory))
    viewer = viewer_of(study)
    if viewer is None:
        raise StoreError(
            f"{str(directory)!r} holds no attention maps: no run has taken any "
            "(measure.probes and measure.maps in a declaration say on what and when)"
        )
    return viewer


def viewer_of(study: Studied) -> Viewer | None:
    """A viewer of what there is room for; None where no run kept maps."""
    runs = [run for run in study.runs if run.folder is not None and shots_in(run.folder)]
    # All arms with their first seed, then all with their second: arms are to be compared.
    by_seed: dict[str, list[Run]] = {}
    for run in runs:
        by_seed.setdefault(run.arm, []).append(run)
    wanted = [of[n] for n in range(SEEDS) for of in by_seed.values() if n < len(of)]
    chosen: list[tuple[Run, View, int]] = []
    room = ROOM
    for run in wanted:
        made, size = view(run.arm, run.seed, _looks(run, 2))
        if size <= room:
            chosen.append((run, made, size))
            room -= size
    if not chosen:
        return None
    views: list[View] = []
    for run, made, size in chosen:  # what room is left goes to the steps between
        for most in BETWEEN:
            fuller, larger = view(run.arm, run.seed, _looks(run, most))
            if larger - size <= room:
                made, room = fuller, room - (larger - size)
                break
        views.append(made)
    views.sort(key=lambda made: list(by_seed).index(made["name"]))
    return Viewer(views, _left_out(runs, views), f"{study.name}-attention")


def _looks(run: Run, most: int) -> list[Shot]:
    """So many of a run's shots, the first and the last among them."""
    assert run.folder is not None
    paths = shots_in(run.folder)
    last = len(paths) - 1
    places = range(last + 1) if last < most else [round(last * k / (most - 1)) for k in range(most)]
    return [Shot.read(paths[place]) for place in places]


def view(name: str, seed: int | None, shots: Sequence[Shot]) -> tuple[View, int]:
    """One model at some steps, as the viewer wants it, and about how many characters that takes."""
    maps: list[dict[str, Any]] = []
    size = 0
    for shot in shots:
        kept = {}
        for (probe, layer), stack in shot.stacks.items():
            levels = np.ascontiguousarray(stack.levels_HTT[:HEADS])
            text = base64.b64encode(levels.tobytes()).decode()
            scale = [float(f"{step:.{_SHOWN}g}") for step in stack.scale_H[:HEADS]]
            kept[f"{probe}/{layer}"] = {"levels": text, "signed": levels.dtype == np.int8, "scale": scale}
            size += len(text) + 12 * len(scale) + 60
        maps.append(kept)
    last = shots[-1]
    layers = [{**layer, "heads": min(layer["heads"], HEADS), "of": layer["heads"]} for layer in last.layers]
    made: View = {
        "name": name,
        "seed": seed,
        "steps": [shot.step for shot in shots],
        "probes": [{"text": probe["text"], "tokens": probe["tokens"]} for probe in last.probes],
        "layers": layers,
        "figures": [
            [{what: values[:HEADS] for what, values in layer.items()} for layer in shot.figures["heads"]]
            for shot in shots
        ],
        "maps": maps,
    }
    return made, size


def _left_out(runs: Sequence[Run], views: Sequence[Mapping[str, Any]]) -> str:
    """What a reader does not see here and would find in the study's directory."""
    said = []
    missing = len(runs) - len(views)
    if missing:
        said.append(f"the maps of {times(missing, 'further run')}")
    taken = max(len(shots_in(run.folder)) for run in runs if run.folder is not None)
    shown = [len(made["steps"]) for made in views]
    if taken > max(shown):
        said.append(f"{'some of ' if max(shown) > 2 else ''}those taken between the first step and the last")
    elif taken > min(shown):
        said.append("of some runs, those taken between the first step and the last")
    if any(layer["of"] > layer["heads"] for made in views for layer in made["layers"]):
        said.append(f"all but the first {HEADS} heads or channels of a layer")
    if not said:
        return ""
    return f"Left out here, and kept in the study's directory under runs/…/maps: {listed(said)}."
