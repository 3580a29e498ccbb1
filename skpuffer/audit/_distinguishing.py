"""Telling two worlds apart by what is released in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skpuffer.utils._checks import check_finite, check_probability

from ._scored import ScoredAttack

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.utils._types import Floats

    #: Of outputs of shape (n, dim).
    Score = Callable[[Floats], Floats]

__all__ = ["DistinguishingAttack", "distinguishing_attack"]

#: Coordinates of an output of which all products are learned from.
_MOST_PRODUCTS = 50


@dataclass(frozen=True, eq=False, repr=False)
class DistinguishingAttack(ScoredAttack):
    """Scores of released outputs in two worlds; see :func:`distinguishing_attack`.

    Parameters
    ----------
    scores : ndarray of shape (n_scores,)
        Of the outputs that measure, growing with the odds of the first world.
    labels : ndarray of bool of shape (n_scores,)
        Whether an output is of the first world.
    confidence : float
        Of intervals and of comparisons.
    chosen : tuple of (ndarray, ndarray)
        Scores in the first and the second world of the outputs that chose the rule.
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


def distinguishing_attack(
    first: ArrayLike,
    second: ArrayLike,
    *,
    score: Score | None = None,
    share: float = 0.2,
    confidence: float = 0.95,
) -> DistinguishingAttack:
    """Tell two worlds apart by what a mechanism released in each.

    The worlds may differ in one record or in any secret, such as how common a class is.
    Run the mechanism many times in each, with fresh noise (and, where the promise is
    about a prior, with fresh data from it given each secret), and give what left. A
    score is fitted on a share of the outputs and measured on the others, so that what
    is measured is honest: see :meth:`DistinguishingAttack.against`,
    :meth:`DistinguishingAttack.exceeds`.

    Parameters
    ----------
    first, second : array-like of shape (n, dim) or (n,)
        Outputs in each of the worlds, from independent runs. Numbers: the parameters of
        a model, its predictions at some points.
    score : callable of outputs of shape (n, dim), default=None
        Grows with the odds of the first world; the log-likelihood ratio makes the best
        attacker there is. It must not have been fitted to these outputs. None learns
        one: a coordinate itself, or a quadratic logistic regression in several
        dimensions.
    share : float, default=0.2
        Of the outputs in each world, the first ones, which choose the rule.
    confidence : float, default=0.95
        Of intervals, and that no finding of a comparison is wrong.

    Returns
    -------
    DistinguishingAttack

    Raises
    ------
    ValueError
        If the outputs are no numbers, differ in length, or are too few.

    See Also
    --------
    membership_attack : Of one fitted model, by its loss on many records.
    largest_auc : What a certificate allows.

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
        raise ValueError(
            "The parameters 'first' and 'second' must hold outputs of one length. Got "
            f"{p.shape[1]} and {q.shape[1]} numbers each."
        )
    heads = int(share * len(p)), int(share * len(q))
    if min(heads) < 1 or len(p) == heads[0] or len(q) == heads[1]:
        raise ValueError(
            f"Of {len(p)} and {len(q)} outputs a share of {share:g} leaves none to "
            "choose the rule, or none to measure it. Give more of both."
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
            raise ValueError(
                "The parameter 'score' must return one number for each output. Got "
                f"shape {scores.shape} for {len(outputs)} outputs."
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
        raise ValueError(
            f"The parameter {name!r} must hold one output a row. Got shape "
            f"{array.shape}."
        )
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
