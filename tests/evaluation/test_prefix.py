"""The prefix-only score: what hides the future passes, what only seems to does not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attnlab.attention import Attention, Causal, Everything, LinearAttention, Mixer, Window
from attnlab.evaluation.losses import token_losses
from attnlab.evaluation.prefix import TOLERANCE, prefix_losses, prefix_score
from attnlab.model import Decoder, DecoderModel
from attnlab.tokens import Encoded
from attnlab.tokens.batches import Batches, take
from attnlab.training import AdamW, NextToken, Run, Training, train

VOCABULARY = 30
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def split() -> Encoded:
    """Counting upwards from a random start: text with something in it to learn."""
    lengths = RNG.integers(2, 16, 60)
    texts = [(RNG.integers(27) + np.arange(n + 1)) % 27 + 3 for n in lengths]
    return Encoded(
        ids=np.concatenate(texts).astype(np.int32),
        starts=np.concatenate([[0], (lengths + 1).cumsum()]),
        document=np.arange(60, dtype=np.int32),
        names=tuple(map(str, range(60))),
        bytes=lengths,
        size=VOCABULARY,
        start=0,
        stop=1,
        unknown=2,
    )


class _Quiet:
    def begin(self, step: int) -> None: ...
    def row(self, row: object) -> None: ...
    def should_save(self) -> bool:
        return False

    def should_stop(self) -> bool:
        return False


def trained(mixer: Mixer, split: Encoded, steps: int = 25) -> DecoderModel:
    model = Decoder(layers=2, heads=2, width=16, context=16, mixer=mixer).build(VOCABULARY, seed=1)
    training = Training(steps=steps, batch=16, optimizer=AdamW(learning_rate=1e-2))
    run = Run(
        model=model,
        objective=NextToken(),
        batches=Batches(split, 16, 0),
        training=training,
        steps=steps,
        seed=0,
        evaluate=dict,
    )
    train(run, _Quiet())
    return model


@pytest.mark.parametrize(
    "mixer",
    [
        Attention(),
        Attention(kernel="stages"),
        Attention(mask=Causal(where="renormalised")),
        Attention(mask=Window(size=3)),
        LinearAttention(),
    ],
    ids=["fused", "stages", "renormalised", "window", "linear"],
)
def test_what_hides_the_future_passes(mixer: Mixer, split: Encoded) -> None:
    score = prefix_score(trained(mixer, split), split, np.arange(20))
    assert score.check.status == "pass"
    assert score.largest_difference < 1e-4
    assert score.prefix_loss == pytest.approx(score.ordinary_loss, abs=1e-5)


@pytest.mark.parametrize(
    "mixer",
    [Attention(mask=Causal(where="after")), Attention(mask=Everything())],
    ids=["after the softmax", "no mask"],
)
def test_what_lets_it_through_fails_with_both_figures(mixer: Mixer, split: Encoded) -> None:
    score = prefix_score(trained(mixer, split), split, np.arange(20))
    check = score.check
    assert check.status == "fail"
    assert score.largest_difference > 10 * TOLERANCE
    assert f"perplexity {np.exp(score.ordinary_loss):.1f} with whole sentences" in check.evidence
    assert f"{np.exp(score.prefix_loss):.1f} with prefixes only" in check.evidence
    assert check.detail["predictions"] == score.predictions == split.targets_per_sequence[:20].sum()


def test_every_prediction_is_made_from_its_prefix_alone(split: Encoded) -> None:
    """By the slow way: the model is called on each prefix by itself."""
    model = trained(Attention(mask=Causal(where="after")), split).eval()
    batch = take(split, np.array([4, 0, 9]))
    expected, start = [], 0
    with torch.no_grad():
        for length in batch.lengths_B:
            for n in range(1, length + 1):
                logits_V = model(torch.from_numpy(batch.inputs_N[start : start + n])[None])[0, -1]
                expected.append(F.cross_entropy(logits_V, torch.tensor(batch.targets_N[start + n - 1])))
            start += length
    ours = prefix_losses(model.train(), batch)
    assert model.training
    torch.testing.assert_close(ours, torch.stack(expected), rtol=1e-4, atol=1e-4)
    ordinary = token_losses(model, batch)
    last_B = batch.lengths_B.cumsum() - 1  # at its last place, a sequence has no future to see
    torch.testing.assert_close(ours[last_B], ordinary[last_B], rtol=1e-4, atol=1e-4)


def test_a_model_that_gives_no_numbers_does_not_pass(split: Encoded) -> None:
    model = trained(Attention(), split, steps=1)
    with torch.no_grad():
        model.norm.weight.fill_(float("nan"))
    assert prefix_score(model, split, np.arange(3)).check.status == "fail"
