"""One training run at the common set-up, against transformers' GPT-2 of the same size.

Same sentences in the same batches, same optimiser settings, dropout and precision of the parameters. GPT-2 is
fed as its users feed it: padded to the context. What is counted is real tokens, not padding.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from attnlab.corpus import Sotu
from attnlab.model import Decoder
from attnlab.tokens import Prepared, Sentences, Words, prepare
from attnlab.tokens.batches import Batch, Batches
from attnlab.training import NextToken, Run, Training, train
from benchmarks.alternating import TUNED, Subject, Work, measure, ratio

STEPS = 25  # a round
CONTEXT, BATCH = 100, 32


@cache
def corpus() -> Prepared:
    return prepare(Sotu(), Words(), Sentences(), CONTEXT)


class _Quiet:
    def begin(self, step: int) -> None: ...
    def row(self, row: object) -> None: ...
    def note(self, text: str) -> None: ...
    def should_save(self) -> bool:
        return False

    def should_stop(self) -> bool:
        return False


class _From:
    """The batches from a given step on."""

    def __init__(self, batches: Batches, first: int) -> None:
        self.batches, self.first, self.per_epoch = batches, first, batches.per_epoch

    def __getitem__(self, step: int) -> Batch:
        return self.batches[self.first + step]


def _ours(precision: str) -> Work:
    data = corpus()
    model = Decoder().build(data.vocabulary.size)
    training = Training(steps=STEPS, precision=precision, evaluations=1)
    batches = Batches(data.splits["train"], BATCH, 0)

    def work(number: int) -> int:
        objective = NextToken(training.head_dtype)
        part = _From(batches, number * STEPS)
        run = Run(
            model=model,
            objective=objective,
            batches=part,
            training=training,
            steps=STEPS,
            seed=0,
            evaluate=dict,
        )
        return train(run, _Quiet()).tokens

    return work


def ours() -> Work:
    return _ours("bfloat16-head")


def ours_fp32() -> Work:
    return _ours("float32")


def gpt2() -> Work:
    """As a user would write it: the model's own loss on padded batches."""
    return _gpt2(CONTEXT)


def gpt2_to_longest() -> Work:
    """Each batch padded to its own longest sentence only."""
    return _gpt2(None)


def _gpt2(pad_to: int | None) -> Work:
    from transformers import GPT2Config, GPT2LMHeadModel

    data = corpus()
    config = GPT2Config(
        vocab_size=data.vocabulary.size,
        n_positions=CONTEXT,
        n_embd=48,
        n_layer=3,
        n_head=3,
        tie_word_embeddings=False,
        use_cache=False,
        bos_token_id=0,
        eos_token_id=1,
    )
    model = GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, betas=(0.9, 0.95), weight_decay=0.1)
    batches = Batches(data.splits["train"], BATCH, 0)

    def work(number: int) -> int:
        tokens = 0
        for step in range(number * STEPS, (number + 1) * STEPS):
            batch = batches[step]
            ids, real = _padded(batch, pad_to)
            labels = ids.masked_fill(~real, -100)
            loss = model(input_ids=ids, attention_mask=real.long(), labels=labels).loss
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            tokens += batch.tokens
        return tokens

    return work


def _padded(batch: Batch, width: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, T) ids, and where they are real."""
    width = width or int(batch.lengths_B.max())
    ids = np.zeros((len(batch.lengths_B), width), dtype=np.int64)
    real = np.arange(width) < batch.lengths_B[:, None]
    ids[real] = batch.inputs_N
    return torch.from_numpy(ids), torch.from_numpy(real)


def main(rounds: int = 8) -> list[dict[str, object]]:
    here = "benchmarks.training"
    mine = Subject("attnlab", f"{here}:ours")
    mine_fp32 = Subject("attnlab, fp32 throughout", f"{here}:ours_fp32")
    stock = Subject("transformers GPT-2, as it comes", f"{here}:gpt2")
    tuned = Subject("transformers GPT-2, tuned allocator", f"{here}:gpt2", TUNED)
    longest = Subject("transformers GPT-2, tuned, padded to longest", f"{here}:gpt2_to_longest", TUNED)
    subjects = [mine, mine_fp32, stock, tuned, longest]
    measure(subjects, rounds)
    rows: list[dict[str, object]] = []
    for own in (mine, mine_fp32):
        for peer in (stock, tuned, longest):
            rows.append(
                {
                    "name": f"training tokens per second: {own.name} / {peer.name}",
                    "ratio": round(ratio(own, peer), 2),
                    "peer": round(peer.rate),
                    "ours": round(own.rate),
                    "peer_spread": [round(r) for r in peer.spread],
                    "ours_spread": [round(r) for r in own.spread],
                }
            )
    rows.append(
        {
            "name": f"peak memory, MB: {mine.name} / {stock.name}",
            "ratio": round(mine.peak_mb / stock.peak_mb, 3),
            "peer": round(stock.peak_mb),
            "ours": round(mine.peak_mb),
        }
    )
    return rows
