"""Target of a promise: a Rényi order, or a delta."""

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_order, check_probability

__all__ = ["DEFAULT_ORDER", "check_order_or_delta"]

#: Rényi order of a promise that names neither an order nor a delta.
DEFAULT_ORDER = 2.0


def check_order_or_delta(alpha: float | None, delta: float | None) -> float | None:
    """Check that one kind of promise is asked for: at an order, or with a delta.

    Parameters
    ----------
    alpha : float or None
        Rényi order, greater than 1; infinity for a pure promise.
    delta : float or None
        In (0, 1).

    Returns
    -------
    float or None
        The order, that by default if neither is given; None if there is a delta.

    Raises
    ------
    TypeError, ValueError
        If one of them is no such number, or both are given.
    """
    if delta is None:
        return DEFAULT_ORDER if alpha is None else check_order(alpha=alpha)
    check_probability(delta=delta)
    # one promise a certificate: with both it would be unclear which one the noise is
    # for
    if alpha is not None:
        raise ValueError(Statement("parameter.alpha_and_delta_both"))
    return None
