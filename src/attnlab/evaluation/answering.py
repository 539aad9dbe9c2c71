"""What a classifier of ours answers on a split, example by example and document by document.

Shapes: S examples of a split, C classes, D documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from attnlab.attention import Layout
from attnlab.evaluation.classified import Classified
from attnlab.evaluation.text_floors import LabelledTexts
from attnlab.model import ClassifierModel
from attnlab.record import Items
from attnlab.tokens import Examples
from attnlab.tokens.examples import examples_by_length

_BATCH_TOKENS = 4096


@torch.inference_mode()
def logits_of(model: ClassifierModel, split: Examples) -> NDArray[np.float64]:
    """(S, C), in evaluation mode."""
    was_training = model.training
    model.eval()
    logits_SC = np.empty((split.n_sequences, model.labels))
    for batch in examples_by_length(split, _BATCH_TOKENS):
        layout = Layout(batch.lengths_B.tolist(), device=model.device)
        found_BC = model(torch.from_numpy(batch.tokens_N).to(model.device), layout)
        logits_SC[batch.sequences_B] = found_BC.double().cpu().numpy()
    model.train(was_training)
    return logits_SC


def answered(model: ClassifierModel, split: Examples, classes: Sequence[str]) -> Classified:
    """The answers on a labelled split."""
    return Classified.of(names_in(split), classes, split.labels, logits=logits_of(model, split))


def names_in(split: Examples) -> tuple[str, ...]:
    """A name for every example: its document's, with a number where that has several."""
    of_each = Counter(split.document.tolist())
    seen: Counter[int] = Counter()
    names = []
    for owner in split.document.tolist():
        seen[owner] += 1
        name = split.names[owner]
        names.append(name if of_each[owner] == 1 else f"{name}, {seen[owner]}")
    return tuple(names)


def by_document(found: Classified, split: Examples) -> Items:
    """What a verdict pairs on: documents, which were held out as a whole. Examples of one document are alike,
    and so many are not as many independent ones."""
    counts_D = np.bincount(split.document, minlength=len(split.names))
    held = counts_D > 0
    values = {
        measure: (np.bincount(split.document, found.items[measure], len(counts_D))[held] / counts_D[held])
        for measure in ("correct", "loss")
    }
    return Items(
        names=tuple(name for name, keep in zip(split.names, held, strict=True) if keep),
        values={
            **{measure: tuple(each.tolist()) for measure, each in values.items()},
            "examples": tuple(counts_D[held].tolist()),
        },
    )


def texts_of(split: Examples, classes: Sequence[str]) -> LabelledTexts:
    """The same examples as something that counts words reads them."""
    return LabelledTexts(names_in(split), split.texts, [classes[place] for place in split.labels])
