"""Trade-offs of dominating pairs, one for each kind, from what a certificate states."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import integrate, optimize, special, stats

from ._noise import (
    Floats,
    NoiseShift,
    NotRecomputableError,
    noise_shift,
)

#: A hockey-stick divergence at exp(epsilon), for an array of epsilons.
Divergence = Callable[[Floats], Floats]

#: Standard deviations within which all that counts lies, cells of them, and Newton's
#: steps within one.
_FAR, _CELLS, _STEPS = 60.0, 6000, 6

#: Most records or draws that are told apart one by one.
_MOST, _MOST_OF_GROUP = 1_000, 12


@dataclass(frozen=True)
class TradeOff:
    """Both directions of a pair, and the noise where that is all there is to it.

    Parameters
    ----------
    forward, backward : callable
        Divergence of the first from the second at ``epsilon >= 0``, and the other.
    noise : NoiseShift or None
        That each step takes part in, whole or by `rate`.
    rate : float
        At which a record takes part, in a Poisson batch.
    """

    forward: Divergence
    backward: Divergence
    noise: NoiseShift | None = None
    rate: float = 1.0


def pairs_of(pair: dict[str, Any]) -> tuple[TradeOff, ...]:
    """Return the trade-offs of one pair, or of all of which one dominates."""
    return _pairs_of(json.dumps(pair, sort_keys=True))


# the same objects for the same data: what is composed of them is kept by them
@lru_cache(maxsize=256)
def _pairs_of(text: str) -> tuple[TradeOff, ...]:
    pair = json.loads(text)
    kind = pair["kind"]
    if kind == "gaussian_poisson_group":
        count = _few(pair["count"], _MOST_OF_GROUP)
        return tuple(
            _replaced_groups(pair, count - gone, gone) for gone in range(count // 2 + 1)
        )
    if kind not in _KINDS:
        raise NotRecomputableError(
            f"the divergences of a pair of the kind {kind!r} are bounds that are found "
            "by a search, and this has no second path to them"
        )
    return (_KINDS[kind](pair),)


def _few(count: float, most: int = _MOST) -> int:
    if count > most:
        raise NotRecomputableError(f"more than {most} records or draws are not tried")
    return int(count)


def _noise(curve: dict[str, Any]) -> NoiseShift:
    if curve["kind"] == "shifted_noise":
        return noise_shift(curve["noise"], curve["shift"])
    if curve["kind"] == "gaussian":
        noise = {"family": "gaussian", "scale": 1.0}
        shift = {"radius": curve["mu"], "norm": 2.0, "dim": 1}
        return noise_shift(noise, shift | {"structure": "vector", "weights": None})
    raise NotRecomputableError(f"a step of a {curve['kind']!r} curve is not known here")


def _symmetric(divergence: Divergence) -> TradeOff:
    return TradeOff(divergence, divergence)


def _shift(pair: dict[str, Any]) -> TradeOff:
    noise = _noise(pair["curve"])
    return TradeOff(noise.delta, noise.delta, noise)


def _grown(epsilon: Floats, rate: float) -> Floats:
    """``log(1 + (exp(epsilon) - 1) / rate)``, without overflow."""
    e = np.asarray(epsilon, float)
    large = e - math.log(rate)
    with np.errstate(over="ignore"):
        return np.where(e > 30, large, np.log1p(np.expm1(np.minimum(e, 30)) / rate))


def _poisson(pair: dict[str, Any]) -> TradeOff:
    noise, q = _noise(pair["curve"]), float(pair["rate"])
    if q == 0:
        return _symmetric(lambda epsilon: np.zeros_like(np.asarray(epsilon, float)))
    if q == 1:
        return TradeOff(noise.delta, noise.delta, noise)

    def forward(epsilon: Floats) -> Floats:
        return q * noise.delta(_grown(epsilon, q))

    def backward(epsilon: Floats) -> Floats:
        # Q - e^ε ((1-q) Q + q P) is positive where Q/P exceeds q e^ε over what is left
        e = np.asarray(epsilon, float)
        left = -np.expm1(np.minimum(e + math.log1p(-q), 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            at = np.where(left > 0, math.log(q) + e - np.log(left), 0.0)
            return np.where(left > 0, left * noise.delta(at), 0.0)

    return TradeOff(forward, backward, noise, q)


def _subset(pair: dict[str, Any]) -> TradeOff:
    return _symmetric(_poisson(pair).forward)


def _mixed(noise: NoiseShift, share: float, weights: Floats) -> TradeOff:
    """Of a step that moves j times with weight j, and not at all otherwise."""
    parts = [(w, noise.times(j + 1)) for j, w in enumerate(weights) if w > 1e-300]

    def divergence(epsilon: Floats) -> Floats:
        at = _grown(epsilon, share)
        return np.asarray(sum(w * part.delta(at) for w, part in parts))

    return _symmetric(divergence)


def _mixture(pair: dict[str, Any]) -> TradeOff:
    trials, chance = _few(pair["trials"]), float(pair["chance"])
    weights = stats.binom.pmf(np.arange(1, trials + 1), trials, chance)
    weights = np.trim_zeros(np.where(weights > 1e-20, weights, 0.0), "b")
    return _mixed(_noise(pair["curve"]), 1 - (1 - chance) ** trials, weights)


def _subset_group(pair: dict[str, Any]) -> TradeOff:
    n, count, size = (_few_of(pair, k) for k in ("n_records", "count", "batch_size"))
    _few(count)
    drawn = np.arange(1, min(count, size) + 1)
    weights = stats.hypergeom.pmf(drawn, n, count, size)
    return _mixed(_noise(pair["curve"]), weights.sum(), weights)


def _few_of(pair: dict[str, Any], name: str) -> int:
    return int(pair[name])


def _replaced_poisson(pair: dict[str, Any]) -> TradeOff:
    noise, q = _noise(pair["curve"]), float(pair["rate"])
    twice = noise.times(2)

    def divergence(epsilon: Floats) -> Floats:
        at = _grown(epsilon, q)
        both = np.exp(np.asarray(epsilon, float) - at)
        return q * ((1 - both) * noise.delta(at) + both * twice.delta(at))

    return _symmetric(divergence)


def _pure(pair: dict[str, Any]) -> TradeOff:
    most = 1 / (1 + math.exp(-pair["epsilon"]))

    def divergence(epsilon: Floats) -> Floats:
        # the mass of the answer that is likelier, less e^ε times that of it otherwise
        grown = np.exp(np.minimum(np.asarray(epsilon, float), 700.0))
        value: Floats = np.maximum(0.0, most - grown * (1 - most))
        return value

    return _symmetric(divergence)


def _bounded_range(pair: dict[str, Any]) -> TradeOff:
    eta = float(pair["eta"])

    def divergence(epsilon: Floats) -> Floats:
        return np.reshape(
            [_at_worst(float(e), eta) for e in np.ravel(epsilon)], np.shape(epsilon)
        )

    return _symmetric(divergence)


def _at_worst(epsilon: float, eta: float) -> float:
    """Largest divergence of two losses, eta apart, over where the larger one lies."""
    if epsilon >= eta:
        return 0.0
    found = optimize.minimize_scalar(
        lambda t: math.expm1(t - eta) * -math.expm1(epsilon - t),
        bounds=(epsilon, eta),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return -float(found.fun) / -math.expm1(-eta)


def _replaced_groups(pair: dict[str, Any], first: int, second: int) -> TradeOff:
    noise, q = _noise(pair["curve"]), float(pair["rate"])
    if noise.mu is None:
        raise NotRecomputableError("groups in Poisson batches take Gaussian noise")
    laws: list[tuple[Any, Any]] = [
        (sign * noise.mu * np.arange(k + 1.0), stats.binom.pmf(np.arange(k + 1), k, q))
        for sign, k in ((1, first), (-1, second))
    ]
    forward = _of_mixtures(*laws)
    mirrored = [(-means, weights) for means, weights in laws]
    return TradeOff(forward, _of_mixtures(mirrored[1], mirrored[0]))


def _of_mixtures(
    ahead: tuple[Floats, Floats], behind: tuple[Floats, Floats]
) -> Divergence:
    """Of two mixtures of unit Gaussians, of which the first lies ahead."""

    def loss(x: Floats) -> tuple[Floats, Floats]:
        """Logarithm of the ratio of the densities, and its slope."""
        logs, means = [], []
        for m, w in (ahead, behind):
            # but for a constant, which cancels
            terms = np.log(w) - (x[:, None] - m) ** 2 / 2
            log = np.logaddexp.reduce(terms, axis=1)
            logs.append(log)
            # the slope of a log-density is the mean of what made x, less x
            means.append(np.exp(terms - log[:, None]) @ m)
        return logs[0] - logs[1], means[0] - means[1]

    # once: a search asks for one divergence after the other
    grid = np.linspace(-_FAR, _FAR, _CELLS + 1)
    on_grid = loss(grid)[0]

    def tail(law: tuple[Floats, Floats], x: Floats) -> Floats:
        mass: Floats = special.ndtr(law[0] - x[:, None]) @ law[1]
        return mass

    def divergence(epsilon: Floats) -> Floats:
        e = np.ravel(np.asarray(epsilon, float))
        # the loss rises: from where it is on a grid, by Newton's steps within its cell
        x = np.interp(e, on_grid, grid)
        low, high = x - 2 * _FAR / _CELLS, x + 2 * _FAR / _CELLS
        for _ in range(_STEPS):
            value, slope = loss(x)
            step = (value - e) / np.maximum(slope, 1e-12)
            x = np.clip(x - step, low, high)
        found = tail(ahead, x) - np.exp(np.minimum(e, 700.0)) * tail(behind, x)
        return np.reshape(np.maximum(found, 0.0), np.shape(epsilon))

    return divergence


def _replaced_group(pair: dict[str, Any]) -> TradeOff:
    return _replaced_groups(
        pair, *(_few(pair[name], _MOST_OF_GROUP) for name in ("first", "second"))
    )


_KINDS: dict[str, Callable[[dict[str, Any]], TradeOff]] = {
    "bounded_range_pair": _bounded_range,
    "gaussian_poisson_pair": _replaced_group,
    "mixture_pair": _mixture,
    "poisson_pair": _poisson,
    "pure_pair": _pure,
    "replace_poisson_pair": _replaced_poisson,
    "shift_pair": _shift,
    "subset_group_pair": _subset_group,
    "subset_pair": _subset,
    "symmetric_pair": _shift,
}


def renyi_of(pair: TradeOff, alpha: float) -> float:
    """Rényi cost of a pair in the worse direction, from its trade-off.

    With f(t) = t^alpha, the mean of f of the ratio is one plus the integral of
    ``alpha (alpha - 1) exp((alpha - 1) e)`` times the divergence at e of the first from
    the second, and of ``alpha (alpha - 1) exp(-alpha e)`` times that of the second from
    the first, over e > 0 (Liese and Vajda 2006).
    """
    if pair.noise is not None and pair.rate == 1:
        return pair.noise.renyi(alpha)
    directions = ((pair.forward, pair.backward), (pair.backward, pair.forward))
    return max(_power(ahead, back, alpha) for ahead, back in directions)


def _power(ahead: Divergence, back: Divergence, alpha: float) -> float:
    if math.isinf(alpha):
        raise NotRecomputableError(
            "the largest loss of a sampled step is not looked for"
        )
    reach = 1.0
    while True:
        if (alpha - 1) * reach > 600:
            raise NotRecomputableError(
                f"an order of {alpha:g} is too large to integrate"
            )
        left = float(ahead(np.array([reach]))[0])
        if left * math.exp((alpha - 1) * reach) <= 1e-13:
            break
        reach *= 1.5
    grid = np.linspace(0.0, reach, 20_001)
    first = np.exp((alpha - 1) * grid) * ahead(grid)
    second = np.exp(-alpha * grid) * back(grid)
    total = alpha * (alpha - 1) * integrate.simpson(first + second, x=grid)
    return math.log1p(float(total)) / (alpha - 1)


# -- what is left to hide of a record under a declared belief, by another path ---------


def left_to_hide(overlap: dict[str, Any], epsilon: float) -> tuple[float, float]:
    """Return the divergences of a record's two distributions, in either order."""
    kind, grown = overlap["kind"], math.exp(min(epsilon, 500.0))
    if kind == "odds_overlap":
        # one value, of which all that is known is that ratios keep within the odds
        eta = float(_split(np.array([1.0]), np.array([grown]), overlap["odds"])[0])
        eta = (1 - overlap["share"]) * eta + overlap["share"]
        both = eta, eta
    elif kind == "normal_overlap":
        eta = _of_normals(overlap["mu"], grown, overlap["odds"])
        both = eta, eta
    elif kind == "finite_overlap":
        p, q = np.array(overlap["first"], float), np.array(overlap["second"], float)
        if len(p) != len(q):
            raise NotRecomputableError("the two distributions are of different values")
        sums = [
            _split(u, grown * v, overlap["odds"]).sum() for u, v in ((p, q), (q, p))
        ]
        both = float(sums[0]), float(sums[1])
    elif kind == "near_overlap":
        more = overlap["variation"] * (1 + grown)
        first, second = left_to_hide(overlap["part"], epsilon)
        both = first + more, second + more
    elif kind in ("worst_overlap", "pairwise_overlap"):
        parts = overlap["parts" if kind == "worst_overlap" else "overlaps"]
        found = [left_to_hide(part, epsilon) for part in parts]
        both = max(f for f, _ in found), max(s for _, s in found)
    else:
        raise NotRecomputableError(f"nothing is known here of a {kind!r}")
    return min(1.0, both[0]), min(1.0, both[1])


def _split(u: Floats, v: Floats, odds: float) -> Floats:
    """Largest divergence of masses u from v that all else may be split by the odds.

    Of ``u w q / (1 + (w - 1) q) - v q`` the largest over shares q in [0, 1], at its
    stationary point or an end.
    """
    if odds == 1:
        return np.maximum(u - v, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        q = (np.sqrt(u * odds / np.maximum(v, 1e-300)) - 1) / (odds - 1)
    q = np.clip(q, 0.0, 1.0)
    return np.maximum(u * odds * q / (1 + (odds - 1) * q) - v * q, 0.0)


def _of_normals(mu: float, grown: float, odds: float) -> float:
    def height(x: float) -> float:
        u, v = stats.norm.pdf(x - mu), grown * stats.norm.pdf(x)
        return float(_split(np.array([u]), np.array([v]), odds)[0])

    if mu == 0:
        return float(_split(np.array([1.0]), np.array([grown]), odds)[0])
    # where the ratio of the densities is w e^ε, e^ε and e^ε / w
    turns = [(math.log(grown) + s * math.log(odds)) / mu + mu / 2 for s in (-1, 0, 1)]
    marks = sorted({-12.0, mu + 12.0, *(min(max(t, -12.0), mu + 12.0) for t in turns)})
    parts = (
        float(integrate.quad(height, a, b, epsabs=1e-14, epsrel=1e-10)[0])
        for a, b in zip(marks, marks[1:], strict=False)
    )
    return sum(parts)
