"""What of a pretrained model changes in training, and how many numbers that are: said as a formula, and held
against what is really trained.

In formulas d is the model's width, L its layers, f the width of its feed-forward layers, C the labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from attnlab.errors import RequestError
from attnlab.model.count import count_parameters
from attnlab.spec import Part


@dataclass(frozen=True)
class Sizes:
    """The numbers that formulas are made of."""

    d: int
    L: int
    f: int | None
    C: int
    body: int  # parameters of the checkpoint
    head: int  # of what is put on it

    @classmethod
    def of(cls, model: Any, labels: int) -> Sizes:
        """Of a model of transformers, before anything of it was frozen."""
        config = model.config
        head = sum(p.numel() for part in heads_of(model) for p in part.parameters())
        inner = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None)
        return cls(
            config.hidden_size,
            config.num_hidden_layers,
            inner,
            labels,
            count_parameters(model) - head,
            head,
        )

    @property
    def head_formula(self) -> str:
        """Of a linear head: C numbers per channel and, mostly, a bias; of any other its plain count."""
        if self.head == self.C * self.d + self.C:
            return f"{self.C}d + {self.C}"
        return f"{self.C}d" if self.head == self.C * self.d else f"{self.head:,}"


@dataclass(frozen=True)
class Counted:
    """A count as a formula says it. `value` is None where the formula has no closed form."""

    formula: str
    value: int | None
    # Another count in use for the same thing, and why it is not what the library trains.
    also: str = ""
    also_value: int | None = None
    why: str = ""


class Amount(Part, family="amount"):
    """How much of a model is tuned."""

    @property
    def places(self) -> int:
        """Of the model's positions, how many it takes before the text."""
        return 0

    def put(self, model: Any) -> Any:
        """Freeze what stays as it is, and add what is to be trained; gives back the model to call."""
        raise TypeError(f"the amount {self.name!r} changes nothing")

    def counted(self, sizes: Sizes) -> Counted:
        """How many numbers are trained, as a formula."""
        raise TypeError(f"the amount {self.name!r} says no formula")


def heads_of(model: Any) -> list[nn.Module]:
    """What stands on the body of a classifier of transformers: everything beside it."""
    body = model.base_model_prefix
    return [child for name, child in model.named_children() if name != body]


def freeze_body(model: Any) -> None:
    """Only the head goes on being trained."""
    kept = {id(p) for part in heads_of(model) for p in part.parameters()}
    for parameter in model.parameters():
        parameter.requires_grad_(id(parameter) in kept)


def with_peft(model: Any, config: str, **options: Any) -> Any:
    """The model with an adapter of the library peft, its head trained as well."""
    try:
        import peft
    except ImportError:
        raise RequestError("this amount needs the package peft: pip install 'attnlab[hf]'") from None
    try:
        return peft.get_peft_model(model, getattr(peft, config)(task_type="SEQ_CLS", **options))
    except (ValueError, KeyError, NotImplementedError, TypeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise RequestError(f"peft cannot do this to a {model.config.model_type}: {reason}") from None
