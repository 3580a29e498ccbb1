"""Kantorovich mechanism: the longest move of a plan that is optimal for W_1."""

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from skpuffer.distributions import Distribution
from skpuffer.distributions._distributions import cached_distribution_distance
from skpuffer.distributions._weak_cache import remembered_with
from skpuffer.exceptions import InfiniteDistanceError, Statement, value_error
from skpuffer.kernel.noise import MARGIN
from skpuffer.kernel.numbers import check_positive, check_probability, lengths_of
from skpuffer.kernel.sums import SensitivityBound, distribution_sensitivity
from skpuffer.noise import Noise
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import (
    BoundScenario,
    OutputDistributions,
    RecordDistributions,
)
from skpuffer.transport import transport_plan

from ._base import _AdditiveAccountant
from ._couplings import has_masses, lattice_moves, left_out_text, mass_error


class Kantorovich(_AdditiveAccountant):
    """Noise that covers the longest move of a transport plan optimal for W_1.

    The longest move of such a plan bounds W_inf from above. It may be much longer, and
    plans optimal for W_1 are not unique: :class:`GeneralWasserstein` never needs more
    noise. On one coordinate the two mechanisms are the same.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats of a pure promise.
    delta : float, default=None
        If given, the plan's longest moves, up to this mass for each pair of secrets,
        are left out, and the promise is an (epsilon, delta) one.
    noise : {'auto', 'laplace', 'generalized_gaussian', 'generalized_cauchy', \
'discrete_laplace'} or Noise, default='auto'
        Family of the noise with a finite pure cost, or a noise whose scale calibration
        replaces. 'auto' is Laplace noise, or discrete Laplace noise for integers.
    beta : float, default=None
        Shape of generalised Gaussian noise; 1 is the only one with a pure cost.

    See Also
    --------
    GeneralWasserstein : Covers W_inf itself.
    ApproximateWasserstein : Leaves out a mass in the best way.

    References
    ----------
    Ding (2022), Kantorovich mechanism for Pufferfish privacy; Pierquin et al. (2024),
    Rényi Pufferfish privacy, Theorem 3.3.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein, Kantorovich
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.scenarios import LawsScenario
    >>> u = Discrete([[3, 2], [4, 3], [2, 0], [5, 2]])
    >>> v = Discrete([[0, 0], [3, 3], [2, 0], [3, 2]])
    >>> release = QueryRelease(query=lambda X, y: X.sum(axis=0), n_records=4, dim=2)
    >>> scenario = LawsScenario([(u, v)])
    >>> Kantorovich(epsilon=1.0).calibrate(release, scenario).certificate.sensitivity
    7.0
    >>> pure = GeneralWasserstein(epsilon=1.0, alpha=float("inf"), noise="laplace")
    >>> pure.calibrate(release, scenario).certificate.sensitivity
    3.0
    """

    # given the event a pure promise, where it takes all of delta
    _all_spent = operator.le

    needs = (OutputDistributions, RecordDistributions)
    _source = Statement("source.kantorovich_mechanism")

    #: A pure promise: there is no order to choose.
    alpha: float = math.inf

    _usual_family = "laplace"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        noise: str | Noise = "auto",
        beta: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.beta = beta

    def _check_parameters(self, noise: Noise) -> None:
        # Ding's mechanism is a pure one. A delta pays for the moves left out, and given
        # that they are, what the noise promises is pure again.
        check_positive(epsilon=self.epsilon)
        if self.delta is not None:
            check_probability(delta=self.delta)
        if not noise.has_bounded_loss:
            raise value_error("noise.no_finite_pure_cost", family=noise.family)

    def _sensitivity_bound(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, norm: float
    ) -> SensitivityBound:
        sensitivity = _longest_of_plans(fact, release, norm, self.delta or 0.0)
        if math.isinf(sensitivity.radius):
            raise InfiniteDistanceError(self._infinite(sensitivity, release, bound))
        return sensitivity


def _longest_of_plans(
    fact: OutputDistributions | RecordDistributions,
    release: QueryRelease,
    norm: float,
    delta: float,
) -> SensitivityBound:
    """Bound the sensitivity of a release's output by plans optimal for W_1."""
    # the event of the fact and the moves left out share delta, by the union bound
    left_out = max(0.0, delta - fact.delta)
    pairs = list(fact.pairs_of_distributions())
    found = _longest_each(
        [(u, v) for *_, u, v in pairs], *fact.compared_in(release, norm), left_out
    )
    kept_all = all(all_of_it for _, all_of_it in found)
    at = max(range(len(found)), key=lambda each: found[each][0])
    radius, (prior, i, j, *_) = found[at][0], pairs[at]
    worst = (prior, fact.secrets[i], fact.secrets[j])
    # where no plan left anything out, delta is not spent and the promise is pure
    known: dict[str, Any] = {"worst": worst}
    if not kept_all:
        assumptions = (*fact.assumptions, left_out_text(left_out))
        known |= {"delta": delta, "assumptions": assumptions}
    radius = fact.output_move(radius, release, norm)
    return distribution_sensitivity(fact, radius, release, norm, **known)


def _longest_each(
    pairs: Sequence[tuple[Distribution, Distribution]],
    norm: float,
    units: tuple[float, ...] | None,
    left_out: float,
) -> list[tuple[float, bool]]:
    """Longest move of a plan of each pair, and whether it is the longest of all."""
    on_lattice = lattice_moves(pairs) if left_out > 0 else None
    if on_lattice is not None:
        steps, masses, error = on_lattice
        spare = (left_out - 2 * error) * (1 - MARGIN)
        if spare > 0:
            # masses of moves of so many steps or more
            beyond = np.cumsum(masses[:, ::-1], axis=1)[:, ::-1]
            far = np.count_nonzero(beyond > spare, axis=1) - 1
            lengths = lengths_of(steps / (1.0 if units is None else units), norm)
            # of distributions within the error, and not of those computed
            whole = [
                cached_distribution_distance(u, v, norm, units, math.inf)
                for u, v in pairs
            ]
            return [
                (length, length >= longest * (1 - MARGIN))
                for length, longest in zip(lengths[far].tolist(), whole, strict=True)
            ]
    return [_longest(u, v, norm, units, left_out) for u, v in pairs]


@remembered_with(2)
def _longest(
    u: Distribution,
    v: Distribution,
    norm: float,
    units: tuple[float, ...] | None,
    left_out: float,
) -> tuple[float, bool]:
    """Longest move of a plan optimal for W_1, and whether it is the longest of all."""
    # each distribution is within the error of its masses in total variation, and what
    # either lacks of the true one counts as left out
    error = mass_error(u, v)
    left_out = max(0.0, left_out - 2 * error)
    # on one coordinate the monotone plan is optimal for W_inf too
    # (with masses known up to an error, a plan would be that of other distributions)
    whole = left_out == 0 and (u.dim == 1 or error > 0)
    if whole or not (has_masses(u) and has_masses(v)):
        return cached_distribution_distance(u, v, norm, units, math.inf), True
    # Optimal for the mean distance, which spreads its mass over any of its equally good
    # plans: the one the solver returns need not have the shortest longest move.
    plan = transport_plan(
        u.points, v.points, u.weights, v.weights, 1.0, norm, coordinate_scale=units
    )
    moves = plan.displacements / (1.0 if units is None else np.asarray(units))
    lengths = lengths_of(moves, norm)
    # Drop the longest moves as long as their mass may be left out. Masses are counts of
    # a common total, so the sums are exact: a rounding must not drop one move too many.
    order = np.argsort(-lengths)
    spare = math.floor(Fraction(left_out) * plan.total)
    dropped = int(np.sum(np.cumsum(plan.counts[order]) <= spare))
    if dropped == len(lengths):
        # no move is left to cover
        return 0.0, False
    # ties with the longest: nothing was gained, and delta is not spent
    found = float(lengths[order[dropped]])
    return found, bool(found == lengths.max())
