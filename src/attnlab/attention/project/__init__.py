"""Projections, a file each."""

from attnlab.attention.project.grouped import Grouped
from attnlab.attention.project.network import Network
from attnlab.attention.project.nonlinear import Nonlinear
from attnlab.attention.project.project import Project, Projection
from attnlab.attention.project.separate import Separate
from attnlab.attention.project.tied import KeyIsValue, QueryIsKey, QueryIsKeyIsValue

__all__ = [
    "Grouped",
    "KeyIsValue",
    "Network",
    "Nonlinear",
    "Project",
    "Projection",
    "QueryIsKey",
    "QueryIsKeyIsValue",
    "Separate",
]
