"""Real runs through the verdicts: differences that do not exist, and ones that do.

Thirty A/A studies: a tiny model on the embedded corpus against itself with other seeds, five seeds a side, so
every "better" or "worse" is false. Then arms whose difference is real: the learning rate halved, the position
scheme removed, both paired with the baseline by seed.

    python -m benchmarks.same_and_different [DIRECTORY]
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from scipy import stats

import attnlab
from attnlab.cli.progress import watching
from attnlab.corpus import Sotu
from attnlab.study import Arm, LanguageModel, Study, open_study
from attnlab.study.kinds.language_model import Measure
from attnlab.study.store import Cell
from attnlab.training import AdamW, Training
from attnlab.verdict import Plan, judge

STUDIES, SEEDS = 30, 5
TINY = LanguageModel(
    corpus=Sotu(addresses=40, test_share=0.4),
    model=attnlab.Decoder(layers=2, heads=2, width=16, context=40),
    training=Training(steps=80, batch=16, optimizer=AdamW(learning_rate=5e-3), evaluations=1),
    measure=Measure(sentences=(), samples=0, prefix_tokens=200, curve_tokens=500, train_tokens=500),
)


def main(folder: Path) -> None:
    console = Console()
    one_arm = Study(
        name="same", question="Is it itself?", setup=TINY, arms=(Arm(name="it"),), seeds=2 * STUDIES * SEEDS
    )
    with watching() as listener:
        attnlab.run(one_arm, out=folder / "same", listener=listener)
    losses, weights = _losses(folder / "same", "it", one_arm.seeds)
    words: Counter[str] = Counter()
    plan = Plan(looks=(SEEDS,))
    for group in losses.reshape(STUDIES, 2, SEEDS, -1):
        words[judge(group[0], group[1], margin=0.01, weights=weights, plan=plan).verdict] += 1
    false = words["better"] + words["worse"]
    low, high = stats.binomtest(false, STUDIES).proportion_ci(method="wilson")
    console.print(f"{STUDIES} A/A studies of {SEEDS} seeds a side: {dict(words)}")
    console.print(f"false better or worse: {false} of {STUDIES} ({low:.1%} to {high:.1%}); 5 % are allowed")

    arms = (
        Arm(name="baseline"),
        Arm(name="learning rate halved", learning_rate=2.5e-3),
        Arm(name="no positions", position="absent"),
        Arm(name="one head", heads=1),
    )
    different = Study(name="different", question="Is it found?", setup=TINY, arms=arms, seeds=SEEDS)
    with watching() as listener:
        results = attnlab.run(different, out=folder / "different", listener=listener)
    for verdict in results.verdicts:
        console.print(f"{verdict['arm']}: {verdict['verdict']}: {verdict['effect']:+.4f} {verdict['ci']}")


def _losses(folder: Path, arm: str, seeds: int) -> tuple[NDArray[np.float64], Sequence[float]]:
    """(seeds, documents), and the tokens of the documents."""
    store = open_study(folder)
    found = [store.result(Cell(arm, seed)) for seed in range(seeds)]
    documents = [result.items["test"] for result in found if result is not None]
    return np.array([d["loss"] for d in documents]), documents[0]["tokens"]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("attnlab-runs/same-and-different"))
