"""Real runs through the verdicts: differences that do not exist, and ones that do.

Thirty A/A studies: a tiny model on the embedded corpus against itself with other seeds, five seeds a side, so
every "better" or "worse" is false. Then arms whose difference is real: the learning rate halved, the position
scheme removed, a head taken away, all paired with the baseline by seed. Eighty steps are too few for learned
positions to be of use; what ALiBi is worth shows sooner, and is taken away from a model trained for longer.

    python -m benchmarks.same_and_different [--runs attnlab-runs/same-and-different] [--out docs]

Writes docs/real-runs.md. Run again, it goes on with the runs that are there.

Shapes: R runs, T studies drawn from them, A arms beside the baseline, S seeds, N documents.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import attnlab
from attnlab.cli.progress import watching
from attnlab.corpus import Sotu
from attnlab.study import Arm, LanguageModel, Study, open_study
from attnlab.study.kinds.language_model import Measure
from attnlab.study.store import Cell
from attnlab.training import AdamW, Training
from attnlab.verdict import Plan, judge
from attnlab.verdict.simulation import Studies

Array = NDArray[np.float64]

STUDIES, SEEDS = 30, 5
DRAWS = 20_000
MARGIN = 0.01
PLAN = Plan()
TINY = LanguageModel(
    corpus=Sotu(addresses=40, test_share=0.4),
    model=attnlab.Decoder(layers=2, heads=2, width=16, context=40),
    training=Training(steps=80, batch=16, optimizer=AdamW(learning_rate=5e-3), evaluations=1),
    measure=Measure(sentences=(), samples=0, prefix_tokens=200, curve_tokens=500, train_tokens=500),
)
SAME = Study(
    name="same", question="Is it itself?", setup=TINY, arms=(Arm(name="it"),), seeds=2 * STUDIES * SEEDS
)
DIFFERENT = Study(
    name="different",
    question="Is it found?",
    setup=TINY,
    arms=(
        Arm(name="baseline"),
        Arm(name="learning rate halved", learning_rate=2.5e-3),
        Arm(name="no positions", position="absent"),
        Arm(name="one head", heads=1),
    ),
    seeds=SEEDS,
    margin=MARGIN,
)
REMOVED = Study(
    name="removed",
    question="Is it found that positions are gone?",
    setup=TINY.model_copy(update={"training": TINY.training.model_copy(update={"steps": 300})}),
    arms=(Arm(name="ALiBi", position="alibi"), Arm(name="ALiBi removed", position="absent")),
    seeds=SEEDS,
    margin=MARGIN,
)

PAGE = """# Real runs through the verdicts

Made by `python -m benchmarks.same_and_different`. [calibration.md](calibration.md) measures the verdicts on
made-up numbers whose truth is known; here the numbers come from training. The model is tiny ({parameters:,}
parameters, {steps} steps) and reads the embedded corpus; {documents} addresses are held out.

## Differences that do not exist

{studies} A/A studies: {seeds} runs against {seeds} other runs of the very same arm, so that there never is a
difference, judged at one planned look.

| the verdict | studies |
| --- | --- |
{words}

False better or worse: **{false} of {studies}** ({low:.1%} to {high:.1%} by Wilson's interval; 5 % are
allowed).

The same {runs} runs, drawn anew {draws:,} times into two sides of up to {most} and judged at all looks
({looks}): {anew:.1%} end with a false better or worse. Drawn from the same runs, these are not {draws:,}
independent studies. The two sides share no seed, and no document suits one of them more: this is
the noise of real seeds, not that of documents.

## Differences that do

{seeds} seeds, each arm paired with the baseline by seed; Holm over the {arms} arms; margin {margin:g}.

| arm | verdict | difference in test loss | interval | p |
| --- | --- | --- | --- | --- |
{effects}

After {steps} steps learned positions are not of much use yet. ALiBi's are sooner: {longer} steps with it, and
without it.

| arm | verdict | difference in test loss | interval | p |
| --- | --- | --- | --- | --- |
{removed}
"""


def words_of(losses_RN: Array, weights_N: Sequence[float]) -> Counter[str]:
    """The verdicts of A/A studies: every ten runs in a row, five against five."""
    plan = Plan(looks=(SEEDS,))
    groups = losses_RN.reshape(-1, 2, SEEDS, losses_RN.shape[-1])
    return Counter(judge(a, b, margin=MARGIN, weights=weights_N, plan=plan).verdict for a, b in groups)


def falsely_called(losses_RN: Array, weights_N: Sequence[float], draws: int) -> float:
    """The share of A/A studies drawn from these runs, judged at all looks, with a better or a worse."""
    rng, most = np.random.default_rng(0), PLAN.looks[-1]
    shares_N = np.asarray(weights_N, dtype=np.float64) / sum(weights_N)
    wrong = 0.0
    for portion in np.array_split(np.arange(draws), -(-draws // 1000)):
        chosen = np.stack([rng.permutation(len(losses_RN))[: 2 * most] for _ in portion])
        sides_TASN = losses_RN[chosen].reshape(len(portion), 2, most, -1)
        studies = Studies.read(sides_TASN[:, 1:] - sides_TASN[:, :1], PLAN.looks, shares_N)
        wrong += studies.judged(PLAN, margin=MARGIN).differs * len(portion) / draws
    return wrong


def effects_of(results: Mapping[str, Any]) -> str:
    rows = [
        f"| {v['arm']} | {v['verdict']} | {v['effect']:+.4f} | {v['ci'][0]:+.4f} to {v['ci'][1]:+.4f} "
        f"| {v['p']:.2g} |"
        for v in results["verdicts"]
    ]
    return "\n".join(rows)


def page(
    losses_RN: Array, weights_N: Sequence[float], different: Mapping[str, Any], removed: Mapping[str, Any]
) -> str:
    words = words_of(losses_RN, weights_N)
    false = words["better"] + words["worse"]
    interval = stats.binomtest(false, words.total()).proportion_ci(method="wilson")
    return PAGE.format(
        parameters=different["arms"][0]["parameters"],
        steps=TINY.training.steps,
        documents=losses_RN.shape[-1],
        studies=words.total(),
        seeds=SEEDS,
        words="\n".join(f"| {word} | {count} |" for word, count in words.most_common()),
        false=false,
        low=interval.low,
        high=interval.high,
        runs=len(losses_RN),
        draws=DRAWS,
        most=PLAN.looks[-1],
        looks=", ".join(map(str, PLAN.looks)),
        anew=falsely_called(losses_RN, weights_N, DRAWS),
        arms=len(different["verdicts"]),
        margin=MARGIN,
        effects=effects_of(different),
        removed=effects_of(removed),
        longer=REMOVED.setup_of(REMOVED.baseline.name).training.steps,
    )


def losses_of(folder: Path, arm: str, seeds: int) -> tuple[Array, Sequence[float]]:
    """(runs, documents), and the tokens of the documents."""
    store = open_study(folder)
    found = [store.result(Cell(arm, seed)) for seed in range(seeds)]
    documents = [result.items["test"] for result in found if result is not None]
    return np.array([d["loss"] for d in documents]), documents[0]["tokens"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=Path, default=Path("attnlab-runs/same-and-different"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs")
    arguments = parser.parse_args()
    found = []
    with watching() as listener:
        for study in (SAME, DIFFERENT, REMOVED):
            found.append(attnlab.run(study, out=arguments.runs / study.name, listener=listener).plain)
    text = page(*losses_of(arguments.runs / SAME.name, "it", SAME.seeds), *found[1:])
    (arguments.out / "real-runs.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
