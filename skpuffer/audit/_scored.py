"""What every attack ends in: scores in two worlds, and how far they tell them apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.metrics import roc_curve

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import check_non_negative, check_option, check_probability
from skpuffer.utils._reading import refuse_mask

from ._allowed import allowed_deltas, largest_auc, largest_tpr
from ._scores import area, area_interval, clopper_pearson

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Booleans, Floats
    from skpuffer.privacy import Certificate
    from skpuffer.utils._types import Array


#: Where an attacker looks, unless told: from "guess better at all" to rare certainty.
EPSILONS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0)

_METHODS = ("delong", "pairs")


class OperatingPoint(NamedTuple):
    """Hold rates of the rule "the score exceeds the threshold", each with its interval.

    Parameters
    ----------
    threshold : float
        Chosen on scores that are not measured here.
    tpr, fpr : float
        True and false positive rate, as measured.
    tpr_interval, fpr_interval : tuple of (float, float)
        Clopper-Pearson intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.audit import distinguishing_attack
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.normal(1.0, size=20_000), rng.normal(0.0, size=20_000)
    >>> point = distinguishing_attack(first, second).tpr_at(0.05)
    >>> low, high = point.fpr_interval
    >>> low < point.fpr < high, point.tpr > 4 * point.fpr
    (True, True)
    """

    threshold: float
    tpr: float
    fpr: float
    tpr_interval: tuple[float, float]
    fpr_interval: tuple[float, float]


@dataclass(frozen=True)
class Finding:
    """Report the success of one attacker at one epsilon.

    Parameters
    ----------
    epsilon : float
        In nats.
    direction : {'first', 'second'}
        Which of the two worlds the rule names.
    tpr, fpr : float
        True and false positive rate, as measured.
    lower : float
        Bounds ``TPR - e^epsilon * FPR`` from below.
    allowed : float
        The most that is promised of it.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.audit import distinguishing_attack
    >>> from skpuffer.privacy import Certificate
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.normal(1.0, size=20_000), rng.normal(0.0, size=20_000)
    >>> claimed = Certificate(notion="pure_dp", epsilon=1.0)
    >>> finding = distinguishing_attack(first, second).against(claimed).worst
    >>> finding.epsilon, finding.allowed, finding.broken
    (1.0, 0.0, True)
    """

    epsilon: float
    direction: str
    tpr: float
    fpr: float
    lower: float
    allowed: float

    @property
    def broken(self) -> bool:
        """Whether more was achieved than is promised."""
        return self.lower > self.allowed


@dataclass(frozen=True)
class Comparison:
    """Collect all findings of an attack beside what a certificate allows.

    Parameters
    ----------
    findings : tuple of Finding

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.audit import distinguishing_attack
    >>> from skpuffer.privacy import Certificate
    >>> rng = np.random.default_rng(0)
    >>> attack = distinguishing_attack(
    ...     rng.normal(1.0, size=20_000), rng.normal(0.0, size=20_000)
    ... )
    >>> for epsilon in (1.0, 4.0):
    ...     claimed = Certificate(notion="approximate_dp", epsilon=epsilon, delta=0.01)
    ...     print(attack.against(claimed).broken)
    True
    False
    """

    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Finding:
        """The finding that is furthest above what is allowed, or least below it."""
        return max(self.findings, key=lambda f: f.lower - f.allowed)

    @property
    def broken(self) -> bool:
        """Whether any finding exceeds what is allowed."""
        return self.worst.broken

    def __str__(self) -> str:
        w = self.worst
        return (
            f"at eps={w.epsilon:g} ({w.direction}): TPR {w.tpr:.4f}, FPR {w.fpr:.4f}, "
            f"advantage at least {w.lower:.4g}, allowed {w.allowed:.4g}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ScoredAttack:
    """Scores in two worlds, and what can be said of them.

    Parameters
    ----------
    scores : ndarray of shape (n_scores,)
        Grow with the odds of the first world: of a member, say.
    labels : ndarray of bool of shape (n_scores,)
        Whether a score is of the first world.
    confidence : float
        Confidence of intervals and of comparisons.
    """

    scores: Floats
    labels: Booleans
    confidence: float = 0.95

    # names of the two kinds of scores, for messages
    _kinds: ClassVar[tuple[str, str]] = ("first", "second")

    def __post_init__(self) -> None:
        scores, labels = _read(self.scores, "scores"), _read(self.labels, "labels")
        if scores.shape != labels.shape or not np.all((labels == 0) | (labels == 1)):
            raise value_error(
                "audit.labels_not_per_score", n_scores=len(scores), shape=labels.shape
            )
        labels = labels.astype(bool)
        if labels.all() or not labels.any():
            raise value_error(
                "audit.labels_of_one_kind", first=self._kinds[0], second=self._kinds[1]
            )
        # NaN compares with nothing, and two infinities are as good as equal
        if not np.all(np.isfinite(scores)):
            raise value_error("audit.scores_not_finite")
        object.__setattr__(self, "scores", scores.astype(float))
        object.__setattr__(self, "labels", labels)
        check_probability(confidence=self.confidence)

    @property
    def _relation(self) -> str | None:
        """How tables differ, where a certificate about records is asked."""
        return None

    @property
    def _split(self) -> tuple[Floats, Floats]:
        return self.scores[self.labels], self.scores[~self.labels]

    @property
    def auc(self) -> float:
        """Area under the ROC curve; 1/2 is chance."""
        return area(*self._split)

    def auc_interval(self, method: str = "delong") -> tuple[float, float]:
        """Two-sided confidence interval of the area under the ROC curve."""
        check_option(_METHODS, method=method)
        return area_interval(*self._split, self.confidence, method)

    def roc(self) -> tuple[Floats, Floats]:
        """Return the ROC curve."""
        fpr, tpr, _ = roc_curve(self.labels, self.scores, drop_intermediate=False)
        return fpr, tpr

    @property
    def advantage(self) -> float:
        """Largest difference of the true and the false positive rate.

        It is that of the best threshold in hindsight, hence more than is there: for a
        bound see :meth:`against`.
        """
        fpr, tpr = self.roc()
        return float(np.max(tpr - fpr))

    def tpr_at(self, fpr: float) -> OperatingPoint:
        """Measure the rates of the rule that should have a false positive rate.

        Half of the scores of the second world choose the threshold; the others measure
        the rates, so the rate found need not be the one asked for.

        Parameters
        ----------
        fpr : float
            In (0, 1).

        Returns
        -------
        OperatingPoint
        """
        fpr = check_probability(fpr=fpr)
        mine, others = self._split
        if len(others) < 2:
            raise value_error("audit.one_score_only", kind=self._kinds[1])
        # not every other one: they may come in any order
        shuffled = np.random.default_rng(0).permutation(others)
        half = len(others) // 2
        chosen, measured = np.sort(shuffled[:half]), shuffled[half:]
        beyond = math.floor(fpr * half)
        threshold = float(chosen[half - 1 - beyond])
        failure = (1 - self.confidence) / 2
        hits, false = int((mine > threshold).sum()), int((measured > threshold).sum())
        return OperatingPoint(
            threshold=threshold,
            tpr=hits / len(mine),
            fpr=false / len(measured),
            tpr_interval=clopper_pearson(hits, len(mine), failure),
            fpr_interval=clopper_pearson(false, len(measured), failure),
        )

    def exceeds(
        self,
        certificate: Certificate,
        fpr: float | None = None,
        *,
        method: str = "pairs",
    ) -> bool:
        """Return whether more was measured than a certificate allows.

        Parameters
        ----------
        certificate : Certificate
            A promise, not an estimate.
        fpr : float, default=None
            None compares areas under the ROC curve with :func:`largest_auc`. A rate
            compares the lower bound of the true positive rate with what is allowed at
            the upper bound of the false one.
        method : {'delong', 'pairs'}, default='pairs'
            Method for the interval of an area. 'delong' needs fewer scores, but do not
            trust it with few of either world or areas near one.

        Returns
        -------
        bool
            Wrongly True with probability ``1 - confidence`` at most, for one question
            and except for 'delong'. A certificate at a confidence below one may be
            wrong besides.
        """
        if fpr is None:
            most = largest_auc(certificate, relation=self._relation)
            return self.auc_interval(method)[0] > most
        point = self.tpr_at(fpr)
        at = point.fpr_interval[1]
        allowed = largest_tpr(certificate, at, relation=self._relation)
        return bool(point.tpr_interval[0] > allowed)

    def against(
        self,
        certificate: Certificate,
        *,
        epsilons: Sequence[float] = EPSILONS,
        whole_curve: bool = True,
    ) -> Comparison:
        """Bound ``TPR - e^eps FPR`` from below, beside what a certificate allows.

        For each epsilon and either world, the best threshold is chosen on a part of the
        scores and measured on the others.

        Parameters
        ----------
        certificate : Certificate
            A promise, not an estimate.
        epsilons : sequence of float, default=(0, 0.25, 0.5, 1, 1.5, 2, 3)
            Where to compare, besides the stated one; the confidence is shared among
            all.
        whole_curve : bool, default=True
            Whether to use the curve behind the stated numbers.

        Returns
        -------
        Comparison
            No finding is wrong with probability `confidence`.
        """
        given = {check_non_negative(epsilons=epsilon) for epsilon in epsilons}
        looked = sorted({*given, *_stated(certificate)})
        allowed = allowed_deltas(certificate, looked, whole_curve, self._relation)
        # two rates, two directions
        failure = (1 - self.confidence) / (4 * len(looked))
        (first, second), (chosen_1, chosen_2) = self._measured, self._chosen
        sides = (
            ("first", first, second, chosen_1, chosen_2),
            ("second", -second, -first, -chosen_2, -chosen_1),
        )
        findings = []
        for direction, p, q, p_chosen, q_chosen in sides:
            cuts = best_cuts(p_chosen, q_chosen, looked)
            for epsilon, cut, most in zip(looked, cuts, allowed, strict=True):
                hits, false = int((p > cut).sum()), int((q > cut).sum())
                low, _ = clopper_pearson(hits, len(p), failure)
                _, high = clopper_pearson(false, len(q), failure)
                findings.append(
                    Finding(
                        epsilon=epsilon,
                        direction=direction,
                        tpr=hits / len(p),
                        fpr=false / len(q),
                        lower=low - math.exp(min(epsilon, 700.0)) * high,
                        allowed=most,
                    )
                )
        return Comparison(tuple(findings))

    @property
    def _chosen(self) -> tuple[Floats, Floats]:
        """Scores that choose thresholds for `against`: a fifth of each kind."""
        return self._fifths[0]

    @property
    def _measured(self) -> tuple[Floats, Floats]:
        return self._fifths[1]

    @property
    def _fifths(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        rng = np.random.default_rng(0)
        first, second = (rng.permutation(scores) for scores in self._split)
        if min(len(first), len(second)) < 5:
            raise value_error("audit.fewer_than_five_scores")
        n, m = len(first) // 5, len(second) // 5
        return (first[:n], second[:m]), (first[n:], second[m:])

    def __repr__(self) -> str:
        first, second = self._kinds
        return (
            f"{type(self).__name__}(n_{first}={int(self.labels.sum())}, "
            f"n_{second}={int((~self.labels).sum())}, auc={self.auc:.4f})"
        )


def _read(values: Any, name: str) -> Array:
    refuse_mask(values, name)
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "biuf" or not array.size:
        raise value_error(
            "audit.not_a_list_of_numbers",
            name=name,
            shape=array.shape,
            dtype=array.dtype,
        )
    return array


def _stated(certificate: Certificate) -> tuple[float, ...]:
    epsilon = certificate.epsilon
    return (epsilon,) if epsilon is not None and epsilon < 20 else ()


def best_cuts(a: Floats, b: Floats, epsilons: Sequence[float]) -> list[float]:
    """For each epsilon the threshold above which ``P_a - e^epsilon P_b`` is largest."""
    values = np.concatenate([a, b])
    order = np.argsort(-values, kind="stable")
    values = values[order]
    ends = np.flatnonzero(np.append(values[:-1] > values[1:], True))  # of equal scores
    hits = np.cumsum(order < len(a))[ends]
    false = ends + 1 - hits
    following = np.append(values[1:], values[-1] - 1)[ends]  # the least has none
    cuts = []
    for epsilon in epsilons:
        gains = hits / len(a) - math.exp(min(epsilon, 700.0)) * false / len(b)
        best = np.argmax(gains)
        middle = (values[ends[best]] + following[best]) / 2
        cuts.append(float(middle) if gains[best] > 0 else math.inf)
    return cuts
