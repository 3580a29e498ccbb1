"""One budget for several releases: in which proportions, and how much of it each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from skpuffer.exceptions import value_error
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    QueryRelease,
    Sensitivity,
)
from skpuffer.scenarios import RecordScenario, Scenario

from ._base import Accountant

if TYPE_CHECKING:
    from skpuffer.noise import Noise
    from skpuffer.privacy import Certificate


#: Of the budget, what a search may leave unspent.
_LEFT = 1e-4

#: Above a target by so much is rounding, as of a sum that is the target.
_ROUNDING = 1e-9


def common_scale(
    total: Callable[[float], float], target: float, shares: Sequence[float]
) -> float:
    """Return how far the budgets of several releases may be scaled up together.

    The release i gets the epsilon ``scale * shares[i]``, with shares that sum to one.
    The increasing joint cost ``total(scale)`` is at most `target`, but for rounding,
    and the scale at most ``target / max(shares)``.
    """

    def miss(log_scale: float) -> float:
        cost = total(math.exp(log_scale))
        return math.log(max(min(cost, 1e300), 1e-300) / target)

    start = math.log(target)
    if abs(at_start := miss(start)) <= _ROUNDING:
        return target
    low = high = start
    if at_start < 0:
        high = math.log(target / max(shares))
        # one release alone, say, or others that cost nothing
        if miss(high) <= _ROUNDING:
            return math.exp(high)
    else:
        # whatever rests on events costs more than the sum
        while miss(low) > 0:
            low, high = low - 1, low
            if start - low > 20:
                raise value_error("budget.no_part_small_enough")
    root = brentq(miss, low, high, xtol=_LEFT / 4)
    # found to so many digits; what is returned meets the target as evaluated
    while miss(root) > 0:
        root -= _LEFT / 4
    return math.exp(root)


def shares_of_least_error(errors: Sequence[float | None]) -> list[float]:
    """Return in which proportions a budget makes the sum of squared errors least.

    Under a bound on the sum of squared epsilons an error ``r / e`` asks for e in
    proportion to the root of r: minimise ``(r / e)**2 + multiplier * e**2``. `errors`
    are those at one epsilon. Shares are equal if one is not known, or is not positive
    and finite.
    """
    known = [e for e in errors if e is not None and 0 < e < math.inf]
    if len(known) < len(errors):
        return [1 / len(errors)] * len(errors)
    roots = np.sqrt(np.array(known) / max(known))
    return [float(share) for share in roots / roots.sum()]


def relative_noise(
    release: Any, noise: Noise, sensitivity: float | None
) -> float | None:
    """Return the expected length of a noise, relative to what it is added to, or None.

    ``std / sensitivity * sqrt(dim) / n``; of gradients
    ``std / sensitivity * sqrt(dim) / (batch * sqrt(T))``, as the noise of T steps is
    averaged. All of it is public.
    """
    # By exact type: of another kind nothing is known. Coordinates in the unit of each.
    kind = type(release)
    if not sensitivity or kind not in (QueryRelease, AdaptiveRelease, GradientRelease):
        return None
    dim, records = release.dim, float(release.n_records)
    if kind is GradientRelease:
        context = release.context
        dim = dim or max(1, context.n_features or 1)
        records = release.divisor * math.sqrt(release.n_steps)
    spread = np.asarray(noise.std(1 if kind is AdaptiveRelease else dim), dtype=float)
    if kind is QueryRelease:
        spread = spread / release.unit_array
        # of a vector that is read number by number, one of them
        dim = getattr(release.contribution, "error_dim", dim)
    length = math.sqrt(float(np.mean(spread**2)) * dim)
    return length / (sensitivity * records)


# -- shares of a budget, as Gaussian noise composes ------------------------------------

#: A release of sensitivity one, by which shares of a budget are measured.
_UNIT = QueryRelease(
    query=lambda X, y: X.sum(axis=0),
    n_records=1,
    dim=1,
    sensitivity=Sensitivity(add_remove={2: 1.0}, replace={2: 1.0}),
    name="share",
)


def certificate_of_share(
    accountant: Accountant, scenario: Scenario, share: float
) -> Certificate:
    """Return what Gaussian noise promises that costs a share of a budget.

    Squares of ``sensitivity / scale`` add up: scales are that of the whole budget over
    the roots of shares that sum to one (Dong, Roth and Su, 2022, Corollary 3.3).
    """
    whole: Any = accountant.calibrate(_UNIT, scenario).noise
    noise = whole.with_scale(whole.scale / math.sqrt(share))
    return accountant.certify(noise, _UNIT, scenario)


# -- norm and relation in which the shares of an adaptive release are best laid out ----


class Layout(NamedTuple):
    """How to lay out shares: parameters of :class:`AdaptiveRelease`.

    Parameters
    ----------
    norm : float
        1 for Laplace noise, else 2.
    relation : {'add_remove', 'replace'}
    """

    norm: float
    relation: str


def stage_layout(accountant: Accountant, scenario: Scenario) -> Layout:
    """Return the layout that spends all of a budget as the shares say.

    Any layout keeps the promise, and only the shares of stages may differ.
    """
    norms = {
        asked._chosen_noise().norm
        for asked in accountant._asked(AdaptiveRelease)
        if AdaptiveRelease in asked.reads
    }
    # blocks of records have the relation of their own scenario
    inner = getattr(scenario, "scenario", scenario)
    presence = isinstance(inner, RecordScenario) and inner.relation == "add_remove"
    return Layout(
        norm=1.0 if norms == {1.0} else 2.0,
        # a belief, and whatever bounds how many records differ, is about their values
        relation="add_remove" if presence else "replace",
    )
