"""How a target is called: with which inputs, at which sizes and in which precision, found by trying.

Shapes: B batch, T time, D width of the model.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.audit.operators.mentions import lengths_mentioned
from attnlab.audit.operators.rounding import grain_of, precision_of
from attnlab.audit.operators.subject import Operator, Sizes
from attnlab.errors import TargetError


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
    running = _running(draft)
    return replace(running, precision=precision_of(running), grain=grain_of(running))


def _running(draft: Operator) -> Operator:
    """Heads side by side first; a module that splits them itself is given (B, T, D), three times the same."""
    if draft.module is None or draft.inputs != ("q", "k", "v"):
        return _first_that_runs(draft)
    try:
        running = _first_that_runs(draft)
    except TargetError as reason:
        refusal: TargetError | None = reason
    else:
        refusal = None
        if _keeps_its_shape(running):
            return running
    with contextlib.suppress(TargetError):
        itself = AttendsToItself(draft.module)
        whole = _first_that_runs(
            replace(draft, module=itself, function=itself, inputs=("x",), causal_option=None)
        )
        if refusal is not None or _keeps_its_shape(whole):
            return whole
    if refusal is not None:
        raise refusal
    return running


class AttendsToItself(nn.Module):
    """A module of queries, keys and values as one of `x`: self-attention."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, x_BTD: Tensor) -> Any:
        return self.attention(x_BTD, x_BTD, x_BTD)


def _keeps_its_shape(operator: Operator) -> bool:
    inputs = operator.make(operator.home, seed=0)
    with torch.no_grad():
        return operator(inputs).shape == inputs[operator.inputs[-1]].shape


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
    holders = (module, *module.children()) if isinstance(module, AttendsToItself) else (module,)
    widths = [
        value for holder in holders for name in named if isinstance(value := getattr(holder, name, None), int)
    ]
    widths += [part.in_features for part in module.modules() if isinstance(part, nn.Linear)]
    widths += [shape[-1] for p in module.parameters() if len(shape := tuple(p.shape)) in (1, 2)]
    return list(dict.fromkeys(widths))
