"""Which probes are run: everything at one length, then other sizes, beaten masks, lengths, precisions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import torch

from attnlab.audit.operators import change
from attnlab.audit.operators.probe import Probe
from attnlab.audit.operators.subject import Operator, Sizes

EVERY_LENGTH_TO = 72
# A scaled dot product gets there between vectors 33 times the usual size, at width 128.
BEATING_SCORE = 12_000.0


def everything(operator: Operator) -> Iterator[Iterator[Probe]]:
    """The whole plan in its own precision, what is cheap and telling first."""
    yield exhaustive(operator)
    yield other_sizes(operator)
    yield beaten_masks(operator)
    yield lengths(operator)


def exhaustive(operator: Operator) -> Iterator[Probe]:
    """At one short length: every cut, every input alone and together, every way of replacing."""
    sizes = operator.home
    cuts = _some_cuts(sizes.T) if sizes.T > 24 else tuple(range(sizes.T - 1))
    for training in operator.modes:
        for alteration in (change.FRESH, change.LARGER, change.ZEROS, change.COPIES):
            for names in _choices(operator):
                yield Probe(sizes, cuts, names, alteration, training)


def _choices(operator: Operator) -> list[tuple[str, ...]]:
    alone: list[tuple[str, ...]] = [(name,) for name in operator.inputs]
    return [operator.inputs, *alone] if len(alone) > 1 else alone


def other_sizes(operator: Operator) -> Iterator[Probe]:
    """Other numbers of batch rows, heads and widths: a leak can live in the ninth head."""
    home = operator.home
    others = [replace(home, B=1), replace(home, B=7)]
    if operator.inputs != ("x",):
        others += [replace(home, H=1), replace(home, H=17), replace(home, d=64), replace(home, B=1, H=1, d=8)]
    for sizes in others:
        for training in operator.modes:
            yield Probe(sizes, _some_cuts(sizes.T), operator.inputs, change.FRESH, training, seed=5)


def beaten_masks(operator: Operator) -> Iterator[Probe]:
    """Keys that all oppose the queries, at some thirty times the usual size; after the cut they turn round.

    Then every visible score is far below -10,000, and to be masked with -10,000 is to be chosen.
    """
    for training in operator.modes:
        if operator.inputs == ("x",):
            cuts = _some_cuts(operator.home.T)
            for alteration in (change.FLIPPED, change.FRESH):
                yield Probe(operator.home, cuts, ("x",), alteration, training, seed=3, scale=change.HUGE)
            continue
        for d, names in product(dict.fromkeys((128, operator.home.d)), (("k",), ("v",), ("k", "v"))):
            sizes = replace(operator.home, d=d)
            scale = math.sqrt(BEATING_SCORE / math.sqrt(d))
            cuts = _some_cuts(sizes.T)
            yield Probe(sizes, cuts, names, change.FLIPPED, training, False, 3, scale, opposed=True)


def lengths(operator: Operator) -> Iterator[Probe]:
    """Every short length, then at and beyond block sizes and every number that the target itself mentions.

    Two beyond, not one: a block of a single position has no future of its own.
    """
    mentioned = [n + step for n in operator.mentioned for step in (-1, 0, 1, 2)]
    declared = [n for n in mentioned if n > EVERY_LENGTH_TO][:48]
    usual = [100, 128, 130, 200, 256, 258, 384, 514, 1026, 2050]
    for T in dict.fromkeys([*range(2, EVERY_LENGTH_TO + 1), *declared, *usual]):
        for training in operator.modes:
            yield from _at_length(operator, T, training)


def _at_length(operator: Operator, T: int, training: bool) -> Iterator[Probe]:
    home = replace(operator.home, T=T)
    if T <= EVERY_LENGTH_TO:
        ends = tuple(sorted({0, T // 2, T - 2}))
        yield Probe(home, _some_cuts(T), operator.inputs, change.FRESH, training, grouped=True, seed=T)
        yield Probe(home, ends, operator.inputs, change.LARGER, training, grouped=True, seed=T)
        return
    # Long sequences are run narrow, where the operator allows it, and not many at a time.
    narrow = _fitting(operator, replace(home, H=1, d=8))
    cuts = _long_cuts(T)
    per_call = max(1, 32 * 130**2 // T**2)
    for start in range(0, len(cuts), per_call):
        some = cuts[start : start + per_call]
        yield Probe(narrow, some, operator.inputs, change.FRESH, training, grouped=len(some) > 1, seed=T)


def _fitting(operator: Operator, sizes: Sizes) -> Sizes:
    """`sizes`, if the operator takes their heads and width; its own otherwise."""
    short = replace(sizes, T=operator.home.T)
    try:
        with torch.no_grad():
            operator(operator.make(short, seed=0))
    except Exception:  # it has its own number of heads or width, which is no fault
        return replace(operator.home, T=sizes.T)
    return sizes


def _long_cuts(T: int) -> tuple[int, ...]:
    """Every cut at 130; elsewhere both ends and both sides of the borders of blocks."""
    if T == 130:
        return tuple(range(T - 1))
    if T <= 300:
        borders = {b + step for b in (32, 64, 128, 192, 256) for step in (-1, 0) if b + step < T - 2}
        return tuple(sorted({0, T // 2, T - 3, T - 2, *borders}))
    return tuple(sorted({T // 2 - 1, T - 2}))


def _some_cuts(T: int) -> tuple[int, ...]:
    return tuple(sorted({0, min(1, T - 2), T // 3, T // 2, max(T - 3, 0), T - 2}))


def coarse(operator: Operator) -> Iterator[Probe]:
    sizes = operator.home
    for T in dict.fromkeys((sizes.T, 65)):
        for names in _choices(operator):
            here = replace(sizes, T=T)
            yield Probe(here, _some_cuts(T), names, change.FRESH, grouped=T > 24, seed=7)
