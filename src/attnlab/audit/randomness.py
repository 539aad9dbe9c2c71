"""What an audit borrows from the process and gives back: the global random states, the threads of torch."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

_POOL = 1 << 20


@functools.cache
def _pool() -> torch.Tensor:
    return torch.randn(_POOL, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def normals(shape: Sequence[int], seed: int) -> torch.Tensor:
    """Normal values in fp64, the same for the same seed: a stretch of one pool that is drawn once.

    An audit needs them by the hundred million, and drawing them anew would take longer than the target does.
    """
    size = math.prod(shape)
    start = (seed * 611_953) % _POOL  # a prime, so that neighbouring seeds begin far apart
    pool = _pool()
    stretch = pool[start : start + size]
    if len(stretch) < size:
        stretch = torch.cat([stretch, pool.repeat((size - len(stretch)) // _POOL + 1)])[:size]
    return stretch.reshape(tuple(shape)).clone()


def reseed(seed: int = 0) -> None:
    """All three global generators, so that dropout draws the same units in the two calls of a comparison."""
    random.seed(seed)
    np.random.seed(seed)
    # `torch.manual_seed` also notes, with a traceback, what to do with devices that are not there.
    torch.default_generator.manual_seed(seed)


@contextmanager
def borrowed() -> Iterator[None]:
    """Lets the audit reseed at will, in one thread; afterwards the caller's states are as they were.

    An audit makes thousands of small calls, and handing each out to threads takes longer than the call.
    """
    python_state, numpy_state, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        torch.set_rng_state(torch_state)
