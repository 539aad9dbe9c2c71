"""What kinds of study show beyond figures, a file each.

A run keeps such things as plain data under a name (`record.RunResult.exhibits`). A function here finds what
it knows how to draw in a study's runs, and makes a section of it; where there is none, the report has no such
section. A new exhibit is a file here and its line below.
"""

from __future__ import annotations

from collections.abc import Callable

from attnlab.report.exhibits.amounts import amounts
from attnlab.report.exhibits.attention import attention
from attnlab.report.exhibits.chances import chances
from attnlab.report.exhibits.confusion import confusion
from attnlab.report.exhibits.decoding import decoding
from attnlab.report.exhibits.exhibit import Exhibit
from attnlab.report.exhibits.pretraining import pretraining
from attnlab.report.exhibits.search import search
from attnlab.report.exhibits.speakers import speakers
from attnlab.report.exhibits.summaries import summaries
from attnlab.report.exhibits.worst import worst
from attnlab.report.studied import Studied

# In the order in which the report shows them.
_EXHIBITS: tuple[Callable[[Studied], Exhibit | None], ...] = (
    summaries,
    confusion,
    search,
    amounts,
    pretraining,
    speakers,
    worst,
    decoding,
    chances,
    attention,
)


def exhibits(study: Studied) -> list[Exhibit]:
    """Everything that this study has to show."""
    return [made for draw in _EXHIBITS if (made := draw(study)) is not None]


__all__ = ["Exhibit", "exhibits"]
