"""The privacy-loss accountant: nearly exact composition of noisy steps."""

from collections.abc import Callable
from functools import partial

from skpuffer.kernel.composed import Reading, read_losses
from skpuffer.kernel.gaussian import gaussian_mu
from skpuffer.kernel.numbers import check_positive, check_probability
from skpuffer.noise import Noise
from skpuffer.kernel.notions import Notion
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve

from ._base import _CompositionAccountant

__all__ = ["PrivacyLoss"]


class PrivacyLoss(_CompositionAccountant):
    """Composition by privacy-loss distributions: nearly exact (epsilon, delta).

    For a query it is :class:`GroupPrivacy` with a delta. For many noisy sums of clipped
    gradients it composes the dominating pairs of the steps: in closed form for Gaussian
    noise and the same sensitivity at each step, otherwise by privacy-loss distributions
    on a grid that is refined until epsilon is at most 0.02 % too large. The two
    directions of neighbouring tables are composed apart from each other. If at most k
    records differ under a scenario, the run costs what replacing any k records does:
    hidden batches amplify that too, however the records depend on each other. Where
    more may differ on a rare event (a long chain), its mass is taken off `delta` once
    for the whole run. Where the release states how a record's gradient moves, and the
    scenario how far a record does, that move is charged and no other.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    delta : float, default=1e-5
        In (0, 1).
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' takes,
        of Gaussian, Laplace and (of integers) discrete Laplace noise, the one of least
        mean square error over all coordinates, by public facts alone; the certificate's
        `choice` says which. For gradients, votes and sums in turn it is Gaussian noise.
        Gaussian and generalised Cauchy noise measure shifts in l2, Laplace and discrete
        Laplace noise in l1, and generalised Gaussian noise in the norm of order
        min(beta, 2). Discrete Laplace noise is for releases of integers.
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

    # no order of its own: the promise is always an (epsilon, delta) one
    alpha: None = None
    # always given, unlike in the base class
    delta: float
    _composed_notion = Notion.APPROXIMATE_DP
    _by_law = True
    _correlated = True
    saved_by_bins = True

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        noise: str | Noise = "auto",
        beta: float | None = None,
        max_memory: float = 500,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.beta = beta
        self.max_memory = max_memory

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        check_probability(delta=self.delta)
        check_positive(max_memory=self.max_memory)

    @property
    def _read(self) -> Callable[..., Reading]:
        epsilon, memory = float(self.epsilon), float(self.max_memory)
        return partial(read_losses, asked=epsilon, max_memory=memory)

    def _loss(
        self,
        curve: GaussianCurve | PrivacyLossCurve,
        delta: float | None,
        tolerance: float,
    ) -> float:
        assert delta is not None
        if isinstance(curve, GaussianCurve):
            # in closed form, so within any tolerance
            return float(curve.epsilon(delta))
        # the upper end again, which is at most the tolerance above the truth
        return float(curve.epsilon(delta, tolerance))

    def _fair_mu(self, delta: float | None) -> float:
        assert delta is not None
        # of Gaussian steps the answer itself; for others, where the search begins
        return float(gaussian_mu(float(self.epsilon), delta))
