"""Divergences of noise and moved noise by numerical integration of the densities."""

import math

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq


def renyi_by_quadrature(logpdf, alpha, u):
    """Rényi divergence of the density moved by u from the density."""

    def log_integrand(x):
        below = logpdf(x)
        if math.isinf(below):  # so far out that the density underflows
            return -math.inf
        return alpha * logpdf(x - u) + (1 - alpha) * below

    # kinks of the density, and the peak a Gaussian has
    cuts = sorted({0.0, u, alpha * u})
    peak = max(log_integrand(x) for x in np.linspace(-1, cuts[-1] + 1, 200))
    total = _integral(lambda x: math.exp(log_integrand(x) - peak), cuts)
    return (math.log(total) + peak) / (alpha - 1)


def hockey_stick_by_quadrature(logpdf, epsilon, u):
    """Integral of the positive part of moved density - exp(epsilon) density."""

    def excess(x):
        return logpdf(x - u) - logpdf(x) - epsilon

    def integrand(x):
        return max(math.exp(logpdf(x - u)) - math.exp(epsilon + logpdf(x)), 0.0)

    grid = np.linspace(-50, 50, 2003) + u / 2
    signs = np.sign([excess(x) for x in grid])
    turns = np.flatnonzero(signs[:-1] * signs[1:] < 0)
    roots = {brentq(excess, grid[i], grid[i + 1], xtol=1e-15) for i in turns}
    return _integral(integrand, sorted({0.0, u} | roots))


def _integral(function, cuts):
    ends = [-math.inf, *cuts, math.inf]
    return math.fsum(
        quad(function, low, high, epsabs=1e-13, epsrel=1e-12, limit=500)[0]
        for low, high in zip(ends[:-1], ends[1:], strict=True)
    )
