"""The chances of the next token at a step, and what each decoding strategy left of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.report import numbers
from attnlab.report.exhibits.decoding import first_run, kept_by
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.studied import Studied
from attnlab.report.tables.table import Column, Row, Table, cells, table


def chances(study: Studied) -> Exhibit | None:
    """None unless some run kept the distributions of a step."""
    looked = {
        arm.name: {(step["prompt"], step["step"]): step for step in kept_by(arm)["steps"]}
        for arm in study.arms
        if first_run(arm) is not None
    }
    places = list(dict.fromkeys(place for steps in looked.values() for place in steps))
    made = [_distribution(place, {n: s[place] for n, s in looked.items() if place in s}) for place in places]
    tables = [one for one in made if one is not None]
    if not tables:
        return None
    without = [name for name, steps in looked.items() if not steps]
    note = "The same step of the same text for every strategy; a dash is a token that it cannot choose."
    if without:
        verb = "compares" if len(without) == 1 else "compare"
        note += f" No column of {numbers.listed(without)}, which {verb} more than the chances of one token."
    return Exhibit(
        key="h-chances", title="What each strategy left of a distribution", note=note, tables=tables
    )


def _distribution(place: tuple[str, int], looked: Mapping[str, Mapping[str, Any]]) -> Table | None:
    prompt, step = place
    first = next(iter(looked.values()))
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
        f"decoding-step-{_slug(prompt)}-{step}",
        f"Token {step} after “{prompt}”: what each strategy left of the distribution",
        columns,
        rows,
        f"What stands before it is the prompt and the greedy text: “{first['before']}”.",
    )


def _slug(text: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text)[:40].strip("-")


def _chance(chance: float) -> str:
    """Four decimals; what is not nothing is never shown as nothing."""
    if not chance:
        return numbers.NOTHING
    return numbers.fixed(chance, 4) if chance >= 0.00005 else "< 0.0001"
