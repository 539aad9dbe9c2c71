"""Searching settings: what is tried, trial by trial, and how the best is chosen."""

from attnlab.adapt.search.search import Grid, Random, Search, Tpe
from attnlab.adapt.search.space import Range
from attnlab.adapt.search.trials import Trial, Tried, search

__all__ = ["Grid", "Random", "Range", "Search", "Tpe", "Trial", "Tried", "search"]
