"""A checkpoint's tokenizer, and how to tell one that is another checkpoint's.

With a foreign tokenizer a model runs without complaint and means nothing: every id stands for another word
than the one its embedding was trained for. So whatever tokenizer is to be used is held against the
checkpoint: its ids against the rows of the embedding, its special tokens against the configuration, and its
vocabulary, token by token, against the one that the checkpoint brings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from attnlab.adapt.places import Place
from attnlab.audit.hub import library
from attnlab.errors import RequestError

# Not the end of a text: chat models end their turns with another token than their configuration says.
_SPECIAL = ("pad", "cls", "sep", "mask", "bos", "unk")
# What a tokenizer can be made from; a directory without any of them brings none.
_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)


def load_tokenizer(place: Place, *, revision: str | None = None, trust_remote_code: bool = False) -> Any:
    """The tokenizer at a place, padding on the right."""
    if not has_tokenizer(place):
        raise RequestError(
            f"{place}: there is no tokenizer in it (none of {', '.join(_FILES)}); name the checkpoint's "
            "under model.tokenizer"
        )
    try:
        tokenizer = library().AutoTokenizer.from_pretrained(
            place.source, revision=revision, trust_remote_code=trust_remote_code
        )
    except Exception as error:  # files, network and code of others share no base class
        raise RequestError(f"the tokenizer of {place} could not be loaded: {first_line(error)}") from None
    tokenizer.padding_side = "right"
    return tokenizer


def has_tokenizer(place: Place) -> bool:
    """Whether the checkpoint brings one. One on the hub is taken to."""
    return place.folder is None or any((place.folder / file).is_file() for file in _FILES)


def refuse_foreign(tokenizer: Any, own: Any | None, config: Any, rows: int, checkpoint: str) -> None:
    """Raise unless the tokenizer is the checkpoint's; `own` is the one the checkpoint brings, `rows` how many
    tokens its embedding knows."""
    wrong = list(_mismatches(tokenizer, own, config, rows))
    if wrong:
        raise RequestError(
            f"this tokenizer is not the one of {checkpoint}, so every text would reach the model as other "
            "words: " + "; ".join(wrong)
        )


def _mismatches(tokenizer: Any, own: Any | None, config: Any, rows: int) -> Iterator[str]:
    vocabulary: Mapping[str, int] = tokenizer.get_vocab()
    highest = max(vocabulary.values(), default=-1)
    if highest >= rows:
        yield f"its ids go up to {highest:,}, and the checkpoint has embeddings for {rows:,} tokens"
    for name in _SPECIAL:
        declared, used = (getattr(of, f"{name}_token_id", None) for of in (config, tokenizer))
        if isinstance(declared, int) and used is not None and declared != used:
            yield f"the checkpoint's {name} token has id {declared}, the tokenizer's {used}"
    if own is not None and own is not tokenizer:
        theirs: Mapping[str, int] = own.get_vocab()
        moved = [token for token, number in theirs.items() if vocabulary.get(token) != number]
        if moved:
            example = moved[len(moved) // 2]
            there = vocabulary.get(example)
            yield (
                f"{len(moved):,} of the checkpoint's {len(theirs):,} tokens have another id or none, such as "
                f"{example!r}: {theirs[example]} there, {'none' if there is None else there} here"
            )


def refuse_other_vocabulary(student: Any, teacher: Any) -> None:
    """What a teacher holds probable of its tokens says nothing about another vocabulary's."""
    own: Mapping[str, int] = student.get_vocab()
    others: Mapping[str, int] = teacher.get_vocab()
    if own == others:
        return
    moved = sorted(token for token in own.keys() | others.keys() if own.get(token) != others.get(token))
    example = moved[len(moved) // 2]
    raise RequestError(
        f"a student learns from its teacher's logits only where both have one vocabulary: the student's has "
        f"{len(own):,} tokens and the teacher's {len(others):,}, and {len(moved):,} have another id or none "
        f"in one of them, such as {example!r}; let it learn from the teacher's texts instead "
        '(lesson = "teachers-texts")'
    )


def vocabulary_digest(tokenizer: Any) -> str:
    """A fingerprint of every token and its id."""
    pairs = sorted(tokenizer.get_vocab().items(), key=lambda pair: (pair[1], pair[0]))
    return hashlib.sha256(json.dumps(pairs, ensure_ascii=False).encode()).hexdigest()[:16]


def first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
