"""What accounting for many steps finds, and how each kind of release is met."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import Shift
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve
from skpuffer.releases._base import Release

__all__ = ["Accounting", "StepsOfRelease", "steps_of"]


@dataclass(frozen=True)
class Accounting:
    """What dominates all steps of a release.

    Parameters
    ----------
    curve : GaussianCurve or PrivacyLossCurve
        The former, exact, where Gaussian noise meets known shifts.
    shift : Shift
        What the noise of one step has to cover; of an epoch, where batches are dealt.
    source : str
        Where the bound is proved.
    tight : bool
        Whether some data attain it.
    assumptions : tuple of str
        What the release takes for granted, in sentences.
    """

    curve: GaussianCurve | PrivacyLossCurve
    shift: Shift
    source: str
    tight: bool
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepsOfRelease(ABC):
    """The steps of one release between neighbouring tables: what noise makes of them.

    A subclass is registered for the one kind of release it reads, by exact type: what a
    subclass of that kind may add is not known to be covered.

    Parameters
    ----------
    release : GradientRelease or VoteRelease
    relation : {'add_remove', 'replace'}
        How neighbouring tables differ; a record may become any other.
    count : int
        How many records differ.
    independent : bool
        Whether those that differ are fixed beforehand, all others being the same: a
        single record, or any group under differential privacy.

    Raises
    ------
    UnsupportedError
        If no bound is known, with the reason and the remedy.
    """

    release: Release
    relation: str
    count: int
    independent: bool = True

    kinds: ClassVar[dict] = {}

    def __init_subclass__(cls, kind=None, **kwargs):
        super().__init_subclass__(**kwargs)
        if kind is not None:
            StepsOfRelease.kinds[kind] = cls

    def __post_init__(self):
        obstacle = self._obstacle()
        if obstacle is not None:
            raise UnsupportedError(obstacle)

    def _obstacle(self):
        """Why nothing can be claimed, with the remedy, or None if it can."""
        return None

    @abstractmethod
    def under(self, noise, max_memory=500.0):
        """Find what dominates all steps under a noise.

        Parameters
        ----------
        noise : Noise
            Of one step.
        max_memory : float, default=500.0
            In MiB, for the grid of a :class:`~skpuffer.privacy_loss.PrivacyLossCurve`.

        Returns
        -------
        Accounting

        Raises
        ------
        UnsupportedError
            If the noise is none that a bound is known for.
        """


def steps_of(release, adjacency):
    """Return how the steps of a release are accounted for between neighbouring tables.

    Parameters
    ----------
    release : GradientRelease or VoteRelease
    adjacency : Adjacency

    Returns
    -------
    StepsOfRelease

    Raises
    ------
    UnsupportedError
        If nothing is known of such steps, with a clause that says why.
    """
    kind = StepsOfRelease.kinds.get(type(release))
    if kind is None:
        raise UnsupportedError(
            f"nothing is known of the steps of a {type(release).__name__}"
        )
    if not adjacency.count_is_certain:
        raise UnsupportedError(
            f"only with probability 1 - {adjacency.delta:g} do no more than "
            f"{adjacency.count} records depend on the secret; ask the scenario for a "
            "number that is certain (event_delta=0)"
        )
    count = int(adjacency.count)
    independent = count == 1 or adjacency.any_records
    return kind(release, adjacency.relation, count, independent)
