"""The decoding state of an AFT whose position biases reach only so far back: the last few keys and values,
and everything before them folded into one.

Folding is exact. Beyond the reach w is zero, and there Σ e^k v and Σ e^k are what one token with the key
log Σ e^k and the mean value would contribute.

Shapes: B batch, H heads, T new tokens, S keys, d head width.
"""

from __future__ import annotations

import torch
from torch import Tensor

_LONG_AGO = -(1 << 40)  # the position of the folded token: out of anyone's reach


class RecentAndFolded:
    """Keys and values within reach, and one token for all earlier ones."""

    def __init__(self, reach: int) -> None:
        self.reach, self.length = reach, 0
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self._positions = torch.empty(0, dtype=torch.long)

    def append(self, k_BHTd: Tensor, v_BHTd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Take in new keys and values; give back all there are, with their positions."""
        new = torch.arange(self.length, self.length + k_BHTd.shape[2])
        self.length += len(new)
        k = k_BHTd if self._keys is None else torch.cat([self._keys, k_BHTd], dim=2)
        v = v_BHTd if self._values is None else torch.cat([self._values, v_BHTd], dim=2)
        positions_S = torch.cat([self._positions, new])
        self._fold(k, v, positions_S)
        return k, v, positions_S.to(k.device)

    def _fold(self, k: Tensor, v: Tensor, positions_S: Tensor) -> None:
        # The next query stands at `length`; one at `length - reach + 1` is the first it reaches.
        old = int((positions_S <= self.length - self.reach).sum())
        if old > 1:
            folded_k = k[:, :, :old].logsumexp(2, keepdim=True)
            folded_v = (k[:, :, :old].softmax(2) * v[:, :, :old]).sum(2, keepdim=True)
            k, v = torch.cat([folded_k, k[:, :, old:]], dim=2), torch.cat([folded_v, v[:, :, old:]], dim=2)
            positions_S = torch.cat([torch.tensor([_LONG_AGO]), positions_S[old:]])
        self._keys, self._values, self._positions = k, v, positions_S

    def keep(self, rows_B: Tensor) -> None:
        if self._keys is not None and self._values is not None:
            self._keys, self._values = self._keys[rows_B], self._values[rows_B]
