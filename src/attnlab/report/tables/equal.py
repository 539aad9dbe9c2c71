"""What the arms share and what they do not: without it, a difference cannot be put down to the change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attnlab.report import many, numbers
from attnlab.report.studied import Arm, Studied
from attnlab.report.tables.table import Cell, Column, Row, Table, badge, cells, table
from attnlab.report.toml import compact

_CLOSE = 1.05  # times that differ by less are one time: two runs of the same arm differ by as much
_TRAINING = ("training", "optimizer", "schedule", "learning_rate", "steps", "epochs", "batch")


def changes_table(study: Studied) -> Table | None:
    """An arm's change a row: the place, what the baseline has there, what the arm has."""
    columns = [Column(name, number=False) for name in ("arm", "what it changes", "baseline", "this arm")]
    rows = [
        Row(cells(arm.name, place, compact(before) if before is not _ABSENT else "–", compact(after)))
        for arm in study.arms
        for place, before, after in _changes(study, arm)
        if before is _ABSENT or compact(before) != compact(after)
    ]
    return table("changes", "What each arm changes", columns, rows, grouped=True)


_ABSENT = object()


def _changes(study: Studied, arm: Arm) -> Iterator[tuple[str, Any, Any]]:
    for key, value in arm.changes.items():
        yield from _against(key, _found(study.declaration, key.split(".")), value)


def _against(place: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """A table without a part of its own changes fields of what was there, so it is told field by field."""
    if isinstance(after, Mapping) and "part" not in after:
        for key, value in after.items():
            old = before.get(key, _ABSENT) if isinstance(before, Mapping) else _ABSENT
            yield from _against(f"{place}.{key}", old, value)
    else:
        yield place, before, after


def _found(declaration: Any, path: list[str]) -> Any:
    """What stands at a place, where the declaration may keep it deeper than a short name says."""
    if not isinstance(declaration, Mapping):
        return _ABSENT
    here: Any = declaration
    for name in path:
        here = here.get(name, _ABSENT) if isinstance(here, Mapping) else _ABSENT
    if here is not _ABSENT:
        return here
    deeper = [_found(inner, path) for key, inner in declaration.items() if key != "arms"]
    return next((found for found in deeper if found is not _ABSENT), _ABSENT)


def equal_table(study: Studied) -> Table | None:
    """A thing that should be equal a row: whether it was, and the figures."""
    if len(study.arms) < 2:
        return None
    rows = [
        _of_numbers("parameters", {a.name: a.parameters for a in study.arms}, study, 1.0, numbers.count),
        _of_numbers("training steps", {a.name: _steps(a) for a in study.arms}, study, 1.0, numbers.count),
        _of_numbers("training tokens", {a.name: _tokens(a) for a in study.arms}, study, 1.0, numbers.count),
        _of_numbers(
            "training time",
            {a.name: a.seconds.mean if a.seconds else None for a in study.arms},
            study,
            _CLOSE,
            numbers.duration,
        ),
        _seeds(study),
        _settings(study),
        _tuning(study),
    ]
    columns = [Column(name, number=False) for name in ("what", "held", "in figures")]
    return table("equal", "Size, compute and training of the arms", columns, rows)


def _of_numbers(
    what: str, values: Mapping[str, float | None], study: Studied, close: float, form: Any
) -> Row | None:
    known = {name: value for name, value in values.items() if value}
    if len(known) < 2:
        return None
    same = max(known.values()) <= close * min(known.values())
    base = known.get(study.baseline)
    if same:
        close_by = f", within {numbers.share(close - 1)}" if close > 1 else ""
        return Row((Cell(what), badge("equal"), Cell(f"{form(next(iter(known.values())))}{close_by}")))
    ratios = {name: f" ({numbers.ratio(value / base)})" for name, value in known.items() if base}
    ratios[study.baseline] = ""
    told = [f"{name} {form(value)}{ratios.get(name, '')}" for name, value in known.items()]
    return Row((Cell(what), badge("not equal"), Cell("; ".join(many.some(told, "further arms")))))


def _steps(arm: Arm) -> float | None:
    return max((run.steps for run in arm.runs if run.counts and run.steps), default=None)


def _tokens(arm: Arm) -> float | None:
    ends = [line["tokens"] for run in arm.runs if run.counts for line in run.log if line.get("tokens")]
    return max(ends, default=None)


def _seeds(study: Studied) -> Row | None:
    finished = {arm.name: sorted(run.seed for run in arm.runs if run.counts) for arm in study.arms}
    if not any(finished.values()):
        return None
    base = finished.get(study.baseline, [])
    other = {name: seeds for name, seeds in finished.items() if seeds != base}
    if not other:
        return Row((Cell("seeds"), badge("equal"), Cell(f"{_listed(base)} in every arm, paired")))
    told = [f"{name}: {_listed(seeds)}" for name, seeds in [(study.baseline, base), *other.items()]]
    finished_by = "; ".join(many.some(told, "further arms"))
    return Row((Cell("seeds"), badge("not equal"), Cell(f"finished {finished_by}; only pairs are compared")))


def _listed(seeds: list[int]) -> str:
    return numbers.listed(many.seeds(seeds)) if seeds else "none"


def _touched(study: Studied) -> dict[str, list[str]]:
    """The training settings that arms change."""
    return {
        arm.name: [
            f"{place} {compact(after)}" for place, _, after in _changes(study, arm) if _is_training(place)
        ]
        for arm in study.arms
    }


def _is_training(place: str) -> bool:
    return place.split(".")[0] in _TRAINING


def _settings(study: Studied) -> Row | None:
    touched = {name: places for name, places in _touched(study).items() if places}
    if touched:
        told = [f"{name}: {', '.join(places)}" for name, places in touched.items()]
        return Row(
            (Cell("training settings"), badge("not equal"), Cell("; ".join(many.some(told, "further arms"))))
        )
    training = study.declaration.get("training")
    if not isinstance(training, Mapping):
        return None
    same = ", ".join(f"{k.replace('_', ' ')} {compact(v)}" for k, v in training.items() if v is not None)
    return Row((Cell("training settings"), badge("equal"), Cell(same)))


def _tuning(study: Studied) -> Row | None:
    declared = study.declaration.get("tuning") or study.declaration.get("search")
    if declared:
        return Row((Cell("tuning"), Cell(""), Cell(compact(declared))))
    if any(_touched(study).values()) or not isinstance(study.declaration.get("training"), Mapping):
        return None
    told = "no arm was tuned on its own; one that would do better at other settings is not seen at its best"
    return Row((Cell("tuning"), badge("equal"), Cell(told)))
