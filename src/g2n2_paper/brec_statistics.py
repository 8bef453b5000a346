"""Hotelling's T² for the paired comparisons of BREC: as released, and as the textbook has it.

Rows of D are differences of the embeddings of the i-th relabelings of two graphs, q rows of d
numbers. Under the hypothesis that the network tells nothing apart their mean is zero, and

    T² = q · mean(D)ᵀ S⁻¹ mean(D),   S the covariance of D,

exceeds d (q - 1) / (q - d) · F(d, q - d; 1 - α) with probability α.

What GraphPKU/BREC released (`base/test_BREC.py` at 7352599, `brec/evaluator.py` at 81f299b) is
mean(D)ᵀ S⁺ mean(D): no factor q, and a pseudo-inverse. It is compared with 72.34, which is the
limit above for T² *with* the factor, at d = 16, q = 32, α = 0.05: the released test asks 32 times
too much. As S⁺ = 0 for S = 0, it also merges graphs whose embeddings differ but are exactly
invariant, integers for instance.

Neither is a proof. Relabelling noise is not normal, and where its size differs between the two
graphs, a network that amplifies it strongly turns that into a mean. A PPGN of 7 layers (8 layers)
in float64 exceeded the limit on 9 (15) of 25 strongly regular pairs it cannot tell apart; the
released test on 0 (1). `g2n2.nn.expressivity.network_separates` merges all 25.
"""

from __future__ import annotations

from math import inf

import numpy as np
from scipy.stats import f as f_distribution

from g2n2.errors import DataError
from g2n2.nn.expressivity import Embeddings

RELEASED_THRESHOLD = 72.34
# Released: a statistic this close to that of the reliability check does not count.
RELEASED_RTOL, RELEASED_ATOL = 1e-5, 1e-6
ROUNDING = float(np.finfo(np.float64).eps)


def released_statistic(differences: Embeddings) -> float:
    """Return mean(D)ᵀ S⁺ mean(D), in the precision of D, as BREC's released code does."""
    mean, covariance = _moments(differences)
    # The cut-off of torch.linalg.pinv; numpy's own is another one.
    cutoff = max(covariance.shape) * float(np.finfo(covariance.dtype).eps)
    return float(mean @ np.linalg.pinv(covariance, rcond=cutoff) @ mean)


def released_separates(statistic: float, reliability: float) -> bool:
    """Say whether the released code counts a pair, before it looks at reliability."""
    close = np.isclose(statistic, reliability, rtol=RELEASED_RTOL, atol=RELEASED_ATOL)
    return statistic > RELEASED_THRESHOLD and not bool(close)


def hotelling_t2(differences: Embeddings, resolution: float | Embeddings = 0.0) -> float:
    """Return Hotelling's one-sample T² = q · mean(D)ᵀ S⁻¹ mean(D).

    `resolution` is the rounding error of D `[q, d]`, one for all or one per column. Its square
    joins the variances: embeddings that happen to be exactly invariant have S = 0, and a
    difference smaller than rounding is none. The statistic is infinite where the mean has a part
    along which D does not vary at all.
    """
    mean, covariance = _moments(differences.astype(np.float64))
    covariance += np.diag(np.broadcast_to(np.square(resolution), mean.shape))
    spread = np.sqrt(covariance.diagonal())
    if mean[spread == 0].any():
        return inf
    # T² does not depend on units; in those of each spread, columns of any size can be compared.
    varies = spread > 0
    mean, spread = mean[varies] / spread[varies], spread[varies]
    correlation = covariance[np.ix_(varies, varies)] / np.outer(spread, spread)
    values, vectors = np.linalg.eigh(correlation)
    parts = np.square(mean @ vectors)
    lost = values <= ROUNDING * len(values)
    if parts[lost].sum() > ROUNDING * len(values) * parts.sum():
        return inf
    return float(len(differences) * (parts[~lost] / values[~lost]).sum())


def hotelling_threshold(dimensions: int, samples: int, alpha: float = 0.05) -> float:
    """Return the value T² exceeds with probability alpha if the mean of D is zero."""
    if not 1 <= dimensions < samples:
        raise DataError(
            f"Hotelling's test needs more relabelings than embedding dimensions, got {samples} and "
            f"{dimensions}: end the network in a linear layer to 16 numbers, as BREC does, or ask "
            f"for at least {dimensions + 1} relabelings"
        )
    quantile = float(f_distribution.ppf(1 - alpha, dimensions, samples - dimensions))
    return dimensions * (samples - 1) / (samples - dimensions) * quantile


def _moments(differences: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Return the mean `[d]` and the covariance `[d, d]` of the rows."""
    mean = differences.mean(axis=0)
    centred = differences - mean
    covariance: Embeddings = centred.T @ centred / (len(differences) - 1)
    return mean, covariance
