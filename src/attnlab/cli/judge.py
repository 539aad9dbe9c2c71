"""`attnlab judge`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def judge(
    table: Path,
    /,
    *,
    margin: float,
    baseline: str | None = None,
    better: Literal["lower", "higher"] = "lower",
) -> None:
    """Judge results made elsewhere: a CSV file with the columns arm, seed, item and value.

    Parameters
    ----------
    table
        The file; a column `weight` may say how much each item counts.
    margin
        A difference smaller than this does not matter.
    baseline
        The arm the others are compared with; the first one unless given.
    better
        Which direction is the good one.
    """
    from attnlab.verdict.result import Metric
    from attnlab.verdict.table import judge_table

    verdicts = judge_table(table, baseline=baseline, margin=margin, metric=Metric("value", better))
    for verdict in verdicts.values():
        print(verdict)
