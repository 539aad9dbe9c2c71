"""What the heads do: figures of each before and after training, curves where there are enough points for
them, and the maps themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.evaluation.maps.heads import MEASURES
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.numbers import count, listed
from attnlab.report.pictures.heads import heads_picture, induction_picture
from attnlab.report.studied import Arm, Run, Studied
from attnlab.report.tables.table import Column, Row, Table, cells, table
from attnlab.report.viewer.maps import viewer_of

_NOTE = (
    "Shares of a query's weight, as means over the queries of all probe texts, the first of each text aside. "
    "Each figure is that of one head in the run of one seed: before training → after it."
)


def attention(study: Studied) -> Exhibit | None:
    """None unless some run kept attention maps."""
    looked = [(arm, run) for arm in study.arms if (run := _first(arm)) is not None]
    if not looked:
        return None
    viewer = viewer_of(study)
    pictures = [induction_picture(study), heads_picture(study)]
    return Exhibit(
        key="h-attention",
        title="Attention maps",
        note=_note(looked),
        pictures=[made for made in pictures if made is not None],
        tables=[made for made in [_table(looked)] if made is not None],
        **({"markup": viewer.markup()} if viewer else {}),
    )


def _first(arm: Arm) -> Run | None:
    return next((run for run in arm.runs if run.exhibits.get("attention")), None)


def _note(looked: Sequence[tuple[Arm, Run]]) -> str:
    """How the maps were taken, how exact they are, and which arms have none."""
    steps = sorted({step for _, run in looked for step in _of(run)["steps"]})
    when = (
        f"steps {count(steps[0])} and {count(steps[-1])}"
        if len(steps) == 2
        else f"{len(steps)} steps, {count(steps[0])} to {count(steps[-1])}"
    )
    said = [
        f"Who takes how much from whom, looked at after {when}"
        if len(steps) > 1
        else "Who takes how much from whom"
    ]
    error = max(_of(run)["error"] for _, run in looked)
    said.append(f"weights are kept in eight bits, within {error:.2g} of what they were")
    without = {
        arm.name: reasons[0]
        for arm, run in looked
        if (reasons := [layer["without"] for layer in _of(run)["layers"] if layer["without"]])
    }
    none = "".join(f" No maps of {name}: {reason}." for name, reason in without.items())
    return f"{'; '.join(said)}.{none}"


def _of(run: Run) -> Mapping[str, Any]:
    found: Mapping[str, Any] = run.exhibits["attention"]
    return found


def _table(looked: Sequence[tuple[Arm, Run]]) -> Table | None:
    """A row for every head, an arm after the other."""
    names = [
        name
        for name in MEASURES
        if any(name in layer for _, run in looked for layer in _of(run)["heads"][-1])
    ]
    rows = []
    for arm, run in looked:
        kept = _of(run)
        for depth, layer in enumerate(kept["layers"]):
            before, after = kept["heads"][0][depth], kept["heads"][-1][depth]
            for head in range(min(layer["heads"], _MOST)):
                figures = (_change(before, after, name, head) for name in names)
                rows.append(Row(cells(arm.name, f"{depth + 1}", f"{layer['per']} {head + 1}", *figures)))
    cut = any(layer["heads"] > _MOST for _, run in looked for layer in _of(run)["layers"])
    seeds = {run.seed for _, run in looked}
    return table(
        "attention-heads",
        f"Every head, seed {listed([str(seed) for seed in sorted(seeds)])}",
        [Column("arm", number=False), Column("layer"), Column("head", number=False), *map(Column, names)],
        rows,
        _NOTE + (f" Of layers with more, the first {_MOST}." if cut else ""),
        grouped=True,
    )


_MOST = 16  # heads of a layer in the table


def _change(before: Mapping[str, Any], after: Mapping[str, Any], name: str, head: int) -> str:
    if name not in after:
        return "–"
    if before is after or name not in before:
        return f"{after[name][head]:.2f}"
    return f"{before[name][head]:.2f} → {after[name][head]:.2f}"
