"""Optimisers, and the loop around them, against a plain loop of torch's own pieces."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from attnlab.model import DecoderModel
from attnlab.training import AdamW, Constant, Cosine, Optimizer, Run, Sgd, Training, train

from .small import SPEC, Quiet, a_run

PLAIN = SPEC.model_copy(update={"dropout": 0.0})
STEPS = 12


def adamw(model: DecoderModel) -> torch.optim.Optimizer:
    decayed = [m.weight for m in model.modules() if type(m).__name__ in ("Linear", "EndsResidual")]
    others = [p for p in model.parameters() if all(p is not d for d in decayed)]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95), eps=1e-8, foreach=False, fused=False)


def sgd(model: DecoderModel) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False, fused=False)


def plainly(
    run: Run[DecoderModel], make: Callable[[DecoderModel], torch.optim.Optimizer], clip: float | None
) -> list[float]:
    """Padded batches, whole logits, cross_entropy, torch's scheduler: nothing of the loop under test."""
    optimizer = make(run.model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: (step + 1) / 4 if step < 3 else 0.5 * (1 + math.cos(math.pi * (step - 3) / 9))
    )
    losses = []
    for step in range(STEPS):
        batch = run.batches[step]
        inputs, targets = torch.from_numpy(batch.inputs_N), torch.from_numpy(batch.targets_N)
        padded_BT = torch.nn.utils.rnn.pad_sequence(
            list(inputs.split(batch.lengths_B.tolist())), batch_first=True
        )
        goals_BT = torch.nn.utils.rnn.pad_sequence(
            list(targets.split(batch.lengths_B.tolist())), batch_first=True, padding_value=-100
        )
        loss = F.cross_entropy(run.model(padded_BT).flatten(0, 1), goals_BT.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(run.model.parameters(), clip)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize(
    ("optimizer", "reference"), [(AdamW(learning_rate=3e-3), adamw), (Sgd(), sgd)], ids=["adamw", "sgd"]
)
def test_the_loop_is_a_plain_loop(
    optimizer: Optimizer,
    reference: Callable[[DecoderModel], torch.optim.Optimizer],
    clip: float | None,
) -> None:
    training = Training(steps=STEPS, batch=4, optimizer=optimizer, schedule=Cosine(warmup=3), clip=clip)
    run, other = (a_run(training, spec=PLAIN, dtype=torch.float64) for _ in range(2))
    observer = Quiet()
    progress = train(run, observer)
    losses = plainly(other, reference, clip)
    assert list(observer.losses.values()) == pytest.approx(losses, rel=1e-9)
    assert progress.step == STEPS
    for mine, theirs in zip(run.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-7, atol=1e-9)


def test_weight_decay_acts_on_the_matrices_of_linear_layers_only() -> None:
    for tied in (False, True):
        model = SPEC.model_copy(update={"tied": tied}).build(20)
        decayed, others = AdamW().build(model).param_groups
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        assert (decayed["weight_decay"], others["weight_decay"]) == (0.1, 0.0)
        shrinks = {names[id(p)] for p in decayed["params"]}
        assert ("head.weight" in shrinks) is not tied  # tied, it is the embedding
        linear = ("project.query", "project.key", "project.value", "merge", "up", "down")
        assert {n.removesuffix(".weight").split("mixer.")[-1].split("mlp.")[-1] for n in shrinks} - {
            "head"
        } == set(linear)
        assert len(decayed["params"]) + len(others["params"]) == len(list(model.parameters()))


def test_a_rate_follows_its_schedule() -> None:
    observer = Quiet()
    train(a_run(Training(steps=5, optimizer=Sgd(learning_rate=0.4), schedule=Constant(warmup=3))), observer)
    assert [row["learning_rate"] for row in observer.rows] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4])
