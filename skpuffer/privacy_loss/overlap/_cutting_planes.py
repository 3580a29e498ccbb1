"""Cutting planes of tests: the linear programme, and the split that its dual makes."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from skpuffer.privacy_loss._gaussian import gaussian_delta
from skpuffer.utils._types import Booleans, Floats, Indices

from ._splits import Split

__all__ = ["Cuts", "deeper", "programme"]

# Cuts along which the one probability hardly moves with the other are left out.
_FLAT = 1e-6

# Quantiles beyond which steps are shorter.
_FAR = 5.0

#: A pair of members, and the quantile at which it is cut.
Cuts = tuple[Indices, Indices, Floats]


def programme(
    up: Floats,
    down: Floats,
    mu: Floats,
    cuts: Cuts,
    low: Floats,
    high: Floats,
    box: float,
) -> tuple[Split, Floats, Floats, Booleans] | None:
    """Solve the linear programme; return split, quantiles, and which cuts bind."""
    a, b, at = cuts
    n_high = len(high)
    level = np.concatenate([high, low])
    p = ndtr(level)
    # Variables are changes of the best test known, in units of how a probability moves
    # with its quantile: numbers near one, and none of them changed keeps to all cuts.
    unit = np.exp(-(level**2) / 2)
    # far out a quantile means a larger factor
    width = box / np.maximum(1.0, np.abs(level) / _FAR)
    least, most = (ndtr(level - width) - p) / unit, (ndtr(level + width) - p) / unit
    far = at + mu[a, b]
    log_slope = (at**2 - far**2) / 2
    slope = np.exp(log_slope)
    steep = slope * unit[n_high + b] / unit[a]
    room = gaussian_delta(log_slope, mu[a, b]) + slope * p[n_high + b] - p[a]
    room = np.maximum(room / unit[a], 0.0)
    # those that nothing in the box can reach only blur the numbers
    near = room < most[a] - steep * least[n_high + b]
    kept = np.flatnonzero(near & (steep > _FLAT) & (steep < 1 / _FLAT))
    gain = np.concatenate([up, -down]) * unit
    scale = np.abs(gain).max()
    if not (len(kept) and scale > 0 and np.all(np.isfinite(most))):
        return None
    every = np.arange(len(kept))
    table = csr_array(
        (
            np.concatenate([np.ones(len(kept)), -steep[kept]]),
            (
                np.concatenate([every, every]),
                np.concatenate([a[kept], n_high + b[kept]]),
            ),
        ),
        shape=(len(kept), len(level)),
    )
    found = linprog(
        -gain / scale,
        A_ub=table,
        b_ub=room[kept],
        bounds=np.stack([least, most], axis=1),
        method="highs-ds",
    )
    if found.status != 0:
        return None
    weight = np.zeros(len(a))
    weight[kept] = np.maximum(-found.ineqlin.marginals, 0.0)
    split = _split(a, b, weight * scale / unit[a], slope, up, down, mu)
    level = ndtri(np.clip(p + found.x * unit, 1e-300, 1 - 1e-16))
    return split, level[:n_high], level[n_high:], weight > 0


def _split(
    a: Indices,
    b: Indices,
    weight: Floats,
    slope: Floats,
    up: Floats,
    down: Floats,
    mu: Floats,
) -> Split:
    """Return the split that weights of cuts make, with the masses for its sums."""
    x, y = np.zeros(mu.shape), np.zeros(mu.shape)
    np.add.at(x, (a, b), weight)
    np.add.at(y, (a, b), weight * slope)
    # what the solver left out goes to the nearest
    alone = np.flatnonzero(x.sum(axis=1) <= 0)
    x[alone, mu[alone].argmin(axis=1)] = up[alone]
    x *= (up / x.sum(axis=1))[:, None]
    used = y.sum(axis=0)
    y *= np.divide(down, used, out=np.zeros_like(used), where=used > 0)
    return x, y


def deeper(cuts: Cuts, mu: Floats, high: Floats, levels: tuple[Floats, ...]) -> Cuts:
    """Add cuts where a solution exceeds most what the pairs allow."""
    parts = [cuts]
    for at in levels:
        excess = high[:, None] - at - mu
        for axis in (0, 1):
            worst = excess.argmax(axis=axis)
            every = np.arange(len(worst))
            a, b = (worst, every) if axis == 0 else (every, worst)
            over = excess[a, b] > 1e-9
            parts.append((a[over], b[over], at[b[over]]))
    a, b, at = (np.concatenate(part) for part in zip(*parts, strict=True))
    return a, b, at
