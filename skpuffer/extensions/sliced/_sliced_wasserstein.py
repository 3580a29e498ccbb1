"""Sliced Wasserstein mechanism: noise by the moves along single directions."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skpuffer.accountants import QUERY_FIELDS, Account, Accountant, Found, accounts_for
from skpuffer.accountants._additive._base import _AdditiveAccountant
from skpuffer.accountants._additive._couplings import has_masses, mass_error
from skpuffer.distributions import Distribution
from skpuffer.distributions._weak_cache import remembered_with
from skpuffer.exceptions import (
    InfiniteDistanceError,
    Statement,
    type_error,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.noise import raise_until, root_above
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_option,
    check_order,
    check_positive,
    check_probability,
)
from skpuffer.kernel.sums import (
    SensitivityBound,
    distribution_sensitivity,
    record_sensitivity_bound,
    sensitivity_bound,
)
from skpuffer.noise import CorrelatedGaussianNoise, GaussianNoise, Noise, Shift
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import BoundScenario, CoupledSamples, OutputDistributions
from skpuffer.transport import Ball, entropic_distance
from skpuffer.utils._checks import check_bool

from ._costs import (
    AveragedSlices,
    JointSlices,
    SliceCosts,
    UniformAverage,
    UniformJoint,
    WorstSlice,
)
from ._moves import SampledWorlds, diameter, moves_along, sampled_worlds, shift_lengths
from .transport._dkw import Box, dkw_sliced_distances
from .transport._profile import SliceProfile

_PAPER = Statement("source.sliced_renyi_pufferfish")

#: Directions that are drawn where none are given: the larger of two hundred, as
#: published, and four in each dimension.
_SLICES, _SLICES_PER_DIM = 200, 4


@dataclass(frozen=True)
class _Known:
    """What is known of the moves of one release."""

    fact: OutputDistributions | CoupledSamples
    release: QueryRelease
    costs: SliceCosts
    directions: Floats | None
    profile: SliceProfile
    radius: float
    confidence: float
    certified: bool
    assumptions: tuple[Statement, ...]
    source: str


class SlicedWasserstein(Accountant):
    """Gaussian noise that covers W_inf along the slices of a profile.

    The noise covers how far the output moves along each direction of the profile, and
    the costs of the directions are averaged. **The promise is about one direction at a
    time.** An observer of the whole vector may learn far more: `rpp_epsilon` of every
    certificate bounds that. For one displacement and all directions it is `dim` times
    the budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats, of the slices.
    alpha : float, default=2.0
        Rényi order, in (1, inf).
    aggregation : {'average', 'joint'}, default='average'
        - 'average': the mean over slices of each one's divergence.
        - 'joint': the divergence of one projection, along a direction that is drawn and
          revealed, so that rare directions with a large divergence count for more.
    method : {'closed', 'exact'}, default=None
        'closed' covers the worst slice, 'exact' finds the least noise. None is 'exact'
        for the joint promise, and 'closed' for the average, where it is exact.
    per_pair : bool, default=True
        Whether slices are taken together for each pair of secrets. If not, the largest
        move of any pair along each slice is taken first, as published, with more noise.
    profile : SliceProfile or {'basis', 'uniform'}, default=None
        Directions and their weights. None draws ``max(200, 4 dim)`` of them with the
        public seed 0. 'uniform' is all directions equally: in closed form where each
        pair of secrets differs by one displacement, otherwise by drawn directions and
        `confidence`.
    confidence : float, default=None
        Probability that the promise holds, for 'uniform' by drawn directions, and for
        outputs known by independent draws alone. Those need the `support` too.
    support : Box or Ball, default=None
        Range of every output, whatever the table; of :mod:`skpuffer.transport`, in the
        units of the output.
    n_slices, n_jobs : int, default=None
        Number of drawn directions, ``max(200, 4 dim)`` if None, and threads.

    Notes
    -----
    Slices are of the release in its units. The promise does not add up with any other,
    nor convert into an (epsilon, delta) one about the output; see
    :meth:`~skpuffer.privacy.Certificate.to_sliced_approximate`. A release that does not
    move along any slice is refused. :class:`GeneralWasserstein` has the full promise.

    References
    ----------
    Zhang and Vorobeychik (2025), Sliced Rényi Pufferfish privacy, Theorems 4.5 to 4.8.
    The published estimate from draws is no bound; here both orders of a pair and the
    declared support are used.

    Examples
    --------
    >>> from skpuffer.accountants import SlicedWasserstein
    >>> from skpuffer.distributions import PointMass
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import LawsScenario
    >>> release = QueryRelease(query=lambda X, y: X.sum(axis=0), n_records=4, dim=3)
    >>> scenario = LawsScenario([(PointMass([0, 0, 0]), PointMass([3, 4, 0]))])
    >>> accountant = SlicedWasserstein(1.0, 4.0, profile="basis")
    >>> found = accountant.calibrate(release, scenario)
    >>> round(found.noise.variance(), 4), round(found.certificate.rpp_epsilon, 4)
    (16.6667, 3.0)
    """

    needs = (OutputDistributions, CoupledSamples)
    reads: ClassVar = {QueryRelease: QUERY_FIELDS}

    #: What it promises is easily taken for more.
    recommended = False

    noise = "gaussian"

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float = 2.0,
        aggregation: str = "average",
        method: str | None = None,
        *,
        per_pair: bool = True,
        profile: SliceProfile | str | None = None,
        confidence: float | None = None,
        support: Ball | Box | None = None,
        n_slices: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.aggregation = aggregation
        self.method = method
        self.per_pair = per_pair
        self.profile = profile
        self.confidence = confidence
        self.support = support
        self.n_slices = n_slices
        self.n_jobs = n_jobs

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        if check_order(alpha=self.alpha) == math.inf:
            raise value_error("history.alpha_infinite")
        check_option(("average", "joint"), aggregation=self.aggregation)
        check_option((None, "closed", "exact"), method=self.method)
        if self.aggregation == "average" and self.method == "exact":
            raise value_error("sliced.method_with_average")
        check_bool(per_pair=self.per_pair)
        if not isinstance(self.profile, SliceProfile):
            check_option((None, "basis", "uniform"), profile=self.profile)
        if self.confidence is not None:
            check_probability(confidence=self.confidence)
        if self.support is not None and not isinstance(self.support, Ball | Box):
            raise type_error("sliced.support_not_box_or_ball", support=self.support)
        if self.n_slices is not None:
            check_count(n_slices=self.n_slices)

    @property
    def _exact(self) -> bool:
        """Whether slices are taken together by their joint divergence."""
        return self.aggregation == "joint" and self.method != "closed"

    @property
    def _notion(self) -> Notion:
        """What is promised, where the outputs are known."""
        if self.aggregation == "joint":
            return Notion.JOINT_SLICED_RENYI_PUFFERFISH
        return Notion.AVERAGED_SLICED_RENYI_PUFFERFISH

    def _profile_of(self, release: QueryRelease) -> SliceProfile:
        """Profile that the promise about a release is about."""
        dim, given = release.dim, self.profile
        if dim is None:
            raise unsupported_error(
                "sliced.release_length_unknown",
                owner=type(self).__name__,
                name=release.name,
            )
        if isinstance(given, SliceProfile):
            if given.dim != dim:
                raise unsupported_error(
                    "sliced.profile_dimension_mismatch",
                    profile_dim=given.dim,
                    name=release.name,
                    dim=dim,
                )
            if given.rank < dim:
                raise unsupported_error("sliced.profile_not_spanning")
            return given
        if given is None:
            return self._drawn(dim)
        make = SliceProfile.basis if given == "basis" else SliceProfile.uniform
        return make(dim)

    def _drawn(self, dim: int) -> SliceProfile:
        """Directions drawn with the public seed 0."""
        n_slices = self.n_slices or max(_SLICES, _SLICES_PER_DIM * dim)
        return SliceProfile.sampled(dim, n_slices)

    # -- the protocol -------------------------------------------------------------

    def _check_support(self, release: Any, bound: BoundScenario) -> None:
        super()._check_support(release, bound)
        self._profile_of(release)

    @accounts_for(QueryRelease)
    def _account_of_query(
        self, fact: Any, release: QueryRelease, bound: BoundScenario
    ) -> Account:
        known = self._known(fact, release)
        return Account(partial(self._calibrate, known), partial(self._certify, known))

    # -- what is known of the moves -----------------------------------------------

    def _known(self, fact: Any, release: QueryRelease) -> _Known:
        """Bound the moves along slices, by the fact and the parameters."""
        profile = self._profile_of(release)
        if fact.delta:
            raise unsupported_error(
                "sliced.moves_outside_event", name=release.name, delta=fact.delta
            )
        drawn = None if self.confidence is None else sampled_worlds(fact)
        slack, assumptions = release.total_slack(2.0), fact.assumptions
        if drawn is None:
            radius = sensitivity_bound(fact, release, 2.0).radius
        else:
            radius = diameter(self._declared(release), release) + slack
            assumptions += (
                Statement("assume.outputs_stay_in_support", support=self.support),
            )
        if math.isinf(radius):
            raise InfiniteDistanceError(
                Statement("sliced.distance_infinite", name=release.name)
            )
        known = _Known(
            fact=fact,
            release=release,
            costs=WorstSlice(radius**2),
            directions=None,
            profile=profile,
            radius=radius,
            confidence=fact.confidence,
            certified=fact.certified or drawn is not None,
            assumptions=assumptions,
            source="Thm 4.6",
        )
        # the worst of all directions: one that was not drawn may be worse than all that
        # were
        if not profile.is_finite and self.aggregation == "joint" and not self._exact:
            return known
        if not profile.is_finite and drawn is None:
            lengths = shift_lengths(fact, release)
            if lengths is not None and (self.per_pair or len(lengths) == 1):
                squares = np.minimum(lengths + slack, radius) ** 2
                make = UniformJoint if self._exact else UniformAverage
                costs = make(float(squares.max()), profile.dim)
                theorem = "Cor 4.1" if self._exact else "Thm 4.5"
                return replace(known, costs=costs, source=theorem)
        return self._along_slices(known, drawn, slack)

    def _declared(self, release: QueryRelease) -> Ball | Box:
        if self.support is None:
            raise unsupported_error("sliced.support_not_declared", name=release.name)
        return self.support

    def _along_slices(
        self, known: _Known, drawn: SampledWorlds | None, slack: float
    ) -> _Known:
        """Bound the moves along finitely many slices, drawn from the profile or it."""
        release, profile, failure = known.release, known.profile, 0.0
        if self.confidence is not None:
            failure = 1 - float(self.confidence)
        everywhere = not profile.is_finite
        if everywhere and self.confidence is None:
            raise unsupported_error(
                "sliced.profile_of_all_directions", name=release.name
            )
        along = self._drawn(profile.dim) if everywhere else profile
        assert along.directions is not None and along.weights is not None  # finite
        assumptions, confidence = known.assumptions, known.confidence
        if drawn is None:
            moves = moves_along(known.fact, release, along, self.n_jobs)
        else:
            # half of what may fail is left to the directions (Thm 4.7)
            moves = dkw_sliced_distances(
                drawn.draws,
                along,
                support=self._declared(release),
                confidence=1 - failure / 2,
                pairs=drawn.pairs,
                coordinate_scale=release.units,
                n_jobs=self.n_jobs,
            )
            assumptions += (Statement("assume.output_draws_independent"),)
        # a projection moves no further than the vector
        moves = np.minimum(moves + slack, known.radius)
        if not self.per_pair:
            moves = moves.max(axis=0, keepdims=True)
        shortfall = 0.0
        if everywhere:
            # Hoeffding's inequality, for each row of moves
            n_rows, n_slices = moves.shape
            shortfall = math.sqrt(math.log(4 * n_rows / failure) / (2 * n_slices))
            assumptions += (
                Statement("assume.directions_drawn_publicly", n_slices=n_slices),
            )
        if everywhere or drawn is not None:
            confidence = max(0.0, confidence - failure)
        theorem = {"average": "Thm 4.5", "joint": "Thm 4.6"}[self.aggregation]
        if everywhere or drawn is not None:
            theorem = {"average": "Thm 4.7", "joint": "Thm 4.8"}[self.aggregation]
        elif self._exact:
            theorem = "Cor 4.1"
        kind: Callable[..., SliceCosts] = AveragedSlices
        if self.aggregation == "joint":
            kind = JointSlices if self._exact else WorstSlice.along
        return replace(
            known,
            costs=kind(moves**2, along.weights, known.radius**2, shortfall),
            # drawn ones stand for all, of which the one of least noise is not known
            directions=None if everywhere else along.directions,
            confidence=confidence,
            assumptions=assumptions,
            source=theorem,
        )

    # -- noise and certificate ----------------------------------------------------

    def _calibrate(self, known: _Known, noise: Noise, rng: Any) -> Found:
        """Set the scale of noise to the least that keeps the promise."""
        release, alpha, epsilon = known.release, float(self.alpha), float(self.epsilon)

        def scaled(scale: float) -> Noise:
            return noise.with_scale(scale * release.unit_array)

        squares = self._variances(scaled(1.0), known)
        least, most = np.sqrt(known.costs.bracket(squares) * alpha / (2 * epsilon))
        if most == 0:
            raise unsupported_error("sliced.secrets_do_not_move", name=release.name)

        # of the very noise that is returned, as a certificate will see it
        def cost(scale: float) -> float:
            variances = self._variances(scaled(scale), known)
            return known.costs.curve(variances).renyi(alpha)

        # in closed form, or in the bracket that Proposition B.1 proves
        scale = raise_until(lambda s: cost(s) <= epsilon, float(most))
        below = float(least) * (1 - 1e-9)
        if least < most and cost(below) > epsilon:
            scale = root_above(cost, epsilon, below, scale)
        return Found(scaled(scale), self._certify(known, scaled(scale)))

    def _certify(self, known: _Known, noise: Noise) -> Claim:
        """Find what a given noise promises."""
        fact, release, alpha = known.fact, known.release, float(self.alpha)
        variances = self._variances(noise, known)
        shift = Shift(known.radius, dim=release.dim, weights=release.units)
        vector = noise.curve(shift)
        curve = replace(known.costs.curve(variances), vector=vector)
        rpp = float(vector.renyi(alpha))
        return Claim(
            notion=self._notion if known.certified else Notion.ESTIMATED,
            epsilon=curve.renyi(alpha),
            alpha=alpha,
            confidence=known.confidence,
            curve=curve,
            rpp_epsilon=rpp if known.certified else math.inf,
            profile=known.profile.name,
            assumptions=(
                *known.assumptions,
                *self._remarks(fact, noise, release),
                *(() if known.certified else self._estimated(fact, rpp)),
                *release.assumptions,
            ),
            source=Statement(
                "source.sliced_wasserstein", paper=_PAPER, source=known.source
            ),
        )

    def _remarks(
        self, fact: Any, noise: Noise, release: QueryRelease
    ) -> tuple[Statement, ...]:
        """What else a certificate should say, in sentences."""
        length = record_sensitivity_bound(release, 2.0)
        # a scale that was set by private rows tells of them by itself
        if length is None or fact.reads_private_rows:
            return ()
        shift = Shift(length, dim=release.dim, weights=release.units)
        cost = float(noise.renyi(float(self.alpha), shift))
        return (Statement("assume.worth_renyi_dp", cost=cost),)

    def _estimated(self, fact: Any, rpp: float) -> tuple[Statement, ...]:
        """What an estimate is one of, which the notion of a promise would say."""
        said = Statement("sliced.estimate_about_slices", title=self._notion.title)
        # a distance that the private rows gave tells of them by itself
        if fact.reads_private_rows:
            return (said,)
        return (Statement("sliced.estimated_at_full_notion", estimate=said, rpp=rpp),)

    @staticmethod
    def _variances(noise: Noise, known: _Known) -> Floats:
        """Variance of the noise along each slice, in the units of the release."""
        # by exact type: another Gaussian noise may have another covariance
        if type(noise) not in (GaussianNoise, CorrelatedGaussianNoise):
            raise unsupported_error("sliced.noise_not_gaussian", family=noise.family)
        assert isinstance(noise, GaussianNoise)  # and so has a covariance
        dim, release = known.profile.dim, known.release
        deviations = np.asarray(noise.std(dim)) / release.unit_array
        if not np.all(deviations > 0):
            raise unsupported_error("sliced.noise_scale_not_positive")
        if known.directions is None:
            covariance = noise.covariance_matrix(dim)
            units = np.broadcast_to(release.unit_array, (dim,))
            inside = covariance / np.outer(units, units)
            diagonal = np.diag(inside)
            # the least eigenvalue, without round-off where there are no correlations
            if np.array_equal(inside, np.diag(diagonal)):
                return np.array([diagonal.min()])
            return np.array([np.linalg.eigvalsh(inside)[0]])
        seen = known.directions / release.unit_array
        if type(noise) is GaussianNoise:
            return ((seen * np.asarray(noise.std(dim))) ** 2).sum(axis=1)
        covariance = noise.covariance_matrix(dim)
        return np.einsum("ki,ij,kj->k", seen, covariance, seen)


# -- sinkhorn-Wasserstein mechanism: noise that covers an entropic W_inf ---------------


class SinkhornWasserstein(_AdditiveAccountant):
    """Noise that covers an entropic W_inf between output distributions of secrets.

    The distance is the least radius plus a price for each nat by which a coupling
    within the radius differs from the product. It is never below W_inf, so the promise
    is that of :class:`GeneralWasserstein`, with more noise. Use it for comparison only.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Rényi order, greater than 1; 2 if neither it nor `delta` is given. Infinity asks
        for a pure promise, which Gaussian noise cannot keep.
    entropy : float, default=0.1
        Price of a nat, above zero, in the units of the release. Zero would be W_inf.
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one. Not together with `alpha`.
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' takes
        the one of least mean square error of Gaussian, Laplace and (for integers)
        discrete Laplace noise, by public facts alone. Where the prior is only sampled,
        it is Gaussian.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.

    Notes
    -----
    The distance mixes units: it does not scale with the output unless `entropy` does.

    References
    ----------
    Zhang and Vorobeychik (2025), Sliced Rényi Pufferfish privacy, equations 22 to 25.

    Examples
    --------
    >>> from skpuffer.accountants import SinkhornWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.scenarios import LawsScenario
    >>> scenario = LawsScenario([(Discrete([0, 1, 2]), Discrete([0.5, 1.5, 3]))])
    >>> release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    >>> found = SinkhornWasserstein(entropy=0.1).calibrate(release, scenario)
    >>> round(found.certificate.sensitivity, 6)
    1.109861
    """

    needs = (OutputDistributions,)
    recommended = False
    _takes_joint_noise = True
    _source = Statement("source.sinkhorn_wasserstein")

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float | None = None,
        *,
        entropy: float = 0.1,
        delta: float | None = None,
        noise: str | Noise = "auto",
        beta: float | None = None,
    ) -> None:
        super().__init__(epsilon, alpha, delta=delta, noise=noise, beta=beta)
        self.entropy = entropy

    def _check_parameters(self, noise: Noise) -> None:
        super()._check_parameters(noise)
        check_positive(entropy=self.entropy)

    def _sensitivity_bound(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, norm: float
    ) -> SensitivityBound:
        return _entropic_sensitivity(fact, release, norm, float(self.entropy))


def _entropic_sensitivity(
    fact: OutputDistributions, release: QueryRelease, norm: float, entropy: float
) -> SensitivityBound:
    """Bound the sensitivity of a release's output by entropic distances."""
    pairs = list(fact.pairs_of_distributions())
    for _, i, j, u, v in pairs:
        if not (has_masses(u) and has_masses(v)) or mass_error(u, v):
            raise unsupported_error(
                "transport.sinkhorn_points_missing",
                name=release.name,
                secret=fact.secrets[i],
                other=fact.secrets[j],
            )
    if not fact.scale:
        return distribution_sensitivity(fact, 0.0, release, norm)
    # no norm: the price is in units of the output, and not of the distributions' points
    in_points = entropy / fact.scale
    distances = [
        _entropic(u, v, in_points, *fact.compared_in(release, norm))
        for *_, u, v in pairs
    ]
    at = max(range(len(pairs)), key=lambda each: distances[each])
    prior, i, j, *_ = pairs[at]
    worst = (prior, fact.secrets[i], fact.secrets[j])
    radius = fact.output_move(distances[at], release, norm)
    return distribution_sensitivity(fact, radius, release, norm, worst=worst)


@remembered_with(2)
def _entropic(
    u: Distribution,
    v: Distribution,
    entropy: float,
    norm: float,
    units: tuple[float, ...] | None,
) -> float:
    """Entropic W_inf between two distributions of atoms, in units."""
    assert has_masses(u) and has_masses(v)
    return entropic_distance(
        u.points, v.points, entropy, u.weights, v.weights, norm, coordinate_scale=units
    )
