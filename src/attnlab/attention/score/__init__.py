"""Score functions, a file each."""

from attnlab.attention.score.additive import Additive
from attnlab.attention.score.bilinear import Bilinear
from attnlab.attention.score.cosine import Cosine
from attnlab.attention.score.distance import Distance
from attnlab.attention.score.dot import Dot
from attnlab.attention.score.function import score_from
from attnlab.attention.score.score import Score, ScoreFunction
from attnlab.attention.score.unscaled import Unscaled

__all__ = [
    "Additive",
    "Bilinear",
    "Cosine",
    "Distance",
    "Dot",
    "Score",
    "ScoreFunction",
    "Unscaled",
    "score_from",
]
