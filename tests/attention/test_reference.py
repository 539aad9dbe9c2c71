"""Every operator made of parts, fused or in stages, against the slow oracle, with gradients, in fp64."""

from __future__ import annotations

import pytest
import torch

from attnlab.attention import Absent, Attention, Dims, Layout, Mask, Position, Project, Score, Weigh
from attnlab.attention.reference import attend_slowly

DIMS = Dims(width=12, heads=2, context=16)
LENGTHS = [5, 1, 4]
WHERE = [{"part": "causal", "where": where} for where in ("before", "after", "renormalised")]
OPERATORS = [
    *({"score": name} for name in Score.members),
    *({"weigh": name} for name in Weigh.members),
    *({"weigh": name, "mask": "nearby"} for name in Weigh.members),
    *({"mask": mask} for mask in [*Mask.members, *WHERE, {"part": "window", "size": 2}]),
    *({"project": name} for name in Project.members),
    {"score": "distance", "weigh": "softmax-plus-one"},
    {"score": "cosine", "mask": {"part": "window", "size": 2}, "project": "grouped"},
]


def check(operator: dict[str, object], position_name: object, kernel: str) -> None:
    torch.manual_seed(0)
    layer = Attention.resolve({"part": "attention", "kernel": kernel, **operator}).build(DIMS).double()
    position = Position.resolve(position_name).build(DIMS).double()
    x = torch.randn(sum(LENGTHS), DIMS.width, dtype=torch.float64, requires_grad=True)
    ours = layer(x, Layout(LENGTHS), position)
    oracle = torch.cat([attend_slowly(layer, part, position) for part in x.split(LENGTHS)])
    torch.testing.assert_close(ours, oracle, rtol=1e-10, atol=1e-11)
    upstream = torch.randn_like(ours)
    wanted = [x, *layer.parameters()]
    mine, theirs = (
        torch.autograd.grad((y * upstream).sum(), wanted, allow_unused=True) for y in (ours, oracle)
    )
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
@pytest.mark.parametrize("kernel", ["auto", "stages"])
def test_operator(operator: dict[str, object], kernel: str) -> None:
    check(operator, Absent(), kernel)


@pytest.mark.parametrize("position", sorted(Position.members))
@pytest.mark.parametrize("mask", ["causal", "everything", "window"])
@pytest.mark.parametrize("kernel", ["auto", "stages"])
def test_position(position: str, mask: str, kernel: str) -> None:
    check({"mask": mask}, position, kernel)
