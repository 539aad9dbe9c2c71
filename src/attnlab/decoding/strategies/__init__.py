"""Strategies, a file each: filters, and the searches that end a chain of them."""

from attnlab.decoding.strategies.beam import Beam
from attnlab.decoding.strategies.contrastive import Contrastive
from attnlab.decoding.strategies.greedy import Greedy
from attnlab.decoding.strategies.min_p import MinP
from attnlab.decoding.strategies.plain import Plain
from attnlab.decoding.strategies.repetition_penalty import RepetitionPenalty
from attnlab.decoding.strategies.temperature import Temperature
from attnlab.decoding.strategies.top_k import TopK
from attnlab.decoding.strategies.top_p import TopP
from attnlab.decoding.strategies.typical import Typical

__all__ = [
    "Beam",
    "Contrastive",
    "Greedy",
    "MinP",
    "Plain",
    "RepetitionPenalty",
    "Temperature",
    "TopK",
    "TopP",
    "Typical",
]
