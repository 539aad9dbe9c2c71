"""The corpus, the floors, the derivation of the parameters, the environment: facts as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attnlab.report import numbers
from attnlab.report.studied import Arm, Studied
from attnlab.report.tables.table import Cell, Column, Row, Table, badge, cells, table

_SPLITS = ("train", "dev", "test")
_SHARES = ("exact", "near", "unknown_rate")


def splits_table(study: Studied) -> Table | None:
    """A split a row: how much it holds, what was unknown, what was cut, what train holds too."""
    by_split = _by_split(study.corpus)
    if not by_split:
        return None
    keys = list(dict.fromkeys(key for facts in by_split.values() for key in facts))
    columns = [Column("split", number=False), *(Column(key.replace("_", " ")) for key in keys)]
    rows = [
        Row((Cell(split), *(Cell(_fact(key, facts.get(key))) for key in keys)))
        for split, facts in by_split.items()
    ]
    note = ""
    if isinstance(study.corpus.get("overlap"), Mapping):
        note = (
            "Overlap: the share of a held-out split's texts that train holds too, word for word (exact) or "
            "for the most part (near)."
        )
    return table("splits", "Splits", columns, rows, note)


def _by_split(corpus: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Every fact that is told per split, however the corpus groups it."""
    found: dict[str, dict[str, Any]] = {}
    for group, facts in corpus.items():
        if not isinstance(facts, Mapping) or not any(name in facts for name in _SPLITS):
            continue
        for split, values in facts.items():
            values = values if isinstance(values, Mapping) else {group: values}
            prefix = "overlap_" if group == "overlap" else ""
            found.setdefault(str(split), {}).update({f"{prefix}{k}": v for k, v in values.items()})
    return found


def _fact(key: str, value: Any) -> str:
    if value is None or isinstance(value, Mapping | list):
        return numbers.NOTHING
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if key.removeprefix("overlap_") in _SHARES or key.endswith(("_rate", "_share")):
        return numbers.share(value)
    return numbers.plain(value)


def corpus_facts(study: Studied) -> list[tuple[str, str]]:
    """Where the text is from and how it was cut up, as pairs of a name and a value."""
    rest = {
        key: value
        for key, value in study.corpus.items()
        if not (isinstance(value, Mapping) and any(name in value for name in _SPLITS))
    }
    return _pairs(rest, skip=("counts", "fingerprint"))


def environment_facts(study: Studied) -> list[tuple[str, str]]:
    facts = _pairs({k: v for k, v in study.environment.items() if v is not None})
    return [*facts, ("declaration's fingerprint", study.fingerprint)] if study.fingerprint else facts


def _pairs(facts: Mapping[str, Any], *, skip: Iterable[str] = ()) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in facts.items():
        if key in skip or value is None:
            continue
        name = key.replace("_", " ")
        if isinstance(value, Mapping) and key == "provenance":
            found += _pairs(value, skip=skip)
        elif isinstance(value, Mapping):
            found += [(f"{name}: {inner}", text) for inner, text in _pairs(value, skip=skip)]
        elif isinstance(value, list):
            found.append((name, ", ".join(map(str, value))))
        else:
            found.append((name, str(value) if isinstance(value, str | bool) else numbers.plain(value)))
    return found


def floors_table(study: Studied) -> Table | None:
    """What simple methods reach on the test split."""
    keys = list(dict.fromkeys(key for facts in study.floors.values() for key in facts))
    columns = [Column("floor", number=False), *(Column(key.replace("_", " ")) for key in keys)]
    rows = [
        Row((Cell(name), *(Cell(_fact(key, facts.get(key))) for key in keys)), "floor")
        for name, facts in study.floors.items()
    ]
    return table("floors-table", "Floors on the test split", columns, rows)


def against_table(study: Studied) -> Table | None:
    """Every arm against every floor, paired on the items that both answered."""
    columns = [
        Column("floor", number=False),
        Column("arm", number=False),
        Column("verdict", number=False),
        Column(f"difference in {study.metric.title}"),
    ]
    rows = [
        Row(
            (
                Cell(str(one["baseline"])),
                Cell(str(one["arm"])),
                badge(str(one["verdict"])),
                Cell(
                    numbers.NOTHING
                    if one["verdict"] == "invalid"
                    else numbers.interval(one.get("effect"), one.get("ci") or (None, None))
                ),
            )
        )
        for one in study.floor_verdicts
    ]
    note = "The arm less the floor, paired item by item; a floor is the same for every seed."
    return table("against-floors", "The arms against the floors", columns, rows, note, grouped=True)


def parameter_tables(study: Studied) -> list[Table]:
    """The count, derived, for the baseline and for every arm whose derivation differs from it."""
    found: list[Table] = []
    seen: list[tuple[Any, ...]] = []
    for arm in study.arms:
        rows = tuple(
            tuple(row.get(key) for key in ("name", "formula", "copies", "count"))
            for row in arm.parameter_rows
        )
        if rows and rows not in seen:
            seen.append(rows)
            found.append(_parameters(study, arm, len(seen)))
    return found


def _parameters(study: Studied, arm: Arm, place: int) -> Table:
    same = [a.name for a in study.arms if list(a.parameter_rows) == list(arm.parameter_rows)]
    columns = (
        Column("tensor", number=False),
        Column("shape", number=False),
        Column("copies"),
        Column("parameters"),
    )
    rows = [
        Row(
            cells(
                str(row.get("name", "")),
                str(row.get("formula", "")),
                numbers.count(row.get("copies") or 1),
                numbers.count(row.get("count") or 0),
            )
        )
        for row in arm.parameter_rows
    ]
    total = sum(int(row.get("count") or 0) for row in arm.parameter_rows)
    rows.append(Row(cells("in all", "", "", numbers.count(total)), "floor"))
    return Table(f"parameters-{place}", f"Parameters of {numbers.listed(same)}", columns, tuple(rows))
