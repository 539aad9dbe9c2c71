"""Our operators inside a transformers model: `attn_implementation="attnlab:<name>"`.

    name = register(Attention(weigh=Sparsemax(), mask=Everything()))      # "attnlab:dot-everything-sparsemax"
    model = AutoModel.from_pretrained(directory, attn_implementation=name)

or, for a model that is there already, `put(model, Attention(…))`. The model's own mask (causal, sliding,
padding) always holds; the operator's mask comes on top of it, so `Everything()` leaves the model's alone.
Projections and positions are the model's. Attention maps come back, except with `kernel = "fused"`.

transformers forgets the choice when a model is saved: it comes back with the default attention and says
nothing. `put` therefore writes it into the config, `reload` obeys what is written there, and `check` raises
where it is written but not in force.

Operators with more than one map to a head go in as well; a mechanism without scores does not, since it has
nothing to do with the mask that a model hands over.

Shapes: B batch, H heads, G key/value heads, T queries, S keys, d head width.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention import Attention, Dims, Dot, Everything, Mixer, Score, Weigh
from attnlab.attention.core import Core
from attnlab.attention.operator import attend_fused, share_heads, weigh_masked
from attnlab.errors import RequestError, TargetError
from attnlab.spec import Part

PREFIX = "attnlab:"
_CORE = "attnlab_core"  # where an attention module keeps the weights of an operator that has any
_WRITTEN = "attnlab_attention"  # the config's field for the declaration
_UNKNOWN = ("softcap", "s_aux")  # what some models want of their attention and no operator here has


def register(attention: Attention, name: str | None = None) -> str:
    """Make an operator known to transformers; gives back what `attn_implementation` has to be."""
    if not isinstance(attention, Attention):
        name = getattr(attention, "name", type(attention).__name__)
        raise RequestError(f"a model's own mask needs scores to hide, and {name!r} has none")
    reason = attention.not_fusable_because()
    if attention.kernel == "fused" and reason:
        raise RequestError(f'kernel "fused" is not possible: {reason}; use "auto" or "stages"')
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    full = PREFIX + (name or _described(attention))
    AttentionInterface.register(full, _Operator(attention))
    # Without this the function would get no mask at all: neither padding nor causality.
    AttentionMaskInterface.register(full, _whole_mask)
    return full


def put(model: Any, attention: Attention, name: str | None = None) -> str:
    """Put an operator into a model, and into its config. One with weights gets them at once, a set per layer,
    so that an optimiser built afterwards sees them."""
    full = register(attention, name)
    model.set_attn_implementation(full)
    setattr(model.config, _WRITTEN, {"name": full.removeprefix(PREFIX), **attention.plain()})
    for module in model.modules():
        if hasattr(module, _CORE):
            delattr(module, _CORE)  # of an operator that was here before
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
        _load_weights(model, Path(directory))
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
        core = self._core(module, query)
        heads = (query, share_heads(key, query), share_heads(value, query))
        q_BMTd, k_BMSd, v_BMSd = core.apart(*heads)
        seen, real = self._visible(module, q_BMTd, k_BMSd, attention_mask)
        if isinstance(self.parts.score, Dot) and scaling is not None:
            # The model's own scale instead of the score's, for maps as wide as the model's heads.
            q_BMTd = q_BMTd * (scaling * math.sqrt(query.shape[-1]))
        bias = _of_maps(position_bias, q_BMTd)
        if self.parts.kernel == "fused":
            mask = torch.where(seen & real, q_BMTd.new_zeros(()) if bias is None else bias, float("-inf"))
            mixed_BMTd = attend_fused(self.parts, core, q_BMTd, k_BMSd, v_BMSd, mask, dropout)
            return core.together(mixed_BMTd).transpose(1, 2).contiguous(), None
        scores_BMTS = core.score(q_BMTd, k_BMSd)
        if bias is not None:
            scores_BMTS = scores_BMTS + bias
        weights_BMTS = weigh_masked(self.parts, core.weigh, scores_BMTS, seen, real)
        mixed_BMTd = F.dropout(weights_BMTS, dropout, module.training) @ v_BMSd
        return core.together(mixed_BMTd).transpose(1, 2).contiguous(), core.of_heads(weights_BMTS)

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

    def _core(self, module: nn.Module, q_BHTd: Tensor) -> Core:
        """The core of one attention module; weights, if it has any, are made at the first call."""
        sizes = _sizes(q_BHTd)
        if not self.has_weights:
            return self.parts.core(sizes)
        if not hasattr(module, _CORE):
            reason = self.parts.misfit(sizes)
            if reason:
                raise RequestError(reason)
            setattr(module, _CORE, self.parts.core(sizes).to(q_BHTd))
        made: Core = getattr(module, _CORE)
        return made


def _sizes(q_BHTd: Tensor) -> Dims:
    H, d = q_BHTd.shape[1], q_BHTd.shape[-1]
    return Dims(width=H * d, heads=H, context=1)


def _of_maps(bias_BHTS: Tensor | None, q_BMTd: Tensor) -> Tensor | None:
    """A model's position bias, given to every map of a head."""
    if bias_BHTS is None or bias_BHTS.shape[1] in (1, q_BMTd.shape[1]):
        return bias_BHTS
    return bias_BHTS.repeat(1, q_BMTd.shape[1] // bias_BHTS.shape[1], 1, 1)


def _described(attention: Attention) -> str:
    """`dot-everything-sparsemax`, with the operator's own name before it where it is not plain attention."""
    parts = "-".join(_short(part) for part in (attention.score, attention.mask, attention.weigh))
    return parts if type(attention) is Attention else f"{attention.part_name()}-{parts}"


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
    return any(True for _ in attention.core(Dims(width=4, heads=2, context=1)).parameters())


def _load_weights(model: Any, directory: Path) -> None:
    from safetensors.torch import load_file

    saved = {k: v for file in directory.glob("*.safetensors") for k, v in load_file(file).items()}
    ours = {key for key in model.state_dict() if f"{_CORE}." in key}
    prefix = f"{model.base_model_prefix}."
    found = {key: saved.get(key, saved.get(key.removeprefix(prefix))) for key in ours}
    missing = sorted(key for key, value in found.items() if value is None)
    if missing:
        raise TargetError(f"{directory}: the operator's weights are not there ({', '.join(missing)})")
    model.load_state_dict(found, strict=False)


def register_built_ins() -> list[str]:
    """Every score, every weighing and every operator by its own name, with plain parts beside it:
    `attnlab:sparsemax`."""
    operators = {n: Attention(score=Score.resolve(n), mask=Everything()) for n in Score.members}
    operators |= {n: Attention(weigh=Weigh.resolve(n), mask=Everything()) for n in Weigh.members}
    mixers = {n: Mixer.resolve(n) for n in Mixer.members if issubclass(Mixer.members[n], Attention)}
    operators |= {n: replace(cast(Attention, mixer), mask=Everything()) for n, mixer in mixers.items()}
    return [register(operator, name) for name, operator in operators.items()]
