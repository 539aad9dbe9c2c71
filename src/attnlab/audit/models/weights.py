"""Parameters: all of them move, those that are tied stay tied, and a reloaded model is the same model.

Shapes: B batch, T time, V vocabulary.
"""

from __future__ import annotations

import tempfile
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.audit.models.sane import apart
from attnlab.audit.models.subject import Model
from attnlab.audit.rule import Seen, fine, found, rule, skipped

_TIE_NAMES = ("tie_word_embeddings", "tie_weights", "tied", "tie_embeddings", "weight_tying")
SMALL = 20_000_000  # parameters up to which a model is written to disk and read back


def next_token_loss(logits_BTV: Tensor, tokens_BT: Tensor) -> Tensor:
    """Cross-entropy of each next token, written out here so that no target's own loss is trusted."""
    return F.cross_entropy(logits_BTV[:, :-1].flatten(0, 1).float(), tokens_BT[:, 1:].flatten())


@rule(
    "parameters",
    tests="every parameter that asks for a gradient gets one that is not zero, from the next-token loss",
    claims="no parameter is dead weight",
    threshold="exact zeros in the whole tensor, over a batch of 8 sequences",
)
def parameters(model: Model) -> Seen:
    module = model.module
    module.zero_grad(set_to_none=True)
    tokens = model.tokens(8, min(33, model.longest), seed=8)
    with torch.enable_grad():
        next_token_loss(model(tokens, training=True), tokens).backward()
    asking = {name: p for name, p in module.named_parameters() if p.requires_grad}
    still = [name for name, p in asking.items() if p.grad is None or not bool((p.grad != 0).any())]
    broken = [
        name for name, p in asking.items() if p.grad is not None and not bool(torch.isfinite(p.grad).all())
    ]
    module.zero_grad(set_to_none=True)
    if broken:
        return found(f"the gradient of {_few(broken)} is not all numbers", broken=broken)
    if still:
        return found(f"no gradient reaches {_few(still)}: unused, detached or masked away", still=still)
    frozen = sum(not p.requires_grad for p in module.parameters())
    return fine(f"all {len(asking)} parameters get a gradient" + (f"; {frozen} are frozen" if frozen else ""))


@rule(
    "tied",
    tests="where a configuration says that the head is the embedding, they are one tensor, before "
    "and after a "
    "reload; and a reloaded model gives the same logits",
    claims="what is saved is what is loaded",
    threshold="the same storage; logits equal within 1e-7 of the largest in fp64, 1e-4 in fp32",
)
def tied(model: Model) -> Seen:
    declared = _declares_tie(model.module)
    if declared and not _is_tied(model.module):
        return found("the configuration ties the head to the embedding, and they are two tensors")
    if sum(p.numel() for p in model.module.parameters()) > SMALL:
        return skipped("too large to be reloaded here")
    tokens = model.tokens(2, min(9, model.longest), seed=9)
    again, shared = _reloaded(model), _sharing(model.module)
    if declared and not _is_tied(again.module):
        return found("after a reload the head and the embedding are two tensors")
    lost = shared - _sharing(again.module)
    if lost:
        return found(
            f"after a reload these no longer share one tensor: {_few([' and '.join(s) for s in lost])}"
        )
    with torch.no_grad():
        gap = apart(model(tokens), again(tokens))
    if not gap <= model.tolerance:
        return found(f"a reloaded model gives logits {gap:.2g} of their size away", by=gap)
    return fine("a reloaded model is the same" + (", tied weights and all" if shared else ""))


def _reloaded(model: Model) -> Model:
    """Through files, where the model knows how; else through its state dictionary into scrambled weights."""
    again = model.fresh()
    module: Any = model.module
    if hasattr(module, "save_pretrained") and hasattr(type(module), "from_pretrained"):
        with tempfile.TemporaryDirectory() as directory:
            module.save_pretrained(directory)
            loaded: Any = type(module)
            fresh: nn.Module = loaded.from_pretrained(directory, dtype=next(module.parameters()).dtype)
        return Model(**{**vars(again), "module": fresh})
    with torch.no_grad():
        for parameter in again.module.parameters():
            parameter.normal_()
    again.module.load_state_dict(module.state_dict())
    return again


def _declares_tie(module: nn.Module) -> bool:
    for holder in (getattr(module, "config", None), getattr(module, "spec", None), module):
        for name in _TIE_NAMES:
            if isinstance(value := getattr(holder, name, None), bool):
                return value
    return False


def _is_tied(module: Any) -> bool:
    ends = _ends(module)
    return ends is None or ends[0].data_ptr() == ends[1].data_ptr()


def _ends(module: Any) -> tuple[Tensor, Tensor] | None:
    """The weights of the embedding and of the head, where both can be told; None where they cannot."""
    if hasattr(module, "get_input_embeddings") and hasattr(module, "get_output_embeddings"):
        first, last = module.get_input_embeddings(), module.get_output_embeddings()
    else:
        parts = list(module.modules())
        first = next((p for p in parts if isinstance(p, nn.Embedding)), None)
        if first is None:
            return None
        shape = first.weight.shape
        last = next(
            (p for p in reversed(parts) if isinstance(p, nn.Linear) and p.weight.shape == shape), None
        )
    if first is None or last is None or not hasattr(first, "weight") or not hasattr(last, "weight"):
        return None
    return first.weight, last.weight


def _sharing(module: nn.Module) -> set[tuple[str, ...]]:
    """Groups of names that stand for one tensor."""
    by_place: dict[int, list[str]] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        by_place.setdefault(parameter.data_ptr(), []).append(name)
    return {tuple(sorted(names)) for names in by_place.values() if len(names) > 1}


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
