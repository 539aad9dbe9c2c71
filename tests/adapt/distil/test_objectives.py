"""What a student is trained to do, against PyTorch's own divergence and transformers' own loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from attnlab.adapt.distil import objectives
from attnlab.adapt.distil.objectives import OnLogits, OnTexts, answer_check, answer_loss, divergence
from attnlab.adapt.distil.pairs import Pair, PairBatch, PairBatches, Read

from .tiny_chat import WORDS, chat_llama

transformers = pytest.importorskip("transformers")
PAIRS = (
    Pair((3, 4, 5, 6, 7), (8, 9, 2)),
    Pair((3,), (10, 11, 12, 13, 2)),
    Pair((5, 6, 7, 8, 9, 10, 11, 12), (14,)),
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chat_llama(tmp_path_factory.mktemp("chat"))


def loaded(checkpoint: Path, noise: float = 0.0) -> Any:
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint).double()
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += noise * torch.randn_like(parameter)
    return model.eval()


def by_transformers(model: Any, pair: Pair, ignored: int) -> torch.Tensor:
    """The library's own loss, the first `ignored` tokens left out of it."""
    whole = torch.tensor([[*pair.asked, *pair.answered]])
    labels = whole.clone()
    labels[:, :ignored] = -100
    logits = model(input_ids=whole).logits
    return F.cross_entropy(logits[0, :-1], labels[0, 1:], reduction="sum", ignore_index=-100)


def test_the_loss_is_transformers_own_with_the_request_left_out(checkpoint: Path) -> None:
    model = loaded(checkpoint)
    found = OnTexts()(model, PairBatch(PAIRS))
    wanted = sum(by_transformers(model, pair, len(pair.asked)).item() for pair in PAIRS)
    assert found.item() == pytest.approx(wanted, rel=1e-6)
    # And their mean over labels, as their trainer sees one pair.
    whole = torch.tensor([[*PAIRS[0].asked, *PAIRS[0].answered]])
    labels = torch.tensor([[-100] * len(PAIRS[0].asked) + list(PAIRS[0].answered)])
    theirs = model(input_ids=whole, labels=labels).loss.item()
    ours = OnTexts()(model, PairBatch(PAIRS[:1])).item() / PairBatch(PAIRS[:1]).targets
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_gradients_are_those_of_the_answers_alone(checkpoint: Path) -> None:
    model = loaded(checkpoint)
    OnTexts()(model, PairBatch(PAIRS)).backward()
    ours = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    torch.stack([by_transformers(model, pair, len(pair.asked)) for pair in PAIRS]).sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-4, atol=1e-6)


def test_pieces_add_up_to_the_batch(checkpoint: Path) -> None:
    model, batch = loaded(checkpoint), PairBatch(PAIRS)
    pieces = list(batch.split(2))
    assert [len(piece.pairs) for piece in pieces] == [2, 1]
    assert sum(piece.tokens for piece in pieces) == batch.tokens == 7 + 5 + 8
    assert sum(piece.targets for piece in pieces) == batch.targets == 9
    whole = OnTexts()(model, batch).item()
    assert sum(OnTexts()(model, piece).item() for piece in pieces) == pytest.approx(whole)
    assert answer_loss(model, PAIRS) == pytest.approx(whole / 9)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_the_divergence_is_pytorchs(temperature: float, direction: Any) -> None:
    torch.manual_seed(0)
    teacher, student = torch.randn(7, 11).double() * 3, torch.randn(7, 11).double() * 3
    p, q = (x.div(temperature).log_softmax(-1) for x in (teacher, student))
    # kl_div(input, target) is KL(target ‖ input).
    wanted = F.kl_div(q, p, log_target=True, reduction="sum")
    if direction == "reverse":
        wanted = F.kl_div(p, q, log_target=True, reduction="sum")
    assert divergence(teacher, student, temperature, direction).item() == pytest.approx(wanted.item())


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_soft_targets_at_the_answers_and_nowhere_else(checkpoint: Path, direction: Any) -> None:
    student, teacher = loaded(checkpoint), loaded(checkpoint, noise=0.2)
    objective = OnLogits(teacher, len(WORDS), 2.0, direction, hard=0.25)
    found = objective(student, PairBatch(PAIRS))
    soft = hard = torch.zeros(())
    for pair in PAIRS:
        whole = torch.tensor([[*pair.asked, *pair.answered]])
        at = slice(len(pair.asked) - 1, -1)
        q, p = ((m(input_ids=whole).logits[0, at] / 2.0).log_softmax(-1) for m in (student, teacher))
        first, second = (q, p) if direction == "forward" else (p, q)
        soft = soft + F.kl_div(first, second, log_target=True, reduction="sum")
        hard = hard + by_transformers(student, pair, len(pair.asked))
    assert found.item() == pytest.approx((0.75 * 4.0 * soft + 0.25 * hard).item(), rel=1e-5)
    found.backward()
    assert all(p.grad is None for p in teacher.parameters())
    assert any(p.grad.abs().sum() > 0 for p in student.parameters())


def test_a_student_that_is_its_teacher_has_nothing_to_learn(checkpoint: Path) -> None:
    model = loaded(checkpoint)
    assert OnLogits(model, len(WORDS))(model, PairBatch(PAIRS)).item() == pytest.approx(0.0, abs=1e-6)


def test_the_check_passes_and_finds_a_loss_on_requests(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded(checkpoint).float()
    assert answer_check(model, PairBatch(PAIRS)).status == "pass"

    def all_tokens(batch: PairBatch, device: torch.device) -> Read:
        """The broken twin: requests are learned too."""
        whole = [Pair(pair.asked[:1], (*pair.asked[1:], *pair.answered)) for pair in batch.pairs]
        return right(PairBatch(tuple(whole)), device)

    right = PairBatch.read
    monkeypatch.setattr(PairBatch, "read", all_tokens)
    assert answer_check(model, PairBatch(PAIRS)).status == "fail"


def test_the_check_finds_a_head_that_is_not_the_models(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some models scale or cap their logits after the head."""
    model, right = loaded(checkpoint).float(), objectives.answer_logits
    monkeypatch.setattr(objectives, "answer_logits", lambda *given: right(*given).div(4).tanh() * 4)
    assert answer_check(model, PairBatch(PAIRS)).status == "fail"


def test_products_in_bfloat16_are_near_and_not_the_same(checkpoint: Path) -> None:
    model = loaded(checkpoint).float()
    exact, near = (OnTexts(p)(model, PairBatch(PAIRS)) for p in ("float32", "bfloat16"))  # type: ignore[arg-type]
    assert near.dtype == torch.float32
    assert exact.item() != near.item() == pytest.approx(exact.item(), rel=0.02)


def test_batches_follow_from_the_seed_and_the_step() -> None:
    pairs = [Pair((3,) * (1 + n % 5), (4, 2)) for n in range(10)]
    batches = PairBatches(pairs, 4, seed=1)
    assert batches.per_epoch == 3
    assert batches[7] == PairBatches(pairs, 4, seed=1)[7]
    assert any(batches[step] != PairBatches(pairs, 4, seed=2)[step] for step in range(3))
    epoch = [pair for step in range(3) for pair in batches[step].pairs]
    assert sorted(map(len, epoch)) == sorted(map(len, pairs))
    lengths = [len(pair) for pair in batches[0].pairs]
    assert lengths == sorted(lengths)
