"""Measure how often each word of a verdict is wrong, and how often it is said when it is right.

    python benchmarks/calibrate.py [--trials 10000] [--out docs]

Writes docs/calibration.md and docs/calibration.svg. Ends with 1 if a cell of the grid errs beyond 5 %
by more than the simulation's own error can explain.

Shapes: T studies (trials), A arms beside the baseline, S seeds, N documents.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np
from numpy.typing import NDArray

from attnlab.verdict import Plan
from attnlab.verdict.classification import mcnemar
from attnlab.verdict.crossed import Crossed, crossed_error
from attnlab.verdict.decision import decide
from attnlab.verdict.rivals import WAYS
from attnlab.verdict.simulation import LARGE_MARGIN, SHAPES, Cell, Studies, World, chunks, measure

Array = NDArray[np.float64]

PLAN = Plan()
CORRELATIONS = (0.0, 0.3, 0.5, 0.8)
DOCUMENT_EFFECTS = (0.0, 0.5, 1.0, 2.0, 3.0, 6.0)
ARMS = (1, 2, 3, 4)  # beside the baseline
EFFECTS = (0.0, 1.0, 2.0)
ALLOWED = 0.05
SHOWN = ((0.0, 0.0), (0.8, 0.0), (0.8, 3.0))  # worlds whose power is drawn
SEEDS = PLAN.looks[-1]


def standard_error(trials: int) -> float:
    """How exactly so many studies measure a share of 5 %."""
    return float(np.sqrt(ALLOWED * (1 - ALLOWED) / trials))


def beyond_error(share: float, trials: int) -> bool:
    """Whether a share is above 5 % by more than three standard errors of the simulation."""
    return share > ALLOWED + 3 * standard_error(trials)


def grid(trials: int) -> list[Cell]:
    """False better or worse with no difference, and false equivalent at the margin, over all looks."""
    worlds = list(itertools.product(SHAPES, CORRELATIONS, DOCUMENT_EFFECTS))
    cells = []
    for place, (shape, correlation, document_effect) in enumerate(worlds):
        world = World(shape=shape, correlation=correlation, document_effect=document_effect)
        cells.append(measure(world, PLAN, trials=trials, arms=ARMS, seed=place))
        print(f"\r{place + 1} of {len(worlds)} worlds", end="", file=sys.stderr)
    print(file=sys.stderr)
    return cells


def once_more(cells: list[Cell], trials: int) -> list[Cell]:
    """The worlds with a cell above 5 % by more than one standard error, with four times the studies.

    Of 768 cells some are above by chance. Fresh random numbers tell these from those that truly are.
    """
    suspects = [cell.world for cell in cells if max(cell.shares) > ALLOWED + standard_error(trials)]
    return [
        measure(world, PLAN, trials=4 * trials, arms=ARMS, seed=5000 + place)
        for place, world in enumerate(suspects)
    ]


@dataclass(frozen=True)
class Power:
    """How often one way calls a difference in one world, by the true effect in seed deviations."""

    way: str
    world: World
    called: dict[float, float]


def powers(trials: int) -> list[Power]:
    found = []
    for correlation, document_effect in itertools.product((0.0, 0.5, 0.8), (0.0, 1.0, 3.0, 6.0)):
        world = World(correlation=correlation, document_effect=document_effect)
        called: dict[tuple[str, float], float] = defaultdict(float)
        for rng, portion in chunks(trials, 1000):
            runs = world.runs(rng, portion, 1, SEEDS)
            for effect in EFFECTS:
                moved = np.concatenate([runs[:, :1], runs[:, 1:] - effect], axis=1)
                for name, way in WAYS.items():
                    called[name, effect] += float(way(moved).sum()) / trials
        found += [Power(name, world, {effect: called[name, effect] for effect in EFFECTS}) for name in WAYS]
    return found


def satterthwaite(crossed: Crossed) -> Array:
    """The usual degrees of freedom, by squared shares of variance: what the procedure began with."""
    spread = (
        crossed.seed_variance**2 / crossed.seed_dof
        + crossed.document_variance**2 / crossed.document_dof
        + crossed.rest_variance**2 / (crossed.seed_dof * crossed.document_dof)
    )
    return np.asarray(np.maximum(crossed.variance**2 / spread, crossed.seed_dof))


def began_with(trials: int) -> list[tuple[World, dict[int, float]]]:
    """The grid's normal worlds with Satterthwaite's degrees of freedom, for 2 and 5 arms."""
    found = []
    for correlation, document_effect in itertools.product((0.0, 0.5, 0.8), (0.0, 1.0, 2.0, 6.0)):
        world = World(correlation=correlation, document_effect=document_effect)
        wrong: dict[int, float] = defaultdict(float)
        for rng, portion in chunks(trials, 2000):
            studies = Studies.read(world.differences(rng, portion, 4, SEEDS), PLAN.looks)
            for arms in (1, 4):
                called = np.zeros(portion, dtype=bool)
                for look, crossed in zip(studies.looks, studies.crossed, strict=True):
                    effect, error = crossed.effect[:, :arms], np.sqrt(crossed.variance[:, :arms])
                    dof = satterthwaite(crossed)[:, :arms]
                    decision = decide(effect, error, dof, margin=0, look=look, plan=PLAN)
                    called |= (decision.code != 0).any(axis=1)
                wrong[arms] += float(called.sum()) / trials
        found.append((world, dict(wrong)))
    return found


def beyond_the_grid(trials: int) -> list[tuple[str, float, float]]:
    """Uses the grid does not hold: the share of wrong better or worse, and of wrong equivalent."""
    mixed = World(correlation=0.5, document_effect=2.0)
    lengths_N = np.random.default_rng(1).lognormal(0, 1, mixed.documents)
    cases: list[tuple[str, World, tuple[int, ...], Array | None, list[float] | None]] = [
        ("acting on a preliminary 3 seeds too", World(), (3, *PLAN.looks), None, None),
        ("only a preliminary 3 seeds", World(), (3,), None, None),
        ("going on to 20 seeds after 12", World(), (*PLAN.looks, 20), None, None),
        ("weighted by tokens, lengths very unequal", mixed, PLAN.looks, lengths_N / lengths_N.sum(), None),
        ("one of four arms differs; the other three", mixed, PLAN.looks, None, [9.0, 0.0, 0.0, 0.0]),
    ]
    for documents, shape in itertools.product((3, 10, 30, 60), SHAPES):
        few = World(shape=shape, correlation=0.8, document_effect=6.0, documents=documents)
        cases.append((f"{documents} documents that differ much, {shape}", few, PLAN.looks, None, None))
    found = []
    for place, (name, world, looks, weights_N, effects) in enumerate(cases):
        differs = small = 0.0
        arms = 1 if effects is None else len(effects)
        for rng, portion in chunks(trials, 3000 + place):
            table = world.differences(rng, portion, arms, max(looks))
            studies = Studies.read(table, looks, weights_N)
            codes = studies.judged(PLAN, effect=effects or 0.0).codes
            alike = slice(None) if effects is None else slice(1, None)
            differs += float((codes[..., alike] != 0).any(axis=(0, 2)).sum()) / trials
            inside = studies.judged(PLAN, margin=LARGE_MARGIN, effect=LARGE_MARGIN).inside
            small += float(inside.any(axis=(0, 2)).sum()) / trials
        found.append((name, differs, small))
    return found


def right_or_wrong(trials: int) -> list[tuple[int, float, float]]:
    """Classifiers of equal skill: false calls by judging all seeds, and by McNemar on one run each.

    Each arm finds other items hard; on average over all items they are equally good.
    """
    found = []
    for items in (10, 100, 1000):
        judged = single = 0
        total = min(trials, 2000)
        for rng, portion in chunks(total, 4000 + items):
            skill_TA1N = rng.beta(2, 1, (portion, 2, 1, items))
            right = (rng.random((portion, 2, SEEDS, items)) < skill_TA1N).astype(np.float64)
            difference = right[:, 1:] - right[:, :1]
            called = np.zeros(portion, dtype=bool)
            for look in PLAN.looks:
                crossed = crossed_error(difference[:, :, :look], np.full(items, 1 / items))
                error = np.sqrt(np.maximum(crossed.variance, 1 / items**2))
                decision = decide(crossed.effect, error, crossed.dof, margin=0, look=look, plan=PLAN)
                called |= (decision.code != 0).any(axis=1)
            judged += int(called.sum())
            single += sum(mcnemar(pair[0, 0], pair[1, 0]).p <= ALLOWED for pair in right)
        found.append((items, judged / total, single / total))
    return found


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def grid_table(cells: list[Cell], trials: int) -> str:
    def shown(share: float) -> str:
        return f"**{percent(share)}**" if beyond_error(share, trials) else percent(share)

    head = ["noise", "r", "document effect", *(f"{arms + 1} arms" for arms in ARMS)]
    head += [f"= {arms + 1} arms" for arms in ARMS]
    rows = [
        [cell.world.shape, f"{cell.world.correlation:g}", f"{cell.world.document_effect:g}"]
        + [shown(cell.differs[arms]) for arms in ARMS]
        + [shown(cell.small[arms]) for arms in ARMS]
        for cell in cells
    ]
    return table(head, rows)


def power_table(found: list[Power]) -> str:
    head = ["r", "document effect", "way", "false", "power at 1", "power at 2"]
    rows = [
        [f"{p.world.correlation:g}", f"{p.world.document_effect:g}", p.way, *map(percent, p.called.values())]
        for p in found
    ]
    return table(head, rows)


def mean_of(shares: list[float]) -> float:
    return sum(shares) / len(shares)


def truly_above(again: list[Cell], trials: int) -> str:
    """What remains above 5 % when measured once more, in words."""
    found = [
        f"{word} with {cell.world.shape} noise, r = {cell.world.correlation:g}, document effect "
        f"{cell.world.document_effect:g} and {arms + 1} arms ({percent(share)} %)"
        for cell in again
        for word, by_arms in (("*better* or *worse*", cell.differs), ("*equivalent*", cell.small))
        for arms, share in by_arms.items()
        if beyond_error(share, trials)
    ]
    return "; ".join(found) or "none"


def summary(cells: list[Cell], again: list[Cell], trials: int) -> str:
    shares = [(share, cell.world, arms) for cell in cells for arms, share in cell.differs.items()]
    worst, world, arms = max(shares, key=lambda entry: entry[0])
    smalls = [share for cell in cells for share in cell.small.values()]
    differs = [share for share, _, _ in shares]
    over = sum(beyond_error(share, trials) for share in differs + smalls)
    return (
        f"{len(shares)} cells of {trials:,} studies each, so that 5 % is known to "
        f"±{100 * standard_error(trials):.2f} (one standard error).\n\n"
        f"- A wrong *better* or *worse* anywhere in the table of a study, over all looks: at most "
        f"{percent(worst)} % ({world.shape}, r = {world.correlation:g}, document effect "
        f"{world.document_effect:g}, {arms + 1} arms), on average {percent(mean_of(differs))} %.\n"
        f"- A wrong *equivalent*, with the true difference at the margin: at most "
        f"{percent(max(smalls))} %, on average {percent(mean_of(smalls))} %.\n"
        f"- Cells above 5 % by more than three standard errors (bold below): {over}.\n"
        f"- Measured once more with {4 * trials:,} studies, truly above: {truly_above(again, 4 * trials)}.\n"
    )


PAGE = """# Calibration: how often a verdict is wrong

Made by `python benchmarks/calibrate.py` (`make calibrate`) in {minutes:.1f} minutes with one process; the
random numbers have fixed seeds, so the figures come out the same again. How a verdict comes about:
[verdicts.md](verdicts.md).

![False verdicts over the grid, and power beside other ways](calibration.svg)

## In short

{summary}
## What was simulated

One unit is a *seed deviation*: how far a run's mean loss moves with its seed. Studies have 100 documents
and looks at 5, 8 and 12 seeds. *r* is the correlation of the seed effects of an arm and its baseline.
The *document effect* is the deviation of how much more an arm suits one document than another. Each
document of each run has a deviation of 1 of its own. *Heavy tails* are Student's t with 3 degrees of
freedom, *outliers* put one value in twenty ten times as far out, *skewed* is exponential; each is
applied to seeds, documents and the rest, and scaled to the same variance.

## The grid: percent of studies with a wrong word

No arm differs from the baseline in the first columns, and a study counts as wrong if any arm is called
better or worse at any look. In the columns with `=` every arm differs by exactly the margin, and a study
counts as wrong if any difference is found to be smaller.

{grid}

Of so many cells some are above 5 % by chance. Each world with a cell more than one standard error above
was simulated once more, with fresh random numbers and {more} studies:

{again}

## What was changed, and why

The procedure began with Satterthwaite's degrees of freedom, which weigh the seeds' and the documents' by
the squares of their shares of variance. At the strict levels that looks and several arms ask for, that
is too bold where few seeds meet many documents. Percent of wrong studies, for the same worlds:

{began}

Now the inverse degrees of freedom are weighed by the shares themselves, which gives the grid above and
costs little where one of the two dominates. Below five documents the lesser of the two counts alone.
Mixing the quantiles instead (Cochran and Cox) is a little stricter still, and has no closed form for p.

## Power beside other ways

Percent of studies in which two arms are called different: with no difference (false), and with the arm
better by one and by two seed deviations. Normal noise. A way that errs often cannot claim its power.

{power}

## Beyond the grid

One arm, unless it says otherwise; normal noise, r = 0 and no document effect, unless it says otherwise.
The last cases hold document effects of 6 seed deviations at r = 0.8, so that documents are nearly all of
the error.

{beyond}

A look outside the plan is judged at a tenth of the level. Acting on it as well adds what the first and
third row show. Few documents whose effects have a long tail to one side are where the procedure breaks:
a mean of ten such numbers is too seldom near the true one. Verdicts on fewer than 100 documents say that
they rest on few.

## Right and wrong answers

Two classifiers that are equally good, each with items of its own that it finds hard: percent called
different by the seed-and-document error over the looks, and by McNemar's exact test on one run each.

{answers}
"""


def write_page(out: Path, trials: int) -> bool:
    began = time.monotonic()
    cells = grid(trials)
    again = once_more(cells, trials)
    found = powers(trials)
    before = began_with(trials)
    outside = beyond_the_grid(trials)
    answers = right_or_wrong(trials)
    before_rows = [
        [f"{world.correlation:g}", f"{world.document_effect:g}", percent(wrong[1]), percent(wrong[4])]
        for world, wrong in before
    ]
    page = PAGE.format(
        minutes=(time.monotonic() - began) / 60,
        summary=summary(cells, again, trials),
        grid=grid_table(cells, trials),
        again=grid_table(again, 4 * trials),
        more=f"{4 * trials:,}",
        began=table(["r", "document effect", "2 arms", "5 arms"], before_rows),
        power=power_table(found),
        beyond=table(
            ["case", "wrong better or worse", "wrong equivalent"],
            [[name, percent(differs), percent(small)] for name, differs, small in outside],
        ),
        answers=table(
            ["items", "12 seeds, three looks", "one run each, McNemar"],
            [[f"{items:,}", percent(judged), percent(single)] for items, judged, single in answers],
        ),
    )
    out.mkdir(parents=True, exist_ok=True)
    (out / "calibration.md").write_text(page, encoding="utf-8")
    picture(cells, found).save(str(out / "calibration.svg"))
    print(summary(cells, again, trials))
    held = [not beyond_error(share, trials) for cell in cells for share in cell.shares]
    return all(held) and not any(beyond_error(s, 4 * trials) for cell in again for s in cell.differs.values())


def picture(cells: list[Cell], found: list[Power]) -> alt.VConcatChart:
    """Above: every cell of the grid against 5 %. Below: false calls and power of each way."""
    points = [
        {"noise": c.world.shape, "r": f"{c.world.correlation:g}", "effect": c.world.document_effect,
         "arms": f"{arms + 1} arms", "share": c.differs[arms]}
        for c in cells for arms in (1, 4)
    ]  # fmt: skip
    base = alt.Chart(alt.InlineData(values=points))
    axis = alt.Axis(format=".0%")
    lines = base.mark_line(point=True).encode(
        x=alt.X("effect:Q", title="document effect (seed deviations)"),
        y=alt.Y("share:Q", title="wrong better or worse", axis=axis, scale=alt.Scale(domain=[0, 0.1])),
        color=alt.Color("r:N", title="seed correlation"),
        strokeDash=alt.StrokeDash("arms:N", title="arms in the study"),
    )
    rule = base.mark_rule(color="black", strokeWidth=1).encode(y=alt.datum(ALLOWED))
    above = (
        alt.layer(lines, rule)
        .properties(width=190, height=180)
        .facet(column=alt.Column("noise:N", title=None))
    )
    named = {0.0: "no difference (false calls)", 1.0: "1 seed deviation", 2.0: "2 seed deviations"}
    bars = [
        {"way": p.way, "world": f"r {p.world.correlation:g}, document effect {p.world.document_effect:g}",
         "effect": named[effect], "share": share}
        for p in found if (p.world.correlation, p.world.document_effect) in SHOWN
        for effect, share in p.called.items()
    ]  # fmt: skip
    below = (
        alt.Chart(alt.InlineData(values=bars))
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title="called different", axis=axis, scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("way:N", title=None, sort=list(WAYS)),
            color=alt.Color("effect:N", title="true difference", sort=list(named.values())),
            yOffset=alt.YOffset("effect:N", sort=list(named.values())),
        )
        .properties(width=230, height=260)
        .facet(column=alt.Column("world:N", title=None))
    )
    return alt.vconcat(above, below).resolve_scale(color="independent")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=10_000, help="studies a cell (at least 2,000)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs")
    arguments = parser.parse_args()
    if arguments.trials < 2000:
        parser.error(f"--trials must be at least 2000, not {arguments.trials}")
    return 0 if write_page(arguments.out, arguments.trials) else 1


if __name__ == "__main__":
    sys.exit(main())
