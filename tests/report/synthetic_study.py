"""Study directories as a runner leaves them, from made-up losses that `attnlab.verdict` really judges."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.record import SCHEMA, Check, Items, RunResult
from attnlab.verdict import LOSS, judge_many, noise_floor

DOCUMENTS = 30
SENTENCES = ("The quick brown fox jumps over the lazy dog.", "Nothing < certain & nothing > sure.")


@dataclass(frozen=True)
class MadeUpArm:
    """An arm by what it would measure."""

    name: str
    shift: float = 0.0  # its loss less the baseline's
    changes: Mapping[str, Any] = field(default_factory=dict)
    parameters: int = 1_412_304
    seconds: float = 41.0
    sees_future: bool = False
    knows: int | None = None  # positions; None: any number of them
    diverges: tuple[int, ...] = ()  # the seeds that do
    fails: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()  # seeds not run yet
    running: tuple[int, ...] = ()  # seeds under way: a log and no result


@dataclass(frozen=True)
class MadeUpStudy:
    """What to write; every part can be left away."""

    arms: Sequence[MadeUpArm]
    name: str = "masking"
    question: str = "Does it matter whether future weights are set to zero before or after the softmax?"
    seeds: int = 3
    noise: float = 0.02
    document_noise: float = 0.05
    margin: float = 0.01
    steps: int = 400
    seed: int = 7
    lengths: tuple[int, ...] = ()  # of the blocks that the test split is read in besides
    extras: bool = True  # everything the contract does not demand

    def write(self, directory: Path) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(self.seed)
        _json(directory / "study.json", self._study())
        luck = rng.normal(0, self.noise, self.seeds)  # what a seed does to all arms alike
        hard = rng.normal(0, 0.3, DOCUMENTS)
        results: dict[str, list[RunResult]] = {}
        for arm in self.arms:
            folder = directory / "runs" / _folder(arm.name)
            for seed in range(self.seeds):
                if seed in arm.missing:
                    continue
                self._log(folder / str(seed), arm, seed, rng)
                if seed not in arm.running:
                    result = self._result(arm, seed, luck[seed], hard, rng)
                    results.setdefault(arm.name, []).append(result)
                    _json(folder / str(seed) / "result.json", result.plain())
        if all(len(results.get(arm.name, [])) == self.seeds for arm in self.arms):
            _json(directory / "results.json", self._results(results))
        return directory

    def without_extras(self) -> MadeUpStudy:
        return replace(self, extras=False)

    # ---- study.json ----------------------------------------------------------------------------------------

    def _study(self) -> dict[str, Any]:
        declaration: dict[str, Any] = {
            "name": self.name,
            "question": self.question,
            "kind": "language-model",
            "seeds": self.seeds,
            "metric": "test_loss",
            "margin": self.margin,
            "arms": [{"name": arm.name, **arm.changes} for arm in self.arms],
        }
        if not self.extras:
            return {"schema": SCHEMA, "study": declaration}
        declaration |= {
            "corpus": {"part": "sotu", "unit": "sentence"},
            "tokens": {"part": "words", "minimum": 2},
            "framing": {"part": "sentences"},
            "model": {
                "layers": 3,
                "heads": 3,
                "width": 48,
                "context": 32,
                "mixer": {
                    "part": "attention",
                    "score": {"part": "dot"},
                    "mask": {"part": "causal", "where": "before"},
                },
            },
            "training": {
                "steps": self.steps,
                "batch": 32,
                "optimizer": {"part": "adamw", "learning_rate": 5e-4},
            },
        }
        held_out = {"documents": DOCUMENTS, "units": 900, "tokens": 22_000, "unknown_rate": 0.0312}
        return {
            "schema": SCHEMA,
            "study": declaration,
            "fingerprint": "0123456789abcdef",
            "environment": {"attnlab": "0.1.0", "python": "3.11.9", "cores": 2, "threads": 1},
            "corpus": {
                "provenance": {"source": "made up for a test", "licence": "none seen", "sha256": "0" * 64},
                "vocabulary": {"size": 13_700, "fingerprint": "f"},
                "splits": {
                    "train": {**held_out, "documents": 180, "tokens": 1_561_375},
                    "dev": held_out,
                    "test": held_out,
                },
                "overlap": {"dev": {"exact": 0.004, "near": 0.012}, "test": {"exact": 0.0, "near": 0.009}},
            },
            "floors": {
                name: {"loss": loss, "perplexity": math.exp(loss)}
                for name, loss in (("unigram", 6.62), ("bigram", 5.71), ("trigram", 5.48))
            },
            "command": f"attnlab run {self.name}.toml --seeds {self.seeds}",
        }

    # ---- a run ---------------------------------------------------------------------------------------------

    def _log(self, folder: Path, arm: MadeUpArm, seed: int, rng: np.random.Generator) -> None:
        folder.mkdir(parents=True)
        setup = {key: value for key, value in self._study()["study"].items() if isinstance(value, dict)}
        _json(folder / "spec.json", {"arm": arm.name, "seed": seed, "setup": setup | dict(arm.changes)})
        end = self.steps // 3 if seed in (*arm.diverges, *arm.running) else self.steps
        lines = []
        for step in range(5, end + 1, 5):
            loss = 5.4 + arm.shift + 3.9 * math.exp(-step / (0.2 * self.steps)) + rng.normal(0, 0.06)
            if seed in arm.diverges and step > 0.8 * end:
                loss += (step - 0.8 * end) / 8
            lines.append(
                {
                    "step": step,
                    "loss": loss,
                    "learning_rate": 5e-4,
                    "of": self.steps,
                    "tokens": step * 800,
                    "seconds": step * 0.1,
                }
            )
            if step % 50 == 0:
                quiet = loss + rng.normal(0, 0.01)
                lines.append({"step": step, "train_loss": quiet - 0.05, "dev_loss": quiet + 0.05})
        text = "\n".join(json.dumps(line) for line in lines)
        (folder / "metrics.jsonl").write_text(text + '\n{"step": 99', encoding="utf-8")  # as a kill leaves it

    def _result(
        self, arm: MadeUpArm, seed: int, luck: float, hard: np.ndarray, rng: np.random.Generator
    ) -> RunResult:
        if seed in (*arm.diverges, *arm.fails):
            word = "diverged" if seed in arm.diverges else "failed"
            why = "the loss was not finite at step 133" if word == "diverged" else "out of memory in step 12"
            return RunResult(arm.name, seed, word, reason=why, seconds=13.7, steps=self.steps // 3)
        loss = 5.3 + hard + arm.shift + luck + rng.normal(0, self.noise / 3)
        loss = loss + rng.normal(0, self.document_noise, DOCUMENTS)
        names = tuple(f"address {i}" for i in range(DOCUMENTS))
        items = Items(names, {"loss": tuple(map(float, loss)), "tokens": (700,) * DOCUMENTS})
        test = items.mean("loss", "tokens")
        metrics = {"test_loss": test}
        for length in self.lengths:
            if arm.knows is None or length <= arm.knows:
                metrics[f"test_loss_at_{length}"] = test + 0.1 * math.log2(length / 32)
        if self.extras:
            truth = test + (1.2 if arm.sees_future else 0.0)
            metrics |= {
                "train_loss": test - 0.1,
                "train_perplexity": math.exp(test - 0.1),
                "dev_loss": test + 0.03,
                "dev_perplexity": math.exp(test + 0.03),
                "test_perplexity": math.exp(test),
                "test_bits_per_byte": test / math.log(2) / 5.1,
                "ordinary_perplexity": math.exp(test + 0.01),
                "prefix_perplexity": math.exp(truth + 0.01),
                "last_batch_loss": test - 0.04,
                "peak_memory_mb": 412.0,
            }
        check = Check(
            "prefix-only perplexity",
            "fail" if arm.sees_future else "pass",
            f"fed only the prefix, perplexity {math.exp(test + 1.21):.1f}, not {math.exp(test + 0.01):.1f}"
            if arm.sees_future
            else "fed only the prefix, the perplexity is the same",
        )
        return RunResult(
            arm=arm.name,
            seed=seed,
            status="invalid" if arm.sees_future else "ok",
            metrics=metrics,
            items={"test": items},
            checks=(check,) if self.extras else (),
            sentences=tuple(
                {
                    "text": text,
                    "tokens": len(text.split()) + 2,
                    "unknown": i,
                    "loss": test + i,
                    "perplexity": math.exp(test + i),
                }
                for i, text in enumerate(SENTENCES)
            )
            if self.extras
            else (),
            samples=("We have done our duty .", "The <UNK> of the people & <b>all</b> .")
            if self.extras
            else (),
            seconds=arm.seconds * (1 + 0.02 * seed),
            tokens_per_second=32e4 / arm.seconds,
            steps=self.steps,
        )

    # ---- results.json --------------------------------------------------------------------------------------

    def _results(self, results: Mapping[str, list[RunResult]]) -> dict[str, Any]:
        base, *others = self.arms
        losses = {name: _losses(runs) for name, runs in results.items()}
        reasons = {
            arm.name: "prefix-only perplexity differs from the ordinary one"
            for arm in others
            if arm.sees_future
        }
        verdicts = judge_many(
            losses[base.name],
            {arm.name: losses[arm.name] for arm in others},
            margin=self.margin,
            metric=replace(LOSS, name="test_loss"),
            findings=reasons,
            baseline_name=base.name,
        )
        floor = noise_floor(losses[base.name], margin=self.margin) if self.seeds > 1 else None
        return {
            "schema": SCHEMA,
            **({"noise_floor": floor.plain()} if floor else {}),
            "study": {
                "name": self.name,
                "question": self.question,
                "metric": "test_loss",
                "baseline": base.name,
                "margin": self.margin,
                "fingerprint": "0123456789abcdef",
            },
            "arms": [self._arm(arm, results[arm.name]) for arm in self.arms],
            "verdicts": [verdict.plain() for verdict in verdicts.values()],
        }

    def _arm(self, arm: MadeUpArm, runs: list[RunResult]) -> dict[str, Any]:
        words = [run.status for run in runs]
        status = next(
            (word for word in ("invalid", "failed", "diverged") if words.count(word) == len(runs)), "ok"
        )
        causality = Check("causality", "fail" if arm.sees_future else "pass", _EVIDENCE[arm.sees_future])
        plain: dict[str, Any] = {
            "name": arm.name,
            "status": "invalid" if arm.sees_future else status,
            "parameters": arm.parameters,
            "audit": {"passed": not arm.sees_future, "checks": [causality.plain()]},
            "runs": [
                {
                    "seed": run.seed,
                    "status": run.status,
                    "metrics": dict(run.metrics),
                    "seconds": run.seconds,
                    "tokens_per_second": run.tokens_per_second,
                }
                for run in runs
            ],
        }
        if self.extras:
            width = (arm.parameters - 13_700 * 48) // 48
            plain |= {
                "changes": dict(arm.changes),
                "parameter_rows": [
                    {
                        "name": "embedding.weight",
                        "formula": "vocabulary 13,700 × width 48",
                        "copies": 1,
                        "count": 657_600,
                    },
                    {
                        "name": "all else",
                        "formula": f"{width:,} × width 48",
                        "copies": 1,
                        "count": width * 48,
                    },
                ],
            }
        return plain


_EVIDENCE = {
    True: "a change of the token at 17 moved the output at 4 by 0.31; it may see nothing that comes later",
    False: "no change of a later token moved an earlier output, in 64 trials",
}


def _losses(runs: Sequence[RunResult]) -> np.ndarray:
    rows = [run.items["test"]["loss"] if run.items else (math.nan,) * DOCUMENTS for run in runs]
    return np.array(rows)


def _folder(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_.=" else "-" for c in name).strip("-.").lower() or "arm"


def _json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


# ---- the cases that every report must be able to show ------------------------------------------------------

NORMAL = MadeUpStudy(
    name="score",
    question="Does additive attention reach a lower loss than the dot product?",
    arms=(
        MadeUpArm("dot"),
        MadeUpArm("additive", -0.05, {"score": {"part": "additive", "hidden": 48}}, 1_419_216, 63.0),
        MadeUpArm("bilinear", 0.09, {"score": "bilinear"}, 1_413_072, 47.0),
        MadeUpArm("cosine", 0.0005, {"score": "cosine"}, seconds=44.0),
    ),
    document_noise=0.008,
    noise=0.012,
    seeds=5,
)
INVALID = MadeUpStudy(
    arms=(
        MadeUpArm("before the softmax"),
        MadeUpArm("after, naive", -0.7, {"mask": {"where": "after", "renormalise": False}}, sees_future=True),
        MadeUpArm("after, renormalised", 0.001, {"mask": {"where": "after", "renormalise": True}}),
    ),
    document_noise=0.008,
    noise=0.012,
)
UNDECIDED = replace(NORMAL, name="undecided", arms=NORMAL.arms[:2], noise=0.2, document_noise=0.6)
ONE_SEED = replace(NORMAL, name="one seed", seeds=1)
HALF_DONE = replace(
    NORMAL,
    name="half done",
    seeds=3,
    arms=(
        NORMAL.arms[0],
        replace(NORMAL.arms[1], missing=(2,), running=(1,)),
        replace(NORMAL.arms[2], missing=(0, 1, 2)),
    ),
)
NOT_BEGUN = replace(
    NORMAL, name="not begun", arms=[replace(arm, missing=tuple(range(5))) for arm in NORMAL.arms]
)
DIVERGED = replace(
    NORMAL,
    name="diverged",
    arms=(
        NORMAL.arms[0],
        replace(NORMAL.arms[1], diverges=(1,)),
        replace(NORMAL.arms[2], diverges=(0, 1, 2, 3, 4)),
        replace(NORMAL.arms[3], fails=(0, 1, 2, 3, 4)),
    ),
)
HUGE = MadeUpStudy(
    name="projections",
    question="What do projections as deep networks change?",
    arms=[
        MadeUpArm(
            f"d = {d}",
            0.004 * d,
            {"project": {"part": "network", "layers": d}},
            1_412_304 + 7056 * d,
            41 + 9 * d,
        )
        for d in range(12)
    ],
    seeds=5,
    steps=2000,
    document_noise=0.02,
)
HOSTILE = replace(
    INVALID,
    name="hostile",
    question='<script>alert("question")</script> & </title><img src=x onerror=alert(1)> Ünïcödé 注意力 → ∞?',
    arms=(
        MadeUpArm("<script>alert(1)</script>"),
        MadeUpArm("</script><b>& \"quoted' {{ 7*7 }}", -0.02),
        MadeUpArm("注意力 – внимание – προσοχή, a name so long that no column was ever made for it", 0.01),
        MadeUpArm("100 % _of_ $x$ | `code` \\ {#} ^~", 0.4, sees_future=True),
    ),
)
LENGTHS = replace(
    INVALID,
    name="lengths",
    arms=(
        MadeUpArm("learned", knows=32),
        MadeUpArm("twice as many", 0.02, knows=64),
        MadeUpArm("rotary", 0.05),
        MadeUpArm("naive", -0.7, sees_future=True),
        MadeUpArm("short", 0.1, knows=8),
    ),
    lengths=(128, 32, 64, 256),
)
BARE = replace(NORMAL.without_extras(), name="bare")

CASES = {
    case.name: case
    for case in (
        NORMAL,
        INVALID,
        UNDECIDED,
        ONE_SEED,
        HALF_DONE,
        NOT_BEGUN,
        DIVERGED,
        HUGE,
        HOSTILE,
        LENGTHS,
        BARE,
    )
}
