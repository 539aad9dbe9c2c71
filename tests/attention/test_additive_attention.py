"""Additive attention in one go against its stages: values, gradients, masks, dropout, decoding, memory.

Shapes: T queries, S keys, h hidden units, d head width.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.attention import Attention, Dims, Layout, Position, compiled
from attnlab.attention.score import additive_attention, additive_pairs

SOURCE = Path(additive_attention.__file__).with_suffix(".cpp")

needs_a_compiler = pytest.mark.skipif(
    not isinstance(compiled.library(SOURCE), ctypes.CDLL), reason=str(compiled.library(SOURCE))
)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the kernel was used."""
    made: list[int] = []
    attend = additive_attention.attend

    def counted(*given: Any) -> Tensor:
        made.append(1)
        return attend(*given)

    monkeypatch.setattr(additive_attention, "attend", counted)
    return made


def results(
    mixer: dict[str, Any], kernel: str, dtype: torch.dtype, lengths: list[int], position: str, size: float
) -> list[Tensor]:
    """Output and every gradient of one layer, the same weights and tokens whatever the kernel and type."""
    dims = Dims(width=48, heads=3, context=64)
    torch.manual_seed(0)
    layer = Attention.resolve({"part": "attention", "kernel": kernel, **mixer}).build(dims)
    scheme = Position.resolve(position).build(dims)
    for parameter in [*layer.parameters(), *scheme.parameters()]:
        torch.nn.init.normal_(parameter, std=0.3 * size)
    layer, scheme = layer.to(dtype), scheme.to(dtype)
    x = torch.randn(sum(lengths), 48).to(dtype).requires_grad_()
    y = layer(x, Layout(lengths), scheme)
    upstream = torch.linspace(-1, 1, y.numel()).view_as(y).to(dtype)
    wanted = [x, *layer.parameters(), *scheme.parameters()]
    gradients = torch.autograd.grad((y * upstream).sum(), wanted, allow_unused=True)
    return [t.detach().double() for t in (y, *gradients) if t is not None]


@needs_a_compiler
@pytest.mark.parametrize("size", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("lengths", [[1], [7, 33, 2, 16], [64, 64]], ids=str)
@pytest.mark.parametrize(
    "mixer",
    [
        {},
        {"mask": "everything"},
        {"mask": {"part": "window", "size": 3}},
        {"mask": {"part": "nearby", "reach": 20}},
        {"mask": {"part": "causal", "where": "renormalised"}},
        {"project": {"part": "grouped", "key_value_heads": 1}},
        {"score": {"part": "additive", "hidden": 5}},
        {"score": {"part": "additive", "hidden": 40}},
    ],
    ids=str,
)
def test_it_errs_no_more_than_its_stages(
    mixer: dict[str, Any], lengths: list[int], size: float, calls: list[int]
) -> None:
    """Both in fp32, held against fp64; at most four times the stages' error, or a few roundings."""
    mixer = {"score": "additive", **mixer}
    mine = results(mixer, "auto", torch.float32, lengths, "absent", size)
    assert calls
    stages = results(mixer, "stages", torch.float32, lengths, "absent", size)
    exact = results(mixer, "stages", torch.float64, lengths, "absent", size)
    assert len(calls) == 1
    for found, staged, right in zip(mine, stages, exact, strict=True):
        allowed = 4 * float((staged - right).abs().max()) + 1e-6 * float(right.abs().max())
        assert float((found - right).abs().max()) <= allowed


@needs_a_compiler
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_nothing_but_roundings(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More pairs than one thread is started for."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    torch.manual_seed(0)
    a, c, v = torch.randn(3, 5, 200, 3, 16).requires_grad_().unbind(0)
    w = torch.randn(16, requires_grad=True)
    seen, real = torch.ones(200, 200).tril().bool(), torch.ones(5, 200, dtype=torch.bool)
    mixed = additive_attention.attend(a, c, w, v, seen, real, 0.0)
    scores = additive_pairs.additive_by_definition(a.transpose(1, 2), c.transpose(1, 2), w)
    weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
    right = (weights @ v.transpose(1, 2)).transpose(1, 2)
    torch.testing.assert_close(mixed, right, rtol=1e-4, atol=1e-5)
    wanted = [a, c, w, v]
    pairs = (torch.autograd.grad(y.square().sum(), wanted, retain_graph=True) for y in (mixed, right))
    for found, definition in zip(*pairs, strict=True):
        torch.testing.assert_close(found, definition, rtol=1e-3, atol=1e-5 * float(definition.abs().max()))


@pytest.mark.parametrize(
    ("mixer", "position"),
    [
        ({"weigh": "sparsemax"}, "absent"),
        ({"weigh": "softmax-plus-one"}, "absent"),
        ({"mask": {"part": "causal", "where": "after"}}, "absent"),
        ({"kernel": "stages"}, "absent"),
        ({}, "alibi"),
        ({}, "t5-bias"),
    ],
    ids=str,
)
def test_what_it_cannot_do_goes_by_stages(mixer: dict[str, Any], position: str, calls: list[int]) -> None:
    given = {"score": "additive", "kernel": "auto", **mixer}
    kernel = given.pop("kernel")
    auto = results(given, kernel, torch.float32, [9, 5], position, 1.0)
    stages = results(given, "stages", torch.float32, [9, 5], position, 1.0)
    assert not calls
    for one, other in zip(auto, stages, strict=True):
        assert torch.equal(one, other)


def test_heads_that_exchange_their_scores_go_by_stages(calls: list[int]) -> None:
    results({"part": "talking-heads", "score": "additive"}, "auto", torch.float32, [9], "absent", 1.0)
    assert not calls


@needs_a_compiler
def test_the_maps_of_a_differential_head_may_go_by_it(calls: list[int]) -> None:
    mixer = {"part": "differential", "score": "additive"}
    mine = results(mixer, "auto", torch.float32, [9, 20], "absent", 0.5)
    assert calls
    exact = results(mixer, "stages", torch.float64, [9, 20], "absent", 0.5)
    for found, right in zip(mine, exact, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-5 * float(right.abs().max()))


def test_without_a_compiler_it_goes_by_stages(monkeypatch: pytest.MonkeyPatch, calls: list[int]) -> None:
    monkeypatch.setattr(additive_pairs, "kernel", lambda: None)
    one = results({"score": "additive"}, "auto", torch.float32, [9, 5], "absent", 1.0)
    other = results({"score": "additive"}, "stages", torch.float32, [9, 5], "absent", 1.0)
    assert not calls
    assert all(torch.equal(x, y) for x, y in zip(one, other, strict=True))


def test_where_only_this_kernel_is_missing_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "library", lambda source: "it does not compile")
    additive_attention.kernel.cache_clear()
    try:
        with pytest.warns(UserWarning, match="in stages, which takes longer: it does not compile"):
            assert additive_attention.kernel() is None
    finally:
        additive_attention.kernel.cache_clear()


@needs_a_compiler
def test_cached_decoding_equals_the_full_pass(calls: list[int]) -> None:
    torch.manual_seed(0)
    dims = Dims(width=48, heads=3, context=64)
    layer = Attention.resolve({"part": "attention", "score": "additive"}).build(dims).eval()
    scheme = Position.resolve("absent").build(dims)
    x_BTD = torch.randn(2, 9, 48)
    full = layer(x_BTD.flatten(0, 1), Layout([9, 9]), scheme).view(2, 9, 48)
    state, done, made = layer.begin(), 0, []
    for piece in (4, 1, 1, 3):
        x = x_BTD[:, done : done + piece].flatten(0, 1)
        made.append(layer(x, Layout([piece] * 2, offset=done), scheme, state).view(2, piece, 48))
        done += piece
    assert len(calls) == 5
    torch.testing.assert_close(torch.cat(made, dim=1), full, rtol=1e-5, atol=1e-6)


# ---- what it gives where there is nothing to give ----------------------------------------------------------


@needs_a_compiler
def test_a_query_that_sees_nothing_takes_nothing() -> None:
    torch.manual_seed(0)
    a, c, v = torch.randn(3, 2, 20, 1, 4).requires_grad_().unbind(0)
    w = torch.randn(4, requires_grad=True)
    seen, real = torch.ones(20, 20).tril(-1).bool(), torch.ones(2, 20, dtype=torch.bool)
    real[1] = False  # a sequence of padding alone
    mixed = additive_attention.attend(a, c, w, v, seen, real, 0.0)
    assert not mixed[0, 0].any()
    assert not mixed[1].any()
    assert mixed[0, 1:].abs().sum() > 0
    for gradient in torch.autograd.grad(mixed.sum(), (a, c, w, v)):
        assert gradient.isfinite().all()


@needs_a_compiler
@pytest.mark.parametrize("size", [1.0, 1e3])
def test_a_nan_is_not_hidden_and_stays_where_it_is_seen(size: float) -> None:
    torch.manual_seed(0)
    a, c, v = size * torch.randn(3, 1, 40, 1, 8)
    c[0, 25] = float("nan")
    seen, real = torch.ones(40, 40).tril().bool(), torch.ones(1, 40, dtype=torch.bool)
    mixed = additive_attention.attend(a, c, torch.randn(8), v, seen, real, 0.0)
    assert mixed[0, 25:].isnan().all()
    assert mixed[0, :25].isfinite().all()


# ---- dropout -----------------------------------------------------------------------------------------------


def dropped(share: float, S: int = 256, rows: int = 4) -> Tensor:
    """(rows, S, S): what every weight is multiplied with. Equal weights, and values that tell them apart."""
    a, c = torch.zeros(2, 1, S, rows, 1)
    seen, real = torch.ones(S, S, dtype=torch.bool), torch.ones(1, S, dtype=torch.bool)
    v_BSHd = torch.eye(S)[None, :, None].expand(1, S, rows, S)
    return S * additive_attention.attend(a, c, torch.ones(1), v_BSHd, seen, real, share)[0].transpose(0, 1)


@needs_a_compiler
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_share_of_weights_is_dropped_and_the_mean_stays(share: float) -> None:
    torch.manual_seed(1)
    factors = dropped(share)
    kept = factors[factors != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - share)), rtol=1e-4, atol=0)
    deviation = (share * (1 - share) / factors.numel()) ** 0.5
    assert abs(float((factors == 0).double().mean()) - share) < 5 * deviation


@needs_a_compiler
def test_what_is_dropped_says_nothing_of_what_else_is() -> None:
    """Neighbours, other rows, other seeds: correlations of random numbers, by their number."""
    torch.manual_seed(2)
    one, other = (dropped(0.5, S=512) - 1 for _ in range(2))
    pairs = [(one, other), (one[0], one[1]), (one[:, 1:], one[:, :-1]), (one[..., 1:], one[..., :-1])]
    pairs += [(one[:, 1:, 1:], one[:, :-1, :-1]), (one[:, 1:, :-1], one[:, :-1, 1:])]
    pairs += [(one[..., 16:], one[..., :-16]), (one[:, 64:], one[:, :-64])]
    for x, y in pairs:
        assert abs(float((x * y).mean())) < 5 / x.numel() ** 0.5
    by_query, by_key = one.double().mean(2).flatten(), one.double().mean(1).flatten()
    for means in (
        by_query,
        by_key,
    ):  # each of 512 numbers: a deviation of 1/√512, as exactly as 2,048 tell it
        assert float(means.std() * 512**0.5) == pytest.approx(1, abs=5 / (2 * 2048) ** 0.5)


@needs_a_compiler
def test_the_seed_of_torch_decides_what_is_dropped() -> None:
    torch.manual_seed(3)
    first, second = dropped(0.3), dropped(0.3)
    torch.manual_seed(3)
    assert torch.equal(dropped(0.3), first)
    assert not torch.equal(second, first)


@needs_a_compiler
def test_without_dropout_no_random_number_is_drawn() -> None:
    torch.manual_seed(4)
    before = torch.get_rng_state()
    dropped(0.0)
    assert torch.equal(torch.get_rng_state(), before)


@needs_a_compiler
def test_what_was_dropped_stays_dropped_backward() -> None:
    """The gradients are those of the definition with the factors that the forward pass had."""
    torch.manual_seed(5)
    S, rows = 48, 2
    a, c, v = torch.randn(3, 1, S, rows, S).requires_grad_().unbind(0)
    w = torch.randn(S, requires_grad=True)
    seen, real = torch.ones(S, S).tril().bool(), torch.ones(1, S, dtype=torch.bool)
    torch.manual_seed(6)
    factors = dropped(0.4, S, rows)
    torch.manual_seed(6)
    mixed = additive_attention.attend(a, c, w, v, seen, real, 0.4)
    scores = additive_pairs.additive_by_definition(a.transpose(1, 2), c.transpose(1, 2), w)
    weights = scores.masked_fill(~seen, float("-inf")).softmax(-1) * factors
    right = (weights @ v.transpose(1, 2)).transpose(1, 2)
    torch.testing.assert_close(mixed, right, rtol=1e-4, atol=1e-4)
    pairs = (torch.autograd.grad(y.square().sum(), (a, c, w, v), retain_graph=True) for y in (mixed, right))
    for found, definition in zip(*pairs, strict=True):
        torch.testing.assert_close(found, definition, rtol=1e-3, atol=1e-4 * float(definition.abs().max()))


@needs_a_compiler
def test_a_layer_drops_in_training_only() -> None:
    torch.manual_seed(0)
    dims = Dims(width=48, heads=3, context=64, dropout=0.5)
    layer = Attention.resolve({"part": "attention", "score": "additive"}).build(dims)
    scheme, x = Position.resolve("absent").build(dims), torch.randn(20, 48)

    def twice() -> tuple[Tensor, Tensor]:
        return layer(x, Layout([20]), scheme), layer(x, Layout([20]), scheme)

    assert torch.equal(*twice()) is False
    layer.eval()
    assert torch.equal(*twice()) is True


# ---- what is kept ------------------------------------------------------------------------------------------


@needs_a_compiler
def test_no_number_per_pair_is_kept_however_few() -> None:
    dims = Dims(width=48, heads=3, context=512, dropout=0.1)
    layer = Attention.resolve({"part": "attention", "score": "additive"}).build(dims)
    kept: list[int] = []
    x = torch.randn(512, 48, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t.numel() * t.element_size()) or t, lambda t: t
    ):
        layer(x, Layout([512]), Position.resolve("absent").build(dims))
    # One byte for who sees whom, the same for all heads and sequences; no number for a pair.
    assert max(kept) <= 512 * 512
    assert sorted(kept)[-2] <= 512 * 48 * 3 * 4


@needs_a_compiler
def test_a_second_derivative_is_refused_and_not_wrong() -> None:
    a, c, v = torch.randn(3, 1, 4, 1, 4).requires_grad_().unbind(0)
    seen, real = torch.ones(4, 4, dtype=torch.bool), torch.ones(1, 4, dtype=torch.bool)
    mixed = additive_attention.attend(a, c, torch.ones(4), v, seen, real, 0.0)
    (first,) = torch.autograd.grad(mixed.square().sum(), a, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()
