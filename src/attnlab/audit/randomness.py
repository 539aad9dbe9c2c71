"""What an audit borrows from the process and gives back: the global random states, the threads of torch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


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
