"""Takes the attention maps of a model at chosen steps of its training.

All probes stand in one padded batch, as sequences do in training, with a single token beside them: so there
is always padding, and it is seen whether anything is put on it.

Shapes: B probes, H heads, T tokens, S keys; L tokens of one probe.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.attention import Layout, MixerLayer
from attnlab.evaluation.maps.claims import checks
from attnlab.evaluation.maps.heads import measured
from attnlab.evaluation.maps.probes import Probe
from attnlab.evaluation.maps.shot import FOLDER, Shot, Stack, shots_in
from attnlab.model import Trunk
from attnlab.record import Check

Floats = NDArray[np.float64]
Losses = Callable[
    [Any, Sequence[Probe]], Mapping[str, float]
]  # of a model on probes with a passage said twice


def steps_of(last: int, evenly: int, further: Sequence[int] = ()) -> tuple[int, ...]:
    """`evenly` steps from the first to the last, both among them (of one, the last); and further ones."""
    spread = {last * k // (evenly - 1) for k in range(evenly)} if evenly > 1 else {last} if evenly else set()
    return tuple(sorted(spread | {step for step in further if step <= last}))


@dataclass(frozen=True)
class Camera:
    """Looks at one model; `folder` is its run's. Only the first of the probes with a passage is kept whole,
    the others are measured."""

    trunk: Trunk
    probes: Sequence[Probe]
    folder: Path
    losses: Losses | None = None
    kept: Sequence[int] = field(init=False)

    def __post_init__(self) -> None:
        repeated = [place for place, probe in enumerate(self.probes) if probe.passage]
        kept = [place for place in range(len(self.probes)) if place not in repeated[1:]]
        object.__setattr__(self, "kept", kept)

    def at(self, steps: Sequence[int]) -> Sequence[int]:
        """At which of these steps to `take`: none where there is nothing to look at."""
        return steps if self.probes else ()

    def take(self, step: int) -> None:
        """Look at the model as it is now, and keep what was seen."""
        was_training = self.trunk.training
        self.trunk.eval()
        layout = Layout([*(len(probe.ids) for probe in self.probes), 1], device=self.trunk.device)
        ids_N = torch.tensor([*(id for probe in self.probes for id in probe.ids), self.probes[0].ids[0]])
        maps = self.trunk.attention_maps(ids_N.to(self.trunk.device), layout)
        looked = [
            _Looked(block.mixer, weights_BHTS, self.probes)
            for block, weights_BHTS in zip(self.trunk.blocks, maps, strict=True)
        ]
        twice = [probe for probe in self.probes if probe.passage]
        losses = self.losses(self.trunk, twice) if self.losses and twice else {}
        losses = {name: loss for name, loss in losses.items() if math.isfinite(loss)}
        self.trunk.train(was_training)
        Shot(
            step=step,
            probes=[
                {"text": probe.text, "tokens": list(probe.tokens), "passage": probe.passage}
                for probe in (self.probes[place] for place in self.kept)
            ],
            layers=[layer.plain() for layer in looked],
            figures={
                "heads": [layer.figures() for layer in looked],
                "rows": [layer.rows() for layer in looked],
                "losses": losses,
            },
            stacks={
                (at, depth): Stack.of(layer.maps[place])
                for at, place in enumerate(self.kept)
                for depth, layer in enumerate(looked)
                if layer.maps
            },
        ).write(self.folder / FOLDER)

    def seen(self) -> tuple[dict[str, Any], tuple[Check, ...]]:
        """Everything that was taken so far, for the run's result: figures per step, and what must hold."""
        shots = [Shot.read(path) for path in shots_in(self.folder)]
        if not shots:
            return {}, ()
        summary = {
            "steps": [shot.step for shot in shots],
            "probes": [probe["text"] for probe in shots[-1].probes],
            "layers": list(shots[-1].layers),
            "heads": [shot.figures["heads"] for shot in shots],
            "losses": [shot.figures["losses"] for shot in shots],
            "rows": [shot.figures["rows"] for shot in shots],
            "error": max(shot.error for shot in shots),
        }
        return summary, checks(shots)


class _Looked:
    """What one layer did with the probes."""

    def __init__(self, mixer: MixerLayer, weights_BHTS: Tensor | None, probes: Sequence[Probe]) -> None:
        self.mixer, self.probes, self.maps = mixer, probes, list[Floats]()
        self.padded: list[Floats] = []  # per probe, what each query puts on each padded key
        self.without = "" if weights_BHTS is not None else mixer.no_weights_because
        if weights_BHTS is not None and not bool(torch.isfinite(weights_BHTS).all()):
            weights_BHTS, self.without = None, "its weights are not all numbers"
        if weights_BHTS is None:
            return
        lengths = [*(len(probe.ids) for probe in probes), 1]
        for length, weights_HTS in zip(lengths, weights_BHTS.double().cpu().numpy(), strict=True):
            self.maps.append(weights_HTS[:, :length, :length])
            self.padded.append(np.abs(weights_HTS[:, :length, length:]))
        self.maps.pop()  # the single token was there for its padding alone

    def plain(self) -> dict[str, Any]:
        heads = len(self.maps[0]) if self.maps else 0
        return {"heads": heads, "per": self.mixer.weights_per, "without": self.without}

    def figures(self) -> dict[str, list[float]]:
        return measured(self.maps, [probe.passage for probe in self.probes]) if self.maps else {}

    def rows(self) -> dict[str, Any] | None:
        """What rows sum to, those aside that see nothing, and what stands on padding."""
        if not self.maps:
            return None
        sums = np.concatenate([weights_HTT.sum(-1).ravel() for weights_HTT in self.maps])
        blind = np.concatenate([(weights_HTT == 0).all(-1).ravel() for weights_HTT in self.maps])
        sighted = sums[~blind] if not blind.all() else np.zeros(1)
        return {
            "claim": self.mixer.rows_sum_to_one,
            "rows": len(sums),
            "blind": int(blind.sum()),
            "least": float(sighted.min()),
            "most": float(sighted.max()),
            "padding": max((float(p.sum(-1).max()) for p in self.padded if p.size), default=0.0),
            "padded": sum(p.size for p in self.padded),
        }
