"""What is left of a promise when the attacker believes in none of the priors."""

import math
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from skpuffer.exceptions import UncertifiedError
from skpuffer.privacy_loss._curves import RenyiCurve
from skpuffer.utils._checks import (
    check_non_negative,
    check_option,
    check_probability,
    check_real,
)

from ._notions import Notion

__all__ = ["METHODS", "shifted"]

#: Methods by name, and which of the inputs each works from.
METHODS = {
    "direct": "query_distance",
    "variation": "variation",
    "a3": "divergence",
    "a4": "divergence",
    "a5": "query_distance",
}

_SAME_PRIOR = (
    "for one and the same prior of the scenario, whatever the secret, and every secret "
    "has a positive probability under it and under the belief"
)


def shifted(certificate, notion, method, given, orders):
    """Return the certificate for an attacker whose belief is close to a prior.

    Parameters
    ----------
    certificate : Certificate
    notion : Notion
        The Pufferfish notion it implies.
    method : str
        One of `METHODS`.
    given : dict
        The inputs by name, None where not given.
    orders : tuple of three floats, or None

    Returns
    -------
    Certificate
    """
    check_option(tuple(METHODS), method=method)
    needed = METHODS[method]
    if given[needed] is None:
        raise ValueError(f"The parameter {needed!r} is needed for method={method!r}.")
    for name, value in given.items():
        if name != needed and value is not None:
            raise ValueError(
                f"The parameter {name!r} does not go with method={method!r}; omit it "
                f"or choose another method. Got {value!r}."
            )
    if orders is not None and method not in ("a4", "a5"):
        raise ValueError(
            f"The parameter 'orders' does not go with method={method!r}; omit it."
        )
    base = replace(
        certificate,
        notion=notion,
        epsilon_lower=None,
        coupling_id=None,
        composable=False,
        rpp_epsilon=math.inf,
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


def _direct(base, distance):
    curve = _widened(base, 2 * distance)
    out = replace(
        base,
        curve=curve,
        sensitivity=None if base.sensitivity is None else curve.shift.radius,
        source=base.source + "; triangle inequality of W_inf for a close prior",
    )
    return _restated(out).assuming(_close_laws(base, distance))


def _variation(base, variation):
    variation = check_probability(variation=variation)
    _noise_of(base)
    missing = 2 * variation
    delta = base.delta + missing
    if delta >= 1:
        raise ValueError(
            "The parameter 'variation' is too large: twice it, and the certificate's "
            f"own delta of {base.delta:g}, leave nothing to promise. Got {variation!r}."
        )
    conditioned = getattr(base.curve, "conditioned", lambda mass: base.curve)
    approximate = Notion.APPROXIMATE_RENYI_PUFFERFISH
    out = replace(
        base,
        notion=base.notion.approximate if base.alpha is None else approximate,
        curve=conditioned(missing),
        delta=delta,
        event_delta=base.event_delta + missing,
        source=base.source + "; couplings of a close prior glued to it",
    )
    return _restated(out).assuming(
        "the attacker may also hold a belief under which the law of the query given "
        f"each secret is within a total variation of {variation:g} of that under a "
        f"prior: {_SAME_PRIOR}"
    )


def _pure(base, divergence):
    divergence = check_non_negative(divergence=divergence)
    if base.alpha != math.inf or base.delta:
        raise ValueError(
            "method='a3' is about pure promises; this certificate is "
            f"{base.notion.title}. Use 'direct', 'a4' or 'a5'."
        )
    epsilon = base.epsilon + 2 * divergence
    out = _at_one_order(base, math.inf, epsilon, "Thm A.3 (Song et al. 2017)")
    return out.assuming(
        "the attacker may also hold a belief under which the law of the data given "
        f"each secret has a max-divergence of at most {divergence:g}, both ways, from "
        f"that under a prior: {_SAME_PRIOR}"
    )


def _general(base, divergence, orders):
    alpha = _renyi_order(base, "a4")
    p, q, r = _check_orders(orders)
    try:
        first, second = divergence
    except (TypeError, ValueError):
        raise ValueError(
            "The parameter 'divergence' must be a pair for method='a4': the Rényi "
            "divergences of the data's law under the belief from that under the prior, "
            f"and back. Got {divergence!r}."
        ) from None
    first = check_non_negative(divergence=first)
    second = check_non_negative(divergence=second)
    epsilon = _spread(alpha, (p, q, r), _cost(base, alpha, p, q), first, second)
    out = _at_one_order(base, alpha, epsilon, "Thm A.4")
    return out.assuming(
        "the attacker may also hold a belief under which the law of the data given "
        f"each secret has a Rényi divergence of order {alpha * p:g} of at most "
        f"{first:g} from that under a prior, and that one of order "
        f"{(alpha - 1) * r + 1:g} of at most {second:g} from it: {_SAME_PRIOR}"
    )


def _additive(base, distance, orders):
    alpha = _renyi_order(base, "a5")
    noise = _noise_of(base)
    ball = replace(base.curve.shift, radius=distance)

    def bound(p, q, r):
        first = float(noise.renyi(alpha * p, ball))
        second = float(noise.renyi((alpha - 1) * r + 1, ball))
        return _spread(alpha, (p, q, r), _cost(base, alpha, p, q), first, second)

    orders = _best_orders(bound) if orders is None else _check_orders(orders)
    out = _at_one_order(base, alpha, bound(*orders), "Thm A.5")
    return out.assuming(_close_laws(base, distance))


# -- their parts ---------------------------------------------------------------------


def _spread(alpha, orders, cost, first, second):
    """Cost under a close prior by Hölder's inequality, in nats.

    Parameters
    ----------
    alpha : float
    orders : tuple of float
        (p, q, r), whose reciprocals sum to one.
    cost : float
        Of the mechanism at the order q (alpha - 1/p).
    first, second : float
        Divergences of the belief from the prior at the order alpha p, and back at the
        order (alpha - 1) r + 1.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorems A.4 and A.5.
    """
    _, q, r = orders
    rest = alpha - 1
    return (1 + 1 / (r * rest)) * cost + (1 + (1 / r + 1 / q) / rest) * first + second


def _cost(base, alpha, p, q):
    return float(base.curve.renyi(q * (alpha - 1 / p)))


def _best_orders(bound):
    """Orders with nearly the smallest bound; any are valid."""

    def at(logits):
        shares = np.exp(np.append(logits, 0.0) - max(0.0, *logits))
        return tuple(shares.sum() / shares)

    def loss(logits):
        value = bound(*at(np.clip(logits, -12, 12)))
        return math.log(value) if 0 < value < math.inf else 1e3 * (value > 0)

    found = min(
        (
            minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9})
            for start in ([0.0, 0.0], [2.0, 2.0], [-2.0, 2.0])
        ),
        key=lambda result: result.fun,
    )
    return at(np.clip(found.x, -12, 12))


def _check_orders(orders):
    if orders is None:
        raise ValueError(
            "The parameter 'orders' is needed for method='a4': (p, q, r), for which "
            "the divergences were computed."
        )
    try:
        p, q, r = (check_real(orders=value) for value in orders)
    except ValueError as error:
        raise ValueError(
            f"The parameter 'orders' must be three numbers (p, q, r). Got {orders!r}."
        ) from error
    if min(p, q, r) <= 1 or abs(1 / p + 1 / q + 1 / r - 1) > 1e-9:
        raise ValueError(
            "The parameter 'orders' must be three numbers above 1 whose reciprocals "
            f"sum to 1. Got {orders!r}."
        )
    return p, q, r


def _renyi_order(base, method):
    if base.alpha is None or math.isinf(base.alpha) or base.delta:
        raise ValueError(
            f"method={method!r} is about Rényi promises of a finite order that hold "
            f"for all outputs; this certificate is {base.notion.title}. Use 'direct', "
            "or calibrate for an order 'alpha'."
        )
    if base.curve is None:
        raise UncertifiedError("This certificate holds no curve to read costs from.")
    return base.alpha


def _noise_of(base):
    noise = getattr(base.curve, "noise", None)
    if noise is None or not hasattr(base.curve, "shift"):
        raise UncertifiedError(
            "This certificate is not about one query with additive noise that covers "
            "its shift, so nothing follows from how far the query's laws move. Use "
            "method='a4' (or 'a3') with divergences of the data's law."
        )
    return noise


def _widened(base, distance):
    """Return the curve of the same noise against a shift that is longer."""
    noise = _noise_of(base)
    if hasattr(base.curve, "widened"):
        return base.curve.widened(distance)
    shift = base.curve.shift
    return noise.curve(replace(shift, radius=shift.radius + distance))


def _restated(out):
    """Return the certificate with epsilon read off its curve."""
    if out.alpha is None:
        return replace(
            out, epsilon=float(out.curve.epsilon(out.delta - out.event_delta))
        )
    epsilon = float(out.curve.renyi(out.alpha))
    return replace(out, epsilon=epsilon, rpp_epsilon=math.inf if out.delta else epsilon)


def _at_one_order(base, alpha, epsilon, theorem):
    return replace(
        base,
        epsilon=epsilon,
        curve=RenyiCurve((alpha,), (epsilon,)) if math.isfinite(epsilon) else None,
        rpp_epsilon=epsilon,
        sensitivity=None,
        norm=None,
        record_sensitivity=None,
        source=f"{base.source}; close prior by Pierquin et al. 2024, {theorem}",
    )


def _close_laws(base, distance):
    units = "" if base.curve.shift.weights is None else ", in units of the noise"
    return (
        "the attacker may also hold a belief under which the law of the query given "
        f"each secret is within {distance:g} (W_inf, l{base.curve.shift.norm:g}"
        f"{units}) of that under a prior: {_SAME_PRIOR}"
    )
