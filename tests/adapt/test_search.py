"""Searches: what is tried, going on after an interruption, pruning, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna", reason="optuna is not here")

from attnlab.adapt.search import Grid, Random, Range, Search, Tpe, Trial, Tried, search
from attnlab.adapt.search.evenly import evenly
from attnlab.adapt.search.trials import best_of
from attnlab.errors import DeclarationError, RequestError
from attnlab.training import Interrupted, Watched

SPACE = {"rate": Range(low=1e-4, high=1.0), "size": (8, 16), "how": ("a", {"part": "b", "n": 2})}
UP = Watched("dev_accuracy", "higher")


def good(trial: Trial) -> str:
    """The nearer to a rate of 0.03 the better; measured twice."""
    value = 1 / (1 + abs(trial.setting["rate"] / 0.03 - 1)) if "rate" in trial.setting else 0.5
    for step, share in ((100, 0.5), (200, 1.0)):
        trial.measured(step, value * share, "0101", 1.0)
        if trial.hopeless:
            return "pruned"
    return "done"


def made(wanted: Search, folder: Path, work: Any = good) -> tuple[Tried, ...]:
    return search(wanted, folder, UP, work, lambda: False)


def test_a_grid_tries_everything_once(tmp_path: Path) -> None:
    tried = made(Grid(space={"size": (8, 16), "how": SPACE["how"]}), tmp_path)
    settings = [(one.setting["size"], str(one.setting["how"])) for one in tried]
    assert len(tried) == 4 == len(set(settings))
    assert {"part": "b", "n": 2} in [one.setting["how"] for one in tried]


@pytest.mark.parametrize("wanted", [Random(space=SPACE, trials=6), Tpe(space=SPACE, trials=6, first=3)])
def test_the_same_declaration_tries_the_same(tmp_path: Path, wanted: Search) -> None:
    one, other = (made(wanted, tmp_path / name) for name in ("one", "other"))
    assert [t.setting for t in one] == [t.setting for t in other]
    assert len({t.setting["rate"] for t in one}) == 6
    assert all(1e-4 <= t.setting["rate"] <= 1.0 for t in one)
    assert isinstance(one[0].setting["size"], int)


@pytest.mark.parametrize("wanted", [Random(space=SPACE, trials=6), Tpe(space=SPACE, trials=8, first=6)])
def test_the_first_settings_are_spread_over_the_space(tmp_path: Path, wanted: Search) -> None:
    """A sixth of a range, on its log scale, for each of six trials; as many of either value of a list."""
    tried = made(wanted, tmp_path)[:6]
    parts = [int(6 * (math.log10(one.setting["rate"]) + 4) / 4) for one in tried]
    assert sorted(parts) == [0, 1, 2, 3, 4, 5]
    assert parts != sorted(parts)
    assert sorted(one.setting["size"] for one in tried) == [8, 8, 8, 16, 16, 16]
    assert wanted.spread == 6


def test_whole_numbers_are_spread_to_both_ends() -> None:
    space = {"layers": Range(low=1, high=4), "width": Range(low=8, high=512)}
    settings = [evenly(space, number, 40, seed=0) for number in range(40)]
    assert [sum(one["layers"] == n for one in settings) for n in (1, 2, 3, 4)] == [10, 10, 10, 10]
    widths = [one["width"] for one in settings]
    assert all(isinstance(width, int) and 8 <= width <= 512 for width in widths)
    assert sum(width < 64 for width in widths) == 20  # a log scale: half of them below the geometric mean


def test_a_search_goes_on_where_it_was(tmp_path: Path) -> None:
    wanted = Tpe(space=SPACE, trials=6, first=3)
    whole = made(wanted, tmp_path / "whole")
    seen: list[int] = []

    def broken_off(trial: Trial) -> str:
        seen.append(trial.number)
        if len(seen) == 4:
            trial.measured(100, 0.1, "0000", 1.0)
            raise Interrupted
        return good(trial)

    with pytest.raises(Interrupted):
        made(wanted, tmp_path / "cut", broken_off)
    again = made(wanted, tmp_path / "cut", lambda trial: (seen.append(trial.number), good(trial))[1])
    assert seen == [0, 1, 2, 3, 3, 4, 5]  # the one that was begun is begun again, nothing else is
    assert [t.setting for t in again[:4]] == [t.setting for t in whole[:4]]
    assert made(wanted, tmp_path / "cut", lambda trial: pytest.fail("nothing was missing")) == again


def test_a_hopeless_trial_is_ended(tmp_path: Path) -> None:
    def work(trial: Trial) -> str:
        for step in (1, 2, 3):
            trial.measured(step, 0.1 if trial.number == 5 else 0.9 + trial.number / 100, "01", 1.0)
            if trial.hopeless:
                return "pruned"
        return "done"

    tried = made(Random(space=SPACE, trials=6), tmp_path / "pruned", work)
    assert [one.ending for one in tried] == ["done"] * 5 + ["pruned"]
    assert (len(tried[5].values), tried[5].best) == (1, None)
    never = made(Random(space=SPACE, trials=6, prune=False), tmp_path / "never", work)
    assert [one.ending for one in never] == ["done"] * 6


def test_the_best_is_chosen_and_of_equals_the_first(tmp_path: Path) -> None:
    tried = made(Random(space=SPACE, trials=5), tmp_path)
    best = best_of(tried, UP)
    assert best is not None
    assert best.best == max(one.best for one in tried if one.best is not None)
    assert best.best == max(value for _, value in best.values)
    twins = [Tried(n, {}, "done", (), (), 0.5, 1.0) for n in (0, 1)]
    assert best_of(tuple(twins), UP) is twins[0]
    assert best_of((Tried(0, {}, "diverged", (), (), None, 1.0),), UP) is None


def test_one_that_diverged_is_kept_and_never_chosen(tmp_path: Path) -> None:
    tried = made(Random(space=SPACE, trials=3), tmp_path, lambda t: good(t) if t.number else "diverged")
    assert tried[0].ending == "diverged"
    assert best_of(tried, UP) is not tried[0]


@pytest.mark.parametrize(
    ("part", "fields", "said"),
    [
        ("random", {}, "a search needs a space"),
        ("grid", {"space": {"rate": {"low": 0.1, "high": 1.0}}}, "a grid takes lists of values"),
        ("random", {"space": {"rate": {"low": 1.0, "high": 0.1}}}, "a range goes up"),
        ("random", {"space": {"rate": {"low": 0.0, "high": 0.1, "log": True}}}, "a log scale has no 0"),
        ("tpe", {"space": {"rate": []}}, "there is nothing to try for 'rate'"),
        ("random", {"space": {"rate": [1]}, "trials": 0}, "greater than 0"),
    ],
)
def test_a_search_that_cannot_be_is_refused(part: str, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        Search.resolve({"part": part, **fields})


def test_an_unknown_search_is_told() -> None:
    with pytest.raises(RequestError, match="did you mean 'random'"):
        Search.resolve("randon")


def test_wherever_the_journal_was_cut_off_the_search_ends_the_same(tmp_path: Path) -> None:
    """As a kill leaves it: at any line, or in the midst of one; with a lock file that nobody holds."""
    for wanted in (Tpe(space=SPACE, trials=3, first=2), Grid(space={"size": (8, 16)})):
        whole = tmp_path / wanted.name
        expected = [one.plain() for one in made(wanted, whole)]
        lines = (whole / "journal.log").read_bytes().splitlines(keepends=True)
        for number in range(len(lines)):
            for part in (0, len(lines[number]) // 2):
                cut = tmp_path / f"{wanted.name}-{number}-{part}" / wanted.name  # a study goes by its folder
                cut.mkdir(parents=True)
                (cut / "journal.log").write_bytes(b"".join(lines[:number]) + lines[number][:part])
                (cut / "journal.log.lock").symlink_to("journal.log")
                assert [one.plain() for one in made(wanted, cut)] == expected, (number, part)
