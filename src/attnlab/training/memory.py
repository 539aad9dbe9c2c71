"""Memory that was freed stays with the process.

Left alone, the C library gives every large tensor back to the system when it is freed and fetches the next
one anew, page by page: at the common set-up that alone can double the time of a training step.
"""

from __future__ import annotations

import ctypes
import functools
import sys

# Parameters of mallopt(3).
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_LARGEST = 2**31 - 1


@functools.cache
def keep_freed_memory() -> bool:
    """Ask the C library to keep what is freed, once per process; says whether it could be asked."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library than glibc
        return False
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _LARGEST), (_TOP_PAD, 64 * 2**20))
    return all(mallopt(parameter, value) == 1 for parameter, value in settings)
