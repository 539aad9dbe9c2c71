"""Greedy generation at the common set-up, against transformers' `generate` on GPT-2 of the same size and with
the same weights: 100 new tokens, token for token the same.

Each in its own process, in turns; `generate` with the two threads it takes by itself, and with one, which
at batch 1 is the better of the two. What is ours runs on one thread.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from attnlab.decoding import Greedy, OwnWriter
from attnlab.decoding.own import StatefulReading
from attnlab.decoding.strategy import Task
from attnlab.decoding.writer import Reading
from attnlab.model import Decoder, DecoderModel
from attnlab.tokens import Words
from benchmarks.alternating import Subject, Work, compared, measure

NEW, CONTEXT, VOCABULARY = 100, 104, 13_700
BATCHES = (1, 64)
REPEATS = {1: 4, 64: 1}  # generations in a round


@cache
def decoder() -> DecoderModel:
    """With weights strong enough that texts differ: at its initial values a model says one thing only."""
    model = Decoder(context=CONTEXT, dropout=0.0).build(VOCABULARY, seed=0).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return model


def prompts(batch: int) -> Tensor:
    """One token each, and every one another."""
    return torch.arange(5, 5 + batch)[:, None]


class _NeverEnds(OwnWriter):
    """A model without a token that ends a text, so that every one is as long as it is asked to be."""

    def __init__(self) -> None:
        super().__init__(decoder(), Words(minimum=1).fit(["a b"]))
        self.size, self.stops, self.never = VOCABULARY, frozenset(), ()


class _InPyTorch(_NeverEnds):
    """The same without the compiled kernel."""

    def begin(self, *, vectors: bool = False) -> Reading:
        return StatefulReading(self.model)


@torch.inference_mode()
def _written(writer: OwnWriter, batch: int) -> Tensor:
    task = Task(writer=writer, prompt_BT=prompts(batch), filters=(), longest=NEW, seeds_B=[0] * batch)
    return torch.tensor([text.tokens for text in Greedy().run(task)])


def _ours(writer: OwnWriter, batch: int) -> Work:
    # That they are the same is not assumed: without it there is nothing to compare.
    if not torch.equal(_written(writer, batch), _generated(batch)):
        raise AssertionError(f"at batch {batch}, the tokens are not those of transformers")

    def work(number: int) -> int:
        for _ in range(REPEATS[batch]):
            _written(writer, batch)
        return REPEATS[batch] * batch * NEW

    return work


@cache
def _gpt2() -> object:
    from tests.model.test_decoder import gpt2_with_the_weights_of

    gpt2 = gpt2_with_the_weights_of(decoder())
    gpt2.generation_config.eos_token_id = None  # type: ignore[union-attr]
    return gpt2


def _generated(batch: int) -> Tensor:
    ids = prompts(batch)
    options = {"do_sample": False, "max_new_tokens": NEW, "pad_token_id": 0}
    made: Tensor = _gpt2().generate(ids, attention_mask=torch.ones_like(ids), **options)  # type: ignore[attr-defined]
    return made[:, 1:]


def _theirs(batch: int) -> Work:
    def work(number: int) -> int:
        for _ in range(REPEATS[batch]):
            _generated(batch)
        return REPEATS[batch] * batch * NEW

    return work


def ours_1() -> Work:
    return _ours(_NeverEnds(), 1)


def ours_64() -> Work:
    return _ours(_NeverEnds(), 64)


def in_pytorch_1() -> Work:
    return _ours(_InPyTorch(), 1)


def in_pytorch_64() -> Work:
    return _ours(_InPyTorch(), 64)


def theirs_1() -> Work:
    return _theirs(1)


def theirs_64() -> Work:
    return _theirs(64)


def main(rounds: int = 8) -> list[dict[str, object]]:
    here = "benchmarks.generation"
    rows: list[dict[str, object]] = []
    for batch in BATCHES:
        own = Subject("attnlab", f"{here}:ours_{batch}", threads=1)
        plain = Subject("attnlab without a compiler", f"{here}:in_pytorch_{batch}", threads=1)
        peers = [
            Subject("transformers generate, 1 thread", f"{here}:theirs_{batch}", threads=1),
            Subject("transformers generate, 2 threads", f"{here}:theirs_{batch}", threads=2),
        ]
        measure([own, plain, *peers], rounds)
        what = f"tokens per second, greedy, batch {batch}"
        rows += [compared(what, mine, peer) for mine in (own, plain) for peer in peers]
    return rows
