"""The sizes said to decide do decide: studies of that size, made and judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attnlab.verdict import Plan, judge, noise_floor
from attnlab.verdict.needed import Needed, Noise, Question
from attnlab.verdict.simulation import Studies, World

TRIALS = 1500
PLAN = Plan()


def noise_of(world: World, effect: float) -> Noise:
    return Noise(effect, 2 * (1 - world.correlation), world.document_effect**2, 2 * world.rest**2)


def share_decided(world: World, effect: float, margin: float, seeds: int) -> float:
    rng = np.random.default_rng(0)
    studies = Studies.read(world.differences(rng, TRIALS, 1, seeds), [seeds])
    judged = studies.judged(PLAN, margin=margin, effect=effect)
    return judged.share(judged.codes != 0)


@pytest.mark.parametrize(
    ("world", "effect", "margin"),
    [
        (World(correlation=0.5, documents=50), 0.6, 0.01),
        (World(correlation=0.8, documents=200), 0.0, 0.5),
        (World(correlation=0.8, document_effect=2, documents=200), 0.6, 0.01),
        (World(correlation=0.5, documents=50), 0.3, 0.9),
    ],
)
def test_seeds_needed_decide_four_times_in_five(world: World, effect: float, margin: float) -> None:
    question = Question(noise_of(world, effect), margin, PLAN, 0.05)
    needed = question.needed(5, world.documents)
    seeds = needed.seeds
    assert seeds is not None
    assert not needed.together
    assert seeds > 5
    assert share_decided(world, effect, margin, seeds) == pytest.approx(
        question.chance(seeds, world.documents), abs=0.05
    )
    fewer = seeds - 1 if seeds - 1 > PLAN.looks[-1] else None
    if fewer is not None:
        assert question.chance(fewer, world.documents) < 0.8 <= question.chance(seeds, world.documents)


@pytest.mark.parametrize(("effect", "margin"), [(1.0, 0.01), (0.0, 1.5)])
def test_documents_needed_decide_four_times_in_five(effect: float, margin: float) -> None:
    world = World(correlation=0.9, document_effect=6, documents=20)
    needed = Question(noise_of(world, effect), margin, PLAN, 0.05).needed(12, world.documents)
    assert needed.seeds is None
    assert needed.documents is not None
    larger = replace(world, documents=needed.documents)
    assert share_decided(larger, effect, margin, 12) == pytest.approx(0.8, abs=0.05)


def test_where_neither_alone_is_enough_both_are_named() -> None:
    noise = Noise(effect=0.7, seed=2.0, document=16.0, rest=0.0)
    needed = Question(noise, 0.01, PLAN, 0.05).needed(5, 50)
    assert needed.together
    assert needed.seeds is not None
    assert needed.documents is not None


def test_nothing_decides_between_no_difference_and_no_margin() -> None:
    assert Question(Noise(0.0, 1.0, 1.0, 1.0), 0.0, PLAN, 0.05).needed(5, 50) == Needed(None, None)


def test_an_undecided_verdict_names_what_would_decide_it() -> None:
    rng = np.random.default_rng(3)
    baseline = rng.normal(5, 1, size=(5, 100))
    moved = baseline + rng.normal(0.015, 0.04, size=(5, 1))
    by_seeds = judge(baseline, moved, margin=0.001)
    assert by_seeds.verdict == "undecided"
    assert by_seeds.seeds_needed is not None
    assert f"{by_seeds.seeds_needed} seeds" in str(by_seeds)
    uneven = baseline + rng.normal(0.02, 0.3, size=(1, 100)) + rng.normal(0, 0.001, size=(5, 1))
    by_documents = judge(baseline, uneven, margin=0.001)
    assert by_documents.verdict == "undecided"
    assert by_documents.seeds_needed is None
    assert by_documents.documents_needed is not None
    assert by_documents.documents_needed > 100
    assert "the documents disagree" in str(by_documents)


def test_the_noise_floor_finds_what_it_says_it_finds() -> None:
    world = World(correlation=0.0, documents=50)
    rng = np.random.default_rng(4)
    runs = rng.normal(size=(300, 1)) + rng.normal(size=(300, 50)) + rng.normal(0, 5, size=(1, 50))
    floor = noise_floor(runs, margin=0.01)
    assert floor.seed_deviation == pytest.approx(np.sqrt(1 + 1 / 50), rel=0.1)
    for look in (5, 12):
        assert share_decided(world, floor.detectable[look], 0.0, look) == pytest.approx(0.8, abs=0.07)
