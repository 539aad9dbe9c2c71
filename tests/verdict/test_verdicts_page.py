"""Every snippet of docs/verdicts.md prints what the page shows, and the page's figures are the code's."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from benchmarks.calibrate import ARMS, CORRELATIONS, DOCUMENT_EFFECTS, PLAN, percent

from attnlab.verdict.simulation import World, measure

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pages_snippets_print_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "verdicts.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```pycon\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) > 8
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "verdicts.md", "verdicts.md", 0)
    result = doctest.DocTestRunner().run(session)
    assert result.attempted > 30
    assert result.failed == 0, capsys.readouterr().out


def test_the_calibration_page_is_linked_and_has_no_cell_beyond_error() -> None:
    page = (DOCS / "calibration.md").read_text(encoding="utf-8")
    grid = page.split("## The grid", 1)[1].split("Of so many cells", 1)[0]
    rows = [row for row in grid.splitlines() if row.startswith("| ")][1:]
    shares = [float(cell.strip(" *")) for row in rows if "---" not in row for cell in row.split("|")[4:-1]]
    assert len(shares) == 4 * 4 * 6 * 8
    assert max(shares) < 6
    assert "**" not in grid
    assert "<svg" in (DOCS / "calibration.svg").read_text(encoding="utf-8")[:100]


@pytest.mark.parametrize(("place", "shape"), [(23, "normal"), (95, "skewed")])
def test_the_calibration_comes_out_again(place: int, shape: str) -> None:
    """The last world of a shape, from its fixed seed: every figure of its row, to the last digit shown."""
    world = World(shape=shape, correlation=CORRELATIONS[-1], document_effect=DOCUMENT_EFFECTS[-1])
    cell = measure(world, PLAN, trials=10_000, arms=ARMS, seed=place)
    page = (DOCS / "calibration.md").read_text(encoding="utf-8")
    kept = re.search(rf"^\| {shape} \| 0\.8 \| 6 \| (.+) \|$", page, flags=re.MULTILINE)
    assert kept is not None
    # Another processor may round one study of ten thousand to the other side.
    assert [float(share) for share in kept[1].split(" | ")] == pytest.approx(
        [float(percent(share)) for share in cell.shares], abs=0.1001
    )
