"""Attention in parts: position, score, mask, weigh, project; composed by `Attention`."""

from attnlab.attention.dims import Dims
from attnlab.attention.layout import Layout
from attnlab.attention.mask import Causal, Everything, Mask
from attnlab.attention.mixer import Mixer, MixerLayer, State
from attnlab.attention.operator import Attention, AttentionLayer
from attnlab.attention.position import Absent, Learned, Position, PositionScheme
from attnlab.attention.project import Project, Projection, Separate
from attnlab.attention.score import Additive, Dot, Score
from attnlab.attention.weigh import Softmax, Weigh

__all__ = [
    "Absent",
    "Additive",
    "Attention",
    "AttentionLayer",
    "Causal",
    "Dims",
    "Dot",
    "Everything",
    "Layout",
    "Learned",
    "Mask",
    "Mixer",
    "MixerLayer",
    "Position",
    "PositionScheme",
    "Project",
    "Projection",
    "Score",
    "Separate",
    "Softmax",
    "State",
    "Weigh",
]
