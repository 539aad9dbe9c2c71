"""Weighings, a file each."""

from attnlab.attention.weigh.argmax import Argmax
from attnlab.attention.weigh.entmax import Entmax15
from attnlab.attention.weigh.relu import Relu
from attnlab.attention.weigh.sigmoid import Sigmoid
from attnlab.attention.weigh.softmax import Softmax
from attnlab.attention.weigh.softmax_plus_one import SoftmaxPlusOne
from attnlab.attention.weigh.sparsemax import Sparsemax
from attnlab.attention.weigh.straight_through import StraightThroughArgmax
from attnlab.attention.weigh.weigh import Weigh, WeighFunction

__all__ = [
    "Argmax",
    "Entmax15",
    "Relu",
    "Sigmoid",
    "Softmax",
    "SoftmaxPlusOne",
    "Sparsemax",
    "StraightThroughArgmax",
    "Weigh",
    "WeighFunction",
]
