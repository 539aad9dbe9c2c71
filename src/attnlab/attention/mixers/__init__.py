"""Mixers other than plain attention, a file each."""

from attnlab.attention.mixers.aft_conv import AftConv
from attnlab.attention.mixers.aft_full import AftFull
from attnlab.attention.mixers.aft_local import AftLocal
from attnlab.attention.mixers.aft_simple import AftSimple
from attnlab.attention.mixers.differential import Differential
from attnlab.attention.mixers.fastformer import Fastformer
from attnlab.attention.mixers.favor import Favor
from attnlab.attention.mixers.linear_attention import LinearAttention
from attnlab.attention.mixers.talking_heads import TalkingHeads

__all__ = [
    "AftConv",
    "AftFull",
    "AftLocal",
    "AftSimple",
    "Differential",
    "Fastformer",
    "Favor",
    "LinearAttention",
    "TalkingHeads",
]
