"""Trains and scores every part on a pretended device, and prints as JSON what differed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from attnlab.attention import Attention, Mixer, Position, Project, Score, Weigh
from attnlab.decoding import OwnWriter, Recipe, write
from attnlab.errors import AttnlabError
from attnlab.evaluation.losses import mean_loss
from attnlab.evaluation.prefix import prefix_score
from attnlab.model import Decoder
from attnlab.spec import validate
from attnlab.training import Training, train
from tests.training.pretended import ELSEWHERE, TwoPlaces
from tests.training.small import SPLIT, Quiet, a_run

# All that a writer asks of a vocabulary.
WORDS: Any = SimpleNamespace(size=SPLIT.size, start=SPLIT.start, stop=SPLIT.stop)
_SIZES: dict[str, Any] = {"layers": 1, "heads": 2, "width": 16, "context": 16, "dropout": 0.0}


def specs() -> dict[str, Decoder]:
    """A small decoder for every part that a decoder takes."""
    found: dict[str, Decoder] = {}
    wanted = {"mixer": Mixer, "position": Position, "score": Score, "weigh": Weigh, "project": Project}
    for place, family in wanted.items():
        for name in family.members:
            inside = {"part": "attention", place: name}
            changes = {place: name} if place in ("mixer", "position") else {"mixer": inside}
            try:
                spec = validate(Decoder, {**_SIZES, **changes}, source=name)
            except AttnlabError:  # does not go with learned positions, or is not for decoders
                continue
            if spec.mixer.hides_future:
                found[f"{place} {name}"] = spec
    for kernel in ("fused", "stages"):
        found[f"kernel {kernel}"] = Decoder(**{**_SIZES, "dropout": 0.1}, mixer=Attention(kernel=kernel))
    return found


def measured(spec: Decoder, device: torch.device) -> dict[str, Any]:
    """A short run, and everything that is asked of a trained model."""
    run = a_run(Training(steps=2, batch=4), spec=spec)
    run.model.to(device)
    train(run, Quiet())
    writer = OwnWriter(run.model, WORDS)
    return {
        "loss": mean_loss(run.model, SPLIT),
        "prefix": prefix_score(run.model, SPLIT, np.arange(3)).prefix_loss,
        "samples": [text.tokens for text in write(writer, [0], Recipe(), count=3, longest=9, seed=5)],
        "places": sorted({value.device.type for value in run.model.state_dict().values()}),
    }


def complaint(spec: Decoder) -> str | None:
    here = measured(spec, torch.device("cpu"))
    with TwoPlaces():
        there = measured(spec, ELSEWHERE)
    if there["places"] != [ELSEWHERE.type]:
        return f"it stayed on {there['places']}"
    if spec.dropout:  # another source of random numbers
        return None
    for name in ("loss", "prefix"):
        if abs(here[name] - there[name]) > 1e-5:
            return f"{name}: {here[name]} here, {there[name]} there"
    return None if here["samples"] == there["samples"] else "other samples"


def main() -> None:
    found = {}
    for name, spec in specs().items():
        try:
            found[name] = complaint(spec)
        except RuntimeError as error:
            found[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
