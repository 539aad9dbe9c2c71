"""Our operators inside a transformers model: `attn_implementation="attnlab:<name>"`.

    name = register(Attention(weigh=Sparsemax(), mask=Everything()))      # "attnlab:dot-everything-sparsemax"
    model = AutoModel.from_pretrained(directory, attn_implementation=name)

or, for a model that is there already, `put(model, Attention(…))`. The model's own mask (causal, sliding,
padding) always holds; the operator's mask comes on top of it, so `Everything()` leaves the model's alone.
Projections and positions are the model's. Attention maps come back, except with `kernel = "fused"`.

transformers forgets the choice when a model is saved: it comes back with the default attention and says
nothing. `put` therefore writes it into the config, `reload` obeys what is written there, and `check` raises
where it is written but not in force.

Shapes: B batch, H heads, G key/value heads, T queries, S keys, d head width.
"""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention import Attention, Dims, Dot, Everything, Mixer, Score, Weigh
from attnlab.attention.operator import attend_fused, share_heads, weigh_masked
from attnlab.errors import RequestError, TargetError
from attnlab.spec import Part

PREFIX = "attnlab:"
_WEIGHTS = "attnlab_score"  # where an attention module keeps the weights of a score that has any
_WRITTEN = "attnlab_attention"  # the config's field for the declaration
_UNKNOWN = ("softcap", "s_aux")  # what some models want of their attention and no operator here has


def register(attention: Attention, name: str | None = None) -> str:
    """Make an operator known to transformers; gives back what `attn_implementation` has to be."""
    if type(attention) is not Attention:
        raise RequestError(f"only score, mask and weighing can be put into a model, not {attention.name!r}")
    reason = attention.not_fusable_because()
    if attention.kernel == "fused" and reason:
        raise RequestError(f'kernel "fused" is not possible: {reason}; use "auto" or "stages"')
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    full = PREFIX + (name or "-".join(_short(p) for p in (attention.score, attention.mask, attention.weigh)))
    AttentionInterface.register(full, _Operator(attention))
    # Without this the function would get no mask at all: neither padding nor causality.
    AttentionMaskInterface.register(full, _whole_mask)
    return full


def put(model: Any, attention: Attention, name: str | None = None) -> str:
    """Put an operator into a model, and into its config. A score with weights gets them at once, one set per
    layer, so that an optimiser built afterwards sees them."""
    full = register(attention, name)
    model.set_attn_implementation(full)
    setattr(model.config, _WRITTEN, {"name": full.removeprefix(PREFIX), **attention.plain()})
    for module in model.modules():
        if hasattr(module, _WEIGHTS):
            delattr(module, _WEIGHTS)  # of an operator that was here before
    if _has_weights(attention):
        training = model.training
        with torch.no_grad():
            model.eval()(input_ids=torch.zeros(1, 2, dtype=torch.long, device=model.device))
        model.train(training)
    return full


def reload(model_class: Any, directory: str | Path) -> Any:
    """`model_class.from_pretrained(directory)` with the operator that was put into the model before it was
    saved, weights included."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(directory)
    written = getattr(config, _WRITTEN, None)
    if written is None:
        raise TargetError(f"{directory}: its config names no attnlab operator; load it with from_pretrained")
    attention = cast(Attention, Mixer.resolve({k: v for k, v in written.items() if k != "name"}))
    model = model_class.from_pretrained(directory)
    put(model, attention, written["name"])
    if _has_weights(attention):
        _load_score_weights(model, Path(directory))
    return model


def check(model: Any) -> None:
    """Raise if the model's config names an operator that is not the one in force."""
    written = getattr(model.config, _WRITTEN, None)
    in_force = model.config._attn_implementation
    if written is not None and in_force != PREFIX + written["name"]:
        raise TargetError(
            f"this model was saved with {PREFIX + written['name']!r} and runs with {in_force!r}: "
            "transformers does not keep the choice; load it with attnlab.adapt.registry.reload"
        )


class _Operator:
    """What transformers calls in every attention layer."""

    def __init__(self, parts: Attention) -> None:
        self.parts, self.has_weights = parts, _has_weights(parts)

    def __call__(
        self,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        scaling: float | None = None,
        dropout: float = 0.0,
        position_bias: Tensor | None = None,
        **others: Any,
    ) -> tuple[Tensor, Tensor | None]:
        _refuse_unknown(others)
        q_BHTd, k_BHSd, v_BHSd = query, share_heads(key, query), share_heads(value, query)
        seen, real = self._visible(module, q_BHTd, k_BHSd, attention_mask)
        if isinstance(self.parts.score, Dot) and scaling is not None:
            q_BHTd = q_BHTd * (scaling * math.sqrt(q_BHTd.shape[-1]))  # the model's own scale
        if self.parts.kernel == "fused":
            bias = q_BHTd.new_zeros(()) if position_bias is None else position_bias
            mask = torch.where(seen & real, bias, float("-inf"))
            return self._fused(module, q_BHTd, k_BHSd, v_BHSd, mask, dropout), None
        scores_BHTS = self._score(module, q_BHTd)(q_BHTd, k_BHSd)
        if position_bias is not None:
            scores_BHTS = scores_BHTS + position_bias
        weights_BHTS = weigh_masked(self.parts, self.parts.weigh, scores_BHTS, seen, real)
        mixed_BHTd = F.dropout(weights_BHTS, dropout, module.training) @ v_BHSd
        return mixed_BHTd.transpose(1, 2).contiguous(), weights_BHTS

    def _visible(
        self, module: nn.Module, q_BHTd: Tensor, k_BHSd: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """What the operator's mask shows, and what the model's does."""
        T, S = q_BHTd.shape[2], k_BHSd.shape[2]
        keys_S = torch.arange(S, device=q_BHTd.device)
        queries_T = keys_S[S - T :]  # the last ones: what went before is in the cache
        if mask is None:
            causal = getattr(module, "is_causal", False)
            real = keys_S <= queries_T[:, None] if causal else torch.ones_like(keys_S, dtype=torch.bool)
        else:
            # A mask of numbers, given by hand, hides with very low ones.
            real = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        return self.parts.mask.visible(queries_T, keys_S), real[..., :S]

    def _fused(
        self, module: nn.Module, q_BHTd: Tensor, k_BHSd: Tensor, v_BHSd: Tensor, mask: Tensor, dropout: float
    ) -> Tensor:
        """By PyTorch's kernel, which gives no attention maps."""
        score = self._score(module, q_BHTd)
        scale = self.parts.score.dot_scale(_sizes(q_BHTd))
        q_BHTd, k_BHSd = getattr(score, "as_dot", self.parts.score.as_dot)(q_BHTd, k_BHSd)
        mixed = attend_fused(self.parts, scale, q_BHTd, k_BHSd, v_BHSd, mask, dropout)
        return mixed.transpose(1, 2).contiguous()

    def _score(self, module: nn.Module, q_BHTd: Tensor) -> Any:
        """The score function of one attention module; weights, if it has any, are made at the first call."""
        if not self.has_weights:
            return self.parts.score
        if not hasattr(module, _WEIGHTS):
            setattr(module, _WEIGHTS, cast(nn.Module, self.parts.score.build(_sizes(q_BHTd))).to(q_BHTd))
        return getattr(module, _WEIGHTS)


def _sizes(q_BHTd: Tensor) -> Dims:
    H, d = q_BHTd.shape[1], q_BHTd.shape[-1]
    return Dims(width=H * d, heads=H, context=1)


def _short(part: Part) -> str:
    """The name of a part, with its fields where they are not the defaults."""
    changed = [f for f in fields(cast(Any, part)) if getattr(part, f.name) != f.default]
    return "".join([part.part_name(), *(f"({f.name}={getattr(part, f.name)})" for f in changed)])


def _whole_mask(*sizes: Any, **options: Any) -> Tensor:
    """The model's own mask, as booleans, and always: what may be skipped for sdpa may not be for others."""
    from transformers.masking_utils import sdpa_mask

    never = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    return cast(Tensor, sdpa_mask(*sizes, **{**options, **never}))


def _refuse_unknown(others: dict[str, Any]) -> None:
    wanted = [name for name in _UNKNOWN if others.get(name) is not None]
    if wanted:
        raise TargetError(f"this model's attention uses {', '.join(wanted)}, which no attnlab operator has")


def _has_weights(attention: Attention) -> bool:
    return isinstance(attention.score.build(Dims(width=2, heads=1, context=1)), nn.Module)


def _load_score_weights(model: Any, directory: Path) -> None:
    from safetensors.torch import load_file

    saved = {k: v for file in directory.glob("*.safetensors") for k, v in load_file(file).items()}
    ours = {key for key in model.state_dict() if f"{_WEIGHTS}." in key}
    prefix = f"{model.base_model_prefix}."
    found = {key: saved.get(key, saved.get(key.removeprefix(prefix))) for key in ours}
    missing = sorted(key for key, value in found.items() if value is None)
    if missing:
        raise TargetError(f"{directory}: the weights of the score are not there ({', '.join(missing)})")
    model.load_state_dict(found, strict=False)


def register_built_ins() -> list[str]:
    """Every score and every weighing by its own name, with plain parts beside it: `attnlab:sparsemax`."""
    names = [register(Attention(score=Score.resolve(n), mask=Everything()), n) for n in Score.members]
    return names + [register(Attention(weigh=Weigh.resolve(n), mask=Everything()), n) for n in Weigh.members]
