"""The file of a shot: what comes back, how far it is from what was there, and damage that is told.

Shapes: H heads, T tokens.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnlab.errors import StoreError
from attnlab.evaluation.maps.shot import Shot, Stack, shots_in


def stack(signed: bool = False) -> tuple[np.ndarray, Stack]:
    draw = np.random.default_rng(4)
    weights = np.tril(draw.dirichlet(np.ones(7), size=(3, 7))) * np.array([1, 0.01, 0])[:, None, None]
    if signed:
        weights = weights - 0.3 * np.tril(draw.uniform(size=(3, 7, 7)))
    return weights, Stack.of(weights)


def shot(step: int = 3) -> Shot:
    return Shot(
        step=step,
        probes=[{"text": "a b", "tokens": ["<START>", "a", "b"], "passage": 0}],
        layers=[{"heads": 3, "per": "head", "without": ""}, {"heads": 0, "per": "head", "without": "none"}],
        figures={"heads": [{"entropy": [0.5, 1.0, 0.1]}, {}], "rows": [None, None], "losses": {}},
        stacks={(0, 0): stack()[1]},
    )


@pytest.mark.parametrize("signed", [False, True])
def test_eight_bits_are_as_near_as_they_say(signed: bool) -> None:
    weights, kept = stack(signed)
    assert kept.levels_HTT.dtype == (np.int8 if signed else np.uint8)
    gap = np.abs(kept.weights_HTT - weights)
    assert gap.max() <= kept.error * (1 + 1e-6)
    assert gap.max() > kept.error / 2  # no looser than it is
    assert (gap.max((1, 2)) <= kept.scale_H / 2 * (1 + 1e-5)).all()  # each head on its own scale
    assert kept.error <= np.abs(weights).max() / (2 * (127 if signed else 255)) * (1 + 1e-6)


def test_what_is_exactly_zero_stays_so() -> None:
    for signed in (False, True):
        weights, kept = stack(signed)
        assert not kept.weights_HTT[weights == 0].any()


def test_a_shot_comes_back_and_is_the_same_bytes_again(tmp_path: Path) -> None:
    shot(12).write(tmp_path / "maps")
    shot(3).write(tmp_path / "maps")
    first, second = shots_in(tmp_path)
    back = Shot.read(first)
    assert (back.step, Shot.read(second).step) == (3, 12)
    assert (back.probes, back.layers, back.figures) == (shot().probes, shot().layers, shot().figures)
    assert np.array_equal(back.stacks[0, 0].levels_HTT, shot().stacks[0, 0].levels_HTT)
    assert back.error == shot().error
    before = first.read_bytes()
    shot(3).write(tmp_path / "maps")
    assert first.read_bytes() == before


@pytest.mark.parametrize("damage", [b"", b"nothing of ours", None])
def test_damage_is_told_with_what_to_do(tmp_path: Path, damage: bytes | None) -> None:
    shot().write(tmp_path)
    path = tmp_path / "00000003.safetensors"
    path.write_bytes(path.read_bytes()[:-5] if damage is None else damage)
    with pytest.raises(StoreError, match=r"00000003.*not a readable file of attention maps.*remove it"):
        Shot.read(path)
