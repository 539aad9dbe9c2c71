"""Length, copying and repetition of a text, on cases that can be counted by hand."""

from __future__ import annotations

import pytest

from attnlab.evaluation.summaries import ALL, Written, copied, measure, opening, repeated

pytest.importorskip("rouge_score")


def test_what_is_copied_is_counted_in_runs_of_three_words() -> None:
    source = ["tom", "asks", "ann", "about", "the", "rain"]
    assert copied(source, source) == 1.0
    assert copied(["tom", "asks", "ann", "nothing", "at", "all"], source) == 0.25  # one of four runs
    assert (
        copied(["the", "rain", "about", "ann", "asks", "tom"], source) == 0.0
    )  # the words, in no order of the source
    assert copied(["tom"], source) == 0.0


def test_what_is_repeated_is_counted_in_runs_of_three_words() -> None:
    assert repeated(["a", "b", "c", "d", "e"]) == 0.0
    assert repeated(["a", "b", "c", "a", "b", "c"]) == 0.25  # abc bca cab abc
    assert repeated(["no"] * 8) == pytest.approx(5 / 6)
    assert repeated([]) == 0.0


def test_an_opening_is_about_as_long_as_asked_for() -> None:
    source = "#Person1#: Well, hello there!\n#Person2#: Hi."
    assert opening(source, 3) == "#Person1#: Well, hello"
    assert opening(source, 0) == ""
    assert opening(source, 99) == "#Person1#: Well, hello there! #Person2#: Hi."


def test_every_text_is_measured() -> None:
    items = measure(
        [
            Written("one", "tom asks ann", "tom asks ann", ("tom asks ann",)),
            Written("two", "tom asks ann", "", ("tom asks ann",)),
        ]
    )
    assert items.names == ("one", "two")
    assert set(items.values) == set(ALL)
    assert items["rouge_lsum"] == (1.0, 0.0)
    assert items["words"] == (3.0, 0.0)
    assert items["copied"] == (1.0, 0.0)
