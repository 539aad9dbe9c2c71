"""How the cost of a training step grows: with the tokens in it, the vocabulary, the width, the length of its
sequences; and how that of a study grows with its seeds. A picture each, with the slope on logarithmic axes.

One thread, in fp32, without dropout. Beside the time stands how much of the machine's own limit it reaches:
the multiplications that the model's products need, per second, in shares of what a large product does.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch

from attnlab import Arm, Study, run
from attnlab.corpus import Sotu
from attnlab.model import Decoder
from attnlab.study import LanguageModel
from attnlab.study.kinds.language_model import Measure
from attnlab.tokens.batches import Batch
from attnlab.training import NextToken, Training
from benchmarks.alternating import ROOT, _peak_mb

PICTURES = ROOT / "docs" / "performance"
ROUNDS = 5
RISING = {
    "tokens": (250, 500, 1000, 2000, 4000),
    "vocabulary": (1000, 4000, 16000, 64000),
    "width": (48, 96, 192, 384),
    "length": (25, 100, 400, 1600),
    "seeds": (2, 4, 8),
}


@dataclass(frozen=True)
class Shape:
    """The sizes of a training step; the defaults are near the common set-up's."""

    tokens: int = 1000
    vocabulary: int = 13_669
    width: int = 48
    length: int = 25
    layers: int = 3
    heads: int = 3

    @property
    def operations(self) -> float:
        """Multiplications and additions of the products, forward and backward: of the head, of the blocks'
        linear layers (12 width² weights each), and of attention, of which causality leaves one half."""
        linear = self.vocabulary * self.width + self.layers * 12 * self.width**2
        attention = self.layers * self.length * self.width
        return 6.0 * self.tokens * (linear + attention)


@dataclass(frozen=True)
class Point:
    """What was measured at one size."""

    size: int
    seconds: float
    megabytes: float | None = None
    share: float | None = None  # of the machine's limit


def limit() -> float:
    """Operations per second of the fastest large product of one thread, through PyTorch, in fp32."""
    size = 1024
    a, b = torch.randn(2, size, size)
    return 2.0 * size**3 / min(_timed(lambda: a @ b) for _ in range(10))


def step(shape: Shape, most: float) -> Point:
    """A training step of that shape, and the memory it needs above what was there before."""
    generator = np.random.default_rng(0)
    sequences = max(1, shape.tokens // shape.length)
    ids = generator.integers(shape.vocabulary, size=sequences * shape.length + 1)
    lengths = np.full(sequences, shape.length)
    batch = Batch(ids[:-1], ids[1:], lengths, np.arange(sequences))
    before = _resident_mb()
    _forget_peak()
    spec = Decoder(
        layers=shape.layers, heads=shape.heads, width=shape.width, context=shape.length, dropout=0.0
    )
    model = spec.build(shape.vocabulary).train()
    optimizer, objective = Training().optimizer.build(model), NextToken()

    def once() -> None:
        optimizer.zero_grad(set_to_none=True)
        (objective(model, batch) / batch.targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    seconds = median([_timed(once) for _ in range(ROUNDS + 2)][2:])
    share = shape.operations * batch.tokens / shape.tokens / seconds / most
    return Point(batch.tokens, seconds, _peak_mb() - before, share)


def seeds(number: int) -> Point:
    """A study of a small model, all of it: preparation, audit, workers, evaluation, verdict."""
    setup = LanguageModel(
        corpus=Sotu(addresses=40, test_share=0.4),
        training=Training(steps=60, evaluations=1),
        measure=Measure(sentences=(), samples=0, prefix_tokens=200, curve_tokens=500, train_tokens=500),
    )
    study = Study(name="seeds", question="How long?", setup=setup, arms=(Arm(name="it"),), seeds=number)
    with tempfile.TemporaryDirectory() as folder:
        return Point(number, _timed(lambda: run(study, out=Path(folder) / "out")))


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Of the straight line through the points on logarithmic axes: 1 is linear, 2 quadratic."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def grown(axis: str, most: float) -> Iterator[Point]:
    """The points of one axis, in rising order."""
    for size in RISING[axis]:
        if axis == "seeds":
            yield seeds(size)
            continue
        shape = Shape(**{axis: size}) if axis != "length" else Shape(length=size, tokens=3200)
        point = step(shape, most)
        yield Point(size, point.seconds, point.megabytes, point.share)


def draw(axis: str, points: Sequence[Point]) -> None:
    """Time and memory over the size, both axes logarithmic."""
    import altair

    sizes = [p.size for p in points]
    measures = [("ms", [1e3 * p.seconds for p in points])]
    if points[0].megabytes is not None:
        measures.append(("MB", [p.megabytes or 0.0 for p in points]))
    charts = []
    for unit, values in measures:
        rows = [{axis: size, unit: value} for size, value in zip(sizes, values, strict=True)]
        log = altair.Scale(type="log", nice=False)
        charts.append(
            altair.Chart(altair.Data(values=rows), title=f"slope {slope(sizes, values):.2f}")
            .mark_line(point=True)
            .encode(
                x=altair.X(f"{axis}:Q", scale=log, axis=altair.Axis(values=sizes)),
                y=altair.Y(f"{unit}:Q", scale=log, title=unit),
            )
            .properties(width=240, height=180)
        )
    PICTURES.mkdir(parents=True, exist_ok=True)
    altair.hconcat(*charts).save(str(PICTURES / f"{axis}.svg"))


def main() -> list[dict[str, object]]:
    torch.set_num_threads(1)
    most = limit()
    rows: list[dict[str, object]] = []
    for axis in RISING:
        points = list(grown(axis, most))
        draw(axis, points)
        first, last = points[0], points[-1]
        sizes = [p.size for p in points]
        between = f"{axis} from {first.size:,} to {last.size:,}"
        what = "a study" if axis == "seeds" else "a training step"
        rows.append(
            {
                "name": f"growth of the time of {what}, ms: {between}",
                "ratio": round(last.seconds / first.seconds, 2),
                "slope": round(slope(sizes, [p.seconds for p in points]), 2),
                "peer": round(1e3 * first.seconds, 1),
                "ours": round(1e3 * last.seconds, 1),
            }
        )
        if first.megabytes is None or last.megabytes is None or last.share is None:
            continue
        rows.append(
            {
                "name": f"growth of its memory, MB: {between}",
                "ratio": round(last.megabytes / first.megabytes, 2),
                "slope": round(slope(sizes, [p.megabytes or 0.0 for p in points]), 2),
                "peer": round(first.megabytes, 1),
                "ours": round(last.megabytes, 1),
            }
        )
        rows.append(
            {
                "name": f"billion operations a second at {last.size:,} {axis} / a large product",
                "ratio": round(last.share, 3),
                "peer": round(most / 1e9, 1),
                "ours": round(last.share * most / 1e9, 1),
            }
        )
    return rows


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def _forget_peak() -> None:
    """Linux: the highest memory so far counts from here."""
    Path("/proc/self/clear_refs").write_text("5")
