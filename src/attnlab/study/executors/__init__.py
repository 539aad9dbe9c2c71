"""Executors: where the cells of a study are worked on."""

from attnlab.study.executors.executor import Executor, Listener, Silent
from attnlab.study.executors.local import Local

__all__ = ["Executor", "Listener", "Local", "Silent"]
