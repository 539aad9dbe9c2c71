"""A shot: the maps of one model at one step, in a safetensors file that is read without torch.

Weights are kept in eight bits per number, each head on a scale of its own: no kept weight is further from the
true one than half a step of that scale, and what is exactly zero (the future, padding) stays exactly zero.

Shapes: H heads, T tokens of one probe.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import save

from attnlab.errors import StoreError
from attnlab.wholefile import write_whole

FOLDER = "maps"  # in a run's
_SCHEMA = 1


@dataclass(frozen=True)
class Stack:
    """The maps of all heads of one layer on one probe."""

    levels_HTT: NDArray[Any]  # uint8, or int8 where some weight is negative
    scale_H: NDArray[np.float32]

    @classmethod
    def of(cls, weights_HTT: NDArray[np.floating[Any]]) -> Stack:
        kind, most = (np.int8, 127) if (weights_HTT < 0).any() else (np.uint8, 255)
        scale_H = (np.abs(weights_HTT).max((1, 2)) / most).astype(np.float32)
        step_H11 = np.where(scale_H > 0, scale_H, 1.0)[:, None, None]
        return cls(np.clip(np.rint(weights_HTT / step_H11), -most, most).astype(kind), scale_H)

    @property
    def weights_HTT(self) -> NDArray[np.float32]:
        weights: NDArray[np.float32] = self.levels_HTT * self.scale_H[:, None, None]
        return weights

    @property
    def error(self) -> float:
        """No weight here is further from the true one."""
        return float(self.scale_H.max(initial=0.0)) / 2


@dataclass(frozen=True)
class Shot:
    """What a camera took at one step: for every probe and layer a stack, or nothing where there is none."""

    step: int
    probes: Sequence[Mapping[str, Any]]  # each with its `text`, its `tokens` and its `passage`
    layers: Sequence[Mapping[str, Any]]  # how many `heads` each has, `per` what; `without` maps, and why
    figures: Mapping[str, Any]  # per head and layer; of rows and of padding; losses
    stacks: Mapping[tuple[int, int], Stack]  # by probe and layer

    @property
    def error(self) -> float:
        return max((stack.error for stack in self.stacks.values()), default=0.0)

    def write(self, folder: Path) -> None:
        """As `maps/<step>.safetensors`, there whole or not at all; the same shot is the same bytes."""
        arrays: dict[str, NDArray[Any]] = {}
        for (probe, layer), stack in self.stacks.items():
            arrays[f"{probe}/{layer}/levels"] = np.ascontiguousarray(stack.levels_HTT)
            arrays[f"{probe}/{layer}/scale"] = stack.scale_H
        facts = {
            "schema": _SCHEMA,
            "step": self.step,
            "probes": list(self.probes),
            "layers": list(self.layers),
            "figures": self.figures,
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder}: cannot be made ({error.strerror})") from None
        content = save(arrays, metadata={"attnlab": json.dumps(facts, allow_nan=False)})
        write_whole(folder / f"{self.step:08d}.safetensors", content)

    @classmethod
    def read(cls, path: Path) -> Shot:
        try:
            with safetensors.safe_open(path, framework="numpy") as file:
                facts = json.loads((file.metadata() or {})["attnlab"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            if facts["schema"] != _SCHEMA:
                raise StoreError(
                    f"{path}: attention maps of another version of attnlab ({facts['schema']!r})"
                )
            stacks = {}
            for name in arrays:
                probe, layer, what = name.split("/")
                if what == "levels":
                    stacks[int(probe), int(layer)] = Stack(arrays[name], arrays[f"{probe}/{layer}/scale"])
            return cls(facts["step"], facts["probes"], facts["layers"], facts["figures"], stacks)
        except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
            raise StoreError(
                f"{path}: not a readable file of attention maps ({error}); remove it to do without"
            ) from None


def shots_in(run: Path) -> list[Path]:
    """The files of a run's shots, the first step first."""
    return sorted((run / FOLDER).glob("*.safetensors"))
