"""Noise of a differentially private mean, to hold budgets of information against."""

from scipy.stats import binom

from skpuffer.kernel.gaussian import gaussian_mu
from skpuffer.kernel.numbers import (
    check_count,
    check_option,
    check_positive,
    check_probability,
)

__all__ = ["dp_mean_power", "published_dp_mean_power"]

#: How far a record may move a sum of clipped rows, in clipping norms.
_MOVES = {"add_remove": 1.0, "replace": 2.0}


def dp_mean_power(
    epsilon: float,
    delta: float,
    *,
    clip_norm: float,
    dim: int,
    denominator: float,
    relation: str = "add_remove",
) -> float:
    """Noise power of a differentially private mean with a public denominator.

    Parameters
    ----------
    epsilon, delta : float
        The promise; `delta` in (0, 1).
    clip_norm : float
        Euclidean norm to which rows are clipped.
    dim : int
        Number of columns.
    denominator : float
        What the noisy sum is divided by. It must be public: the size of the table, or
        the expected number of members.
    relation : {'add_remove', 'replace'}, default='add_remove'
        Whether a record comes and goes, or becomes another.

    Returns
    -------
    power : float
        Expected squared norm of the noise of the mean.

    Raises
    ------
    ValueError
        If a parameter is not in its range.

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism, Theorem 8.

    Examples
    --------
    >>> from skpuffer.information import dp_mean_power
    >>> round(dp_mean_power(1.0, 1e-6, clip_norm=1.0, dim=4, denominator=15), 6)
    0.317296
    """
    move = _MOVES[check_option(_MOVES, relation=relation)]
    move *= check_positive(clip_norm=clip_norm)
    epsilon, delta = check_positive(epsilon=epsilon), check_probability(delta=delta)
    # the deviation of the noise of the sum
    deviation = move / gaussian_mu(epsilon, delta)
    dim = check_count(dim=dim)
    return dim * (deviation / check_positive(denominator=denominator)) ** 2


def published_dp_mean_power(
    epsilon: float,
    delta: float,
    *,
    clip_norm: float,
    dim: int,
    n_records: int,
    rate: float = 0.5,
) -> float:
    r"""Noise power of the published baseline, whose secret count is not paid for.

    Parameters
    ----------
    epsilon, delta : float
        What the noise of the sum promises; `delta` in (0, 1).
    clip_norm : float
        Euclidean norm to which rows are clipped.
    dim : int
        Number of columns.
    n_records : int
        Records of the pool.
    rate : float, default=0.5
        Probability with which each record is a member, in (0, 1).

    Returns
    -------
    power : float
        :math:`d \sigma^2 C^2 E[1 / S^2]` with the number `S` of members, at least one.

    Raises
    ------
    ValueError
        If a parameter is not in its range.

    See Also
    --------
    dp_mean_power : With a public denominator, which keeps the promise.

    Notes
    -----
    **This does not keep the promise.** The number of members is secret as they are, and
    the release is divided by it: of two tables whose rows are all zero, the smaller
    one's noise is larger. It is here to repeat what was published.

    Examples
    --------
    >>> from skpuffer.information import published_dp_mean_power
    >>> round(published_dp_mean_power(2.983, 1e-6, clip_norm=1, dim=4, n_records=30), 4)
    0.048
    """
    n_records, rate = check_count(n_records=n_records), check_probability(rate=rate)
    counts = range(n_records + 1)
    masses = binom.pmf(counts, n_records, rate)
    inverse_square = sum(
        mass / max(count, 1) ** 2 for count, mass in zip(counts, masses, strict=True)
    )
    power = dp_mean_power(epsilon, delta, clip_norm=clip_norm, dim=dim, denominator=1.0)
    return power * float(inverse_square)
