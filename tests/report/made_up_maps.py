"""Attention maps for a made-up study: files as a camera leaves them, and their figures in each result.

Shapes: H heads, T tokens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attnlab.evaluation.maps.heads import measured
from attnlab.evaluation.maps.shot import FOLDER, Shot, Stack

PROBES = (
    [
        "<START>",
        "the",
        "<script>alert(1)</script>",
        "fox",
        "&",
        "“hound”",
        "was",
        "a",
        "considerable-disappointment",
    ],
    ["<START>", *[f"w{i}" for i in range(12)] * 2],
)


def add_maps(
    directory: Path,
    steps: Sequence[int] = (0, 400),
    heads: int = 3,
    without: Sequence[str] = (),
    signed: Sequence[str] = (),
) -> Path:
    """Maps for every run of the study that is done; arms in `without` have a mixer that has none, those in
    `signed` negative weights."""
    for path in sorted(directory.glob("runs/*/*/result.json")):
        result = json.loads(path.read_text("utf-8"))
        arm, seed = result["arm"], result["seed"]
        draw = np.random.default_rng([seed, len(arm)])
        shots = [_shot(step, draw, heads, arm in without, arm in signed) for step in steps]
        for shot in shots:
            shot.write(path.parent / FOLDER)
        result["exhibits"] = {
            "attention": {
                "steps": list(steps),
                "probes": [probe["text"] for probe in shots[0].probes],
                "layers": shots[0].layers,
                "heads": [shot.figures["heads"] for shot in shots],
                "losses": [shot.figures["losses"] for shot in shots],
                "rows": [None for _ in shots],
                "error": max(shot.error for shot in shots),
            }
        }
        path.write_text(json.dumps(result), "utf-8")
    return directory


def _shot(step: int, draw: np.random.Generator, heads: int, without: bool, signed: bool) -> Shot:
    maps = [[_weights(draw, len(tokens), heads, signed) for _ in range(2)] for tokens in PROBES]
    told = "one vector stands for <all> tokens" if without else ""
    return Shot(
        step=step,
        probes=[
            {"text": " ".join(PROBES[0][1:]), "tokens": PROBES[0], "passage": 0},
            {"text": "12 random tokens, twice", "tokens": PROBES[1], "passage": 12},
        ],
        layers=[{"heads": 0 if without else heads, "per": "head", "without": told}] * 2,
        figures={
            "heads": [
                {} if without else measured([probe[layer] for probe in maps], [0, 12]) for layer in range(2)
            ],
            "rows": [None, None],
            "losses": {"first": 3.4, "again": 3.4 / (1 + step)},
        },
        stacks={}
        if without
        else {(at, layer): Stack.of(maps[at][layer]) for at in range(len(PROBES)) for layer in range(2)},
    )


def _weights(draw: np.random.Generator, tokens: int, heads: int, signed: bool) -> np.ndarray:
    """Rows that sum to one over what came before, from flat to sharp."""
    scores = draw.normal(size=(heads, tokens, tokens)) * np.linspace(0.2, 4, heads)[:, None, None]
    e = np.tril(np.exp(scores))
    weights = e / e.sum(-1, keepdims=True)
    return weights - np.tril(np.full_like(weights, 0.1)) if signed else weights
