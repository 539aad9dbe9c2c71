"""The figures of a head: against definitions written out query by query, scipy, and heads whose figures are
known beforehand.

Shapes: H heads, T tokens.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from attnlab.evaluation.maps.heads import MEASURES, induction, measured, per_query, shares_of

T, PASSAGE = 9, 4


def softmaxes(seed: int = 0, heads: int = 3) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(heads, T, T)) * 2
    scores[:, np.triu_indices(T, 1)[0], np.triu_indices(T, 1)[1]] = -np.inf
    e = np.exp(scores)
    return e / e.sum(-1, keepdims=True)


def looking(back: int) -> np.ndarray:
    """A head that puts everything on the token so many places back, or on the first."""
    weights = np.zeros((1, T, T))
    for query in range(T):
        weights[0, query, max(0, query - back)] = 1.0
    return weights


def test_every_measure_against_its_definition() -> None:
    weights = softmaxes()
    found = per_query(weights)
    for head in range(3):
        for query in range(1, T):
            row = weights[head, query]
            at = (head, query - 1)
            assert found["entropy"][at] == pytest.approx(scipy.stats.entropy(row))
            assert found["distance"][at] == pytest.approx(sum(row[s] * (query - s) for s in range(T)))
            assert found["first"][at] == pytest.approx(row[0])
            assert found["diagonal"][at] == pytest.approx(row[query])
            assert found["previous"][at] == pytest.approx(row[query - 1])
    tokens = ["start", *"abcd", *"abcd"]
    for head in range(3):
        for place, query in enumerate(range(PASSAGE + 1, T)):
            earlier = tokens.index(tokens[query])
            assert induction(weights, PASSAGE)[head, place] == pytest.approx(
                weights[head, query, earlier + 1]
            )


@pytest.mark.parametrize(
    ("back", "wanted"),
    [
        (0, {"diagonal": 1, "previous": 0, "first": 0, "entropy": 0, "distance": 0, "induction": 0}),
        (1, {"diagonal": 0, "previous": 1, "first": 1 / 8, "entropy": 0, "distance": 1, "induction": 0}),
        (T, {"diagonal": 0, "previous": 1 / 8, "first": 1, "entropy": 0, "distance": 4.5, "induction": 0}),
        (PASSAGE - 1, {"induction": 1, "entropy": 0, "diagonal": 0}),
    ],
    ids=["itself", "previous", "first", "induction"],
)
def test_heads_whose_figures_are_known(back: int, wanted: dict[str, float]) -> None:
    found = measured([looking(back)], [PASSAGE])
    assert set(found) == set(MEASURES)
    assert {name: found[name][0] for name in wanted} == pytest.approx(wanted)


def test_every_sequence_counts_by_its_queries() -> None:
    whole, short = softmaxes(1), softmaxes(2)[:, :3, :3]
    found = measured([whole, short], [0, 0])
    each = np.concatenate([per_query(whole)["entropy"], per_query(short)["entropy"]], axis=1)
    assert found["entropy"] == pytest.approx(each.mean(1).tolist(), abs=1e-5)
    assert "induction" not in found  # nothing was said twice


def test_a_single_token_has_no_figures_and_a_row_of_zeros_no_shares() -> None:
    assert measured([np.ones((2, 1, 1))], [0]) == {}
    assert not shares_of(np.zeros((1, 2, 2))).any()
    signed = np.array([[[1.0, 0.0], [-1.0, 3.0]]])
    assert shares_of(signed)[0, 1].tolist() == [0.25, 0.75]
