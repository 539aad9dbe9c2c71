"""The error of a mean over seeds and documents, when both are samples.

Every run reads the same documents, so the differences form a table: S seeds by N documents.
    difference[s, d] = effect + seed[s] + document[d] + rest[s, d]
A t over the S row means forgets that other documents would have given another mean; a test over the
N column means forgets the same of seeds. Here both are counted, and what both count twice, the rest,
is taken off once.

Shapes: S seeds, N documents; any number of axes may stand before them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# The spread of two or three documents may be small by chance; then its share must not count.
FEW_DOCUMENTS = 4


@dataclass(frozen=True)
class Crossed:
    """A weighted mean and where its error comes from: three variances, each already of the mean."""

    effect: Array
    seed_variance: Array
    document_variance: Array
    rest_variance: Array
    seed_dof: float
    document_dof: float

    @property
    def variance(self) -> Array:
        """The error variance of `effect`, never below what seeds or documents alone give."""
        both = self.seed_variance + self.document_variance - self.rest_variance
        return np.maximum(both, np.maximum(self.seed_variance, self.document_variance))

    @property
    def dof(self) -> Array:
        """Degrees of freedom: those of seeds and of documents, their inverses weighed by share of variance.

        Satterthwaite weighs by squared shares. In the far tail, where looks and several arms are judged,
        that is too bold when a handful of seeds meets many documents: 7 % false verdicts for 5 %.
        """
        seed_share = np.divide(
            self.seed_variance, self.variance, out=np.ones_like(self.variance), where=self.variance > 0
        )
        if self.document_dof < FEW_DOCUMENTS:
            return np.full_like(seed_share, min(self.seed_dof, self.document_dof))
        return np.asarray(1 / (seed_share / self.seed_dof + (1 - seed_share) / self.document_dof))


def crossed_error(differences_SN: Array, weights_N: Array) -> Crossed:
    """Mean and error of a table of differences; `weights_N` sums to one; needs two seeds.

    With one document there is nothing to learn about documents: its variance is 0, and the caller says
    that the answer holds for this document only.
    """
    seeds = differences_SN.shape[-2]
    mean_S = differences_SN @ weights_N
    effect = mean_S.mean(-1)
    seed_variance = mean_S.var(-1, ddof=1) / seeds
    square, cube, fourth = ((weights_N**power).sum() for power in (2, 3, 4))
    # For equal weights this is N/(N-1); in general it makes both estimates unbiased if documents are alike.
    shortfall = square - 2 * cube + square**2
    if shortfall <= 1e-12:
        nothing = np.zeros_like(effect)
        return Crossed(effect, seed_variance, nothing, nothing, seeds - 1.0, np.inf)
    unbiased = square / shortfall
    mean_N = differences_SN.mean(-2)
    document_variance = unbiased * ((mean_N - effect[..., None]) ** 2 @ weights_N**2)
    rest_SN = differences_SN - mean_S[..., None] - mean_N[..., None, :] + effect[..., None, None]
    rest_variance = unbiased * ((rest_SN**2).sum(-2) @ weights_N**2) / (seeds * (seeds - 1))
    # As many equally weighted documents would have given this precise a variance.
    document_dof = square**2 / fourth - 1
    return Crossed(effect, seed_variance, document_variance, rest_variance, seeds - 1.0, document_dof)
