"""The page about decoding says what the code says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from attnlab.decoding import Filter, Recipe
from attnlab.decoding.strategy import Strategy
from attnlab.study import built_in_studies, load_study
from attnlab.study.declaration import study_from_plain
from attnlab.study.kinds.decoding import MEASURES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "decoding.md"
_INSIDE = re.compile(r"(<!-- strategies -->\n)(.*?)(<!-- /strategies -->)", re.DOTALL)


def rows() -> str:
    """The table of strategies, from the strategies themselves."""
    made = ["| strategy | what it does with its defaults | kind |\n|---|---|---|\n"]
    for name, kind in sorted(Strategy.members.items()):
        what = "filter" if issubclass(kind, Filter) else "search"
        made.append(f"| `{name}` | {Strategy.resolve(name)} | {what} |\n")
    return "".join(made)


def test_the_strategies_are_those_of_the_code() -> None:
    found = _INSIDE.search(PAGE.read_text("utf-8"))
    assert found is not None
    assert found[2] == rows(), "write docs/decoding.md anew: python -m tests.decoding.test_documented"


def test_every_measure_is_explained() -> None:
    table = PAGE.read_text("utf-8").split("| measure |")[1].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`(?=[,` \w]*\|)", table)) >= set(MEASURES)


def test_what_is_written_in_the_notation_can_be_read() -> None:
    text = PAGE.read_text("utf-8").split("## SmolLM2-135M")[1]
    notations = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    assert len(notations) == 11
    for notation in notations:
        assert Recipe.read(notation).notation.startswith(notation.split(",")[0].split("=")[0])


def test_the_declaration_on_the_page_is_one() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    study = study_from_plain(tomllib.loads(block), source="the page", base=None)
    assert [arm.name for arm in study.arms] == ["plain", "penalty"]


def test_the_built_in_study_holds_every_strategy() -> None:
    assert "decoding" in built_in_studies()
    study = load_study("decoding")
    used = {step.name for arm in study.arms for step in study.setup_of(arm.name).strategy.steps}  # type: ignore[attr-defined]
    assert used == set(Strategy.members)


if __name__ == "__main__":
    PAGE.write_text(_INSIDE.sub(lambda found: found[1] + rows() + found[3], PAGE.read_text("utf-8")), "utf-8")
