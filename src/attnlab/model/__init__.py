"""Models built of attention parts."""

from attnlab.model.block import Block
from attnlab.model.decoder import Decoder, DecoderModel

__all__ = ["Block", "Decoder", "DecoderModel"]
