"""Fine-tuning a 22 M encoder, against the loop of transformers' Trainer.

The same texts in the same batches of 64, the same AdamW, as the Trainer does it: each batch filled up to its
longest text, fp32. Ours in fp32 shows what stretches of similar length give, ours as it comes what products
in bfloat16 add. What is counted is real tokens, not padding.

Sentences of the embedded corpus have lengths like those of film reviews. Whether the quality is the same is
asked of the same checkpoint after as many steps of each: see `quality`.
"""

from __future__ import annotations

from functools import cache
from itertools import count

import numpy as np
import torch
import torch.nn.functional as F

from attnlab.adapt.answers import classified
from attnlab.adapt.batches import TextBatches, TextLabel
from attnlab.adapt.labelled import LabelledCorpus, read_labelled
from attnlab.adapt.tuned import Tunable, TunedModel
from attnlab.adapt.views import TextView
from attnlab.corpus import Sotu
from attnlab.training import AdamW
from benchmarks.alternating import Subject, Work, compared, measure

STEPS, BATCH, LONGEST = 2, 64, 128
QUALITY_STEPS = 40
RULE = AdamW(learning_rate=5e-5, beta2=0.999, weight_decay=0.01)
CORPUS = Sotu(
    label="president", presidents=("Franklin D. Roosevelt", "Ronald Reagan"), units=100, test_share=0.2
)


@cache
def texts() -> tuple[LabelledCorpus, int]:
    tokenizer = Tunable().load_tokenizer()
    return read_labelled(CORPUS, tokenizer, LONGEST, None), tokenizer.pad_token_id


def view(split: str) -> TextView:
    corpus, padding = texts()
    return TextView(corpus.splits[split].texts, padding)


def _model() -> TunedModel:
    return Tunable(longest=LONGEST).build(len(texts()[0].classes))


class _Loop:
    """Steps of one way of training, a batch after another."""

    def __init__(self, products: torch.dtype, *, as_trainer: bool) -> None:
        self.model = _model().train()
        self.objective = None if as_trainer else TextLabel(products)
        self.optimizer = RULE.build(self.model)
        self.batches = TextBatches(view("train"), BATCH, seed=0)
        self.numbers = count()

    def step(self) -> int:
        batch = self.batches[next(self.numbers)]
        self.optimizer.zero_grad(set_to_none=True)
        if self.objective is not None:
            loss = self.objective(self.model, batch) / batch.targets
        else:
            piece = view("train").piece(batch.rows_B)
            loss = F.cross_entropy(piece.logits(self.model), piece.labels_B)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return batch.tokens


def _work(products: torch.dtype, *, as_trainer: bool = False) -> Work:
    loop = _Loop(products, as_trainer=as_trainer)
    return lambda number: sum(loop.step() for _ in range(STEPS))


def ours() -> Work:
    return _work(Tunable().product_type)


def ours_fp32() -> Work:
    return _work(torch.float32)


def trainer() -> Work:
    return _work(torch.float32, as_trainer=True)


def quality(products: torch.dtype, *, as_trainer: bool, steps: int = QUALITY_STEPS) -> float:
    """Accuracy on the held-out addresses after so many steps."""
    loop = _Loop(products, as_trainer=as_trainer)
    for _ in range(steps):
        loop.step()
    return float(np.mean(classified(loop.model, view("test"), texts()[0].classes).items["correct"]))


def main(rounds: int = 6) -> list[dict[str, object]]:
    here = "benchmarks.tuning"
    stock = Subject("transformers' Trainer loop", f"{here}:trainer")
    own = Subject("attnlab", f"{here}:ours")
    own_fp32 = Subject("attnlab, fp32 throughout", f"{here}:ours_fp32")
    measure([own, own_fp32, stock], rounds)
    what = "fine-tuning, tokens per second"
    rows = [compared(what, mine, stock) for mine in (own, own_fp32)]
    peer, mine = (
        quality(torch.float32, as_trainer=True),
        quality(Tunable().product_type, as_trainer=False),
    )
    rows.append(
        {
            "name": f"accuracy after {QUALITY_STEPS} steps of fine-tuning: {own.name} / {stock.name}",
            "ratio": round(mine / peer, 3),
            "peer": round(peer, 4),
            "ours": round(mine, 4),
        }
    )
    return rows
