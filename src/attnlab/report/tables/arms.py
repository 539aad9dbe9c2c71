"""The table of arms: what each reached, how far its seeds scatter, and what it cost."""

from __future__ import annotations

from collections.abc import Callable

from attnlab.report import many, numbers
from attnlab.report.names import label, shown
from attnlab.report.studied import Arm, Run, Studied
from attnlab.report.tables.table import Cell, Column, Row, RowKind, Table, badge, cells, table

_COST = ("seconds", "peak_memory_mb", "tokens_per_second")
_ABOUT_THE_FUTURE = ("prefix_perplexity", "ordinary_perplexity", "prefix_loss", "ordinary_loss")


def arms_table(study: Studied) -> Table | None:
    """An arm a row at a glance, the floors below on the same split."""
    measures = _measures(study)[:2]
    columns = [
        Column("arm", number=False),
        Column("verdict", number=False),
        Column(f"difference in {study.metric.title}"),
        Column("runs"),
        *(Column(label(key), detail=place) for place, key in enumerate(measures)),
        Column("time per run", detail=2),
        Column("tokens/s", detail=4),
        Column("parameters", detail=3),
    ]
    rows = [_arm_row(study, arm, measures) for arm in study.arms]
    floors = [_floor_row(name, facts, measures, len(columns)) for name, facts in study.floors.items()]
    note = f"Mean {numbers.PLUS_MINUS} standard deviation over the runs. A difference is the arm less the "
    note += "baseline, paired by seed, with the interval it may really lie in."
    note += " A floor is what a simple method reaches on the same test split." if floors else ""
    if any(not arm.ranked for arm in study.arms):
        note += " The figures of an invalid arm do not mean what the others' mean."
    return table("arms", "What each arm reached, and what it cost", columns, [*rows, *floors], note)


def measures_table(study: Studied) -> Table | None:
    """Everything the runs measured, an arm a row."""
    measures = [*_measures(study), *(["peak_memory_mb"] if study.has("peak_memory_mb") else [])]
    columns = [Column("arm", number=False), *(Column(label(key)) for key in measures)]
    rows = [
        Row(
            (name_cell(study, arm), *(Cell(shown(key, arm.values(key))) for key in measures)),
            kind_of(study, arm),
        )
        for arm in study.arms
    ]
    note = f"Mean {numbers.PLUS_MINUS} standard deviation over the seeds."
    return table("measures", "Everything that was measured", columns, rows, note)


def lengths_table(study: Studied) -> Table | None:
    """The test loss in blocks of every length, an arm a row: apart, as a length a column is wide enough."""
    known = study.by_length()
    columns = [Column("arm", number=False), *(Column(numbers.count(length)) for length in known)]
    rows = [
        Row(
            (name_cell(study, arm), *(Cell(shown(key, arm.values(key))) for key in known.values())),
            kind_of(study, arm),
        )
        for arm in study.arms
    ]
    note = (
        f"Test loss, mean {numbers.PLUS_MINUS} standard deviation over the seeds, by the tokens in a block."
    )
    if any(key not in run.metrics for run in study.runs if run.counts for key in known.values()):
        note += " An arm has no figure at lengths beyond the last position it knows."
    return table("measures-by-length", "Everything that was measured, by length", columns, rows, note)


def _measures(study: Studied) -> list[str]:
    """The metric first; then the perplexity of its split, where there is one; then the rest."""
    elsewhere = {*_COST, *_ABOUT_THE_FUTURE, *study.by_length().values()} - {study.metric.key}
    kept = [key for key in study.metric_keys() if key not in elsewhere]
    key = study.metric.key
    near = key.removesuffix("_loss") + "_perplexity"
    return sorted(kept, key=lambda one: (one != key, one != near, kept.index(one)))


def kind_of(study: Studied, arm: Arm) -> RowKind:
    known: dict[str, RowKind] = {
        "invalid": "invalid",
        "diverged": "diverged",
        "failed": "failed",
        "waiting": "waiting",
        "undecided": "undecided",
    }
    return known.get(arm.word, "baseline" if arm.name == study.baseline else "")


def name_cell(study: Studied, arm: Arm) -> Cell:
    return Cell(arm.name, note="baseline" if arm.name == study.baseline else "")


def _arm_row(study: Studied, arm: Arm, measures: list[str]) -> Row:
    verdict = arm.verdict or {}
    word = Cell(arm.word, badge=bool(arm.word), note="preliminary" if verdict.get("preliminary") else "")
    difference = numbers.NOTHING
    if arm.verdict and arm.ranked:
        difference = numbers.interval(verdict.get("effect"), verdict.get("ci") or (None, None))
    return Row(
        (
            name_cell(study, arm),
            word,
            Cell(difference),
            Cell(_finished(arm) if _uneven(study) else ""),
            *(Cell(shown(key, arm.values(key))) for key in measures),
            Cell(numbers.duration(arm.seconds.mean) if arm.seconds else numbers.NOTHING),
            Cell(numbers.count(arm.tokens_per_second.mean) if arm.tokens_per_second else numbers.NOTHING),
            Cell(numbers.count(arm.parameters) if arm.parameters is not None else numbers.NOTHING),
        ),
        kind_of(study, arm),
    )


def _uneven(study: Studied) -> bool:
    """Whether the number of finished runs is worth a column: it is not the same for all."""
    return len({_finished(arm) for arm in study.arms}) > 1 or study.done < len(study.runs)


def _finished(arm: Arm) -> str:
    ended = sum(run.counts for run in arm.runs)
    return f"{ended}" if ended == len(arm.runs) else f"{ended} of {len(arm.runs)}"


def _floor_row(name: str, facts: object, measures: list[str], width: int) -> Row:
    known = facts if isinstance(facts, dict) else {}
    split = str(known.get("split", "test"))
    by_key = {f"{split}_{what}": value for what, value in known.items() if isinstance(value, int | float)}
    figures = [Cell(numbers.plain(by_key[key]) if key in by_key else "") for key in measures]
    before = (Cell(name, note="floor"), *cells("", "", ""))
    return Row((*before, *figures, *cells(*[""] * (width - len(before) - len(figures)))), "floor")


def runs_table(study: Studied) -> Table | None:
    """A run a row, with everything it measured: what the means above are made of."""
    keys = [key for key in study.metric_keys() if key not in _COST]
    columns = [
        Column("arm", number=False),
        Column("seed"),
        Column("status", number=False),
        *(Column(label(key)) for key in keys),
        Column("steps"),
        Column("time"),
        Column("tokens/s"),
        Column("peak memory"),
        Column("reason", number=False),
    ]
    shown = many.runs(study)
    rows = [_run_row(run, keys) for run in shown]
    if len(shown) == len(study.runs):
        return table("runs", "Every run", columns, rows, grouped=True)
    note = f"Of {numbers.count(len(study.runs))}: the first of each arm, and the first that ended badly."
    return table("runs", "Some of the runs", columns, rows, note, grouped=True)


def _run_row(run: Run, keys: list[str]) -> Row:
    def figure(value: float | None, form: Callable[[float], str] = numbers.plain) -> Cell:
        return Cell(form(value) if value is not None else numbers.NOTHING)

    memory = run.metrics.get("peak_memory_mb")
    return Row(
        (
            Cell(run.arm),
            Cell(str(run.seed)),
            badge(run.status),
            *(figure(run.metrics.get(key)) for key in keys),
            figure(run.steps, numbers.count),
            figure(run.seconds, numbers.duration),
            figure(run.tokens_per_second, numbers.count),
            Cell(f"{numbers.count(memory)} MB" if memory is not None else numbers.NOTHING),
            Cell(run.reason),
        ),
        run.status if run.status in ("invalid", "diverged", "failed", "waiting") else "",  # type: ignore[arg-type]
    )


def future_table(study: Studied) -> Table | None:
    """Each arm's ordinary perplexity beside the one it has when it is fed only the prefix."""
    rows = [_future_row(study, arm) for arm in study.arms]
    columns = [
        Column("arm", number=False),
        Column("fed the whole text"),
        Column("fed only the prefix"),
        Column("prefix / whole"),
    ]
    note = (
        "Perplexity on the same sample of positions, figured in two ways. Where they differ, the model uses "
        "words it is asked to predict, and its ordinary figure is not a perplexity."
    )
    return table("future", "With and without the future", columns, rows, note)


def _future_row(study: Studied, arm: Arm) -> Row | None:
    ordinary, prefix = arm.values("ordinary_perplexity"), arm.values("prefix_perplexity")
    if ordinary is None or prefix is None:
        return None
    texts = [numbers.with_error(ordinary), numbers.with_error(prefix)]
    return Row(
        (name_cell(study, arm), *cells(*texts, numbers.ratio(prefix.mean / ordinary.mean))),
        kind_of(study, arm),
    )
