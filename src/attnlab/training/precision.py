"""In which type the head's products are taken: half of a step's time hangs on it.

The compiled kernel (`head_kernel`) is fastest, and takes them in fp32. Without it PyTorch makes them:
processors that multiply bfloat16 in hardware do that twice as fast as fp32; others take apart and put
together every number, and are several times slower than with fp32.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Literal

import torch

from attnlab.training.head_kernel import kernel

Precision = Literal["auto", "float32", "bfloat16-head"]


@functools.cache
def multiplies_bfloat16() -> bool:
    """Whether this machine's processor multiplies bfloat16 in hardware, as far as was measured: on x86."""
    known: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(known.get(feature) for feature in ("avx512_bf16", "amx_bf16"))


def gains_by_bfloat16() -> bool:
    """Whether a head in bfloat16 is the fastest that this machine has."""
    return multiplies_bfloat16() and kernel() is None


def settled(precision: Precision, bfloat16: bool) -> Precision:
    """`auto` as what it comes to on a machine that gains by bfloat16, or does not."""
    if precision != "auto":
        return precision
    return "bfloat16-head" if bfloat16 else "float32"
