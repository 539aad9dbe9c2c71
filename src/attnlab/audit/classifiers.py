"""Checks on a classifier of sequences: it reads its own text, and neither its neighbours nor padding.

Causality is not asked of it: every token may see every other.

Shapes: B sequences, C labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.audit.rule import Rule, Seen, fine, found, rule, skipped

Answer = Callable[[Sequence[Tensor]], Tensor]  # sequences of any lengths to logits (B, C)

_CLAIM = 1e-9  # of the largest logit: rounding of fp64 in sums that are grouped differently


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """What is called, in fp64 and evaluation mode, and what it may be given."""

    answer: Answer
    vocabulary: int
    longest: int
    labels: int
    first_token: int = 2  # tokens below mean something of their own

    def sequences(self, *lengths: int, seed: int = 0) -> list[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        sizes = [min(length, self.longest) for length in lengths]
        return [torch.randint(self.first_token, self.vocabulary, (n,), generator=generator) for n in sizes]

    @torch.no_grad()
    def __call__(self, sequences: Sequence[Tensor]) -> Tensor:
        return self.answer(sequences)


@rule(
    "shape",
    tests="there is a row of logits per sequence and a column per label, and they are numbers",
    claims="one distribution over the labels per sequence",
    threshold="exact",
)
def shape(model: Classifier) -> Seen:
    logits_BC = model(model.sequences(5, 12, 1))
    if logits_BC.shape != (3, model.labels):
        return found(f"logits of shape {tuple(logits_BC.shape)} for 3 sequences and {model.labels} labels")
    if not bool(torch.isfinite(logits_BC).all()):
        return found(
            f"{int((~torch.isfinite(logits_BC)).sum())} of {logits_BC.numel()} logits are not numbers"
        )
    return fine(f"logits {tuple(logits_BC.shape)}, all numbers")


@rule(
    "determinism",
    tests="in evaluation mode two calls on the same sequences agree, also after a call on others",
    claims="no dropout in evaluation, and no state kept between calls",
    threshold=f"{_CLAIM:g} of the largest logit (rounding in fp64)",
)
def determinism(model: Classifier) -> Seen:
    ours = model.sequences(5, 12, 1)
    first_BC = model(ours)
    model(model.sequences(7, 7, seed=1))
    gap = _apart(first_BC, model(ours))
    if gap > _CLAIM:
        return found(f"two calls on the same sequences are {gap:.2g} of the logits' size apart", by=gap)
    return fine("the same logits every time")


@rule(
    "batch",
    tests="the logits of a sequence do not move when its neighbours are others of the same lengths",
    claims="sequences of a batch do not influence each other",
    threshold=f"{_CLAIM:g} of the largest logit (rounding in fp64)",
)
def batch(model: Classifier) -> Seen:
    ours, others = model.sequences(9, 6, 12), model.sequences(9, 6, 12, seed=1)
    gap = _apart(model(ours)[:1], model([ours[0], *others[1:]])[:1])
    if gap > _CLAIM:
        return found(f"the logits of a sequence moved by {gap:.2g} when its neighbours changed", by=gap)
    return fine("a sequence's logits do not depend on its neighbours")


@rule(
    "padding",
    tests="a sequence has the same logits alone and beside longer ones, to whose length it is filled up",
    claims="padding is neither attended to nor pooled",
    threshold=f"{_CLAIM:g} of the largest logit (rounding in fp64)",
)
def padding(model: Classifier) -> Seen:
    sequences = model.sequences(2, 5, 12, 33)
    together_BC = model(sequences)
    for place, sequence in enumerate(sequences):
        gap = _apart(model([sequence]), together_BC[place : place + 1])
        if gap > _CLAIM:
            longest = max(map(len, sequences))
            return found(
                f"a sequence of {len(sequence)} tokens has logits {gap:.2g} of their size away when it is "
                f"filled up to {longest}: padding is attended to, or pooled",
                by=gap,
            )
    return fine(f"the same logits at every length up to {max(map(len, sequences))}")


@rule(
    "reads",
    tests="the logits move when any one token of a sequence is another one",
    claims="the answer can depend on every token",
    threshold="any movement at all",
)
def reads(model: Classifier) -> Seen:
    (sequence,) = model.sequences(12)
    if model.longest < 2:
        return skipped("it takes one token only")
    before_BC = model([sequence])
    deaf = []
    for place in range(len(sequence)):
        other = sequence.clone()
        other[place] = model.first_token + (other[place] - model.first_token + 1) % (
            model.vocabulary - model.first_token
        )
        if torch.equal(model([other]), before_BC):
            deaf.append(place)
    if deaf == list(range(1, len(sequence))):
        return found(
            "only the first token reaches the answer: what stands for the sequence sees nothing of the rest "
            "of it (a class token at the start, behind a causal mask)"
        )
    if len(deaf) == len(sequence):
        return found("no token reaches the answer: it does not depend on the text")
    if deaf:
        return skipped(f"{len(deaf)} of {len(sequence)} tokens do not reach the answer: {deaf}", deaf=deaf)
    return fine(f"each of {len(sequence)} tokens moves the answer")


RULES: tuple[Rule[Classifier], ...] = (shape, determinism, batch, padding, reads)


def _apart(one: Tensor, two: Tensor) -> float:
    """The largest difference beside the largest value; infinite where there is no number."""
    gap = (one - two).abs().nan_to_num(nan=float("inf")).max().item()
    return gap / max(one.abs().nan_to_num(nan=0.0).max().item(), 1e-30)
