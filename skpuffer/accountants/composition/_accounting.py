"""The dominating pairs of a release's steps, by the kind of release."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import Noise, Shift
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve
from skpuffer.releases._base import Release
from skpuffer.scenarios import Adjacency

__all__ = ["Accounting", "StepsOfRelease", "steps_of"]


@dataclass(frozen=True)
class Accounting:
    """The privacy curve of all steps of a release, composed.

    Parameters
    ----------
    curve : GaussianCurve or PrivacyLossCurve
        The former, exact, where Gaussian noise meets known shifts.
    shift : Shift
        Sensitivity of one step; of an epoch, where batches are dealt.
    source : str
        Where the bound is proved.
    tight : bool
        Whether some neighbouring tables attain it.
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
    """The steps of one release between neighbouring tables, and what dominates them.

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

    #: Subclasses by the kind of release they read.
    kinds: ClassVar[dict[type, type["StepsOfRelease"]]] = {}

    def __init_subclass__(cls, kind: type | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if kind is not None:
            StepsOfRelease.kinds[kind] = cls

    def __post_init__(self) -> None:
        obstacle = self._obstacle()
        if obstacle is not None:
            raise UnsupportedError(obstacle)

    def _obstacle(self) -> str | None:
        """Why nothing can be claimed, with the remedy, or None if it can."""
        return None

    @abstractmethod
    def under(self, noise: Noise, max_memory: float = 500.0) -> Accounting:
        """Compose the dominating pairs of all steps under a noise.

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


def steps_of(release: Release, adjacency: Adjacency) -> StepsOfRelease:
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
    # fixed beforehand: see the class
    independent = count == 1 or adjacency.any_records
    return kind(release, adjacency.relation, count, independent)
