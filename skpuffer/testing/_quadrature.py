"""Divergences of noise and moved noise by numerical integration of the densities."""

import itertools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import brentq

#: A function of an array, such as the logarithm of a density.
Density: TypeAlias = Callable[[Any], Any]


def renyi_by_quadrature(logpdf: Density, alpha: float, u: float) -> float:
    """Rényi divergence of the density moved by u from the density."""

    def log_integrand(x: Any) -> Any:
        below = logpdf(x)
        known = below > -math.inf  # or so far out that the density underflows
        ratio = alpha * logpdf(x - u) + (1 - alpha) * np.where(known, below, 0.0)
        return np.where(known, ratio, -math.inf)

    # kinks of the density, and the peak a Gaussian has
    cuts = sorted({0.0, u, alpha * u})
    peak: float = log_integrand(np.linspace(-1, cuts[-1] + 1, 200)).max()
    total = _integral(lambda x: np.exp(log_integrand(x) - peak), cuts)
    return (math.log(total) + peak) / (alpha - 1)


def hockey_stick_by_quadrature(logpdf: Density, epsilon: float, u: float) -> float:
    """Integral of the positive part of moved density - exp(epsilon) density."""

    def excess(x: Any) -> Any:
        return logpdf(x - u) - logpdf(x) - epsilon

    def integrand(x: Any) -> Any:
        return np.maximum(np.exp(logpdf(x - u)) - np.exp(epsilon + logpdf(x)), 0.0)

    grid = np.linspace(-50, 50, 2003) + u / 2
    signs = np.sign(excess(grid))
    turns = np.flatnonzero(signs[:-1] * signs[1:] < 0)
    roots = {brentq(excess, grid[i], grid[i + 1], xtol=1e-15) for i in turns}
    return _integral(integrand, sorted({0.0, u} | roots))


def _integral(function: Density, cuts: list[float]) -> float:
    """By the rule of Gauss and Legendre, in panels between the cuts and beyond them."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    panels = 400
    t = ((np.arange(panels)[:, None] + (nodes + 1) / 2) / panels).ravel()
    weights = np.tile(weights / 2, panels) / panels
    beyond, stretch = t / (1 - t), weights / (1 - t) ** 2  # from 0 to infinity
    return math.fsum(
        [
            stretch @ function(cuts[0] - beyond),
            stretch @ function(cuts[-1] + beyond),
            *(
                (b - a) * (weights @ function(a + (b - a) * t))
                for a, b in itertools.pairwise(cuts)
            ),
        ]
    )
