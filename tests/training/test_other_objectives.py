"""Labels and masked tokens against torch's cross_entropy on padded batches."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
import torch.nn.functional as F

from attnlab.attention import Layout
from attnlab.corpus import Document
from attnlab.model import ClassifierModel, Encoder, Head, MaskedModel
from attnlab.tokens import Masking, Reading, Words
from attnlab.tokens.examples import ExampleBatches, Examples, examples_of
from attnlab.tokens.masking import MaskedBatches, MaskedSplit
from attnlab.training import AdamW, Label, MaskedTokens, Run, Training, train

from .small import Quiet

SPEC = Encoder(layers=1, heads=2, width=16, context=12, dropout=0.0)
WORDS = [("up", "down"), ("in", "out"), ("on", "off")] * 6
TEXTS = [f"{one} {other} {one}" + f" {other}" * (i % 5) for i, (one, other) in enumerate(WORDS)]
VOCABULARY = Words(minimum=1).fit(TEXTS)
DOCUMENTS = [Document(str(i), (text,), label=text.split()[0]) for i, text in enumerate(TEXTS)]


def split() -> Examples:
    return examples_of(DOCUMENTS, VOCABULARY, ("in", "on", "up"), Reading(), SPEC.context)


def test_the_loss_of_labels_is_torchs() -> None:
    model = ClassifierModel(SPEC, Head(dropout=0.0), VOCABULARY.size, 3, seed=1).double()
    batch = ExampleBatches(split(), 5, seed=0)[0]
    ours = Label()(model, batch)
    rows = np.split(batch.tokens_N, batch.lengths_B.cumsum()[:-1])
    logits = torch.cat([model(torch.from_numpy(row), Layout([len(row)])) for row in rows])
    torch.testing.assert_close(
        ours, F.cross_entropy(logits, torch.from_numpy(batch.labels_B), reduction="sum")
    )


def test_the_loss_of_masked_tokens_is_torchs_with_every_other_place_ignored() -> None:
    model = MaskedModel(SPEC, VOCABULARY.size, seed=1).double()
    batch = MaskedBatches(MaskedSplit(split(), Masking(rate=0.3), model.mask), 6, seed=0)[0]
    ours = MaskedTokens(torch.float64)(model, batch)
    layout = Layout(batch.lengths_B.tolist())
    hidden_ND = model.encoder.hidden(torch.from_numpy(batch.inputs_N), layout)
    logits_NV = hidden_ND @ model.encoder.embedding.weight[: VOCABULARY.size].T
    labels_N = torch.full((batch.tokens,), -100)
    labels_N[torch.from_numpy(batch.places_M)] = torch.from_numpy(batch.targets_M)
    torch.testing.assert_close(ours, F.cross_entropy(logits_NV, labels_N, ignore_index=-100, reduction="sum"))
    ours.backward()
    assert model.encoder.embedding.weight.grad is not None


def test_both_learn() -> None:
    """A rule that words give away: the loss falls to a fraction."""
    training = Training(steps=60, batch=6, optimizer=AdamW(learning_rate=1e-2))
    masked = MaskedModel(SPEC, VOCABULARY.size)
    runs = [
        Run(
            model=ClassifierModel(SPEC, Head(), VOCABULARY.size, 3),
            objective=Label(),
            batches=ExampleBatches(split(), 6, 0),
            training=training,
            steps=60,
            seed=0,
            evaluate=dict,
        ),
    ]
    other = dataclasses.replace(
        runs[0],
        model=masked,
        objective=MaskedTokens(),
        batches=MaskedBatches(MaskedSplit(split(), Masking(), masked.mask), 6, 0),
    )
    for run, share in ((runs[0], 0.1), (other, 0.6)):
        progress = train(run, Quiet())
        assert progress.mean_loss < share * progress.first_loss
