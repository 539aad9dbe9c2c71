"""What can be measured of texts that were written: how varied they are, how often they repeat themselves, how
alike they are, and how probable a model finds them.

Words, not tokens, are counted, so that texts of models with different tokenizers can be compared.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import torch

from attnlab.decoding import Continuation, OwnWriter, Writer

Text = Sequence[str]  # a text as words

_LONGEST = 4  # n-grams of BLEU, and of repetition


def words(text: str) -> list[str]:
    """Words and marks, in lower case."""
    return re.findall(r"\w+|[^\w\s]", text.lower())


def ngrams(text: Text, n: int) -> Iterator[tuple[str, ...]]:
    return (tuple(text[at : at + n]) for at in range(len(text) - n + 1))


def distinct(texts: Sequence[Text], n: int) -> float:
    """The share of different n-grams among all of these texts (Li et al. 2016); 0 where there are none:
    nothing was said, so nothing varied."""
    found = [gram for text in texts for gram in ngrams(text, n)]
    return len(set(found)) / len(found) if found else 0.0


def repetition(texts: Sequence[Text], n: int = _LONGEST) -> float:
    """The share of n-grams that stood in the same text before (Welleck et al. 2020), as the mean over the
    texts; a text too short for one repeats nothing."""
    shares = [1 - distinct([text], n) if len(text) >= n else 0.0 for text in texts]
    return sum(shares) / len(shares) if shares else 0.0


def self_bleu(texts: Sequence[Text]) -> float:
    """The mean BLEU of every text against all the others, 0 to 100 (Zhu et al. 2018): the higher, the more
    alike they are."""
    if len(texts) < 2:
        return 0.0
    scores = [bleu(text, [*texts[:at], *texts[at + 1 :]]) for at, text in enumerate(texts)]
    return sum(scores) / len(scores)


def bleu(text: Text, references: Sequence[Text]) -> float:
    """BLEU of one sentence, 0 to 100, as sacrebleu has it: orders that the text is too short for are left
    out, and of those without a match the first counts as half a match, the next as a quarter, and so on."""
    logs, unmatched = [], 0
    for n in range(1, min(_LONGEST, len(text)) + 1):
        found = Counter(ngrams(text, n))
        most: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            most |= Counter(ngrams(reference, n))
        matched: float = (found & most).total()
        if n == 1 and not matched:
            return 0.0
        if not matched:
            unmatched += 1
            matched = 0.5**unmatched
        logs.append(math.log(matched / found.total()))
    if not logs:
        return 0.0
    nearest = min((abs(len(reference) - len(text)), len(reference)) for reference in references)[1]
    brevity = min(0.0, 1 - nearest / len(text))
    return 100 * math.exp(brevity + sum(logs) / len(logs))


@torch.inference_mode()
def own_loss(writer: Writer, prompt: Sequence[int], written: Continuation) -> tuple[float, int]:
    """The summed loss in nats of a continuation under a model's plain distribution, and over how many tokens.
    To stop is a prediction like any other."""
    targets = [*written.tokens, *([min(writer.stops)] if written.ended and writer.stops else [])]
    return _loss(writer, [*prompt, *targets], len(prompt))


def loss_elsewhere(
    reader: Writer, writer: Writer, prompt: Sequence[int], written: Continuation, text: tuple[str, str]
) -> tuple[float, int]:
    """The same under another model, which reads the prompt and what follows it (`text`) in its own tokens."""
    if _same_tokens(reader, writer):
        return own_loss(reader, prompt, written)
    return text_loss(reader, *text, ended=written.ended)


def text_loss(reader: Writer, before: str, after: str, *, ended: bool) -> tuple[float, int]:
    """The summed loss of a text that follows another, and over how many tokens."""
    known, whole = reader.encode(before), reader.encode(before + after)
    whole += [min(reader.stops)] if ended and reader.stops else []
    # Where text is joined, tokens may be others than before: what is judged begins where they part.
    shared = next((at for at, (a, b) in enumerate(zip(known, whole, strict=False)) if a != b), len(known))
    return _loss(reader, whole, max(1, min(shared, len(whole))))


@torch.inference_mode()
def _loss(reader: Writer, tokens: Sequence[int], begin: int) -> tuple[float, int]:
    """Of the tokens from `begin` on, as far as the model can read."""
    room = len(tokens) if reader.longest is None else min(len(tokens), reader.longest + 1)
    if room <= begin:
        return 0.0, 0
    logits_TV = reader.logits(torch.tensor([tokens[: room - 1]]))[0, begin - 1 :].double()
    targets_T = torch.tensor(tokens[begin:room], device=logits_TV.device)
    return float(torch.nn.functional.cross_entropy(logits_TV, targets_T, reduction="sum")), room - begin


def _same_tokens(a: Writer, b: Writer) -> bool:
    if isinstance(a, OwnWriter) and isinstance(b, OwnWriter):
        return a.vocabulary.fingerprint == b.vocabulary.fingerprint
    return a is b
