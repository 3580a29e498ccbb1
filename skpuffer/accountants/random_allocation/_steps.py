"""Steps of runs whose records draw bins, by a bound of one's choice."""

from dataclasses import dataclass
from typing import Any

from skpuffer.accountants.composition._correlated import bins_of, correlated_pairs
from skpuffer.accountants.composition._gradients import Dominated, GradientSteps
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.noise import Noise
from skpuffer.noise.strategies import NoiseStrategy, identity
from skpuffer.releases import (
    BallsInBinsSampling,
    FreshBinsSampling,
    FullBatchSampling,
    GradientRelease,
)

__all__ = ["METHODS", "AllocationSteps", "check_bins", "strategy_of"]

#: Bounds by their names.
METHODS = (
    "best",
    "exact",
    "chain",
    "blocks",
    "closed",
    "renyi",
    "conditional",
    "unamplified",
)

#: Those that say nothing of a record that is replaced.
_ONE_SIDED = ("blocks", "closed", "renyi", "conditional")

# a full batch is the one bin of its epoch: what trained estimators ask about to see how
# much noise a budget takes
_BINS = (FreshBinsSampling, BallsInBinsSampling, FullBatchSampling)


def check_bins(release: GradientRelease, count: int) -> None:
    """Refuse a run whose records draw no bins, or a group of records.

    Parameters
    ----------
    release : GradientRelease
    count : int
        How many records differ.

    Raises
    ------
    UnsupportedError
        With a clause that gives the reason and the remedy.
    """
    if type(release.sampling) not in _BINS:
        raise UnsupportedError(
            Statement(
                "allocation.scheme_draws_no_bins",
                sampling=str(release.sampling),
                sampling_type=type(release.sampling).__name__,
            )
        )
    if count > 1:
        raise UnsupportedError(
            Statement(
                "allocation.group_without_bound",
                count=count,
                sampling=str(release.sampling),
            )
        )


def strategy_of(release: GradientRelease) -> NoiseStrategy:
    """Return how the noise of a run is correlated, which may be not at all."""
    found: Any = release.noise_correlation
    return identity() if found is None else found


@dataclass(frozen=True)
class AllocationSteps(GradientSteps, kind=None):
    """The steps of a run whose records draw bins; see :class:`GradientSteps`.

    Parameters
    ----------
    method : str
        Which bound.
    target : float or None
        Delta for which it is, if it is for one.
    """

    release: GradientRelease
    method: str = "best"
    target: float | None = None

    def check(self) -> None:
        """Refuse what has no such bound; see the base class."""
        check_bins(self.release, self.count)
        super().check()
        if self.method == "exact" and self.release.noise_correlation is not None:
            raise UnsupportedError(Statement("allocation.noise_correlated"))
        # all records are in one bin: nothing is left to a method
        if type(self.release.sampling) is FullBatchSampling:
            return
        if self.relation == "replace" and self.method in _ONE_SIDED:
            raise UnsupportedError(
                Statement("allocation.method_without_replace", method=self.method)
            )
        parts = bins_of(self.release, strategy_of(self.release))
        if self.method == "conditional" and sum(part.times for part in parts) > 1:
            raise UnsupportedError(Statement("allocation.conditional_over_epochs"))

    def dominated(self, noise: Noise) -> Dominated:
        """Return the dominating pairs of these steps; see the base class."""
        if self._curve(noise, 1).gaussian_mu is None:
            raise UnsupportedError(
                Statement(
                    "allocation.noise_not_gaussian",
                    name=self.release.name,
                    family=noise.family,
                )
            )
        independent = self.release.noise_correlation is None
        if independent and self.method in ("best", "exact"):
            return super().dominated(noise)
        strategy = strategy_of(self.release)
        pairs, source = correlated_pairs(
            self, noise, strategy, self.method, self.target
        )
        return Dominated(pairs, source, tight=False)
