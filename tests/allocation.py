"""Divergences of two or three bins by quadrature: what bounds are held against."""

import numpy as np
from scipy.special import ndtr


def divergence(gram, epsilon, direction, points=801):
    """Divergence of bins of a Gram matrix in units of the noise.

    The last bin is integrated in closed form, given the others; each point of the grid
    bears the normal law's density.
    """
    gram = np.asarray(gram, float)
    size, factor = len(gram), np.exp(epsilon)
    root = np.linalg.cholesky(gram + 1e-14 * np.eye(size))
    z = np.linspace(-9, 9 + np.sqrt(gram.max()), points)
    grids = np.meshgrid(*[z] * (size - 1), indexing="ij")
    density = np.exp(-sum(g**2 for g in grids) / 2)
    density *= ((z[1] - z[0]) / np.sqrt(2 * np.pi)) ** (size - 1)
    exponents = [
        sum(root[i, j] * grids[j] for j in range(min(i + 1, size - 1)))
        for i in range(size)
    ]
    half = np.diag(gram) / 2
    ahead = sum(np.exp(exponents[i] - half[i]) for i in range(size - 1))
    behind = sum(np.exp(-exponents[i] - half[i]) for i in range(size - 1))
    level, deviation = exponents[-1], root[-1, -1]
    # exp(level + deviation z - half) is what the last bin adds
    scale = np.exp(level - half[-1] + deviation**2 / 2)
    if direction == "replace":
        against = factor * np.exp(-level - half[-1] + deviation**2 / 2)
        rest = (ahead - factor * behind) * np.exp(half[-1])
        y = (-rest + np.sqrt(rest**2 + 4 * factor)) / 2
        y = np.where(rest > 0, 2 * factor / (rest + np.sqrt(rest**2 + 4 * factor)), y)
        d = (np.log(y) - level) / deviation
        value = scale * ndtr(deviation - d) - against * ndtr(-deviation - d)
        value += (ahead - factor * behind) * ndtr(-d)
        return float(np.sum(density * value)) / size
    strike = size * factor if direction == "remove" else size / factor
    left = strike - ahead
    with np.errstate(divide="ignore", invalid="ignore"):
        d = (np.log(left) - level + half[-1]) / deviation
    d = np.where(left > 0, d, -np.inf)
    put = left * ndtr(d) - scale * ndtr(d - deviation)
    put = np.where(left > 0, put, 0.0)
    if direction == "add":
        return factor * float(np.sum(density * put)) / size
    # the mean of the ratios is one: a call is a put and what is left
    return 1 - factor + float(np.sum(density * put)) / size
