"""Whether a model with its cache says what it says without."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from attnlab.decoding.writer import Writer
from attnlab.record import Check

_TOLERANCE = 1e-4  # of the largest logit: fp32 sums in another order differ by less
_COARSE = 3e-2  # the same for weights of 16 bits


@torch.inference_mode()
def cache_check(writer: Writer, prompt: Sequence[int], tokens: Sequence[int]) -> Check:
    """The logits of a text read as it was written (the prompt, then token by token) against one pass over the
    whole of it."""
    whole_1TV = writer.logits(torch.tensor([[*prompt, *tokens]]))
    reading = writer.begin()
    pieces = [reading.read(torch.tensor([list(prompt)]))]
    pieces += [reading.read(torch.tensor([[token]])) for token in tokens]
    whole_TV, read_TV = whole_1TV[0, len(prompt) - 1 :].float(), torch.cat(pieces).float()
    apart_T = (whole_TV - read_TV).abs().amax(-1) / whole_TV.abs().max()
    worst = int(apart_T.argmax())
    agree = int((whole_TV.argmax(-1) == read_TV.argmax(-1)).sum())
    tolerance = _COARSE if whole_1TV.element_size() < 4 else _TOLERANCE
    apart = float(apart_T[worst])
    evidence = (
        f"with the cache, the logits are at most {apart:.2g} of their size away from the full pass (after "
        f"{worst} new tokens), and the likeliest token is the same at {agree} of {len(read_TV)} places"
    )
    detail = {"apart": apart, "after": worst, "tolerance": tolerance, "same": agree, "of": len(read_TV)}
    return Check("cache", "pass" if apart <= tolerance else "fail", evidence, detail)
