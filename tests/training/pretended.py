"""A device that is not the processor, pretended: its tensors hold the processor's, and an operation between
the two is an error, as it would be on a graphics card. What cannot be seen so is how fast, and how exact, a
real one is.

PyTorch takes such a device once per process, so whoever imports this is a program of its own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

torch.utils.backend_registration._setup_privateuseone_for_python_backend("pretended")
ELSEWHERE = torch.device("pretended:0")
# A tensor around another cannot be viewed in inference mode; without gradients it comes to the same.
torch.inference_mode = torch.no_grad  # type: ignore[misc]
_MOVES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class Far(Tensor):
    """A tensor that says it is elsewhere."""

    near: Tensor

    @staticmethod
    def __new__(cls, near: Tensor) -> Far:
        shape = {"strides": near.stride(), "storage_offset": near.storage_offset(), "dtype": near.dtype}
        far: Far = torch.Tensor._make_wrapper_subclass(cls, near.size(), device=ELSEWHERE, **shape)
        far.near = near
        return far

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return worked_out(function, args, kwargs or {})


class TwoPlaces(TorchDispatchMode):
    """Every operation, those that make tensors elsewhere among them."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return worked_out(function, args, kwargs or {})


def worked_out(function: Any, args: Any, kwargs: Any) -> Any:
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    far = [x for x in tensors if isinstance(x, Far)]
    # A single number may come from the processor, as on a graphics card.
    if far and function not in _MOVES and any(x.dim() for x in tensors if not isinstance(x, Far)):
        raise RuntimeError(f"{function}: tensors in two places")
    near_args, near_kwargs = tree_map(lambda x: x.near if isinstance(x, Far) else x, (args, kwargs))
    goes_far = bool(far)
    if near_kwargs.get("device") is not None:
        goes_far = torch.device(near_kwargs["device"]).type == ELSEWHERE.type
        near_kwargs["device"] = torch.device("cpu")
    made = function(*near_args, **near_kwargs)
    if function is torch.ops.aten.copy_.default:
        return args[0]
    known = {id(x.near): x for x in far}  # an operation in place gives back what it was given

    def placed(x: Any) -> Any:
        return known[id(x)] if id(x) in known else Far(x)

    return tree_map(lambda x: placed(x) if isinstance(x, Tensor) and goes_far else x, made)
