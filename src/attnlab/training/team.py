"""Several processes that train one model: each works through its share of every batch, and the gradients are
added up before a step is taken.

A process alone is a team too. Which one this is follows from `torch.distributed`: `torchrun` starts the
processes, and `assemble` makes a team of them. Parameters, losses and decisions are the same in all of them,
so a checkpoint does not know how many wrote it, and a run can go on in a team of another size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from attnlab.training.objectives import Objective, Work

T = TypeVar("T")
W = TypeVar("W", bound=Work)
Losses = Callable[[Any], Tensor]  # an objective with its model: batches to summed losses


class Elsewhere(Exception):
    """What follows is the first process's to do: this one has done its share."""


class Team(Protocol):
    """Who trains this model together."""

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that measures, writes files and decides."""

    @property
    def place(self) -> tuple[int, ...]:
        """What distinguishes this process's random numbers from those of the first."""

    def losses(self, model: nn.Module, objective: Objective[Any, Any]) -> Losses:
        """The objective, as something whose gradients are added up over the team."""

    def share(self, batch: W) -> tuple[W, float]:
        """This process's part of a batch, and what its loss counts: nothing, where there was no part left."""

    def adding_up(self, losses: Losses, last: bool) -> contextlib.AbstractContextManager[Any]:
        """Around a backward pass: gradients are added up after the last one of a step."""

    def total(self, loss: float) -> float:
        """The sum over the team."""

    def told(self, find_out: Callable[[], T]) -> T:
        """What the first process finds out, in every one of them."""

    def agree(self, flag: Callable[[], bool]) -> bool:
        """The first process's yes or no, in every one of them."""


class Alone:
    """One process."""

    is_first = True
    place: tuple[int, ...] = ()

    def losses(self, model: nn.Module, objective: Objective[Any, Any]) -> Losses:
        return lambda batch: objective(model, batch)

    def share(self, batch: W) -> tuple[W, float]:
        return batch, 1.0

    def adding_up(self, losses: Losses, last: bool) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def total(self, loss: float) -> float:
        return loss

    def told(self, find_out: Callable[[], T]) -> T:
        return find_out()

    def agree(self, flag: Callable[[], bool]) -> bool:
        return flag()


class Ranks:
    """The processes of a `torch.distributed` group, by DistributedDataParallel."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def place(self) -> tuple[int, ...]:
        return (self.rank,) if self.rank else ()

    def losses(self, model: nn.Module, objective: Objective[Any, Any]) -> Losses:
        # A part may have weights that a step does not use; those have no gradient to wait for.
        return DistributedDataParallel(_Losses(model, objective), find_unused_parameters=True)

    def share(self, batch: W) -> tuple[W, float]:
        parts: list[Any] = list(batch.split(self.size))
        # The group takes the mean of gradients; a sum is what a batch worked on by one process has.
        if self.rank < len(parts):
            return parts[self.rank], float(self.size)
        # Fewer sequences than processes: everyone takes part in the adding up all the same.
        return parts[0], 0.0

    def adding_up(self, losses: Losses, last: bool) -> contextlib.AbstractContextManager[Any]:
        assert isinstance(losses, DistributedDataParallel)
        return contextlib.nullcontext() if last else losses.no_sync()

    def total(self, loss: float) -> float:
        summed = torch.tensor(loss, dtype=torch.float64)
        dist.all_reduce(summed)
        return summed.item() / self.size

    def told(self, find_out: Callable[[], T]) -> T:
        found: list[Any] = [find_out() if self.is_first else None]
        dist.broadcast_object_list(found, src=0)
        return found[0]

    def agree(self, flag: Callable[[], bool]) -> bool:
        decided = torch.tensor(int(self.is_first and flag()))
        dist.broadcast(decided, src=0)
        return bool(decided.item())


class _Losses(nn.Module):
    """A model's loss on a batch, as the module that DistributedDataParallel wraps."""

    def __init__(self, model: nn.Module, objective: Objective[Any, Any]) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, batch: Any) -> Tensor:
        return self.objective(self.model, batch)


def team() -> Team:
    """The team that this process is in."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        return Ranks()
    return Alone()
