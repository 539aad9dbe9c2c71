"""Any configuration class of transformers, made tiny: by what its fields are called, not by "
"whose they are."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

VOCABULARY = 128
_TOKEN = re.compile(r"token_id|token_index|_idx$|index")
_LAYERS = re.compile(
    r"^(num_hidden_layers|n_layers?|num_layers|(num_)?(en|de)coder_layers|depth|num_blocks)$"
)

# The first pattern found in a field's name gives its largest value. Four heads of 16 make a width of 64, and
# where state-space heads are counted, eight of them make the usual expansion to twice that.
_LARGEST: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern), value)
    for pattern, value in (
        (r"vocab", VOCABULARY),
        (r"^(max_|original_max_|n_)position|^max_seq|^n_ctx$|^seq_length$|^max_(target|source)_pos", 512),
        (r"codebooks", 1),
        (r"^n_group$|expert_groups?$", 2),
        (r"^topk_group$", 1),
        (r"key_value_heads|num_kv_heads|n_head_kv|multi_query_group_num|num_query_groups|kv_n_heads", 2),
        (r"mamba.*heads", 8),
        (r"attention_heads|^n_heads?$|num_heads|n_heads|num_.*_heads$", 4),
        (r"^(hidden_size|d_model|n_embd|dim|emb_dim|model_dim|embedding_size|embed_dim|hidden_dim)$", 64),
        (r"rotary_dim", 8),
        (r"head_dim|kv_channels|head_size|d_kv|d_head", 16),
        (r"intermediate_size|ffn|n_inner|d_ff|feed_forward|ffw|mlp_dim|d_inner|mlp_hidden", 64),
        (r"hidden_size", 64),
        (r"lora_rank|lora_dim|_rank$", 16),
        (r"per_tok|top_?k|moe_k|num_selected", 2),
        (r"n_shared_experts|num_shared_experts", 1),
        (r"experts", 4),
        (r"image_size", 56),
        (r"chunk_size", 16),  # chunks are filled up to this length, and their cost grows with its square
    )
)

# Defaults that no class works with: what they are replaced by.
_INSTEAD_OF_NONE: dict[str, Any] = {
    "num_experts_per_tok": 2,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "n_group": 1,
    "topk_group": 1,
    "attn_layer_indices": [1],
    "head_dim": 16,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}

# What some configurations want and no rule of names can tell.
_WANTS: dict[str, dict[str, Any]] = {
    "GraniteMoeHybridConfig": {"layer_types": ["mamba", "attention"], "num_hidden_layers": 2},
    "GPTNeoConfig": {"attention_types": [[["global", "local"], 1]]},
    "Mamba2Config": {"num_heads": 8},
    "ReformerConfig": {"axial_pos_embds": False},
    "XmodConfig": {"default_language": "en_XX"},
}


def tiny_configs(cls: type) -> Iterator[Any]:
    """Tiny configurations of a class, from the most natural on: not every one of them makes a model."""
    for layers, key_value_heads, fill in (
        (None, None, False),
        (None, 4, False),
        (None, 4, True),
        (4, 4, False),
        (8, 4, False),
        (2, 4, True),
    ):
        try:
            yield _tiny(cls, layers, key_value_heads, fill)
        except Exception as error:  # its own validation: the next is another try, and the last reason is told
            yield error


def _tiny(cls: type, layers: int | None, key_value_heads: int | None, fill: bool) -> Any:
    default = cls()
    names = _fields_of(cls)
    nested: Mapping[str, Any] = _read(cls, "sub_configs") or {}
    depth = layers or min(_layers_for_every_kind(default), 12)
    full = next(
        (v for name in names if _LAYERS.match(name) and isinstance(v := _read(default, name), int)), None
    )
    values: dict[str, Any] = {}
    for name in sorted(names - set(nested)):
        value = _read(default, name)
        if _LAYERS.match(name) and isinstance(value, int):
            values[name] = min(value, depth)
        elif isinstance(value, list | tuple):
            if full and len(value) == full:
                values[name] = list(value[:depth])
            elif value and "indices" in name and all(isinstance(i, int) for i in value):
                values[name] = [depth - 1]  # which layers are of the rarer kind
        elif fill and name in _INSTEAD_OF_NONE and _is_open(value):
            values[name] = _INSTEAD_OF_NONE[name]
        elif isinstance(value, int) and not isinstance(value, bool):
            values.update(_shrunk(name, value))
    if key_value_heads and "num_key_value_heads" in names:
        values["num_key_value_heads"] = key_value_heads
    if fill and "layer_types" in names and _read(default, "layer_types") is None:
        values["layer_types"] = ["full_attention"] * depth
    if "is_decoder" in names:
        values["is_decoder"] = True
    for name in nested:
        inner = _read(default, name)
        if inner is not None and not isinstance(inner, dict):
            values[name] = _tiny(type(inner), layers, key_value_heads, fill)
    return cls(**{**values, **_WANTS.get(cls.__name__, {})})


def _is_open(value: Any) -> bool:
    """Whether a default leaves open what the class cannot do without."""
    return value is None or (isinstance(value, dict) and None in value.values())


def _shrunk(name: str, value: int) -> dict[str, int]:
    if _TOKEN.search(name):
        return {name: VOCABULARY - 28} if value >= VOCABULARY - 8 else {}
    largest = next((limit for pattern, limit in _LARGEST if pattern.search(name)), None)
    return {} if largest is None or value <= largest else {name: largest}


def _layers_for_every_kind(default: Any) -> int:
    """How many layers it takes until each kind of layer has come once."""
    for name in ("layer_types", "layers_block_type", "block_types"):
        kinds = _read(default, name)
        if isinstance(kinds, list | tuple) and kinds:
            return max(2, max([*map(str, kinds)].index(kind) for kind in set(map(str, kinds))) + 1)
    return 2


def _fields_of(cls: Any) -> set[str]:
    if dataclasses.is_dataclass(cls):
        return {field.name for field in dataclasses.fields(cls)}
    return set(inspect.signature(cls.__init__).parameters) - {"self", "kwargs"}


def _read(thing: Any, name: str) -> Any:
    """A field's value; some refuse to be read, such as those that differ from layer to layer."""
    try:
        return getattr(thing, name, None)
    except Exception:  # their own error types differ from release to release
        return None
