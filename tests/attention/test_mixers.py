"""Mixers against code not ours, where there is any, and their exact paths where arguments are large."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from attnlab.attention import (
    Absent,
    AftConv,
    AftFull,
    AftLocal,
    AftSimple,
    Alibi,
    Attention,
    Dims,
    Fastformer,
    Favor,
    Layout,
    LinearAttention,
    Mixer,
    Position,
    Rotary,
    Sinusoidal,
    T5Bias,
    TalkingHeads,
)
from attnlab.attention.mixers.aft import average_by_definition, average_of_pairs
from attnlab.attention.mixers.favor import PositiveRandomFeatures
from attnlab.attention.mixers.feature_maps import in_chunks, token_by_token
from attnlab.attention.mixers.running_mean import RunningMean
from attnlab.errors import DeclarationError, RequestError
from attnlab.model import Decoder
from attnlab.spec import validate

DIMS = Dims(width=32, heads=2, context=200)


def qkv(length: int = 150, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(3, 2, 2, length, 16, generator=generator, dtype=torch.float64).to(dtype).unbind(0)


# ---- against performer-pytorch -----------------------------------------------------------------------------


def performer():  # type: ignore[no-untyped-def]
    return pytest.importorskip("performer_pytorch.performer_pytorch", reason="performer-pytorch is not here")


def test_favor_features_are_performers() -> None:
    features = PositiveRandomFeatures(40, 16).double()
    q, _, _ = qkv()
    for is_query in (True, False):
        theirs = performer().softmax_kernel(
            q, projection_matrix=features.directions_md, is_query=is_query, eps=0.0
        )
        # Theirs carry 1/√m and are divided by their largest: per query, or over all the keys of a head.
        ratio = theirs.log() - features(q)
        per = ratio.amax(-1, keepdim=True) if is_query else ratio.amax((-1, -2), keepdim=True)
        torch.testing.assert_close(ratio, per.expand_as(ratio))


@pytest.mark.parametrize("features", ["favor", "elu"])
def test_causal_sums_are_performers(features: str) -> None:
    q, k, v = qkv()
    if features == "favor":
        made = PositiveRandomFeatures(40, 16).double()
        log_q, log_k = made(q), made(k)
    else:
        log_q, log_k = (F.elu(q) + 1).log(), (F.elu(k) + 1).log()
    theirs = performer().causal_linear_attention_noncuda(log_q.exp(), log_k.exp(), v, chunk_size=32, eps=0.0)
    torch.testing.assert_close(in_chunks(log_q, log_k, v), theirs)


def test_directions_are_orthogonal_in_blocks_as_performers() -> None:
    ours = PositiveRandomFeatures(48, 16).directions_md.double()
    theirs = performer().gaussian_orthogonal_random_matrix(48, 16, scaling=0).double()
    for directions in (ours, theirs):
        for block in F.normalize(directions, dim=-1).split(16):
            torch.testing.assert_close(block @ block.T, torch.eye(16).double(), rtol=0, atol=1e-5)


def test_favor_estimates_softmax_attention_better_with_more_features() -> None:
    torch.manual_seed(0)
    q, k, v = (0.7 * part for part in qkv(20))
    exact = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    errors = []
    for count in (16, 256, 8192):
        made = PositiveRandomFeatures(count, 16).double()
        errors.append(float((in_chunks(made(q), made(k), v) - exact).abs().mean()))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


# ---- exact where arguments are large -----------------------------------------------------------------------


def test_chunks_are_the_recurrence_and_give_way_to_it() -> None:
    q, k, v = qkv()
    torch.testing.assert_close(in_chunks(q, k, v), token_by_token(q, k, v, RunningMean()))
    q, k = 300 * q, 300 * k  # e^300 is no fp32 number
    exact = token_by_token(q, k, v, RunningMean())
    torch.testing.assert_close(
        in_chunks(q.float(), k.float(), v.float()).double(), exact, rtol=1e-3, atol=1e-3
    )


def test_aft_averages_are_exact_for_large_keys() -> None:
    _, k, v = qkv(30)
    w, seen = torch.randn(2, 30, 30, dtype=torch.float64), torch.ones(30, 30).tril().bool()
    torch.testing.assert_close(average_of_pairs(w, seen, k, v), average_by_definition(w, seen, k, v))
    torch.testing.assert_close(
        average_of_pairs(w.float(), seen, 100 * k.float(), v.float()).double(),
        average_by_definition(w, seen, 100 * k, v),
        rtol=1e-3,
        atol=1e-3,
    )


@pytest.mark.parametrize(
    "mixer", [AftSimple(), AftFull(), AftConv(window=4), AftLocal(window=4)], ids=lambda m: m.name
)
def test_aft_with_large_keys_is_causal_and_decodes(mixer: Mixer) -> None:
    torch.manual_seed(0)
    layer = mixer.build(DIMS).double()
    with torch.no_grad():
        layer.project.key.weight.mul_(2000)
    x, position = torch.randn(12, 32, dtype=torch.float64), Absent().build(DIMS)
    full = layer(x, Layout([12]), position)
    state = layer.begin()
    steps = [layer(x[t : t + 1], Layout([1], offset=t), position, state) for t in range(12)]
    torch.testing.assert_close(torch.cat(steps), full)
    torch.testing.assert_close(layer(x[:7], Layout([7]), position), full[:7])


@pytest.mark.parametrize(
    "mixer",
    [AftSimple(), AftConv(window=4), AftLocal(window=4), LinearAttention(), Favor()],
    ids=lambda m: m.name,
)
def test_decoding_state_stays_as_small_as_it_is(mixer: Mixer) -> None:
    layer, position = mixer.build(DIMS), Absent().build(DIMS)
    state, sizes = layer.begin(), []
    with torch.no_grad():
        for t in range(40):
            layer(torch.randn(1, 32), Layout([1], offset=t), position, state)
            sizes.append(sum(x.numel() for x in vars(state).values() if isinstance(x, torch.Tensor)))
    assert sizes[10] == sizes[39]


# ---- what weights there are --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["favor", "linear-attention", "talking-heads", "attention"])
def test_weights_are_what_mixed_the_values(name: str) -> None:
    torch.manual_seed(0)
    layer = Mixer.resolve(name).build(DIMS).double()
    position, layout = Absent().build(DIMS), Layout([9, 4])
    x = torch.randn(13, 32, dtype=torch.float64)
    weights = layer.weights(x, layout, position)
    v = layout.pad(layer.project(x)[2]).transpose(1, 2)
    mixed = layer.merge(layout.flatten((weights @ v).transpose(1, 2)).flatten(1))
    torch.testing.assert_close(mixed, layer(x, layout, position))
    assert (weights[1, :, :4, 4:] == 0).all()


@pytest.mark.parametrize("mixer", [AftSimple(), AftFull(), AftConv()], ids=lambda m: m.name)
def test_aft_weights_are_per_channel(mixer: Mixer) -> None:
    torch.manual_seed(0)
    layer = mixer.build(DIMS).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    position, layout = Absent().build(DIMS), Layout([9, 4])
    x = torch.randn(13, 32, dtype=torch.float64)
    weights = layer.weights(x, layout, position)
    assert weights.shape == (2, 32, 9, 9)
    q, _, v = (part.flatten(1) for part in layer.project(x))
    mixed = layout.flatten(torch.einsum("bcts,bsc->btc", weights, layout.pad(v)))
    torch.testing.assert_close(layer.merge(q.sigmoid() * mixed), layer(x, layout, position))


def test_talking_heads_start_as_attention() -> None:
    torch.manual_seed(0)
    talking, plain = TalkingHeads().build(DIMS), Attention().build(DIMS)
    plain.load_state_dict(talking.state_dict(), strict=False)
    x, position = torch.randn(9, 32), Absent().build(DIMS)
    torch.testing.assert_close(talking(x, Layout([9]), position), plain(x, Layout([9]), position))


# ---- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mixer", [AftSimple(), AftFull(), AftConv(), AftLocal(), LinearAttention(), Fastformer()]
)
@pytest.mark.parametrize("position", [Rotary(), Alibi(), T5Bias()])
def test_positions_that_need_scores_are_refused_without_any(mixer: Mixer, position: Position) -> None:
    with pytest.raises(DeclarationError, match=f"position '{position.name}' .* in the mixer '{mixer.name}'"):
        Decoder(mixer=mixer, position=position)
    Decoder(mixer=mixer, position=Sinusoidal())


def test_favor_takes_rotary_and_refuses_biases() -> None:
    Decoder(mixer=Favor(), position=Rotary())
    with pytest.raises(DeclarationError, match="adds to the scores"):
        Decoder(mixer=Favor(), position=Alibi())


def test_talking_heads_cannot_be_fused() -> None:
    with pytest.raises(DeclarationError, match="heads exchange their scores"):
        Decoder(mixer=TalkingHeads(kernel="fused"))


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(RequestError, match="'fastformer' cannot generate"):
        Fastformer().build(DIMS).begin()
    with pytest.raises(
        RequestError, match="'aft-full' has biases for 200 positions, and there is one at 200"
    ):
        AftFull().build(DIMS)(torch.randn(201, 32), Layout([201]), Absent().build(DIMS))
    with pytest.raises(RequestError, match="mixer 'differential' halves every head, and 5 places"):
        Mixer.resolve("differential").build(Dims(width=15, heads=3, context=8))


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ({"mixer": {"part": "differential"}, "width": 15}, "halves every head, and 5 places"),
        ({"position": "rotary", "width": 15}, "a head of width 5"),
        ({"position": {"part": "t5-bias", "buckets": 1}}, "1 buckets give 0 distances"),
        (
            {"mixer": {"part": "attention", "project": {"part": "grouped", "key_value_heads": 2}}},
            "3 query heads cannot share 2",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_sizes_that_do_not_fit_are_refused_at_declaration(declared: dict[str, object], reason: str) -> None:
    with pytest.raises(DeclarationError, match=reason):
        validate(Decoder, declared, source="a test")


def test_fused_is_refused_without_a_model_too() -> None:
    with pytest.raises(RequestError, match="the score 'additive' is no dot product"):
        Attention.resolve({"part": "attention", "score": "additive", "kernel": "fused"}).build(DIMS)


def test_talking_heads_are_x_transformers() -> None:
    x_transformers = pytest.importorskip("x_transformers.attend", reason="x-transformers is not here")
    torch.manual_seed(0)
    theirs = x_transformers.Attend(
        causal=True, heads=2, pre_talking_heads=True, post_talking_heads=True, dropout=0.0
    ).double()
    layer = TalkingHeads().build(DIMS).double()
    x, layout, position = torch.randn(9, 32, dtype=torch.float64), Layout([9]), Absent().build(DIMS)
    q, k, v = (layout.pad(part).transpose(1, 2) for part in layer.project(x))
    talk = layer.core.weigh
    with torch.no_grad():
        talk.of_scores.normal_()
        talk.of_weights.normal_()
        # Theirs adds the scores themselves to the exchanged ones.
        theirs.pre_softmax_talking_heads.weight[..., 0, 0] = talk.of_scores - torch.eye(2)
        theirs.post_softmax_talking_heads.weight[..., 0, 0] = talk.of_weights
    mixed, _ = theirs(q, k, v)
    torch.testing.assert_close(layer.mix(x, layout, position, None), mixed)


def test_features_come_from_the_seed_and_are_saved() -> None:
    one, same, other = (Decoder(mixer=Favor(), layers=1).build(9, seed=s) for s in (1, 1, 2))
    name = "blocks.0.mixer.features.directions_md"
    assert torch.equal(one.state_dict()[name], same.state_dict()[name])
    assert not torch.equal(one.state_dict()[name], other.state_dict()[name])
