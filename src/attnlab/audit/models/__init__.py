"""Level 2: checks on a language model: tokens in, logits out."""

from typing import Any

from attnlab.audit.models.causality import causality
from attnlab.audit.models.decoding import cache, padding_left, padding_right
from attnlab.audit.models.learning import memorises, random_floor
from attnlab.audit.models.loss import LOSS_RULES, Loss, is_a_loss, loss_from, loss_of
from attnlab.audit.models.sane import batch, determinism, length, shape
from attnlab.audit.models.subject import Model, looks_like_a_model, model_from
from attnlab.audit.models.weights import parameters, tied
from attnlab.audit.rule import Rule
from attnlab.record import Check

RULES: tuple[Rule[Model], ...] = (
    shape,
    determinism,
    causality,
    length,
    batch,
    padding_right,
    padding_left,
    cache,
    tied,
    parameters,
    memorises,
    random_floor,
)


def checks_of(model: Model) -> tuple[Check, ...]:
    """Every check of a model, and those of its loss where it computes one."""
    loss: Any = loss_of(model)
    return tuple(rule(model) for rule in RULES) + tuple(rule(loss) for rule in LOSS_RULES if loss is not None)


__all__ = [
    "LOSS_RULES",
    "RULES",
    "Loss",
    "Model",
    "checks_of",
    "is_a_loss",
    "looks_like_a_model",
    "loss_from",
    "loss_of",
    "model_from",
]
