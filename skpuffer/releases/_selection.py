"""Selection release: candidates chosen by noisy scores."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from skpuffer.utils._checks import check_count
from skpuffer.utils._types import Floats

from ._base import Release
from ._context import PublicContext

__all__ = ["RangedScores", "SelectionRelease"]


class RangedScores(Protocol):
    """Scores of candidates, by which several of these are chosen one by one.

    Hashable by value, and free of rows: a release may be accounted for before any
    table is read.
    """

    def ranges(self, relation: str) -> tuple[float, ...]:
        """Ranges, for each choice, of how far the scores move with one record.

        The largest difference between the moves of two candidates' scores, over all
        pairs of tables that differ in one record by the relation.
        """

    def choose(self, X: Any, noise: Any, rng: np.random.Generator) -> Floats:
        """Choices by the scores of a table, each with Gumbel noise of its own."""


@dataclass(frozen=True, kw_only=True)
class SelectionRelease(Release):
    """Selection release: candidates chosen by the exponential mechanism.

    Each choice takes the candidate whose score is largest once Gumbel noise is added:
    one of score s with probability proportional to ``exp(s / scale)``. What leaves is
    the candidates and no score. A choice costs what a mechanism of bounded range does,
    see :class:`~skpuffer.privacy_loss.BoundedRangePair`, and choices compose.

    Parameters
    ----------
    n_records : int
    scores : tuple of RangedScores
        Each of one or several choices.
    name : str, default='selection'
    context : PublicContext, default=None
        The public facts of the table; made from `n_records` if None.
    assumptions : tuple of str
        What is taken as public or true, in sentences; written in the certificate.

    References
    ----------
    McSherry and Talwar (2007), Mechanism design via differential privacy.
    """

    n_records: int
    scores: tuple[RangedScores, ...]
    name: str = "selection"
    context: PublicContext | None = field(default=None, compare=False)
    assumptions: tuple[str, ...] = field(default=(), compare=False)

    # whatever a record becomes, the scores say how far they move
    is_bounded = True

    def __post_init__(self) -> None:
        check_count(n_records=self.n_records)
        if not self.scores:
            raise ValueError("The parameter 'scores' must hold at least one.")
        self._meet_context()

    @property
    def dim(self) -> int:
        """Number of choices."""
        return len(self.ranges("replace"))

    def ranges(self, relation: str) -> tuple[float, ...]:
        """Return how far scores move apart with one record, for each choice.

        Parameters
        ----------
        relation : {'add_remove', 'replace'}

        Returns
        -------
        tuple of float
        """
        return tuple(r for scores in self.scores for r in scores.ranges(relation))

    def noise_error(self, noise: Any) -> None:
        """Return None: how far off a choice is depends on the rows."""

    def choose(self, X: Any, noise: Any, rng: np.random.Generator) -> Floats:
        """Return what is chosen by a table: private by the noise, and all that leaves.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
        noise : GumbelNoise
            In the unit of the scores.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of shape (dim,)
        """
        return np.concatenate([s.choose(X, noise, rng) for s in self.scores])
