"""Base of releases: a computation on a table, with the table's public facts."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats

from ._context import PublicContext

if TYPE_CHECKING:
    from skpuffer.noise import Noise

__all__ = ["PUBLIC_TARGET", "Release"]

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
    contribution: Callable[[Any, Any], Any] | None = None
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
            raise ValueError(
                Statement(
                    "release.n_records_differs_from_context",
                    n_records=self.n_records,
                    n_context=context.n_records,
                )
            )

    @property
    def unit_array(self) -> Floats | float:
        """The units as an array, or 1.0."""
        return 1.0 if self.units is None else np.asarray(self.units)

    @property
    def moves_with_contributions(self) -> bool:
        """Whether a move of one contribution bounds that of the release."""
        return self.is_sum or self.modulus is not None

    def noise_error(self, noise: "Noise") -> Floats | None:
        """Return the root mean square error by noise of each coordinate noised.

        Parameters
        ----------
        noise : Noise
            As calibrated.

        Returns
        -------
        ndarray of shape (dim,) or None
            In the units of what is noised; a single number for all where the length is
            not known beforehand, infinite where the noise has no variance. None of a
            choice, which is no number with noise.
        """
        return np.atleast_1d(noise.std(getattr(self, "dim", None)))

    def pair_costs(self, X: Any, y: Any, norm: float) -> Floats | None:
        """Return how far it moves when a record becomes another of some records.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            Public records, as the release reads them.
        y : ndarray of shape (n,) or None
            Their targets; None if nothing is known of them.
        norm : float

        Returns
        -------
        ndarray of shape (n, n) or None
            As shares of how far any record moves it, whatever has been released before;
            None if no more is known than that.
        """
        return None
