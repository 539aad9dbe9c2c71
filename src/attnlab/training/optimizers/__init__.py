"""Optimisers, as parts of a declaration: a file each."""

from attnlab.training.optimizers.adafactor import Adafactor
from attnlab.training.optimizers.adagrad import Adagrad
from attnlab.training.optimizers.adamw import AdamW
from attnlab.training.optimizers.muon import Muon
from attnlab.training.optimizers.optimizer import Optimizer
from attnlab.training.optimizers.schedule_free import ScheduleFree
from attnlab.training.optimizers.sgd import Sgd

__all__ = ["Adafactor", "Adagrad", "AdamW", "Muon", "Optimizer", "ScheduleFree", "Sgd"]
