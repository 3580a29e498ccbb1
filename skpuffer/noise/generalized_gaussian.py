"""Generalised Gaussian noise: a shape from Laplace to Gaussian noise and beyond."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import gamma

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.laplace import LaplaceNoise
from skpuffer.kernel.noise import (
    Costs,
    Evidence,
    GaussianNoise,
    MagnitudeNoise,
    Noise,
    Shift,
    largest_argument,
    one_coordinate,
    plain,
)
from skpuffer.kernel.numbers import (
    Floats,
    Number,
    Numbers,
    check_each,
    check_non_negative,
    check_real,
)
from skpuffer.noise import _generalized_gaussian_loss as _loss
from skpuffer.privacy_loss._divergences import Hull, hull

from ._generalized_gaussian_loss import (
    euclidean_trade_off,
    renyi,
    split_renyi,
    split_trade_off,
)

__all__ = ["GeneralizedGaussianNoise"]

#: Largest ratio of beta-norm and l2 norm of a displacement at which equal splits are
#: computed. Beyond, the bound by the l2 norm alone serves.
_LENGTHENED = 1.5

_FOUND = Statement("assume.worst_direction_numerical")


def _root_below(
    function: Callable[[float], Numbers], target: float, most: float
) -> float:
    """Return the largest u in (0, most] with ``function(u) <= target``, rounded down.

    For functions that take long: to six digits, in few steps.

    Parameters
    ----------
    function : callable
        Increasing on (0, inf), positive.
    target : float
        Positive.
    most : float
        Positive.
    """
    low = high = most
    while function(low) > target:
        low, high = 0.9 * low, low
    # nothing to search: even the most is within the target
    if low == high:
        return most
    root: float = brentq(
        lambda u: math.log(max(function(u), 1e-320) / target),
        low,
        high,
        xtol=1e-7 * low,
        rtol=1e-7,
    )
    # down, until the target is met as it is evaluated
    while function(root) > target:
        root *= 1 - 2e-7
    return root


@dataclass(frozen=True)
class Twin:
    """Costs of the Laplace or Gaussian noise that this noise is, for beta = 1 and 2.

    `noise` has scale one; `factor` is the ratio of the scale here to its scale.
    """

    noise: MagnitudeNoise
    factor: float

    _evidence: ClassVar[Evidence] = ((), ())

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Return the Rényi cost; arrays broadcast."""
        return self.noise._renyi(alpha, self.factor * np.asarray(u, float))

    def _delta(self, epsilon: Numbers, u: Numbers) -> Numbers:
        """Return the hockey-stick divergence; arrays broadcast."""
        return self.noise._delta(epsilon, self.factor * np.asarray(u, float))

    def _epsilon(self, delta: float, u: float) -> float:
        """Return the smallest epsilon at one delta, rounded up."""
        return self.noise._epsilon(delta, self.factor * u)


@dataclass(frozen=True)
class OneCoordinate:
    """Exact costs of one coordinate that moves by u, or of several by u in the l1 norm.

    For a log-concave density the trade-off of a shift by a composed with that of a
    shift by b is that of a shift by a + b. Two coordinates can be moved one after the
    other, so no split of an l1 norm costs more than one coordinate.
    """

    beta: float

    @property
    def _evidence(self) -> Evidence:
        """What is not proved, of Rényi costs and of trade-offs."""
        return (), ()

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Return the Rényi cost; arrays broadcast."""
        return renyi(alpha, u, self.beta)

    def _delta(self, epsilon: Numbers, u: Numbers) -> Floats:
        """Return the hockey-stick divergence; arrays broadcast."""
        return _loss.hockey_stick(epsilon, u, self.beta)

    def _epsilon(self, delta: float, u: float) -> float:
        """Return the smallest epsilon at one delta, rounded up."""
        return _loss.hockey_stick_epsilon(delta, u, self.beta)

    def _u_for(self, alpha: float, epsilon: float) -> float:
        """Return the largest u that costs at most epsilon, rounded down."""
        if math.isinf(alpha):
            raise value_error("shaped.beta_no_pure_epsilon", beta=self.beta)
        return largest_argument(
            lambda u: float(self._renyi(alpha, u)), epsilon, start=1.0
        )

    def _u_for_delta(self, epsilon: float, delta: float) -> float:
        """Return the largest u that obeys (epsilon, delta), rounded down."""
        return largest_argument(
            lambda u: float(self._delta(epsilon, u)), delta, start=1.0
        )


@dataclass(frozen=True)
class _Tabulated(OneCoordinate):
    """Bounding strategy whose trade-off is a hull, computed for each u."""

    def _table(self, u: float) -> Hull:
        raise NotImplementedError

    def _delta(self, epsilon: Numbers, u: Numbers) -> Floats:
        """Return the hockey-stick divergence at epsilons of any shape."""
        # nothing moves, or nothing is hidden: no table is needed
        if u == 0 or math.isinf(u):
            return super()._delta(epsilon, u)
        return self._table(float(u)).delta(epsilon)

    def _epsilon(self, delta: float, u: float) -> float:
        """Return the smallest epsilon at one delta, rounded up."""
        if u == 0 or math.isinf(u):
            return super()._epsilon(delta, u)
        return self._table(float(u)).epsilon(delta)

    def _u_for_delta(self, epsilon: float, delta: float) -> float:
        """Return the largest u that obeys (epsilon, delta), rounded down."""
        # displacements of one coordinate are among those bounded
        most = OneCoordinate(self.beta)._u_for_delta(epsilon, delta)
        return _root_below(lambda u: float(self._delta(epsilon, u)), delta, most)


@dataclass(frozen=True)
class Splits(_Tabulated):
    """Costs of a shift by u in the beta-norm (beta < 2) or the l2 norm (beta > 2).

    Trade-offs are the envelope of those of equal splits. Rényi costs are bounded with
    proof for beta < 2. For beta > 2 they are those of one coordinate: the ratio D(v) /
    v^2 grew with v wherever it was computed.
    """

    @property
    def _evidence(self) -> Evidence:
        """What is not proved, of Rényi costs and of trade-offs."""
        return (() if self.beta < 2 else (_FOUND,), (_FOUND,))

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Return the Rényi cost; arrays broadcast."""
        # all in one coordinate: computed to be the worst, not proved
        if self.beta > 2:
            return renyi(alpha, u, self.beta)
        # number by number: each is a search, and cached
        each = np.vectorize(partial(split_renyi, beta=self.beta), otypes=[float])
        costs: Floats = each(alpha, u)
        return costs

    def _table(self, u: float) -> Hull:
        return split_trade_off(u, self.beta)


@dataclass(frozen=True)
class Euclidean(_Tabulated):
    """Costs of a shift by u in the l2 norm, for 1 < beta < 2.

    `lengthened` is the largest ratio of its beta-norm to its l2 norm; infinity if
    unknown.
    """

    lengthened: float = math.inf

    @property
    def _evidence(self) -> Evidence:
        """What is not proved, of Rényi costs and of trade-offs."""
        return ((), (_FOUND,) if self.lengthened <= _LENGTHENED else ())

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Return the Rényi cost; arrays broadcast."""
        alpha, u = np.asarray(alpha, float), np.asarray(u, float)
        with np.errstate(over="ignore", invalid="ignore"):
            # D(v) <= alpha I v² / 2 in each coordinate, and the squares add up to u²
            cost = alpha * _loss.fisher_information(self.beta) / 2 * u**2
        # its beta-norm is at most `lengthened` times u: another bound
        if self.lengthened <= _LENGTHENED:
            split = Splits(self.beta)._renyi(alpha, self.lengthened * u)
            cost = np.minimum(cost, split)
        return np.where(u == 0, 0.0, cost)

    def _table(self, u: float) -> Hull:
        table = euclidean_trade_off(u, self.beta)
        if self.lengthened > _LENGTHENED:
            return table
        # both bound the trade-off, so the smaller does at each epsilon
        return _smaller(table, split_trade_off(self.lengthened * u, self.beta))


@lru_cache(maxsize=64)
def _smaller(first: Hull, second: Hull) -> Hull:
    """Hull of the smaller of two bounds on one trade-off."""
    # An upper bound at the corners of both; between them the hull of a minimum is as
    # valid, since the trade-off itself is convex.
    marks = np.union1d(first.epsilons, second.epsilons)
    return hull(marks, np.minimum(first.log_delta(marks), second.log_delta(marks)))


#: The shapes that are families of their own, and the ratio of the scales.
_TWINS = {
    1.0: Twin(LaplaceNoise(), 1.0),
    2.0: Twin(GaussianNoise(), math.sqrt(2)),
}

#: Beyond this the noise is all but uniform, which hides little, and floats overflow.
_MAX_BETA = 64.0


@dataclass(frozen=True)
class GeneralizedGaussianNoise(Noise):
    """Independent noise with density proportional to ``exp(-(|x| / scale)**beta)``.

    Parameters
    ----------
    scale : float or array-like of shape (dim,), default=1.0
        Scale of the noise, in the unit of the output. The standard deviation is
        ``sqrt(gamma(3 / beta) / gamma(1 / beta)) * scale``.
    beta : float, default=2.0
        Shape, in [1, 64]. One is Laplace noise of this scale, two is Gaussian noise of
        the standard deviation ``scale / sqrt(2)``. Larger shapes have lighter tails of
        the noise, and heavier ones of the privacy loss.

    Notes
    -----
    One coordinate, or several bounded in the l1 norm, have an exact trade-off for every
    shape. Otherwise it matters how a shift is spread over coordinates, contrary to what
    is published, unless beta is 1 or 2:

    * ``1 < beta < 2``, bounded in the beta-norm: Rényi costs have a proved bound; a
      trade-off is the envelope over equal splits, of which no counterexample is known.
    * ``1 < beta < 2``, bounded in the l2 norm: at most ``alpha I u**2 / 2`` at every
      order, I the Fisher information and u the shift in scales; proved.
    * ``beta > 2``, bounded in the l2 norm: one coordinate is the worst for Rényi costs,
      as far as was computed. For trade-offs it is the envelope over equal splits and
      their Gaussian limit.
    * ``beta > 2``, bounded in a larger norm only: refused.

    `evidence` tells which answers are not proved. Costs at finite orders are rounded up
    by 1e-11 of themselves.

    References
    ----------
    Rinberg et al. (2025), Beyond Laplace and Gaussian.

    Examples
    --------
    >>> from skpuffer.noise import GeneralizedGaussianNoise, Shift
    >>> noise = GeneralizedGaussianNoise(scale=1.0, beta=1.5)
    >>> shift = Shift(1.0, norm=1.5, dim=None)
    >>> round(noise.epsilon(1e-5, 1.0), 4), round(noise.epsilon(1e-5, shift), 4)
    (3.1206, 3.1888)
    """

    beta: float = 2.0

    family = "generalized_gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        beta = check_real(beta=self.beta)
        if not 1 <= beta <= _MAX_BETA:
            raise value_error(
                "shaped.beta_out_of_range", max_beta=_MAX_BETA, beta=self.beta
            )
        object.__setattr__(self, "beta", beta)

    @property
    def norm(self) -> float:  # type: ignore[override] # read, never assigned
        """Order of the norm in which a shift is best bounded: beta, and at most 2."""
        return min(self.beta, 2.0)

    @property
    def unit_variance(self) -> float:  # type: ignore[override] # read, never assigned
        """Variance of one coordinate at scale one."""
        return float(gamma(3 / self.beta) / gamma(1 / self.beta))

    @property
    def fisher_information(self) -> Numbers:
        """Return the Fisher information of each coordinate, inf without noise.

        It sets the cost of a shift under heavy composition.
        """
        with np.errstate(divide="ignore"):
            ratio = _loss.fisher_information(self.beta) / np.square(self.scale)
        information: Numbers = plain(ratio)
        return information

    # -- how the worst displacement is bounded -----------------------------------------

    def _resolved(self, shift: Shift | Floats) -> tuple[Costs, Numbers]:
        """Bounding strategy for this shift, and its norm in units of the scale."""
        if not isinstance(shift, Shift):
            strategy, unit = self._resolved(one_coordinate(1.0))
            with np.errstate(invalid="ignore"):  # 0 * inf: nothing moves, no noise
                return strategy, np.where(np.equal(shift, 0), 0.0, shift * unit)[()]
        # Laplace and Gaussian noise: closed forms, for any direction of the shift
        if self.beta in _TWINS:
            return _TWINS[self.beta], shift.magnitude(self.scale, self.norm)
        dim = shift.common_dim(self.dim)
        # one coordinate, or several in the l1 norm: no worse than all in one of them
        one_moves = shift.structure == "scalar" or dim == 1
        if one_moves or shift.norm == 1 or shift.radius == 0:
            return OneCoordinate(self.beta), shift.magnitude(self.scale, 1.0)
        if self.beta > 2:
            self._refuse_beyond_l2(shift, dim)
            return Splits(self.beta), shift.magnitude(self.scale, 2.0)
        # 1 < beta < 2: norms of lower order are no smaller than the beta-norm
        if shift.norm <= self.beta:
            return Splits(self.beta), shift.magnitude(self.scale, self.beta)
        # Norms of higher order: by way of the l2 norm. Where the dimension is known the
        # beta-norm of a displacement is bounded too, and splits of that may cost less.
        u = shift.magnitude(self.scale, 2.0)
        lengthened = math.inf
        if dim is not None and 0 < u < math.inf:
            # rounded: a ratio, which must not change with the scale by round-off
            lengthened = round(shift.magnitude(self.scale, self.beta) / u, 12)
        return Euclidean(self.beta, lengthened), u

    def _refuse_beyond_l2(self, shift: Shift, dim: int | None) -> None:
        if shift.norm <= 2:
            return
        remedy = Statement("shaped.remedy_state_l2_bound")
        if dim is not None:
            ones = 1.0 if self.dim is None else np.ones(self.dim)
            remedy = Statement(
                "shaped.remedy_l2_radius_covers",
                dim=dim,
                magnitude=shift.magnitude(ones, 2.0),
            )
        raise value_error(
            "shaped.shift_norm_unbounded",
            norm=shift.norm,
            beta=self.beta,
            remedy=remedy,
        )

    @property
    def _mu_per_unit(self) -> float | None:  # type: ignore[override] # read, never assigned
        return _TWINS[2.0].factor if self.beta == 2 else None

    # -- the loss of one coordinate ---------------------------------------------------

    def loss_cdf(self, loss: Number, shift: Shift | float) -> Number:
        """Return the distribution function of the privacy loss.

        Parameters
        ----------
        loss : float or ndarray
            In nats.
        shift : Shift or float
            Shift of one coordinate, unless beta is two; taken as attained.

        Returns
        -------
        probability : float or ndarray
            That log p(X) / q(X) is at most `loss`, for X with the density p of shifted
            noise, and q that of the noise.

        Raises
        ------
        ValueError
            If it depends on the direction of the shift.
        """
        loss = check_each(check_real, loss=loss)
        if not isinstance(shift, Shift):
            shift = one_coordinate(shift)
        _, u = self._resolved(shift)
        one_moves = shift.structure == "scalar" or shift.common_dim(self.dim) == 1
        if not one_moves and self.beta != 2:
            raise value_error("shaped.loss_depends_on_direction")
        # the loss is zero without a shift, and infinite where nothing hides one
        if u == 0 or math.isinf(u):
            found = np.where(np.asarray(loss) >= 0, float(u == 0), 0.0)
        else:
            found = _loss.loss_cdf(loss, u, self.beta)
        probability: Number = plain(found)
        return probability

    # -- the noise itself --------------------------------------------------------------

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Return independent draws: signed powers of gamma variables.

        Nardon and Pianca (2009), Simulation techniques for generalized Gaussian
        densities.
        """
        if self.beta in _TWINS:
            twin = _TWINS[self.beta]
            return twin.noise._sample_unit(shape, rng) / twin.factor
        # |x|^beta has the gamma distribution of shape 1 / beta
        size = rng.standard_gamma(1 / self.beta, size=shape) ** (1 / self.beta)
        return size * (2 * rng.integers(0, 2, size=shape) - 1)

    def tail(self, t: Number) -> Number:
        """Return the probability that a coordinate of the noise is beyond -t or t."""
        t = check_each(check_non_negative, t=t)
        probability: Number = plain(_loss.tail(self._in_scales(t), self.beta))
        return probability

    def cdf(self, x: Number) -> Number:
        """Return the distribution function of the coordinates of the noise."""
        x = check_each(check_real, x=x)
        # without noise all mass is at zero: 0 / 0 there counts as above it
        probability: Number = plain(
            _loss.cdf(self._in_scales(x, zero=np.inf), self.beta)
        )
        return probability

    def quantile(self, p: Number) -> Number:
        """Return the inverse of `cdf`, in the unit of the output."""
        p = check_each(_check_share, p=p)
        x: Number = plain(np.asarray(self.scale) * _loss.quantile(p, self.beta))
        return x

    def _in_scales(self, x: Numbers, zero: float = 0.0) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.asarray(x, float) / np.asarray(self.scale)
        return np.where(np.isnan(ratio), zero, ratio)


def _check_share(**named: Any) -> float:
    """Return the one named value as a float in [0, 1]."""
    ((name, raw),) = named.items()
    value = check_real(**named)
    if not 0 <= value <= 1:
        raise value_error("shaped.share_out_of_range", name=name, share=raw)
    return value
