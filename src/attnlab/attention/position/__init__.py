"""Position schemes, a file each."""

from attnlab.attention.position.absent import Absent
from attnlab.attention.position.alibi import Alibi
from attnlab.attention.position.learned import Learned
from attnlab.attention.position.position import Position, PositionScheme
from attnlab.attention.position.rotary import Rotary
from attnlab.attention.position.sinusoidal import Sinusoidal
from attnlab.attention.position.t5_bias import T5Bias

__all__ = ["Absent", "Alibi", "Learned", "Position", "PositionScheme", "Rotary", "Sinusoidal", "T5Bias"]
