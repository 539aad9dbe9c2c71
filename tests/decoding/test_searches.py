"""Greedy and beam search against transformers' `generate`; contrastive search against its definition."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from attnlab.decoding import Beam, Contrastive, Greedy, HubWriter, Recipe, write
from attnlab.decoding.strategy import Search, Task
from tests.decoding.models import STOP, hub_writer, own_writer

transformers = pytest.importorskip("transformers", reason="generate is in transformers")

FAMILIES = ["gpt2", "llama"]
PROMPT = [5, 9, 4]


def generate(writer: HubWriter, **options: Any) -> list[int]:
    (row,) = writer.module.generate(
        torch.tensor([PROMPT]), do_sample=False, pad_token_id=2, attention_mask=torch.ones(1, 3), **options
    )
    new = row.tolist()[len(PROMPT) :]
    return new[: new.index(STOP)] if writer.stops & set(new) else new


def ours(writer: Any, search: Search, longest: int, prompt: list[int] = PROMPT) -> list[int]:
    recipe = Recipe(steps=(search,))
    (text,) = write(writer, prompt, recipe, count=1, longest=longest, seed=0)
    return list(text.tokens)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(4))
def test_greedy_is_theirs(family: str, seed: int) -> None:
    writer = hub_writer(family, seed)
    assert ours(writer, Greedy(), 30) == generate(writer, max_new_tokens=30)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("ends", [True, False], ids=["stops", "never stops"])
@pytest.mark.parametrize(("width", "length_penalty"), [(2, 1.0), (4, 0.0), (4, 2.0), (7, -1.0)])
def test_beam_search_is_theirs(family: str, ends: bool, width: int, length_penalty: float) -> None:
    for seed in range(3):
        writer = hub_writer(family, seed, ends)
        search = Beam(width=width, length_penalty=length_penalty)
        options = {"num_beams": width, "length_penalty": length_penalty, "max_new_tokens": 12}
        assert ours(writer, search, 12) == generate(writer, **options)


def test_beam_search_with_a_repetition_penalty_is_theirs() -> None:
    writer = hub_writer("gpt2", 1, ends=False)
    recipe = Recipe.read("repetition-penalty=1.4+beam=3")
    (text,) = write(writer, PROMPT, recipe, count=1, longest=10, seed=0)
    assert list(text.tokens) == generate(writer, num_beams=3, max_new_tokens=10, repetition_penalty=1.4)


@torch.no_grad()
def test_a_beam_as_wide_as_everything_finds_the_likeliest_text() -> None:
    writer = hub_writer("gpt2", 0, ends=False)
    size, steps = writer.size, 2
    texts = torch.tensor([[*PROMPT, *tail] for tail in itertools.product(range(size), repeat=steps)])
    chances = writer.logits(texts).log_softmax(-1)
    total = sum(
        chances[:, len(PROMPT) - 1 + i].gather(1, texts[:, len(PROMPT) + i, None])[:, 0] for i in range(steps)
    )
    assert (
        ours(writer, Beam(width=size), steps) == texts[int(torch.as_tensor(total).argmax()), -steps:].tolist()
    )


@torch.no_grad()
def by_definition(writer: HubWriter, alpha: float, k: int, longest: int) -> list[int]:
    """Contrastive search by whole passes over every candidate."""
    written = list(PROMPT)
    for _ in range(longest):
        chances, candidates = writer.logits(torch.tensor([written]))[0, -1].softmax(-1).topk(k)
        scores = []
        for chance, candidate in zip(chances, candidates.tolist(), strict=True):
            ids = torch.tensor([[*written, candidate]])
            vectors = writer.module(ids, output_hidden_states=True).hidden_states[-1][0]
            likeness = F.cosine_similarity(vectors[-1:], vectors[:-1]).max()
            scores.append(float((1 - alpha) * chance - alpha * likeness))
        token = int(candidates[torch.tensor(scores).argmax()])
        if token == STOP:
            break
        written.append(token)
    return written[len(PROMPT) :]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("alpha", "k"), [(0.6, 4), (0.2, 7), (1.0, 3)])
def test_contrastive_search_is_its_definition(family: str, alpha: float, k: int) -> None:
    writer = hub_writer(family, 1)
    assert ours(writer, Contrastive(alpha=alpha, k=k), 15) == by_definition(writer, alpha, k, 15)


def test_the_limits_of_searches_are_greedy() -> None:
    for writer in (hub_writer("llama", 2), own_writer()):
        greedy = ours(writer, Greedy(), 15)
        assert len(greedy) > 1
        assert ours(writer, Contrastive(alpha=0.0, k=4), 15) == greedy
        assert ours(writer, Contrastive(alpha=0.9, k=1), 15) == greedy
        assert ours(writer, Beam(width=1), 15) == greedy


def test_beams_come_best_first() -> None:
    writer = hub_writer("gpt2", 3)
    task = Task(writer=writer, prompt_BT=torch.tensor([PROMPT]), filters=(), longest=6, seeds_B=[0])
    with torch.inference_mode():
        texts = Beam(width=4).texts(task, torch.tensor(PROMPT))
    rows = writer.module.generate(
        torch.tensor([PROMPT]), num_beams=4, num_return_sequences=4, max_new_tokens=6, do_sample=False,
        pad_token_id=STOP, attention_mask=torch.ones(1, 3),
    )  # fmt: skip
    theirs = [[t for t in row[len(PROMPT) :].tolist() if t != STOP] for row in rows]
    assert [list(text.tokens) for text in texts] == theirs
