"""Models built of attention parts."""

from attnlab.model.block import Block
from attnlab.model.classifier import ClassifierModel, Head
from attnlab.model.decoder import Decoder, DecoderModel
from attnlab.model.encoder import Encoder, EncoderModel, MaskedModel
from attnlab.model.pool import ClassToken, Mean, Pool
from attnlab.model.trunk import Stack, Trunk

__all__ = [
    "Block",
    "ClassToken",
    "ClassifierModel",
    "Decoder",
    "DecoderModel",
    "Encoder",
    "EncoderModel",
    "Head",
    "MaskedModel",
    "Mean",
    "Pool",
    "Stack",
    "Trunk",
]
