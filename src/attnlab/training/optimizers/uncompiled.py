"""PyTorch's optimisers, without its compiler.

Their methods load all of `torch._dynamo`, a second and 70 MB of every process that trains, only to say that
it is not to compile them. Here nothing is compiled, and they are called as they were written.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import ParamSpec, cast

import torch
from torch.optim import Optimizer

P = ParamSpec("P")
_TOLD = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")


def uncompiled(kind: Callable[P, Optimizer]) -> Callable[P, Optimizer]:
    """The same optimiser, whose methods leave the compiler where it is."""
    return cast(Callable[P, Optimizer], _made(kind))


@cache
def _made(kind: type[Optimizer]) -> type[Optimizer]:
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in _TOLD}
    return type(kind.__name__, (kind,), methods | {"step": torch.no_grad()(inspect.unwrap(kind.step))})
