"""How far an empirical distribution may be from the one it was drawn from."""

import math

__all__ = ["variation_radius"]


def variation_radius(size: int, n: int, beta: float) -> float:
    """Radius of a total-variation ball around an empirical distribution.

    With probability at least ``1 - beta`` the distribution on `size` points that `n`
    independent draws came from is within it.

    Parameters
    ----------
    size, n : int
    beta : float

    Returns
    -------
    float

    References
    ----------
    Weissman et al. (2003), Inequalities for the L1 deviation of the empirical
    distribution, Theorem 2.1: ``P(L1 >= t) <= (2**size - 2) exp(-n t**2 / 2)``.
    """
    if size == 1:
        return 0.0
    # (2^size - 2) exp(-n t² / 2) = beta, solved for t; log(2^size - 2) without
    # overflow, and total variation is half of L1
    log_count = size * math.log(2) + math.log1p(-(2.0 ** (1 - size)))
    return 0.5 * math.sqrt(2 * (log_count + math.log(1 / beta)) / n)
