"""What decoding strategies wrote: figures with intervals over the prompts, and texts side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from scipy import stats

from attnlab.report import numbers
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.studied import Arm, Run, Studied
from attnlab.report.tables.arms import kind_of, name_cell
from attnlab.report.tables.table import Cell, Column, Row, Table, cells, table

_KEY = "decoding"
_PERPLEXITIES = ("model_loss", "second_loss")
_TABLES: Mapping[str, Mapping[str, str]] = {
    "How probable the texts are, how long, and how fast they came": {
        "model_loss": "perplexity under the model",
        "second_loss": "under the second model",
        "length": "tokens",
        "tokens_per_second": "tokens/s",
    },
    "How varied they are, and how often they repeat themselves": {
        "distinct_1": "distinct-1",
        "distinct_2": "distinct-2",
        "distinct_3": "distinct-3",
        "repetition": "repeated 4-grams",
        "self_bleu": "self-BLEU",
    },
}
_NOTES = (
    "Perplexities are those of the plain distribution, whatever was drawn from. A low one is not yet a good "
    "text: saying one thing over and over has the lowest. A strategy in which chance has no part writes one "
    "text at a time, the others as many as were asked for, which is faster per token.",
    "Words are counted, in lower case: distinct-n is the share of different n-grams among all continuations "
    "of a prompt; repeated 4-grams are those that stood in the same text before; self-BLEU (0 to 100) is how "
    "alike the continuations are. Where chance has no part, all continuations of a prompt are one text.",
)


def decoding(study: Studied) -> Exhibit | None:
    """None unless some run kept what it wrote."""
    arms = [arm for arm in study.arms if first_run(arm) is not None]
    if not arms:
        return None
    recipes = "; ".join(f"{arm.name}: {kept_by(arm)['does']}" for arm in arms)
    return Exhibit(
        key="h-decoding",
        title="What was written",
        note=f"What each strategy does, in its order. {recipes}.",
        tables=[one for one in _measured(study, arms) if one is not None],
        markup=_side_by_side(arms),
    )


def first_run(arm: Arm) -> Run | None:
    return next((run for run in arm.runs if run.counts and _KEY in run.exhibits), None)


def kept_by(arm: Arm) -> Mapping[str, Any]:
    run = first_run(arm)
    assert run is not None  # only such arms are asked
    kept: Mapping[str, Any] = run.exhibits[_KEY]
    return kept


def _measured(study: Studied, arms: Sequence[Arm]) -> Iterator[Table | None]:
    """An arm a row; below, what could be measured of how the held-out texts themselves go on."""
    people = _of_people(arms)
    prompts = len(_by_prompt(arms[0], "length"))
    how = (
        f"Mean over {numbers.times(prompts, 'prompt')}, each the mean over the seeds, with the 95 % interval "
        "that so many prompts leave (Student's t; of a perplexity, on the loss). "
    )
    for place, (caption, measures) in enumerate(_TABLES.items()):
        columns = [Column("strategy", number=False), *map(Column, measures.values())]
        rows = [
            Row(
                (name_cell(study, arm), *cells(*(_interval(m, _by_prompt(arm, m)) for m in measures))),
                kind_of(study, arm),
            )
            for arm in arms
        ]
        if any(people.get(measure) for measure in measures):
            figures = (_interval(measure, people.get(measure, [])) for measure in measures)
            rows.append(Row((Cell("the held-out text itself"), *cells(*figures)), "floor"))
        yield table(f"decoding-{place + 1}", caption, columns, rows, how + _NOTES[place])


def _of_people(arms: Sequence[Arm]) -> Mapping[str, list[float]]:
    """What every arm measured alike: a model of its own finds the same texts otherwise probable."""
    first, *others = (kept_by(arm)["people"] for arm in arms)
    return {
        measure: values
        for measure, values in first.items()
        if all(len(o[measure]) == len(values) and np.allclose(o[measure], values) for o in others)
    }


def _by_prompt(arm: Arm, measure: str) -> list[float]:
    """A prompt's value is the mean over the seeds."""
    kept = [run.items["prompts"][measure] for run in arm.runs if run.counts and "prompts" in run.items]
    return [float(value) for value in np.mean(kept, axis=0)]


def _interval(measure: str, values: Sequence[float]) -> str:
    if not values:
        return numbers.NOTHING
    mean = float(np.mean(values))
    half = 0.0
    if len(values) > 1:
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
        half = float(stats.t.ppf(0.975, len(values) - 1)) * error
    shown = [mean, mean - half, mean + half]
    if measure in _PERPLEXITIES:
        shown = [math.exp(min(value, 700.0)) for value in shown]
    places = numbers.decimals_for(half) if half else numbers.decimals_of(mean, 3)
    if measure in _PERPLEXITIES:
        places = numbers.decimals_of(shown[0], 3)
    middle, low, high = (numbers.fixed(value, places) for value in shown)
    return f"{middle} [{low}, {high}]" if len(values) > 1 else middle


_COLUMN = Markup(
    '<div class="written"><p><strong>{name}</strong> <span class="note">seed {seed}{same}</span></p>'
    "<ol>{texts}</ol></div>"
)
_TEXT = Markup("<li>{text}{end}</li>")
_PROMPT = Markup(
    '<details class="more"{open}><summary>All strategies after “{prompt}”</summary>'
    '<div class="side-by-side" role="group" tabindex="0" aria-label="What follows {prompt}, side by side">'
    "{columns}</div></details>"
)


def _side_by_side(arms: Sequence[Arm]) -> Markup:
    """A column a strategy, for every prompt that is shown."""
    prompts = [one["prompt"] for one in kept_by(arms[0])["continuations"]]
    made = [
        _PROMPT.format(
            open=Markup(" open") if not place else "",
            prompt=prompt,
            columns=Markup("").join(column for arm in arms if (column := _column(arm, prompt))),
        )
        for place, prompt in enumerate(prompts)
    ]
    return Markup("").join(made)


def _column(arm: Arm, prompt: str) -> Markup | None:
    """None where the arm did not keep what it wrote after this prompt."""
    run, kept = first_run(arm), kept_by(arm)
    texts = next((one["texts"] for one in kept["continuations"] if one["prompt"] == prompt), None)
    if texts is None:
        return None
    same = ""
    if not kept["draws"]:
        same, texts = f"; chance has no part: all {len(texts)} are this one", texts[:1]
    shown = (
        _TEXT.format(text=" ".join(one["text"].split()) or "(nothing)", end="" if one["ended"] else " …")
        for one in texts
    )
    return _COLUMN.format(
        name=arm.name, seed=run.seed if run else "", same=same, texts=Markup("").join(shown)
    )
