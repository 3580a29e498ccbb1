"""Priors of which the mutual information is known."""

import itertools
import json
from pathlib import Path

import numpy as np

from skpuffer.extensions.pac.information._atoms import normal_rule
from skpuffer.information import Atoms, Bank, MixtureChannel

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "residual_pac_channel.json").read_text(
        "utf-8"
    )
)


def signs():
    return Atoms([[-1.0], [1.0]])


def line(m):
    return Atoms(np.arange(float(m))[:, None])


def bernoulli():
    return Atoms([[0.0], [1.0]], [0.9, 0.1])


def four():
    points = [[0, 0], [3, 0], [0, 1], [2, 2]]
    return Atoms(points, [0.4, 0.3, 0.2, 0.1], [[0], [0], [1], [1]])


def rectangle():
    return Atoms(list(itertools.product([-4.0, 4.0], [-1.0, 1.0])))


def grid():
    return Atoms(list(itertools.product([-3.0, 3.0], [-0.5, -0.25, 0, 0.25, 0.5])))


def normal_mixture(centres, weights, deviation, nodes=101):
    """A mixture of normal laws, by the nodes of a rule."""
    line, mass = normal_rule(1, nodes)
    points = np.concatenate([c + deviation * line for c in centres])
    return Atoms(points, np.concatenate([w * mass for w in weights]))


def bimodal():
    return normal_mixture([-3, 3], [0.5, 0.5], 0.5)


def outlier():
    return normal_mixture([0, 100], [0.99, 0.01], 1.0)


def spread_outlier():
    return Atoms(np.append(np.linspace(-1, 1, 99), 50)[:, None])


def memberships(n, k=None):
    """All subsets of n records, or those of k records, as bits."""
    bits = np.array(list(itertools.product([0, 1], repeat=n)))
    return bits if k is None else bits[bits.sum(axis=1) == k]


def subsets():
    bits = memberships(10, 5)
    return Atoms(bits @ np.arange(10)[:, None] / 5, None, bits)


def bits():
    members = memberships(10)
    return Atoms(members @ np.arange(10)[:, None] / 5, None, members)


def exactly(atoms, variance):
    """Mutual information by quadrature."""
    covariance = np.atleast_2d(variance)
    return MixtureChannel(atoms, covariance).information(Bank.quadrature(atoms)).value
