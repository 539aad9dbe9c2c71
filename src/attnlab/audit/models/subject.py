"""A language model under audit: tokens in, logits out, whatever it is made of.

Shapes: B batch, T time, V vocabulary.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.audit.randomness import reseed
from attnlab.errors import TargetError

TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 5e-2}
_LENGTHS_HELD = (
    *("block_size", "context", "context_length", "max_position_embeddings", "n_positions"),
    *("max_len", "max_seq_len", "max_length", "n_ctx"),
)


@dataclass(frozen=True, kw_only=True)
class Model:
    """What is called, the tokens it knows, the lengths it takes, and what its forward pass accepts."""

    name: str
    module: nn.Module
    vocabulary: int
    longest: int
    dtype: torch.dtype = torch.float32
    options: frozenset[str] = frozenset()
    always: Mapping[str, Any] = field(default_factory=dict)  # passed with every call
    asked_with: str | None = None  # an option without which logits come for the last position only
    first_token: int = 0  # tokens below mean something of their own, such as padding
    both_ways: str | None = None  # what says that it is bidirectional by design
    masked: bool = False  # a mask of ones goes with the tokens, as a tokenizer would give it
    implementations: tuple[str, ...] = ()  # of attention, where the model can be switched between several

    def tokens(self, B: int, T: int, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(self.first_token, self.vocabulary, (B, T), generator=generator)

    def __call__(self, tokens_BT: Tensor, *, training: bool = False, **options: Any) -> Tensor:
        """Logits (B, T, V), after the same reseeding as every other call."""
        reseed()
        return self.unseeded(tokens_BT, training=training, **options)

    def unseeded(self, tokens_BT: Tensor, *, training: bool = False, **options: Any) -> Tensor:
        """The same with the random state as it is."""
        self.module.train(training)
        if self.masked:
            options = {"attention_mask": torch.ones_like(tokens_BT), **options}
        if self.asked_with:
            options = {self.asked_with: tokens_BT.clone(), **options}
        return logits_in(self.module(tokens_BT.clone(), **self.always, **options))

    def lengths(self, *wanted: int) -> list[int]:
        """Those of the wanted lengths that the model takes."""
        return [T for T in dict.fromkeys(wanted) if self.longest >= T]

    @property
    def tolerance(self) -> float:
        return TOLERANCE[self.dtype]

    def fresh(self) -> Model:
        """A copy whose weights may be changed."""
        return replace(self, module=copy.deepcopy(self.module))


def logits_in(output: Any) -> Tensor:
    """The logits, wherever a model keeps them in what it returns."""
    found = getattr(output, "logits", None)
    if found is None and isinstance(output, Mapping):
        found = output.get("logits")
    if found is None:
        found = output
        while isinstance(found, tuple | list) and found:
            found = next((part for part in found if isinstance(part, Tensor) and part.ndim == 3), found[0])
    if not isinstance(found, Tensor) or found.ndim != 3:
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise TargetError(f"logits (B, T, V) were expected, and this came back: {shape}")
    return found


def model_from(module: nn.Module, name: str, **known: Any) -> Model:
    """`module` as a language model; its vocabulary and length are read off it, or found by trying."""
    with contextlib.suppress(RuntimeError, TypeError):  # what cannot be copied is audited itself
        module = copy.deepcopy(module)
    draft = Model(
        name=name,
        module=module,
        vocabulary=known.pop("vocabulary", None) or _vocabulary_of(module),
        longest=known.pop("longest", None) or _longest_of(module),
        options=_options_of(module),
        **known,
    )
    for dtype in (torch.float64, torch.float32):
        trial = replace(draft, module=module.to(dtype), dtype=dtype)
        try:
            with torch.no_grad():
                trial = _asked(trial, min(8, trial.longest))
                logits = trial(trial.tokens(2, min(8, trial.longest), seed=0))
        except TargetError:
            raise
        except Exception as error:  # whatever it is, the next precision may do
            reason = (
                f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
            )
            continue
        return replace(
            trial, dtype=dtype if logits.dtype is dtype and _keeps(trial, logits) else torch.float32
        )
    raise TargetError(
        f"{name} could not be called with tokens of shape (2, {min(8, draft.longest)}): {reason}"
    )


def _asked(model: Model, T: int) -> Model:
    """The model, asked with targets if it needs them to give logits for every position."""
    tokens = model.tokens(2, T, seed=0)
    if "targets" not in model.options or model(tokens).shape[1] == T:
        return model
    asked = replace(model, asked_with="targets")
    with contextlib.suppress(TargetError):  # they may come back flattened
        if asked(tokens).shape[1] == T:
            return asked
    return model


def _keeps(model: Model, logits: Tensor) -> bool:
    """Whether fp64 is kept all the way: weights scaled by a hair move the logits by about as much.

    Where a layer computes in fp32 inside, they jump by far more, or not at all.
    """
    nudged = model.fresh()
    with torch.no_grad():
        for parameter in nudged.module.parameters():
            parameter.mul_(1 + 1e-11)
        moved = (nudged(model.tokens(logits.shape[0], logits.shape[1], seed=0)) - logits).abs().max()
    return bool(1e-14 < moved / logits.abs().max().clamp_min(1e-30) < 1e-9)


def looks_like_a_model(module: nn.Module) -> bool:
    """Whether tokens go in: there is an embedding, and the forward pass needs one input only."""
    return any(isinstance(part, nn.Embedding) for part in module.modules()) and _takes_one(module.forward)


def _takes_one(function: Callable[..., Any]) -> bool:
    needed = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) <= 1


def _vocabulary_of(module: nn.Module) -> int:
    named = getattr(getattr(module, "config", None), "vocab_size", None) or getattr(
        module, "vocab_size", None
    )
    if isinstance(named, int):
        return named
    return next(part.num_embeddings for part in module.modules() if isinstance(part, nn.Embedding))


def _longest_of(module: nn.Module) -> int:
    """The longest sequence: what the module or its configuration says, or its table of positions."""
    for holder in (module, getattr(module, "config", None), getattr(module, "spec", None)):
        for name in _LENGTHS_HELD:
            if isinstance(value := getattr(holder, name, None), int) and value > 1:
                return value
    tables = [part.num_embeddings for part in module.modules() if isinstance(part, nn.Embedding)]
    return tables[1] if len(tables) > 1 else 2048


def _options_of(module: nn.Module) -> frozenset[str]:
    parameters = inspect.signature(module.forward).parameters
    return frozenset(name for name, p in parameters.items() if p.kind is not p.VAR_POSITIONAL)
