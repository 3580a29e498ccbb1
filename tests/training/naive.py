"""Per-example gradients built one by one: what the engine's shortcuts must equal."""

import numpy as np
from scipy import sparse

from skpuffer.training._perceptron import ACTIVATIONS


def row_of(gradients, i):
    # of two dimensions: SciPy 1.14 has no sparse vectors
    row = gradients.rows.X[i : i + 1]
    return np.asarray(row.toarray() if sparse.issparse(row) else row, float).ravel()


def linear_gradient(gradients, parameters, i):
    """The gradient of one example, in the two blocks of the parameter vector."""
    x = row_of(gradients, i)
    coef, intercept = gradients.split(np.asarray(parameters, float))
    residual = derivative(gradients, coef @ x + intercept, i)
    parts = [np.outer(x, residual).ravel()]
    if gradients.intercept_scale:
        parts.append(gradients.intercept_scale * residual)
    return parts


def perceptron_gradient(gradients, parameters, i):
    x = row_of(gradients, i)
    (first, second), (b, c) = gradients.split(np.asarray(parameters, float))
    activate, slope = ACTIVATIONS[gradients.activation]
    hidden = activate(x @ first + b)
    outer = derivative(gradients, hidden @ second + c, i)
    inner = (second @ outer) * slope(hidden)
    return [
        np.concatenate([np.outer(x, inner).ravel(), inner]),
        np.concatenate([np.outer(hidden, outer).ravel(), outer]),
    ]


def derivative(gradients, scores, i):
    scores, y = scores[None, :], gradients.y[i : i + 1]
    if gradients.loss.indexed:
        return gradients.loss.derivative(scores, y)[0]
    return gradients.loss.derivative(scores[:, 0], y)


def clip(parts, release, slack):
    """Each part, or all of them at once, scaled to its norm less the slack."""
    if release.blocks is None:
        parts, norms = [np.concatenate(parts)], [release.clip_norm]
    else:
        norms = release.clip_norm
    return np.concatenate(
        [
            part
            * min(1.0, (1 - slack) * c / max(norm(part, release.clip_order), 1e-300))
            for part, c in zip(parts, norms, strict=True)
        ]
    )


def norm(vector, order):
    return np.linalg.norm(vector, ord=order)


def clipped_sum(gradients, parameters, index, release):
    build = perceptron_gradient if hasattr(gradients, "activation") else linear_gradient
    index = range(gradients.rows.n_records) if index is None else index
    total, slack = np.zeros(gradients.dim), gradients.rows.slack
    for i in index:
        total += clip(build(gradients, parameters, i), release, slack)
    return total
