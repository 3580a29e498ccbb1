"""The belief that a row shifts the odds of the secret within a range."""

import math
from typing import Any

from scipy.special import ndtri

from skpuffer.exceptions import Statement, scenario_error, type_error
from skpuffer.kernel.numbers import check_at_least_one, check_probability
from skpuffer.privacy_loss._overlap import NormalOverlap, OddsOverlap, Overlap
from skpuffer.releases import PublicContext
from skpuffer.utils._checks import check_share

from ._overlap import Belief

#: A wider range says nothing, and its divergences cannot be told from one.
MOST_ODDS = 1e9


class BoundedOdds(Belief):
    """A row shifts the odds of the secret within a range.

    The whole row but the secret, label included, changes the odds of one value of the
    secret against another by at most this range, whatever of the row is known already.
    Knowledge *besides* the row, such as a name, must leave the range as it is.

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
            raise scenario_error("odds.range_too_large", most_odds=MOST_ODDS)
        if w == 1 and share == 0:
            raise scenario_error("odds.range_is_one")

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
    """Check the odds of what a belief leaves out."""
    if rest is None:
        return
    if not isinstance(rest, BoundedOdds):
        raise type_error("odds.rest_not_bounded_odds", rest=rest)
    # a range of one is a statement here: the rest tells nothing more
    w = check_at_least_one(w=rest.w)
    if w > MOST_ODDS or rest.share != 0:
        raise scenario_error("odds.rest_range_or_share", most_odds=MOST_ODDS, rest=rest)


# -- the belief that from a row the secret is guessed only so well ---------------------


#: How much larger the AUC is taken to be if the belief is off.
_OFF = 0.05


class BoundedInference(Belief):
    """From a row the secret is guessed no better than with this AUC.

    A guesser who sees the whole row but the secret has at each false-positive rate no
    larger true-positive rate than the binormal ROC curve of this area. It is declared
    of those who know no more: with some columns known already the guess may be better.

    Parameters
    ----------
    auc : float
        In (0.5, 1). Area under the binormal ROC curve that no guesser exceeds anywhere.
        A guesser's own area is not enough: a rare, revealing value hardly changes it.
        With such values declare more, or ``BoundedOdds(w, share=...)``.
    rest : BoundedOdds, default=None
        If the AUC is of the columns that are read: how far all else, label included,
        shifts the odds. None: the AUC is of the whole row.

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
            raise scenario_error("odds.auc_not_above_half", auc=self.auc)
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


# -- how far an empirical distribution may be from the one it was drawn from -----------


def variation_radius(size: int, n: int, beta: float) -> float:
    """Radius of a total-variation ball around an empirical distribution.

    With probability at least ``1 - beta`` the distribution on `size` points that `n`
    independent draws came from is within it.

    References
    ----------
    Weissman et al. (2003), Inequalities for the L1 deviation of the empirical
    distribution, Theorem 2.1: ``P(L1 >= t) <= (2**size - 2) exp(-n t**2 / 2)``.
    """
    if size == 1:
        return 0.0
    # (2^size - 2) exp(-n t² / 2) = beta, solved for t; log(2^size - 2) without
    # overflow, and total variation is half of L1
    log_count = size * math.log(2) + math.log1p(-(2.0 ** (1 - size)))
    return 0.5 * math.sqrt(2 * (log_count + math.log(1 / beta)) / n)
