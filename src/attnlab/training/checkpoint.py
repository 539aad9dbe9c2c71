"""Checkpoints: everything a run needs to go on, in one safetensors file that is there whole or not at all.

Nothing in it is code: tensors, and a JSON header. The random numbers of a step follow from the seed and the
step, so there is no generator state to keep.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save
from torch import Tensor, nn

from attnlab.errors import StoreError
from attnlab.wholefile import write_whole

_PARAMETER, _OPTIMIZER = "model/", "optimizer/"


class _Unusable(Exception):
    """Why a file is not a checkpoint to go on from."""


@dataclass(frozen=True)
class Checkpoint:
    """Named tensors and what is known about them."""

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]

    @classmethod
    def of(
        cls, model: nn.Module, optimizer: torch.optim.Optimizer | None, facts: Mapping[str, Any]
    ) -> Checkpoint:
        """What a model, and its optimiser while it is being trained, consist of right now."""
        tensors = {_PARAMETER + name: tensor for name, tensor in model.state_dict().items()}
        for index, values in (optimizer.state_dict()["state"] if optimizer else {}).items():
            tensors |= {f"{_OPTIMIZER}{index}/{key}": torch.as_tensor(value) for key, value in values.items()}
        return cls(tensors, facts)

    @property
    def has_optimizer(self) -> bool:
        """Whether it was made while the model was being trained."""
        return any(key.startswith(_OPTIMIZER) for key in self.tensors)

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Put the values back where `of` found them."""
        named = {k.removeprefix(_PARAMETER): v for k, v in self.tensors.items() if k.startswith(_PARAMETER)}
        model.load_state_dict(named)
        if optimizer is not None:
            state: dict[int, dict[str, Tensor]] = {}
            for key, value in self.tensors.items():
                if key.startswith(_OPTIMIZER):
                    index, name = key.removeprefix(_OPTIMIZER).split("/")
                    state.setdefault(int(index), {})[name] = value
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": state, "param_groups": groups})

    def write(self, path: Path) -> None:
        """Write it, with a digest of its contents. A tensor of two names (tied weights) is written once."""
        distinct: dict[str, Tensor] = {}
        first_name: dict[int, str] = {}
        shared: dict[str, str] = {}
        for name, tensor in self.tensors.items():
            place = tensor.data_ptr() or id(tensor)
            if place in first_name:
                shared[name] = first_name[place]
            else:
                first_name[place] = name
                distinct[name] = tensor.detach().contiguous()
        facts = json.dumps({**self.facts, "shared": shared})
        _keep(path)
        write_whole(path, save(distinct, metadata={"attnlab": facts, "sha256": _digest(facts, distinct)}))

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """A checkpoint whose contents are what was written; anything else is a `StoreError`."""
        try:
            return cls._read(path)
        except _Unusable as reason:
            raise StoreError(f"{reason}; remove it to begin that run anew") from None

    @classmethod
    def _read(cls, path: Path) -> Checkpoint:
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                written = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        except (OSError, ValueError, safetensors.SafetensorError) as error:
            raise _Unusable(f"{path}: not a readable checkpoint ({error})") from None
        text = written.get("attnlab")
        if text is None:
            raise _Unusable(f"{path}: not a checkpoint of attnlab")
        if _digest(text, tensors) != written.get("sha256"):
            raise _Unusable(f"{path}: damaged: its contents are not what was written")
        facts = json.loads(text)
        for name, original in facts.pop("shared").items():
            tensors[name] = tensors[original]
        return cls(tensors, facts)

    @classmethod
    def read_last_good(cls, path: Path, note: Callable[[str], None]) -> Checkpoint | None:
        """The newest checkpoint that is whole: the one at `path`, or the one that it replaced; None where
        there is neither. What could not be read is told and put aside."""
        for one in (path, previous(path)):
            if not one.exists():
                continue
            try:
                return cls._read(one)
            except _Unusable as reason:
                _put_aside(one)
                rest = "going on from the one before it" if previous(path).exists() else "beginning anew"
                note(f"{reason}; {rest}")
        return None


def previous(path: Path) -> Path:
    """Where the checkpoint before the newest is kept."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def _keep(path: Path) -> None:
    """Give what is there now the second name, so that it stays when it is replaced. Where a file cannot have
    two names, there is no second one."""
    second = path.with_name(f".{path.name}.{os.getpid()}.kept")
    with contextlib.suppress(OSError):
        second.unlink(missing_ok=True)
        os.link(path, second)
        second.replace(previous(path))


def _put_aside(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.replace(path.with_name(f"{path.name}.damaged"))


def _digest(facts: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].contiguous().reshape(-1).view(torch.uint8).cpu().numpy().data)
    return digest.hexdigest()
