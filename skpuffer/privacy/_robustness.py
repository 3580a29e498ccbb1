"""Robustness of a promise to an attacker whose belief is none of the priors."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from scipy.optimize import minimize

from skpuffer.exceptions import Statement, UncertifiedError, value_error
from skpuffer.kernel.composed_curves import RenyiCurve
from skpuffer.kernel.curves import PrivacyCurve
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import (
    check_non_negative,
    check_option,
    check_probability,
    check_real,
)

if TYPE_CHECKING:
    from skpuffer.noise import Noise, Shift

    from ._certificate import Certificate


class _AdditiveCurve(PrivacyCurve, Protocol):
    """The curve of one query with additive noise that covers its sensitivity."""

    @property
    def noise(self) -> "Noise":
        """The noise."""

    @property
    def shift(self) -> "Shift":
        """The sensitivity, as what the noise has to cover."""


#: Hölder exponents (p, q, r), above one, with reciprocals that sum to one.
_Exponents = tuple[float, float, float]

#: Methods by name, and which of the inputs each works from.
METHODS = {
    "direct": "query_distance",
    "variation": "variation",
    "a3": "divergence",
    "a4": "divergence",
    "a5": "query_distance",
}

_SAME_PRIOR = Statement("assume.belief_near_same_prior")


def shifted(
    certificate: "Certificate",
    notion: Notion,
    method: str,
    given: Mapping[str, Any],
    orders: Any,
) -> "Certificate":
    """Return the certificate for an attacker whose belief is close to a prior.

    `notion` is the Pufferfish notion it implies, `method` one of `METHODS`, `given` the
    inputs by name, None where not given.
    """
    check_option(tuple(METHODS), method=method)
    needed = METHODS[method]
    if given[needed] is None:
        raise value_error(
            "belief.method_parameter_missing", needed=needed, method=method
        )
    for name, value in given.items():
        if name != needed and value is not None:
            raise value_error(
                "belief.method_parameter_superfluous",
                name=name,
                method=method,
                value=value,
            )
    if orders is not None and method not in ("a4", "a5"):
        raise value_error("belief.method_orders_superfluous", method=method)
    # A belief has no coupling that other releases share, and no lower bound is known.
    base = replace(
        certificate,
        notion=notion,
        epsilon_lower=None,
        coupling_id=None,
        composable=False,
        rpp_epsilon=math.inf,
        noise_gain=None,
    )
    value = given[needed]
    if method == "direct":
        return _direct(base, check_non_negative(query_distance=value))
    if method == "variation":
        return _variation(base, value)
    if method == "a3":
        return _pure(base, value)
    if method == "a4":
        return _general(base, value, orders)
    return _additive(base, check_non_negative(query_distance=value), orders)


# -- the methods ---------------------------------------------------------------------


def _direct(base: "Certificate", distance: float) -> "Certificate":
    """Widen the sensitivity by the distance, once for each secret of a pair."""
    # triangle inequality of W_inf: belief to prior, secret to secret, prior to belief
    curve = _widened(base, 2 * distance)
    out = replace(
        base,
        curve=curve,
        events=None,
        sensitivity=None if base.sensitivity is None else float(curve.shift.radius),
        source=Statement("source.close_prior_triangle_inequality", source=base.source),
    )
    return _restated(out).assuming(_close_distributions(base, distance))


def _variation(base: "Certificate", variation: Any) -> "Certificate":
    """Leave out of each coupling the mass in which a belief and its prior differ."""
    variation = check_probability(variation=variation)
    curve = _additive_curve(base)
    # A coupling of belief and prior moves a mass of `variation`. One for either secret,
    # glued to the coupling under the prior, leaves twice that mass uncovered.
    missing = 2 * variation
    delta = base.delta + missing
    if delta >= 1:
        raise value_error(
            "belief.variation_too_large", delta=base.delta, variation=variation
        )
    # The worst shift costs the same given any event. A mean over the shifts of a
    # coupling does not, and its curve has a method for that.
    conditioned = getattr(curve, "conditioned", lambda mass: curve)
    notion = Notion.APPROXIMATE_RENYI_PUFFERFISH
    if base.alpha is None:
        notion = Notion.APPROXIMATE_PUFFERFISH
    out = replace(
        base,
        notion=notion,
        curve=conditioned(missing),
        events=None,
        delta=delta,
        event_delta=base.event_delta + missing,
        source=Statement("source.close_prior_glued_couplings", source=base.source),
    )
    return _restated(out).assuming(
        Statement(
            "assume.belief_within_total_variation",
            variation=variation,
            same_prior=_SAME_PRIOR,
        )
    )


def _pure(base: "Certificate", divergence: Any) -> "Certificate":
    """Add the max-divergences, by the triangle inequality (Theorem A.3)."""
    divergence = check_non_negative(divergence=divergence)
    if base.alpha != math.inf or base.delta or base.epsilon is None:
        raise value_error("belief.method_needs_pure_promise", title=base.notion.title)
    # densities under the belief are within exp(divergence) of the prior's, for either
    # secret of a pair
    epsilon = base.epsilon + 2 * divergence
    out = _at_one_order(
        base, math.inf, epsilon, Statement("source.close_prior_pure_theorem")
    )
    return out.assuming(
        Statement(
            "assume.belief_within_max_divergence",
            divergence=divergence,
            same_prior=_SAME_PRIOR,
        )
    )


def _general(base: "Certificate", divergence: Any, orders: Any) -> "Certificate":
    """Apply Hölder's inequality to the divergences between belief and prior."""
    alpha = _renyi_order(base, "a4")
    p, q, r = _check_orders(orders)
    try:
        first, second = divergence
    except (TypeError, ValueError):
        raise value_error("belief.divergence_not_pair", divergence=divergence) from None
    first = check_non_negative(divergence=first)
    second = check_non_negative(divergence=second)
    epsilon = _spread(alpha, (p, q, r), _cost(base, alpha, p, q), first, second)
    out = _at_one_order(
        base, alpha, epsilon, Statement("source.close_prior_renyi_theorem")
    )
    return out.assuming(
        Statement(
            "assume.belief_within_renyi_divergences",
            alpha=alpha * p,
            first=first,
            alpha2=(alpha - 1) * r + 1,
            second=second,
            same_prior=_SAME_PRIOR,
        )
    )


def _additive(base: "Certificate", distance: float, orders: Any) -> "Certificate":
    """Apply Hölder's inequality to the Rényi costs, under the noise, of a distance."""
    alpha = _renyi_order(base, "a5")
    curve = _additive_curve(base)
    noise, ball = curve.noise, replace(curve.shift, radius=distance)

    def bound(p: float, q: float, r: float) -> float:
        # Shifts within the distance, almost surely: belief and prior differ, in the
        # output, by no more than the noise does from itself moved by that much.
        first = float(noise.renyi(alpha * p, ball))
        second = float(noise.renyi((alpha - 1) * r + 1, ball))
        return _spread(alpha, (p, q, r), _cost(base, alpha, p, q), first, second)

    exponents = _best_orders(bound) if orders is None else _check_orders(orders)
    out = _at_one_order(
        base, alpha, bound(*exponents), Statement("source.close_distributions_theorem")
    )
    return out.assuming(_close_distributions(base, distance))


# -- their parts ---------------------------------------------------------------------


def _spread(
    alpha: float, orders: _Exponents, cost: float, first: float, second: float
) -> float:
    """Return the Rényi divergence under a close prior by Hölder's inequality, in nats.

    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorems A.4 and A.5.
    """
    # With densities b, b' of the output under the belief given each secret of a pair,
    # and p1, p2 under the prior, b^α b'^(1-α) is the product of
    #   b^α p1^(1/p-α),  p1^(α-1/p) p2^(1/p+1/q-α)  and  p2^(α-1+1/r) b'^(1-α).
    # Hölder's inequality with p, q and r bounds its integral by three others, which
    # are exponentials of Rényi divergences at the orders αp, q (α-1/p) and (α-1) r + 1
    # times α - 1/p, α - 1 + 1/r and α - 1. All is divided by α - 1.
    _, q, r = orders
    rest = alpha - 1
    return (1 + 1 / (r * rest)) * cost + (1 + (1 / r + 1 / q) / rest) * first + second


def _cost(base: "Certificate", alpha: float, p: float, q: float) -> float:
    """Rényi cost of the mechanism at the order that Hölder's inequality asks for."""
    assert base.curve is not None  # checked with the order
    return float(base.curve.renyi(q * (alpha - 1 / p)))


def _best_orders(bound: Callable[[float, float, float], float]) -> _Exponents:
    """Hölder exponents with nearly the smallest bound; any are valid."""

    def at(logits: Any) -> _Exponents:
        # 1/p, 1/q and 1/r are shares that sum to one: a softmax
        shares = np.exp(np.append(logits, 0.0) - max(0.0, *logits))
        p, q, r = (shares.sum() / shares).tolist()
        return p, q, r

    def loss(logits: Any) -> float:
        # in logarithms, as bounds span many decades; without a bound a plateau
        value = bound(*at(np.clip(logits, -12, 12)))
        return math.log(value) if 0 < value < math.inf else 1e3 * (value > 0)

    # from several starts, as nothing says that there is one minimum only
    found = min(
        (
            minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9})
            for start in ([0.0, 0.0], [2.0, 2.0], [-2.0, 2.0])
        ),
        key=lambda result: result.fun,
    )
    return at(np.clip(found.x, -12, 12))


def _check_orders(orders: Any) -> _Exponents:
    if orders is None:
        raise value_error("belief.orders_missing")
    try:
        p, q, r = (check_real(orders=value) for value in orders)
    except ValueError as error:
        raise value_error("belief.orders_not_three", orders=orders) from error
    if min(p, q, r) <= 1 or abs(1 / p + 1 / q + 1 / r - 1) > 1e-9:
        raise value_error("belief.orders_reciprocals_wrong", orders=orders)
    return p, q, r


def _renyi_order(base: "Certificate", method: str) -> float:
    if base.alpha is None or math.isinf(base.alpha) or base.delta:
        raise value_error(
            "belief.method_needs_renyi_promise", method=method, title=base.notion.title
        )
    if base.curve is None:
        raise UncertifiedError(Statement("belief.no_curve_to_read"))
    return base.alpha


def _additive_curve(base: "Certificate") -> _AdditiveCurve:
    """Return the curve, refusing one that is not of additive noise."""
    if getattr(base.curve, "noise", None) is None or not hasattr(base.curve, "shift"):
        raise UncertifiedError(Statement("belief.no_additive_noise"))
    return cast(_AdditiveCurve, base.curve)


def _widened(base: "Certificate", distance: float) -> Any:
    """Return the curve of the same noise against a sensitivity that is larger."""
    curve = _additive_curve(base)
    if hasattr(curve, "widened"):
        return curve.widened(distance)
    return curve.noise.curve(replace(curve.shift, radius=curve.shift.radius + distance))


def _restated(out: "Certificate") -> "Certificate":
    """Return the certificate with epsilon read off its curve."""
    assert out.curve is not None  # a curve of additive noise
    # what the event leaves of delta is the noise's
    if out.alpha is None:
        return replace(
            out, epsilon=float(out.curve.epsilon(out.delta - out.event_delta))
        )
    epsilon = float(out.curve.renyi(out.alpha))
    return replace(out, epsilon=epsilon, rpp_epsilon=math.inf if out.delta else epsilon)


def _at_one_order(
    base: "Certificate", alpha: float, epsilon: float, theorem: Statement
) -> "Certificate":
    """Return a certificate that promises epsilon at alpha and nothing elsewhere."""
    # the theorem is about one order: the curve of the noise no longer holds
    return replace(
        base,
        epsilon=epsilon,
        curve=RenyiCurve((alpha,), (epsilon,)) if math.isfinite(epsilon) else None,
        events=None,
        rpp_epsilon=epsilon,
        sensitivity=None,
        norm=None,
        record_sensitivity=None,
        source=Statement("source.close_prior", source=base.source, theorem=theorem),
    )


def _close_distributions(base: "Certificate", distance: float) -> Statement:
    shift = _additive_curve(base).shift
    units = "" if shift.weights is None else Statement("assume.units_of_noise")
    return Statement(
        "assume.belief_within_wasserstein",
        distance=distance,
        norm=shift.norm,
        units=units,
        same_prior=_SAME_PRIOR,
    )


# -- which tables are neighbours under the coupling of a certificate -------------------


def arbitrary_count(certificate: "Certificate") -> int | None:
    """Return how many records any neighbouring tables differ in.

    None where its coupling is another one.
    """
    relation, _, count = str(certificate.coupling_id).partition(":")
    if relation != certificate.relation or not count.isdigit():
        return None
    return int(count)


def is_of_units(certificate: "Certificate") -> bool:
    """Whether any neighbouring tables differ in units of privacy, with all rows."""
    named = f"{certificate.relation} of units:"
    return str(certificate.coupling_id).startswith(named)


def plain_privacy(certificate: "Certificate") -> Statement | str:
    """Return whose differential privacy a promise under a belief falls back to."""
    count = certificate.coupling_count
    if is_of_units(certificate):
        _, _, ids = str(certificate.coupling_id).partition(" of units:1 of ")
        return Statement("neighbours.records_of_one_unit", ids=ids)
    # one record is taken by itself, wherever it is
    if count == 1:
        return "RecordScenario(relation='replace')"
    if count is not None and arbitrary_count(certificate) == count:
        return f"RecordScenario(k={count}, relation='replace')"
    # side by side, of different numbers
    if count is None:
        return Statement("neighbours.records_taken_together")
    # what was counted by where the records are says nothing of any others
    return Statement("neighbours.records_of_one_block", count=count)
