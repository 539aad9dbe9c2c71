"""Why a mixer without a score matrix cannot work with most position schemes."""

from __future__ import annotations

from attnlab.attention.mixer import Mixer
from attnlab.attention.position import Position


def unless_embedded(mixer: Mixer, position: Position) -> str | None:
    """The reason to refuse a scheme that needs scores q·k, which the mixer never has; None for the others."""
    if position.enters == "embedding":
        return None
    missing = {
        "queries and keys": "turns q and k so that their product tells the distance, and there is no q·k",
        "scores": "adds to the scores of pairs, and there are none",
    }[position.enters]
    return (
        f"position {position.name!r} {missing} in the mixer {mixer.name!r}; "
        "use one that enters at the embedding (absent, learned, sinusoidal)"
    )
