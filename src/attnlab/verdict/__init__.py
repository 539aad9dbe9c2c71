"""Verdicts that hold: better, worse, equivalent, undecided or invalid, each with a known error rate.

    from attnlab.verdict import judge
    print(judge(baseline, arm, margin=0.01))  # arrays (seeds, documents) of per-document losses

numpy and scipy only, for anyone with arrays. docs/verdicts.md tells how a verdict comes about.
"""

from attnlab.verdict.floor import NoiseFloor, noise_floor
from attnlab.verdict.interval import MeanInterval, mean_interval
from attnlab.verdict.judging import judge, judge_many
from attnlab.verdict.looks import Plan
from attnlab.verdict.result import ACCURACY, LOSS, Metric, Verdict
from attnlab.verdict.table import judge_table

__all__ = [
    "ACCURACY",
    "LOSS",
    "MeanInterval",
    "Metric",
    "NoiseFloor",
    "Plan",
    "Verdict",
    "judge",
    "judge_many",
    "judge_table",
    "mean_interval",
    "noise_floor",
]
