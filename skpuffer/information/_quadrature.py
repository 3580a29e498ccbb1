"""Deterministic rules for the mean of a function of normal numbers."""

import numpy as np
from scipy.special import log_expit

from skpuffer.utils._checks import check_count
from skpuffer.utils._types import Floats

#: Nodes by the number of coordinates.
_NODES = {1: 401, 2: 61, 3: 31}

#: Standard deviations covered, beyond which less than 1e-17 of the mass lies.
_REACH = 8.6


def normal_rule(dim: int, nodes: int | None = None) -> tuple[Floats, Floats]:
    """Return nodes and masses of a rule for the standard normal law.

    The trapezoid rule with the density as weight: of the analytic functions met here
    its error falls exponentially in the number of nodes, and unlike Gauss-Hermite nodes
    its nodes are as close in the tails, where other atoms lie.

    Parameters
    ----------
    dim : int
    nodes : int or None, default=None
        For each coordinate.

    Returns
    -------
    grid : ndarray of shape (nodes ** dim, dim)
    mass : ndarray of shape (nodes ** dim,)
        Sums to one.
    """
    count = check_count(least=3, nodes=_NODES[dim] if nodes is None else nodes)
    line = np.linspace(-_REACH, _REACH, count)
    mass = np.exp(-(line**2) / 2)
    mass /= mass.sum()
    axes = np.meshgrid(*[line] * dim, indexing="ij")
    joint = mass
    for _ in range(dim - 1):
        joint = np.multiply.outer(joint, mass)
    grid = np.stack([axis.ravel() for axis in axes], axis=1)
    mass = joint.ravel()
    # corners of the cube that no float would notice
    kept = mass > 1e-19
    return grid[kept], mass[kept] / mass[kept].sum()


def two_point_information(distance: Floats, probability: float) -> Floats:
    """Return the mutual information of a bit seen through unit Gaussian noise.

    Parameters
    ----------
    distance : ndarray
        Between the two means, in standard deviations; may be inf.
    probability : float
        Of the bit being one, in (0, 1).

    Returns
    -------
    information : ndarray
        In nats, of the shape of `distance`.
    """
    grid, mass = normal_rule(1)
    # beyond 80 standard deviations the bit is known to every digit
    apart = np.minimum(np.asarray(distance, dtype=float), 80.0)[..., None]
    total = np.zeros(apart.shape[:-1])
    odds = np.log(probability) - np.log1p(-probability)
    for share, sign in ((probability, 1.0), (1 - probability, -1.0)):
        # log odds of the truth, prior and likelihood ratio, at each node
        ratio = sign * odds + apart**2 / 2 + apart * grid[:, 0]
        total += share * ((log_expit(ratio) - np.log(share)) @ mass)
    return total
