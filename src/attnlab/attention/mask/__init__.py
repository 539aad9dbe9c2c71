"""Masks, a file each."""

from attnlab.attention.mask.causal import Causal
from attnlab.attention.mask.everything import Everything
from attnlab.attention.mask.mask import Mask, Where

__all__ = ["Causal", "Everything", "Mask", "Where"]
