"""Tokenizers; documents into sequences and batches."""

from attnlab.tokens.base import Framing, Tokenizer
from attnlab.tokens.bpe import Bpe
from attnlab.tokens.characters import Characters
from attnlab.tokens.encoded import Encoded
from attnlab.tokens.examples import Examples, Reading
from attnlab.tokens.framing import Blocks, Sentences
from attnlab.tokens.masking import Masking
from attnlab.tokens.prepare import Prepared, prepare
from attnlab.tokens.vocabulary import Vocabulary
from attnlab.tokens.words import Words

__all__ = [
    "Blocks",
    "Bpe",
    "Characters",
    "Encoded",
    "Examples",
    "Framing",
    "Masking",
    "Prepared",
    "Reading",
    "Sentences",
    "Tokenizer",
    "Vocabulary",
    "Words",
    "prepare",
]
