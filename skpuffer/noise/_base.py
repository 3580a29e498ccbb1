"""What every noise family answers, and how little it must say to answer it."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from skpuffer.exceptions import InfiniteDistanceError
from skpuffer.utils._checks import (
    check_count,
    check_non_negative,
    check_order,
    check_positive,
    check_real,
)
from skpuffer.utils._random import noise_generator
from skpuffer.utils._solve import largest_argument, raise_until, smallest_argument

from ._shift import Shift, one_coordinate
from ._validation import check_delta, check_each, check_scale, plain


@dataclass(frozen=True)
class Noise(ABC):
    """Additive noise with independent coordinates of one symmetric family.

    A family whose worst cost depends on the shift only through its magnitude u, the
    largest norm of the displacement in units of the scale, supplies the class
    attributes `family`, `norm` and `unit_variance` and the methods `_sample_unit`,
    `_renyi` and `_delta` of unit noise; `_u_for`, `_u_for_delta` and `_epsilon` have
    numeric defaults. A family whose cost depends on more (the dimension, how many
    coordinates move) overrides what these are called by: `_shift_renyi`,
    `_shift_delta`, `_shift_epsilon`, `_shift_u_for` and `_shift_u_for_delta`.

    Parameters
    ----------
    scale : float or array-like of shape (dim,), default=1.0
        Scale of the noise, in the unit of the output, or one for each coordinate (kept
        as a tuple). Zero releases exactly: it costs nothing for a zero shift and
        everything for any other.
    """

    scale: float | tuple[float, ...] = 1.0

    family: ClassVar[str]
    #: Order of the norm in which a shift is measured.
    norm: ClassVar[float]
    #: Variance of one coordinate at scale one.
    unit_variance: ClassVar[float]
    #: Whether the density is log-concave, so that moves of one coordinate add up to no
    #: more than one move by their sum does.
    log_concave: ClassVar[bool] = True
    #: Whether the noise consists of integers, and the query must do so too.
    integer: ClassVar[bool] = False

    def __post_init__(self):
        object.__setattr__(self, "scale", check_scale(self.scale))

    # -- what a family supplies, in terms of u = magnitude of the shift / scale ------

    @abstractmethod
    def _sample_unit(self, shape, rng):
        """Draw an array of independent noise of scale one."""

    @abstractmethod
    def _renyi(self, alpha, u):
        """Rényi divergence in nats; arrays broadcast; alpha and u may be inf."""

    @abstractmethod
    def _delta(self, epsilon, u):
        """Hockey-stick divergence at exp(epsilon); arrays broadcast."""

    def _u_for(self, alpha, epsilon):
        """Largest u that costs at most epsilon at order alpha, rounded down."""
        return largest_argument(partial(self._renyi, alpha), epsilon, start=epsilon)

    def _u_for_delta(self, epsilon, delta):
        """Largest u with a hockey-stick divergence of at most delta, rounded down."""
        return largest_argument(partial(self._delta, epsilon), delta, start=epsilon)

    def _epsilon(self, delta, u):
        """Smallest epsilon >= 0 with `_delta` at most delta (> 0), rounded up."""
        if math.isinf(u):
            return math.inf
        return smallest_argument(lambda epsilon: self._delta(epsilon, u), delta)

    # -- from a shift to its magnitude u ---------------------------------------------

    def _shift_magnitude(self, shift):
        return shift.magnitude(self.scale, self.norm)

    def _magnitude(self, shift):
        """Magnitude u of a Shift or float, or of each float of an array."""
        if isinstance(shift, Shift):
            return self._shift_magnitude(shift)
        shift = check_each(check_non_negative, shift=shift)
        per_unit = self._shift_magnitude(one_coordinate(1.0))
        with np.errstate(
            invalid="ignore"
        ):  # 0 * inf: exact release of what stands still
            return np.where(np.equal(shift, 0), 0.0, shift * per_unit)[()]

    def _shift_renyi(self, alpha, shift):
        return self._renyi(alpha, self._magnitude(shift))

    def _shift_delta(self, epsilon, shift):
        return self._delta(epsilon, self._magnitude(shift))

    def _shift_epsilon(self, delta, shift):
        return np.vectorize(self._epsilon, otypes=[float])(
            delta, self._magnitude(shift)
        )

    def _shift_u_for(self, alpha, epsilon, shift):
        return self._u_for(alpha, epsilon)

    def _shift_u_for_delta(self, epsilon, delta, shift):
        return self._u_for_delta(epsilon, delta)

    def _gaussian_mu(self, shift):
        return None

    # -- what a shift costs ----------------------------------------------------------

    def renyi(self, alpha, shift):
        """Return the Rényi divergence of the moved noise from the noise, at worst.

        Parameters
        ----------
        alpha : float or ndarray
            Rényi order, in (1, inf]; inf gives the pure-epsilon cost.
        shift : Shift, float or ndarray
            What may move. A float means one coordinate that moves by at most so much,
            an array such a shift for each of its entries. Arrays broadcast.

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
        alpha = check_each(check_order, alpha=alpha)
        return plain(self._shift_renyi(alpha, shift))

    def pure_epsilon(self, shift):
        """Return the pure-epsilon cost, `renyi` at the order inf."""
        return self.renyi(math.inf, shift)

    def delta(self, epsilon, shift):
        """Return the exact hockey-stick divergence at exp(epsilon), at worst.

        Parameters
        ----------
        epsilon : float or ndarray
            In nats; negative values are meaningful (and needed to compose).
        shift : Shift, float or ndarray
            As in `renyi`.

        Returns
        -------
        delta : float or ndarray
            In [0, 1]: the smallest delta for which epsilon holds.
        """
        epsilon = check_each(check_real, epsilon=epsilon)
        return plain(self._shift_delta(epsilon, shift))

    def epsilon(self, delta, shift):
        """Return the smallest epsilon >= 0 that goes with delta, rounded up.

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
        delta = check_each(check_delta, delta=delta)
        pure = np.equal(delta, 0)
        if np.all(pure):
            return plain(np.add(delta, self.pure_epsilon(shift)))
        # where zero, any valid stand-in does: its result is not used
        usual = self._shift_epsilon(np.where(pure, 0.5, delta), shift)
        if np.any(pure):
            usual = np.where(pure, self.pure_epsilon(shift), usual)
        return plain(usual)

    def curve(self, shift):
        """Return the whole `ShiftCurve` of this noise against one shift."""
        from ._curve import ShiftCurve  # it holds a noise, so it comes after us

        return ShiftCurve(self, shift)

    def evidence(self, shift, renyi=False):
        """Say what the costs of a shift rest on that is not proved.

        Parameters
        ----------
        shift : Shift
        renyi : bool, default=False
            Whether Rényi costs are asked for, or the trade-off.

        Returns
        -------
        tuple of str
            Sentences for a certificate; none where everything is proved.
        """
        return ()

    # -- which scale is enough -------------------------------------------------------

    def scale_for(self, alpha, epsilon, shift):
        """Return the smallest scale at which the shift costs at most epsilon.

        Parameters
        ----------
        alpha : float
            Rényi order, in (1, inf].
        epsilon : float
            Target in nats, in (0, inf).
        shift : Shift or float
            As in `renyi`.

        Returns
        -------
        scale : float or ndarray of shape (dim,)
            In the proportions of this noise, so that ``self.with_scale(scale)`` meets
            the target; rounded up, so that it does so in floating point. Zero for a
            zero shift.

        Raises
        ------
        ValueError
            If a parameter is out of range, or no scale of this family will do.
        InfiniteDistanceError
            If the shift is infinite.
        """
        alpha, epsilon = check_order(alpha=alpha), check_positive(epsilon=epsilon)
        return self._smallest_scale(
            shift,
            self._shift_u_for(alpha, epsilon, shift),
            lambda noise: noise.renyi(alpha, shift) <= epsilon,
        )

    def scale_for_delta(self, epsilon, delta, shift):
        """Return the smallest scale at which the shift obeys (epsilon, delta).

        Parameters
        ----------
        epsilon : float
            In nats, in (0, inf).
        delta : float
            In [0, 1); zero is the same as ``scale_for(inf, epsilon, shift)``.
        shift : Shift or float
            As in `renyi`.

        Returns
        -------
        scale : float or ndarray of shape (dim,)
            As in `scale_for`. By the exact divergence, not by way of Rényi orders.
        """
        epsilon, delta = check_positive(epsilon=epsilon), check_delta(delta=delta)
        if delta == 0:
            return self.scale_for(math.inf, epsilon, shift)
        return self._smallest_scale(
            shift,
            self._shift_u_for_delta(epsilon, delta, shift),
            lambda noise: noise.delta(epsilon, shift) <= delta,
        )

    def _smallest_scale(self, shift, u, enough):
        """Scale at which the shift has magnitude u, raised until it is `enough`."""
        if np.ndim(self.scale) and 0.0 in self.scale:
            raise ValueError(
                "The parameter 'scale' gives the proportions of the noise to "
                f"calibrate, so each must be positive. Got {self.scale!r}."
            )
        proportions = np.asarray(self.scale) if np.ndim(self.scale) else 1.0
        if not isinstance(shift, Shift):
            shift = one_coordinate(shift)
        magnitude = self.with_scale(proportions)._magnitude(shift)
        if magnitude == 0:
            return 0.0 * proportions
        if math.isinf(magnitude):
            raise InfiniteDistanceError(
                "The shift is infinite, so no finite scale of noise covers it. Bound "
                "the output, or use an accountant that does not need the worst shift."
            )
        multiplier = raise_until(
            lambda c: math.isfinite(c) and enough(self.with_scale(c * proportions)),
            magnitude / u,
        )
        return multiplier * proportions

    # -- the noise itself ------------------------------------------------------------

    def sample(self, shape, rng):
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
        if self.dim is not None and shape[-1:] != (self.dim,):
            raise ValueError(
                f"The last axis of 'shape' must be the {self.dim} coordinates of the "
                f"noise. Got shape {shape}."
            )
        generator, _ = noise_generator(rng)
        return self._spread(self._sample_unit(shape, generator))

    def _spread(self, unit):
        return unit * np.asarray(self.scale)

    @property
    def dim(self):
        """Number of coordinates, or None if the noise fits any number."""
        return len(self.scale) if np.ndim(self.scale) else None

    @property
    def is_zero(self):
        """Whether nothing is added at all: an exact release."""
        return not np.any(self.scale)

    def with_scale(self, scale):
        """Return the same family with another scale."""
        return replace(self, scale=scale)

    def variance(self, dim=None):
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
                raise ValueError(
                    f"The noise has {self.dim} coordinates. Got dim={dim}; omit it."
                )
        variance = self._variance()
        return variance if dim is None else np.broadcast_to(variance, (dim,)).copy()

    def _variance(self):
        return self.unit_variance * plain(np.square(self.scale))

    def std(self, dim=None):
        """Return the standard deviation of each coordinate, shaped as `variance`."""
        return plain(np.sqrt(self.variance(dim)))

    def to_dict(self):
        """Return family and parameters as plain data that JSON can hold."""
        scale = list(self.scale) if np.ndim(self.scale) else self.scale
        return {"family": self.family, "scale": scale}
