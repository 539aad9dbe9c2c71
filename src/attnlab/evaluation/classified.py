"""The answers of a classifier on a split, whatever classifier it is: items, metrics, a check, a confusion.

Shapes: B items, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.record import Check, Items
from attnlab.verdict.classification import Answers, check_answers

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

_LEAST = np.log(np.finfo(np.float64).tiny)  # the log of a probability of nothing: finite, as JSON wants it
# Of a training loss, in nats: this near to what the shares of the labels alone give, no text was read.
_NO_BETTER = 0.05
_UNEQUAL = 0.9  # from this share of one label on, always giving it is hard to beat


@dataclass(frozen=True, eq=False)
class Classified:
    """What was true of every item, and how probable each class was held to be."""

    names: tuple[str, ...]  # B
    classes: tuple[str, ...]  # C
    truth_B: Longs  # places in `classes`
    logs_BC: Floats  # log probabilities

    def __post_init__(self) -> None:
        shape = (len(self.names), len(self.classes))
        if self.truth_B.shape != shape[:1] or self.logs_BC.shape != shape:
            raise ValueError(
                f"{shape[0]} items and {shape[1]} classes need labels of shape {shape[:1]} and log "
                f"probabilities of shape {shape}, not {self.truth_B.shape} and {self.logs_BC.shape}"
            )

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        classes: Sequence[str],
        truth: Sequence[str] | Longs,
        probabilities: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
    ) -> Self:
        """From labels (by name, or by place in `classes`) and either probabilities or logits."""
        if (probabilities is None) == (logits is None):
            raise ValueError("either probabilities or logits are needed, and not both")
        if logits is None:
            with np.errstate(divide="ignore"):
                logs_BC = np.log(np.asarray(probabilities, dtype=np.float64))
        else:
            logits_BC = np.asarray(logits, dtype=np.float64)
            logs_BC = logits_BC - np.logaddexp.reduce(logits_BC, axis=1, keepdims=True)
        places = {name: place for place, name in enumerate(classes)}
        truth_B = [places[label] if isinstance(label, str) else int(label) for label in truth]
        return cls(
            tuple(names), tuple(classes), np.asarray(truth_B, dtype=np.int64), np.maximum(logs_BC, _LEAST)
        )

    @cached_property
    def predicted_B(self) -> Longs:
        """The most probable class; of equally probable ones the first."""
        predicted: Longs = self.logs_BC.argmax(axis=1)
        return predicted

    @cached_property
    def items(self) -> Items:
        """Per item: whether it was `correct`, its `loss` in nats, how unsure the answer was (`entropy` in
        nats), and the true `label` and the `prediction` as places in `classes`."""
        rows_B = np.arange(len(self.names))
        values = {
            "correct": (self.predicted_B == self.truth_B).astype(int),
            "loss": -self.logs_BC[rows_B, self.truth_B],
            "entropy": -(np.exp(self.logs_BC) * self.logs_BC).sum(axis=1),
            "label": self.truth_B,
            "prediction": self.predicted_B,
        }
        return Items(self.names, {what: tuple(found.tolist()) for what, found in values.items()})

    @cached_property
    def answers(self) -> Answers:
        """Whether the answers depend on the items at all."""
        named = np.asarray(self.classes)
        return check_answers(named[self.predicted_B].tolist(), named[self.truth_B].tolist())

    @cached_property
    def counts_CC(self) -> Longs:
        """How often each class (row) was given each answer (column)."""
        size = len(self.classes)
        flat: Longs = np.bincount(self.truth_B * size + self.predicted_B, minlength=size * size)
        return flat.reshape(size, size)

    @property
    def macro_f1(self) -> float:
        """The mean over classes of the harmonic mean of precision and recall; a class that is neither there
        nor given is left out."""
        hits_C = self.counts_CC.diagonal()
        sizes_C = self.counts_CC.sum(axis=0) + self.counts_CC.sum(axis=1)
        return float((2 * hits_C[sizes_C > 0] / sizes_C[sizes_C > 0]).mean())

    def metrics(self, split: str) -> dict[str, float]:
        """The figures of a run's record."""
        return {
            f"{split}_accuracy": self.items.mean("correct"),
            f"{split}_loss": self.items.mean("loss"),
            f"{split}_macro_f1": self.macro_f1,
            f"{split}_majority_share": self.answers.majority_share,
            f"{split}_answer_entropy": self.answers.entropy,  # in bits: 0 when all answers are one
        }

    def check(self, train_loss: float | None = None, train_shares: Sequence[float] = ()) -> Check:
        """Whether the classifier gives more than one answer; the likely cause where it does not.

        The mean loss on the training split and the shares of its labels tell causes apart.
        """
        seen = self.answers
        detail = {
            "accuracy": seen.accuracy.value,
            "low": seen.accuracy.low,
            "high": seen.accuracy.high,
            "items": seen.items,
            "majority": seen.majority,
            "majority_share": seen.majority_share,
            "usual_answer": seen.usual,
            "usual_share": seen.usual_share,
            "p_above_majority": seen.p_above_majority,
        }
        if seen.collapsed:
            cause = likely_cause(seen.majority_share, train_loss, train_shares)
            return Check("one-answer", "fail", f"{seen}; likely cause: {cause}", detail)
        return Check("one-answer", "pass" if seen.learned else "skip", str(seen), detail)


def likely_cause(majority_share: float, train_loss: float | None, train_shares: Sequence[float]) -> str:
    """Why a classifier gives one answer only, as far as its training tells."""
    if majority_share >= _UNEQUAL:
        return f"{majority_share:.1%} of the labels are one, so that answer is nearly always right"
    if train_loss is None:
        return "the training loss was not kept; a learning rate that is too high or too low, or too few steps"
    shares = np.asarray(train_shares, dtype=np.float64)
    shares = shares[shares > 0]
    knows_nothing = float(-(shares * np.log(shares)).sum())
    if train_loss > knows_nothing - _NO_BETTER:
        return (
            f"the training loss is {train_loss:.3g}, and knowing only how frequent each label is gives "
            f"{knows_nothing:.3g}: nothing was learned from the texts. The learning rate is too high or too "
            "low, or the steps are too few; try others for this arm, the baseline's need not suit it"
        )
    return (
        f"the training loss fell to {train_loss:.3g}, below the {knows_nothing:.3g} of knowing only how "
        "frequent each label is: the held-out texts are unlike those trained on, or are read in another way "
        "(tokenizer, order of the labels, padding)"
    )


def confusions(splits: Mapping[str, Classified]) -> dict[str, Any]:
    """The exhibit `confusion`: counts per split, a row a true class, a column an answer."""
    first = next(iter(splits.values()))
    return {
        "classes": list(first.classes),
        "splits": {name: found.counts_CC.tolist() for name, found in splits.items()},
    }
