"""The pictures show the runs' numbers, each where it belongs, and nothing else."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import statistics
from pathlib import Path

import pytest

from attnlab.report.logs import read_log, series, thinned
from attnlab.report.pictures import curves, palette
from attnlab.report.pictures.cost import cost_picture
from attnlab.report.pictures.curves import curve_pictures
from attnlab.report.pictures.effects import effects_picture
from attnlab.report.pictures.floors import floors_picture
from attnlab.report.pictures.lengths import lengths_picture
from attnlab.report.pictures.picture import Picture
from attnlab.report.reading import read

from .synthetic_study import BARE, DIVERGED, HUGE, INVALID, LENGTHS, NORMAL, NOT_BEGUN, ONE_SEED


def rows(picture: Picture) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(picture.csv)))


def told(svg: str, start: str) -> list[str]:
    return [label for label in re.findall(r'aria-label="([^"]*)"', svg) if label.startswith(start)]


def test_effects_are_the_verdicts_and_the_paired_differences(tmp_path: Path) -> None:
    directory = NORMAL.write(tmp_path / "study")
    results = json.loads((directory / "results.json").read_text())
    picture = effects_picture(read(directory))
    assert picture is not None
    shown = rows(picture)
    for verdict in results["verdicts"]:
        row = next(r for r in shown if r["arm"] == verdict["arm"] and not r["seed"])
        assert [float(row[k]) for k in ("difference", "low", "high")] == [verdict["effect"], *verdict["ci"]]
    base, additive = ({r["seed"]: r["metrics"]["test_loss"] for r in a["runs"]} for a in results["arms"][:2])
    seeds = {int(r["seed"]): float(r["difference"]) for r in shown if r["arm"] == "additive" and r["seed"]}
    assert seeds == pytest.approx({seed: additive[seed] - base[seed] for seed in base})


def test_an_invalid_arm_is_hatched_and_has_no_place_on_the_scale(tmp_path: Path) -> None:
    picture = effects_picture(read(INVALID.write(tmp_path / "study")))
    assert picture is not None
    assert picture.wide.count('fill="url(#hatch-') == 1
    assert told(picture.wide, "after, naive") == ["after, naive: invalid"]
    assert [r["difference"] for r in rows(picture) if r["arm"] == "after, naive"] == [""]


def test_an_interval_without_ends_goes_to_the_edges(tmp_path: Path) -> None:
    picture = effects_picture(read(ONE_SEED.write(tmp_path / "study")))
    assert picture is not None
    assert "goes on" in picture.caption
    assert all("not bounded" in label for label in told(picture.wide, "additive: undecided"))


def test_many_arms_have_a_panel_each_with_only_their_own_seeds(tmp_path: Path) -> None:
    picture = curve_pictures(read(HUGE.write(tmp_path / "study")))[0]
    for arm in HUGE.arms:
        assert len(told(picture.wide, f"{arm.name}, seed")) == HUGE.seeds
    behind = len(HUGE.arms) * HUGE.seeds  # the baseline's seeds, grey, in every panel
    assert len(re.findall(rf'<path[^>]*stroke="{palette.NOISE}"', picture.wide)) == behind
    assert picture.wide.count('stroke="#0072b2"') == behind


def test_an_invalid_arm_is_called_so_among_the_curves(tmp_path: Path) -> None:
    for picture in curve_pictures(read(INVALID.write(tmp_path / "study"))):
        for drawn in (picture.wide, picture.narrow):
            assert drawn.count(">after, naive (invalid)<") == 1
            assert drawn.count(">after, renormalised<") == 1


def test_a_curve_ends_where_its_run_did_and_says_so(tmp_path: Path) -> None:
    directory = DIVERGED.write(tmp_path / "study")
    pictures = {picture.key: picture for picture in curve_pictures(read(directory))}
    assert "A cross marks where a run diverged." in pictures["curve-loss"].caption
    assert told(pictures["curve-loss"].wide, "additive, seed 1, diverged after step 130")


def test_a_curve_that_never_moves_can_be_read_off_its_axis(tmp_path: Path) -> None:
    """As the accuracy of a model that gives one answer for all."""
    directory = NORMAL.write(tmp_path / "study")
    for log in directory.glob("runs/*/*/metrics.jsonl"):
        changed = [{**row, "dev_accuracy": 0.45} for row in read_log(log)]
        log.write_text("".join(json.dumps(row) + "\n" for row in changed))
    (drawn,) = [made for made in curve_pictures(read(directory)) if made.key == "curve-dev-accuracy"]
    ticks = [float(tick) for tick in re.findall(r">(0\.\d+)</text>", drawn.wide)]
    assert min(ticks) < 0.45 < max(ticks)
    assert min(abs(tick - 0.45) for tick in ticks) < 0.011


def test_arms_of_unlike_numbers_of_steps_are_drawn_over_their_own_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a short arm is a stroke at the left; and an end is enlarged only where every arm has a line."""
    directory = NORMAL.write(tmp_path / "study")
    assert "share" not in rows(curve_pictures(read(directory))[0])[0]
    monkeypatch.setattr(curves, "STROKE", 0.3)
    for log in directory.glob("runs/additive/*/metrics.jsonl"):
        lines = read_log(log)
        kept = [line for line in lines if line["step"] <= lines[-1]["step"] // 4]
        log.write_text("".join(json.dumps(line) + "\n" for line in kept))
    for picture in curve_pictures(read(directory)):
        for arm in ("additive", "dot"):
            shares = [float(row["share"]) for row in rows(picture) if row["arm"] == arm]
            assert 0.95 < max(shares) <= 1, arm  # a mean of neighbouring steps ends before the last one
        assert "share of an arm's own steps" in picture.caption
        assert ("enlarged" in picture.wide) == (picture.key == "curve-loss")
        assert "share of the arm's own steps" in picture.wide


def test_loss_against_length_has_every_seed_and_the_means_of_the_arms(tmp_path: Path) -> None:
    directory = LENGTHS.write(tmp_path / "study")
    picture = lengths_picture(read(directory))
    assert picture is not None
    shown = {(r["arm"], int(r["seed"]), int(r["length"])): float(r["loss"]) for r in rows(picture)}
    measured: dict[tuple[str, int, int], float] = {}
    for arm in json.loads((directory / "results.json").read_text())["arms"]:
        for run in arm["runs"]:
            for length in LENGTHS.lengths:
                if (key := f"test_loss_at_{length}") in run["metrics"]:
                    measured[arm["name"], run["seed"], length] = run["metrics"][key]
    assert shown == measured
    for arm in LENGTHS.arms[:4]:
        for said in told(picture.wide, f"{arm.name}, mean"):
            mean, length = re.fullmatch(r".* mean: (\S+) ± \S+ in blocks of (\d+)", said).groups()
            seeds = [measured[arm.name, seed, int(length)] for seed in range(LENGTHS.seeds)]
            assert float(mean) == pytest.approx(statistics.fmean(seeds), abs=1e-3)
    for drawn in (picture.wide, picture.narrow):
        assert drawn.count(">trained on 32<") == 1
        assert drawn.count(">naive (invalid)<") == 1
        assert [int(n) for n in re.findall(r">(\d+)</text>", drawn)[:4]] == sorted(LENGTHS.lengths)


def test_a_line_that_ends_says_why(tmp_path: Path) -> None:
    directory = LENGTHS.write(tmp_path / "study")
    picture = lengths_picture(read(directory))
    assert picture is not None
    for drawn in (picture.wide, picture.narrow):
        assert told(drawn, "learned ends") == ["learned ends at 32: knows no further position"]
        assert told(drawn, "twice as many ends") == ["twice as many ends at 64: knows no further position"]
        assert told(drawn, "rotary ends") == told(drawn, "naive ends") == []
        assert drawn.count(">“twice as many”: knows no further position<") == 1
    assert "Without a figure at any of these lengths: short." in picture.caption
    for seed in (0, 1):
        path = directory / "runs" / "rotary" / str(seed) / "result.json"
        result = json.loads(path.read_text())
        result["metrics"]["test_loss_at_256"] = math.nan
        path.write_text(json.dumps(result))
    burst = lengths_picture(read(directory))
    assert burst is not None
    assert told(burst.wide, "rotary ends") == ["rotary ends at 128: no finite loss in every seed beyond"]
    assert len([r for r in rows(burst) if (r["arm"], r["length"]) == ("rotary", "256")]) == 1
    assert len(told(burst.wide, "rotary, mean")) < len(told(picture.wide, "rotary, mean"))


def test_thinning_keeps_means_and_says_how_many() -> None:
    points = [(float(i), float(i * i)) for i in range(10)]
    assert thinned(points, 10) == (points, 1)
    kept, each = thinned(points, 4)
    assert each == 3
    assert kept[0] == (1.0, (0 + 1 + 4) / 3)
    assert kept[-1] == (9.0, 81.0)
    assert thinned([], 4) == ([], 1)


def test_a_log_cut_off_by_a_kill_is_read_to_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "loss": 3.0}\n{"step": 2, "loss": NaN}\n{"step": 1, "loss": 2.5}\n{"st')
    assert series(read_log(path), "loss") == [(1.0, 2.5)]


def test_small_figures_in_words_keep_their_digits(tmp_path: Path) -> None:
    """Geometry is rounded to a hundredth of a pixel; what is said must not be."""
    picture = effects_picture(read(INVALID.write(tmp_path / "study")))
    assert picture is not None
    noise = next(float(row["noise"]) for row in rows(picture))
    assert f"±{noise:.2g}" in picture.wide


def test_pictures_without_their_numbers_are_not_made(tmp_path: Path) -> None:
    bare = read(BARE.write(tmp_path / "bare"))
    assert floors_picture(bare) is lengths_picture(bare) is None
    empty = read(NOT_BEGUN.write(tmp_path / "empty"))
    assert effects_picture(empty) is cost_picture(empty) is lengths_picture(empty) is None
    assert curve_pictures(empty) == []


def test_every_colour_has_a_counterpart_for_the_dark(tmp_path: Path) -> None:
    study = read(NORMAL.write(tmp_path / "study"))
    for picture in (
        effects_picture(study),
        cost_picture(study),
        floors_picture(study),
        *curve_pictures(study),
        lengths_picture(read(LENGTHS.write(tmp_path / "lengths"))),
    ):
        assert picture is not None
        used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-fA-F]+)"', picture.wide + picture.narrow))
        assert used <= set(palette.DARK)


def test_no_two_arms_look_alike() -> None:
    looks = [palette.look(place) for place in range(36)]
    assert len({(look.colour, look.dash) for look in looks}) == 36
