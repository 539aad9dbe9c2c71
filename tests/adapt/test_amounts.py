"""How much is tuned: the formulas against what is trained, and against peft's own count."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="transformers is not here")
pytest.importorskip("peft", reason="peft is not here")

from attnlab.adapt.amounts import (
    Amount,
    Bias,
    Full,
    Head,
    Ia3,
    Lora,
    Prefix,
    Prompt,
    PTuning,
    Sizes,
)
from attnlab.adapt.tuned import Tunable, TunedModel
from attnlab.errors import RequestError
from attnlab.model.count import count_parameters

from . import tiny

MINILM = Sizes(d=384, L=6, f=1536, C=2, body=22_713_216, head=770)
OF_PEFT = [
    Lora(rank=3),
    Lora(targets=("dense",)),
    Prefix(length=3),
    Prefix(length=3, projection=True, hidden=5),
    Prompt(length=3),
    PTuning(length=3, hidden=7),
    Ia3(),
]
EVERY = [Full(), Head(), Bias(), *OF_PEFT]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny.bert(tmp_path_factory.mktemp("bert") / "checkpoint"))


def built(checkpoint: str, amount: Amount, labels: int = 2, seed: int = 0) -> TunedModel:
    return Tunable(checkpoint=checkpoint, amount=amount).build(labels, seed)


@pytest.mark.parametrize("amount", EVERY, ids=lambda amount: f"{amount.name}")
@pytest.mark.parametrize("labels", [2, 3])
def test_the_formula_is_what_is_trained(checkpoint: str, amount: Amount, labels: int) -> None:
    model = built(checkpoint, amount, labels)
    value = amount.counted(model.sizes).value
    if value is None:
        assert isinstance(amount, Bias | Ia3 | Lora)
    else:
        assert value == count_parameters(model)


@pytest.mark.parametrize("amount", OF_PEFT, ids=lambda amount: f"{amount.name}")
def test_peft_counts_the_same(checkpoint: str, amount: Amount) -> None:
    model = built(checkpoint, amount)
    trained, everything = model.inner.get_nb_trainable_parameters()
    assert trained == count_parameters(model)
    assert everything > trained


def test_a_formula_that_is_wrong_is_seen(checkpoint: str) -> None:
    model = built(checkpoint, Prefix(length=3))
    assert Prefix(length=4).counted(model.sizes).value != count_parameters(model)


def test_the_counts_of_the_study_that_asked() -> None:
    """A head of 2d + 2, and a prefix of 128 with a head as 130d + 2."""
    assert (Head().counted(MINILM).formula, Head().counted(MINILM).value) == ("2d + 2", 770)
    prefix = Prefix(length=128).counted(MINILM)
    assert prefix.also.endswith("= 130d + 2")
    assert (prefix.also_value, prefix.value) == (130 * 384 + 2, 128 * 2 * 6 * 384 + 770)
    assert "a key and a value for each place in each layer" in prefix.why
    # One vector for each place is what prompt tuning trains.
    assert Prompt(length=128).counted(MINILM).value == 130 * 384 + 2


def test_only_biases_and_the_head_are_trained(checkpoint: str) -> None:
    trained = [name for name, p in built(checkpoint, Bias()).named_parameters() if p.requires_grad]
    assert all(name.endswith("bias") or "classifier" in name for name in trained)
    assert sum("classifier" not in name for name in trained) > 10


def test_a_model_without_biases_says_so(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="a llama has no biases"):
        built(str(tiny.llama(tmp_path / "llama")), Bias())


def test_modules_that_do_not_exist_are_told(checkpoint: str) -> None:
    with pytest.raises(RequestError, match="peft cannot do this to a bert: No modules"):
        built(checkpoint, Lora(targets=("no-such-module",)))


def test_initial_values_are_a_function_of_the_seed_and_shared_by_arms(checkpoint: str) -> None:
    def head(amount: Amount, seed: int) -> float:
        named = dict(built(checkpoint, amount, seed=seed).named_parameters())
        return next(p.sum().item() for name, p in named.items() if name.endswith("classifier.weight"))

    assert head(Full(), 1) == head(Head(), 1) != head(Full(), 2)
    one, same, other = (built(checkpoint, Lora(), seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(one[name].equal(same[name]) for name in one)
    assert not all(one[name].equal(other[name]) for name in one)
