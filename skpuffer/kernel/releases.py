"""Releases: what all of them have in common, and choices by scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.numbers import Floats, check_count

if TYPE_CHECKING:
    from skpuffer.kernel.noise import Noise


@dataclass(frozen=True, kw_only=True)
class PublicContext:
    """Public facts of a table: all that a scenario may know of it.

    No rows are among them, unless the scenario takes the private table as its prior.

    Parameters
    ----------
    n_records : int
        Number of records. Public by assumption.
    feature_names : tuple of str or None
        Columns of the model's input, before `feature_map`.
    n_features : int or None
    target_name : str or None
        Name of the target column, as the prior calls it.
    has_target : bool
        Whether a target is read beside the features.
    n_targets : int
        Number of columns of the target, where there is one.
    classes : tuple or None
        Class labels. Public by assumption.
    bounds : object or None
        Public bounds of the features, as the estimator was given them.
    groups : tuple of int or None
        Which records belong together, such as a household: one number for each record.
    feature_map : object or None
        Public preprocessing between raw columns and the model's input, applied to data
        and prior alike.
    empirical : tuple or None
        The private rows ``(X, y, secret)``: only under ``prior='empirical'``.
    of_units : bool
        Whether a record of the release is a unit of privacy with all its rows, of which
        the mean contributes as one record.
    pool : tuple or None
        The rows ``(X, y)`` that the table is drawn from, as a query reads them: only
        under a scenario that takes them as known to the attacker.
    size : {'public', 'declared', 'private'}
        Whether `n_records` is the public number of records, a number declared in its
        place, or, where the number is private, a public bound.

    Examples
    --------
    >>> from skpuffer.releases import PublicContext
    >>> from skpuffer.scenarios import RecordScenario
    >>> context = PublicContext(n_records=100, feature_names=("height",), n_features=1)
    >>> RecordScenario().bind(context).context.n_records
    100
    """

    # Except for `empirical` and `pool` every field is public: to add one is to publish
    # it.
    n_records: int
    feature_names: tuple[str, ...] | None = None
    n_features: int | None = None
    target_name: str | None = None
    has_target: bool = False
    n_targets: int = 1
    classes: tuple[object, ...] | None = None
    # as parameters say it, or read off the data where the certificate says so
    bounds: object = None
    groups: tuple[int, ...] | None = field(default=None, repr=False)
    of_units: bool = False
    feature_map: Callable[..., object] | None = None
    # Left out of comparisons and of the text: arrays do not compare to one truth value,
    # and a printed context must not show private rows.
    empirical: tuple[object, ...] | None = field(
        default=None, repr=False, compare=False
    )
    pool: tuple[object, ...] | None = field(default=None, repr=False, compare=False)
    size: str = "public"


#: What is taken for granted where a scenario bounds how far features move, and only
#: these: a target that moved with them would move the release as well.
PUBLIC_TARGET = Statement("assume.targets_public")


class Release:
    """Base of releases: a computation on a table, of which nothing is known by default.

    A subclass is a frozen dataclass with the fields `n_records`, `dim`, `name`,
    `context` and `assumptions`, and says more of itself where more is known.
    """

    n_records: int
    name: str
    context: PublicContext | None
    assumptions: tuple[Statement, ...]
    # Whether there is one exact vector, whose distribution facts may speak of.
    is_one_output: ClassVar[bool] = False
    # Whether one arbitrary record's influence on it is bounded.
    is_bounded: bool = False
    # The contribution of a record, where the release reads records one by one.
    contribution: Callable[..., Floats] | None = None
    # Whether the release is a sum of contributions.
    is_sum: bool = False
    # Sensitivity to a move of one contribution, where it is no sum.
    modulus: Callable[[float], float] | None = None
    # Public unit of each coordinate; None is one.
    units: tuple[float, ...] | None = None
    # Whether all values are integers, as noise on the integers needs.
    is_integer: bool = False

    def _meet_context(self) -> None:
        """Check the context against the release, or make one where none is given."""
        # a release on its own, as in accounting without an estimator, knows its size at
        # least
        context = self.context
        if context is None:
            context = PublicContext(n_records=self.n_records)
            object.__setattr__(self, "context", context)
        # noise is set by the release's number and the scenario bound to the context's
        if context.n_records != self.n_records:
            raise value_error(
                "release.n_records_differs_from_context",
                n_records=self.n_records,
                n_context=context.n_records,
            )

    @property
    def unit_array(self) -> Floats | float:
        """The units as an array, or 1.0."""
        return 1.0 if self.units is None else np.asarray(self.units)

    @property
    def moves_with_contributions(self) -> bool:
        """Whether a move of one contribution bounds that of the release."""
        return self.is_sum or self.modulus is not None


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

    def choose(self, X: object, noise: Noise, rng: np.random.Generator) -> Floats:
        """Choices by the scores of a table, each with noise of its own."""


@dataclass(frozen=True, kw_only=True)
class SelectionRelease(Release):
    """Selection release: candidates chosen by noisy scores.

    Each choice takes the candidate whose score is largest once noise is added. With
    Gumbel noise that is the exponential mechanism: one of score s with probability
    proportional to ``exp(s / scale)``, at the cost of
    :class:`~skpuffer.privacy_loss.BoundedRangePair`. With exponential noise it is
    permute-and-flip, for candidates that are finitely many, at the cost of
    :class:`~skpuffer.privacy_loss.PurePair`. The release is the candidates and no
    score, and rounds of choices compose.

    Parameters
    ----------
    n_records : int
    scores : tuple of RangedScores
        Each of one or several choices.
    name : str, default='selection'
    context : PublicContext, default=None
        The public facts of the table; made from `n_records` if None.
    assumptions : tuple of Statement
        Facts taken as public or true; written in the certificate.

    References
    ----------
    McSherry and Talwar (2007), Mechanism design via differential privacy; McKenna and
    Sheldon (2020), Permute-and-flip: a new mechanism for differentially private
    selection.

    Examples
    --------
    The most frequent of three public candidates is chosen, by noisy counts:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from skpuffer.noise import GumbelNoise
    >>> from skpuffer.releases import SelectionRelease
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
    >>> X = np.repeat([0.0, 1.0, 2.0], [5, 5, 90])[:, np.newaxis]
    >>> release.choose(X, GumbelNoise(2.0), np.random.default_rng(0))
    array([2.])
    """

    #: What a certificate says of its last digits, where it is drawn on a grid.
    last_digits: ClassVar[str] = "assume.choice_on_grid"

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
            raise value_error("release.selection_scores_empty")
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

    def choose(self, X: object, noise: Noise, rng: np.random.Generator) -> Floats:
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
