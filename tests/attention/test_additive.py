"""The fast path of the additive score against its definition, also where its identity would overflow."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
import torch

from attnlab.attention import compiled
from attnlab.attention.score import additive_pairs
from attnlab.attention.score.additive import AdditiveScore
from attnlab.attention.score.additive_pairs import additive_by_definition


@pytest.fixture(params=["kernel", "PyTorch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the compiled kernel, where there is a compiler, and without it."""
    if request.param == "PyTorch":
        monkeypatch.setattr(additive_pairs, "kernel", lambda: None)
    elif not isinstance(compiled.library(SOURCE), ctypes.CDLL):
        pytest.skip(str(compiled.library(SOURCE)))
    return str(request.param)


SOURCE = Path(additive_pairs.__file__).with_name("additive_kernel.cpp")


def scores_and_gradients(function, score: AdditiveScore, q: torch.Tensor, k: torch.Tensor):  # type: ignore[no-untyped-def]
    q, k = q.clone().requires_grad_(), k.clone().requires_grad_()
    scores = function(q, k)
    weight = torch.linspace(-1, 1, scores.numel(), dtype=scores.dtype).view_as(scores)
    return scores, torch.autograd.grad((scores * weight).sum(), [q, k, *score.parameters()])


@pytest.mark.parametrize("size", [1.0, 10.0, 1e3])
@pytest.mark.parametrize(("T", "S"), [(1, 9), (9, 9), (130, 40)])
def test_fast_path_is_the_definition(size: float, T: int, S: int) -> None:
    torch.manual_seed(0)
    score = AdditiveScore(8, 12).double()
    score.init_weights()
    q, k = size * torch.randn(2, 3, T, 8, dtype=torch.float64), torch.randn(2, 3, S, 8, dtype=torch.float64)

    def by_definition(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return additive_by_definition(score.from_query(q), score.from_key(k), score.out)

    fast, fast_grads = scores_and_gradients(score, score, q, k)
    slow, slow_grads = scores_and_gradients(by_definition, score, q, k)
    torch.testing.assert_close(fast, slow, rtol=1e-11, atol=1e-11)
    for mine, oracle in zip(fast_grads, slow_grads, strict=True):
        torch.testing.assert_close(mine, oracle, rtol=1e-9, atol=1e-9 * float(oracle.abs().max()))


@pytest.mark.parametrize("size", [1e-2, 1.0, 19.0, 30.0, 1e4])
@pytest.mark.parametrize(("T", "S", "hidden"), [(20, 20, 8), (1, 37, 5), (33, 64, 16)])
def test_fp32_errs_no_more_than_the_definition(size: float, T: int, S: int, hidden: int, way: str) -> None:
    """Both in fp32, held against fp64 on the same numbers, on both sides of the largest argument.

    At most four times the definition's error. Scores and the gradient to w are sums of tanh = 1 - 2r, rounded
    at one however small the tanh: two such roundings in each term are allowed besides.
    """
    torch.manual_seed(0)
    a, c, w = size * torch.randn(9, 4, T, hidden), size * torch.randn(9, 4, S, hidden), torch.randn(hidden)
    upstream = torch.linspace(-1, 1, 9 * 4 * T * S).view(9, 4, T, S)

    def results(function, dtype: torch.dtype) -> list[torch.Tensor]:  # type: ignore[no-untyped-def]
        leaves = [x.to(dtype).requires_grad_() for x in (a, c, w)]
        scores = function(*leaves)
        gradients = torch.autograd.grad((scores * upstream.to(dtype)).sum(), leaves)
        return [x.detach().double() for x in (scores, *gradients)]

    exact = results(additive_by_definition, torch.float64)
    mine = results(additive_pairs.additive_pairs, torch.float32)
    plain = results(additive_by_definition, torch.float32)
    rounding = 2 * torch.finfo(torch.float32).eps
    besides = (rounding * float(w.detach().abs().sum()), 0.0, 0.0, rounding * float(upstream.abs().sum()))
    for right, found, definition, more in zip(exact, mine, plain, besides, strict=True):
        allowed = 4 * float((definition - right).abs().max()) + more
        assert float((found - right).abs().max()) <= allowed


def test_where_the_tanh_is_flat_so_is_the_kernel(way: str) -> None:
    """Far out, the gradient is zero: a reciprocal off by its last bit must not leave a slope there."""
    a = torch.full((1, 1, 1, 4), 300.0, requires_grad=True)
    c = torch.linspace(-150.0, 150.0, 40).view(1, 1, 10, 4).requires_grad_()
    scores = additive_pairs.additive_pairs(-a, c, torch.ones(4))
    for gradient in torch.autograd.grad(scores.sum(), (a, c)):
        assert float(gradient.abs().max()) < 1e-30


def test_without_a_compiler_it_says_that_it_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "library", lambda source: "there is no C++ compiler")
    additive_pairs.kernel.cache_clear()
    try:
        with pytest.warns(UserWarning, match="slower: there is no C\\+\\+ compiler"):
            assert additive_pairs.kernel() is None
    finally:
        additive_pairs.kernel.cache_clear()


def test_a_file_that_does_not_compile_is_a_reason_and_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    broken = tmp_path / "broken.cpp"
    broken.write_text("this is no C++")
    reason = compiled.library(broken)
    assert isinstance(reason, str)
    assert "compile" in reason


def test_a_changed_header_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not isinstance(compiled.library(SOURCE), ctypes.CDLL):
        pytest.skip(str(compiled.library(SOURCE)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "number.cpp").write_text('#include "number.h"\nextern "C" int number() { return NUMBER; }\n')
    for number in (1, 2):
        (tmp_path / "number.h").write_text(f"#define NUMBER {number}\n")
        compiled.library.cache_clear()
        assert compiled.library(tmp_path / "number.cpp").number() == number
    compiled.library.cache_clear()


def test_nothing_per_pair_and_hidden_unit_is_kept(way: str) -> None:
    score = AdditiveScore(16, 16)
    q, k = torch.randn(2, 1, 2, 200, 16, requires_grad=True)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x):
        score(q, k)
    assert max(kept) <= 2 * 200 * 16


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_a_nan_is_not_hidden(size: float, way: str) -> None:
    score = AdditiveScore(8, 8)
    q = size * torch.randn(1, 1, 4, 8)
    q[0, 0, 2] = float("nan")
    scores = score(q, torch.randn(1, 1, 5, 8))
    assert scores[0, 0, 2].isnan().all()
    assert scores[0, 0, 1].isfinite().all()
