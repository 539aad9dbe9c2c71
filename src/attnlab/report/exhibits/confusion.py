"""How a classifier answered: the confusion matrix of every arm, and how sure its accuracy is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from attnlab.report import numbers
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.pictures import palette
from attnlab.report.pictures.picture import Frame, Picture, finished, picture, untold
from attnlab.report.studied import Arm, Studied
from attnlab.report.tables.arms import kind_of, name_cell
from attnlab.report.tables.table import Cell, Column, Row, Table, cells, table
from attnlab.verdict.classification import accuracy

Counts = NDArray[np.int64]  # (classes, answers)

_MOST = 12  # classes whose shares are written into the picture; with more there is no room


@dataclass(frozen=True)
class Answered:
    """What the finished runs of one arm answered on one split, all seeds together."""

    arm: Arm
    classes: tuple[str, ...]
    counts_SCC: Counts  # a seed, a true class, an answer

    @property
    def items(self) -> int:
        return int(self.counts_SCC[0].sum())

    @property
    def right_S(self) -> NDArray[np.int64]:
        right: NDArray[np.int64] = self.counts_SCC.diagonal(axis1=1, axis2=2).sum(axis=1)
        return right

    @property
    def shares_CC(self) -> NDArray[np.float64]:
        """Of every true class, how its items were answered; a class without items is nowhere."""
        counts = self.counts_SCC.sum(axis=0)
        shares: NDArray[np.float64] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return shares


def confusion(study: Studied) -> Exhibit | None:
    """None where no run kept how it answered."""
    split = study.metric.key.partition("_")[0]
    found = [answered for arm in study.arms if (answered := _answered(arm, split))]
    if not found:
        return None
    tables = [_accuracies(study, found, split), _counted(study, found)]
    return Exhibit(
        key="h-confusion",
        title="How they answered",
        note=f"Answers on the {split} split: {numbers.count(found[0].items)} items of "
        f"{len(found[0].classes)} classes.",
        pictures=[_drawn(found)],
        tables=[one for one in tables if one is not None],
    )


def _answered(arm: Arm, split: str) -> Answered | None:
    kept: list[Mapping[str, Any]] = [
        run.exhibits["confusion"] for run in arm.runs if run.counts and "confusion" in run.exhibits
    ]
    kept = [one for one in kept if split in one["splits"]]
    if not kept:
        return None
    counts = np.array([one["splits"][split] for one in kept], dtype=np.int64)
    return Answered(arm, tuple(map(str, kept[0]["classes"])), counts)


def _accuracies(study: Studied, found: list[Answered], split: str) -> Table | None:
    """An arm a row: its accuracy over the seeds, and what so many items leave open; the floors below."""
    before, unseen = f"{split}_accuracy_untrained", f"{split}-unseen_accuracy"
    columns = [
        Column("arm", number=False),
        Column("accuracy"),
        Column("95 % interval on these items"),
        Column("right"),
        *([Column("before training"), Column("its interval")] if study.has(before) else []),
        *([Column("on texts not in train")] if study.has(unseen) else []),
    ]
    items = found[0].items
    rows: list[Row | None] = [_arm_row(study, one, before, unseen) for one in found]
    known = unseen if study.has(unseen) else ""
    rows += [_floor_row(name, facts, items, len(columns), known) for name, facts in study.floors.items()]
    note = (
        f"Accuracy: mean {numbers.PLUS_MINUS} standard deviation over the seeds. The interval is Wilson's: "
        f"what {numbers.count(items)} items leave open about all items of this kind, for the mean over the "
        "seeds. Whether two arms differ is the verdict's to say: it pairs them item by item."
    )
    documents = _documents(study, split)
    if documents and documents < items:
        note += (
            f" These items are of {numbers.times(documents, 'document')}, and items of one document are "
            "alike: of new documents the interval is too narrow. The verdict pairs documents."
        )
    return table("accuracies", "Accuracy, and how sure it is", columns, rows, note)


def _documents(study: Studied, split: str) -> int:
    kept = next((run.items[split] for run in study.runs if split in run.items), None)
    return len(kept.names) if kept else 0


def _arm_row(study: Studied, one: Answered, before: str, unseen: str) -> Row:
    reached = numbers.spread((one.right_S / one.items).tolist())
    right = float(one.right_S.mean())
    row = [
        name_cell(study, one.arm),
        Cell(numbers.with_error(reached)),
        Cell(_interval(right / one.items, one.items)),
        Cell(f"{numbers.plain(right)} of {numbers.count(one.items)}"),
    ]
    if study.has(before):
        untrained = one.arm.values(before)
        row.append(Cell(numbers.with_error(untrained)))
        row.append(Cell(_interval(untrained.mean, one.items) if untrained else numbers.NOTHING))
    if study.has(unseen):
        row.append(Cell(numbers.with_error(one.arm.values(unseen))))
    return Row(tuple(row), kind_of(study, one.arm))


def _floor_row(name: str, facts: Mapping[str, Any], items: int, width: int, unseen: str) -> Row | None:
    share = facts.get("accuracy")
    if not isinstance(share, int | float):
        return None
    figures = [numbers.plain(share), _interval(share, items), f"{round(share * items)} of {items:,}"]
    rest = [""] * (width - 4)
    if unseen and isinstance(facts.get(unseen), int | float):
        rest[-1] = numbers.plain(facts[unseen])
    return Row((Cell(name, note="floor"), *cells(*figures, *rest)), "floor")


def _interval(share: float, items: int) -> str:
    found = accuracy(round(share * items), items)
    return f"{numbers.fixed(found.low, 3)} to {numbers.fixed(found.high, 3)}"


def _counted(study: Studied, found: list[Answered]) -> Table | None:
    """The picture's numbers: an arm and a true class a row, an answer a column."""
    classes = found[0].classes
    columns = [Column("arm", number=False), Column("true class", number=False)]
    columns += [Column(f"answered {name}") for name in classes]
    whole = all((one.counts_SCC == one.counts_SCC[0]).all() for one in found)
    places = 0 if whole else 1  # a mean over seeds
    rows = [
        Row(
            (Cell(one.arm.name), Cell(name), *(Cell(numbers.fixed(float(n), places)) for n in counts)),
            kind_of(study, one.arm),
        )
        for one in found
        for name, counts in zip(classes, one.counts_SCC.mean(axis=0), strict=True)
    ]
    return table("confusion", "Answers by true class, mean over the seeds", columns, rows, grouped=True)


def _drawn(found: list[Answered]) -> Picture:
    classes = list(found[0].classes)
    data = [
        {
            "arm": one.arm.name,
            "true": true,
            "answer": answer,
            "share": float(one.shares_CC[row, column]),
            "told": f"{one.arm.name}: {numbers.share(float(one.shares_CC[row, column]))} of {true} "
            f"answered {answer}",
        }
        for one in found
        for row, true in enumerate(classes)
        for column, answer in enumerate(classes)
    ]
    arms = [one.arm.name for one in found]

    def draw(frame: Frame) -> alt.TopLevelMixin:
        return finished(_matrices(frame, data, arms, classes), "Answers by true class")

    caption = (
        "A row is a true class, a column an answer; the figure is the share of the row's items, over all "
        "seeds. What is right stands on the diagonal."
    )
    right = [
        f"{one.arm.name} is right on {numbers.share(float(one.right_S.mean()) / one.items)}" for one in found
    ]
    return picture(
        "confusion-picture", "Answers by true class", caption, "; ".join(right), draw, untold(data)
    )


def _matrices(frame: Frame, data: list[dict[str, Any]], arms: list[str], classes: list[str]) -> Any:
    columns = min(len(arms), 2 if frame.narrow else 3)
    side = min(230, (frame.width - 110) // columns - 24)
    # Names may come out wider than they were measured, by about a fifth: titles keep that much further off.
    off = 6 + min(24, max(map(len, classes)))
    turned = len(classes) > 2
    below = alt.Axis(title="answer", labelAngle=-40 if turned else 0, titlePadding=off if turned else 6)
    x = alt.X("answer:N", sort=classes, axis=below)
    y = alt.Y("true:N", sort=classes, axis=alt.Axis(title="true class", titlePadding=off))
    base = alt.Chart()
    # One colour, more or less of it: the page can exchange it, and what is written on it, on a dark screen.
    squares = base.mark_rect(stroke=palette.FAINT, strokeWidth=1, fill=palette.WORDS["better"]).encode(
        x=x,
        y=y,
        fillOpacity=alt.FillOpacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0, 1]), legend=None),
        description="told:N",
    )
    layers = [squares]
    if len(classes) <= _MOST:
        ink = alt.condition("datum.share > 0.55", alt.value(palette.PAPER), alt.value(palette.INK))
        layers.append(
            base.mark_text(fontSize=10 if frame.narrow else 11, aria=False).encode(
                x=x, y=y, text=alt.Text("share:Q", format=".0%"), color=ink
            )
        )
    facet = alt.Facet("arm:N", sort=arms, header=alt.Header(title=None))
    panels = alt.layer(*layers).properties(width=side, height=side)
    return panels.facet(facet=facet, columns=columns, spacing=18, data=frame.data(data))
