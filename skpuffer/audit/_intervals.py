"""Confidence intervals of rates and of areas under ROC curves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats

__all__ = ["area", "area_interval", "clopper_pearson"]


def clopper_pearson(successes: int, trials: int, failure: float) -> tuple[float, float]:
    """Lower and upper bound of a rate, each wrong with probability `failure` at most.

    Parameters
    ----------
    successes : int
        From 0 to `trials`.
    trials : int
        Independent ones.
    failure : float
        In (0, 1), of each of the two bounds.

    Returns
    -------
    low, high : float

    References
    ----------
    Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated in
    the case of the binomial.

    Examples
    --------
    >>> from skpuffer.audit import clopper_pearson
    >>> low, high = clopper_pearson(0, 1000, failure=0.05)
    >>> low, round(high, 6)  # the rule of three
    (0.0, 0.002991)
    """
    low, high = 0.0, 1.0
    if successes > 0:
        low = special.betaincinv(successes, trials - successes + 1, failure)
    if successes < trials:
        high = special.betainccinv(successes + 1, trials - successes, failure)
    return float(low), float(high)


def _placements(scores: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Share of the other kind that each score beats, equal ones half."""
    n, m = len(scores), len(others)
    ranks = stats.rankdata(np.concatenate([scores, others]))
    of_scores = (ranks[:n] - stats.rankdata(scores)) / m
    of_others = 1 - (ranks[n:] - stats.rankdata(others)) / n
    return of_scores, of_others


def area(scores: Floats, others: Floats) -> float:
    """Area under the ROC curve: probability that a score exceeds one of the others.

    Parameters
    ----------
    scores, others : ndarray of shape (n,) and (m,)
        Of members and of others. Equal ones count half.

    Returns
    -------
    float
    """
    return float(_placements(scores, others)[0].mean())


def area_interval(
    scores: Floats, others: Floats, confidence: float, method: str = "delong"
) -> tuple[float, float]:
    """Two-sided interval of the area under the ROC curve.

    Parameters
    ----------
    scores, others : ndarray of shape (n,) and (m,)
        Independent draws of each kind.
    confidence : float
    method : {'delong', 'pairs'}, default='delong'
        'delong' is asymptotic. 'pairs' holds at every size: each score meets another
        that no other score meets, and what is left is a binomial rate. It is the one
        taken where the variance of the first is zero or unknown.

    Returns
    -------
    low, high : float

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), Comparing the areas under two or more
    correlated receiver operating characteristic curves; on the scale of the logit, as
    in Qin and Hotilovac (2008), Comparison of non-parametric confidence intervals for
    the area under the ROC curve of a continuous-scale diagnostic test.
    """
    failure = (1 - confidence) / 2
    if method == "delong" and min(len(scores), len(others)) > 1:
        mine, theirs = _placements(scores, others)
        value = float(mine.mean())
        variance = mine.var(ddof=1) / len(mine) + theirs.var(ddof=1) / len(theirs)
        if variance > 0 and 0 < value < 1:
            # the delta rule: d logit(a) = da / (a (1 - a))
            spread = math.sqrt(variance) / (value * (1 - value))
            reach = float(special.ndtri(1 - failure)) * spread
            low, high = special.expit(special.logit(value) + np.array([-reach, reach]))
            return float(low), float(high)
    # who meets whom, and who wins where they are equal, must not follow the scores: a
    # seed of its own, so that an interval is the same whenever it is asked for
    rng = np.random.default_rng(0)
    n = min(len(scores), len(others))
    mine, theirs = rng.permutation(scores)[:n], rng.permutation(others)[:n]
    wins = (mine > theirs) | ((mine == theirs) & (rng.random(n) < 0.5))
    return clopper_pearson(int(wins.sum()), n, failure)
