"""Losses: shifted by one and no more, padding left out, nothing smoothed, the same in pieces as in one.

An oracle puts nearly all probability on the token that follows. Its loss is zero where the labels are shifted
by exactly one. A loss is a function `loss(logits_BTV, labels_BT)`, or what a model computes from `labels`.

Shapes: B batch, T time, V vocabulary.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.audit.models.subject import Model
from attnlab.audit.rule import NotJudged, Seen, fine, found, rule, skipped

IGNORED = -100  # the label that torch's cross-entropy leaves out by default
_ALSO_IGNORED = -1  # what nanoGPT and its descendants have in its place
_SURE = 30.0  # the oracle's logit: exp(-30) of doubt
_VOCABULARY = 16


@dataclass(frozen=True)
class Loss:
    """How a loss is got from logits and labels; `shifted` when the labels given are already the "
    "next tokens."""

    name: str
    of: Callable[[Tensor, Tensor], Tensor]
    shifted: bool = False
    vocabulary: int = _VOCABULARY
    counted: Callable[[Tensor, Tensor, int], Tensor] | None = None  # divided by a number of tokens given
    ignored: int = IGNORED

    def tokens(self, B: int, T: int, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(1, self.vocabulary, (B, T), generator=generator)

    def labels(self, tokens_BT: Tensor) -> Tensor:
        """The labels for tokens: themselves, or the next ones, with nothing to predict at the end."""
        if not self.shifted:
            return tokens_BT
        return torch.cat([tokens_BT[:, 1:], torch.full_like(tokens_BT[:, :1], self.ignored)], 1)

    def oracle(self, tokens_BT: Tensor, ahead: int) -> Tensor:
        """Logits that are sure of the token `ahead` positions on."""
        target = tokens_BT.roll(-ahead, 1)
        return _SURE * torch.nn.functional.one_hot(target, self.vocabulary).double()


def loss_from(function: Callable[..., Any], name: str) -> Loss:
    """A function of logits and labels; one whose second parameter is called a target takes them shifted."""
    second = [*inspect.signature(function).parameters][1]
    loss = Loss(name, lambda logits, labels: function(logits, labels), shifted="target" in second)
    return replace(loss, ignored=_ignored_by(loss))


def _ignored_by(loss: Loss) -> int:
    """The label that means "not counted": the usual one, or the other one where that is no label at all."""
    tokens = loss.tokens(1, 4, seed=0)
    for label in (IGNORED, _ALSO_IGNORED):
        with contextlib.suppress(Exception), torch.no_grad():  # foreign code
            loss.of(loss.oracle(tokens, 1), torch.cat([tokens[:, :3], torch.full((1, 1), label)], 1))
            return label
    return IGNORED


def is_a_loss(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is called logits and a second one is there."""
    try:
        names = [*inspect.signature(function).parameters]
    except (TypeError, ValueError):
        return False
    return len(names) >= 2 and "logits" in names[0]


def loss_of(model: Model) -> Loss | None:
    """The loss a model computes from its own labels, with an oracle in the place of its logits."""
    name = next((name for name in ("labels", "targets") if name in model.options), None)
    if name is None:
        return None

    def of(logits_BTV: Tensor, labels_BT: Tensor) -> Tensor:
        return _with_logits(model, logits_BTV, labels_BT, name)

    def counted(logits_BTV: Tensor, labels_BT: Tensor, n: int) -> Tensor:
        return _with_logits(model, logits_BTV, labels_BT, name, num_items_in_batch=torch.tensor(n))

    # A forward pass that takes any keyword is taken by transformers' Trainer to take this one.
    takes_a_count = "num_items_in_batch" in model.options or (
        "kwargs" in model.options and type(model.module).__module__.startswith("transformers.")
    )
    width = _logits_width(model)
    loss = Loss(model.name, of, name == "targets", width, counted if takes_a_count else None)
    return replace(loss, ignored=_ignored_by(loss))


def _logits_width(model: Model) -> int:
    with torch.no_grad():
        return model(model.tokens(1, 2, seed=0)).shape[-1]


def _with_logits(model: Model, logits_BTV: Tensor, labels_BT: Tensor, name: str, **options: Any) -> Tensor:
    """The model's forward pass with the output of its last layer replaced."""
    head = _head(model, logits_BTV.shape[-1])
    stand_in = head.register_forward_hook(lambda *_: logits_BTV.to(next(model.module.parameters()).dtype))
    tokens = labels_BT.clamp_min(model.first_token)
    try:
        model.module.eval()
        output = model.module(tokens, **{name: labels_BT}, **model.always, **options)
    finally:
        stand_in.remove()
    loss = getattr(output, "loss", None)
    if loss is None and isinstance(output, tuple):
        loss = next((part for part in output if isinstance(part, Tensor) and part.ndim == 0), None)
    if not isinstance(loss, Tensor):
        raise NotJudged(f"no loss came back from a call with {name}")
    return loss


def _head(model: Model, width: int) -> nn.Module:
    module: Any = model.module
    head = module.get_output_embeddings() if hasattr(module, "get_output_embeddings") else None
    if head is not None:
        return head
    wide = [part for part in module.modules() if isinstance(part, nn.Linear) and part.out_features == width]
    if not wide:
        raise NotJudged("no layer that makes the logits was found, where an oracle could stand in")
    return wide[-1]


@rule(
    "label-shift",
    tests="logits that are sure of the next token have a loss of zero, and ones sure of any other "
    "a large one",
    claims="labels are shifted by exactly one, and nothing is smoothed into the loss that is reported",
    threshold="1e-3 nats: the oracle's own doubt is 1e-12, and smoothing by 1e-4 over 30 nats gives 3e-3",
)
def label_shift(loss: Loss) -> Seen:
    tokens = loss.tokens(3, 12, seed=10)
    labels = loss.labels(tokens)
    with torch.no_grad():
        by_distance = {
            ahead: loss.of(loss.oracle(tokens, ahead), labels).item() for ahead in (-1, 0, 1, 2, 3)
        }
    detail = {"loss_by_distance": {str(ahead): value for ahead, value in by_distance.items()}}
    best = min(by_distance, key=by_distance.__getitem__)
    if best != 1:
        where = "the token itself" if best == 0 else f"the token {best} ahead"
        return found(
            f"the loss asks for {where}: sure of it costs {by_distance[best]:.3g} nats, sure of "
            "the next token "
            f"{by_distance[1]:.3g}", **detail,
        )  # fmt: skip
    if not by_distance[1] < 1e-3:
        return found(
            f"an oracle for the next token still has a loss of {by_distance[1]:.3g}: labels are "
            "smoothed, another "
            "term is added, or positions with nothing to predict are counted", **detail,
        )  # fmt: skip
    return fine(f"an oracle for the next token has a loss of {by_distance[1]:.1g}", **detail)


@rule(
    "padding-loss",
    tests=f"positions labelled {IGNORED} ({_ALSO_IGNORED} where that is none) do not change the loss, "
    "whatever is predicted there",
    claims="padding is not counted, neither in the sum nor in what it is divided by",
    threshold="1e-5 of the loss (rounding in fp32)",
)
def padding_loss(loss: Loss) -> Seen:
    tokens = loss.tokens(2, 10, seed=11)
    logits = torch.randn(2, 10, loss.vocabulary, generator=torch.Generator().manual_seed(1)).double()
    pad_tokens = torch.full((2, 4), loss.ignored)
    pad_logits = 5 * torch.randn(2, 4, loss.vocabulary, generator=torch.Generator().manual_seed(2)).double()
    with torch.no_grad():
        plain = loss.of(logits, loss.labels(tokens)).item()
        padded = loss.of(
            torch.cat([logits, pad_logits], 1), torch.cat([loss.labels(tokens), pad_tokens], 1)
        ).item()
    if not abs(padded - plain) <= 1e-5 * abs(plain):
        return found(
            f"four positions labelled {loss.ignored} change the loss from {plain:.4g} to {padded:.4g}",
            plain=plain, padded=padded,
        )  # fmt: skip
    return fine(f"positions labelled {loss.ignored} do not count", plain=plain)


@rule(
    "accumulation",
    tests="with unequal lengths, losses of single sequences put together as means are the loss of "
    "the whole batch",
    claims="accumulating gradients gives the gradient of the full batch",
    threshold="1e-5 of the loss (rounding in fp32)",
)
def accumulation(loss: Loss) -> Seen:
    tokens = loss.tokens(2, 12, seed=12)
    labels = loss.labels(tokens).clone()
    labels[1, 4:] = loss.ignored
    logits = torch.randn(2, 12, loss.vocabulary, generator=torch.Generator().manual_seed(3)).double()
    logits[0] *= 3
    with torch.no_grad():
        full = loss.of(logits, labels).item()
        parts = [loss.of(logits[i : i + 1], labels[i : i + 1]).item() for i in range(2)]
        if loss.counted is not None:
            n = int((labels[:, 0 if loss.shifted else 1 :] != loss.ignored).sum())
            summed = sum(loss.counted(logits[i : i + 1], labels[i : i + 1], n).item() for i in range(2))
            if not abs(summed - full) <= 1e-5 * abs(full):
                return found(
                    f"parts divided by the batch's {n} tokens add up to {summed:.4g}, and the "
                    f"whole is {full:.4g}",
                    parts=parts, full=full,
                )  # fmt: skip
            return fine("parts divided by the number of tokens in the batch add up to the whole", full=full)
    mean = sum(parts) / 2
    if abs(mean - full) <= 1e-5 * abs(full):
        return fine("the mean over sequences is the loss of the batch", full=full)
    return skipped(
        f"means over sequences of unequal length average to {mean:.4g}, and the batch has "
        f"{full:.4g}: whoever "
        "accumulates has to weigh each part by its tokens", parts=parts, full=full,
    )  # fmt: skip


LOSS_RULES = (label_shift, padding_loss, accumulation)
