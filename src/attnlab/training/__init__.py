"""Training: the one loop, objectives, optimisers, schedules, checkpoints."""

from attnlab.training.best import Watched
from attnlab.training.checkpoint import Checkpoint
from attnlab.training.loop import Interrupted, Observer, Progress, Run, train
from attnlab.training.objectives import Label, MaskedTokens, NextToken, Objective
from attnlab.training.optimizers import Adafactor, Adagrad, AdamW, Muon, Optimizer, ScheduleFree, Sgd
from attnlab.training.schedules import Constant, Cosine, Linear, Schedule
from attnlab.training.training import Training

__all__ = [
    "Adafactor",
    "Adagrad",
    "AdamW",
    "Checkpoint",
    "Constant",
    "Cosine",
    "Interrupted",
    "Label",
    "Linear",
    "MaskedTokens",
    "Muon",
    "NextToken",
    "Objective",
    "Observer",
    "Optimizer",
    "Progress",
    "Run",
    "Schedule",
    "ScheduleFree",
    "Sgd",
    "Training",
    "Watched",
    "train",
]
