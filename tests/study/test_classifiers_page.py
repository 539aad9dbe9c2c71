"""docs/classifiers.md: its sections and fields are the kind's, its examples hold, its sums are right."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from attnlab.model import ClassifierModel, Encoder, Head
from attnlab.model.count import count_parameters
from attnlab.study import KINDS
from attnlab.study.declaration import study_from_plain
from attnlab.study.starts import Start
from attnlab.tokens import Masking, Reading
from attnlab.training.saved_encoder import FACTS, TOKENIZER, WEIGHTS

PAGE = (Path(__file__).parents[2] / "docs" / "classifiers.md").read_text("utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
KIND = KINDS["classifier"]


def mentioned(text: str) -> set[str]:
    return {name for span in re.findall(r"`([^`\n]+)`", text) for name in re.findall(r"[\w-]+", span)}


def test_every_section_and_what_belongs_to_it_is_told() -> None:
    rows = {row.split("|")[1]: row for row in PAGE.splitlines() if row.startswith("| `")}
    assert mentioned(" ".join(rows)) == set(KIND.model_fields)
    told = mentioned(" ".join(rows.values()))
    for section in (Reading, Head, KIND.model_fields["measure"].annotation):
        assert set(section.model_fields) - {"start"} <= told | {"stop"}  # type: ignore[union-attr]
    assert set(Start.members) <= told
    assert set(Masking.model_fields) <= mentioned(PAGE)
    assert {WEIGHTS, TOKENIZER, FACTS} <= set(re.findall(r"`([\w.]+)`", PAGE))


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_declaration(example: str, tmp_path: Path) -> None:
    head = {"name": "x", "question": "Is it?", "kind": "classifier"}
    plain = {**head, "arms": [{"name": "one"}], **tomllib.loads(example)}
    study_from_plain(plain, source="the page", base=tmp_path)


def test_the_sums_are_those_that_were_reported() -> None:
    sums = re.findall(r"^    (?:encoder|classifier) +(.+) = ([\d,]+)$", PAGE, re.MULTILINE)
    assert [total for _, total in sums] == ["427,600", "434,403"]
    for formula, total in sums:
        terms = formula.replace("5,755", "5755").replace("427,600", "427600").replace("·", "*")
        assert re.fullmatch(r"[\d+*() ]+", terms)
        assert eval(terms) == int(total.replace(",", ""))


def test_what_differs_from_them_is_what_the_page_says() -> None:
    ours = count_parameters(ClassifierModel(Encoder(), Head(), 5755, 3))
    theirs = 434_403
    for figure in ("16,640", "1,088", "33,088", "12,964"):
        assert figure in PAGE
    assert ours - theirs == 4 * (16_640 - 1_088 + 33_088 - 12_964) + 128
