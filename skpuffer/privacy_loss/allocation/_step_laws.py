"""Dominating pair of one row of the releases, the past being known."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.utils import gen_batches

from skpuffer.utils._types import Floats

from .._gaussian import gaussian_delta
from .._poisson_groups import _mixed_delta, _Mixture

__all__ = ["StepPair"]

# Epsilons times components of a mixture that are treated at once: bounds the memory.
_BLOCK = 2**16

#: Without the record.
_NOTHING = _Mixture(0.0, np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class StepPair:
    """The mixture of N(u, 1) over some means u, and N(0, 1).

    Parameters
    ----------
    weights, means : tuple of float
        Of the components: weights that sum to one, and means, increasing and not
        negative.
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]

    symmetric = False

    @property
    def spread(self) -> float:
        """Rough standard deviation of the loss, in nats."""
        # that of two Gaussians whose Pearson divergence is exp(spread²) - 1
        weights, means = np.array(self.weights), np.array(self.means)
        excess = np.expm1(np.minimum(np.multiply.outer(means, means), 700.0))
        return math.sqrt(math.log1p(weights @ excess @ weights))

    @cached_property
    def _mixture(self) -> _Mixture:
        weights, means = np.array(self.weights), np.array(self.means)
        # a weight that no trade-off can tell from none: the mixture's law expects one
        rest = weights[means == 0].sum()
        rest = math.log(rest) if rest > 0 else -690.0
        kept = (means > 0) & (weights > 0)
        return _Mixture(rest, weights[kept], means[kept])

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the mixture from N(0, 1)."""
        return self._divergence(epsilon, ahead=True)

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of N(0, 1) from the mixture."""
        return self._divergence(epsilon, ahead=False)

    def _divergence(self, epsilon: Floats, ahead: bool) -> Floats:
        epsilon = np.asarray(epsilon, float)
        if len(self.means) == 1:
            return gaussian_delta(epsilon, np.asarray(self.means[0]))
        mixture = self._mixture
        if len(mixture.means) == 1:
            return _sampled_delta(epsilon, mixture, ahead)
        # N(0, 1) is nowhere denser than the mixture's component at zero allows
        most = math.inf if ahead else -mixture.rest
        inside = np.flatnonzero(epsilon < most)
        value = np.zeros_like(epsilon)
        size = max(1, _BLOCK // len(self.means))
        for part in gen_batches(len(inside), size) if len(inside) else ():
            at = inside[part]
            both = (mixture, _NOTHING) if ahead else (_NOTHING, mixture)
            value[at] = _mixed_delta(epsilon[at, np.newaxis], *both)
        return value


def _sampled_delta(epsilon: Floats, mixture: _Mixture, ahead: bool) -> Floats:
    """Divergence where one component is not at zero: its own, at another epsilon."""
    weight, mean = mixture.weights[0], mixture.means[0]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if ahead:
            own = np.log1p(np.expm1(epsilon) / weight)
            return np.asarray(weight * gaussian_delta(own, mean))
        # what is left of N(0, 1) without exp(epsilon) times its part in the mixture
        left = np.maximum(-np.expm1(epsilon + mixture.rest), 0.0)
        own = epsilon + np.log(weight) - np.log(left)
        return np.where(left > 0, left * gaussian_delta(own, mean), 0.0)
