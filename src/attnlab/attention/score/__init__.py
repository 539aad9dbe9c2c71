"""Score functions, a file each."""

from attnlab.attention.score.additive import Additive
from attnlab.attention.score.dot import Dot
from attnlab.attention.score.score import Score, ScoreFunction

__all__ = ["Additive", "Dot", "Score", "ScoreFunction"]
