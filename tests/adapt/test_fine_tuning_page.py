"""docs/fine-tuning.md says what is there: declarations that hold, amounts, figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attnlab.adapt.amounts import Amount, Lora, Prefix, Prompt, Sizes
from attnlab.adapt.search import Search
from attnlab.study import load_study

PAGE = (Path(__file__).parents[2] / "docs" / "fine-tuning.md").read_text("utf-8")
MINILM = Sizes(d=384, L=6, f=1536, C=2, body=22_713_216, head=770)
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_declarations_hold(tmp_path: Path) -> None:
    whole, search = BLOCKS
    (tmp_path / "one.toml").write_text(whole)
    study = load_study(tmp_path / "one.toml")
    assert study.setup_of("LoRA").plain()["model"]["amount"]["part"] == "lora"
    changed = '"space.learning_rate" = { low = 1e-3, high = 0.3 }'
    assert changed in PAGE
    searched = whole.replace("[[arms]]", f"{search}[[arms]]", 1)
    (tmp_path / "two.toml").write_text(f"{searched}\n[[arms]]\nname = 'SGD'\noptimizer = 'sgd'\n{changed}\n")
    study = load_study(tmp_path / "two.toml")
    found = [study.setup_of(name).plain()["search"] for name in ("full", "SGD")]
    assert [one["space"]["learning_rate"]["high"] for one in found] == [1e-3, 0.3]
    assert [one["trials"] for one in found] == [8, 8]


def test_every_amount_and_every_search_is_told() -> None:
    table = PAGE.split("## How much is trained")[1].split("##")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, flags=re.MULTILINE)) == set(Amount.members)
    assert set(re.findall(r'"(tpe|random|grid)"', PAGE)) == set(Search.members)


@pytest.mark.parametrize(
    ("amount", "formula"),
    [
        (Lora(rank=8), lambda d, L, n: 2 * L * 2 * d * n + 2 * d + 2),
        (Prefix(length=8), lambda d, L, n: n * 2 * L * d + 2 * d + 2),
        (Prompt(length=8), lambda d, L, n: n * d + 2 * d + 2),
    ],
)
def test_the_formulas_are_those_of_the_code(amount: Amount, formula: object) -> None:
    assert amount.counted(MINILM).value == formula(384, 6, 8)  # type: ignore[operator]


def test_the_figures_are_those_of_the_code() -> None:
    assert f"{Prompt(length=128).counted(MINILM).value:,}" == "49,922"
    assert f"{Prefix(length=128).counted(MINILM).value:,}" == "590,594"
    assert "49,922" in PAGE
    assert "590,594" in PAGE
