"""Training: the one loop, objectives, optimisers, schedules, checkpoints."""

from attnlab.training.best import Watched
from attnlab.training.checkpoint import Checkpoint
from attnlab.training.loop import Interrupted, Observer, Progress, Run, train
from attnlab.training.objectives import Label, MaskedTokens, NextToken, Objective
from attnlab.training.optimizers import AdamW, Optimizer, Sgd
from attnlab.training.schedules import Constant, Cosine, Schedule
from attnlab.training.training import Training

__all__ = [
    "AdamW",
    "Checkpoint",
    "Constant",
    "Cosine",
    "Interrupted",
    "Label",
    "MaskedTokens",
    "NextToken",
    "Objective",
    "Observer",
    "Optimizer",
    "Progress",
    "Run",
    "Schedule",
    "Sgd",
    "Training",
    "Watched",
    "train",
]
