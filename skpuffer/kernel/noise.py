"""Base of noise families, and the privacy curve of a noise against a shift."""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import log_ndtr

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.numbers import (
    Floats,
    Number,
    Numbers,
    check_all_positive,
    check_at_least_one,
    check_count,
    check_each,
    check_extent,
    check_non_negative,
    check_option,
    check_order,
    check_probability,
    check_real,
)
from skpuffer.kernel.plain import Plain, kinds

#: Unproved assumptions, in sentences: those of Rényi costs, and those of trade-offs.
Evidence = tuple[tuple[Statement, ...], tuple[Statement, ...]]


@dataclass(frozen=True)
class Shift(Plain, kind="shift"):
    """A sensitivity bound: all displacements x with ``||x / weights|| <= radius``.

    Parameters
    ----------
    radius : float
        Radius of the ball, in the unit of the output (or, with `weights`, a pure
        number), in [0, inf].
    norm : float, default=2
        Order of the norm, in [1, inf].
    dim : int or None, default=1
        Number of coordinates. None means unknown: then costs are bounded for every
        dimension, or refused.
    structure : {"vector", "scalar"}, default="vector"
        "scalar" if only one coordinate moves, any one of them.
    weights : sequence of dim positive floats or None, default=None
        Coordinate j may move by ``radius * weights[j]``. Kept as a tuple.

    Examples
    --------
    >>> from skpuffer.noise import Shift
    >>> Shift(1.0, norm=2, dim=4).magnitude(scale=1.0, norm=1)
    2.0
    >>> Shift(1.0, norm=1, dim=None).magnitude(scale=0.5, norm=2)
    2.0
    """

    radius: float
    norm: float = 2
    dim: int | None = 1
    structure: str = "vector"
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        # plain numbers and tuples only: a shift is hashable, and so is what holds one
        weights, dim = self.weights, self.dim
        if dim is not None:
            dim = check_count(dim=dim)
        if weights is not None:
            weights = check_all_positive(weights=weights)
            dim = check_count(dim=len(weights)) if dim is None else dim
            if len(weights) != dim:
                raise value_error(
                    "noise.shift_weights_count_mismatch",
                    dim=dim,
                    n_weights=len(weights),
                )
        check_option(("vector", "scalar"), structure=self.structure)
        fields = {
            "radius": check_non_negative(radius=self.radius),
            "norm": check_at_least_one(norm=self.norm),
            "dim": dim,
            "weights": weights,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def magnitude(self, scale: ArrayLike, norm: float) -> float:
        """Return the largest ``||x / scale||`` over the displacements, in any norm.

        It is the radius times the operator norm of ``diag(weights / scale)`` from this
        shift's norm p to the norm q asked for: the largest entry if p <= q or only one
        coordinate moves, and by Hölder's inequality the r-norm of the entries with 1/r
        = 1/q - 1/p otherwise. Both are attained.

        Parameters
        ----------
        scale : float or array-like of shape (dim,)
            Divides the displacement, coordinate by coordinate; zero gives inf.
        norm : float
            Order q of the norm in which to measure, in [1, inf].

        Returns
        -------
        magnitude : float
        """
        # below order one there is no triangle inequality, and moves would not add up
        norm = check_at_least_one(norm=norm)
        scale = np.asarray(scale, dtype=float)
        dim = self.common_dim(None if scale.ndim == 0 else scale.size)
        weights = 1.0 if self.weights is None else np.asarray(self.weights)
        with np.errstate(divide="ignore"):  # a scale of zero
            ratio = np.divide(weights, scale)
        # before the ratio is used: without noise it is infinite, and 0 * inf is NaN
        if self.radius == 0:
            return 0.0
        # the whole move on the one coordinate where it weighs most: for p <= q no other
        # point of the unit ball goes further
        if self.structure == "scalar" or self.norm <= norm:
            return self.radius * float(np.max(ratio))
        if dim is None:
            raise value_error(
                "noise.shift_norm_mismatch", norm=self.norm, noise_norm=norm
            )
        # 1/r of Hölder's inequality; positive, as p > q here
        power = 1 / norm - 1 / self.norm
        # the r-norm of equal entries is one of them times dim^(1/r)
        if ratio.ndim == 0:
            return self.radius * float(ratio) * float(dim**power)
        return self.radius * float(np.linalg.norm(ratio, ord=1 / power))

    def common_dim(self, dim: int | None) -> int | None:
        """Return the dimension of this shift and a noise together, and check it.

        Parameters
        ----------
        dim : int or None
            Dimension of the noise. Either may be unknown (None); two that are known
            must agree.

        Returns
        -------
        int or None
        """
        # what is not known agrees with anything
        if self.dim is None or dim is None:
            return dim if self.dim is None else self.dim
        if self.dim != dim:
            raise value_error(
                "noise.shift_dimension_mismatch", dim=self.dim, noise_dim=dim
            )
        return dim


class Costs(Protocol):
    """Costs of unit noise as functions of the magnitude u of a shift alone.

    Result of `Noise._resolved` for one shift: the noise itself where u is all that its
    costs depend on, else an object that knows the rest.
    """

    @property
    def _evidence(self) -> Evidence:
        """Unproved assumptions, in sentences: of Rényi costs, and of trade-offs."""

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Rényi divergence in nats; arrays broadcast; alpha and u may be inf."""

    def _delta(self, epsilon: Numbers, u: Numbers) -> Numbers:
        """Hockey-stick divergence at exp(epsilon); arrays broadcast."""

    def _epsilon(self, delta: float, u: float) -> float:
        """Smallest epsilon >= 0 with `_delta` at most delta (> 0), rounded up."""


@dataclass(frozen=True)
class Noise(Plain, ABC):
    """Additive noise of one symmetric family; its coordinates are independent.

    Except where the family says `joint`.

    A family supplies the class attributes `family`, `norm` and `unit_variance` and the
    methods `_sample_unit` and `_resolved`, which returns the `Costs` of one shift;
    where they depend on its magnitude alone, it derives from `MagnitudeNoise`.
    :meth:`curve` asks `_resolved` once; all other answers are read off the curve.

    Parameters
    ----------
    scale : float or array-like of shape (dim,), default=1.0
        Scale of the noise, in the unit of the output, or one for each coordinate (kept
        as a tuple). Zero releases exactly: it costs nothing for a zero shift and
        everything for any other.

    Examples
    --------
    All families are used alike. Here is what each needs for one promise, and what that
    costs in another form:

    >>> from skpuffer.accountants import scale_for_delta
    >>> from skpuffer.noise import GaussianNoise, LaplaceNoise
    >>> for noise in (GaussianNoise(), LaplaceNoise()):
    ...     scale = scale_for_delta(noise, epsilon=1.0, delta=1e-5, shift=1.0)
    ...     enough = noise.with_scale(scale)
    ...     print(enough.family, round(scale, 3), round(enough.renyi(2, 1.0), 3))
    gaussian 3.731 0.072
    laplace 1.0 0.619
    """

    scale: float | tuple[float, ...] = 1.0

    family: ClassVar[str]
    kind_key: ClassVar[str] = "family"
    #: Order of the norm in which a shift is measured.
    norm: ClassVar[float]
    #: Variance of one coordinate at scale one.
    unit_variance: ClassVar[float]
    #: Whether the density is log-concave, so that moves of one coordinate add up to no
    #: more than one move by their sum does.
    log_concave: ClassVar[bool] = True
    #: Whether coordinates depend on each other, so that one draw is the noise of one
    #: whole vector and costs do not add up over coordinates.
    joint: ClassVar[bool] = False
    #: Whether accountants take it by its name: a scale alone makes it, and it hides the
    #: moves of numbers.
    by_name: ClassVar[bool] = True
    #: Families by the name they are defined under.
    families: ClassVar[dict[str, "type[Noise]"]] = {}
    #: Whether the noise consists of integers, and the query must do so too.
    integer: ClassVar[bool] = False
    #: The mu of mu-Gaussian privacy at magnitude one, or None if it is not Gaussian.
    _mu_per_unit: ClassVar[float | None] = None
    #: Whether its trade-off is proved and attained, so that it is what to compose.
    _exact_trade_off: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _checked_scale(self.scale))

    def __init_subclass__(cls, **kwargs: object) -> None:
        # a subclass of a family without a name of its own is no such noise
        name: Any = vars(cls).get("family")
        super().__init_subclass__(kind=name, **kwargs)
        if kinds(cls.kind_key).get(name) is cls:
            Noise.families[name] = cls

    # -- what a family supplies ------------------------------------------------------

    @abstractmethod
    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws of noise of scale one."""

    @abstractmethod
    def _resolved(self, shift: Shift | Floats) -> tuple[Costs, Numbers]:
        """Costs that apply to a shift, and the magnitude u to ask them at.

        Parameters
        ----------
        shift : Shift or ndarray
            An array holds one-coordinate shifts.
        """

    # -- what a shift costs ----------------------------------------------------------

    def curve(self, shift: Shift | Numbers) -> "ShiftCurve":
        """Return the privacy curve of this noise against one shift.

        Parameters
        ----------
        shift : Shift, float or ndarray
            Bound on the displacement of the output. A float means one coordinate that
            moves by at most so much, an array one such shift for each entry.

        Returns
        -------
        ShiftCurve

        Raises
        ------
        ValueError
            If a shift is negative, or its norm does not fit the family and the
            dimension is unknown.
        """
        return ShiftCurve(self, shift)  # type: ignore[arg-type] # a number becomes one

    @overload
    def renyi(self, alpha: Number, shift: Shift | float) -> Number: ...

    @overload
    def renyi(self, alpha: Numbers, shift: Floats) -> Floats: ...

    def renyi(self, alpha: Numbers, shift: Shift | Numbers) -> Numbers:
        """Return the Rényi divergence of shifted noise, over the worst displacement.

        Parameters
        ----------
        alpha : float or ndarray
            Rényi order, in (1, inf]; inf gives the pure-epsilon cost.
        shift : Shift, float or ndarray
            As in :meth:`curve`. Arrays broadcast.

        Returns
        -------
        cost : float or ndarray
            In nats, inf where the divergence is.

        Raises
        ------
        ValueError
            If an order is not above one, a shift is negative, or its norm does not fit
            the family and the dimension is unknown.
        """
        # every answer is read off one curve, so that no two of them can disagree
        return self.curve(shift).renyi(alpha)

    @overload
    def pure_epsilon(self, shift: Shift | float) -> float: ...

    @overload
    def pure_epsilon(self, shift: Floats) -> Floats: ...

    def pure_epsilon(self, shift: Shift | Numbers) -> Numbers:
        """Return the pure-epsilon cost, `renyi` at the order inf."""
        # the Rényi divergence of order inf is the largest privacy loss (Mironov 2017)
        return self.renyi(math.inf, shift)

    @overload
    def delta(self, epsilon: Number, shift: Shift | float) -> Number: ...

    @overload
    def delta(self, epsilon: Numbers, shift: Floats) -> Floats: ...

    def delta(self, epsilon: Numbers, shift: Shift | Numbers) -> Numbers:
        """Return the hockey-stick divergence, over the worst displacement.

        Parameters
        ----------
        epsilon : float or ndarray
            In nats; negative values are meaningful (and needed to compose).
        shift : Shift, float or ndarray
            As in `renyi`.

        Returns
        -------
        delta : float or ndarray
            In [0, 1]: the smallest for which (epsilon, delta) holds.
        """
        return self.curve(shift).delta(epsilon)

    @overload
    def epsilon(self, delta: Number, shift: Shift | float) -> Number: ...

    @overload
    def epsilon(self, delta: Numbers, shift: Floats) -> Floats: ...

    def epsilon(self, delta: Numbers, shift: Shift | Numbers) -> Numbers:
        """Return the smallest epsilon >= 0 with (epsilon, delta), rounded up.

        Parameters
        ----------
        delta : float or ndarray
            In [0, 1); zero asks for the pure-epsilon cost.
        shift : Shift, float or ndarray
            As in `renyi`.

        Returns
        -------
        epsilon : float or ndarray
            In nats, with ``self.delta(epsilon, shift) <= delta``.
        """
        return self.curve(shift).epsilon(delta)

    def evidence(
        self, shift: Shift | float, renyi: bool = False
    ) -> tuple[Statement, ...]:
        """Return the unproved assumptions that the costs of a shift rest on.

        Parameters
        ----------
        shift : Shift or float
        renyi : bool, default=False
            Whether of the Rényi costs, or of the trade-off.

        Returns
        -------
        tuple of str
            Sentences for a certificate; none where everything is proved.
        """
        return self.curve(shift).evidence(renyi)

    # -- the noise itself ------------------------------------------------------------

    def sample(
        self, shape: int | tuple[int, ...], rng: np.random.Generator | int | None
    ) -> Floats:
        """Draw noise.

        Parameters
        ----------
        shape : int or tuple of int
            Shape of the result; its last axis is the coordinates if the noise has a
            dimension.
        rng : numpy.random.Generator, int or None
            None draws from the operating system; never NumPy's global state.

        Returns
        -------
        noise : ndarray of the shape asked for
        """
        shape = shape if isinstance(shape, tuple) else (shape,)
        shape = tuple(check_count(least=0, shape=n) for n in shape)
        # a wrong last axis would spread the scales over the wrong coordinates
        if self.dim is not None and shape[-1:] != (self.dim,):
            raise value_error("noise.sample_shape_mismatch", dim=self.dim, shape=shape)
        generator, _ = noise_generator(rng)
        return self._draw(shape, generator)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Draws of noise at this scale."""
        # noise of scale s is s times unit noise, except on the integers
        draws: Floats = self._sample_unit(shape, rng) * np.asarray(self.scale)
        return draws

    @property
    def dim(self) -> int | None:
        """Number of coordinates, or None if the noise fits any number."""
        return len(self.scale) if isinstance(self.scale, tuple) else None

    @property
    def is_zero(self) -> bool:
        """Whether nothing is added at all: an exact release."""
        # only if every coordinate is exact: some noise elsewhere is no exact release
        return not np.any(self.scale)

    @property
    def has_bounded_loss(self) -> bool:
        """Whether a large enough scale keeps a pure promise."""
        # one shift and one scale stand for all: if the loss of these has no bound, no
        # larger scale gives it one
        return math.isfinite(self.with_scale(1.0).pure_epsilon(1.0))

    def with_scale(self, scale: ArrayLike) -> Self:
        """Return the same family with another scale."""
        return replace(self, scale=scale)  # type: ignore[arg-type] # made a float or a tuple

    def in_units(self, units: ArrayLike) -> Self:
        """Return noise of which each coordinate is so many times as large.

        Parameters
        ----------
        units : array-like of shape (dim,)

        Returns
        -------
        Noise
            Of the same family.
        """
        return self.with_scale(np.multiply(self.scale, units))

    def variance(self, dim: int | None = None) -> Numbers:
        """Return the variance of each coordinate.

        Parameters
        ----------
        dim : int or None, default=None
            Number of coordinates to spell out, where the noise fits any number.

        Returns
        -------
        variance : float or ndarray of shape (dim,)
            A float if the noise has no dimension and none is given.
        """
        if dim is not None:
            dim = check_count(dim=dim)
            if self.dim not in (None, dim):
                raise value_error(
                    "noise.variance_dimension_mismatch", noise_dim=self.dim, dim=dim
                )
        # a broadcast view is read-only, and callers may write, hence the copy
        variance = self._variance()
        return variance if dim is None else np.broadcast_to(variance, (dim,)).copy()

    def _variance(self) -> Numbers:
        # infinite for families whose tails have no second moment
        squares: Numbers = plain(np.square(self.scale))
        return self.unit_variance * squares

    def std(self, dim: int | None = None) -> Numbers:
        """Return the standard deviation of each coordinate, shaped as `variance`."""
        deviations: Numbers = plain(np.sqrt(self.variance(dim)))
        return deviations


class MagnitudeNoise(Noise):
    """Base of noise whose cost depends on a shift only through its magnitude u.

    The magnitude is the largest `norm` of the displacement in units of the scale. A
    family is a frozen dataclass. It supplies `family`, `norm`, `unit_variance`,
    `_sample_unit`, and `_renyi` and `_delta` of unit noise; all else has numeric
    defaults. The class registers its name `family` when it is defined: accountants take
    the name, and certificates that hold the noise are read back.

    Parameters
    ----------
    scale : float or array-like of shape (dim,), default=1.0
        As of :class:`Noise`.

    Examples
    --------
    A family that rounds the cost of Laplace noise up to the pure cost:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.noise import LaplaceNoise, MagnitudeNoise
    >>> @dataclass(frozen=True)
    ... class CautiousNoise(MagnitudeNoise):
    ...     family = "cautious"
    ...     norm = 1.0
    ...     unit_variance = 2.0
    ...
    ...     def _sample_unit(self, shape, rng):
    ...         return rng.laplace(size=shape)
    ...
    ...     def _renyi(self, alpha, u):
    ...         return np.asarray(u) + 0.0 * np.minimum(alpha, 1)
    ...
    ...     def _delta(self, epsilon, u):
    ...         return LaplaceNoise().delta(epsilon, np.asarray(u))
    >>> CautiousNoise(2.0).renyi(4.0, 1.0)
    0.5
    >>> GroupPrivacy(noise="cautious").unit_order
    1.0
    """

    #: Unproved assumptions, in sentences: of Rényi costs, and of trade-offs.
    _evidence: ClassVar[Evidence] = ((), ())

    @abstractmethod
    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Rényi divergence in nats; arrays broadcast; alpha and u may be inf."""

    @abstractmethod
    def _delta(self, epsilon: Numbers, u: Numbers) -> Numbers:
        """Hockey-stick divergence at exp(epsilon); arrays broadcast."""

    def _epsilon(self, delta: float, u: float) -> float:
        """Smallest epsilon >= 0 with `_delta` at most delta (> 0), rounded up."""
        # the divergence is one at every epsilon, and a search for less would not end
        if math.isinf(u):
            return math.inf
        return smallest_argument(lambda epsilon: self._delta(epsilon, u), delta)

    # -- from a shift to its magnitude u ---------------------------------------------

    def _magnitude(self, shift: Shift | Floats) -> Numbers:
        """Magnitude u of a shift: its worst norm in units of the scale.

        An array holds one-coordinate shifts, and so does the result.
        """
        if isinstance(shift, Shift):
            return shift.magnitude(self.scale, self.norm)
        # a norm is homogeneous: what one unit costs gives all others
        per_unit = self._magnitude(one_coordinate(1.0))
        # 0 * inf: a shift of zero costs nothing, even without noise
        with np.errstate(invalid="ignore"):
            return np.where(np.equal(shift, 0), 0.0, shift * per_unit)[()]

    def _resolved(self, shift: Shift | Floats) -> tuple[Costs, Numbers]:
        """Return the noise itself: the worst displacement is the longest."""
        return self, self._magnitude(shift)


@dataclass(frozen=True)
class ShiftCurve(Plain, kind="shifted_noise"):
    """Privacy curve of a noise against a shift.

    Which costs apply, and the magnitude they are functions of, is found once.

    Parameters
    ----------
    noise : Noise
        The noise.
    shift : Shift, float or ndarray
        The shift; a float means one coordinate that moves by at most so much, an array
        one such shift for each entry, and then every cost is an array.

    Examples
    --------
    >>> from skpuffer.noise import GaussianNoise
    >>> curve = GaussianNoise(scale=2.0).curve(1.0)
    >>> curve.renyi(8), curve.gaussian_mu
    (1.0, 0.5)
    """

    noise: Noise
    shift: Shift

    def __post_init__(self) -> None:
        # annotations are those of one shift; of an array of them, all are arrays
        self.magnitude: float
        self._costs: Costs
        shift: Any = self.shift
        if not isinstance(shift, Shift):
            shift = check_each(check_non_negative, shift=shift)
            shift = shift if np.ndim(shift) else one_coordinate(shift)
            object.__setattr__(self, "shift", shift)
        # found here, once: searches for a scale ask the curve many times
        costs, magnitude = self.noise._resolved(shift)
        object.__setattr__(self, "_costs", costs)
        object.__setattr__(self, "magnitude", plain(magnitude))

    def renyi(self, alpha: Number) -> Number:
        """Return the Rényi cost in nats at one order or an array of orders."""
        alpha = check_each(check_order, alpha=alpha)
        cost: Number = plain(self._costs._renyi(alpha, self.magnitude))
        return cost

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return the Rényi costs at many orders, of one shift."""
        costs: list[float] = self.renyi(np.array(orders)).tolist()
        return costs

    def delta(self, epsilon: Number) -> Number:
        """Return the hockey-stick divergence at one epsilon or an array of them."""
        epsilon = check_each(check_real, epsilon=epsilon)
        divergence: Number = plain(self._costs._delta(epsilon, self.magnitude))
        return divergence

    def epsilon(self, delta: Number) -> Number:
        """Return the smallest epsilon >= 0 with (epsilon, delta), rounded up."""
        delta = check_each(_check_delta, delta=delta)
        # delta = 0 asks for the largest privacy loss; where that is infinite, a search
        # along the curve would not end
        pure = np.equal(delta, 0)
        if np.all(pure):
            # zeros added, for the shape that both have together
            found: Number = plain(np.add(delta, self.renyi(math.inf)))
            return found
        # root finders take one number at a time
        if np.ndim(delta) == np.ndim(self.magnitude) == 0:
            once: Number = plain(self._costs._epsilon(float(delta), self.magnitude))
            return once
        find = np.vectorize(self._costs._epsilon, otypes=[float])
        # a stand-in for delta = 0, whose epsilon is the pure cost below
        usual = find(np.where(pure, 0.5, delta), self.magnitude)
        if np.any(pure):
            usual = np.where(pure, self.renyi(math.inf), usual)
        found = plain(usual)
        return found

    def evidence(self, renyi: bool = False) -> tuple[Statement, ...]:
        """Return the unproved assumptions of the Rényi costs, or of the trade-off."""
        return self._costs._evidence[0 if renyi else 1]

    @property
    def gaussian_mu(self) -> float | None:
        """The mu of mu-Gaussian differential privacy, or None if not Gaussian.

        For Gaussian noise this is the shift in standard deviations, and the whole
        curve follows from it (Dong, Roth and Su, 2022).
        """
        # the magnitude of Gaussian noise is the l2 norm in standard deviations: that is
        # mu
        mu = self.noise._mu_per_unit
        return None if mu is None else mu * self.magnitude

    @property
    def exact_trade_off(self) -> bool:
        """Whether the trade-off is proved, and that of two tables."""
        return self.noise._exact_trade_off

    def times(self, factor: float) -> "ShiftCurve":
        """Return the curve of the same noise against a multiple of the shift."""
        return ShiftCurve(
            self.noise, replace(self.shift, radius=factor * self.shift.radius)
        )


def one_coordinate(shift: float) -> Shift:
    """Return the shift of any one coordinate by at most the number `shift`."""
    # of unknown dimension: coordinates that do not move cost nothing
    radius = check_non_negative(shift=shift)
    return Shift(radius, dim=None, structure="scalar")


def _checked_scale(scale: ArrayLike) -> float | tuple[float, ...]:
    """Return a finite scale >= 0 as a float, or one for each coordinate as a tuple."""
    array = np.asarray(check_each(check_non_negative, scale=scale))
    # each distinct value once: there may be a scale for each of many coordinates
    for value in {*array.ravel().tolist()}:
        if math.isinf(check_extent(scale=value)):
            raise value_error("noise.scale_not_finite", scale=scale)
    if array.ndim == 0:
        return float(array)
    if array.ndim > 1 or array.size == 0:
        raise value_error("noise.scale_shape_wrong", shape=array.shape)
    return tuple(array.tolist())


def _check_delta(**named: object) -> float:
    """Return the one named value as a float in [0, 1)."""
    ((name, value),) = named.items()
    # exactly zero is another kind of promise; what is merely tiny is refused
    return 0.0 if check_real(**named) == 0 else check_probability(**named)


def plain(value: Numbers) -> Number:  # type: ignore[type-var] # the caller's
    """Return a float for a number or an array of no dimension; else the array."""
    return float(value) if np.ndim(value) == 0 else value  # type: ignore[return-value]


# -- gaussian noise, and its exact trade-off -------------------------------------------


@dataclass(frozen=True)
class GaussianNoise(MagnitudeNoise):
    """Gaussian noise with independent coordinates, N(0, scale² I).

    Parameters
    ----------
    scale : float or array-like of shape (dim,), default=1.0
        Standard deviation, in the unit of the output, or one for each coordinate.

    See Also
    --------
    CorrelatedGaussianNoise : Of any covariance.

    Notes
    -----
    Every divergence of N(x, Σ) from N(0, Σ) depends on x only through its Mahalanobis
    norm, the l2 norm of x in standard deviations, and grows with it, so the worst
    displacement is the longest in that norm. Pierquin et al. (2024), Corollary 3.1, for
    the Rényi divergence; Balle and Wang (2018) for the hockey-stick divergence.

    Examples
    --------
    >>> from skpuffer.noise import GaussianNoise
    >>> GaussianNoise(scale=2.0).renyi(8, 1.0)
    1.0
    """

    family = "gaussian"
    norm = 2.0
    unit_variance = 1.0
    _mu_per_unit = 1.0

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        # in floating point, where theorems take a real number: a fit's certificate
        # names it as an assumption
        return rng.standard_normal(shape)

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        alpha, u = np.asarray(alpha, float), np.asarray(u, float)
        with np.errstate(over="ignore", invalid="ignore"):  # inf * 0
            # of N(u, 1) from N(0, 1): alpha u² / 2
            return np.where(u == 0, 0.0, alpha / 2 * u**2)

    def _delta(self, epsilon: Numbers, u: Numbers) -> Numbers:
        return gaussian_delta(epsilon, u)

    def _epsilon(self, delta: float, u: float) -> float:
        return gaussian_epsilon(delta, u)

    def covariance_matrix(self, dim: int) -> Floats:
        """Return the covariance of the noise in `dim` coordinates."""
        # independent coordinates are uncorrelated
        return np.diag(np.broadcast_to(self.variance(dim), (dim,)))

    def whitened(self, displacements: Floats) -> Floats:
        """Return displacements, one a row, in standard deviations of the noise."""
        # after which the worst displacement is simply the longest
        return np.asarray(displacements / np.asarray(self.scale))


@overload
def gaussian_delta(epsilon: float, mu: float) -> float: ...


@overload
def gaussian_delta(epsilon: Floats, mu: Numbers) -> Floats: ...


@overload
def gaussian_delta(epsilon: Numbers, mu: Floats) -> Floats: ...


def gaussian_delta(epsilon: Numbers, mu: Numbers) -> Numbers:
    """Hockey-stick divergence of N(mu, 1) from N(0, 1) at exp(epsilon).

    Parameters
    ----------
    epsilon : float or ndarray
        In nats; negative values are meaningful.
    mu : float or ndarray
        Distance of the means in standard deviations, in [0, inf]. Arrays broadcast.

    Returns
    -------
    delta : float or ndarray
        In [0, 1].

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism, Theorem 8.
    """
    if isinstance(epsilon, float) and isinstance(mu, float):
        # solvers ask for single numbers by the thousand: spare them the arrays
        if mu == 0:
            return max(0.0, -math.expm1(epsilon)) if epsilon < 700 else 0.0
        if math.isinf(mu):
            return 1.0
        if math.isinf(epsilon):
            return 0.0 if epsilon > 0 else 1.0
        return float(_difference(epsilon, mu))
    epsilon, mu = np.asarray(epsilon, float), np.asarray(mu, float)
    # limits are put in afterwards: where mu or epsilon is infinite or zero, NaN comes
    # out
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = _difference(epsilon, mu)
        value = np.where(np.isinf(epsilon), np.where(epsilon > 0, 0.0, 1.0), value)
        value = np.where(mu == 0, np.maximum(0.0, -np.expm1(epsilon)), value)
        value = np.where(np.isinf(mu), 1.0, value)
    return float(value) if value.ndim == 0 else value


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Smallest epsilon >= 0 with ``gaussian_delta(epsilon, mu) <= delta``.

    Rounded up: the value returned never promises more than holds.
    """
    # no epsilon is needed where delta covers the total variation already
    if mu == 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if math.isinf(mu):
        return math.inf
    # the loss is N(mu²/2, mu²), so that P(loss > epsilon) <= delta at this upper end
    upper = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1.0
    if mu > 1e8:  # it is as good as exact, and the curve has lost its digits
        return upper * (1 + 1e-12)
    # bracketed by a point that misses delta and one that meets it
    return root_above(partial(gaussian_delta, mu=mu), delta, 0.0, upper)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu with ``gaussian_delta(epsilon, mu) <= delta``, rounded down."""
    mu = largest_argument(partial(gaussian_delta, epsilon), delta, 1.0)
    # evaluated once more, as it is by whoever asks the curve: down is the safe side
    while gaussian_delta(epsilon, mu) > delta:
        mu *= 1 - 1e-12
    return mu


def _difference(epsilon: Numbers, mu: Numbers) -> Floats:
    """Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)."""
    # Theorem 8 of Balle and Wang with mu the sensitivity over the standard deviation.
    first = log_ndtr(mu / 2 - epsilon / mu)
    # exp(epsilon) * Phi(...) in logarithms: the product is tame, its factors are not
    second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    # as exp(first) (1 - exp(second - first)), without the cancellation of two small
    # terms
    difference: Floats = np.exp(first) * -np.expm1(np.minimum(second - first, 0.0))
    return difference


# -- inverses of functions -------------------------------------------------------------


# Costs are evaluated to a few units in the last place, some 1e-15 relative, and roots
# are found to 1e-14: a thousandfold margin on both that no reader will ever notice.
MARGIN = 1e-12


def largest_argument(
    function: Callable[[float], Numbers], target: float, start: float
) -> float:
    """Return nearly the largest u > 0 with ``function(u) <= target``, rounded down.

    The function is increasing and continuous on (0, inf), zero at zero; `start` is a
    positive guess. The result is below the root by the relative `MARGIN`.
    """

    def excess(u: float) -> Numbers:
        # relative, as targets span hundreds of decades
        return function(u) / target - 1

    # a bracket that grows by factors reaches any scale in few steps
    low = high = start
    # a bracket with excess(low) <= 0 < excess(high)
    while excess(low) > 0:
        low, high = low / 4, low
        # above the target everywhere, as far as floats go
        if low < sys.float_info.min:
            raise value_error("noise.no_finite_scale")
    while excess(high) <= 0:
        low, high = high, high * 4
        # the target is met as far as floats go
        if math.isinf(high):
            return low
    root: float = brentq(excess, low, high, xtol=low * 1e-15, rtol=1e-15)
    # down: a smaller shift per unit of noise is more noise
    return root * (1 - MARGIN)


def smallest_argument(function: Callable[[float], Numbers], target: float) -> float:
    """Return nearly the smallest e >= 0 with ``function(e) <= target``, rounded up.

    The function is decreasing and continuous on [0, inf) with limit zero.
    """
    if function(0.0) <= target:
        return 0.0
    high = 1.0
    while function(high) > target:
        high *= 2
        # no float is enough: infinity is the only safe answer
        if math.isinf(high):
            return high
    return root_above(function, target, 0.0, high)


def root_above(
    function: Callable[[float], Numbers], target: float, low: float, high: float
) -> float:
    """Return nearly the smallest x with ``function(x) <= target``, rounded up.

    The function is decreasing, and may be infinite. The target is met at `high`, and
    not at `low`.
    """
    root: float = brentq(
        # of the logarithm, as a divergence spans hundreds of decades
        lambda x: math.log(min(max(function(x) / target, 1e-300), 1e300)),
        low,
        high,
        xtol=1e-15 * (low or high),
        rtol=1e-14,
    )
    found, step = root, 2.0**-50
    while found < high and function(found) > target:
        # a function read off a grid is smooth to the width of its cells only
        step *= 4
        # up, and never beyond the end at which the target is known to be met
        found = min(high, max(root, 1e-15 * high) * (1 + step))
    return found


def raise_until(holds: Callable[[float], object], value: float) -> float:
    """Return the value itself or the next few floats above at which `holds` is true.

    A closed form evaluated in floating point may miss its target by a unit in the last
    place; this makes the promise hold as evaluated.
    """
    step = 2.0**-53
    while not holds(value):
        step *= 2
        if step > 1e-6 or not math.isfinite(value):
            raise value_error("noise.no_finite_scale")
        # by doubling steps: a few units in the last place, if the closed form is right
        value = value * (1 + step)
    return value
