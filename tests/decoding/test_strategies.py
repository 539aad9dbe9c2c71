"""Every filter against transformers' processor on the same logits, and its limits, exactly."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.decoding import MinP, Plain, Recipe, RepetitionPenalty, Temperature, TopK, TopP, Typical
from attnlab.decoding.strategies.plain import pick
from attnlab.decoding.strategy import Filter, Strategy

V = 50


def logits(seed: int, rows: int = 4) -> Tensor:
    return 3 * torch.randn(rows, V, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def written(rows: int = 4) -> Tensor:
    return torch.randint(V, (rows, 9), generator=torch.Generator().manual_seed(3))


def theirs(name: str, **fields: Any) -> Any:
    generation = pytest.importorskip("transformers", reason="the processors are in transformers").generation
    return getattr(generation, name)(**fields)


PAIRS: list[tuple[Filter, str, dict[str, Any]]] = [
    *[(Temperature(temperature=t), "TemperatureLogitsWarper", {"temperature": t}) for t in (0.1, 0.8, 2.5)],
    *[(TopK(k=k), "TopKLogitsWarper", {"top_k": k}) for k in (1, 5, 49, 50, 80)],
    *[(TopP(p=p), "TopPLogitsWarper", {"top_p": p}) for p in (0.0, 0.1, 0.7, 0.99, 1.0)],
    *[(MinP(p=p), "MinPLogitsWarper", {"min_p": p}) for p in (0.0, 0.05, 0.5, 1.0)],
    *[(Typical(mass=m), "TypicalLogitsWarper", {"mass": m}) for m in (0.05, 0.2, 0.9, 0.999)],
    *[
        (RepetitionPenalty(penalty=x), "RepetitionPenaltyLogitsProcessor", {"penalty": x})
        for x in (0.5, 1.0, 1.3)
    ],
]


@pytest.mark.parametrize(("ours", "name", "fields"), PAIRS, ids=lambda value: str(value))
def test_a_filter_is_the_processor_of_transformers(ours: Filter, name: str, fields: dict[str, Any]) -> None:
    processor = theirs(name, **fields)
    for seed in range(5):
        before = logits(seed)
        kept = before.clone()
        assert torch.equal(ours(before, written()), processor(written(), before.clone()))
        assert torch.equal(before, kept)  # what came in is left as it was


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_filters_in_a_row_are_the_processors_in_that_row(order: list[int]) -> None:
    ours = [RepetitionPenalty(penalty=1.7), Temperature(temperature=0.5), TopP(p=0.8)]
    processors = [
        theirs("RepetitionPenaltyLogitsProcessor", penalty=1.7),
        theirs("TemperatureLogitsWarper", temperature=0.5),
        theirs("TopPLogitsWarper", top_p=0.8),
    ]
    x = y = logits(1)
    for place in order:
        x, y = ours[place](x, written()), processors[place](written(), y)
    assert torch.equal(x, y)


# ---- limits ------------------------------------------------------------------------------------------------

TIES = torch.tensor([[1.0, 3.0, 3.0, 2.0, 3.0, 0.0]], dtype=torch.double)
BOTH = [TIES, *map(logits, range(5))]


def chances(change: Filter, before: Tensor) -> Tensor:
    return change(before, torch.zeros(len(before), 1, dtype=torch.long)).softmax(-1)


@pytest.mark.parametrize(
    "change",
    [
        Temperature(temperature=0.0),
        Temperature(temperature=1e-300),
        TopK(k=1),
        TopP(p=0.0),
        TopP(p=1e-12),
        MinP(p=1.0),
    ],
    ids=str,
)
def test_what_only_leaves_the_likeliest_is_greedy(change: Filter) -> None:
    for before in BOTH:
        greedy = torch.nn.functional.one_hot(before.argmax(-1), before.shape[-1]).double()
        assert torch.equal(chances(change, before), greedy)


@pytest.mark.parametrize("temperature", [1e-1, 1e-2, 1e-4, 1e-8, 1e-100])
def test_a_falling_temperature_goes_to_greedy(temperature: float) -> None:
    for before in map(logits, range(5)):
        best, second = before.topk(2).values.T
        left = 1 - chances(Temperature(temperature=temperature), before).amax(-1)
        assert (left <= (V - 1) * torch.exp(-(best - second) / temperature) + 1e-15).all()


@pytest.mark.parametrize(
    "change",
    [
        Temperature(temperature=1.0),
        TopK(k=V),
        TopK(k=10 * V),
        TopP(p=1.0),
        MinP(p=0.0),
        Typical(mass=1.0),
        RepetitionPenalty(penalty=1.0),
    ],
    ids=str,
)
def test_what_leaves_everything_is_plain(change: Filter) -> None:
    for before in BOTH:
        assert torch.equal(change(before, torch.zeros(len(before), 1, dtype=torch.long)), before)


def test_top_k_keeps_k_also_where_logits_are_equal() -> None:
    """transformers keeps all three that are equal here; then k = 1 would not be greedy."""
    kept = [chances(TopK(k=k), TIES).nonzero()[:, 1].tolist() for k in (1, 2, 3, 4)]
    assert kept == [[1], [1, 2], [1, 2, 4], [1, 2, 3, 4]]


# ---- drawing -----------------------------------------------------------------------------------------------


def test_draws_follow_the_distribution() -> None:
    """Chi-squared of 200,000 draws, for the model's own distribution and for a filtered one."""
    from scipy.stats import chisquare

    n = 200_000
    uniform = torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    for change in (Temperature(temperature=1.0), TopP(p=0.9)):
        expected = chances(change, logits(0, rows=1))[0]
        drawn = pick(expected.expand(n, V), uniform)
        counts = torch.bincount(drawn, minlength=V)
        assert counts[expected == 0].sum() == 0
        there = expected > 0
        assert chisquare(counts[there].numpy(), (n * expected[there]).numpy()).pvalue > 0.001
        # And what is wrong would be seen: the same draws against a slightly warmer distribution.
        warmer = chances(Temperature(temperature=1.05), chances(change, logits(0, rows=1)).log())[0]
        assert chisquare(counts[there].numpy(), (n * warmer[there]).numpy()).pvalue < 0.001


def test_a_token_without_a_chance_is_never_drawn() -> None:
    line = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]], dtype=torch.double).expand(4, 5)
    ends = torch.tensor([0.0, 0.5 - 1e-17, 0.5, 1.0], dtype=torch.double)
    assert pick(line, ends).tolist() == [1, 3, 3, 3]


# ---- the notation ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("plain", (Plain(),)),
        ("top-p=0.7", (TopP(p=0.7), Plain())),
        ("temperature=0.8+top-k=20", (Temperature(temperature=0.8), TopK(k=20), Plain())),
        ("temperature=1e+1+plain", (Temperature(temperature=10.0), Plain())),
    ],
)
def test_the_notation(text: str, steps: tuple[Strategy, ...]) -> None:
    recipe = Recipe.read(text)
    assert recipe.steps == steps
    assert Recipe.read(recipe.notation) == recipe
    assert Recipe.model_validate(text) == recipe
    assert Recipe.model_validate(recipe.plain()) == recipe


@pytest.mark.parametrize("name", sorted(Strategy.members))
def test_every_strategy_can_be_written_and_says_what_it_does(name: str) -> None:
    recipe = Recipe.read(name)
    assert Recipe.read(recipe.notation) == recipe
    assert str(Strategy.resolve(name)) in str(recipe)


def test_a_recipe_states_its_order() -> None:
    recipe = Recipe.read("repetition-penalty=1.3+temperature=0.8+beam=3,length-penalty=0.5")
    assert recipe.notation == "repetition-penalty=1.3+temperature=0.8+beam=3,length-penalty=0.5"
    assert str(recipe) == (
        "penalise what is there already by 1.3, then divide logits by 0.8, then follow the 3 likeliest texts "
        "(length penalty 0.5)"
    )


@pytest.mark.parametrize(
    ("text", "explained"),
    [
        ("top-q=0.7", "no strategy is called 'top-q'; did you mean 'top-"),
        ("", "no strategy is called ''"),
        ("top-p=1.5", r"'top-p=1.5': p: .*less than or equal to 1 \(got 1.5\)"),
        ("top-k=0", r"'top-k=0': k: .*greater than 0 \(got 0\)"),
        ("top-k=two", r"k: .*valid integer.*got 'two'"),
        ("beam=4,lenght-penalty=1", "no field is called 'lenght_penalty'; did you mean 'length_penalty'"),
        ("beam=4,1", "'1' in 'beam=4,1': settings are written field=value"),
        ("greedy=1", "'greedy' takes no value"),
        ("greedy+top-k=3", "^'greedy\\+top-k=3': 'greedy' chooses the token: put it last"),
        ("greedy+beam", "^'greedy\\+beam': 'greedy' and 'beam' both choose the token"),
    ],
)
def test_mistakes_are_explained(text: str, explained: str) -> None:
    from attnlab.errors import RequestError

    with pytest.raises(RequestError, match=explained):
        Recipe.read(text)


def test_a_strategy_of_ones_own(tmp_path: Any) -> None:
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from attnlab.decoding import Filter\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Less(Filter):\n"
        "    by: float = 1.0\n"
        "    def __str__(self): return f'take {self.by:g} from the first'\n"
        "    def __call__(self, logits_BV, written_BT):\n"
        "        changed = logits_BV.clone()\n"
        "        changed[:, 0] -= self.by\n"
        "        return changed\n"
    )
    recipe = Recipe.read(f"{tmp_path}/mine.py:Less=2+greedy")
    assert str(recipe) == "take 2 from the first, then take the likeliest"
    assert torch.equal(recipe.filters[0](TIES, TIES.long())[:, 0], TIES[:, 0] - 2)
