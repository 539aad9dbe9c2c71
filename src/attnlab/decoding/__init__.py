"""Decoding: how a model's distributions become text."""

from attnlab.decoding.check import cache_check
from attnlab.decoding.hub import HubWriter, open_pretrained
from attnlab.decoding.own import OwnWriter
from attnlab.decoding.padded import padding_check, write_each
from attnlab.decoding.recipe import Recipe
from attnlab.decoding.step import Step, look_at
from attnlab.decoding.strategies import (
    Beam,
    Contrastive,
    Greedy,
    MinP,
    Plain,
    RepetitionPenalty,
    Temperature,
    TopK,
    TopP,
    Typical,
)
from attnlab.decoding.strategy import Continuation, Filter, Search, Strategy
from attnlab.decoding.writer import Reading, Writer, continuation
from attnlab.decoding.writing import write

__all__ = [
    "Beam",
    "Continuation",
    "Contrastive",
    "Filter",
    "Greedy",
    "HubWriter",
    "MinP",
    "OwnWriter",
    "Plain",
    "Reading",
    "Recipe",
    "RepetitionPenalty",
    "Search",
    "Step",
    "Strategy",
    "Temperature",
    "TopK",
    "TopP",
    "Typical",
    "Writer",
    "cache_check",
    "continuation",
    "look_at",
    "open_pretrained",
    "padding_check",
    "write",
    "write_each",
]
