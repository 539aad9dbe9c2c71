"""Where a model is trained: the processor, or a graphics card.

Initial values, batches and draws are made on the processor wherever the work is done, so that a study starts
the same everywhere. On a graphics card the code is proved for shapes and places, and not yet measured.
"""

from __future__ import annotations

from typing import Literal

import torch

from attnlab.errors import RequestError

Device = Literal["cpu", "cuda"]


def present(device: Device) -> torch.device:
    """The device of that name; an error where this machine has none. Nothing else is taken in its place."""
    if device == "cuda" and not torch.cuda.is_available():
        raise RequestError(
            "training.device is 'cuda', and PyTorch finds no such accelerator here (usable: cpu)"
        )
    return torch.device(device)
