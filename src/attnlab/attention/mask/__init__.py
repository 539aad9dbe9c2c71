"""Masks, a file each. Padding and documents need none: a `Layout` keeps sequences apart."""

from attnlab.attention.mask.causal import Causal
from attnlab.attention.mask.everything import Everything
from attnlab.attention.mask.mask import Mask, Where
from attnlab.attention.mask.nearby import Nearby
from attnlab.attention.mask.window import Window

__all__ = ["Causal", "Everything", "Mask", "Nearby", "Where", "Window"]
