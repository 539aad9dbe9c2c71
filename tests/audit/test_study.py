"""Checks of studies, over plain data."""

from __future__ import annotations

import math

from attnlab.audit import study as s

LONG = " ".join(f"word{i}" for i in range(20))


def test_splits_that_share_a_document_or_a_passage():
    apart = s.Splits({"train": ["a b c", "d e f"], "test": ["g h i"]})
    same = s.Splits({"train": ["a b c", "d e f"], "test": ["g h i", "A  b c"]})
    near = s.Splits({"train": [f"before {LONG} after"], "test": [f"other {LONG} words"]})
    assert s.splits_apart(apart).status == "pass"
    assert "number 1" in s.splits_apart(same).evidence
    assert "13 words in a row" in s.splits_apart(near).evidence
    assert s.splits_apart(same).status == s.splits_apart(near).status == "fail"


def test_the_test_split_is_opened_once_and_last():
    opened, selected = ("opened", "test"), ("selected", "checkpoint 3")
    assert s.test_once(s.History([("opened", "dev"), selected, opened])).status == "pass"
    assert s.test_once(s.History([opened, selected])).status == "fail"
    assert s.test_once(s.History([selected, opened, opened])).status == "fail"
    assert s.test_once(s.History([selected])).status == "skip"


def test_figures_under_the_same_conditions():
    one, two = (
        {"step": 100, "function": "nll", "vocabulary": "ab12"},
        {"step": 100, "function": "nll", "vocabulary": "ff"},
    )
    assert s.like_with_like(s.Figures({"a": one, "b": one})).status == "pass"
    seen = s.like_with_like(s.Figures({"a": one, "b": two}))
    assert (seen.status, seen.detail["condition"]) == ("fail", "vocabulary")


def test_an_accuracy_that_is_the_share_of_the_majority():
    floors = {"the majority class": 0.6217}
    accuracy = {"metric": "accuracy", "floors": floors, "lower_is_better": False}
    assert s.above_floors(s.AgainstFloors(values={"roberta": 0.6217}, **accuracy)).status == "fail"
    assert s.above_floors(s.AgainstFloors(values={"roberta": 0.71}, **accuracy)).status == "pass"


def test_a_loss_no_better_than_counting():
    assert s.above_floors(s.AgainstFloors("loss", {"a": 5.1, "b": 5.9}, {"unigram": 5.8})).status == "fail"
    assert s.above_floors(s.AgainstFloors("loss", {"a": 5.1}, {"unigram": 5.8})).status == "pass"
    assert s.above_floors(s.AgainstFloors("loss", {"a": math.nan}, {"unigram": 5.8})).status == "fail"


def test_budgets_side_by_side():
    fair = {"parameters": 100.0, "tuning": 4}
    assert s.budgets(s.Budgets({"a": fair, "b": fair})).status == "pass"
    assert s.budgets(s.Budgets({"a": fair, "b": {**fair, "tuning": 1}})).status == "fail"
    larger = s.budgets(s.Budgets({"a": fair, "b": {**fair, "parameters": 150}}))
    assert larger.status == "skip"
    assert "a 100, b 150" in larger.evidence


def test_a_run_repeated():
    assert s.repeatable(s.Repeat({"loss": 1.5, "x": math.nan}, {"loss": 1.5, "x": math.nan})).status == "pass"
    assert s.repeatable(s.Repeat({"loss": 1.5}, {"loss": 1.5000000000000002})).status == "fail"
    assert s.repeatable(s.Repeat({"loss": 1.5}, {"loss": 1.5, "more": 1})).status == "fail"


def test_the_perplexity_with_the_future_absent():
    assert s.prefix_only(s.PrefixOnly([1.0, 2.0], [1.0, 2.00001])).status == "pass"
    seen = s.prefix_only(s.PrefixOnly([1.0, 2.0, 3.0], [1.0, 2.5, 4.0]))
    assert seen.status == "fail"
    assert "position 1" in seen.evidence
    assert math.isclose(math.exp(seen.detail["loss_prefix_only"]), math.exp(2.5))
    assert s.prefix_only(s.PrefixOnly([1.0], [math.nan])).status == "fail"
    assert s.prefix_only(s.PrefixOnly([1.0], [1.0, 2.0])).status == "fail"
