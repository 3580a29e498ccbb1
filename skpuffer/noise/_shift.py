"""Shifts: balls of displacements that bound how far an output can move."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.utils._checks import (
    check_at_least_one,
    check_count,
    check_non_negative,
    check_option,
    check_positive,
)
from skpuffer.utils._plain import Plain


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
        weights, dim = self.weights, self.dim
        if dim is not None:
            dim = check_count(dim=dim)
        if weights is not None:
            weights = tuple(check_positive(weights=w) for w in weights)
            dim = check_count(dim=len(weights)) if dim is None else dim
            if len(weights) != dim:
                raise ValueError(
                    f"The parameter 'weights' must have one entry for each of the "
                    f"dim={dim} coordinates. Got {len(weights)}; set dim or weights."
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

        It is the radius times the operator norm of ``diag(weights / scale)`` from
        this shift's norm p to the norm q asked for: the largest entry if p <= q or
        only one coordinate moves, and by Hölder's inequality the r-norm of the
        entries with 1/r = 1/q - 1/p otherwise. Both are attained.

        Parameters
        ----------
        scale : float or array-like of shape (dim,)
            Divides the displacement, coordinate by coordinate; zero gives inf.
        norm : float
            Order q of the norm in which to measure, in [1, inf].

        Returns
        -------
        magnitude : float

        Raises
        ------
        ValueError
            If `scale` has another length than the shift, or if the answer depends on
            an unknown dimension.
        """
        norm = check_at_least_one(norm=norm)
        scale = np.asarray(scale, dtype=float)
        dim = self.common_dim(None if scale.ndim == 0 else scale.size)
        weights = 1.0 if self.weights is None else np.asarray(self.weights)
        with np.errstate(divide="ignore"):  # a scale of zero
            ratio = np.divide(weights, scale)
        if self.radius == 0:
            return 0.0
        if self.structure == "scalar" or self.norm <= norm:
            return self.radius * float(np.max(ratio))
        if dim is None:
            raise ValueError(
                f"Norm mismatch: a shift bounded in the {self.norm:g}-norm has no "
                f"bound in the {norm:g}-norm that holds in every dimension. Bound it "
                f"in that norm (norm={norm:g}), or state its dimension (dim=...)."
            )
        power = 1 / norm - 1 / self.norm
        # the r-norm of equal entries is one of them times dim^(1/r)
        if ratio.ndim == 0:
            return self.radius * float(ratio) * dim**power
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
        if self.dim is None or dim is None:
            return dim if self.dim is None else self.dim
        if self.dim != dim:
            raise ValueError(
                f"The shift has dim={self.dim} but the noise has {dim} coordinates. "
                f"Pass Shift(..., dim={dim}), or noise of one scale."
            )
        return dim


def one_coordinate(shift: float) -> Shift:
    """Return the shift of any one coordinate by at most the number `shift`."""
    radius = check_non_negative(shift=shift)
    return Shift(radius, dim=None, structure="scalar")
