"""What a search tried: every trial of every arm, which was chosen, and what its figure is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from attnlab.report import numbers
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.names import label
from attnlab.report.pictures import palette
from attnlab.report.pictures.picture import Frame, Picture, finished, picture, untold
from attnlab.report.studied import Arm, Studied
from attnlab.report.tables.arms import name_cell
from attnlab.report.tables.table import Cell, Column, Row, Table, table

Found = list[tuple[Arm, Mapping[str, Any]]]

_TITLE = "What was tried"


def search(study: Studied) -> Exhibit | None:
    """None where nothing was searched for."""
    found = [(arm, kept) for arm in study.arms if (kept := _kept(arm)) is not None]
    if not found:
        return None
    counts = {len(kept["trials"]) for _, kept in found}
    every = "every arm" if len(found) == len(study.arms) else numbers.listed([arm.name for arm, _ in found])
    told = (
        f"{numbers.times(counts.pop(), 'trial')} for {every}"
        if len(counts) == 1
        else "Not as many trials for every arm, so that the comparison leans to whoever had more"
    )
    tables = [_chosen(study, found), _trials(study, found)]
    pictures = [_drawn(study, found)]
    return Exhibit(
        key="h-search",
        title=_TITLE,
        note=f"{told}, on seeds of their own, judged on dev; the setting that was best there is run afresh "
        "on the study's seeds.",
        pictures=[one for one in pictures if one is not None],
        tables=[one for one in tables if one is not None],
    )


def _kept(arm: Arm) -> Mapping[str, Any] | None:
    return next((run.exhibits["search"] for run in arm.runs if run.exhibits.get("search")), None)


def _worth(mended: Mapping[str, float] | None) -> tuple[Cell, Cell]:
    """The figure that was chosen by, and what to expect of it; of a choice by loss there is neither."""
    if mended is None:
        return Cell("chosen by loss"), Cell("")
    between = f"{mended['low']:.3f} to {mended['high']:.3f}"
    return Cell(f"{mended['value']:.4f}"), Cell(f"{mended['corrected']:.4f}", note=between)


def _chosen(study: Studied, found: Found) -> Table | None:
    rows = []
    for arm, kept in found:
        best = kept["trials"][kept["chosen"]]
        fresh = arm.values("dev_accuracy")
        rows.append(
            Row(
                (
                    name_cell(study, arm),
                    Cell(kept["method"]),
                    Cell(_setting(best["setting"])),
                    *_worth(kept.get("corrected")),
                    Cell(numbers.with_error(fresh)),
                    Cell(numbers.duration(sum(trial["seconds"] for trial in kept["trials"]))),
                )
            )
        )
    return table(
        "search-chosen",
        "What was chosen, and what its figure is worth",
        [
            Column("arm", number=False),
            Column("search", number=False),
            Column("chosen", number=False),
            Column("dev accuracy, best of all"),
            Column("corrected for the choice"),
            Column("on fresh seeds"),
            Column("training time of all trials"),
        ],
        rows,
        "The best of many is partly luck. Corrected: chosen again on dev items drawn with replacement, and "
        "looked at on those that were not drawn, 2,000 times; in brackets, where 95 % of these lie. Every "
        "evaluation of a finished trial is a candidate. The test split was not opened for any of it.",
    )


def _trials(study: Studied, found: Found) -> Table | None:
    places = list(dict.fromkeys(p for _, kept in found for trial in kept["trials"] for p in trial["setting"]))
    rows = []
    for arm, kept in found:
        for trial in kept["trials"]:
            values = [value for _, value in trial["values"]]
            chosen = trial["number"] == kept["chosen"]
            rows.append(
                Row(
                    (
                        name_cell(study, arm),
                        Cell(str(trial["number"] + 1)),
                        *(Cell(_value(trial["setting"].get(place))) for place in places),
                        Cell(" → ".join(f"{value:.3f}" for value in values) or numbers.NOTHING),
                        Cell("chosen" if chosen else trial["ending"]),
                        Cell(numbers.duration(trial["seconds"])),
                    )
                )
            )
    return table(
        "search-trials",
        "Every trial",
        [
            Column("arm", number=False),
            Column("trial"),
            *(Column(label(place.rpartition(".")[2])) for place in places),
            Column(f"{label(found[0][1]['choose'])}, evaluation by evaluation", number=False),
            Column("ended", number=False),
            Column("training time"),
        ],
        rows,
        "Pruned: ended early, because at the same point most trials had been better.",
        grouped=True,
    )


def _drawn(study: Studied, found: Found) -> Picture | None:
    """The figure on dev against the first number that was searched for."""
    trials = [(arm, kept, trial) for arm, kept in found for trial in kept["trials"]]
    against = next((place for place, value in trials[0][2]["setting"].items() if _is_number(value)), None)
    what = found[0][1]["choose"]
    data: list[dict[str, Any]] = []
    for arm, kept, trial in trials:
        values = [value for _, value in trial["values"]]
        if against is None or against not in trial["setting"] or not values:
            continue
        value = max(values) if what.endswith("accuracy") else min(values)
        ended = "chosen" if trial["number"] == kept["chosen"] else trial["ending"]
        told = f"{arm.name}, trial {trial['number'] + 1}: {_setting(trial['setting'])}: {value:.4f}, {ended}"
        data.append(
            {"arm": arm.name, against: trial["setting"][against], what: value, "ended": ended, "told": told}
        )
    if against is None or len(data) < 2:
        return None
    drawing = _Tried(study, found, against, what, data)
    caption = (
        f"A mark is a trial: its best {label(what)} against its {label(against.rpartition('.')[2])}. Filled: "
        "chosen; pale: ended early."
    )
    said = "; ".join(datum["told"] for datum in data)
    return picture("search", _TITLE, caption, said, drawing.draw, untold(data))


class _Tried:
    def __init__(
        self, study: Studied, found: Found, against: str, what: str, data: Sequence[dict[str, Any]]
    ) -> None:
        self.against, self.what, self.data = against, what, data
        places = {arm.name: place for place, arm in enumerate(study.arms)}
        self.looks = {arm.name: palette.look(places[arm.name]) for arm, _ in found}

    def draw(self, frame: Frame) -> alt.TopLevelMixin:
        values = [datum[self.against] for datum in self.data]
        log = min(values) > 0 and max(values) >= 10 * min(values)
        below = self.against.rpartition(".")[2]
        names, looks = list(self.looks), list(self.looks.values())
        legend = alt.Legend(columns=2 if frame.narrow else min(5, len(names)))
        place = {
            "x": alt.X(
                f"{self.against.replace('.', chr(92) + '.')}:Q",
                scale=alt.Scale(type="log" if log else "linear", zero=False, padding=14),
                axis=alt.Axis(title=label(below), tickCount=6, format="~e" if log else "~r"),
            ),
            "y": alt.Y(
                f"{self.what}:Q",
                scale=alt.Scale(zero=False, padding=14),
                axis=alt.Axis(title=f"best {label(self.what)}", tickCount=6),
            ),
            "color": alt.Color(
                "arm:N", scale=alt.Scale(domain=names, range=[look.colour for look in looks]), legend=legend
            ),
            "shape": alt.Shape(
                "arm:N", scale=alt.Scale(domain=names, range=[look.shape for look in looks]), legend=legend
            ),
            "description": "told:N",
        }

        def shown(endings: tuple[str, ...]) -> alt.Chart:
            return alt.Chart(frame.data([datum for datum in self.data if datum["ended"] in endings]))

        layers = [
            shown(("pruned", "diverged")).mark_point(size=50, opacity=0.35).encode(**place),
            shown(("done",)).mark_point(size=60, strokeWidth=1.6).encode(**place),
            shown(("chosen",)).mark_point(size=130, filled=True, opacity=1).encode(**place),
        ]
        chart = alt.layer(*layers).properties(width=frame.width - 70, height=240 if frame.narrow else 280)
        return finished(chart, _TITLE)


def _setting(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{label(place.rpartition('.')[2])} {_value(value)}" for place, value in setting.items())


def _value(value: Any) -> str:
    if value is None:
        return numbers.NOTHING
    if isinstance(value, float) and value < 0.01:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return numbers.plain(value, 3) if _is_number(value) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
