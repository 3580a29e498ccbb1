r"""Upper bounds of mutual information that hold with a stated probability.

A trained decoder bounds the information from below, and so certifies nothing.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import accumulate, repeat
from operator import mul

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement, UncertifiedError, value_error
from skpuffer.kernel.numbers import (
    check_count,
    check_finite,
    check_non_negative,
    check_positive,
    check_probability,
)

from ._dp_mean import mean_lower_bound, mean_upper_bound


@dataclass(frozen=True)
class InformationBound:
    """An upper bound of mutual information, and how far it may be relied on.

    Parameters
    ----------
    upper : float
        The bound in nats.
    estimate : float
        Mean of the same draws in nats: what is likely, and no bound.
    gamma : float
        Probability with which the bound may fail.
    method : {'betting', 'bernstein', 'asymptotic'}
        See `mean_lower_bound`.
    n_draws : int
        Number of independent draws it rests on.

    Examples
    --------
    >>> from skpuffer.information import InformationBound
    >>> bound = InformationBound(0.36, 0.34, 0.05, "betting", 10_000)
    >>> bound.certified, bound.upper
    (True, 0.36)
    """

    upper: float
    estimate: float
    gamma: float
    method: str
    n_draws: int

    @property
    def certified(self) -> bool:
        """Whether it holds at this number of draws, not in the limit only."""
        return self.method != "asymptotic"


def entropy_bound(
    entropies: ArrayLike,
    entropy: float,
    n_secrets: int,
    *,
    gamma: float,
    method: str = "betting",
) -> InformationBound:
    r"""Bound mutual information by the entropies of exact posteriors.

    Parameters
    ----------
    entropies : array-like of shape (n_draws,)
        Entropy :math:`-\sum_j \pi_j(y) \log \pi_j(y)` of the exact posterior of the
        secret given each release `y` in nats. The releases are independent draws from
        the prior and the noise, neither stratified nor antithetic, made after the noise
        was fixed.
    entropy : float
        Entropy of the secret before the release in nats.
    n_secrets : int
        Number of values of the secret, at least two. If equal outputs were merged, use
        their number and their `entropy`.
    gamma : float
        Probability with which the bound may fail, in (0, 1). Several secrets share it.
    method : {'betting', 'bernstein', 'asymptotic'}, default='betting'
        See `mean_lower_bound`. 'asymptotic' certifies nothing.

    Returns
    -------
    bound : InformationBound

    Raises
    ------
    ValueError
        If an entropy is not in ``[0, log(n_secrets)]``, as losses of a decoder may be.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.information import entropy_bound
    >>> entropies = np.random.default_rng(0).uniform(0.1, 0.5, size=10_000)
    >>> round(entropy_bound(entropies, np.log(2), 2, gamma=0.05).upper, 2)
    0.4
    """
    n_secrets = check_count(least=2, n_secrets=n_secrets)
    largest = math.log(n_secrets)
    entropy = check_non_negative(finite=True, entropy=entropy)
    if entropy > largest * (1 + 1e-9):
        raise value_error(
            "pac.entropy_exceeds_log_secrets", entropy=entropy, n_secrets=n_secrets
        )
    draws = check_finite(entropies=entropies)
    if draws.ndim != 1 or len(draws) < 2:
        raise value_error("pac.entropies_too_few_draws", shape=draws.shape)
    if draws.min() < -1e-9 or draws.max() > largest + 1e-9:
        raise value_error("pac.entropies_out_of_range")
    left = mean_lower_bound(draws, 0.0, largest, gamma, method)
    upper, estimate = max(0.0, entropy - left), entropy - float(draws.mean())
    return InformationBound(upper, estimate, float(gamma), method, len(draws))


def density_bound(
    log_ratios: ArrayLike,
    largest: float,
    *,
    gamma: float,
    floor: float = 5.0,
    method: str = "betting",
) -> InformationBound:
    r"""Bound mutual information by any model of the output's law.

    Parameters
    ----------
    log_ratios : array-like of shape (n_draws,) or (n_draws, n_noise)
        :math:`\log p_B(B) - \log q(M + B)` of independent fresh outputs `M`, with one
        or several draws of the noise `B` to each. `q` is any probability **density**,
        fixed before they were drawn.
    largest : float
        Proved bound of every log ratio in nats; not the largest one seen.
    gamma : float
        Probability with which the bound may fail, in (0, 1).
    floor : float, default=5.0
        Positive. Log ratios are raised to at least ``-floor``, which raises their mean.
    method : {'betting', 'bernstein', 'asymptotic'}, default='betting'
        See `mean_lower_bound`. 'asymptotic' certifies nothing.

    Returns
    -------
    bound : InformationBound

    Raises
    ------
    ValueError
        If a log ratio is above `largest`, or a parameter is out of its range.

    See Also
    --------
    OutputModel : A density of which the bound is proved.

    Notes
    -----
    The mean of the log ratio is the mutual information plus the divergence of the
    release from `q`. Several draws of the noise to one output count as one draw.

    References
    ----------
    Poole et al. (2019), On variational bounds of mutual information, Section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.information import density_bound
    >>> ratios = np.random.default_rng(0).uniform(0.2, 0.4, size=1000)
    >>> round(density_bound(ratios, 2.0, gamma=0.05).upper, 3)
    0.311
    """
    floor = check_positive(floor=floor)
    ratios = check_finite(log_ratios=log_ratios)
    if ratios.ndim not in (1, 2) or not ratios.size or len(ratios) < 2:
        raise value_error("pac.log_ratios_too_few_draws", shape=ratios.shape)
    # at least zero: a smaller bound would leave no information, and no range to bet on
    largest = check_non_negative(finite=True, largest=largest)
    if ratios.max() > largest + 1e-9:
        raise value_error("pac.largest_below_log_ratio")
    draws = np.maximum(ratios.reshape(len(ratios), -1), -floor).mean(axis=1)
    upper = mean_upper_bound(draws, -floor, largest, gamma, method)
    upper, estimate = max(0.0, upper), float(draws.mean())
    return InformationBound(upper, estimate, float(gamma), method, len(draws))


def largest_bound(bounds: Iterable[InformationBound]) -> InformationBound:
    """Bound the largest of several leakages, of several priors or secrets.

    Parameters
    ----------
    bounds : iterable of InformationBound
        Bounds of the same noise. They may rest on the same draws.

    Returns
    -------
    bound : InformationBound
        The largest; its `gamma` is their sum. It is certified if all are.

    Examples
    --------
    >>> from skpuffer.information import InformationBound, largest_bound
    >>> bounds = [InformationBound(u, 0.1, 0.01, "betting", 100) for u in (0.2, 0.3)]
    >>> found = largest_bound(bounds)
    >>> found.upper, found.gamma
    (0.3, 0.02)
    """
    given = list(bounds)
    if not given:
        raise value_error("pac.bounds_empty")
    worst = max(given, key=lambda bound: bound.upper)
    # one that only holds in the limit leaves all of them so
    weakest = next((bound for bound in given if not bound.certified), worst)
    return replace(
        worst,
        gamma=math.fsum(bound.gamma for bound in given),
        method=weakest.method,
        n_draws=min(bound.n_draws for bound in given),
    )


def certify_scale(
    bound: Callable[[float, float], InformationBound],
    scales: ArrayLike,
    budget: float,
    gamma: float,
) -> tuple[float, InformationBound]:
    """Return the smallest of the declared scales whose bound keeps a budget.

    Parameters
    ----------
    bound : callable
        ``bound(scale, gamma)``, which holds with probability ``1 - gamma``. All scales
        may be bounded from one bank of draws.
    scales : array-like of shape (n_scales,)
        Scales of the noise, declared before the draws are made.
    budget : float
        In nats.
    gamma : float
        Probability with which any of the bounds may fail, in (0, 1), shared equally.

    Returns
    -------
    scale : float
    bound : InformationBound
        At that scale, with `gamma` for the search as a whole.

    Raises
    ------
    UncertifiedError
        If no scale keeps the budget, or a bound is not certified.

    Examples
    --------
    >>> from skpuffer.information import InformationBound, certify_scale
    >>> def bound(scale, gamma):
    ...     return InformationBound(1 / scale, 1 / scale, gamma, "betting", 100)
    >>> certify_scale(bound, [1.0, 2.0, 4.0], 0.6, gamma=0.05)[0]
    2.0
    """
    budget, gamma = check_positive(budget=budget), check_probability(gamma=gamma)
    declared = np.sort(check_finite(scales=scales).ravel())
    if not declared.size or declared[0] <= 0:
        raise value_error("pac.scales_empty_or_not_positive")
    tries = ((scale, gamma / len(declared)) for scale in declared.tolist())
    kept = _first_kept(bound, tries, budget, gamma)
    if kept is not None:
        return kept
    raise UncertifiedError(
        Statement(
            "pac.no_declared_scale_certified", n_declared=len(declared), budget=budget
        )
    )


def retry_scale(
    bound: Callable[[float, float], InformationBound],
    scale: float,
    budget: float,
    gamma: float,
    *,
    factor: float = 1.05,
    n_tries: int = 50,
) -> tuple[float, InformationBound]:
    """Enlarge the noise until a bound keeps a budget, with fresh draws each time.

    Parameters
    ----------
    bound : callable
        ``bound(scale, gamma)``, which holds with probability ``1 - gamma``. It must
        make **fresh** draws at each call, as the scale depends on those that failed.
    scale : float
        Scale of the noise, tried first.
    budget : float
        In nats.
    gamma : float
        Probability with which any bound may fail, in (0, 1); try k takes
        ``gamma / 2**k``.
    factor : float, default=1.05
        Growth of the scale from one try to the next, above one.
    n_tries : int, default=50
        Tries at most.

    Returns
    -------
    scale : float
    bound : InformationBound
        At that scale, with `gamma` for the search as a whole.

    Raises
    ------
    UncertifiedError
        If no try keeps the budget, or a bound is not certified.

    Examples
    --------
    >>> from skpuffer.information import InformationBound, retry_scale
    >>> def bound(scale, gamma):
    ...     return InformationBound(1 / scale, 1 / scale, gamma, "betting", 100)
    >>> retry_scale(bound, 1.0, 0.5, gamma=0.05, factor=2.0)[0]
    2.0
    """
    scale, budget = check_positive(scale=scale), check_positive(budget=budget)
    gamma, factor = check_probability(gamma=gamma), check_positive(factor=factor)
    if factor <= 1:
        raise value_error("pac.retry_factor_not_above_one", factor=factor)
    n_tries = check_count(n_tries=n_tries)
    scales = accumulate(repeat(factor, n_tries - 1), mul, initial=scale)
    tries = ((scale, gamma * 0.5**k) for k, scale in enumerate(scales, 1))
    kept = _first_kept(bound, tries, budget, gamma)
    if kept is not None:
        return kept
    raise UncertifiedError(
        Statement("pac.no_tried_scale_certified", n_tries=n_tries, budget=budget)
    )


def _first_kept(
    bound: Callable[[float, float], InformationBound],
    tries: Iterable[tuple[float, float]],
    budget: float,
    gamma: float,
) -> tuple[float, InformationBound] | None:
    """First of some scales, each with its share of what may fail, that is certified."""
    for scale, share in tries:
        found = bound(scale, share)
        if not found.certified:
            raise UncertifiedError(Statement("pac.asymptotic_method_certifies_nothing"))
        if found.upper <= budget:
            return scale, replace(found, gamma=gamma)
    return None
