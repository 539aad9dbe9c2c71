"""An operator under audit: something that mixes tokens in time, called the same way whatever it is.

Shapes: B batch, H heads, T time, d width of a head, D width of the model. Time is the last axis but one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.audit.randomness import normals, reseed
from attnlab.errors import TargetError

Inputs = dict[str, Tensor]

# Relative to the largest output. Sums of T products err by about √T units in the last place; these bounds are
# some thousand units, and a leak that is worth the name moves an output by far more than either.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 5e-2}
_GRAINS = 100  # a sum over another number of terms errs by some ten roundings of one
_NAMED = ("last_hidden_state", "hidden_states", "attn_output", "attention_output", "context", "output", "out")


@dataclass(frozen=True)
class Sizes:
    """How large the inputs of one call are."""

    B: int = 2
    H: int = 4
    T: int = 12
    d: int = 16


@dataclass(frozen=True, kw_only=True)
class Operator:
    """What is called, with which inputs, and the sizes and precision it accepts.

    `inputs` is `("q", "k", "v")`, each (B, H, T, d), or `("x",)`, (B, T, D).
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    causal_option: str | None = None  # how the flag is called, where there is one
    module: nn.Module | None = None
    width: int | None = None  # of the model, where `x` goes in
    home: Sizes = field(default_factory=Sizes)  # sizes at which it is known to run
    dtype: torch.dtype = torch.float64
    precision: torch.dtype = torch.float64  # what it computes in, whatever it says
    grain: float = 0.0  # how far a rounding inside moves an output, where that is more than `dtype` explains
    mentioned: tuple[int, ...] = ()
    claims_causal: bool = True

    def make(self, sizes: Sizes, seed: int, dtype: torch.dtype | None = None) -> Inputs:
        """Inputs of unit scale. The same seed gives the same ones."""
        shape: tuple[int, ...] = (sizes.B, sizes.H, sizes.T, sizes.d)
        if self.inputs == ("x",):
            shape = (sizes.B, sizes.T, self.width or sizes.H * sizes.d)
        return {
            name: normals(shape, 3 * seed + place).to(dtype or self.dtype)
            for place, name in enumerate(self.inputs)
        }

    def __call__(
        self, inputs: Mapping[str, Tensor], *, causal: bool = True, training: bool = False
    ) -> Tensor:
        """The output, computed on copies, after the same reseeding as every other call."""
        copies = {name: tensor.clone() for name, tensor in inputs.items()}
        reseed()
        return self.raw(copies, causal=causal, training=training)

    def raw(self, inputs: Mapping[str, Tensor], *, causal: bool = True, training: bool = False) -> Tensor:
        """The output, with no copying and no seeding."""
        if self.module is not None:
            self.module.train(training)
        options = {self.causal_option: causal} if self.causal_option else {}
        return _tensor_in(self.function(*(inputs[name] for name in self.inputs), **options))

    @property
    def takes_causal(self) -> bool:
        return self.causal_option is not None

    @property
    def modes(self) -> tuple[bool, ...]:
        """Training on or off: a function has one mode, a module two."""
        return (False, True) if self.module is not None else (False,)

    @property
    def tolerance(self) -> float:
        """How far apart, beside the largest output, two outputs may be that are the same but for rounding."""
        inside = min(_GRAINS * self.grain, TOLERANCE[torch.float32])
        return max(TOLERANCE[self.precision], inside)

    def at(self, dtype: torch.dtype) -> Operator:
        """The same operator in another precision; a module is copied first."""
        if self.module is None:
            return replace(self, dtype=dtype, precision=dtype, grain=0.0)
        module = copy.deepcopy(self.module).to(dtype)
        return replace(self, module=module, function=module, dtype=dtype, precision=dtype, grain=0.0)


def _tensor_in(output: Any) -> Tensor:
    """Many modules return their weights beside their output; the output comes first, or has a name."""
    found = output
    while not isinstance(found, Tensor):
        inner = _first_inside(found)
        if inner is None:
            raise TargetError(f"a tensor was expected, and {type(output).__name__} came back")
        found = inner
    return found


def _first_inside(output: Any) -> Any:
    if isinstance(output, tuple | list):
        return output[0] if output else None
    held = output if isinstance(output, Mapping) else getattr(output, "__dict__", {})
    named = (held[name] for name in _NAMED if held.get(name) is not None)
    return next(named, next((value for value in held.values() if isinstance(value, Tensor)), None))
