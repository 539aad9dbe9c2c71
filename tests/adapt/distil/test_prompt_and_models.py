"""Requests, answers, and students with fewer layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.adapt.distil.models import Student, Teacher, keep_layers
from attnlab.adapt.distil.prompt import Prompt, answer, ask
from attnlab.adapt.tokenizer import refuse_other_vocabulary
from attnlab.corpus import Document
from attnlab.decoding import HubWriter, cache_check
from attnlab.errors import DeclarationError, RequestError
from tests.adapt import tiny

from .tiny_chat import WORDS, chat_llama

transformers = pytest.importorskip("transformers")
SAY = Prompt(instruction="say it short {text}", longest=12)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chat_llama(tmp_path_factory.mktemp("chat"))


@pytest.fixture(scope="module")
def tokenizer(checkpoint: Path) -> Any:
    return Teacher(checkpoint=str(checkpoint)).tokenizer(None)


def documents(*texts: str) -> list[Document]:
    return [Document(f"d{number}", (text,)) for number, text in enumerate(texts)]


def test_a_request_is_what_the_chat_template_makes_of_it(tokenizer: Any) -> None:
    asked = ask(tokenizer, documents("tom asks ann"), SAY, "it")
    turns = [{"role": "user", "content": "say it short tom asks ann"}]
    template = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
    assert list(asked.ids[0]) == list(template)
    assert tokenizer.decode(asked.ids[0]) == "user say it short tom asks ann model"


def test_without_a_chat_the_text_stands_alone(tokenizer: Any) -> None:
    bare = SAY.model_copy(update={"chat": False})
    assert tokenizer.decode(ask(tokenizer, documents("tom"), bare, "it").ids[0]) == "say it short tom"


def test_a_long_text_gives_way_and_the_instruction_does_not(tokenizer: Any) -> None:
    asked = ask(tokenizer, documents("tom asks ann " * 9, "tom"), SAY, "it")
    assert tokenizer.decode(asked.ids[0]) == "user say it short tom asks ann tom asks ann tom model"
    assert len(asked.ids[0]) == SAY.longest
    assert (asked.cut_texts, asked.cut_tokens) == (1, 20)
    with pytest.raises(RequestError, match=r"prompt.longest is 5, and the instruction alone takes 5 tokens"):
        ask(tokenizer, documents("tom"), SAY.model_copy(update={"longest": 5}), "it")


def test_an_answer_ends_unless_it_was_cut(tokenizer: Any) -> None:
    end = WORDS.index("[END]")
    ids = answer(tokenizer, " tom asks ann\n", SAY, 9)
    assert tokenizer.decode(ids[:-1]) == "tom asks ann"
    assert ids[-1] == end
    assert end not in answer(tokenizer, "tom asks ann", SAY, 3)
    assert end not in answer(tokenizer, "tom asks ann", SAY, 9, ends=False)
    assert answer(tokenizer, "", SAY, 9, ends=False) == (end,)


@pytest.mark.parametrize("instruction", ["no place", "{text} and {text}"])
def test_an_instruction_has_one_place_for_the_text(instruction: str) -> None:
    with pytest.raises(DeclarationError, match=r"says where the text goes, with \{text\} once"):
        Prompt(instruction=instruction)


def test_a_checkpoint_without_a_chat_template_is_told(tmp_path: Path) -> None:
    plain = Teacher(checkpoint=str(chat_llama(tmp_path / "plain", template=None)))
    with pytest.raises(RequestError, match="has no chat template"):
        ask(plain.tokenizer(None), documents("tom"), SAY, plain.checkpoint)


def test_an_encoder_cannot_teach(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="is no language model that writes: it has no weights for"):
        Teacher(checkpoint=str(tiny.bert(tmp_path / "body"))).load(None)


def test_layers_that_are_kept_work_as_they_did(checkpoint: Path) -> None:
    whole = Teacher(checkpoint=str(checkpoint)).load(None).model
    cut = Student(checkpoint=str(checkpoint), layers_kept=(0, 2)).load(None)
    tokens = torch.tensor([[3, 4, 5, 6, 7]])
    body = whole.model
    hidden = body.embed_tokens(tokens)
    places = torch.arange(5)[None]
    turns = body.rotary_emb(hidden, places)
    mask = torch.full((1, 1, 5, 5), float("-inf")).triu(1)
    for number in (0, 2):
        made = body.layers[number](
            hidden, attention_mask=mask, position_ids=places, position_embeddings=turns
        )
        hidden = made[0] if isinstance(made, tuple) else made
    wanted = whole.lm_head(body.norm(hidden))
    torch.testing.assert_close(cut.model(input_ids=tokens).logits, wanted, rtol=1e-4, atol=1e-5)
    assert cut.model.config.num_hidden_layers == 2
    # Their places in the cache are new ones too.
    assert cache_check(HubWriter(cut.model, cut.tokenizer), [3, 4], [5, 6, 7]).status == "pass"


def test_every_layer_kept_changes_nothing(checkpoint: Path) -> None:
    whole = Teacher(checkpoint=str(checkpoint)).load(None).model
    tokens = torch.tensor([[3, 4, 5, 6, 7]])
    before = whole(input_ids=tokens).logits
    keep_layers(whole, (0, 1, 2))
    assert torch.equal(whole(input_ids=tokens).logits, before)


def test_layers_that_are_not_there_or_in_disorder_are_refused(checkpoint: Path) -> None:
    with pytest.raises(RequestError, match="names layer 5; there are 3, 0 to 2"):
        Student(checkpoint=str(checkpoint), layers_kept=(0, 5)).load(None)
    for kept in ((), (1, 0), (1, 1)):
        with pytest.raises(DeclarationError, match="at least one layer, each once and in order"):
            Student(layers_kept=kept)


def test_another_vocabulary_is_refused_with_an_example(tmp_path: Path, tokenizer: Any) -> None:
    refuse_other_vocabulary(tokenizer, tokenizer)
    other = Teacher(checkpoint=str(chat_llama(tmp_path / "other", words=(*WORDS[:5], *WORDS[:4:-1]))))
    with pytest.raises(RequestError, match=r"22 tokens and the teacher's 22, and \d+ have another id"):
        refuse_other_vocabulary(tokenizer, other.tokenizer(None))


def test_what_texts_depend_on_changes_with_the_weights_and_the_layers(tmp_path: Path) -> None:
    one, two = (str(chat_llama(tmp_path / name, layers=n)) for name, n in (("one", 2), ("two", 3)))
    found = [Teacher(checkpoint=place).identity(None) for place in (one, two)]
    assert found[0]["contents"] != found[1]["contents"]
    assert Student(checkpoint=two).identity(None) != Student(checkpoint=two, layers_kept=(0,)).identity(None)
