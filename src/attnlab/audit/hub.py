"""Models of transformers: a class made tiny with random weights, or a checkpoint as it is."""

from __future__ import annotations

import contextlib
import io
import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attnlab.audit.census.tiny import VOCABULARY, tiny_configs
from attnlab.audit.models.subject import Model, logits_in, model_from
from attnlab.errors import TargetError, unknown

# What a configuration can say about looking both ways; a model that says so does not leak.
_SAYS_BOTH_WAYS: tuple[tuple[str, object], ...] = (
    ("causal", False),
    ("is_causal", False),
    ("is_decoder", False),
    ("attn_type", "bi"),
    ("use_bidirectional_attention", True),
)
_SPECIAL_TOKENS = 5  # ids below are padding, beginning, end and the like in most configurations


class NotBuilt(TargetError):
    """A class of which no tiny model could be made, and why."""


def library() -> Any:
    """transformers, quiet; or an error that says how to get it."""
    try:
        import transformers
    except ImportError:
        raise TargetError("transformers is not installed: pip install 'attnlab[hf]'") from None
    logging: Any = transformers.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return transformers


def causal_classes() -> list[str]:
    """Every class that the installed transformers loads for causal language modelling."""
    library()
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    flat = [
        name
        for entry in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
        for name in ([entry] if isinstance(entry, str) else entry)
    ]
    return sorted(set(flat))


def tiny_model(class_name: str) -> Model:
    """A class of transformers, small and with random weights that are strong enough to show what they do."""
    transformers = library()
    cls: Any = getattr(transformers, class_name, None)
    if getattr(cls, "config_class", None) is None:
        raise TargetError(unknown("model class of transformers", class_name, causal_classes()))
    reason: Exception | None = None
    for config in tiny_configs(cls.config_class):
        try:
            if isinstance(config, Exception):
                raise config
            with _quiet():
                torch.manual_seed(0)
                module: Any = cls(config).eval()
                strengthen(module)
                with torch.no_grad():
                    logits_in(module(torch.randint(_SPECIAL_TOKENS, VOCABULARY - 30, (2, 12))))
        except Exception as error:  # this configuration does not work out: the next
            reason = reason or error
            continue
        return _as_model(module, f"transformers:{class_name}", longest=512)
    assert reason is not None
    text = re.sub(r"\s+", " ", str(reason)).strip()[:160]
    raise NotBuilt(f"no tiny configuration of {class_name} works: {type(reason).__name__}: {text}")


def checkpoint(where: str, *, trust_remote_code: bool = False) -> Model:
    """A checkpoint as something to audit."""
    return _as_model(pretrained(where, trust_remote_code=trust_remote_code), f"hf:{where}")


def pretrained(where: str, *, trust_remote_code: bool = False) -> Any:
    """A causal language model from a directory or the hub; without pickle, and without its own code unless
    that is trusted."""
    transformers = library()
    path = Path(where).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise TargetError(f"{where}: the directory has no config.json")
        if not list(path.glob("*.safetensors")):
            raise TargetError(
                f"{where}: the directory has no .safetensors file; other formats are pickles, "
                "which run code when "
                "they are loaded, and are not loaded here"
            )
    try:
        with _quiet():
            return transformers.AutoModelForCausalLM.from_pretrained(
                where, trust_remote_code=trust_remote_code, use_safetensors=True
            ).eval()
    except Exception as error:  # theirs are of many kinds: not found, no such architecture, code of its own
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if "trust_remote_code" in str(error):
            text = "it brings code of its own, run only with --trust-remote-code (trust_remote_code=True)"
        raise TargetError(f"hf:{where} could not be loaded: {text}") from None


def says_it_looks_both_ways(module: Any) -> str | None:
    """What in the configuration says that the model is bidirectional by design, if anything does."""
    config = module.config.get_text_config()
    for name, value in _SAYS_BOTH_WAYS:
        if getattr(config, name, None) == value and type(getattr(config, name)) is type(value):
            return f"its configuration says {name}={value!r}"
    return None


def strengthen(module: nn.Module) -> None:
    """Weights at which attention matters: libraries begin with weights so small that a leak "
    "hides in rounding."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            if not parameter.is_floating_point():
                continue
            noise = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
            if parameter.ndim >= 2:
                parameter.copy_(noise / math.sqrt(parameter.shape[-1]))
            else:
                parameter.add_(0.1 * noise)


def _as_model(module: Any, name: str, **known: Any) -> Model:
    config = module.config.get_text_config()
    embedding = module.get_input_embeddings()
    vocabulary = min(config.vocab_size, getattr(embedding, "num_embeddings", config.vocab_size))
    return model_from(
        module,
        name,
        vocabulary=vocabulary,
        first_token=min(_SPECIAL_TOKENS, vocabulary // 2),
        implementations=tuple(_implementations(module)),
        both_ways=says_it_looks_both_ways(module),
        **known,
    )


def _implementations(module: Any) -> Iterator[str]:
    """The implementations of attention that run on any machine, as far as the class has them."""
    yield "eager"
    if getattr(module, "_supports_sdpa", False):
        yield "sdpa"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
