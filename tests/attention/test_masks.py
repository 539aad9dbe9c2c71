"""What the masks show."""

from __future__ import annotations

import torch

from attnlab.attention import Attention, Dims, Layout, Nearby, Position, Window

PLACES = torch.arange(9)


def test_window_sees_itself_and_the_few_before() -> None:
    seen = Window(size=3).visible(PLACES, PLACES)
    assert torch.equal(seen, torch.ones(9, 9).tril().triu(-2).bool())
    assert Window().hides_future


def test_nearby_sees_both_sides() -> None:
    seen = Nearby(reach=2).visible(PLACES, PLACES)
    assert torch.equal(seen, torch.ones(9, 9).tril(2).triu(-2).bool())
    assert not Nearby().hides_future


def test_masking_after_the_softmax_lets_the_future_through_and_renormalising_does_not() -> None:
    torch.manual_seed(0)
    dims = Dims(width=8, heads=2, context=9)
    position = Position().build(dims)
    x = torch.randn(9, 8, dtype=torch.float64)
    changed = torch.cat([x[:-1], torch.randn(1, 8, dtype=torch.float64)])
    for where, leaks in (("before", False), ("after", True), ("renormalised", False)):
        layer = (
            Attention.resolve({"part": "attention", "mask": {"part": "causal", "where": where}})
            .build(dims)
            .double()
        )
        before, after = (layer(y, Layout([9]), position)[:-1] for y in (x, changed))
        assert bool((before - after).abs().max() > 1e-6) == leaks
