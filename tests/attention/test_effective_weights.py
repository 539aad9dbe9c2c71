"""The matrix a mixer gives as its weights is what it does to the values: recovered by letting it mix values
that are one at a single token and zero at all others.

Shapes: N tokens of a flat stream, B sequences, H heads, T queries, S keys, d head width.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attnlab.attention import (
    Absent,
    AftConv,
    AftFull,
    AftLocal,
    AftSimple,
    Alibi,
    Attention,
    Causal,
    Differential,
    Dims,
    Entmax15,
    Everything,
    Fastformer,
    Favor,
    Grouped,
    Layout,
    LinearAttention,
    Mixer,
    Position,
    Relu,
    Rotary,
    Sigmoid,
    SoftmaxPlusOne,
    TalkingHeads,
    Window,
)
from attnlab.attention.mixer import MixerLayer
from attnlab.attention.mixers.aft import AftLayer
from attnlab.attention.mixers.differential import DifferentialCore

DIMS = Dims(width=24, heads=3, context=9, layers=1, dropout=0.0)
LAYOUT = Layout([7, 4, 1])
CASES: list[tuple[Mixer, Position]] = [
    (Attention(), Absent()),
    (Attention(mask=Everything()), Rotary()),
    (Attention(mask=Window(size=3), weigh=Entmax15()), Alibi()),
    (Attention(mask=Causal(where="after")), Absent()),
    (Attention(mask=Causal(where="renormalised"), weigh=Sigmoid()), Absent()),
    (Attention(weigh=Relu(), project=Grouped()), Absent()),
    (Attention(weigh=SoftmaxPlusOne()), Absent()),
    (Differential(), Absent()),
    (TalkingHeads(), Absent()),
    (AftSimple(), Absent()),
    (AftFull(), Absent()),
    (AftLocal(window=3), Absent()),
    (AftConv(window=3), Absent()),
    (LinearAttention(), Absent()),
    (Favor(features=16), Rotary()),
]
NAMES = [f"{mixer.name}-{place}" for place, (mixer, _) in enumerate(CASES)]


class GivenValues(nn.Module):
    """Projections whose values are not the token's own."""

    def __init__(self, project: nn.Module) -> None:
        super().__init__()
        self.project, self.values_N = project, torch.zeros(LAYOUT.tokens)

    def forward(self, x_ND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q_NHd, k_NGd, v_NGd = self.project(x_ND)
        return q_NHd, k_NGd, self.values_N[:, None, None].expand_as(v_NGd)


def made(mixer: Mixer) -> MixerLayer:
    torch.manual_seed(3)
    layer = mixer.build(DIMS)
    for module in layer.modules():
        if hasattr(module, "init_weights"):
            module.init_weights()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.4)
    return layer


def recovered(layer: MixerLayer, x_ND: Tensor, position: Position) -> Tensor:
    """(B, H·d, T, S): what reaches each channel from each token."""
    scheme = position.build(DIMS)
    q_NHd = layer.project(x_ND)[0]
    layer.project = given = GivenValues(layer.project)
    layer.merge = nn.Identity()
    core = getattr(layer, "core", None)
    if isinstance(core, DifferentialCore):
        core.norm = nn.Identity()  # it is no weighing of values
    whole = torch.zeros(LAYOUT.batch, DIMS.width, LAYOUT.longest, LAYOUT.longest)
    slots = [(b, s) for b, length in enumerate(LAYOUT.lengths) for s in range(length)]
    for token, (b, s) in enumerate(slots):
        given.values_N = torch.zeros(LAYOUT.tokens)
        given.values_N[token] = 1.0
        y_ND = layer(x_ND, LAYOUT, scheme)
        if isinstance(layer, AftLayer):
            y_ND = y_ND / q_NHd.sigmoid().flatten(1)  # the gate stands behind the weights
        if isinstance(core, DifferentialCore):
            y_ND = y_ND / (1 - core.factor.start)
        reached = LAYOUT.pad(y_ND).transpose(1, 2)  # (B, H·d, T)
        assert not reached[[other for other in range(LAYOUT.batch) if other != b]].any()
        whole[b, :, :, s] = reached[b]
    return whole


@pytest.mark.parametrize(("mixer", "position"), CASES, ids=NAMES)
def test_weights_are_what_is_done_to_values(mixer: Mixer, position: Position) -> None:
    layer = made(mixer)
    x_ND = torch.randn(LAYOUT.tokens, DIMS.width)
    with torch.no_grad():
        weights = layer.weights(x_ND, LAYOUT, position.build(DIMS))
        assert weights is not None
        if layer.weights_per == "head":
            weights = weights.repeat_interleave(DIMS.head_width, dim=1)
        found = recovered(layer, x_ND, position)
    queries = LAYOUT.real_BT[:, None, :, None]  # padding asks too; nobody listens
    assert not (weights * queries).masked_select(~LAYOUT.real_BT[:, None, None, :]).any()
    torch.testing.assert_close(weights * queries, found * queries, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(("mixer", "position"), CASES, ids=NAMES)
def test_rows_sum_to_one_where_that_is_claimed(mixer: Mixer, position: Position) -> None:
    layer = made(mixer)
    with torch.no_grad():
        weights = layer.weights(torch.randn(LAYOUT.tokens, DIMS.width), LAYOUT, position.build(DIMS))
    assert weights is not None
    sums = weights.sum(-1).masked_select(LAYOUT.real_BT[:, None])
    assert bool(((sums - 1).abs() < 1e-4).all()) == layer.rows_sum_to_one


def test_where_there_is_no_matrix_the_reason_is_said() -> None:
    layer = made(Fastformer())
    assert layer.weights(torch.randn(LAYOUT.tokens, DIMS.width), LAYOUT, Absent().build(DIMS)) is None
    assert "one vector that stands for the whole sequence" in layer.no_weights_because
