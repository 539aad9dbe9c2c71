"""The chances of the next token at a step, and what each decoding strategy left of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from attnlab.report import numbers
from attnlab.report.exhibits.decoding import first_run, kept_by
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.studied import Studied
from attnlab.report.tables.table import Column, Row, Table, cells, table

_Step = Mapping[str, Any]  # what a run kept of one distribution
_TOLD = 1e-4  # the least difference of chances that a table shows


def chances(study: Studied) -> Exhibit | None:
    """None unless some run kept the distributions of a step."""
    looked = {arm.name: kept_by(arm)["steps"] for arm in study.arms if first_run(arm) is not None}
    made = [_distribution(number, alike) for number, alike in enumerate(_alike(looked), 1)]
    tables = [one for one in made if one is not None]
    if not tables:
        return None
    without = [name for name, steps in looked.items() if not steps]
    note = "The same step of the same text, strategies side by side; a dash is a token that it cannot choose."
    if without:
        verb = "compares" if len(without) == 1 else "compare"
        note += f" No column of {numbers.listed(without)}, which {verb} more than the chances of one token."
    return Exhibit(
        key="h-chances", title="What each strategy left of a distribution", note=note, tables=tables
    )


def _alike(looked: Mapping[str, Sequence[_Step]]) -> list[dict[str, _Step]]:
    """The arms that looked at one distribution, by name. An arm may have a model of its own: then the same
    step of the same prompt is another distribution."""
    groups: list[dict[str, _Step]] = []
    for name, steps in looked.items():
        for step in steps:
            group = next((one for one in groups if _is_same(step, next(iter(one.values())))), None)
            if group is None:
                groups.append(group := {})
            group[name] = step
    return groups


def _is_same(one: _Step, other: _Step) -> bool:
    """Whether two looks were at one distribution: the same tokens, as probable as far as a table tells."""
    place = ("prompt", "step", "before", "of")
    pairs = [*zip_longest(one["likeliest"], other["likeliest"])]
    return all(one[key] == other[key] for key in place) and all(
        a and b and a["piece"] == b["piece"] and abs(a["chance"] - b["chance"]) < _TOLD for a, b in pairs
    )


def _distribution(number: int, looked: Mapping[str, _Step]) -> Table | None:
    first = next(iter(looked.values()))
    prompt, step = first["prompt"], first["step"]
    columns = [Column("token", number=False), Column("chance"), Column("so far"), *map(Column, looked)]
    rows, so_far = [], 0.0
    for at, candidate in enumerate(first["likeliest"]):
        so_far += candidate["chance"]
        after = (_chance(one["likeliest"][at]["after"]) for one in looked.values())
        rows.append(
            Row(cells(repr(candidate["piece"]), _chance(candidate["chance"]), _chance(so_far), *after))
        )
    others = first["of"] - len(first["likeliest"])
    if others > 0:
        rest = (_chance(one["rest"]["after"]) for one in looked.values())
        name = f"{numbers.count(others)} further"
        rows.append(Row(cells(name, _chance(first["rest"]["chance"]), "", *rest), "floor"))
    kept = (numbers.count(one["kept"]) for one in looked.values())
    rows.append(Row(cells("tokens kept", numbers.count(first["of"]), "", *kept), "floor"))
    held = (_chance(one["held"]) for one in looked.values())
    rows.append(Row(cells("their chance before", "1", "", *held), "floor"))
    return table(
        f"decoding-step-{number}",
        f"Token {step} after “{prompt}”: what each strategy left of the distribution",
        columns,
        rows,
        f"What stands before it is the prompt and the greedy text: “{first['before']}”.",
    )


def _chance(chance: float) -> str:
    """Four decimals; what is not nothing is never shown as nothing."""
    if not chance:
        return numbers.NOTHING
    return numbers.fixed(chance, 4) if chance >= 0.00005 else "< 0.0001"
