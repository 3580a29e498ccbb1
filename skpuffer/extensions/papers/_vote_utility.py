"""Display of the utility of noisy votes against the shape of the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.inspection import equivalent_noises
from skpuffer.inspection._drawing import line_options, pyplot
from skpuffer.inspection._noise_family import check_betas
from skpuffer.kernel.numbers import check_count, check_option

from ._vote_simulation import hardmax_auc, hardmax_utility, make_vote_histograms

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise import GeneralizedGaussianNoise
    from skpuffer.utils._types import RandomState

__all__ = ["VoteUtilityDisplay"]

#: Number of vote counts that move when one voter's data changes, by relation. Each is
#: accounted for as a release of its own that a record moves by one.
_MOVES = {"replace_vote": 2, "add_remove_vote": 1}


class VoteUtilityDisplay:
    """Probability that a noisy vote names the leader, against the noise's shape.

    A curve for each number of queries that share one budget. It is recommended to make
    one by :meth:`from_budget`. All parameters are stored as attributes.

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
        What all noises keep, for the title. None shows none.

    Attributes
    ----------
    best_betas_ : ndarray of shape (n_curves,)
        Shape of the largest utility of each curve.
    lines_ : list of matplotlib Line2D
        The curves.
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that holds them.

    See Also
    --------
    hardmax_utility : The probability for given votes.
    skpuffer.inspection.EquivalentNoiseDisplay : The noises themselves.

    Notes
    -----
    Utilities are computed for made-up votes, without simulation of the noise. For one
    query Laplace noise is best; for many the budget is spent on a sum of privacy
    losses, which is nearly Gaussian, and shapes about 2 are best. To say which shape is
    best therefore says nothing until the number of queries is said as well.

    References
    ----------
    Rinberg, Shumailov, Singhal, Cummings and Papernot, Beyond Laplace and Gaussian:
    exploring the generalized Gaussian mechanism for private machine learning, Figures
    7 and 8.

    Examples
    --------
    >>> from skpuffer.papers import VoteUtilityDisplay
    >>> display = VoteUtilityDisplay.from_budget(
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     betas=[1, 1.5, 2],
    ...     n_queries=[1, 100],
    ...     n_votes=[1000, 3333],
    ...     relation="add_remove_vote",
    ... )
    >>> display.utilities.round(3)
    array([[0.985, 0.973, 0.958],
           [0.842, 0.874, 0.876]])
    >>> display.best_betas_
    array([1., 2.])
    """

    def __init__(
        self,
        *,
        betas: ArrayLike,
        n_queries: ArrayLike,
        utilities: ArrayLike,
        scales: ArrayLike | None = None,
        promise: str | None = None,
    ):
        self.betas = betas
        self.n_queries = n_queries
        self.utilities = utilities
        self.scales = scales
        self.promise = promise

    @property
    def best_betas_(self) -> Floats:
        """Shape of the largest utility of each curve."""
        best: Floats = np.asarray(self.betas)[np.argmax(self.utilities, axis=1)]
        return best

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
            Votes in a query, the same for each curve or one number for each. To compare
            shapes rather than budgets let it grow with the square root of `n_queries`.
        n_classes : int, default=2
            At least 2.
        relation : {'replace_vote', 'add_remove_vote'}, default='replace_vote'
            Whether a voter whose data changes votes otherwise, so that two counts move,
            or joins or leaves. As in :class:`~skpuffer.releases.VoteRelease`.
        gaps : float or (float, float), default=(0.0, 10.0)
            Part by which the runner-up is behind, in percent: the utility at one gap,
            or its mean over a range.
        n_histograms : int, default=100
            Made-up histograms at each gap, where there are more than three classes.
        random_state : int, RandomState instance, Generator or None, default=0
            Of the made-up histograms; they are the same for all noises if it is a seed.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        line_kw : dict, default=None
            Options of matplotlib for all curves.

        Returns
        -------
        display : VoteUtilityDisplay

        Raises
        ------
        ValueError
            If a parameter is out of range.
        """
        pyplot(f"{cls.__name__}.from_budget")
        check_option(tuple(_MOVES), relation=relation)
        betas = np.unique(check_betas(betas))
        n_queries = [check_count(n_queries=n) for n in np.ravel(n_queries).tolist()]
        n_votes = np.ravel(n_votes).tolist()
        if len(n_votes) not in (1, len(n_queries)):
            raise ValueError(
                Statement(
                    "papers.n_votes_count_mismatch",
                    n_queries=len(n_queries),
                    n_votes=len(n_votes),
                )
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
        """Draw utility against the shape, a curve for each number of queries.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        line_kw : dict, default=None
            Options of matplotlib for all curves.

        Returns
        -------
        display : VoteUtilityDisplay
            The object itself.
        """
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
