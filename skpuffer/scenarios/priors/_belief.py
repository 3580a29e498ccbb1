"""What may be believed of one record, where no table of such records is given."""

from abc import ABC, abstractmethod

from sklearn.base import BaseEstimator

from skpuffer.privacy_loss._overlap import Overlap

__all__ = ["Belief"]


class Belief(BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn is untyped
    """What may be believed of one record given the value of a secret.

    It holds parameters only. It is declared, and the promise is made to whoever
    believes it: nothing is learnt from the private rows.
    """

    @abstractmethod
    def check(self) -> None:
        """Check the parameters by plain code; an error names the parameter."""

    @abstractmethod
    def overlap(self) -> Overlap:
        """Return how far the record's distributions given two values overlap."""

    @abstractmethod
    def wider(self) -> tuple[tuple[str, Overlap], ...]:
        """Return what would be so if the belief is off, each under a name."""

    @abstractmethod
    def statement(self) -> str:
        """Return the belief in a sentence, for the certificate."""
