"""The exact law of a noisy argmax, by quadrature, for noise exp(-(|x|/scale)^beta)."""

import math

import numpy as np
from scipy.special import gammaincc, gammaln

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def _upper(z, beta):
    tail = 0.5 * gammaincc(1 / beta, np.abs(z) ** beta)
    return np.where(z >= 0, tail, 1 - tail)


def argmax_distribution(counts, scale, beta):
    """Probability that each class leads once noise is added to every count."""
    c = np.asarray(counts, dtype=float) / scale
    reach = 40.0 ** (1 / beta)
    marks = np.unique(np.concatenate([c, c - reach, c + reach]))
    middle, half = (marks[1:] + marks[:-1]) / 2, np.diff(marks) / 2
    x = (middle[:, None] + half[:, None] * _NODES).ravel()
    w = (half[:, None] * _WEIGHTS).ravel()
    z = x[:, None] - c
    log_norm = math.log(2) + float(gammaln(1 + 1 / beta))
    density = np.exp(-(np.abs(z) ** beta) - log_norm)
    below = _upper(-z, beta)
    law = []
    for i in range(len(c)):
        others = np.prod(np.delete(below, i, axis=1), axis=1)
        law.append(float(w @ (density[:, i] * others)))
    return np.array(law)


def divergence(p, q, epsilon):
    """Hockey-stick divergence of two laws on the same points, the larger of both."""
    factor = math.exp(epsilon)
    return max(float(np.maximum(a - factor * b, 0).sum()) for a, b in ((p, q), (q, p)))
