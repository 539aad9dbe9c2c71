"""docs/performance.md holds what was measured, and nothing else; what its slopes are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from benchmarks import generation, performance, training, tuning
from benchmarks.alternating import Subject, compared
from benchmarks.growth import Shape, slope


def test_the_page_is_made_of_the_results() -> None:
    if not performance.RESULTS.exists():
        pytest.skip("`make bench` has not been run in this checkout")
    rows = json.loads(performance.RESULTS.read_text("utf-8"))
    assert performance.PAGE.read_text("utf-8") == performance.page(rows)


def test_every_row_is_on_the_page_with_its_machine() -> None:
    rows = [
        {
            "benchmark": "training",
            "name": "a / b",
            "ratio": 2.5,
            "spread": [2, 3],
            "peer": 10,
            "ours": 25,
        },
        {
            "benchmark": "new",
            "name": "c / d",
            "ratio": 1,
            "slope": 1.3,
            "peer": 1,
            "ours": 1,
            "machine": "M",
        },
    ]
    text = performance.page(rows)
    assert "| a / b | 2.5 | 2 to 3 | 10 | 25 |  |" in text
    assert "| c / d | 1 (slope 1.3) |  | 1 | 1 |  |" in text
    assert "On M." in text
    assert "On a machine not noted." in text


def test_a_ratio_is_the_median_of_rounds_beside_one_another() -> None:
    ours = Subject("ours", "", seconds=[1.0, 2.0, 1.0], units=[100, 100, 100])
    peer = Subject("peer", "", seconds=[4.0, 4.0, 10.0], units=[100, 100, 100])
    row = compared("tokens per second", ours, peer, target="at least 3")
    assert row["ratio"] == 4.0
    assert row["spread"] == [2.0, 10.0]
    assert row["name"] == "tokens per second: ours / peer"
    assert row["target"] == "at least 3"


@pytest.mark.parametrize("benchmark", [training, generation, tuning], ids=lambda module: module.__name__)
def test_every_rate_becomes_a_row_with_its_rounds(benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(subjects: Sequence[Subject], rounds: int) -> None:
        for number, subject in enumerate(subjects, 1):
            subject.seconds, subject.units, subject.peak_mb = [1.0, 2.0], [100 * number] * 2, 10.0

    monkeypatch.setattr(benchmark, "measure", measured)
    monkeypatch.setattr(benchmark, "quality", lambda *what, **how: 0.5, raising=False)
    rates = [row for row in benchmark.main() if "per second" in row["name"]]
    assert rates
    for row in rates:
        assert row["spread"] == [row["ratio"], row["ratio"]]
        assert f"| {row['ratio']} to {row['ratio']} |" in performance.page([{"benchmark": "it", **row}])


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_a_slope_is_the_power(power: float) -> None:
    sizes = [1.0, 3.0, 10.0, 40.0]
    assert slope(sizes, [7 * size**power for size in sizes]) == pytest.approx(power)


def test_the_operations_of_a_step_are_those_that_pytorch_counts() -> None:
    """Of the linear layers and the head, forward and backward; their input needs a gradient too."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    shape = Shape(tokens=40, vocabulary=300, width=24, length=1)
    layers = [torch.nn.Linear(24, 12 * 24, bias=False) for _ in range(3)]
    head = torch.nn.Linear(24, 300, bias=False)
    x = torch.randn(40, 24, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        sum(layer(x).sum() for layer in [*layers, head]).backward()
    attention = 6.0 * 40 * 3 * 24
    assert shape.operations - attention == counter.get_total_flops()
