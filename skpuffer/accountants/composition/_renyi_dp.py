"""The Rényi accountant: Rényi costs of steps, added order by order."""

import math
from collections.abc import Callable
from functools import partial

from skpuffer.accountants._target import check_order_or_delta
from skpuffer.exceptions import Statement
from skpuffer.kernel.composed import Reading, read_renyi, renyi_costs
from skpuffer.kernel.distribution import ORDERS
from skpuffer.kernel.gaussian import gaussian_mu
from skpuffer.kernel.numbers import check_positive
from skpuffer.noise import Noise
from skpuffer.kernel.notions import Notion
from skpuffer.privacy_loss import (
    GaussianCurve,
    PrivacyLossCurve,
    renyi_to_approximate,
)

from ._base import _CompositionAccountant
from ._privacy_loss import PrivacyLoss

__all__ = ["RenyiDP"]


class RenyiDP(_CompositionAccountant):
    """Composition by Rényi costs of all steps, added order by order.

    The simple alternative to :class:`PrivacyLoss`. The cost of a step is the Rényi
    divergence of its dominating pair, so it is as small as is known for each sampling
    scheme; what is lost is lost in converting the sum of costs into an (epsilon, delta)
    promise, unless a Rényi promise is what is wanted.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    delta : float or None, default=1e-5
        In (0, 1). None if `alpha` is given.
    alpha : float or None, default=None
        If given, the promise is the Rényi one of this order, in (1, inf).
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

    See Also
    --------
    PrivacyLoss : Needs less noise for the same (epsilon, delta).

    Notes
    -----
    A single query with a `delta` is accounted for by the noise's exact trade-off, as by
    :class:`GroupPrivacy`; there is nothing to add up. Draws with replacement may repeat
    a record, however rarely, and high orders make much of that: prefer
    :class:`PrivacyLoss` for them.

    References
    ----------
    Mironov (2017), Rényi differential privacy; Mironov, Talwar and Zhang (2019), Rényi
    differential privacy of the sampled Gaussian mechanism; Canonne, Kamath and Steinke
    (2020), Proposition 12, for the conversion.

    Examples
    --------
    >>> from skpuffer.accountants import RenyiDP
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = GradientRelease(n_records=1000, batch_size=10, n_steps=1000)
    >>> accountant = RenyiDP(epsilon=1.0, delta=1e-5)
    >>> certificate = accountant.certify(GaussianNoise(1.0), release, RecordScenario())
    >>> round(certificate.epsilon, 1)
    2.1
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = 1e-5,
        *,
        alpha: float | None = None,
        noise: str | Noise = "auto",
        beta: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.noise = noise
        self.beta = beta

    # of the two kinds of evidence, a certificate names that of Rényi costs
    _by_renyi_costs = True
    _correlated = True

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        # neither has a default here that would stand for the other
        if self.alpha is None and self.delta is None:
            raise ValueError(Statement("parameter.alpha_or_delta_missing"))
        order = check_order_or_delta(self.alpha, self.delta)
        # Gaussian noise has no largest loss, and to add up those of other noise would
        # be basic composition, which needs no accountant
        if order == math.inf:
            raise ValueError(Statement("parameter.alpha_infinite_renyi"))

    @property
    def _of_records(self) -> _CompositionAccountant:
        # what the conversion to a delta loses is no gain of a scenario
        if self.delta is None:
            return self
        return PrivacyLoss(self.epsilon, self.delta, noise=self.noise, beta=self.beta)

    @property
    def _accuracy(self) -> float:
        # the cost at one order is found to many more digits than a conversion
        return super()._accuracy if self.alpha is None else 1e-9

    @property
    def _composed_notion(self) -> Notion:
        return Notion.APPROXIMATE_DP if self.alpha is None else Notion.RENYI_DP

    @property
    def _orders(self) -> tuple[float, ...]:
        """Orders at which costs are added, with the one that is promised."""
        # the order that is promised is computed, not bounded by a larger one
        extra = () if self.alpha is None else (float(self.alpha),)
        return tuple(sorted({*map(float, ORDERS), *extra}))

    @property
    def _read(self) -> Callable[..., Reading]:
        alpha = None if self.alpha is None else float(self.alpha)
        return partial(read_renyi, orders=self._orders, alpha=alpha)

    def _loss(
        self,
        curve: GaussianCurve | PrivacyLossCurve,
        delta: float | None,
        tolerance: float,
    ) -> float:
        if self.alpha is not None:
            # the one order that is promised, however rough an answer would do
            return float(renyi_costs(curve, (float(self.alpha),))[0])
        assert delta is not None
        costs = renyi_costs(curve, self._orders)
        return float(renyi_to_approximate(self._orders, costs, delta))

    def _fair_mu(self, delta: float | None) -> float:
        if self.alpha is not None:
            return math.sqrt(2 * self.epsilon / self.alpha)  # alpha mu^2 / 2
        assert delta is not None  # one of the two is given
        return float(gaussian_mu(float(self.epsilon), delta))
