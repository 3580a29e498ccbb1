"""The privacy-loss accountant: what many noisy steps cost together, nearly exactly."""

from skpuffer.accountants._noise_parameter import check_noise
from skpuffer.privacy import Notion
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.privacy_loss._gaussian import gaussian_mu
from skpuffer.utils._checks import check_positive, check_probability

from ._base import _CompositionAccountant

__all__ = ["PrivacyLoss"]


class PrivacyLoss(_CompositionAccountant):
    """The loss of all steps together, as a distribution: nearly exact (epsilon, delta).

    For a query it is :class:`GroupPrivacy` with a delta. For many noisy sums of clipped
    gradients it composes the pairs of laws that dominate each step: in closed form for
    Gaussian noise that meets the same shift at each step, and otherwise by privacy-loss
    distributions on a grid that is refined until epsilon is at most 0.02 % too large.
    Both orders of the two worlds are accounted for, apart from each other. Sampling of
    batches counts where the records that differ are independent of the others; under a
    scenario that makes many records change together it is refused.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    delta : float, default=1e-5
        In (0, 1).
    noise : {'gaussian', 'laplace', 'generalized_gaussian', 'generalized_cauchy', \
'discrete_laplace'} or Noise, default='gaussian'
        Family of the noise, or a noise whose scale calibration replaces. Gaussian and
        generalised Cauchy noise measure shifts in l2, Laplace and discrete Laplace
        noise in l1, and generalised Gaussian noise in the norm of order min(beta, 2).
        Discrete Laplace noise is for releases of integers.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.
    max_memory : float, default=500
        MiB that a grid may take. Where it would take more, Rényi costs are added
        instead, and the certificate says so.

    See Also
    --------
    RenyiDP : Adds Rényi costs; simpler, and needs more noise.

    Notes
    -----
    The noise's scale is that of a step's sum, so for the classical subsampled Gaussian
    the noise multiplier times the clip norm.

    References
    ----------
    Zhu, Dong and Wang (2022), Optimal accounting of differential privacy via
    characteristic function; Doroshenko et al. (2022), Connect the dots.

    Examples
    --------
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = GradientRelease(n_records=1000, batch_size=10, n_steps=1000)
    >>> accountant = PrivacyLoss(epsilon=1.0, delta=1e-5)
    >>> certificate = accountant.certify(GaussianNoise(1.0), release, RecordScenario())
    >>> round(certificate.epsilon, 2)
    1.83
    >>> noise = accountant.calibrate(release, RecordScenario()).noise
    >>> round(noise.scale, 2)
    1.41
    """

    alpha = None
    _composed_notion = Notion.APPROXIMATE_DP

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-5,
        *,
        noise="gaussian",
        beta=None,
        max_memory=500,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.beta = beta
        self.max_memory = max_memory

    def check(self):
        """Check the parameters; see the class."""
        check_positive(epsilon=self.epsilon)
        check_probability(delta=self.delta)
        check_noise(self.noise, self.beta)
        check_positive(max_memory=self.max_memory)

    def _read(self, curve):
        if isinstance(curve, GaussianCurve):
            epsilon = curve.epsilon(self.delta)
            return epsilon, epsilon * (1 - 1e-9), curve, ()
        found = curve.account(self.delta)
        remarks = ()
        if found.engine == "renyi":
            remarks = (
                f"a grid of privacy losses would take more than {self.max_memory:g} "
                "MiB, so Rényi costs were added instead: epsilon is an upper bound, "
                "but not a tight one",
            )
        return found.epsilon, found.lower, curve, remarks

    def _loss(self, curve, tolerance):
        if isinstance(curve, GaussianCurve):
            return curve.epsilon(self.delta)
        return curve.account(self.delta, tolerance).epsilon

    def _fair_mu(self):
        return gaussian_mu(float(self.epsilon), float(self.delta))
