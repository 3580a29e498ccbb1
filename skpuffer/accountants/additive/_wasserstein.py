"""General Wasserstein mechanism: noise that covers W_inf."""

from skpuffer.exceptions import Statement
from skpuffer.scenarios import (
    Adjacency,
    CoupledSamples,
    OutputDistributions,
    OutputSensitivity,
)

from ._base import _AdditiveAccountant

__all__ = ["GeneralWasserstein"]


class GeneralWasserstein(_AdditiveAccountant):
    """Noise that covers the W_inf distance between output distributions of secrets.

    The distance is that of one output, by a coupling of its own. That is all one
    release needs, and why the costs of two must not be added up: together they may
    reveal what neither does alone.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Rényi order, greater than 1; 2 if neither it nor `delta` is given. Infinity asks
        for a pure promise, which Gaussian noise cannot keep.
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one, calibrated exactly through the
        noise's own trade-off. Not together with `alpha`.
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' takes,
        of Gaussian, Laplace and (of integers) discrete Laplace noise, the one of least
        mean square error over all coordinates, by public facts alone; the certificate's
        `choice` says which. Where the prior is only sampled, it is Gaussian noise.
        Gaussian and generalised Cauchy noise measure shifts in l2, Laplace and discrete
        Laplace noise in l1, and generalised Gaussian noise in the norm of order
        min(beta, 2). Discrete Laplace noise is for releases of integers.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.

    See Also
    --------
    GroupPrivacy : Works from adjacency; its certificates compose.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 3.3 and Corollary 3.1;
    the (epsilon, delta) target by joint convexity of the hockey-stick divergence and
    Balle and Wang (2018).

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.scenarios import LawsScenario
    >>> healthy = Discrete([0, 1, 2, 3], [0.2, 0.225, 0.5, 0.075])
    >>> infected = Discrete([1, 2, 3, 4], [0.075, 0.5, 0.225, 0.2])
    >>> release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    >>> accountant = GeneralWasserstein(epsilon=0.5, alpha=8, noise="gaussian")
    >>> calibration = accountant.calibrate(release, LawsScenario([(healthy, infected)]))
    >>> calibration.certificate.sensitivity
    2.0
    >>> round(calibration.noise.scale, 6)
    5.656854
    """

    # In order of preference: the first that the scenario offers. Any coupling bounds
    # W_inf from above, so the later ones are valid too, and need more noise.
    needs = (OutputDistributions, CoupledSamples, OutputSensitivity, Adjacency)
    _takes_joint_noise = True
    _source = Statement("source.general_wasserstein")
