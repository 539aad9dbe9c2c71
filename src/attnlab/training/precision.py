"""In which type the head's products are taken: half of a step's time hangs on it.

Processors that multiply bfloat16 in hardware do it twice as fast as fp32; others take apart and put together
every number, and are several times slower than with fp32.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Literal

import torch

Precision = Literal["auto", "float32", "bfloat16-head"]


@functools.cache
def multiplies_bfloat16() -> bool:
    """Whether this machine's processor multiplies bfloat16 in hardware, as far as was measured: on x86."""
    known: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(known.get(feature) for feature in ("avx512_bf16", "amx_bf16"))


def settled(precision: Precision, bfloat16: bool) -> Precision:
    """`auto` as what it comes to on a machine that has products in bfloat16, or has not."""
    if precision != "auto":
        return precision
    return "bfloat16-head" if bfloat16 else "float32"
