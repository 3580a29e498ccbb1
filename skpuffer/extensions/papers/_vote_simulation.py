"""Utility of noisy votes: the probability that the noisy argmax is the leader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainccinv

from skpuffer.exceptions import value_error
from skpuffer.inspection import equivalent_noises
from skpuffer.inspection._drawing import line_options, pyplot
from skpuffer.inspection._noise_family import check_betas, density
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_non_negative,
    check_option,
)
from skpuffer.noise import GeneralizedGaussianNoise
from skpuffer.utils._types import RandomState

#: Probability of noise beyond the range of the quadrature.
_BEYOND = 1e-16

#: Nodes of the quadrature between two kinks of the integrand.
_NODES = 48

#: Number of closest rivals at whose kinks the quadrature is cut.
_RIVALS = 3

#: Votes of the third class over those of the second.
_THIRD = 0.95


def argmax_distribution(votes: ArrayLike, noise: GeneralizedGaussianNoise) -> Floats:
    """Return the distribution of the noisy argmax: each class's probability.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_classes)
        Counts of at least 2 classes.
    noise : GeneralizedGaussianNoise
        Added to each count, independently.

    Returns
    -------
    probabilities : ndarray of shape (n_queries, n_classes)
        By quadrature, to about 1e-6 and better for few classes.

    Examples
    --------
    >>> from skpuffer.papers import argmax_distribution
    >>> from skpuffer.noise import GeneralizedGaussianNoise
    >>> noise = GeneralizedGaussianNoise(5.0, beta=2.0)
    >>> argmax_distribution([[50, 48, 2]], noise).round(4)
    array([[0.6554, 0.3446, 0.    ]])
    """
    votes = _check_votes(votes)
    columns = [_wins(votes, noise, i) for i in range(votes.shape[1])]
    return np.column_stack(columns)


def hardmax_utility(votes: ArrayLike, noise: GeneralizedGaussianNoise) -> Floats:
    """Return the probability that the noisy argmax is the class that leads.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_classes)
        Counts of at least 2 classes. The first of classes that lead together counts.
    noise : GeneralizedGaussianNoise
        Added to each count, independently.

    Returns
    -------
    utility : ndarray of shape (n_queries,)
        By quadrature, to about 1e-6 and better for few classes.

    References
    ----------
    Rinberg et al. (2025), Beyond Laplace and Gaussian, Appendix D.

    Examples
    --------
    >>> from skpuffer.papers import hardmax_utility
    >>> from skpuffer.noise import GeneralizedGaussianNoise
    >>> noise = GeneralizedGaussianNoise(10.0, beta=1.0)
    >>> hardmax_utility([[30, 20], [60, 0]], noise).round(4)
    array([0.7241, 0.995 ])
    """
    votes = _check_votes(votes)
    order = np.argmax(votes, axis=1)
    # the leader first: then one column is asked for
    votes = np.take_along_axis(votes, _leader_first(order, votes.shape[1]), axis=1)
    return _wins(votes, noise, 0)


def hardmax_auc(
    noise: GeneralizedGaussianNoise,
    *,
    n_votes: int = 1000,
    n_classes: int = 2,
    gaps: tuple[float, float] = (0.0, 10.0),
    n_gaps: int = 16,
    n_histograms: int = 100,
    random_state: RandomState = 0,
) -> float:
    """Return the mean probability to name the leader over a range of gaps.

    Parameters
    ----------
    noise : GeneralizedGaussianNoise
        Added to each count, independently.
    n_votes : int, default=1000
        Number of votes in a query.
    n_classes : int, default=2
        At least 2.
    gaps : (float, float), default=(0.0, 10.0)
        Smallest and largest part by which the runner-up is behind, in percent.
    n_gaps : int, default=16
        Nodes of the Gauss-Legendre rule over the gaps.
    n_histograms : int, default=100
        Histograms at each gap, where there are more than three classes.
    random_state : int, RandomState instance, Generator or None, default=0
        Public seed of the made-up histograms.

    Returns
    -------
    auc : float
        In [0, 1]: the mean over gaps, drawn evenly from the range.

    Examples
    --------
    >>> from skpuffer.inspection import equivalent_noises
    >>> from skpuffer.papers import hardmax_auc
    >>> for noise in equivalent_noises(1.0, 1e-5, [1, 2]):
    ...     print(f"{hardmax_auc(noise):.4f}")
    0.9849
    0.9582
    """
    low, high = _check_gaps(gaps)
    rng, _ = noise_generator(random_state)
    nodes, weights = np.polynomial.legendre.leggauss(check_count(n_gaps=n_gaps))
    # nodes lie in [-1, 1], whose weights sum to two
    at = low + (high - low) * (nodes + 1) / 2
    utilities = []
    for gap in at:
        votes = make_vote_histograms(
            n_votes,
            n_classes,
            gap,
            # up to three classes the gap decides all counts
            n_histograms=n_histograms if n_classes > 3 else 1,
            random_state=rng,
        )
        utilities.append(hardmax_utility(votes, noise).mean())
    return float(weights @ utilities / 2)


def make_vote_histograms(
    n_votes: int,
    n_classes: int,
    gap: float,
    *,
    n_histograms: int = 1,
    random_state: RandomState = None,
) -> Floats:
    """Make up histograms of votes whose runner-up is behind by a given part.

    The second class has ``1 - gap / 100`` times the votes of the first, the third 95 %
    of the second's. The others share the rest, no more than the third each, uniformly.

    Parameters
    ----------
    n_votes, n_classes : int
        Votes in each histogram, and at least 2 classes.
    gap : float
        In [0, 100], in percent.
    n_histograms : int, default=1
        Number of histograms.
    random_state : int, RandomState instance, Generator or None, default=None
        Public seed of the histograms.

    Returns
    -------
    votes : ndarray of shape (n_histograms, n_classes)
        Each row adds up to `n_votes`, in whole numbers for more than two classes.

    References
    ----------
    Rinberg et al. (2025), Beyond Laplace and Gaussian, Appendix D.1, and its programs.

    Examples
    --------
    >>> from skpuffer.papers import make_vote_histograms
    >>> make_vote_histograms(1000, 3, 10.0)
    array([[366., 325., 309.]])
    """
    n_votes = check_count(n_votes=n_votes)
    n_classes = check_count(least=2, n_classes=n_classes)
    n_histograms = check_count(n_histograms=n_histograms)
    left = 1 - _check_gaps((gap, gap))[0] / 100
    if n_classes == 2:
        pair = np.array([1.0, left])
        return np.tile(n_votes * pair / pair.sum(), (n_histograms, 1))
    third = _THIRD * left
    # the others have half as many as the third, on average
    first = n_votes / (1 + left + third + third * (n_classes - 3) / 2)
    first = np.floor(first)
    second, third = np.floor(first * left), np.floor(first * third)
    # what is left goes to the others as far as they may have it, else to the leader
    spare = int(n_votes - first - second - third)
    shared = min(spare, int(third) * (n_classes - 3))
    rng, _ = noise_generator(random_state)
    others = _shares(shared, n_classes - 3, int(third), n_histograms, rng)
    votes = np.empty((n_histograms, n_classes))
    votes[:, :3] = first + spare - shared, second, third
    votes[:, 3:] = others
    return votes


def _shares(total, n_parts, most, n_draws, rng):
    """Draw whole numbers in [0, most] with a given sum, all ways equally likely."""
    # chances[j][s]: probability that j parts, each uniform on [0, most], sum to s; a
    # count of the ways, kept finite. Backwards, each part is drawn given the rest.
    chances = [np.zeros(total + 1)]
    chances[0][0] = 1.0
    for _ in range(n_parts):
        # a sum over a window of width `most` + 1, as a difference of running sums
        reached = np.cumsum(chances[-1])
        reached[most + 1 :] -= reached[: -most - 1].copy()
        chances.append(reached / (most + 1))
    parts = np.empty((n_draws, n_parts), dtype=int)
    left = np.full(n_draws, total)
    for j in range(n_parts - 1, -1, -1):
        # The last part is drawn given the sum: the rest s has a chance in proportion to
        # chances[j][s], within what the part may be. By inversion of running sums.
        reached = np.concatenate([[0.0], np.cumsum(chances[j])])
        low, high = reached[np.maximum(left - most, 0)], reached[left + 1]
        drawn = low + (high - low) * rng.random(n_draws)
        rest = np.searchsorted(reached, drawn, side="right") - 1
        # rounding at the ends must not make a part negative or too large
        rest = np.clip(rest, np.maximum(left - most, 0), np.minimum(left, most * j))
        parts[:, j] = left - rest
        left = rest
    return parts


def _leader_first(leader, n_classes):
    """Orders of the classes that begin with each row's leader."""
    return (leader[:, None] + np.arange(n_classes)) % n_classes


def _wins(votes, noise, i):
    """Probability that class i has most: E of the product of its rivals' noise cdfs."""
    unit = noise.with_scale(1.0)
    # how far ahead of each other class, in units of the scale
    ahead = (votes[:, [i]] - np.delete(votes, i, axis=1)) / noise.scale
    # |x|^beta of such noise is Gamma(1 / beta): the range beyond which there is no mass
    edge = float(gammainccinv(1 / noise.beta, _BEYOND)) ** (1 / noise.beta)
    # each rival's cdf has a kink at minus its lead; those of the closest matter
    kinks = np.sort(ahead, axis=1)[:, :_RIVALS].clip(-edge, edge)
    # zero is a kink of the density itself
    ends = np.broadcast_to([-edge, 0.0, edge], (len(votes), 3))
    ends = np.sort(np.hstack([-kinks, ends]), axis=1)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    part = (nodes + 1) / 2
    # substitution 3 t^2 - 2 t^3: nodes crowd at both ends, where |x|^beta is singular
    part, weights = part**2 * (3 - 2 * part), weights * 3 * part * (1 - part)
    width = np.diff(ends, axis=1)[:, :, None]
    x = ends[:, :-1, None] + width * part
    height = density(unit, x)
    # given its own noise x, the class beats each rival independently of the others
    for lead in ahead.T:
        height = height * unit.cdf(x + lead[:, None, None])
    return np.clip((width * height * weights).sum(axis=(1, 2)), 0.0, 1.0)


def _check_votes(votes):
    votes = np.asarray(votes, dtype=float)
    if votes.ndim != 2 or votes.shape[1] < 2:
        raise value_error("pate.votes_of_wrong_shape", shape=votes.shape)
    if not np.all(np.isfinite(votes)) or np.any(votes < 0):
        raise value_error("pate.votes_negative_or_infinite")
    return votes


def _check_gaps(gaps):
    low, high = (check_non_negative(gaps=gap) for gap in gaps)
    if not low <= high <= 100:
        raise value_error("papers.gaps_not_percentages", gaps=gaps)
    return low, high


# -- display of the utility of noisy votes against the shape of the noise --------------


#: Number of vote counts that move when one voter's data changes, by relation. Each is
#: accounted for as a release of its own that a record moves by one.
_MOVES = {"replace_vote": 2, "add_remove_vote": 1}


@dataclass(kw_only=True, eq=False, repr=False)
class VoteUtilityDisplay:
    """Probability that a noisy vote names the leader, against the noise's shape.

    A curve for each number of queries that share one budget. Make one by
    :meth:`from_budget`. All parameters are stored as attributes.

    Parameters
    ----------
    betas : array-like of shape (n_betas,)
        Shapes, in ascending order.
    n_queries : array-like of shape (n_curves,)
        Queries under the budget, one curve for each number.
    utilities : array-like of shape (n_curves, n_betas)
        Probabilities in [0, 1].
    scales : array-like of shape (n_curves, n_betas), default=None
        Scales of the noise, in votes.
    promise : str, default=None
        Promise that all noises keep, for the title. None shows none.

    Attributes
    ----------
    best_betas_ : ndarray of shape (n_curves,)
        Shape of the largest utility of each curve.
    lines_, ax_, figure_ : list of matplotlib Line2D, Axes, Figure
        The curves, their axes and figure.

    Notes
    -----
    Laplace noise is best for one query, and shapes about 2 for many, whose summed
    privacy losses are nearly Gaussian. So the best shape depends on the number of
    queries.

    References
    ----------
    Rinberg et al. (2025), Beyond Laplace and Gaussian, Figures 7 and 8.

    Examples
    --------
    >>> from skpuffer.papers import VoteUtilityDisplay
    >>> display = VoteUtilityDisplay.from_budget(
    ...     betas=[1, 1.5, 2], n_queries=[1, 100], n_votes=[1000, 3333]
    ... )
    >>> display.best_betas_
    array([1., 2.])
    """

    betas: ArrayLike
    n_queries: ArrayLike
    utilities: ArrayLike
    scales: ArrayLike | None = None
    promise: str | None = None

    @property
    def best_betas_(self) -> Floats:
        """Shape of the largest utility of each curve."""
        return np.asarray(self.betas)[np.argmax(self.utilities, axis=1)]

    @classmethod
    def from_budget(
        cls,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        betas: ArrayLike = (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4),
        n_queries: ArrayLike = (1, 100),
        n_votes: ArrayLike = 1000,
        n_classes: int = 2,
        relation: str = "replace_vote",
        gaps: float | tuple[float, float] = (0.0, 10.0),
        n_histograms: int = 100,
        random_state: RandomState = 0,
        ax: Any = None,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Find the noises that keep a promise, and draw how often the leader wins.

        Parameters
        ----------
        epsilon : float, default=1.0
            For all queries together, in nats, positive.
        delta : float, default=1e-5
            In (0, 1).
        betas : array-like of shape (n_betas,), \
default=(1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4)
            Shapes, at least 1: 1 is Laplace noise, 2 Gaussian noise.
        n_queries : int or array-like of shape (n_curves,), default=(1, 100)
            Queries under the promise, one curve for each number.
        n_votes : int or array-like of shape (n_curves,), default=1000
            Votes in a query, for all curves or each. To compare shapes rather than
            budgets let it grow with the square root of `n_queries`.
        n_classes : int, default=2
            At least 2.
        relation : {'replace_vote', 'add_remove_vote'}, default='replace_vote'
            Whether a voter changes the vote or joins or leaves; see
            :class:`~skpuffer.releases.VoteRelease`.
        gaps : float or (float, float), default=(0.0, 10.0)
            Part by which the runner-up is behind, in percent: one gap, or a range.
        n_histograms : int, default=100
            Made-up histograms at each gap, where there are more than three classes.
        random_state : int, RandomState instance, Generator or None, default=0
            Public seed of the made-up histograms.
        ax, line_kw : matplotlib Axes and dict, default=None
            Axes to draw on, and options of matplotlib for all curves.

        Returns
        -------
        display : VoteUtilityDisplay
        """
        pyplot(f"{cls.__name__}.from_budget")
        check_option(tuple(_MOVES), relation=relation)
        betas = np.unique(check_betas(betas))
        n_queries = [check_count(n_queries=n) for n in np.ravel(n_queries).tolist()]
        n_votes = np.ravel(n_votes).tolist()
        if len(n_votes) not in (1, len(n_queries)):
            raise value_error(
                "papers.n_votes_count_mismatch",
                n_queries=len(n_queries),
                n_votes=len(n_votes),
            )
        votes = [check_count(n_votes=n) for n in n_votes]
        votes = votes * len(n_queries) if len(votes) == 1 else votes
        # the same votes for all noises, so that curves differ by the shape alone
        made = {
            "n_classes": n_classes,
            "n_histograms": n_histograms,
            "random_state": random_state,
        }
        # the budget is for all queries together, so each number has scales of its own
        families = [
            equivalent_noises(epsilon, delta, betas, n_steps=_MOVES[relation] * n)
            for n in n_queries
        ]
        utilities = [
            [_utility(noise, n, gaps, made) for noise in noises]
            for noises, n in zip(families, votes, strict=True)
        ]
        display = cls(
            betas=betas,
            n_queries=np.array(n_queries),
            utilities=np.array(utilities),
            scales=np.array([[noise.scale for noise in noises] for noises in families]),
            promise=f"ε = {epsilon:g}, δ = {delta:g}, {n_classes} classes",
        )
        return display.plot(ax, line_kw=line_kw)

    def plot(self, ax: Any = None, *, line_kw: dict[str, Any] | None = None) -> Self:
        """Draw utility against the shape, with `ax` and `line_kw` of `from_budget`."""
        plt = pyplot(f"{type(self).__name__}.plot")
        if ax is None:
            _, ax = plt.subplots()
        self.lines_: list[Any] = []
        curves: tuple[Any, Any] = (self.n_queries, self.utilities)
        for n, utilities, best in zip(*curves, self.best_betas_, strict=True):
            what = "1 query" if n == 1 else f"{n} queries"
            options = {"marker": "o", "markersize": 4, "label": what}
            options |= line_options(line_kw)
            (line,) = ax.plot(self.betas, utilities, **options)
            self.lines_.append(line)
            ax.plot(best, np.max(utilities), "*", color=line.get_color(), markersize=12)
        ax.set_xlabel("Shape β")
        ax.set_ylabel("Chance to name the leader")
        ax.legend()
        if self.promise is not None:
            ax.set_title(self.promise)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _utility(
    noise: GeneralizedGaussianNoise, n_votes: int, gaps: Any, made: dict[str, Any]
) -> float:
    if np.ndim(gaps):
        return hardmax_auc(noise, n_votes=n_votes, gaps=tuple(gaps), **made)
    votes = make_vote_histograms(n_votes, gap=gaps, **made)
    return float(hardmax_utility(votes, noise).mean())
