"""Dominating pairs of a release's steps, by the kind of release."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from skpuffer.exceptions import Statement
from skpuffer.kernel.curves import Events
from skpuffer.kernel.noise import Evidence
from skpuffer.kernel.releases import Release
from skpuffer.noise import Noise, Shift
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve
from skpuffer.scenarios import Adjacency

__all__ = ["Accounting", "StepsOfRelease"]


@dataclass(frozen=True)
class Accounting:
    """Privacy curve of all steps of a release, composed.

    Parameters
    ----------
    curve : GaussianCurve or PrivacyLossCurve
        The former, exact, where Gaussian noise meets known shifts.
    shift : Shift
        Sensitivity of one step; of an epoch, where batches are dealt.
    source : Statement
        Where the bound is proved.
    tight : bool
        Whether some neighbouring tables attain it.
    evidence : tuple of tuple of Statement
        What is not proved of the noise: of its Rényi costs, and of its trade-off.
    assumptions : tuple of Statement
        What the release takes for granted, in sentences.
    events : tuple of (pair, int) or None
        What the curve is composed of, where it is not one bound of all steps.
    """

    # Bounds the true curve from above in any case; whether it does so from below as
    # well, `tight` says.
    curve: GaussianCurve | PrivacyLossCurve
    shift: Shift
    source: Statement
    tight: bool
    evidence: Evidence
    assumptions: tuple[Statement, ...] = ()
    events: Events | None = None


@dataclass(frozen=True)
class StepsOfRelease(ABC):
    """Dominating pairs of one release's steps, between neighbouring tables.

    A subclass is registered for the one kind of release it reads, by exact type: what a
    subclass of that kind may add is not known to be covered. One of ``kind=None`` is
    for accountants that ask for it by name.

    Parameters
    ----------
    release : GradientRelease or VoteRelease
    relation : {'add_remove', 'replace'}
        How neighbouring tables differ; a record may become any other.
    count : int
        How many records differ at most.
    event : float
        Mass of the event in which more do.
    law : tuple of float or None
        Bounds of the probability that more than 0, 1, ... records differ, under some
        coupling, where they are known.
    moves : tuple of float or None
        How far each of them moves a step at most, in units of the release and the
        largest first, by what is known of the record's own move. None if a record may
        become any other.

    Notes
    -----
    Why any dependence will do: under one coupling of the two worlds the run meets a
    fixed pair of tables that differ in so many records, whatever these depend on. What
    holds for each such pair holds for the mixtures over the coupling, as divergences
    are jointly convex. On an event that is left out nothing is promised; it is about
    the tables, so that it counts once for all steps.
    """

    # Hashable, with the release: scales are remembered by them, see `_memoised_scale`.
    release: Release
    relation: str
    count: int
    event: float = 0.0
    law: tuple[float, ...] | None = None
    moves: tuple[float, ...] | None = None

    #: Subclasses by the kind of release they read.
    # filled by `__init_subclass__`, so that accountants need no list of releases
    kinds: ClassVar[dict[type, type["StepsOfRelease"]]] = {}

    def __init_subclass__(cls, kind: type | None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if kind is not None:
            StepsOfRelease.kinds[kind] = cls

    @classmethod
    def known_moves(
        cls, release: Any, adjacency: Adjacency
    ) -> tuple[float, ...] | None:
        """Return :attr:`moves` under a fact; None unless they are less than any."""
        return None

    def statements(self, move: float) -> tuple[Statement, ...]:
        """Return how :attr:`moves` were found, in sentences, for the largest one."""
        return ()

    def any_record(self, shift: Shift) -> float | None:
        """How far a step would move, in the norm of `shift`, for any other records.

        None where the noise is not in proportion to it.
        """
        return float(shift.radius)

    def scaled(self, unit: Noise, scale: float) -> Noise:
        """Return noise of a scale, in the proportions that the release asks for.

        Parameters
        ----------
        unit : Noise
            Of the family that was asked for.
        scale : float

        Returns
        -------
        Noise
        """
        if self.release.units is None:
            return unit.with_scale(scale)
        return unit.with_scale(scale * self.release.unit_array)

    @abstractmethod
    def check(self) -> None:
        """Refuse steps that no bound is known for, before any noise is looked at.

        Raises
        ------
        UnsupportedError
            With a clause that gives the reason and the remedy.
        """

    @abstractmethod
    def under(self, noise: Noise, max_memory: float) -> Accounting:
        """Compose the dominating pairs of all steps under a noise.

        Parameters
        ----------
        noise : Noise
            Of one step.
        max_memory : float
            In MiB, for the grid of a :class:`~skpuffer.privacy_loss.PrivacyLossCurve`.

        Returns
        -------
        Accounting

        Raises
        ------
        UnsupportedError
            If the noise is none that a bound is known for.
        """
