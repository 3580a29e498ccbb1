"""Telling two worlds apart by what is released in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import check_finite, check_non_negative, check_probability

from ._scored import ScoredAttack, best_cuts
from ._scores import clopper_pearson

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats

    #: Of outputs of shape (n, dim).
    Score = Callable[[Floats], Floats]


#: Coordinates of an output of which all products are learned from.
_MOST_PRODUCTS = 50


@dataclass(frozen=True, eq=False, repr=False)
class DistinguishingAttack(ScoredAttack):
    """Scores of released outputs in two worlds; see :func:`distinguishing_attack`.

    Parameters
    ----------
    scores : ndarray of shape (n_scores,)
        Scores of the outputs that measure, growing with the odds of the first world.
    labels : ndarray of bool of shape (n_scores,)
        Whether an output is of the first world.
    confidence : float
        Confidence of intervals and of comparisons.
    chosen : tuple of (ndarray, ndarray)
        Scores in the first and the second world of the outputs that chose the rule.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.audit import distinguishing_attack
    >>> from skpuffer.privacy_loss import GaussianCurve
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.normal(1.0, size=20_000), rng.normal(0.0, size=20_000)
    >>> found = distinguishing_attack(first, second).delta_at(1.0)
    >>> GaussianCurve(mu=0.7).delta(1.0) < found < GaussianCurve(mu=1.0).delta(1.0)
    True
    """

    chosen: tuple[Floats, Floats] = field(
        default_factory=lambda: (np.empty(0), np.empty(0))
    )

    @property
    def _chosen(self) -> tuple[Floats, Floats]:
        return self.chosen

    @property
    def _measured(self) -> tuple[Floats, Floats]:
        return self._split

    def delta_at(self, epsilon: float) -> float:
        """Return a lower bound of the delta that any promise has at an epsilon.

        The best event is chosen on a share of the outputs and measured on the others,
        by Clopper-Pearson bounds.

        Parameters
        ----------
        epsilon : float
            In nats, at least zero.

        Returns
        -------
        delta : float
            Too large with probability ``1 - confidence`` at most, for one epsilon.
            Compare it with ``certificate.curve.delta(epsilon)`` or
            :func:`allowed_delta`.
        """
        epsilon = check_non_negative(epsilon=epsilon)
        slope = math.exp(min(epsilon, 700.0))
        bounds = [
            low - slope * high
            for low, high in self._rates(lambda a, b: best_cuts(a, b, [epsilon])[0])
        ]
        return max(0.0, *bounds)

    def epsilon_at(self, delta: float) -> float:
        """Return a lower bound of the epsilon that any promise has at a delta.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        epsilon : float
            In nats. Too large with probability ``1 - confidence`` at most, for one
            delta. Compare it with ``certificate.curve.epsilon(delta)``.
        """
        delta = check_non_negative(delta=delta)
        if delta >= 1:
            raise value_error("audit.delta_out_of_range", delta=delta)

        def cut(a: Floats, b: Floats) -> float:
            return _surest_cut(a, b, delta, self._failure)

        bounds = [
            math.log((low - delta) / high)
            for low, high in self._rates(cut)
            if low > delta
        ]
        return max(0.0, *bounds) if bounds else 0.0

    @property
    def _failure(self) -> float:
        """Chance of each of four bounds to be wrong: two rates, two orders."""
        return (1 - self.confidence) / 4

    def _rates(
        self, choose: Callable[[Floats, Floats], float]
    ) -> Iterator[tuple[float, float]]:
        """Lower bound of the true and upper bound of the false positive rate."""
        (first, second), (chosen, others) = self._measured, self._chosen
        sides = (first, second, chosen, others), (-second, -first, -others, -chosen)
        for p, q, p_chosen, q_chosen in sides:
            cut = choose(p_chosen, q_chosen)
            low, _ = clopper_pearson(int((p > cut).sum()), len(p), self._failure)
            _, high = clopper_pearson(int((q > cut).sum()), len(q), self._failure)
            yield low, high


def distinguishing_attack(
    first: ArrayLike,
    second: ArrayLike,
    *,
    score: Score | None = None,
    share: float = 0.2,
    confidence: float = 0.95,
) -> DistinguishingAttack:
    """Distinguish two worlds by what a mechanism released in each.

    The worlds may differ in one record or in any secret. Run the mechanism many times
    in each, with fresh noise (and fresh data where the promise is about a prior). A
    score is fitted on a share of the outputs and measured on the others; see
    :meth:`DistinguishingAttack.against`, :meth:`DistinguishingAttack.exceeds`.

    Parameters
    ----------
    first, second : array-like of shape (n, dim) or (n,)
        Numeric outputs in each of the worlds, from independent runs.
    score : callable of outputs of shape (n, dim), default=None
        Grows with the odds of the first world; the log-likelihood ratio is best. It
        must not have been fitted to these outputs. None learns one: a coordinate, or a
        quadratic logistic regression in several dimensions.
    share : float, default=0.2
        Share of the outputs in each world, the first ones, which choose the rule.
    confidence : float, default=0.95
        Confidence of intervals, and that no finding of a comparison is wrong.

    Returns
    -------
    DistinguishingAttack

    See Also
    --------
    membership_attack : Of one fitted model, by its loss on many records.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.audit import distinguishing_attack
    >>> from skpuffer.privacy import Certificate
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.laplace(1.0, 1.0, 5000), rng.laplace(0.0, 1.0, 5000)
    >>> attack = distinguishing_attack(first, second)
    >>> attack
    DistinguishingAttack(n_first=4000, n_second=4000, auc=0.7...)
    >>> attack.against(Certificate(notion="pure_dp", epsilon=1.0)).broken
    False
    >>> attack.against(Certificate(notion="pure_dp", epsilon=0.7)).broken
    True
    """
    p, q = _outputs(first, "first"), _outputs(second, "second")
    share = check_probability(share=share)
    if p.shape[1] != q.shape[1]:
        raise value_error(
            "audit.outputs_lengths_unequal",
            first_length=p.shape[1],
            second_length=q.shape[1],
        )
    heads = int(share * len(p)), int(share * len(q))
    if min(heads) < 1 or len(p) == heads[0] or len(q) == heads[1]:
        raise value_error(
            "audit.share_leaves_none", n_first=len(p), n_second=len(q), share=share
        )
    n, m = heads
    if score is None:
        score = _learned(p[:n], q[:m])
    # The promise is about real arithmetic: the last bits of a double can give a value
    # away (Mironov, 2012), and an optimal rule finds them.
    mine, others = (
        np.round(np.asarray(score(outputs), dtype=float), 9) for outputs in (p, q)
    )
    for scores, outputs in ((mine, p), (others, q)):
        if scores.shape != (len(outputs),):
            raise value_error(
                "audit.score_not_per_output", shape=scores.shape, n_outputs=len(outputs)
            )
    return DistinguishingAttack(
        scores=np.concatenate([mine[n:], others[m:]]),
        labels=np.repeat([True, False], [len(p) - n, len(q) - m]),
        confidence=confidence,
        chosen=(mine[:n], others[:m]),
    )


def _outputs(outputs: ArrayLike, name: str) -> Floats:
    array = check_finite(**{name: outputs})
    if array.ndim not in (1, 2) or not array.size:
        raise value_error("audit.outputs_not_one_per_row", name=name, shape=array.shape)
    return array.reshape(len(array), -1)


def _learned(p: Floats, q: Floats) -> Score:
    if p.shape[1] == 1:
        sign = 1.0 if np.median(p) >= np.median(q) else -1.0
        return lambda outputs: sign * outputs[:, 0]
    # products of very many coordinates are more than there are outputs to learn from
    degree = 2 if p.shape[1] <= _MOST_PRODUCTS else 1
    model = make_pipeline(
        StandardScaler(), PolynomialFeatures(degree), LogisticRegression(max_iter=500)
    )
    model.fit(np.concatenate([p, q]), np.repeat([1, 0], [len(p), len(q)]))
    score: Score = model.decision_function
    return score


def _surest_cut(a: Floats, b: Floats, delta: float, failure: float) -> float:
    """Threshold above which ``log((P_a - delta) / P_b)`` is surely large."""
    cuts = np.unique(np.concatenate([a, b]))
    n, m = len(a), len(b)
    hits = n - np.searchsorted(np.sort(a), cuts, side="right")
    false = m - np.searchsorted(np.sort(b), cuts, side="right")
    # by the bounds of these outputs: the largest ratio as such is of an event that
    # happened once
    low = special.betaincinv(np.maximum(hits, 1), n - hits + 1, failure)
    high = special.betainccinv(false + 1, np.maximum(m - false, 1), failure)
    low, high = np.where(hits > 0, low, 0.0), np.where(false < m, high, 1.0)
    gains = np.maximum(low - delta, 0.0) / high
    return float(cuts[np.argmax(gains)])
