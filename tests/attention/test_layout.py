"""A layout puts a flat stream into rows and takes it out again, with exact gradients."""

from __future__ import annotations

import pytest
import torch

from attnlab.attention import Layout

RAGGED = [3, 1, 5, 2]


@pytest.mark.parametrize("lengths", [RAGGED, [4, 4, 4], [1], [7, 7, 6]])
def test_flattening_undoes_padding(lengths: list[int]) -> None:
    layout = Layout(lengths)
    x = torch.randn(sum(lengths), 2, 3)
    padded = layout.pad(x)
    assert padded.shape == (len(lengths), max(lengths), 2, 3)
    assert torch.equal(layout.flatten(padded), x)


def test_rows_are_the_sequences_and_the_rest_is_zero() -> None:
    layout = Layout(RAGGED)
    x = torch.randn(sum(RAGGED), 2)
    expected = torch.nn.utils.rnn.pad_sequence(list(x.split(RAGGED)), batch_first=True)
    assert torch.equal(layout.pad(x), expected)
    assert torch.equal(layout.real_BT, expected.abs().sum(-1) > 0)


def test_gradients_are_those_of_plain_indexing() -> None:
    layout = Layout(RAGGED)
    x = torch.randn(sum(RAGGED), 2, dtype=torch.float64, requires_grad=True)
    y = torch.randn(len(RAGGED), max(RAGGED), 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layout.pad, x)
    assert torch.autograd.gradcheck(layout.flatten, y)


def test_positions_and_last_tokens() -> None:
    layout = Layout(RAGGED, offset=10)
    assert layout.positions_N.tolist() == [10, 11, 12, 10, 10, 11, 12, 13, 14, 10, 11]
    assert layout.last_B.tolist() == [2, 3, 8, 10]
