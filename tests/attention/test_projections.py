"""Projections against plain linear layers; arms that share a layer share its initial values."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnlab.attention import (
    Attention,
    Dims,
    Grouped,
    KeyIsValue,
    Network,
    Nonlinear,
    Project,
    QueryIsKey,
    QueryIsKeyIsValue,
    Separate,
)
from attnlab.errors import RequestError
from attnlab.model import Decoder

DIMS = Dims(width=24, heads=4, context=16)
X = torch.randn(10, 24)
EVERY = [
    Grouped(),
    KeyIsValue(),
    Network(hidden_layers=2),
    Network(on=("value",)),
    Nonlinear(),
    QueryIsKey(),
    QueryIsKeyIsValue(),
    Separate(),
]


@pytest.mark.parametrize(
    ("project", "same"),
    [(QueryIsKey(), {(0, 1)}), (KeyIsValue(), {(1, 2)}), (QueryIsKeyIsValue(), {(0, 1), (1, 2), (0, 2)})],
    ids=lambda p: getattr(p, "name", ""),
)
def test_tied_projections_are_equal_where_they_say_so(project: Project, same: set[tuple[int, int]]) -> None:
    made = project.build(DIMS)(X)
    assert {(a, b) for a in range(3) for b in range(a + 1, 3) if torch.equal(made[a], made[b])} == same


def test_a_network_of_no_hidden_layers_is_separate() -> None:
    network, separate = Network(hidden_layers=0).build(DIMS), Separate().build(DIMS)
    separate.load_state_dict(network.state_dict())
    for mine, plain in zip(network(X), separate(X), strict=True):
        torch.testing.assert_close(mine, plain)


def test_a_network_is_linear_layers_with_relu_between() -> None:
    network = Network(hidden_layers=2, on=("key",)).build(DIMS)
    first, second = network.before_key
    key = network.key(
        F.relu(F.linear(F.relu(F.linear(X, first.weight, first.bias)), second.weight, second.bias))
    )
    torch.testing.assert_close(network(X)[1].flatten(1), key)
    torch.testing.assert_close(network(X)[0].flatten(1), network.query(X))


def test_something_comes_through_thirty_hidden_layers() -> None:
    model = Decoder(mixer=Attention(project=Network(hidden_layers=30)), layers=1).build(50)
    deep = model.blocks[0].mixer.project.before_value(torch.randn(20, 48))
    assert 0.01 < deep.std() < 10


@pytest.mark.parametrize("on", ["query", "key", "value"])
def test_one_nonlinearity_on_one_of_three(on: str) -> None:
    bent = Nonlinear(on=on, function="tanh").build(DIMS)
    plain = nn.ModuleDict({name: getattr(bent, name) for name in ("query", "key", "value")})
    for name, made in zip(("query", "key", "value"), bent(X), strict=True):
        expected = plain[name](X)
        torch.testing.assert_close(made.flatten(1), expected.tanh() if name == on else expected)


def test_grouped_heads_are_repeated_heads() -> None:
    """With the narrow layers' rows repeated for every head of a group, separate projections say the same."""
    torch.manual_seed(0)
    from attnlab.attention import Absent, Layout

    grouped = Attention(project=Grouped(key_value_heads=2)).build(DIMS).double()
    plain = Attention().build(DIMS).double()
    plain.merge.load_state_dict(grouped.merge.state_dict())
    plain.project.query.load_state_dict(grouped.project.query.state_dict())
    for name in ("key", "value"):
        narrow, wide = getattr(grouped.project, name), getattr(plain.project, name)
        for mine, theirs in ((wide.weight, narrow.weight), (wide.bias, narrow.bias)):
            mine.data = theirs.unflatten(0, (2, -1)).repeat_interleave(2, dim=0).flatten(0, 1)
    x, layout, position = torch.randn(9, 24, dtype=torch.float64), Layout([5, 4]), Absent().build(DIMS)
    torch.testing.assert_close(grouped(x, layout, position), plain(x, layout, position))


def test_grouped_heads_are_torchs() -> None:
    """Fused, and in stages, against `scaled_dot_product_attention(enable_gqa=True)`."""
    from attnlab.attention import Absent, Layout

    x, layout, position = torch.randn(9, 24, dtype=torch.float64), Layout([9]), Absent().build(DIMS)
    for kernel in ("fused", "stages"):
        layer = Attention(project=Grouped(key_value_heads=2), kernel=kernel).build(DIMS).double()
        q, k, v = (layout.pad(part).transpose(1, 2) for part in layer.project(x))
        theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        torch.testing.assert_close(layer.mix(x, layout, position, None), theirs)


def test_grouped_refuses_an_uneven_split() -> None:
    with pytest.raises(
        RequestError, match=r"4 query heads cannot share 3 key/value heads evenly \(valid: 1, 2, 4\)"
    ):
        Grouped(key_value_heads=3).build(DIMS)


def test_arms_share_the_initial_values_of_what_they_share() -> None:
    plain = dict(Decoder(layers=2).build(50, seed=3).named_parameters())
    for project in EVERY:
        arm = dict(Decoder(layers=2, mixer=Attention(project=project)).build(50, seed=3).named_parameters())
        shared = [name for name in arm if name in plain and arm[name].shape == plain[name].shape]
        assert any("project" in name for name in shared)
        assert all(torch.equal(arm[name], plain[name]) for name in shared)
    other = dict(Decoder(layers=2).build(50, seed=4).named_parameters())
    assert not torch.equal(other["head.weight"], plain["head.weight"])


@pytest.mark.parametrize("project", EVERY, ids=lambda p: p.name)
def test_every_projection_can_do_without_biases(project: Project) -> None:
    table = {**project.plain(), "bias": False}
    assert not [name for name, _ in Project.resolve(table).build(DIMS).named_parameters() if "bias" in name]
