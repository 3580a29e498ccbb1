"""Selection release: candidates chosen by noisy scores."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, check_count

from ._base import Release
from ._context import PublicContext

__all__ = ["RangedScores", "SelectionRelease"]


class RangedScores(Protocol):
    """Scores of candidates, by which one or several of these are chosen in rounds.

    Hashable by value, and free of rows: a release may be accounted for before any
    table is read.
    """

    @property
    def dim(self) -> int:
        """Number of choices."""

    @property
    def is_finite(self) -> bool:
        """Whether candidates are public and finitely many, and all weigh the same.

        Then scores alone decide, and any noise on them may.
        """

    @property
    def on_grid(self) -> bool:
        """Whether candidates are points of a public grid, whatever they weigh."""

    def ranges(self, relation: str) -> tuple[float, ...]:
        """Ranges, for each round, of how far the scores move with one record.

        The largest difference between the moves of two candidates' scores, over all
        pairs of tables that differ in one record by the relation. A round may take
        several choices at once, which depend on choices of earlier rounds alone: its
        range is then that of the sums of their scores.
        """

    def choose(self, X: Any, noise: Any, rng: np.random.Generator) -> Floats:
        """Choices by the scores of a table, each with noise of its own."""


@dataclass(frozen=True, kw_only=True)
class SelectionRelease(Release):
    """Selection release: candidates chosen by noisy scores.

    Each choice takes the candidate whose score is largest once noise is added. With
    Gumbel noise that is the exponential mechanism: one of score s with probability
    proportional to ``exp(s / scale)``; it costs what a mechanism of bounded range does,
    see :class:`~skpuffer.privacy_loss.BoundedRangePair`. With exponential noise it is
    permute-and-flip, for candidates that are finitely many; a pure promise is all that
    is known of it, see :class:`~skpuffer.privacy_loss.PurePair`. What leaves is the
    candidates and no score, and rounds of choices compose.

    Parameters
    ----------
    n_records : int
    scores : tuple of RangedScores
        Each of one or several choices.
    name : str, default='selection'
    context : PublicContext, default=None
        The public facts of the table; made from `n_records` if None.
    assumptions : tuple of Statement
        What is taken as public or true, in sentences; written in the certificate.

    References
    ----------
    McSherry and Talwar (2007), Mechanism design via differential privacy; McKenna and
    Sheldon (2020), Permute-and-flip: a new mechanism for differentially private
    selection.

    Examples
    --------
    Of three public candidates the most frequent is chosen, by noisy counts:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.releases import SelectionRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> @dataclass(frozen=True)
    ... class Counts:
    ...     dim = 1
    ...     is_finite = True
    ...
    ...     def ranges(self, relation):
    ...         return (1.0 if relation == "add_remove" else 2.0,)
    ...
    ...     def choose(self, X, noise, rng):
    ...         counts = np.bincount(X.ravel().astype(int), minlength=3)
    ...         return np.array([np.argmax(counts + noise.sample(3, rng))], dtype=float)
    >>> release = SelectionRelease(n_records=100, scores=(Counts(),))
    >>> accountant = GroupPrivacy(epsilon=1.0, alpha=float("inf"))
    >>> found = accountant.calibrate(release, RecordScenario())
    >>> found.noise.family, round(found.noise.scale, 3)
    ('exponential', 1.0)
    >>> X = np.repeat([0.0, 1.0, 2.0], [5, 5, 90])[:, np.newaxis]
    >>> release.choose(X, found.noise, np.random.default_rng(0))
    array([2.])
    """

    n_records: int
    scores: tuple[RangedScores, ...]
    name: str = "selection"
    context: PublicContext | None = field(default=None, compare=False)
    assumptions: tuple[Statement, ...] = field(default=(), compare=False)

    # whatever a record becomes, the scores say how far they move
    is_bounded = True

    def __post_init__(self) -> None:
        check_count(n_records=self.n_records)
        if not self.scores:
            raise ValueError(Statement("release.selection_scores_empty"))
        self._meet_context()

    @property
    def dim(self) -> int:
        """Number of choices."""
        return sum(scores.dim for scores in self.scores)

    @property
    def is_finite(self) -> bool:
        """Whether all candidates are public, finitely many, and weigh the same."""
        return all(scores.is_finite for scores in self.scores)

    @property
    def on_grid(self) -> bool:
        """Whether all that may be chosen is on a public grid; False where unsaid."""
        return all(getattr(scores, "on_grid", False) for scores in self.scores)

    def ranges(self, relation: str) -> tuple[float, ...]:
        """Return how far scores move apart with one record, for each round.

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
        noise : GumbelNoise or ExponentialNoise
            In the unit of the scores.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of shape (dim,)
        """
        return np.concatenate([s.choose(X, noise, rng) for s in self.scores])
