"""Decoding: how a model's distributions become text."""

from attnlab.decoding.sampling import sample

__all__ = ["sample"]
