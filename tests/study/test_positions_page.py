"""docs/positions.md: its declaration is one, and of the sizes that the page speaks of."""

from __future__ import annotations

import re
from pathlib import Path

from attnlab.study.declaration import load_study, plain_from_text, study_from_plain
from attnlab.study.study import Study

PAGE = (Path(__file__).parents[2] / "docs" / "positions.md").read_text(encoding="utf-8")


def _declared(folder: str) -> Study:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    plain = plain_from_text(text.replace('folder = "speeches"', f'folder = "{folder}"'))
    return study_from_plain(plain, source="docs/positions.md", base=None)


def test_the_arms_of_the_tables_are_those_declared() -> None:
    """Twice on the speeches, and twice on the embedded corpus: as they were judged, and by length."""
    slopes = {"ALiBi": "ALiBi, a slope per head", "ALiBi, one slope": "ALiBi, one slope for all"}
    embedded = load_study("positions")
    for text, study in zip(
        PAGE.split("## On the embedded corpus"), (_declared("speeches"), embedded), strict=True
    ):
        rows = [row for row in re.findall(r"^\| ([^|\n]+?) \|", text, re.MULTILINE) if row != "arm"]
        assert rows == [slopes.get(arm.name, arm.name) for arm in study.arms] * 2


def test_the_sizes_are_those_of_the_page(shared_data: Path) -> None:
    study = _declared(str(shared_data / "speeches"))
    sizes = {}
    for arm in study.arms:
        bench = study.setup_of(arm.name).prepare(None)
        sizes[arm.name] = bench.parameters()[0]
        assert f"{bench.facts()['vocabulary']['size']:,} words here" in PAGE
    assert f"there are {sizes['ALiBi']:,} parameters" in PAGE
    assert f"{sizes['learned']:,} with learned" in PAGE.replace("\n", " ")
    assert sizes["ALiBi"] == sizes["ALiBi, one slope"] == sizes["sinusoidal"]
