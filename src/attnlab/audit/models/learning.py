"""Learning: one batch can be learned by heart, and what cannot be predicted is not.

Shapes: B batch, T time, V vocabulary.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from attnlab.audit.models.subject import Model
from attnlab.audit.models.weights import next_token_loss
from attnlab.audit.rule import Seen, fine, found, rule, skipped

SMALL = 3_000_000  # parameters up to which a model is trained here
_STEPS = 120
_KINDS = (
    8  # different tokens in the random text: a floor of log 8 is quickly met, and quickly passed by a leak
)


@rule(
    "memorises",
    tests="120 steps of Adam on one batch of two sequences bring its loss below a quarter of where it began",
    claims="gradients reach what they have to: the model can learn",
    threshold="a quarter of the first loss; a model that sees nothing but the frequencies of "
    "tokens stays above it",
)
def memorises(model: Model) -> Seen:
    if _size(model) > SMALL:
        return skipped(f"{_size(model):,} parameters are too many to train here")
    learner = model.fresh()
    tokens = learner.tokens(2, min(12, learner.longest), seed=14)
    optimiser = torch.optim.Adam([p for p in learner.module.parameters() if p.requires_grad], lr=3e-3)
    losses: list[float] = []
    for _ in range(_STEPS):
        optimiser.zero_grad()
        with torch.enable_grad():
            loss = next_token_loss(learner(tokens, training=True), tokens)
            loss.backward()
        optimiser.step()
        losses.append(loss.item())
        if losses[-1] < 0.2 * losses[0]:
            break
    if not min(losses) < 0.25 * losses[0]:
        return found(
            f"{len(losses)} steps on one batch brought its loss from {losses[0]:.3g} to {min(losses):.3g}",
            first=losses[0],
            best=min(losses),
        )
    return fine(f"one batch is learned by heart in {len(losses)} steps", steps=len(losses))


@rule(
    "random-floor",
    tests="trained on random tokens, the loss on other random tokens does not fall below the "
    "logarithm of how "
    "many there are",
    claims="nothing is predicted that cannot be: neither the mask nor the labels let an answer through",
    threshold="four standard errors of the mean below log 8",
)
def random_floor(model: Model) -> Seen:
    if _size(model) > SMALL:
        return skipped(f"{_size(model):,} parameters are too many to train here")
    learner, T = model.fresh(), min(16, model.longest)
    kinds = min(_KINDS, learner.vocabulary - learner.first_token)
    optimiser = torch.optim.Adam([p for p in learner.module.parameters() if p.requires_grad], lr=1e-2)
    generator = torch.Generator().manual_seed(15)

    def batch(rows: int) -> torch.Tensor:
        return torch.randint(0, kinds, (rows, T), generator=generator) + learner.first_token

    for _ in range(_STEPS):
        tokens = batch(8)
        optimiser.zero_grad()
        with torch.enable_grad():
            next_token_loss(learner(tokens, training=True), tokens).backward()
        optimiser.step()
    tokens = batch(64)
    with torch.no_grad():
        logits = learner(tokens)[:, :-1].flatten(0, 1).float()
    losses = F.cross_entropy(logits, tokens[:, 1:].flatten(), reduction="none")
    mean, error = losses.mean().item(), (losses.std() / math.sqrt(len(losses))).item()
    floor = math.log(kinds)
    if not mean > floor - 4 * error:
        return found(
            f"random tokens are predicted with a loss of {mean:.3g}, and {floor:.3g} is the least "
            "there can be: "
            "the answer is let through somewhere", loss=mean, floor=floor,
        )  # fmt: skip
    return fine(f"random tokens have a loss of {mean:.3g}, not below {floor:.3g}", loss=mean, floor=floor)


def _size(model: Model) -> int:
    return sum(p.numel() for p in model.module.parameters())
