"""docs/parts.md names every part with its fields and paper; docs/own-attention.md runs as it stands."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

from attnlab.attention import Mask, Mixer, Position, Project, Score, Weigh
from attnlab.model import Decoder
from attnlab.spec import Part

DOCS = Path(__file__).parents[2] / "docs"
PARTS = (DOCS / "parts.md").read_text(encoding="utf-8")
OWN = (DOCS / "own-attention.md").read_text(encoding="utf-8")
# Fields said once for the whole family, below its table.
SHARED = {"Mask": {"where"}, "Project": {"bias"}}
AS_ATTENTION = {"score", "mask", "weigh", "project", "kernel"}
MEMBERS = [
    (family, name)
    for family in (Score, Mask, Weigh, Position, Project, Mixer)
    for name in sorted(family.members)
]


def row_of(name: str) -> str:
    rows = [line for line in PARTS.splitlines() if line.startswith(f"| `{name}` |")]
    assert len(rows) == 1, f"{name} has {len(rows)} rows"
    return rows[0]


@pytest.mark.parametrize(
    ("family", "name"), MEMBERS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_part_has_a_row_with_its_fields_and_paper(family: type[Part], name: str) -> None:
    part, row = family.members[name], row_of(name)
    fields = {field.name for field in dataclasses.fields(part)} - SHARED.get(family.__name__, set())
    if "fields as `attention`" in row:
        fields -= AS_ATTENTION
    missing = {field for field in fields if f"`{field}`" not in row}
    assert not missing, f"{name}: {missing}"
    module = sys.modules[part.__module__].__doc__ or ""
    if family is not Project:  # one file holds three tied projections, and one paper is about one of them
        assert set(re.findall(r"https://[^\s,;)]+\w", module)) <= set(re.findall(r"https://[^\s)]+\w", row))


def test_no_row_is_about_a_part_that_is_not_there() -> None:
    named = set(re.findall(r"^\| `([\w-]+)` \|", PARTS, re.MULTILINE))
    assert named == {name for _, name in MEMBERS}


@pytest.mark.parametrize("name", sorted(Score.members))
def test_the_table_says_which_scores_are_fused(name: str) -> None:
    from attnlab.attention import Attention

    fused = Attention(score=Score.resolve(name)).not_fusable_because() is None
    assert row_of(name).split("|")[3].strip() == ("yes" if fused else "no")


@pytest.mark.parametrize("name", sorted(Weigh.members))
def test_the_table_says_which_weighings_are_fused(name: str) -> None:
    from attnlab.attention import Attention

    fused = Attention(weigh=Weigh.resolve(name)).not_fusable_because() is None
    assert row_of(name).split("|")[3].strip() == ("yes" if fused else "no")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_example_of_a_declaration_holds() -> None:
    (table,) = blocks(PARTS, "toml")
    model = Decoder.model_validate({"width": 48, **tomllib.loads(table)["model"]})
    assert model.build(20)(torch.zeros(1, 5, dtype=torch.long)).shape == (1, 5, 20)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    for block in blocks(OWN, "python"):
        name = re.match(r"# (\w+\.py)\n", block)
        assert name
        (tmp_path / name[1]).write_text(block, encoding="utf-8")
    return tmp_path


def test_your_own_part_trains_in_a_model(own: Path) -> None:
    (table,) = blocks(OWN, "toml")
    plain = tomllib.loads(table)["model"]
    spec = Decoder.model_validate(plain, context={"base": own})
    assert spec.mixer.score.start == 0.5
    model = spec.build(20)
    model(torch.zeros(1, 5, dtype=torch.long)).square().mean().backward()
    weight = model.blocks[0].mixer.core.score.weight
    assert torch.equal(weight, torch.full_like(weight, 0.5))
    assert weight.grad is not None
    spec = Decoder.model_validate({"mixer": {"part": "attention", "score": f"{own}/my_scores.py:manhattan"}})
    assert spec.build(20)(torch.zeros(1, 5, dtype=torch.long)).isfinite().all()


def test_the_page_is_about_twenty_lines() -> None:
    code = [line for line in blocks(OWN, "python")[0].splitlines() if line.strip() and "import" not in line]
    assert len(code) <= 20


def test_your_own_tests_pass(own: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_attention.py"],
        cwd=own,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE)
