"""What accounting for many steps starts from, and what it finds."""

from dataclasses import dataclass, field

from skpuffer.accountants._base import bind
from skpuffer.noise import Shift
from skpuffer.scenarios import RecordScenario

__all__ = ["Accounting", "Neighbours", "meet", "neighbours"]


@dataclass(frozen=True)
class Neighbours:
    """How two worlds differ, as far as the accounting of steps needs to know.

    Parameters
    ----------
    relation : {'add_remove', 'replace'}
    count : int
        How many records differ.
    independent : bool
        Whether those that differ are fixed beforehand, all others being the same in
        both worlds: a single record, or any group under differential privacy.
    """

    relation: str
    count: int
    independent: bool = field(default=True, compare=False)


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

    curve: object
    shift: Shift
    source: str
    tight: bool
    assumptions: tuple = ()


def meet(accountant, release, scenario):
    """Return the bound scenario, its fact, and how its worlds differ."""
    bound = bind(scenario, release)
    fact = bound.fact(accountant._require(release, bound), release)
    return bound, fact, neighbours(fact, bound.scenario)


def neighbours(fact, scenario):
    """Read off a fact how two worlds differ; a record may become any other."""
    independent = fact.count == 1 or isinstance(scenario, RecordScenario)
    return Neighbours(fact.relation, int(fact.count), independent)
