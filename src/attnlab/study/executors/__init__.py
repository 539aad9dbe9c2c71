"""Executors: where the cells of a study are worked on."""

from attnlab.study.executors.afar import Afar
from attnlab.study.executors.executor import Executor, Listener, Silent
from attnlab.study.executors.local import Local
from attnlab.study.executors.named import executor_named
from attnlab.study.executors.ray import RayYard
from attnlab.study.executors.slurm import SlurmYard

__all__ = ["Afar", "Executor", "Listener", "Local", "RayYard", "Silent", "SlurmYard", "executor_named"]
