"""Initial values that arms share.

Every module draws its values from a stream of its own, which depends on the seed and the module's name only.
So two arms of one seed start from the same value of every parameter they have in common, whatever else
differs between them: that is what lets a verdict pair them.
"""

from __future__ import annotations

import hashlib
import math

import torch
from torch import nn

from attnlab.attention.residual import EndsResidual

DEVIATION = 0.02  # of weights and embeddings, as in GPT-2


def stream(seed: int, *names: object) -> int:
    """A seed for torch that is a function of `seed` and the names alone."""
    text = "/".join(str(name) for name in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")


def initialise(model: nn.Module, seed: int, *, layers: int) -> None:
    """Set every parameter, module by module.

    Linear and embedding weights are normal with deviation 0.02, and those that end a residual branch smaller
    by √(2·layers), as in GPT-2; biases are zero and norms one. A module with an `init_weights` of its own is
    asked instead, and a parameter of any other kind keeps its module's `reset_parameters`.
    """
    with torch.random.fork_rng(devices=[]):
        own_rule: tuple[str, ...] = ()
        seen: set[int] = set()
        for name, module in model.named_modules():
            if own_rule and name.startswith(own_rule):
                continue
            # A tensor of two modules (tied weights) starts as the first of them would start it.
            if id(getattr(module, "weight", None)) in seen:
                continue
            seen |= {id(parameter) for parameter in module.parameters(recurse=False)}
            torch.manual_seed(stream(seed, "initial", name))
            if hasattr(module, "init_weights"):
                module.init_weights()
                own_rule += (f"{name}.",)
            elif isinstance(module, nn.Linear | nn.Embedding):
                shrink = math.sqrt(2 * layers) if isinstance(module, EndsResidual) else 1.0
                nn.init.normal_(module.weight, std=DEVIATION / shrink)
                if getattr(module, "bias", None) is not None:
                    nn.init.zeros_(module.bias)  # type: ignore[arg-type]
            elif hasattr(module, "reset_parameters"):
                module.reset_parameters()
