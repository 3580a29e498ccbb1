"""What a certificate allows whoever guesses: the largest ROC curve of all attacks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from skpuffer.exceptions import Statement, UncertifiedError, value_error
from skpuffer.kernel.numbers import check_each, check_non_negative, check_option
from skpuffer.privacy import Notion
from skpuffer.privacy._robustness import arbitrary_count
from skpuffer.privacy_loss import RenyiCurve, renyi_to_delta
from skpuffer.privacy_loss._overlap import OverlapCurve, WorstOverlapCurve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from skpuffer.kernel.curves import PrivacyCurve
    from skpuffer.kernel.numbers import Floats
    from skpuffer.privacy import Certificate


#: How two tables may differ if one record is a member in the first of them only.
RELATIONS = ("replace", "add_remove")

_RENYI = (
    Notion.RENYI_DP,
    Notion.RENYI_PUFFERFISH,
    Notion.APPROXIMATE_RENYI_PUFFERFISH,
)

#: How many points of a curve are looked at.
_POINTS = 96

#: Beyond it a line of slope e^epsilon bounds nothing that is larger than 1e-21.
_STEEPEST = 50.0

#: Log of a distance from one that is as good as none.
_LEAST_LOG = -700.0

#: False positive rates at which lines are compared, and Rényi bounds are touched.
_RATES = special.expit(np.linspace(-_STEEPEST / 2, _STEEPEST / 2, 401))


def allowed_delta(
    certificate: Certificate,
    epsilon: float,
    whole_curve: bool = True,
    *,
    relation: str | None = None,
) -> float:
    """Return the largest ``TPR - e^epsilon * FPR`` that a certificate allows.

    Parameters
    ----------
    certificate : Certificate
        A promise, not an estimate.
    epsilon : float
        In nats, at least zero.
    whole_curve : bool, default=True
        Whether to use the whole curve. The stated numbers alone allow more.
    relation : {'replace', 'add_remove'}, default=None
        As in :func:`allowed_roc`.

    Returns
    -------
    delta : float
        In [0, 1].

    Examples
    --------
    >>> from skpuffer.audit import allowed_delta
    >>> from skpuffer.privacy import Certificate
    >>> promise = Certificate(notion="approximate_dp", epsilon=1.0, delta=0.01)
    >>> allowed_delta(promise, 1.0), round(allowed_delta(promise, 0.0), 4)
    (0.01, 0.4675)
    """
    epsilon = check_non_negative(epsilon=epsilon)
    return allowed_deltas(certificate, (epsilon,), whole_curve, relation)[0]


def allowed_deltas(
    certificate: Certificate,
    epsilons: Sequence[float],
    whole_curve: bool,
    relation: str | None,
) -> list[float]:
    """Return :func:`allowed_delta` at each of several epsilons."""
    if relation is not None:
        # made once: the curve of a long run takes its time
        fpr, tpr = allowed_roc(certificate, whole_curve, relation=relation)
        return [float(np.max(tpr - math.exp(min(e, 700.0)) * fpr)) for e in epsilons]
    _refuse_what_bounds_no_attack(certificate)
    curve = certificate.curve if whole_curve else None
    found = []
    for epsilon in epsilons:
        bounds = [1.0, _stated_delta(certificate, epsilon)]
        if curve is not None:
            bounds.append(float(curve.delta(epsilon)) + certificate.event_delta)
        found.append(min(bounds))
    return found


def promises_at(
    certificate: Certificate, relation: str, n_records: int
) -> list[tuple[float, float]]:
    """(epsilon, delta) that a certificate promises about a record, at small deltas."""
    fpr, tpr = allowed_roc(certificate, relation=relation)
    # TPR <= e^eps FPR + delta along the line through two corners, where it is steep
    rise, run = np.diff(tpr), np.diff(fpr)
    kept = (run > 0) & (rise >= run)
    slopes = rise[kept] / run[kept]
    deltas = np.maximum(tpr[:-1][kept] - slopes * fpr[:-1][kept], 0.0)
    small = deltas < 1 / n_records
    points = zip(np.log(slopes[small]), deltas[small], strict=True)
    return [(float(epsilon), float(delta)) for epsilon, delta in points]


def allowed_roc(
    certificate: Certificate,
    whole_curve: bool = True,
    *,
    relation: str | None = None,
) -> tuple[Floats, Floats]:
    """Return the corners of the largest ROC curve that a certificate allows.

    An attacker who distinguishes two worlds has, for each rule, a true positive rate of
    at most ``e^eps FPR + delta(eps)`` at every eps, and likewise with the worlds
    exchanged. A Rényi promise bounds the two rates by the divergence of two coins. The
    bound is concave, so it also bounds rates that are averaged over records, if chance
    decides which of them are members.

    Parameters
    ----------
    certificate : Certificate
        A promise, not an estimate.
    whole_curve : bool, default=True
        Whether to use the curve behind the stated numbers.
    relation : {'replace', 'add_remove'}, default=None
        How tables differ in which one record is a member or not: 'replace' in samples
        of a fixed size; 'add_remove' if a coin decided for each record. None speaks of
        the certificate's own two worlds.

    Returns
    -------
    fpr, tpr : ndarray of shape (n_corners,)
        Increasing from (0, tpr) to (1, 1), with straight lines between them.

    Raises
    ------
    UncertifiedError
        If it is an estimate, or in a notion that bounds no single attack.
    ValueError
        If `relation` is given and nothing follows about one record's membership.

    Notes
    -----
    A curve is read at some hundred points and rounded up between: areas by less than
    3e-4.

    References
    ----------
    Wasserman and Zhou (2010), A statistical framework for differential privacy; Kairouz
    et al. (2015), Composition, Theorem 2.1; van Erven and Harremoës (2014), Rényi
    divergence, Theorems 9 and 13.

    Examples
    --------
    >>> from skpuffer.audit import allowed_roc
    >>> from skpuffer.privacy import Certificate
    >>> fpr, tpr = allowed_roc(Certificate(notion="pure_dp", epsilon=1.0))
    >>> fpr.round(3).tolist(), tpr.round(3).tolist()
    ([0.0, 0.269, 1.0], [0.0, 0.731, 1.0])
    """
    _refuse_what_bounds_no_attack(certificate)
    if relation is None:
        return _envelope(*_lines(certificate, certificate.curve, whole_curve))
    check_option(RELATIONS, relation=relation)
    steps, plain = _steps_of_membership(certificate, relation)
    curve = certificate.curve
    if plain:
        # the stated numbers hold under the belief, so that only the curve is left
        assert isinstance(curve, OverlapCurve | WorstOverlapCurve)
        lines = _lines_of_curve(curve.curve, certificate.event_delta)
    else:
        lines = _lines(certificate, curve, whole_curve)
    roc = _envelope(*lines)
    return roc if steps == 1 else _twice(*roc)


def largest_tpr(
    certificate: Certificate, fpr: ArrayLike, *, relation: str | None = None
) -> Floats | float:
    """Return the largest true positive rate allowed at a false positive rate.

    Parameters
    ----------
    certificate : Certificate
        A promise, not an estimate.
    fpr : float or array-like
        In [0, 1].
    relation : {'replace', 'add_remove'}, default=None
        As in :func:`allowed_roc`.

    Returns
    -------
    tpr : float or ndarray
        For each rate.

    Examples
    --------
    >>> from skpuffer.audit import largest_tpr
    >>> from skpuffer.privacy import Certificate
    >>> promise = Certificate(notion="approximate_dp", epsilon=1.0, delta=1e-5)
    >>> round(largest_tpr(promise, 0.001), 6)
    0.002728
    """
    rates = np.asarray(check_each(_check_rate, fpr=fpr), dtype=float)
    found = np.interp(rates, *allowed_roc(certificate, relation=relation))
    return float(found) if rates.ndim == 0 else found


def largest_auc(certificate: Certificate, *, relation: str | None = None) -> float:
    """Return the largest area under the ROC curve that a certificate allows.

    Parameters
    ----------
    certificate : Certificate
        A promise, not an estimate.
    relation : {'replace', 'add_remove'}, default=None
        As in :func:`allowed_roc`.

    Returns
    -------
    auc : float
        In [1/2, 1].

    Examples
    --------
    >>> from skpuffer.audit import largest_auc
    >>> from skpuffer.privacy import Certificate
    >>> promise = Certificate(notion="pure_dp", epsilon=1.0, relation="add_remove")
    >>> round(largest_auc(promise), 4)
    0.7311
    >>> round(largest_auc(promise, relation="replace"), 4)
    0.8698
    """
    fpr, tpr = allowed_roc(certificate, relation=relation)
    # the bound is made of straight lines, so that this is no approximation
    return float(np.trapezoid(tpr, fpr))


def _check_rate(fpr: float) -> float:
    fpr = check_non_negative(fpr=fpr)
    if fpr > 1:
        raise value_error("audit.fpr_out_of_range", fpr=fpr)
    return fpr


# -- of what a certificate speaks ------------------------------------------------------


def _refuse_what_bounds_no_attack(certificate: Certificate) -> None:
    notion = certificate.notion
    if not notion.certified:
        raise UncertifiedError(Statement("audit.estimate_promises_nothing"))
    if certificate.mutual_information is not None or certificate.epsilon is None:
        raise UncertifiedError(Statement("audit.information_bounds_no_attack"))
    if certificate.profile is not None:
        raise UncertifiedError(
            Statement("audit.slices_bound_no_attack", title=notion.title)
        )
    if notion.approximate is None:
        raise UncertifiedError(
            Statement("audit.average_bounds_no_attack", title=notion.title)
        )


def _steps_of_membership(certificate: Certificate, relation: str) -> tuple[int, bool]:
    """How many steps of the promise lead from one table to the other.

    And whether only what a belief falls back to speaks of membership.
    """
    own, curve = certificate.relation, certificate.curve
    any_record = arbitrary_count(certificate) is not None
    # a belief speaks of one attribute, what stands behind it of whole records
    plain = isinstance(curve, OverlapCurve | WorstOverlapCurve)
    speaks = certificate.notion.differential or any_record
    if plain:
        speaks = any_record or certificate.coupling_count == 1
    if not speaks:
        raise value_error("audit.certificate_not_of_membership")
    if own == relation:
        return 1, plain
    if own == "add_remove":
        # out with the one, in with the other
        return 2, plain
    raise value_error(
        "audit.certificate_of_other_relation", certified=own, relation=relation
    )


# -- promises as lines that no ROC curve exceeds ---------------------------------------


def _stated_delta(certificate: Certificate, epsilon: float) -> float:
    """Delta at any epsilon that follows from the stated numbers alone."""
    stated = certificate.epsilon
    assert stated is not None
    if certificate.notion in _RENYI:
        assert certificate.alpha is not None
        on_event = renyi_to_delta(certificate.alpha, stated, epsilon)
        return on_event + certificate.event_delta
    if epsilon >= stated:
        return certificate.delta
    # the extreme pair of an (eps, delta) promise, randomised response
    rest = (math.exp(epsilon - stated) - 1) / -(1 + math.exp(-stated))
    return certificate.delta + (1 - certificate.delta) * rest


def _lines(
    certificate: Certificate, curve: PrivacyCurve | None, whole_curve: bool
) -> tuple[Floats, Floats]:
    """Intercepts and slopes of lines above every ROC curve."""
    intercepts, slopes = [np.ones(1)], [np.zeros(1)]
    stated, event = certificate.epsilon, certificate.event_delta
    assert stated is not None
    if certificate.notion in _RENYI and certificate.alpha != math.inf:
        assert certificate.alpha is not None
        found = _tangents(np.array([certificate.alpha]), np.array([stated]))
        intercepts.append(found[0] + event)
        slopes.append(found[1])
    elif stated <= _STEEPEST:
        # a pure promise has no delta; one on an event has its mass
        delta = max(certificate.delta, event)
        intercepts.append(np.array([delta]))
        slopes.append(np.exp([stated]))
    if whole_curve and curve is not None:
        found = _lines_of_curve(curve, event)
        intercepts.append(found[0])
        slopes.append(found[1])
    return np.concatenate(intercepts), np.concatenate(slopes)


def _lines_of_curve(curve: PrivacyCurve, event: float) -> tuple[Floats, Floats]:
    """Lines of slope e^epsilon, by the delta at each epsilon; plus those of orders."""
    # no loss of interest is further out; finer where losses are small
    top = min(max(float(curve.epsilon(1e-10)), 1e-6), _STEEPEST)
    epsilons = top * np.linspace(0, 1, _POINTS) ** 2
    deltas = np.array([float(curve.delta(epsilon)) for epsilon in epsilons])
    slopes = np.exp(epsilons)
    if isinstance(curve, RenyiCurve):
        orders, costs = np.array(curve.orders), np.array(curve.epsilons)
        known = np.isfinite(orders) & np.isfinite(costs)
        if known.any():
            found = _tangents(orders[known], costs[known])
            deltas = np.concatenate([deltas, found[0]])
            slopes = np.concatenate([slopes, found[1]])
    return deltas + event, slopes


def _tangents(orders: Floats, costs: Floats) -> tuple[Floats, Floats]:
    """Lines that touch the set of two rates whose Rényi divergence is not too large.

    By data processing ``p^a x^(1-a) + (1-p)^a (1-x)^(1-a) <= exp((a-1) cost)`` with the
    rates p and x, a convex set.
    """
    a, most = orders[:, np.newaxis], ((orders - 1) * costs)[:, np.newaxis]
    x = _RATES
    log_x, log_y = np.log(x), np.log1p(-x)
    # by bisection, from above: the divergence grows with p beyond x. In the distance
    # from one, t = 1 - p on the scale of logarithms, as p is often next to it.
    low = np.full((len(orders), len(x)), _LEAST_LOG)
    high = np.tile(log_y, (len(orders), 1))
    for _ in range(64):
        t = (low + high) / 2
        log_p = np.log(-np.expm1(t))
        cost = np.logaddexp(a * log_p + (1 - a) * log_x, a * t + (1 - a) * log_y)
        allowed = cost <= most
        high = np.where(allowed, t, high)
        low = np.where(allowed, low, t)
    # the smallest p over the orders, rounded up
    best = np.argmax(low, axis=0)
    at = (best, np.arange(len(x)))
    order, t = orders[best], low[at]
    p = -np.expm1(t)
    up, down = np.log(p) - log_x, t - log_y
    # implicit differentiation, in u = p / x > v = (1 - p) / (1 - x)
    gap = np.minimum(down - up, -1e-300)
    slopes = (order - 1) / order * np.exp(up)
    slopes *= np.expm1(order * gap) / np.expm1((order - 1) * gap)
    # where all of p is allowed there is no line but TPR <= 1
    kept = (t > _LEAST_LOG + 1) & np.isfinite(slopes)
    return (p - slopes * x)[kept], slopes[kept]


def _envelope(intercepts: Floats, slopes: Floats) -> tuple[Floats, Floats]:
    """Corners of the least of lines, and of the lines with the worlds exchanged."""
    kept = slopes > 0
    a, b = intercepts[kept], slopes[kept]
    # 1 - FPR <= a + b (1 - TPR)
    a = np.concatenate([[1.0], a, (a - 1) / b + 1])
    b = np.concatenate([[0.0], b, 1 / b])
    # lines that are the least somewhere; the others may be left out of a bound
    rates = np.concatenate([[0.0], _RATES, [1.0]])
    least = np.unique(np.argmin(a[:, np.newaxis] + np.outer(b, rates), axis=0))
    a, b = a[least], b[least]
    order = np.lexsort((a, -b))
    a, b = a[order], b[order]
    first = np.append(True, np.diff(b) < 0)
    a, b = a[first], b[first]
    # each is the least somewhere, so neighbours by slope meet at a corner
    corners = np.clip(np.diff(a) / -np.diff(b), 0, 1)
    fpr = np.unique(np.concatenate([[0.0], corners, [1.0]]))
    tpr = np.min(a[:, np.newaxis] + np.outer(b, fpr), axis=0)
    # no less than chance, which a rounding error could take from it
    return fpr, np.clip(tpr, fpr, 1.0)


def _twice(fpr: Floats, tpr: Floats) -> tuple[Floats, Floats]:
    """Corners of a bound applied to itself: of two steps one after the other."""
    # x with tpr(x) at a corner's fpr are corners too
    rising = np.append(True, np.diff(tpr) > 0)
    before = np.interp(fpr, tpr[rising], fpr[rising], left=0.0)
    rates = np.union1d(fpr, before)
    return rates, np.interp(np.interp(rates, fpr, tpr), fpr, tpr)
