"""What may be believed of one record, given the value of a secret."""

from abc import ABC, abstractmethod
from typing import Any

from sklearn.base import BaseEstimator

from skpuffer.exceptions import Statement
from skpuffer.privacy_loss.overlap import Overlap
from skpuffer.releases import PublicContext
from skpuffer.utils._nested import NestedParametersMixin

__all__ = ["Belief"]


class Belief(NestedParametersMixin, BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn is untyped
    """What may be believed of one record given the value of a secret.

    It holds parameters only. It is declared, and the promise is made to whoever
    believes it: nothing is learnt from the private rows.
    """

    @abstractmethod
    def check(self, scenario: Any = None) -> None:
        """Check the parameters by plain code; an error names the parameter.

        Parameters
        ----------
        scenario : AttributeScenario, default=None
            The scenario that it is the prior of, which beliefs that are read from
            public rows need here and below.
        """

    @abstractmethod
    def overlap(self, scenario: Any = None) -> Overlap:
        """Return how far the record's distributions given two values overlap.

        Parameters
        ----------
        scenario : AttributeScenario, default=None
        """

    @abstractmethod
    def wider(self, scenario: Any = None) -> tuple[tuple[Statement, Overlap], ...]:
        """Return what would be so if the belief is off, each under a name.

        Parameters
        ----------
        scenario : AttributeScenario, default=None
        """

    @abstractmethod
    def statement(self) -> Statement:
        """Return the belief in a sentence, for the certificate."""

    @abstractmethod
    def speaks_of(self, scenario: Any, context: PublicContext) -> Statement | None:
        """Return of what of a record it speaks, the same for equal beliefs only.

        None if that is not known.

        Parameters
        ----------
        scenario : AttributeScenario
        context : PublicContext
        """

    def check_covers(self, scenario: Any, context: PublicContext) -> None:
        """Refuse a table of which more is read than the belief speaks of.

        Parameters
        ----------
        scenario : AttributeScenario
        context : PublicContext

        Raises
        ------
        ScenarioError
            By the names of the columns.
        """
        return
