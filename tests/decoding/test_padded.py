"""Prompts of different lengths continued together, against each of them alone and against transformers."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from attnlab.decoding import (
    Beam,
    Greedy,
    HubWriter,
    Recipe,
    RepetitionPenalty,
    padding_check,
    write,
    write_each,
)
from attnlab.errors import RequestError

from .models import hub_writer

pytest.importorskip("transformers")
PROMPTS = [[3, 4, 5, 6, 7, 8, 9], [5], [10, 11, 12], [3, 4, 5, 6, 7, 8, 9, 10, 11]]
FAMILIES = ("gpt2", "llama")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "recipe",
    ["greedy", "plain", "repetition-penalty=1.5+greedy", "temperature=0.7+top-p=0.8", "beam=3"],
)
def test_prompts_together_are_continued_as_each_alone(family: str, recipe: str) -> None:
    writer, steps = hub_writer(family), Recipe.read(recipe)
    together = write_each(writer, PROMPTS, steps, longest=9, seeds=[7_000_021] * 4)
    for prompt, found in zip(PROMPTS, together, strict=True):
        # The seed that `write` gives its first row.
        assert found == write(writer, prompt, steps, count=1, longest=9, seed=7)[0]
    assert len({text.tokens for text in together}) > 1


def test_greedy_is_what_transformers_generates_with_padding_on_the_left() -> None:
    writer = hub_writer("llama", ends=False)
    ours = write_each(writer, PROMPTS, Recipe(steps=(Greedy(),)), longest=6, seeds=[0] * 4)
    longest = max(map(len, PROMPTS))
    padded = torch.tensor([[0] * (longest - len(p)) + p for p in PROMPTS])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in PROMPTS])
    theirs = writer.module.generate(
        padded, attention_mask=mask, max_new_tokens=6, do_sample=False, pad_token_id=0
    )
    assert [list(text.tokens) for text in ours] == theirs[:, longest:].tolist()


def test_a_beat_is_felt_at_every_step_and_may_end_the_work() -> None:
    beats: list[int] = []

    def beat() -> None:
        beats.append(1)
        if len(beats) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_each(
            hub_writer("gpt2", ends=False),
            PROMPTS,
            Recipe(steps=(Greedy(),)),
            longest=9,
            seeds=[0] * 4,
            beat=beat,
        )
    assert len(beats) == 4


def test_what_cannot_be_continued_is_said() -> None:
    writer, greedy = hub_writer("gpt2"), Recipe(steps=(Greedy(),))
    assert write_each(writer, [], greedy, longest=3, seeds=[]) == []
    with pytest.raises(RequestError, match="prompt 2 holds no tokens"):
        write_each(writer, [[3], []], greedy, longest=3, seeds=[0, 0])
    with pytest.raises(RequestError, match=r"a prompt of 1 tokens and \d+ more are too many"):
        write_each(writer, [[3]], greedy, longest=writer.longest + 1, seeds=[0])  # type: ignore[operator]


# ---- the check, and models that it must find ---------------------------------------------------------------


class _Deaf(torch.nn.Module):
    """A model that is told what is padding, and does not listen."""

    def __init__(self, module: Any, ignored: str) -> None:
        super().__init__()
        self.inner, self.ignored = module, ignored
        self.config, self.generation_config, self.device = module.config, module.generation_config, "cpu"

    def get_output_embeddings(self) -> Any:
        return self.inner.get_output_embeddings()

    def forward(
        self, input_ids: Any, attention_mask: Any = None, position_ids: Any = None, **more: Any
    ) -> Any:
        told = {"attention_mask": attention_mask, "position_ids": position_ids}
        told[self.ignored] = None
        return self.inner(input_ids=input_ids, **told, **more)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_that_reads_padding_is_found_out(family: str) -> None:
    writer = hub_writer(family)
    assert padding_check(writer, PROMPTS).status == "pass"
    deaf = HubWriter(_Deaf(copy.deepcopy(writer.module), "attention_mask"), writer.tokenizer)
    assert padding_check(deaf, PROMPTS).status == "fail"


def test_positions_that_count_padding_are_found_out() -> None:
    writer = hub_writer("gpt2")
    deaf = HubWriter(_Deaf(writer.module, "position_ids"), writer.tokenizer)
    assert padding_check(deaf, PROMPTS).status == "fail"


def test_recipes_of_every_kind_are_meant() -> None:
    """The list above names a search, a draw and a filter that looks at what is written."""
    assert isinstance(Recipe.read("beam=3").search, Beam)
    assert isinstance(Recipe.read("repetition-penalty=1.5").filters[0], RepetitionPenalty)
