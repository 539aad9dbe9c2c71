"""A pretrained classifier as it is tuned: so much of it trained, the rest as the checkpoint has it.

What is kept of a run are the trained parameters alone: the others are in the checkpoint.

Shapes: B texts, T tokens, D model width, C labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from attnlab.adapt.amounts import Amount, Full, Head, Sizes
from attnlab.adapt.amounts.amount import heads_of
from attnlab.adapt.pretrained import Pretrained, quiet
from attnlab.errors import StoreError
from attnlab.model.initial import DEVIATION, stream
from attnlab.training.precision import multiplies_bfloat16

AUTO = "AutoModelForSequenceClassification"


class Tunable(Pretrained):
    """A checkpoint, and how much of it is tuned."""

    amount: Amount = Full()
    # In which type matrices are multiplied in training: bfloat16 where the processor has it, unless said.
    products: Literal["auto", "float32", "bfloat16"] = "auto"
    fresh: bool = False  # the checkpoint's architecture with random weights: what is the pretraining worth?
    recompute: bool = False  # activations in the backward pass instead of keeping them: slower, less memory

    def settled(self, bfloat16: bool) -> Self:
        """With `auto` replaced by what it comes to on a machine with or without products in bfloat16."""
        if self.products != "auto":
            return self
        return self.model_copy(update={"products": "bfloat16" if bfloat16 else "float32"})

    @property
    def product_type(self) -> torch.dtype:
        chosen = self.settled(multiplies_bfloat16()).products
        return torch.bfloat16 if chosen == "bfloat16" else torch.float32

    def build(self, labels: int, seed: int = 0, base: Path | None = None) -> TunedModel:
        """The model at its values before the first step, which are a function of the seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(stream(seed, "initial", "loading"))
            loaded = self.load(AUTO, base, num_labels=labels)
            model = loaded.model
            sizes = Sizes.of(model, labels)
            every = (name for name, _ in model.named_parameters())
            _draw(model, every if self.fresh else loaded.new, seed)
            if self.recompute:
                _recompute(model)
            torch.manual_seed(stream(seed, "initial", "amount"))
            with quiet():
                inner = self.amount.put(model)
        drawn = self.fresh or any(key.startswith(f"{model.base_model_prefix}.") for key in loaded.new)
        return TunedModel(
            inner,
            sizes,
            frozen_body=isinstance(self.amount, Head),
            same_body=not drawn and self.attention is None,
            facts=loaded.facts,
        )


class TunedModel(nn.Module):
    """A model of transformers, perhaps within one of peft, behind the names that training needs."""

    def __init__(
        self, inner: Any, sizes: Sizes, *, frozen_body: bool, same_body: bool, facts: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self.inner, self.sizes, self.facts = inner, sizes, facts
        self.frozen_body = frozen_body  # nothing of it is trained
        self.same_body = same_body  # every seed begins with the same one

    def answer(self, ids_BT: Tensor, mask_BT: Tensor, segments_BT: Tensor | None) -> Tensor:
        """(B, C) logits of texts filled up to one length."""
        given = {} if segments_BT is None else {"token_type_ids": segments_BT}
        logits_BC: Tensor = self.inner(input_ids=ids_BT, attention_mask=mask_BT, **given).logits
        return logits_BC

    def answer_from(self, features_BD: Tensor) -> Tensor:
        """(B, C) logits of what a frozen body made of texts; its dropout is the checkpoint's own."""
        logits_BC: Tensor = self.head(features_BD)
        return logits_BC

    @property
    def head(self) -> nn.Module:
        """The one module on the body that has weights; where there are several, their like is no function of
        the body's output alone."""
        with_weights = [part for part in heads_of(self.inner) if any(True for _ in part.parameters())]
        if len(with_weights) != 1:
            raise LookupError(f"{len(with_weights)} modules stand on the body")
        return with_weights[0]

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def train(self, mode: bool = True) -> Self:
        """A frozen body stays as it is measured: without dropout."""
        super().train(mode)
        if self.frozen_body:
            self.inner.base_model.eval()
        return self

    def state_dict(self, *args: Any, **options: Any) -> dict[str, Any]:  # type: ignore[override]
        """The trained parameters."""
        return {name: p.detach() for name, p in self.named_parameters() if p.requires_grad}

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        """Put trained parameters back; anything but exactly those is refused."""
        own = {name: p for name, p in self.named_parameters() if p.requires_grad}
        if own.keys() != state_dict.keys():
            odd = sorted(own.keys() ^ state_dict.keys())
            raise StoreError(
                f"not the trained parameters of this model: {len(odd)} names differ, such as {odd[0]}"
            )
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(state_dict[name])


def _draw(model: Any, names: Iterable[str], seed: int) -> None:
    """Weights that come from no checkpoint, drawn as every arm of the seed draws them."""
    deviation = getattr(model.config, "initializer_range", DEVIATION)
    owners = dict(model.named_modules())
    with torch.no_grad():
        for key in names:
            owner, _, name = key.rpartition(".")
            parameter = getattr(owners[owner], name)
            torch.manual_seed(stream(seed, "initial", key))
            if parameter.dim() > 1:
                parameter.normal_(std=deviation)
            else:
                parameter.fill_(1.0 if name == "weight" else 0.0)  # of a norm


def _recompute(model: Any) -> None:
    """Under the name that this version of transformers has for it."""
    name = "activation_checkpointing_enable"
    enable = getattr(model, name, None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})
