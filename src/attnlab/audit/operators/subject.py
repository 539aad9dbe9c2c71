"""An operator under audit: something that mixes tokens in time, called the same way whatever it is.

Shapes: B batch, H heads, T time, d width of a head, D width of the model. Time is the last axis but one.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.audit.operators.mentions import lengths_mentioned
from attnlab.audit.randomness import normals, reseed
from attnlab.errors import TargetError

Inputs = dict[str, Tensor]


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

    def at(self, dtype: torch.dtype) -> Operator:
        """The same operator in another precision; a module is copied first."""
        if self.module is None:
            return replace(self, dtype=dtype, precision=dtype)
        module = copy.deepcopy(self.module).to(dtype)
        return replace(self, module=module, function=module, dtype=dtype, precision=dtype)


def _tensor_in(output: Any) -> Tensor:
    """Many modules return their weights beside their output; the output comes first."""
    while isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, Tensor):
        raise TargetError(f"a tensor was expected, and {type(output).__name__} came back")
    return output


def operator_from(target: Callable[..., Any], name: str) -> Operator:
    """`target` as an operator: how it is called and at which sizes and precision it runs, found by trying."""
    module = target if isinstance(target, nn.Module) else None
    if module is not None:
        with contextlib.suppress(RuntimeError, TypeError):  # what cannot be copied is audited itself
            module = copy.deepcopy(module)
    draft = Operator(
        name=name,
        function=module or target,
        inputs=_inputs_of(module.forward if module is not None else target),
        causal_option=_flag_of(module.forward if module is not None else target),
        module=module,
        mentioned=lengths_mentioned(target),
    )
    running = _first_that_runs(draft)
    return replace(running, precision=_precision_of(running))


def _inputs_of(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C: the calling convention of attention is assumed
        return ("q", "k", "v")
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is p.empty]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters) or len(needed) >= 3:
        return ("q", "k", "v")
    return ("x",) if needed else ("q", "k", "v")


def _flag_of(function: Callable[..., Any]) -> str | None:
    """The name of the flag that asks for causality: ours, or the one torch uses."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    named = next((name for name in ("causal", "is_causal") if name in parameters), None)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return named or ("causal" if takes_any else None)


def _first_that_runs(draft: Operator) -> Operator:
    """The operator with the first sizes and precision at which a call succeeds.

    fp64 comes first because there a leak and a rounding error are nine digits apart.
    """
    first: Exception | None = None
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        candidate = draft.at(dtype)
        for width, sizes in _sizes_to_try(draft):
            trial = replace(candidate, home=sizes, width=width)
            try:
                with torch.no_grad():
                    trial(trial.make(sizes, seed=0))
            except Exception as error:  # any refusal at all means: try the next
                first = first or error
                continue
            return trial
    assert first is not None
    reason = str(first).strip().splitlines()[0] if str(first).strip() else "no message"
    called = ", ".join(draft.inputs)
    kind = type(first).__name__
    raise TargetError(f"{draft.name} could not be called with ({called}) at any size tried: {kind}: {reason}")


def _sizes_to_try(draft: Operator) -> Iterator[tuple[int | None, Sizes]]:
    """The usual sizes first, then those the target mentions."""
    plain = Sizes()
    if draft.inputs == ("x",):
        named = [width for width in _widths(draft.module) if width > 1]
        lengths = (plain.T, *draft.mentioned[:24])
        for width, T in product(dict.fromkeys([*named, 64, *draft.mentioned[:24]]), lengths):
            yield width, replace(plain, T=T)
        return
    yield None, plain
    few = draft.mentioned[:16]
    for T in draft.mentioned[:32]:
        yield None, replace(plain, T=T)
    for H, d in product((1, 2, 8, 12, *few), (16, 8, 32, 64, *few)):
        yield None, replace(plain, H=H, d=d)
    for T, H, d in product(few, few, few):
        yield None, Sizes(H=H, T=T, d=d)


def _widths(module: nn.Module | None) -> list[int]:
    """Widths a module may want, the likeliest first: what its first weight matrix takes in."""
    if module is None:
        return []
    named = ("embed_dim", "d_model", "hidden_size", "n_embd", "dim", "width", "model_dim", "d")
    widths = [value for name in named if isinstance(value := getattr(module, name, None), int)]
    widths += [part.in_features for part in module.modules() if isinstance(part, nn.Linear)]
    widths += [shape[-1] for p in module.parameters() if len(shape := tuple(p.shape)) in (1, 2)]
    return list(dict.fromkeys(widths))


def _precision_of(operator: Operator) -> torch.dtype:
    """The coarsest precision to which inputs can be rounded without any change in the output.

    Code that casts to fp32 inside and back again returns fp64 with the errors of fp32.
    """
    inputs = operator.make(operator.home, seed=1)
    with torch.no_grad():
        exact = operator(inputs)
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            if torch.finfo(dtype).eps <= torch.finfo(operator.dtype).eps:
                continue
            rounded = {name: tensor.to(dtype).to(operator.dtype) for name, tensor in inputs.items()}
            if torch.equal(exact, operator(rounded)):
                return dtype
    if exact.is_floating_point() and torch.finfo(exact.dtype).eps > torch.finfo(operator.dtype).eps:
        return exact.dtype
    return operator.dtype
