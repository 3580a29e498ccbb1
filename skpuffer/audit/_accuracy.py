"""What a certificate allows whoever guesses which of several secrets is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from skpuffer.exceptions import (
    unsupported_error,
    value_error,
)
from skpuffer.utils._checks import check_masses

from ._allowed import allowed_roc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats
    from skpuffer.privacy import Certificate


#: Secrets of which a linear programme is made: it has so many constraints for each
#: line of a curve.
_MOST_SECRETS = 200

#: Lines that are steeper bound nothing but chances below one over it.
_STEEPEST = 1e8


def largest_accuracy(
    certificate: Certificate,
    prior: ArrayLike = (0.5, 0.5),
    *,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> float:
    """Return the largest share of right guesses of the secret that is allowed.

    The guesser knows how likely each secret is. The bound for two secrets is attained
    by the best rule on the largest ROC curve. For more, no guesser need attain it.

    Parameters
    ----------
    certificate : Certificate
        A promise, not an estimate, in which each secret is a world.
    prior : array-like of shape (n_secrets,), default=(0.5, 0.5)
        How likely each secret is.
    pairs : sequence of (int, int), default=None
        Pairs of secrets, by position, that the certificate covers. None is all.

    Returns
    -------
    accuracy : float
        From the mass of the most likely secret to 1.

    Raises
    ------
    UncertifiedError
        If the certificate is an estimate, or in a notion that bounds no single attack.
    UnsupportedError
        If there are more than 200 secrets.

    Notes
    -----
    Let ``A_j`` be the outputs at which j is guessed, ``a_j`` its chance if j is true,
    and ``t_j`` its least chance under any other secret. Then ``a_j <= R(t_j)`` for the
    largest ROC curve R, and ``a_i`` with the sum of the other ``t_j`` is at most one.
    The largest mean of the ``a_j`` is a linear programme, bounded by its dual.

    Examples
    --------
    >>> from skpuffer.audit import largest_accuracy
    >>> from skpuffer.privacy import Certificate
    >>> promise = Certificate(notion="pure_pufferfish", epsilon=1.0)
    >>> round(largest_accuracy(promise), 4)
    0.7311
    >>> round(largest_accuracy(promise, [0.8, 0.2]), 4)  # no more than by guessing
    0.8
    >>> round(largest_accuracy(promise, [0.2] * 5), 4)
    0.4046
    """
    masses = check_prior(prior)
    k = len(masses)
    paired = _paired(pairs, k)
    fpr, tpr = allowed_roc(certificate)
    if k == 2 and paired[0, 1]:
        right = masses[0] * tpr + masses[1] * (1 - fpr)
        return float(min(max(right.max(), masses.max()), 1.0))
    if k > _MOST_SECRETS:
        raise unsupported_error(
            "audit.too_many_secrets", n_secrets=k, most=_MOST_SECRETS
        )
    rises, runs = np.diff(tpr), np.diff(fpr)
    kept = (runs > 0) & (rises <= _STEEPEST * runs)
    slopes = rises[kept] / runs[kept]
    heights = tpr[:-1][kept] - slopes * fpr[:-1][kept]
    # a_i + sum of t_j over the others; then a_j - slope t_j, line by line
    together = np.hstack([np.eye(k), paired])
    known = sparse.csr_array(np.eye(k)[paired.any(axis=1)])
    # divided by the slope where it is steep, for the solver's sake
    sizes = np.maximum(slopes, 1.0)
    by_line = sparse.hstack(
        [
            sparse.kron((1 / sizes)[:, None], known),
            sparse.kron((-slopes / sizes)[:, None], known),
        ]
    )
    bounded = sparse.vstack([together, by_line], format="csr")
    most = np.concatenate([np.ones(k), np.repeat(heights / sizes, known.shape[0])])
    gain = np.concatenate([masses, np.zeros(k)])
    solved = linprog(-gain, A_ub=bounded, b_ub=most, bounds=(0, 1), method="highs")
    if solved.ineqlin.marginals is None:  # pragma: no cover # feasible, and bounded
        return 1.0
    prices = np.maximum(-np.asarray(solved.ineqlin.marginals), 0.0)
    # weak duality: a chance is at most one, whatever is left unpaid of it
    unpaid = np.maximum(gain - bounded.T @ prices, 0.0)
    bound = float(most @ prices + unpaid.sum())
    return min(max(bound, float(masses.max())), 1.0)


def check_prior(prior: ArrayLike) -> Floats:
    """Return the masses of at least two secrets, summing to one."""
    n = np.size(np.asarray(prior))
    if n < 2:
        raise value_error("audit.prior_below_two_secrets", n_secrets=n)
    return check_masses(n, prior=prior)


def _paired(pairs: Sequence[tuple[int, int]] | None, k: int) -> Floats:
    """Whether each two secrets are a pair, as a symmetric matrix of 0 and 1."""
    if pairs is None:
        return 1.0 - np.eye(k)
    found = np.zeros((k, k))
    for pair in pairs:
        at = tuple(pair)
        if len(at) != 2 or at[0] == at[1] or not all(0 <= i < k for i in at):
            raise value_error("audit.pairs_not_valid_positions", n_secrets=k, pair=pair)
        found[at[0], at[1]] = found[at[1], at[0]] = 1.0
    return found
