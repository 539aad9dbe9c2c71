"""Verdicts on results made elsewhere: a CSV file with the columns arm, seed, item, value and maybe weight.

Shapes: S seeds, N items.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import DeclarationError, Problem, RequestError, unknown
from attnlab.verdict.judging import PLAN, judge_many
from attnlab.verdict.looks import Plan
from attnlab.verdict.result import LOSS, Metric, Verdict

Array = NDArray[np.float64]

COLUMNS = ("arm", "seed", "item", "value")
SHOWN = 3  # names shown of a long list


@dataclass(frozen=True)
class Row:
    line: int
    arm: str
    seed: str
    item: str
    value: float
    weight: float


def judge_table(
    path: str | Path,
    *,
    margin: float,
    baseline: str | None = None,
    metric: Metric = LOSS,
    plan: Plan = PLAN,
) -> dict[str, Verdict]:
    """Judge every arm of a table against its baseline, by default the arm of the first row.

    A run that diverged has no rows: it is then missing, leaves the comparison, and is reported.
    """
    source = Path(path)
    rows = _read(source)
    arms = list(dict.fromkeys(row.arm for row in rows))
    chosen = arms[0] if baseline is None else baseline
    if chosen not in arms:
        raise RequestError(f"{source}: " + unknown("arm", chosen, arms))
    if len(arms) < 2:
        raise RequestError(f"{source}: only one arm, {chosen!r}; a verdict compares two")
    items, weights = _items(rows, chosen, source)
    seeds = sorted({row.seed for row in rows}, key=_in_order)
    tables = _tables(rows, arms, seeds, items)
    _same_items(tables, seeds, items, chosen, source)
    _some_seed_in_common(tables, chosen, source)
    return judge_many(
        tables[chosen],
        {arm: table for arm, table in tables.items() if arm != chosen},
        margin=margin,
        weights=weights,
        metric=metric,
        plan=plan,
        baseline_name=chosen,
    )


def _read(source: Path) -> list[Row]:
    try:
        with source.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            found = [name.strip() for name in reader.fieldnames or ()]
            reader.fieldnames = found
            _check_columns(found, source)
            lines = [(reader.line_num, record) for record in reader]
    except FileNotFoundError as error:
        raise RequestError(f"{source}: there is no such file") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RequestError(f"{source}: cannot be read as a CSV file: {error}") from error
    problems: list[Problem] = []
    rows = [row for line, record in lines if (row := _row(line, record, problems)) is not None]
    _find_twice(rows, problems)
    if problems:
        raise DeclarationError(problems, str(source))
    if not rows:
        raise RequestError(f"{source}: the columns are there, but no row follows")
    return rows


def _check_columns(found: list[str], source: Path) -> None:
    missing = [name for name in COLUMNS if name not in found]
    if missing:
        raise RequestError(
            f"{source}: no column {' and no column '.join(map(repr, missing))}; the first line must name "
            f"{', '.join(COLUMNS)} and, if items count differently, weight "
            f"(found: {', '.join(found) or 'nothing'})"
        )


def _row(line: int, record: dict[str, str | None], problems: list[Problem]) -> Row | None:
    place = f"line {line}"
    cells = {name: (record.get(name) or "").strip() for name in (*COLUMNS, "weight")}
    empty = [name for name in COLUMNS if not cells[name]]
    if None in record or empty:
        message = (
            f"{empty[0]} is empty" if empty else "more cells than columns; a comma in a name needs quotes"
        )
        problems.append(Problem(place, message))
        return None
    value = _number(cells["value"], "value", place, problems)
    weight = _number(cells["weight"], "weight", place, problems) if cells["weight"] else 1.0
    if value is None or weight is None:
        return None
    if weight < 0:
        problems.append(Problem(place, f"weight is {weight}: it must be 0 or above"))
        return None
    return Row(line, cells["arm"], cells["seed"], cells["item"], value, weight)


def _number(text: str, column: str, place: str, problems: list[Problem]) -> float | None:
    try:
        value = float(text)
    except ValueError:
        problems.append(Problem(place, f"{column} {text!r} is not a number"))
        return None
    if not math.isfinite(value):
        problems.append(Problem(place, f"{column} is {text}: leave out all rows of a run that diverged"))
        return None
    return value


def _find_twice(rows: Iterable[Row], problems: list[Problem]) -> None:
    first: dict[tuple[str, str, str], int] = {}
    for row in rows:
        key = (row.arm, row.seed, row.item)
        if key in first:
            what = f"arm {row.arm!r}, seed {row.seed}, item {row.item!r}"
            problems.append(Problem(f"line {row.line}", f"{what} stands on line {first[key]} already"))
        first.setdefault(key, row.line)


def _items(rows: list[Row], baseline: str, source: Path) -> tuple[list[str], Array]:
    """The baseline's items in order of appearance, and what each counts."""
    items = list(dict.fromkeys(row.item for row in rows if row.arm == baseline))
    weights = {row.item: row for row in reversed(rows)}
    problems = [
        Problem(
            f"line {row.line}",
            f"item {row.item!r} weighs {row.weight}, but {first.weight} on line {first.line}",
        )
        for row in rows
        if (first := weights[row.item]).weight != row.weight
    ]
    if problems:
        raise DeclarationError(problems, str(source))
    return items, np.array([weights[item].weight for item in items])


def _tables(rows: list[Row], arms: list[str], seeds: list[str], items: list[str]) -> dict[str, Array]:
    """Per arm its values as (S, N), not-a-number where there is no row; items the baseline lacks stay out."""
    seed_at = {seed: place for place, seed in enumerate(seeds)}
    item_at = {item: place for place, item in enumerate(items)}
    tables = {arm: np.full((len(seeds), len(items) + 1), np.nan) for arm in arms}
    for row in rows:
        # The last column marks runs with an item that the baseline does not have.
        tables[row.arm][seed_at[row.seed], item_at.get(row.item, len(items))] = row.value
    return tables


def _same_items(
    tables: dict[str, Array], seeds: list[str], items: list[str], baseline: str, source: Path
) -> None:
    """Each run must hold all items or none; then the marking column is dropped."""
    problems = []
    for arm, table in tables.items():
        for seed, run in zip(seeds, table, strict=True):
            if not np.isfinite(run).any():
                continue
            place = f"arm {arm!r}, seed {seed}"
            missing = [item for item, value in zip(items, run, strict=False) if math.isnan(value)]
            if missing:
                names = ", ".join(missing[:SHOWN]) + (", …" if len(missing) > SHOWN else "")
                problems.append(
                    Problem(place, f"lacks {len(missing)} of the {len(items)} items of {baseline!r}: {names}")
                )
            if math.isfinite(run[-1]):
                problems.append(Problem(place, f"has items that {baseline!r} does not have"))
        tables[arm] = table[:, :-1]
    if problems:
        raise DeclarationError(problems, str(source))


def _some_seed_in_common(tables: dict[str, Array], baseline: str, source: Path) -> None:
    finished = {arm: np.isfinite(table).all(axis=1) for arm, table in tables.items()}
    for arm, done in finished.items():
        if not (done & finished[baseline]).any():
            raise RequestError(
                f"{source}: arm {arm!r} and {baseline!r} have no seed in common; "
                "runs are compared seed by seed"
            )


def _in_order(seed: str) -> tuple[int, str]:
    return (int(seed), seed) if seed.lstrip("-").isdigit() else (2**63, seed)
