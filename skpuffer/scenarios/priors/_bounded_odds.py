"""The belief that a row shifts the odds of the secret within a range."""

from typing import Any

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.numbers import check_at_least_one, check_share
from skpuffer.privacy_loss.overlap import OddsOverlap, Overlap
from skpuffer.releases import PublicContext

from ._belief import Belief

__all__ = ["BoundedOdds", "check_rest"]

#: A wider range says nothing, and its divergences cannot be told from one.
MOST_ODDS = 1e9


class BoundedOdds(Belief):
    """A row shifts the odds of the secret within a range.

    The whole row but the secret, read or not, label and all: nobody who saw it would
    change the odds of one value of the secret against another by more than a factor
    within this range. No table is needed, and it stands whatever else of the row is
    known already. What is known *besides* the row, as a name or an address, must leave
    the range as it is.

    Parameters
    ----------
    w : float
        Largest factor over the smallest: 4 if the odds may double or halve.
    share : float, default=0.0
        Share of the people with each value of whom nothing is assumed, below one.

    References
    ----------
    The largest divergence of two such distributions is that of a coin whose odds are
    the root of the range either way.

    Examples
    --------
    >>> from skpuffer.scenarios import AttributeScenario, BoundedOdds
    >>> AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    AttributeScenario('race', level='record', prior=BoundedOdds(w=4.0))
    """

    def __init__(self, w: float, share: float = 0.0) -> None:
        self.w = w
        self.share = share

    def check(self, scenario: Any = None) -> None:
        """Check the parameters; see the class."""
        w, share = check_at_least_one(w=self.w), check_share(share=self.share)
        if w > MOST_ODDS:
            raise ScenarioError(Statement("odds.range_too_large", most_odds=MOST_ODDS))
        if w == 1 and share == 0:
            raise ScenarioError(Statement("odds.range_is_one"))

    def overlap(self, scenario: Any = None) -> Overlap:
        """Return the largest divergences that the range allows."""
        return OddsOverlap(float(self.w), float(self.share))

    def wider(self, scenario: Any = None) -> tuple[tuple[Statement, Overlap], ...]:
        """Return the overlap where the range is twice as wide."""
        twice = 2 * float(self.w)
        return (
            (
                Statement("prior.wider_odds", twice=twice),
                OddsOverlap(twice, float(self.share)),
            ),
        )

    def speaks_of(self, scenario: Any, context: PublicContext) -> Statement:
        """Return that it speaks of the whole row."""
        return Statement("prior.speaks_whole_row")

    def statement(self) -> Statement:
        """Return the belief in a sentence."""
        if not self.share:
            return Statement("assume.belief_bounded_odds", w=float(self.w))
        return Statement(
            "assume.belief_bounded_odds_except_share",
            w=float(self.w),
            share=float(self.share),
        )


def check_rest(rest: Any) -> None:
    """Check the odds of what a belief leaves out.

    Parameters
    ----------
    rest : BoundedOdds or None

    Raises
    ------
    TypeError
        If it is neither.
    ScenarioError
        If its range is out of bounds, or it has a share.
    """
    if rest is None:
        return
    if not isinstance(rest, BoundedOdds):
        raise TypeError(Statement("odds.rest_not_bounded_odds", rest=rest))
    # a range of one is a statement here: the rest tells nothing more
    w = check_at_least_one(w=rest.w)
    if w > MOST_ODDS or rest.share != 0:
        raise ScenarioError(
            Statement("odds.rest_range_or_share", most_odds=MOST_ODDS, rest=rest)
        )
