"""A pretrained classifier as it is tuned: its loss is transformers' own, and shortcuts change nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers", reason="transformers is not here")

from attnlab.adapt.amounts import Full, Head, Lora, Prompt  # noqa: E402
from attnlab.adapt.answers import classified  # noqa: E402
from attnlab.adapt.audited import audited  # noqa: E402
from attnlab.adapt.batches import TextBatches, TextLabel  # noqa: E402
from attnlab.adapt.features import frozen_features  # noqa: E402
from attnlab.adapt.labelled import LabelledCorpus, read_labelled  # noqa: E402
from attnlab.adapt.pretrained import pad_with  # noqa: E402
from attnlab.adapt.tuned import Tunable  # noqa: E402
from attnlab.adapt.views import TextView, stretches  # noqa: E402
from attnlab.corpus import Labelled  # noqa: E402
from attnlab.errors import StoreError  # noqa: E402

from . import tiny  # noqa: E402

Make = Callable[[Path], Path]


def read(folder: Path, tunable: Tunable) -> tuple[LabelledCorpus, TextView]:
    tiny.write_labelled(folder)
    tokenizer = pad_with(tunable.load_tokenizer())
    files = Labelled(train="train.txt", dev="dev.txt", test="test.txt")
    corpus = read_labelled(files, tokenizer, tunable.longest, folder)
    return corpus, TextView(corpus.splits["train"].texts, tokenizer.pad_token_id)


@pytest.mark.parametrize("make", [tiny.bert, tiny.roberta, tiny.gpt2, tiny.llama])
def test_the_loss_and_its_gradient_are_those_of_transformers_trainer(tmp_path: Path, make: Make) -> None:
    dropout = None if make is tiny.llama else 0.0
    tunable = Tunable(checkpoint=str(make(tmp_path / "c")), longest=30, dropout=dropout)
    _, view = read(tmp_path, tunable)
    batch = TextBatches(view, 24, seed=1)[0]
    ours, theirs = tunable.build(2).double(), tunable.build(2).double().inner
    loss = TextLabel(torch.float64)(ours.train(), batch) / batch.targets
    loss.backward()

    arguments = transformers.TrainingArguments(output_dir=str(tmp_path / "t"), use_cpu=True, report_to=[])
    trainer = transformers.Trainer(model=theirs, args=arguments)
    piece = view.piece(batch.rows_B)  # all side by side, filled up to the longest
    inputs = {"input_ids": piece.ids_BT, "attention_mask": piece.mask_BT, "labels": piece.labels_B}
    if make is not tiny.llama:
        inputs["token_type_ids"] = piece.segments_BT
    reference = trainer.compute_loss(theirs.train(), inputs)
    reference.backward()
    assert loss.item() == pytest.approx(reference.item(), rel=1e-9)
    for mine, other in zip(ours.inner.parameters(), theirs.parameters(), strict=True):
        if other.grad is not None:
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-6, atol=1e-10)


def test_stretches_cover_everything_and_waste_less() -> None:
    lengths = sorted(np.random.default_rng(0).integers(3, 80, 64).tolist())
    bounds = stretches(lengths)
    assert [i for first, last in bounds for i in range(first, last)] == list(range(64))
    filled = sum((last - first) * lengths[last - 1] for first, last in bounds)
    assert sum(lengths) <= filled < 0.75 * 64 * lengths[-1]
    assert stretches([5]) == [(0, 1)]


@pytest.mark.parametrize("make", [tiny.bert, tiny.roberta, tiny.llama])
def test_features_of_a_frozen_body_give_the_same_answers(tmp_path: Path, make: Make) -> None:
    tunable = Tunable(checkpoint=str(make(tmp_path / "c")), longest=30, amount=Head())
    corpus, view = read(tmp_path, tunable)
    model = tunable.build(2)
    cached = frozen_features(model, [view])
    assert cached is not None
    whole, quick = (classified(model, one, corpus.classes) for one in (view, cached[0]))
    np.testing.assert_allclose(quick.logs_BC, whole.logs_BC, atol=1e-6)
    # And to another head the same features are another answer.
    other = classified(tunable.build(2, seed=1), cached[0], corpus.classes)
    assert np.abs(other.logs_BC - whole.logs_BC).max() > 1e-3


def test_where_the_head_takes_another_vector_nothing_is_cached(tmp_path: Path) -> None:
    # This decoder's texts end with the token it is padded with: its head looks at the one before.
    tunable = Tunable(checkpoint=str(tiny.gpt2(tmp_path / "c")), longest=30, amount=Head())
    _, view = read(tmp_path, tunable)
    assert frozen_features(tunable.build(2), [view]) is None


def test_what_is_kept_is_what_is_trained(tmp_path: Path) -> None:
    tunable = Tunable(checkpoint=str(tiny.bert(tmp_path / "c")), amount=Lora())
    model = tunable.build(2, seed=1)
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    assert kept
    assert all("lora" in name or "classifier" in name for name in kept)
    other = tunable.build(2, seed=2)
    other.load_state_dict(kept)
    assert all(value.equal(kept[name]) for name, value in other.state_dict().items())
    with pytest.raises(StoreError, match="not the trained parameters of this model"):
        tunable.model_copy(update={"amount": Full()}).build(2).load_state_dict(kept)


def test_answers_do_not_depend_on_the_products_of_training(tmp_path: Path) -> None:
    tunable = Tunable(checkpoint=str(tiny.bert(tmp_path / "c")), dropout=0.0, longest=30)
    corpus, view = read(tmp_path, tunable)
    model, batch = tunable.build(2), TextBatches(view, 24, seed=1)[0]
    exact, low = (TextLabel(kind)(model.train(), batch).item() for kind in (torch.float32, torch.bfloat16))
    assert 0 < abs(low / exact - 1) < 0.02
    assert classified(model, view, corpus.classes).logs_BC.dtype == np.float64
    assert model.training


def test_recomputing_changes_no_gradient(tmp_path: Path) -> None:
    tunable = Tunable(checkpoint=str(tiny.bert(tmp_path / "c")), longest=30)
    _, view = read(tmp_path, tunable)
    grads = []
    for recompute in (False, True):
        model = tunable.model_copy(update={"recompute": recompute}).build(2).train()
        torch.manual_seed(0)
        TextLabel()(model, TextBatches(view, 24, seed=1)[0]).backward()
        grads.append([p.grad for p in model.parameters() if p.grad is not None])
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other)


def test_random_weights_in_the_same_architecture(tmp_path: Path) -> None:
    tunable = Tunable(checkpoint=str(tiny.bert(tmp_path / "c")))
    given, fresh = tunable.build(2), tunable.model_copy(update={"fresh": True}).build(2)
    one, other = given.state_dict(), fresh.state_dict()
    assert one.keys() == other.keys()
    assert not one["inner.bert.encoder.layer.0.attention.self.query.weight"].equal(
        other["inner.bert.encoder.layer.0.attention.self.query.weight"]
    )


def test_documents_of_many_sentences_are_one_item(tmp_path: Path) -> None:
    tunable = Tunable(checkpoint=str(tiny.bert(tmp_path / "c")), longest=30)
    (tmp_path / "t.jsonl").write_text(
        "".join(f'{{"text": "a film.\\nvery dull.\\nand was.", "label": "{i % 2}"}}\n' for i in range(40))
    )
    from attnlab.corpus import Table

    corpus = read_labelled(
        Table(train="t.jsonl", label="label", unit="line"), pad_with(tunable.load_tokenizer()), 30, tmp_path
    )
    test = corpus.splits["test"]
    assert len(test.texts) == 3 * len(set(test.owners))
    whole = classified(tunable.build(2), TextView(test.texts, 0), corpus.classes)
    grouped = test.by_document(whole.items)
    assert grouped["texts"] == (3.0,) * len(grouped.names)
    assert grouped.mean("correct", "texts") == pytest.approx(whole.items.mean("correct"))


@pytest.mark.parametrize("make", [tiny.bert, tiny.roberta, tiny.llama])
def test_the_audit_passes_what_is_right(tmp_path: Path, make: Make) -> None:
    tunable = Tunable(checkpoint=str(make(tmp_path / "c")), longest=30)
    checks = audited(tunable, 2, pad_with(tunable.load_tokenizer()), None)
    assert {check.name: check.status for check in checks} == dict.fromkeys(
        ("shape", "determinism", "batch", "padding", "reads"), "pass"
    )


def test_the_audit_finds_an_answer_read_off_padding(tmp_path: Path) -> None:
    # Behind vectors at the input, this model's head cannot see where a text ends: it takes the last place.
    pytest.importorskip("peft", reason="peft is not here")
    tunable = Tunable(checkpoint=str(tiny.llama(tmp_path / "c")), longest=30, amount=Prompt(length=3))
    checks = {check.name: check for check in audited(tunable, 2, pad_with(tunable.load_tokenizer()), None)}
    assert checks["padding"].status == "fail"
