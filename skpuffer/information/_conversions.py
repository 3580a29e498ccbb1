"""What a budget of information means for an attacker's success, and the way back.

The prior is the success of the best answer that does not look at the release.
"""

import math
from typing import Any

from scipy.optimize import brentq

from skpuffer.exceptions import value_error
from skpuffer.kernel.noise import MARGIN
from skpuffer.kernel.numbers import (
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
    check_real,
)
from skpuffer.utils._checks import check_share

#: Below this the divergence is computed from what cancels; Pinsker's bound is used.
_LEAST_BUDGET = 1e-12


def posterior_success(budget: float, prior: float) -> float:
    r"""Return the largest success of an attacker at a mutual information.

    Parameters
    ----------
    budget : float
        Bound of the mutual information between the secret and the release, in nats.
    prior : float
        Success without the release, in (0, 1): ``max(r, 1 - r)`` for a membership of
        rate `r`, ``1 / K`` for `K` equally likely secrets.

    Returns
    -------
    success : float
        The largest `p` with :math:`\mathrm{kl}(p \| \text{prior}) \le` `budget`,
        rounded up; one from a budget of ``-log(prior)`` on.

    Notes
    -----
    It holds for every question about the secret at once, on average over the prior and
    the noise.

    References
    ----------
    Xiao and Devadas (2023), PAC privacy, Theorem 1.

    Examples
    --------
    >>> from skpuffer.information import posterior_success
    >>> round(posterior_success(0.125, 0.5), 6)
    0.74464
    """
    budget = check_non_negative(budget=budget)
    prior = check_probability(prior=prior)
    if budget >= -math.log(prior):
        return 1.0
    if budget < _LEAST_BUDGET:
        return pinsker_success(budget, prior)
    root: float = brentq(
        lambda p: _kl(p, prior) / budget - 1, prior, 1.0, xtol=1e-15 * prior
    )
    return min(1.0, root * (1 + MARGIN))


def budget_for_posterior(success: float, prior: float) -> float:
    r"""Return the largest mutual information that keeps an attacker's success.

    Parameters
    ----------
    success : float
        Largest success allowed, in [prior, 1].
    prior : float
        Success without the release, in (0, 1).

    Returns
    -------
    budget : float
        :math:`\mathrm{kl}(\text{success} \| \text{prior})` in nats.

    Examples
    --------
    >>> from skpuffer.information import budget_for_posterior
    >>> round(budget_for_posterior(0.75, 0.5), 6)
    0.130812
    """
    prior, success = check_probability(prior=prior), check_real(success=success)
    if not prior <= success <= 1:
        raise value_error("pac.success_below_prior", success=success, prior=prior)
    return _kl(success, prior)


def membership_advantage(budget: float) -> float:
    """Return the largest advantage of a membership attack at a mutual information.

    Parameters
    ----------
    budget : float
        Bound of the information between a fair membership and the release, in nats.

    Returns
    -------
    advantage : float
        True less false positive rate, ``2 * posterior_success(budget, 0.5) - 1``.

    Examples
    --------
    >>> from skpuffer.information import membership_advantage
    >>> round(membership_advantage(0.125), 6)
    0.489281
    """
    return 2 * posterior_success(budget, 0.5) - 1


def pinsker_success(budget: float, prior: float) -> float:
    """Return a bound on an attacker's success by Pinsker's inequality.

    Parameters
    ----------
    budget : float
        Bound of the mutual information, in nats.
    prior : float
        Success without the release, in (0, 1).

    Returns
    -------
    success : float
        ``prior + sqrt(budget / 2)``, at most one. Never below `posterior_success`.

    Examples
    --------
    >>> from skpuffer.information import pinsker_success
    >>> pinsker_success(0.125, 0.5)
    0.75
    """
    budget = check_non_negative(budget=budget)
    return min(1.0, check_probability(prior=prior) + math.sqrt(budget / 2))


def total_variation_success(total_variation: float, prior: float) -> float:
    """Return a bound on an attacker's success by the total variation information.

    Parameters
    ----------
    total_variation : float
        Distance of the joint law of secret and release from their product, in [0, 1].
    prior : float
        Success without the release, in (0, 1).

    Returns
    -------
    success : float
        ``prior + total_variation``, at most one.

    Examples
    --------
    >>> from skpuffer.information import total_variation_success
    >>> total_variation_success(0.25, 0.5)
    0.75
    """
    distance = _closed_share(total_variation=total_variation)
    return min(1.0, check_probability(prior=prior) + distance)


def chi2_success(chi2: float, prior: float) -> float:
    """Return a bound on an attacker's success by the chi-squared information.

    Parameters
    ----------
    chi2 : float
        Chi-squared divergence of the joint law of secret and release from their
        product.
    prior : float
        Success without the release, in (0, 1).

    Returns
    -------
    success : float
        ``prior + sqrt(chi2 * prior * (1 - prior))``, at most one.

    Examples
    --------
    >>> from skpuffer.information import chi2_success
    >>> chi2_success(0.25, 0.5)
    0.75
    """
    chi2, prior = check_non_negative(chi2=chi2), check_probability(prior=prior)
    return min(1.0, prior + math.sqrt(chi2 * prior * (1 - prior)))


def dp_posterior(epsilon: float, delta: float = 0.0, *, prior: float = 0.5) -> float:
    """Return the largest success of a membership attack under differential privacy.

    Parameters
    ----------
    epsilon : float
        In nats.
    delta : float, default=0.0
        In [0, 1).
    prior : float, default=0.5
        ``max(r, 1 - r)`` of a membership of rate `r`, in [1/2, 1). Above 1/2, `delta`
        must be zero.

    Examples
    --------
    >>> from skpuffer.information import dp_posterior
    >>> round(dp_posterior(1.0), 6)
    0.731059
    """
    epsilon = check_non_negative(epsilon=epsilon)
    delta, prior = check_share(delta=delta), check_probability(prior=prior)
    if prior < 0.5:
        raise value_error("pac.prior_success_out_of_range", prior=prior)
    if prior > 0.5 and delta > 0:
        raise value_error("pac.delta_needs_fair_prior", delta=delta, prior=prior)
    # odds grow by exp(epsilon) at most; written so that it does not overflow
    return 1 - (1 - delta) * (1 - prior) / (
        (1 - prior) + prior * math.exp(min(epsilon, 700.0))
    )


def dp_epsilon(success: float, delta: float = 0.0) -> float:
    """Return the epsilon that bounds the success of a membership attack of fair prior.

    Parameters
    ----------
    success : float
        In ((1 + delta) / 2, 1].
    delta : float, default=0.0
        In [0, 1).

    Returns
    -------
    epsilon : float
        In nats; infinite where `success` is one.

    Raises
    ------
    ValueError
        If `delta` alone already allows that success.

    Examples
    --------
    >>> from skpuffer.information import dp_epsilon
    >>> round(dp_epsilon(0.75), 6)
    1.098612
    """
    delta, success = check_share(delta=delta), check_real(success=success)
    if not (1 + delta) / 2 < success <= 1:
        raise value_error("pac.success_not_above_delta", success=success, delta=delta)
    return math.inf if success == 1 else math.log((success - delta) / (1 - success))


def dp_equivalent(budget: float, delta: float = 0.0) -> float:
    """Return the epsilon that allows a membership attack the same success as a budget.

    Parameters
    ----------
    budget : float
        Mutual information, in nats.
    delta : float, default=0.0
        In [0, 1).

    Returns
    -------
    epsilon : float
        In nats; infinite from a budget of log 2 on.

    Raises
    ------
    ValueError
        If `budget` is so small that `delta` alone allows more.

    Notes
    -----
    **Not a conversion**, but a comparison: mutual information is an average over a
    known prior and implies differential privacy at no epsilon.

    Examples
    --------
    >>> from skpuffer.information import dp_equivalent
    >>> round(dp_equivalent(0.125), 6)
    1.070228
    """
    return dp_epsilon(posterior_success(check_positive(budget=budget), 0.5), delta)


def fano_bound(accuracy: float, n_classes: int) -> float:
    r"""Return the least information of a release from which labels are predicted.

    Parameters
    ----------
    accuracy : float
        Share of equally likely labels that are predicted right, in [0, 1]. For a
        sample, give its lower confidence limit.
    n_classes : int
        Number of labels, at least two.

    Returns
    -------
    information : float
        Fano's bound :math:`\log K - h(a) - (1 - a) \log(K - 1)` in nats. A lower budget
        is not kept.

    Examples
    --------
    >>> from skpuffer.information import fano_bound
    >>> round(fano_bound(0.868, 4), 4)
    0.8511
    """
    accuracy = _closed_share(accuracy=accuracy)
    return _kl(accuracy, 1 / check_count(least=2, n_classes=n_classes))


def disclosure_bound(probability: float, loss: float) -> float:
    r"""Return the least information that an event of large loss implies.

    Parameters
    ----------
    probability : float
        Probability of the event, in (0, 1).
    loss : float
        Least :math:`\log p(x | y) / p(x)` on the event, in nats.

    Returns
    -------
    information : float
        :math:`p L + (1 - p) \log(1 - p)`, at least zero, in nats.

    Examples
    --------
    >>> from skpuffer.information import disclosure_bound
    >>> round(disclosure_bound(0.1, 20.0), 6)
    1.905176
    """
    p = check_probability(probability=probability)
    loss = check_non_negative(finite=True, loss=loss)
    return max(0.0, p * loss + (1 - p) * math.log1p(-p))


def _kl(p: float, q: float) -> float:
    """Divergence of a coin of bias p from one of bias q in (0, 1), in nats."""
    return max(0.0, _term(p, q) + _term(1 - p, 1 - q))


def _term(p: float, q: float) -> float:
    if p == 0:
        return 0.0
    # of the difference, so that little is lost where the two are close
    return p * (math.log1p((p - q) / q) if p > q / 2 else math.log(p / q))


def _closed_share(**named: Any) -> float:
    """Return the one named value as a float in [0, 1]."""
    ((name, given),) = named.items()
    value = check_real(**named)
    if not 0 <= value <= 1:
        raise value_error("pac.share_out_of_range", name=name, given=given)
    return value
