"""What a student is trained to do: to say a text word for word, or to hold probable what its teacher does.

Shapes: B pairs, T places, N tokens of all answers, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.adapt.distil.pairs import Pair, PairBatch, Read, by_length
from attnlab.record import Check

Divergence = Literal["forward", "reverse"]
Precision = Literal["float32", "bfloat16"]  # in which products are taken; weights, sums and losses are fp32
_TOLERANCE = 1e-4  # relative: two ways to add up the same sum in fp32
_TOKENS = 4096  # of a batch that is only measured


@dataclass(frozen=True)
class OnTexts:
    """Cross-entropy of every token of the answers; the requests are read, and not learned."""

    precision: Precision = "float32"

    def __call__(self, model: Any, batch: PairBatch) -> Tensor:
        read = batch.read(model.device)
        return F.cross_entropy(answer_logits(model, read, self.precision), read.targets_N, reduction="sum")


@dataclass(frozen=True)
class OnLogits:
    """The divergence between what teacher and student hold probable at every token of the answers, both
    softened by a temperature, whose square keeps the gradient's size (Hinton et al. 2015,
    https://arxiv.org/abs/1503.02531); and, with the weight `hard`, the cross-entropy of the tokens.
    """

    teacher: Any  # in evaluation mode; it is not trained
    words: int  # of the vocabulary: rows beyond, which fill an embedding up, are no words
    temperature: float = 1.0
    divergence: Divergence = "forward"
    hard: float = 0.0
    precision: Precision = "float32"

    def __call__(self, model: Any, batch: PairBatch) -> Tensor:
        read = batch.read(model.device)
        own_NV = answer_logits(model, read, self.precision)
        with torch.no_grad():
            wanted_NV = answer_logits(self.teacher, read, self.precision)
        soft = divergence(
            wanted_NV[:, : self.words], own_NV[:, : self.words], self.temperature, self.divergence
        )
        loss = (1 - self.hard) * self.temperature**2 * soft
        if self.hard:
            loss = loss + self.hard * F.cross_entropy(own_NV, read.targets_N, reduction="sum")
        return loss


def divergence(teacher_NV: Tensor, student_NV: Tensor, temperature: float, direction: Divergence) -> Tensor:
    """The sum over tokens of KL(teacher ‖ student), the forward one, which wants the student to cover all
    that the teacher may say; or of KL(student ‖ teacher), the reverse one, which wants it to say nothing that
    the teacher would not."""
    p_NV = (teacher_NV / temperature).log_softmax(-1)
    q_NV = (student_NV / temperature).log_softmax(-1)
    if direction == "reverse":
        p_NV, q_NV = q_NV, p_NV
    return (p_NV.exp() * (p_NV - q_NV)).sum()


def answer_logits(model: Any, read: Read, precision: Precision = "float32") -> Tensor:
    """(N, V) the logits from which every token of an answer is predicted. The head, half of the work in a
    small model, is applied there alone; that it then says the same is what `answer_check` holds it to."""
    with torch.autocast(read.tokens_BT.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        states = model.base_model(input_ids=read.tokens_BT, attention_mask=read.seen_BT, use_cache=False)
        logits_NV: Tensor = model.get_output_embeddings()(states[0].flatten(0, 1)[read.places_N])
    return logits_NV.float()


@torch.inference_mode()
def answer_loss(model: Any, pairs: Sequence[Pair], precision: Precision = "float32") -> float:
    """The mean loss of every token of the answers, in nats, in evaluation mode."""
    was_training = model.training
    model.eval()
    objective = OnTexts(precision)
    total = sum(objective(model, batch).item() for batch in by_length(pairs, _TOKENS))
    model.train(was_training)
    return total / sum(len(pair.answered) for pair in pairs)


@torch.inference_mode()
def answer_check(model: Any, batch: PairBatch) -> Check:
    """The training loss against its definition: of each pair alone, without padding, by the model's own
    logits, the answer's tokens and no other."""
    model.eval()
    ours = OnTexts()(model, batch).item()
    defined = 0.0
    for pair in batch.pairs:
        whole = torch.tensor([[*pair.asked, *pair.answered]], device=model.device)
        logits_TV = model(input_ids=whole, use_cache=False).logits[0, :-1].float()
        losses_T = F.cross_entropy(logits_TV, whole[0, 1:], reduction="none")
        defined += losses_T[len(pair.asked) - 1 :].double().sum().item()
    apart = abs(ours - defined) / max(abs(defined), 1e-12)
    evidence = (
        f"the loss of {batch.targets} tokens of {len(batch.pairs)} answers, padded together, is {ours:.4f}; "
        f"by definition, from the answers' tokens alone, it is {defined:.4f}"
    )
    detail = {"ours": ours, "defined": defined, "tolerance": _TOLERANCE}
    return Check("answers-only", "pass" if apart <= _TOLERANCE else "fail", evidence, detail)
