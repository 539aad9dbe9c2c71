"""One training run at the common set-up, against transformers' GPT-2 of the same size.

Same sentences in the same batches, same optimiser settings, dropout and precision (fp32). GPT-2 is fed as its
users feed it: padded to the context; then to the longest of a batch, then in batches of similar length. What
is counted is real tokens, not padding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch

from attnlab.corpus import Sotu
from attnlab.model import Decoder
from attnlab.tokens import Prepared, Sentences, Words, prepare
from attnlab.tokens.batches import Batch, Batches, take
from attnlab.training import NextToken, Run, Training, train
from benchmarks.alternating import TUNED, Subject, Work, compared, measure

STEPS = 25  # a round
CONTEXT, BATCH = 100, 32
NO_COMPILER = {"CXX": "/there/is/no/compiler"}


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
    """In fp32 throughout."""
    return _ours("float32")


def ours_bfloat16() -> Work:
    return _ours("bfloat16-head")


def gpt2() -> Work:
    """As a user would write it: the model's own loss on padded batches."""
    return _gpt2(CONTEXT)


def gpt2_to_longest() -> Work:
    """Each batch padded to its own longest sentence only."""
    return _gpt2(None)


def gpt2_in_buckets() -> Work:
    """Sentences of about the same length together, padded to the longest of them: other batches than ours."""
    split = corpus().splits["train"]
    order = np.argsort(split.starts[1:] - split.starts[:-1], kind="stable")
    places = np.array_split(order, len(order) // BATCH)
    shuffled = np.random.default_rng(0).permutation(len(places))
    return _gpt2(None, lambda step: take(split, places[shuffled[step]]))


def _gpt2(pad_to: int | None, batch_of: Callable[[int], Batch] | None = None) -> Work:
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
    batch_of = batch_of or Batches(data.splits["train"], BATCH, 0).__getitem__

    def work(number: int) -> int:
        tokens = 0
        for step in range(number * STEPS, (number + 1) * STEPS):
            batch = batch_of(step)
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


def main(rounds: int = 6) -> list[dict[str, object]]:
    here, what = "benchmarks.training", "training tokens per second"
    own = Subject("attnlab", f"{here}:ours")
    in_bfloat16 = Subject("attnlab, bfloat16 head", f"{here}:ours_bfloat16")
    uncompiled = Subject("attnlab without a C++ compiler, fp32", f"{here}:ours", NO_COMPILER)
    stock = Subject("transformers GPT-2, as it comes", f"{here}:gpt2")
    tuned = Subject("transformers GPT-2, tuned allocator", f"{here}:gpt2", TUNED)
    longest = Subject("transformers GPT-2, tuned, padded to longest", f"{here}:gpt2_to_longest", TUNED)
    bucketed = Subject("transformers GPT-2, tuned, length buckets", f"{here}:gpt2_in_buckets", TUNED)
    measure([own, in_bfloat16, uncompiled, stock, tuned, longest, bucketed], rounds)
    return [
        compared(what, own, stock, target="at least 14"),
        compared(what, own, tuned, target="at least 6.5"),
        compared(what, own, longest),
        compared(what, own, bucketed, target="at least 1.5"),
        compared(what, in_bfloat16, stock),
        compared(what, uncompiled, stock),
        {
            "name": f"peak memory, MB: {own.name} / {stock.name}",
            "ratio": round(own.peak_mb / stock.peak_mb, 3),
            "peer": round(stock.peak_mb),
            "ours": round(own.peak_mb),
            "target": "at most 0.333",
        },
    ]
