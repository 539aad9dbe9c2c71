"""How a document becomes a request to a language model, and an answer the tokens it should give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, field_validator

from attnlab.corpus import Document
from attnlab.errors import RequestError
from attnlab.spec import Positive, Spec

PLACE = "{text}"


class Prompt(Spec):
    """The request around a text."""

    instruction: str = Field(
        default=f"Summarize the following dialogue in one or two sentences.\n\n{PLACE}",
        description="with {text} where the text goes",
    )
    chat: bool = True  # as a user's turn in the checkpoint's own chat template; false: the bare text
    longest: Positive = 384  # tokens of a whole request; the end of the text gives way

    @field_validator("instruction")
    @classmethod
    def _has_a_place(cls, instruction: str) -> str:
        if instruction.count(PLACE) != 1:
            raise ValueError(f"says where the text goes, with {PLACE} once")
        return instruction


@dataclass(frozen=True)
class Asked:
    """Requests as tokens, in the order of the documents."""

    names: tuple[str, ...]
    ids: tuple[tuple[int, ...], ...]
    cut_texts: int
    cut_tokens: int

    def __len__(self) -> int:
        return len(self.names)


def ask(tokenizer: Any, documents: Sequence[Document], prompt: Prompt, checkpoint: str) -> Asked:
    """The request for every document."""
    if prompt.chat and not getattr(tokenizer, "chat_template", None):
        raise RequestError(
            f"{checkpoint} has no chat template; say prompt.chat = false, and write an instruction that a "
            'text can follow, such as "{text}\\n\\nSummary:"'
        )
    asked, cut = [], []
    for document in documents:
        ids, lost = _fitted(tokenizer, source_of(document), prompt)
        asked.append(tuple(ids))
        cut.append(lost)
    return Asked(tuple(d.name for d in documents), tuple(asked), sum(c > 0 for c in cut), sum(cut))


def source_of(document: Document) -> str:
    """The text of a document as it is put into a request."""
    return "\n".join(document.units)


def _fitted(tokenizer: Any, text: str, prompt: Prompt) -> tuple[list[int], int]:
    """The tokens of a request, and how many of the text's had to go."""
    ids = _encoded(tokenizer, text, prompt)
    if len(ids) <= prompt.longest:
        return ids, 0
    own = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    around = len(_encoded(tokenizer, "", prompt))
    kept = prompt.longest - around
    if kept < 1:
        raise RequestError(
            f"prompt.longest is {prompt.longest}, and the instruction alone takes {around} tokens"
        )
    while len(ids) > prompt.longest:  # what a cut text is read as may be a token or two longer
        shorter = tokenizer.decode(own[:kept], skip_special_tokens=False, clean_up_tokenization_spaces=False)
        ids = _encoded(tokenizer, shorter, prompt)
        kept -= 1
    return ids, len(own) - kept - 1


def _encoded(tokenizer: Any, text: str, prompt: Prompt) -> list[int]:
    said = prompt.instruction.replace(PLACE, text)
    if not prompt.chat:
        ids: list[int] = tokenizer(said, verbose=False)["input_ids"]
        # Some tokenizers end what they are given; this text goes on.
        return ids[:-1] if ids and ids[-1] == tokenizer.eos_token_id else ids
    turns = [{"role": "user", "content": said}]
    whole = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    return list(tokenizer(whole, add_special_tokens=False, verbose=False)["input_ids"])


def answer(tokenizer: Any, text: str, prompt: Prompt, longest: int, *, ends: bool = True) -> tuple[int, ...]:
    """What a model should say after a request: the text, cut at `longest` tokens, and the end; not the end of
    one that was cut, here or when it was written (`ends`)."""
    if tokenizer.eos_token_id is None:
        raise RequestError("this tokenizer has no token that ends a text, so nothing would ever end")
    between = "" if prompt.chat or prompt.instruction[-1:].isspace() else " "
    ids = tuple(tokenizer(between + text.strip(), add_special_tokens=False, verbose=False)["input_ids"])
    whole = ends and len(ids) < longest
    # A text of nothing, which has no end either, is still something to answer.
    return (*ids, int(tokenizer.eos_token_id)) if whole or not ids else ids[:longest]
