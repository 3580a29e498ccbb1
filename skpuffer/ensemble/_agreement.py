"""Agreement of noisy plurality votes with exact ones, at several budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.accountants import PrivacyLoss
from skpuffer.base import DEFAULT_DELTA
from skpuffer.exceptions import Statement
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.numbers import check_count
from skpuffer.kernel.votes import noisy_counts
from skpuffer.releases import VoteRelease
from skpuffer.scenarios import RecordScenario

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.utils._types import RandomState

__all__ = ["plurality_agreement", "subsample_votes"]


def noisy_argmax(
    votes: ArrayLike, noise: Noise, random_state: RandomState = None
) -> Indices:
    """Return the class that leads in each row once noise is added to every count.

    Counts of classes without a vote get noise as well. Nothing is accounted for here;
    see :class:`PATEAggregator`.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_classes)
        Finite counts, of at least 2 classes.
    noise : Noise
        Of one scale, in votes.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws from the operating system's entropy.

    Returns
    -------
    labels : ndarray of int of shape (n_queries,)
        Indices of classes.

    Raises
    ------
    ValueError
        If the counts are not finite, are negative or are of fewer than 2 classes, or
        the noise has no positive scale.

    References
    ----------
    Papernot et al. (2018), Scalable private learning with PATE (Gaussian noise); with
    other noise the same, and the same promise as a release of the noisy counts.

    Examples
    --------
    >>> from skpuffer.ensemble import noisy_argmax
    >>> from skpuffer.noise import LaplaceNoise
    >>> noisy_argmax([[90, 5, 5], [0, 1, 99]], LaplaceNoise(1.0))
    array([0, 2])
    """
    votes = np.asarray(votes, dtype=float)
    if votes.ndim != 2 or votes.shape[1] < 2:
        raise ValueError(Statement("pate.votes_of_wrong_shape", shape=votes.shape))
    if not np.all(np.isfinite(votes)) or np.any(votes < 0):
        raise ValueError(Statement("pate.votes_negative_or_infinite"))
    if noise.is_zero:
        raise ValueError(Statement("pate.noise_scale_not_positive"))
    # The argmax is post-processing of the noisy counts. With noise on the classes that
    # got a vote only, it would tell which these are.
    rng, _ = noise_generator(random_state)
    winners: Indices = np.argmax(noisy_counts(votes, noise, rng), axis=1)
    return winners


def subsample_votes(
    votes: ArrayLike, n_voters: int, random_state: RandomState = None
) -> Indices:
    """Draw the same number of votes from each row, without replacement.

    For public votes of unequal turnout. As a step before a private release it is sound
    only if each voter's part in it does not depend on the others.

    Parameters
    ----------
    votes : array-like of int of shape (n_queries, n_classes)
        Each row holds at least `n_voters` votes.
    n_voters : int
    random_state : int, RandomState instance, Generator or None, default=None

    Returns
    -------
    votes : ndarray of int64 of shape (n_queries, n_classes)
        Whose rows add up to `n_voters`.

    Raises
    ------
    ValueError
        If a row has fewer votes.

    Examples
    --------
    >>> from skpuffer.ensemble import subsample_votes
    >>> subsample_votes([[4, 0, 0], [1, 2, 3]], 4, random_state=0).sum(axis=1)
    array([4, 4])
    """
    n_voters = check_count(n_voters=n_voters)
    counts = np.asarray(votes, dtype=float)
    votes = counts.astype(np.int64)
    if votes.ndim != 2 or np.any(votes < 0) or np.any(votes != counts):
        raise ValueError(Statement("pate.votes_not_whole_counts"))
    if len(votes) and votes.sum(axis=1).min() < n_voters:
        raise ValueError(
            Statement(
                "pate.voters_above_votes",
                n_voters=n_voters,
                least=votes.sum(axis=1).min(),
            )
        )
    rng, _ = noise_generator(random_state)
    # so many votes of each class, when voters are drawn without replacement
    rows = [rng.multivariate_hypergeometric(row, n_voters) for row in votes]
    return np.array(rows, dtype=np.int64).reshape(votes.shape)


def plurality_agreement(
    votes: ArrayLike,
    epsilons: ArrayLike,
    *,
    delta: float = DEFAULT_DELTA,
    n_queries: int = 100,
    noise: str | Noise = "gaussian",
    n_repeats: int = 1,
    random_state: RandomState = None,
    **noise_parameters: Any,
) -> Floats:
    """Measure how often noisy votes agree with exact ones, at each budget.

    For public votes: what it returns is not private.

    Parameters
    ----------
    votes : array-like of int of shape (n, n_classes)
        Each row adds up to the same number of voters.
    epsilons : array-like of float of shape (n_epsilons,)
        Budgets for `n_queries` votes together, with one voter's votes replaced.
    delta : float, default=1e-5
    n_queries : int, default=100
        How many votes a budget has to last for. All rows of `votes` are used to
        measure, whatever their number.
    noise : str or Noise, default='gaussian'
        As for :class:`~skpuffer.accountants.PrivacyLoss`.
    n_repeats : int, default=1
        How often each row is drawn with noise.
    random_state : int, RandomState instance, Generator or None, default=None
    **noise_parameters : dict
        Further parameters of the accountant, such as `beta`.

    Returns
    -------
    agreement : ndarray of shape (n_epsilons,)
        Share of rows whose noisy winner has as many exact votes as any class.

    Examples
    --------
    >>> from skpuffer.ensemble import plurality_agreement
    >>> votes = [[40, 10, 0], [0, 45, 5]]
    >>> plurality_agreement(votes, [50.0], n_queries=2)
    array([1.])
    """
    votes = np.asarray(votes)
    totals = np.unique(votes.sum(axis=1))
    if len(totals) != 1:
        raise ValueError(Statement("pate.rows_votes_unequal"))
    # one voter's vote is what is secret, so that voters are teachers and records
    release = VoteRelease(
        n_records=int(totals[0]),
        n_teachers=int(totals[0]),
        n_classes=votes.shape[1],
        n_queries=n_queries,
    )
    votes = np.tile(release.check_votes(votes), (check_count(n_repeats=n_repeats), 1))
    # a winner by a tie agrees as well as the other one
    best, rows = votes.max(axis=1), np.arange(len(votes))
    rng, _ = noise_generator(random_state)
    agreement = []
    for epsilon in np.asarray(epsilons, dtype=float).ravel().tolist():
        accountant = PrivacyLoss(epsilon, delta, noise=noise, **noise_parameters)
        drawn = accountant.calibrate(release, RecordScenario()).noise
        # every row is drawn at the noise of one budget for `n_queries`, not for all
        # rows
        elected = noisy_argmax(votes, drawn, rng)
        agreement.append(np.mean(votes[rows, elected] == best))
    return np.array(agreement)
