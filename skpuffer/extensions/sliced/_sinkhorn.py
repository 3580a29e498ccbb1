"""Sinkhorn-Wasserstein mechanism: noise that covers an entropic W_inf."""

from typing import Any

from skpuffer.accountants.additive._base import _AdditiveAccountant
from skpuffer.accountants.additive._couplings import has_masses, mass_error
from skpuffer.distributions import Distribution
from skpuffer.distributions._weak_cache import remembered_with
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.numbers import check_positive
from skpuffer.kernel.sums import SensitivityBound, distribution_sensitivity
from skpuffer.noise import Noise
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import BoundScenario, OutputDistributions
from skpuffer.transport import entropic_distance

__all__ = ["SinkhornWasserstein"]


class SinkhornWasserstein(_AdditiveAccountant):
    """Noise that covers an entropic W_inf between output distributions of secrets.

    The distance is the least of a radius plus a price for each nat by which a coupling
    within the radius differs from the product: what Sinkhorn scaling computes. It is
    never below W_inf, so the promise is that of the general Wasserstein mechanism, at
    more noise. Feasible radii are found by an exact flow, so that nothing rests on how
    far the scaling went.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Rényi order, greater than 1; 2 if neither it nor `delta` is given. Infinity asks
        for a pure promise, which Gaussian noise cannot keep.
    entropy : float, default=0.1
        Price of a nat, above zero, in the units of the release. The smaller, the nearer
        to W_inf.
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one. Not together with `alpha`.
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' takes,
        of Gaussian, Laplace and (of integers) discrete Laplace noise, the one of least
        mean square error over all coordinates, by public facts alone; the certificate's
        `choice` says which. Where the prior is only sampled, it is Gaussian noise.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.

    See Also
    --------
    GeneralWasserstein : Covers W_inf itself: less noise, and less to compute.
    skpuffer.transport.entropic_distance : The distance.

    Notes
    -----
    For comparison, and never recommended. The distance mixes units: it does not scale
    with the output unless `entropy` does, and two secrets of one distribution are apart
    by as much as a coupling of it with itself costs.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, appendix A.5, equations 22
    to 25.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein, SinkhornWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.scenarios import LawsScenario
    >>> scenario = LawsScenario([(Discrete([0, 1, 2]), Discrete([0.5, 1.5, 3]))])
    >>> release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    >>> for accountant in (GeneralWasserstein(), SinkhornWasserstein(entropy=0.1)):
    ...     found = accountant.calibrate(release, scenario)
    ...     print(round(found.certificate.sensitivity, 6))
    1.0
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
            raise UnsupportedError(
                Statement(
                    "transport.sinkhorn_points_missing",
                    name=release.name,
                    secret=fact.secrets[i],
                    other=fact.secrets[j],
                )
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
