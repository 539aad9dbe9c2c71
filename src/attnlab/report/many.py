"""What a page shows of a study of very many runs, or of very many arms.

Figures, intervals and verdicts are always of every run of every arm. What is told of a single run (its curve,
its mark in a picture, its texts, the evidence of its checks) is told of the first seeds of each arm, and
pictures hold the best arms: ten thousand curves could neither be drawn nor read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from attnlab.report import numbers
from attnlab.report.names import quoted

if TYPE_CHECKING:
    from attnlab.report.studied import Arm, Run, Studied

MANY_RUNS = 400  # beyond so many, not all are shown one by one
RUNS = 200  # but about so many, over all arms
ARMS = 40  # in a picture
ROWS = 200  # of a table that is not folded away
LISTED = 20  # names or seeds in one line


def seeds_alone(arms: int, runs: int) -> int:
    """How many runs of each arm are shown one by one: all, unless they are very many."""
    return runs if runs <= MANY_RUNS else max(1, RUNS // arms)


def pictured(study: Studied) -> Studied:
    """The study with the arms that pictures hold: the baseline and the best, in the order declared."""
    if len(study.arms) <= ARMS:
        return study
    sign = 1 if study.metric.lower_is_better else -1

    def place(arm: Arm) -> tuple[bool, bool, float]:
        reached = arm.values(study.metric.key) if arm.ranked else None
        return arm.name != study.baseline, reached is None, sign * reached.mean if reached else 0.0

    kept = {arm.name for arm in sorted(study.arms, key=place)[:ARMS]}
    return replace(study, arms=tuple(arm for arm in study.arms if arm.name in kept))


def runs(study: Studied) -> list[Run]:
    """Those that a table shows one by one: of very many, the first of each arm, and the first that ended
    badly."""
    badly = [run for run in study.runs if run.done and run.status != "ok" and not run.alone][:RUNS]
    kept = {(run.arm, run.seed) for run in badly}
    return [run for run in study.runs if run.alone or (run.arm, run.seed) in kept]


def note(study: Studied) -> str:
    """What the page leaves out, and where it is."""
    said = []
    if any(not run.alone for run in study.runs):
        most = max(len(arm.alone) for arm in study.arms)
        of = "the first seed" if most == 1 else f"the first {numbers.count(most)} seeds"
        said.append(
            f"Curves, marks, texts and whatever else is told of a single run are of {of} of each arm; "
            f"figures, intervals and verdicts are of all {numbers.times(study.done, 'run')}."
        )
    if len(study.arms) > ARMS:
        said.append(
            f"Pictures and texts are of {quoted(study.baseline)} and the {ARMS - 1} arms with the best "
            f"{study.metric.title}, of {numbers.count(len(study.arms))}."
        )
    return " ".join([*said, "results.json in the study's directory holds every run."]) if said else ""


def some(told: Sequence[str], what: str) -> list[str]:
    """The first of very many, and how many more of what there are."""
    if len(told) <= ARMS:
        return list(told)
    return [*told[:LISTED], f"and {numbers.count(len(told) - LISTED)} {what}"]


def seeds(which: Iterable[int]) -> list[str]:
    """Seeds to list: one by one while they are few, from-to where they are many."""
    known = sorted(which)
    if len(known) <= LISTED:
        return [str(seed) for seed in known]
    ranges: list[list[int]] = []
    for seed in known:
        if ranges and seed == ranges[-1][-1] + 1:
            ranges[-1][1:] = [seed]
        else:
            ranges.append([seed])
    return some([" to ".join(map(str, ends)) for ends in ranges], "further stretches")
