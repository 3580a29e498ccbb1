"""Errors and warnings of skpuffer.

Errors that concern a parameter are ``ValueError`` as well, so code written for
scikit-learn keeps catching them.
"""

__all__ = [
    "BudgetExceededError",
    "CompositionError",
    "EmpiricalPriorWarning",
    "EstimatedGuaranteeWarning",
    "InfiniteDistanceError",
    "LedgerError",
    "LedgerRefusal",
    "NoGainWarning",
    "NotComposableError",
    "PrivacyLeakWarning",
    "PrivacyWarning",
    "QueryBudgetError",
    "ScaleWarning",
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


class LedgerError(ValueError):
    """A ledger's file or ceilings are not as they must be."""


class LedgerRefusal(BaseException):
    """A ledger refuses a release: nothing was drawn, and nothing is fitted.

    As an interrupt it is no ``Exception``, so that what catches every one of these does
    not go on without the release: scikit-learn's searches and cross-validations, which
    make a score of an error by default (``error_score``), stop.
    """


class BudgetExceededError(LedgerRefusal):
    """With this release a ledger's total would be above a ceiling."""


class NotComposableError(LedgerRefusal):
    """This release does not add up with those in the ledger, or with no ceiling."""


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


class ScaleWarning(UserWarning):
    """By public facts rows are of another scale than the norm that noise is set for."""


class WeakPromiseWarning(PrivacyWarning):
    """The promise asked for is worth little, or the classes declared look like numbers.

    A delta of one over the number of records or more allows for publishing somebody's
    record; an epsilon above ten is hardly a promise by itself. A classifier with very
    many whole numbers as classes may have been told of a target that is a number.
    """
