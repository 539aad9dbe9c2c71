"""What every part costs beside plain attention, in one process.

A whole training step at the common set-up (the product's own loop, batches and head), all parts by turns,
round by round; a part's figure is the median over rounds of its time over the dot product's in that round.
Then additive attention's memory at T = 512, and growth with T of what claims to be linear.

    python -m benchmarks parts        every figure, and docs/growth.svg
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from attnlab.attention import Attention, Dims, Layout, Mixer, MixerLayer, Position
from attnlab.model import Decoder
from attnlab.tokens.batches import Batches
from attnlab.training import NextToken, Run, Training, train
from benchmarks.alternating import ROOT, _peak_mb
from benchmarks.training import BATCH, _From, _Quiet, corpus

STEPS, ROUNDS = 5, 8
GROWTH = (1000, 2000, 4000, 8000)

Row = dict[str, object]


def declarations() -> dict[str, Decoder]:
    """Plain attention first, then every part in its place."""
    made = {"attention": Decoder(), "attention, in stages": Decoder(mixer=Attention(kernel="stages"))}
    for field in ("score", "mask", "weigh", "project"):
        family = type(getattr(Attention(), field)).__mro__[1]
        for name in sorted(family.members):
            if name != getattr(Attention(), field).name:
                mixer = Attention(**{field: family.resolve(name)})
                made[f"{field} {name}"] = Decoder(mixer=mixer)
    for name in sorted(Position.members):
        if name != "learned":
            made[f"position {name}"] = Decoder(position=Position.resolve(name))
    for name in sorted(Mixer.members):
        if name != "attention":
            made[f"mixer {name}"] = Decoder(mixer=Mixer.resolve(name))
    return made


class Subject:
    """One declaration, trained a few steps at a time on the same batches as the others."""

    def __init__(self, decoder: Decoder) -> None:
        data = corpus()
        self.model = decoder.build(data.vocabulary.size)
        self.training = Training(steps=STEPS, evaluations=1)
        self.batches = Batches(data.splits["train"], BATCH, 0)

    def round(self, number: int) -> float:
        """Milliseconds a step."""
        run = Run(
            model=self.model,
            objective=NextToken(self.training.head_dtype),
            batches=_From(self.batches, number * STEPS),
            training=self.training,
            steps=STEPS,
            seed=0,
            evaluate=dict,
        )
        started = time.perf_counter()
        progress = train(run, _Quiet())
        spent = time.perf_counter() - started
        if progress.step != STEPS or progress.status != "ok":  # a run that stopped early would look fast
            raise RuntimeError(f"it did not train: {progress.reason}")
        return 1e3 * spent / STEPS


def whole_steps(rounds: int = ROUNDS) -> list[Row]:
    subjects = {name: Subject(decoder) for name, decoder in declarations().items()}
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for number in range(rounds + 1):
        for name, subject in subjects.items():
            spent = subject.round(number)
            if number:
                times[name].append(spent)
    rows: list[Row] = []
    for name, spent in times.items():
        over = [mine / dot for mine, dot in zip(spent, times["attention"], strict=True)]
        row = {"name": f"whole step, ms: {name} / attention", "ratio": round(median(over), 2)}
        row |= {"peer": round(median(times["attention"]), 1), "ours": round(median(spent), 1)}
        rows.append(row | {"spread": [round(min(over), 2), round(max(over), 2)]})
    return rows


# ---- memory, a process each --------------------------------------------------------------------------------


def peak(score: str, length: int, batch: int) -> float:
    """Megabytes that one forward and backward pass of attention adds to what was there before it."""
    layer, position = _layer(Attention.resolve({"part": "attention", "score": score}), length)
    x_ND = torch.randn(batch * length, 48, requires_grad=True)
    layer(x_ND[:8], Layout([8]), position).sum().backward()  # kernels, and whatever else is made once
    before = _peak_mb()
    layer(x_ND, Layout([length] * batch), position).sum().backward()
    return _peak_mb() - before


def memory_at_512() -> list[Row]:
    code = "from benchmarks.parts import peak; print(peak({!r}, 512, {}))"
    rows: list[Row] = []
    for batch in (1, 8, 32):
        found = {}
        for score in ("dot", "additive"):
            command = [sys.executable, "-c", code.format(score, batch)]
            done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
            found[score] = float(done.stdout)
        name = f"peak memory of one layer at T = 512, batch {batch}, MB: additive / SDPA"
        ratio = round(found["additive"] / found["dot"], 2)
        rows.append(
            {"name": name, "ratio": ratio, "peer": round(found["dot"]), "ours": round(found["additive"])}
        )
    return rows


# ---- growth with T -----------------------------------------------------------------------------------------


def growth() -> list[Row]:
    """Seconds and kept memory of one layer, forward and backward, as T grows; the picture too."""
    points: list[Row] = []
    for name in ("attention", "linear-attention", "favor", "aft-simple"):
        for length in GROWTH:
            layer, position = _layer(Mixer.resolve(name), length)
            spent = [_pass_seconds(layer, position, length) for _ in range(6)][1:]
            megabytes = _kept_mb(layer, position, length)
            points.append({"mechanism": name, "T": length, "ms": 1e3 * median(spent), "MB": megabytes})
    draw(points, ROOT / "docs" / "growth.svg")
    rows: list[Row] = []
    for name in ("attention", "linear-attention", "favor", "aft-simple"):
        first, last = (
            next(p for p in points if p["mechanism"] == name and p["T"] == t) for t in (1000, 8000)
        )
        for what in ("ms", "MB"):
            ratio = round(float(str(last[what])) / float(str(first[what])), 1)
            peer, ours = (round(float(str(p[what])), 1) for p in (first, last))
            row: Row = {"name": f"growth from T = 1,000 to 8,000, {what}: {name}", "ratio": ratio}
            rows.append(row | {"peer": peer, "ours": ours})
    return rows


def draw(points: Sequence[Row], path: Path) -> None:
    """Time and memory over T on logarithmic axes: a line of slope one is linear."""
    import altair

    charts = []
    for what, title in (("ms", "forward and backward, ms"), ("MB", "kept for the backward pass, MB")):
        scale = altair.Scale(type="log")
        chart = altair.Chart(altair.Data(values=list(points))).mark_line(point=True)
        charts.append(
            chart.encode(
                x=altair.X("T:Q", scale=scale, axis=altair.Axis(values=list(GROWTH))),
                y=altair.Y(f"{what}:Q", scale=scale, title=title),
                color=altair.Color("mechanism:N", title=None),
            ).properties(width=280, height=220)
        )
    # A browser's letters may be wider than those it was measured with, and the legend stands at its edge.
    padding = {"left": 5, "top": 5, "bottom": 5, "right": 30}
    altair.hconcat(*charts).properties(padding=padding).save(str(path))


def _layer(mixer: Mixer, length: int) -> tuple[MixerLayer, torch.nn.Module]:
    torch.manual_seed(0)
    dims = Dims(width=48, heads=3, context=length)
    return mixer.build(dims), Position.resolve("absent").build(dims)


def _pass_seconds(layer: MixerLayer, position: torch.nn.Module, length: int) -> float:
    x_ND = torch.randn(length, 48, requires_grad=True)
    gc.collect()
    started = time.perf_counter()
    layer(x_ND, Layout([length]), position).sum().backward()
    return time.perf_counter() - started


def _kept_mb(layer: MixerLayer, position: torch.nn.Module, length: int) -> float:
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = layer(torch.randn(length, 48, requires_grad=True), Layout([length]), position)
    del output
    return sum(kept.values()) / 2**20


def main() -> list[Row]:
    measures: tuple[Callable[[], list[Row]], ...] = (whole_steps, memory_at_512, growth)
    return [row for measure in measures for row in measure()]
