"""Position schemes, a file each."""

from attnlab.attention.position.absent import Absent
from attnlab.attention.position.learned import Learned
from attnlab.attention.position.position import Position, PositionScheme

__all__ = ["Absent", "Learned", "Position", "PositionScheme"]
