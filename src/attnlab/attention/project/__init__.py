"""Projections, a file each."""

from attnlab.attention.project.project import Project, Projection
from attnlab.attention.project.separate import Separate

__all__ = ["Project", "Projection", "Separate"]
