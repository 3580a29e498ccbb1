"""Errors and warnings of skpuffer.

Errors that concern a parameter are ``ValueError`` as well, so code written for
scikit-learn keeps catching them.
"""

__all__ = [
    "CompositionError",
    "EmpiricalPriorWarning",
    "EstimatedGuaranteeWarning",
    "InfiniteDistanceError",
    "NoGainWarning",
    "PrivacyLeakWarning",
    "PrivacyWarning",
    "QueryBudgetError",
    "ScenarioError",
    "SeededNoiseWarning",
    "UncertifiedError",
    "UnsupportedError",
    "WeakPromiseWarning",
]


class ScenarioError(ValueError):
    """The scenario cannot be read against the public facts it was bound to."""


class UnsupportedError(ValueError):
    """This accountant cannot account for this release under this scenario."""


class InfiniteDistanceError(UnsupportedError):
    """Output distributions are infinitely far apart: no finite noise covers that."""


class CompositionError(ValueError):
    """These certificates must not be added up."""


class UncertifiedError(ValueError):
    """A guarantee was asked of a certificate that holds an estimate only."""


class QueryBudgetError(ValueError):
    """More queries were put than the release paid for, or than it may answer."""


class PrivacyWarning(UserWarning):
    """Base class of the warnings that concern a privacy promise."""


class PrivacyLeakWarning(PrivacyWarning):
    """Something was taken from the private data and is not covered by the promise."""


class EmpiricalPriorWarning(PrivacyLeakWarning):
    """The training data was taken as the prior, so the noise scale depends on it."""


class EstimatedGuaranteeWarning(PrivacyWarning):
    """Noise was set from samples of a distribution: the certificate is an estimate."""


class NoGainWarning(PrivacyWarning):
    """The scenario takes no less noise than differential privacy, which promises more.

    Differential privacy of as many replaced records as the secret may change: of one
    only where records are independent.
    """


class SeededNoiseWarning(PrivacyWarning):
    """The noise was drawn from a seed: fit for tests, not for a release."""


class WeakPromiseWarning(PrivacyWarning):
    """The promise asked for is worth little, or the classes declared look like numbers.

    A delta of one over the number of records or more allows for publishing somebody's
    record; an epsilon above ten is hardly a promise by itself. A classifier with very
    many whole numbers as classes may have been told of a target that is a number.
    """
