"""What is left to hide of a record under a declared belief, by another path."""

import math
from typing import Any

import numpy as np
from scipy import integrate, stats

from skpuffer.kernel.numbers import Floats

from ._numbers import NotRecomputableError

__all__ = ["left_to_hide"]


def left_to_hide(overlap: dict[str, Any], epsilon: float) -> tuple[float, float]:
    """Return the divergences of a record's two distributions, in either order.

    Parameters
    ----------
    overlap : dict
        Of the structure of the schema.
    epsilon : float
        At least zero.

    Returns
    -------
    first, second : float
        In [0, 1].
    """
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
