"""Every part in every conformance case, and the cases against parts that are wrong on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from shutil import which
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from attnlab.attention import (
    Dims,
    Mask,
    Mixer,
    Position,
    PositionScheme,
    Project,
    Projection,
    Score,
    Weigh,
)
from attnlab.attention.project.separate import SeparateProjection
from attnlab.corpus import Corpus
from attnlab.errors import RequestError
from attnlab.spec import Part
from attnlab.testing import Case, cases_for

FAMILIES = [Score, Weigh, Mask, Position, Project, Mixer]
PARTS = [family.resolve(name) for family in FAMILIES for name in sorted(family.members)]
PARTS += [
    Mask.resolve({"part": "window", "size": 2}),
    Mask.resolve({"part": "causal", "where": "renormalised"}),
    Position.resolve({"part": "alibi", "slopes": "one"}),
    Project.resolve({"part": "network", "hidden_layers": 3, "on": ["key"]}),
    Mixer.resolve({"part": "aft-conv", "window": 3}),
    Mixer.resolve({"part": "aft-local", "window": 2}),
    Mixer.resolve({"part": "differential", "project": "grouped", "score": "bilinear"}),
    Mixer.resolve({"part": "talking-heads", "weigh": "sparsemax", "mask": {"part": "window", "size": 3}}),
]
CASES = [case for part in PARTS for case in cases_for(part)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_part(case: Case) -> None:
    case.check()


# ---- the cases find what they are for ----------------------------------------------------------------------


def fails(part: Part, name: str) -> None:
    (case,) = (case for case in cases_for(part) if case.name == name)
    with pytest.raises(AssertionError):
        case.check()


@dataclass(frozen=True, kw_only=True)
class SeesAhead(Mask):
    """Claims to hide the future and shows one token of it."""

    hides_future: ClassVar[bool] = True

    def visible(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        return keys_S <= queries_T[:, None] + 1


@dataclass(frozen=True, kw_only=True)
class OverTheBatch(Score):
    """Lets other sequences into a score."""

    def __call__(self, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        return q_BHTd @ (k_BHSd - k_BHSd.mean((0, 1, 2))).mT * k_BHSd.mean()


@dataclass(frozen=True, kw_only=True)
class NaiveSoftmax(Weigh):
    """Right on paper; e^s overflows, and a row that sees nothing is 0/0."""

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        powers = scores_BHTS.exp() * visible
        return powers / powers.sum(-1, keepdim=True)


@dataclass(frozen=True, kw_only=True)
class CountsPadding(Weigh):
    """Divides by the length of the row, padding and all."""

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        return (scores_BHTS.sigmoid() / scores_BHTS.shape[-1]).masked_fill(~visible, 0.0)


class WrongSlope(torch.autograd.Function):
    """The square, with the gradient of the identity."""

    @staticmethod
    def forward(ctx: object, scores: Tensor) -> Tensor:
        return scores.square()

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> Tensor:
        return grad


@dataclass(frozen=True, kw_only=True)
class WrongGradient(Score):
    """A score whose gradient is not its derivative."""

    def __call__(self, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        return WrongSlope.apply(q_BHTd @ k_BHSd.mT)


@dataclass(frozen=True, kw_only=True)
class NotThatDot(Score):
    """Says that it is a dot product times one factor, and computes another."""

    def __call__(self, q_BHTd: Tensor, k_BHSd: Tensor) -> Tensor:
        return q_BHTd @ k_BHSd.mT

    def dot_scale(self, dims: Dims) -> float:
        return 2.0


@dataclass(frozen=True, kw_only=True)
class FromTheStart(Position):
    """Counts from the first new token, not from the first token: wrong while decoding."""

    def build(self, dims: Dims) -> PositionScheme:
        return CountsFromTheStart()


class CountsFromTheStart(PositionScheme):
    def embed(self, x_ND: Tensor, positions_N: Tensor) -> Tensor:
        return x_ND + (positions_N - positions_N.min())[:, None]


@dataclass(frozen=True, kw_only=True)
class Forgetful(Project):
    """Draws a matrix that no checkpoint holds."""

    def build(self, dims: Dims) -> Projection:
        return ForgetfulProjection(dims, bias=True)


class ForgetfulProjection(SeparateProjection):
    def __init__(self, dims: Dims, bias: bool) -> None:
        super().__init__(dims, bias)
        self.unsaved = torch.randn(dims.width, dims.width, dtype=torch.float64)

    def forward(self, x_ND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return super().forward(x_ND @ self.unsaved.to(x_ND.dtype))


@pytest.mark.parametrize(
    ("part", "case"),
    [
        (SeesAhead(), "causality"),
        (SeesAhead(), "cache"),
        (OverTheBatch(), "batch"),
        (CountsPadding(), "padding"),
        (CountsPadding(), "reference"),
        (NaiveSoftmax(), "large"),
        (NaiveSoftmax(), "blind"),
        (WrongGradient(), "derivative"),
        (NotThatDot(), "reference"),
        (FromTheStart(), "cache"),
        (Forgetful(), "saving"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_case_finds_what_it_is_for(part: Part, case: str) -> None:
    fails(part, case)


def test_other_families_are_refused_by_name() -> None:
    with pytest.raises(RequestError, match="no conformance cases for a corpus"):
        cases_for(Corpus.resolve("sotu"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # inside the compiler
@pytest.mark.parametrize(
    "part",
    [Mixer.resolve({"part": "attention"}), Weigh.resolve("entmax15"), Mixer.resolve("favor")],
    ids=lambda part: part.name,
)
def test_compiled(part: Part) -> None:
    if which("c++") is None and which("g++") is None:
        pytest.skip("torch.compile needs a C++ compiler")
    (case,) = (case for case in cases_for(part, compiled=True) if case.name == "compile")
    case.check()
