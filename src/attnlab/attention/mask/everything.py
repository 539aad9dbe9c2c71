"""No mask: every position sees every other, as in an encoder."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.attention.mask.mask import Mask


@dataclass(frozen=True, kw_only=True)
class Everything(Mask):
    """Visible: every key (padding is never a key, whatever the mask)."""

    def visible(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        return torch.ones(len(queries_T), len(keys_S), dtype=torch.bool, device=keys_S.device)
