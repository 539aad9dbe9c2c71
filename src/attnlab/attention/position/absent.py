"""No positions: a causal model can still count what it sees (Haviv et al. 2022, https://arxiv.org/abs/2203.16634)."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.attention.position.position import Position


@dataclass(frozen=True, kw_only=True)
class Absent(Position):
    """Tokens carry no position."""
