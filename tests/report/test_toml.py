"""The declaration on the page is the declaration."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.report.toml import as_toml, compact

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = (
    st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
TABLES = st.recursive(
    st.dictionaries(TEXT, VALUES | st.lists(VALUES, max_size=4), max_size=4),
    lambda inner: st.dictionaries(TEXT, VALUES | inner | st.lists(inner, min_size=1, max_size=3), max_size=4),
    max_leaves=12,
)


@given(TABLES)
def test_reads_back_as_it_was(plain: dict[str, Any]) -> None:
    assert tomllib.loads(as_toml(plain)) == plain


def test_none_is_left_out() -> None:
    assert tomllib.loads(as_toml({"a": None, "b": {"part": "x", "c": None}, "d": [1, None]})) == {
        "b": {"part": "x"},
        "d": [1],
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"part": "additive", "hidden": 32}, "additive (hidden 32)"),
        ({"part": "dot"}, "dot"),
        ("after", "after"),
        (None, "none"),
        (5e-4, "0.0005"),
        (True, "true"),
    ],
)
def test_a_value_on_one_line(value: Any, shown: str) -> None:
    assert compact(value) == shown
