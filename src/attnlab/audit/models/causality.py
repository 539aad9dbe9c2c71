"""The future through the whole stack: tokens after a cut are replaced, and logits before it must stand.

Shapes: B batch, T time, V vocabulary.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from attnlab.audit.models.subject import Model
from attnlab.audit.rule import Seen, fine, found, rule, skipped

SEVERAL_BLOCKS = (12, 2, 3, 17, 33, 65, 130, 258)
EVERY_CUT_TO = 17


@dataclass(frozen=True)
class Leak:
    """Logits at `position` that moved when the tokens after `cut` were others."""

    length: int
    cut: int
    position: int
    token: int | None
    by: float
    relative: float
    training: bool
    how: str

    def told(self) -> str:
        cause = f"token {self.token}" if self.token is not None else f"the tokens after position {self.cut}"
        mode = "training" if self.training else "evaluation"
        return (
            f"the logits at position {self.position} moved by {self.by:.2g} when {cause} changed "
            f"[length {self.length}, {self.how}, {mode} mode]"
        )


@rule(
    "causality",
    tests="logits stay what they were when later tokens are replaced, for every implementation of "
    "attention, in "
    "evaluation and training mode, at several lengths",
    claims="no logit depends on a later token at the lengths probed",
    threshold="1e-7 of the largest logit in fp64, 1e-4 in fp32: rounding in sums that are grouped "
    "differently",
)
def causality(model: Model) -> Seen:
    tried: list[str] = []
    for implementation in model.implementations or (None,):
        word = f"{implementation} attention" if implementation else "as it is"
        try:
            with switched_to(model, implementation):
                leak = first_leak(model, model.lengths(*SEVERAL_BLOCKS), word)
                if leak is None and "attention_mask" in model.options:
                    leak = first_leak(model, model.lengths(12), f"{word}, a mask of ones given", masked=True)
        except (ValueError, ImportError, NotImplementedError) as error:
            if implementation is None:
                raise
            tried.append(f"not {implementation} ({type(error).__name__})")
            continue
        if leak is not None and model.both_ways is not None:
            return skipped(f"bidirectional by design: {model.both_ways}", evidence=leak.told())
        if leak is not None:
            detail = {"position": leak.position, "token": leak.token, "by": leak.by, "length": leak.length,
                      "relative": leak.relative, "implementation": implementation}  # fmt: skip
            return found(leak.told(), **detail)
        tried.append(word)
    if model.longest < 2:
        return skipped("it takes one token only: there is no future to replace")
    lengths = model.lengths(*SEVERAL_BLOCKS)
    return fine(
        f"no logits moved when later tokens changed, up to length {max(lengths)} ({', '.join(tried)})",
        lengths=lengths,
        tried=tried,
    )


@contextlib.contextmanager
def switched_to(model: Model, implementation: str | None) -> Iterator[None]:
    """The model with another implementation of its attention, as transformers offers them."""
    if implementation is None:
        yield
        return
    module: Any = model.module
    before = module.config._attn_implementation
    module.set_attn_implementation(implementation)
    try:
        yield
    finally:
        module.set_attn_implementation(before)


def first_leak(model: Model, lengths: Sequence[int], how: str, masked: bool = False) -> Leak | None:
    """The first leak met, through all lengths, cuts and modes; long sequences in evaluation mode only."""
    for T in lengths:
        model = replace(model, masked=masked)
        for training in (False, True) if T <= 65 else (False,):
            leak = _leak_at(model, T, training, how)
            if leak is not None:
                return leak
    return None


def _leak_at(model: Model, T: int, training: bool, how: str) -> Leak | None:
    """All cuts of one length at once, a batch row each; a suspicion is confirmed alone, since batch rows
    may influence each other (that is another finding)."""
    for cuts in _groups(_cuts(T), per_call=max(2, 2048 // T)):
        tokens_BT = model.tokens(1, T, seed=T).repeat(len(cuts), 1)
        # One token all over: a model may take it for padding, and count what is left.
        constants = (model.first_token, model.vocabulary - 1) if T == 12 else ()
        futures: tuple[int | Literal["fresh", "copy"], ...] = ("fresh", "copy", *constants)
        for future in futures:
            other_BT = _with_another_future(model, tokens_BT, cuts, future)
            with torch.no_grad():
                before, after = model(tokens_BT, training=training), model(other_BT, training=training)
            for row, cut in enumerate(cuts):
                if _moved(model, before[row, : cut + 1], after[row, : cut + 1]) is None:
                    continue
                leak = _confirmed(model, tokens_BT[row], other_BT[row], cut, training, how)
                if leak is not None:
                    return leak
    return None


def _confirmed(
    model: Model, tokens_T: Tensor, other_T: Tensor, cut: int, training: bool, how: str
) -> Leak | None:
    rows = 2 if training else 1  # batch norm refuses single rows while training
    with torch.no_grad():
        before = model(tokens_T.repeat(rows, 1), training=training)[0]
        after = model(other_T.repeat(rows, 1), training=training)[0]
        again = model(tokens_T.repeat(rows, 1), training=training)[0]
        once_more = model(tokens_T.repeat(rows, 1), training=training)[0]  # after itself
        moved = _moved(model, before[: cut + 1], after[: cut + 1])
        same = (_moved(model, before[: cut + 1], x[: cut + 1]) is None for x in (again, once_more))
        if moved is None or not all(same):
            return None  # noise or state, which the check of determinism tells
        position, by, relative = moved
        token = None
        for candidate in range(cut + 1, min(len(tokens_T), cut + 9)):
            one_T = tokens_T.clone()
            one_T[candidate] = other_T[candidate]
            alone = _moved(
                model, before[: cut + 1], model(one_T.repeat(rows, 1), training=training)[0, : cut + 1]
            )
            if alone is not None:
                (position, by, relative), token = alone, candidate
                break
    return Leak(len(tokens_T), cut, position, token, by, relative, training, how)


def _moved(model: Model, before_TV: Tensor, after_TV: Tensor) -> tuple[int, float, float] | None:
    """Position, size and share of the largest movement beyond rounding. Not a number counts as moved."""
    finite = torch.isfinite(before_TV)
    if not finite.any():
        return None
    scale = before_TV[finite].abs().max().clamp_min(1e-30)
    gap = torch.where(finite, (after_TV - before_TV).abs(), 0.0)
    if bool((gap <= model.tolerance * scale).all()):
        return None
    gap_T = gap.nan_to_num(nan=torch.inf).amax(-1)
    position = int(gap_T.argmax())
    return position, gap_T[position].item(), (gap_T[position] / scale).item()


def _with_another_future(
    model: Model, tokens_BT: Tensor, cuts: Sequence[int], future: int | Literal["fresh", "copy"]
) -> Tensor:
    """Other tokens after each row's cut: fresh ones, the row's last visible one, or one given token."""
    fresh_BT = model.tokens(tokens_BT.shape[0], tokens_BT.shape[1], tokens_BT.shape[1] + 1)
    # A fresh token may be the old one by chance; the next one in the vocabulary is not.
    fresh_BT = torch.where(fresh_BT == tokens_BT, _next(model, fresh_BT), fresh_BT)
    cut_B1 = torch.tensor(cuts).unsqueeze(1)
    if future == "copy":
        fresh_BT = tokens_BT.gather(1, cut_B1).expand_as(tokens_BT)
    elif future != "fresh":
        fresh_BT = torch.full_like(tokens_BT, int(future))
    return torch.where(torch.arange(tokens_BT.shape[1]) > cut_B1, fresh_BT, tokens_BT)


def _next(model: Model, tokens: Tensor) -> Tensor:
    return (tokens - model.first_token + 1) % (model.vocabulary - model.first_token) + model.first_token


def _cuts(T: int) -> list[int]:
    if T <= EVERY_CUT_TO:
        return list(range(T - 1))
    borders = {b + step for b in (16, 32, 64, 128, 256) for step in (-1, 0) if b + step < T - 1}
    return sorted({0, T // 2, T - 2, *sorted(borders)[-4:]})


def _groups(cuts: list[int], per_call: int) -> list[list[int]]:
    return [cuts[start : start + per_call] for start in range(0, len(cuts), per_call)]
