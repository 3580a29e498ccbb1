"""The belief that from a row the secret is guessed only so well."""

import math
from typing import Any

from scipy.special import ndtri

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.numbers import check_probability
from skpuffer.privacy_loss.overlap import NormalOverlap, Overlap
from skpuffer.releases import PublicContext

from ._belief import Belief
from ._bounded_odds import BoundedOdds, check_rest

__all__ = ["BoundedInference"]

#: How much larger the AUC is taken to be if the belief is off.
_OFF = 0.05


class BoundedInference(Belief):
    """From a row the secret is guessed no better than with this AUC.

    Whoever guesses which of two values of the secret a person has, from the whole row
    but the secret, has at each false-positive rate no larger true-positive rate than
    the binormal ROC curve of this area. It is declared of those who know no more: with
    some of the columns known, or more about the person, the secret may be guessed
    better.

    Parameters
    ----------
    auc : float
        In (0.5, 1). Of the binormal ROC curve that no guesser exceeds anywhere. The
        area under a guesser's own curve is not enough: a rare value that gives the
        secret away lifts the curve at its start, and hardly the area. Where there are
        such values, declare more, or ``BoundedOdds(w, share=...)``.
    rest : BoundedOdds, default=None
        If the AUC is of the columns that are read: how far all else, label included,
        shifts the odds given these. None says that it is of the whole row.

    Examples
    --------
    >>> from skpuffer.scenarios import AttributeScenario, BoundedInference
    >>> AttributeScenario("race", level="record", prior=BoundedInference(0.72))
    AttributeScenario('race', level='record', prior=BoundedInference(auc=0.72))
    """

    def __init__(self, auc: float, rest: BoundedOdds | None = None) -> None:
        self.auc = auc
        self.rest = rest

    def check(self, scenario: Any = None) -> None:
        """Check the parameters; see the class."""
        auc = check_probability(auc=self.auc)
        if auc <= 0.5:
            raise ScenarioError(Statement("odds.auc_not_above_half", auc=self.auc))
        check_rest(self.rest)

    def _overlap(self, auc: float) -> Overlap:
        odds = 1.0 if self.rest is None else float(self.rest.w)
        # two unit normals mu apart: AUC = Phi(mu / sqrt(2))
        return NormalOverlap(math.sqrt(2) * float(ndtri(auc)), odds)

    def overlap(self, scenario: Any = None) -> Overlap:
        """Return the divergences of two normal distributions with this AUC."""
        return self._overlap(float(self.auc))

    def wider(self, scenario: Any = None) -> tuple[tuple[Statement, Overlap], ...]:
        """Return the overlap where the secret is guessed a little better."""
        auc = float(self.auc) + _OFF
        return (
            ((Statement("prior.wider_auc", auc=auc), self._overlap(auc)),)
            if auc < 1
            else ()
        )

    def speaks_of(self, scenario: Any, context: PublicContext) -> Statement | None:
        """Return the columns read and the rest, or that it is the whole row."""
        if self.rest is None:
            return Statement("prior.speaks_whole_row")
        names = context.feature_names
        if names is None:
            return None
        # another list of columns has another AUC
        return Statement("prior.speaks_columns_and_rest", columns=list(names))

    def statement(self) -> Statement:
        """Return the belief in a sentence."""
        if self.rest is None:
            return Statement("assume.belief_auc_of_row", auc=float(self.auc))
        return Statement(
            "assume.belief_auc_of_columns_read",
            auc=float(self.auc),
            w=float(self.rest.w),
        )
