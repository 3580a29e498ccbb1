"""Near transport in the image of a linear map: W_inf in the norm of correlated noise.

The atoms stay what they are and only lengths are those of the image, so that a plan is
one of the atoms, whatever rounding the map adds to their images.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from numpy.typing import ArrayLike

from skpuffer.utils._types import Floats

from ._masses import common_masses
from ._near import _fraction
from ._plan import TransportPlan
from ._points import check_points, merge
from ._radius import _search

__all__ = ["near_plan_in_image"]


def near_plan_in_image(
    U: ArrayLike,
    V: ArrayLike,
    image: Callable[[Floats], Floats],
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
    delta: float | Fraction = 0,
) -> TransportPlan:
    """Coupling whose longest move is shortest in the image of a linear map.

    Parameters
    ----------
    U, V : array-like of shape (n, d) and (m, d)
        Atoms, one a row, of two numbers that may differ.
    image : callable
        Linear map of rows, from shape (k, d) to shape (k, r).
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses, as for `bottleneck_transport`.
    delta : float or fractions.Fraction, default=0
        Mass that may be left out, in [0, 1).

    Returns
    -------
    plan : TransportPlan
        Of a mass of at least ``1 - delta``: all of it for zero. It is a coupling, or a
        part of one, whatever the map is; the map says which.

    Raises
    ------
    ValueError
        As `bottleneck_transport`.

    Notes
    -----
    All pairs of atoms are held at once where they are close.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.transport import near_plan_in_image
    >>> U, V = [[0.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
    >>> tall = near_plan_in_image(U, V, lambda rows: rows * [1.0, 10.0])
    >>> np.abs(tall.displacements).max(axis=0)
    array([1., 0.])
    >>> wide = near_plan_in_image(U, V, lambda rows: rows * [10.0, 1.0])
    >>> np.abs(wide.displacements).max(axis=0)
    array([0., 1.])
    """
    share = _fraction(delta)
    U, V = check_points(U=U, V=V)
    a, b = common_masses(len(U), u_weights, len(V), v_weights)
    total = int(a.sum())
    U, a = merge(U, a)
    V, b = merge(V, b)
    # images relative to one atom: a mean far from zero would cost digits
    origin = U[:1]
    found = _search(
        image(U - origin),
        a,
        image(V - origin),
        b,
        2.0,
        math.inf,
        # rounded down: no more than delta may be left out
        math.floor(share * total),
        math.inf,
    )
    assert found is not None  # no number of pairs is too many
    _, kept = found
    assert kept is not None  # no distance is too long
    i, j, counts = kept
    return TransportPlan(U[i], V[j], counts, total)
