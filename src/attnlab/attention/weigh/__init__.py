"""Weighings, a file each."""

from attnlab.attention.weigh.softmax import Softmax
from attnlab.attention.weigh.weigh import Weigh

__all__ = ["Softmax", "Weigh"]
