"""What attackers of tests are given: many runs, and the best scores there are."""

from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from skpuffer.privacy import Certificate, Notion
from skpuffer.testing._attack import (
    SHARE,
    assert_beaten,
    assert_tight,
    assert_within,
    attack,
    weakened,
)

__all__ = [
    "SHARE",
    "assert_beaten",
    "assert_tight",
    "assert_within",
    "attack",
    "bayes_score",
    "many_runs",
    "noisy_laws",
    "promise_of",
    "weakened",
    "with_share_of_noise",
]

#: Points at which the score of many atoms is computed, besides the atoms.
_GRID = 2**11

#: Scales of noise around the atoms: further out no Gaussian draw is, and the odds of
#: Laplace noise are the same.
_REACH = 9


def many_runs(model, release, task, noise, n_runs, rng):
    """Training on small steps, many times over: sums of gradients, and noise on them.

    Parameters
    ----------
    model : estimator
        Whose `steps` are those of its last run, and whose steps are so small that the
        gradients stay as they are.
    release : GradientRelease
        A run.
    task : Task
        Of a table with as many records.
    noise : Noise
    n_runs : int
    rng : numpy.random.Generator

    Returns
    -------
    sums, noises : ndarray of shape (n_runs, dim)
        Added up over the steps of each run.
    """
    # the steps of so many runs are those of a longer one
    long = replace(release, n_steps=release.n_steps * n_runs)
    model._execute(task, long, noise, rng)
    drawn = np.array([(step.clipped_sum, step.noise) for step in model.steps])
    by_run = drawn.reshape(n_runs, release.n_steps, *drawn.shape[1:]).sum(axis=1)
    return by_run[:, 0], by_run[:, 1]


def with_share_of_noise(runs, noise):
    """Two worlds for :func:`assert_tight`, of runs that are drawn already.

    What was drawn does not change what is summed, so less noise is a share of it.
    """

    def worlds(less):
        share = np.divide(less.scale, noise.scale)
        return [
            lambda n, rng, sums=sums, noises=noises: sums + share * noises
            for sums, noises in runs
        ]

    return worlds


def bayes_score(noise, points_p, masses_p, points_q, masses_q):
    """Log-likelihood ratio of "atoms plus noise" in two worlds: the best rule there is.

    Parameters
    ----------
    noise : GaussianNoise, LaplaceNoise or DiscreteLaplaceNoise
    points_p, points_q : array-like of shape (k,) or (k, dim)
        Exact outputs.
    masses_p, masses_q : array-like of shape (k,)

    Returns
    -------
    callable of outputs of shape (n, dim)
    """
    laplace = noise.family in ("laplace", "discrete_laplace")
    metric, power = ("cityblock", 1) if laplace else ("sqeuclidean", 2)

    def log_density(outputs, points, masses):
        masses = np.asarray(masses, dtype=float)
        points = np.asarray(points, dtype=float).reshape(len(points), -1)
        points, masses = points[masses > 0], masses[masses > 0]
        scale = np.asarray(noise.scale)
        exponent = cdist(outputs / scale, points / scale, metric) / power
        # logsumexp, except for its many copies of the array
        least = exponent.min(axis=1, keepdims=True)
        return np.log(np.exp(least - exponent) @ masses) - least[:, 0]

    def log_ratio(outputs):
        return log_density(outputs, points_p, masses_p) - log_density(
            outputs, points_q, masses_q
        )

    # noise smooths what it is added to: of many atoms on a line a table is as good
    on_a_line = np.ndim(points_p) == 1 or np.shape(points_p)[1] == 1
    if not on_a_line or len(points_p) + len(points_q) <= 16:
        return log_ratio
    # One table for all outputs: two worlds scored by two tables could be told apart
    # by their tables. A density of Laplace noise has a kink at every atom.
    atoms = np.union1d(points_p, points_q)
    beyond = _REACH * float(np.max(noise.scale))
    ends = atoms[0] - beyond, atoms[-1] + beyond
    grid = np.union1d(atoms, np.linspace(*ends, _GRID))
    table = log_ratio(grid[:, None])
    return lambda outputs: np.interp(outputs[:, 0], grid, table)


def promise_of(curve):
    """Return what a privacy curve alone promises, as a certificate for an attack.

    Parameters
    ----------
    curve : PrivacyCurve
    """
    return Certificate(
        notion=Notion.APPROXIMATE_DP, epsilon=0.0, delta=1.0, curve=curve
    )


def noisy_laws(first, second):
    """Draws of two discrete laws plus noise, and the best score, for `assert_tight`.

    Parameters
    ----------
    first, second : Discrete

    Returns
    -------
    dict
        The arguments `worlds` and `score`.
    """

    def noisy(law, noise):
        def draw(n, rng):
            exact = law.sample(n, rng)
            return exact + noise.sample(exact.shape, rng)

        return draw

    return {
        "worlds": lambda noise: [noisy(law, noise) for law in (first, second)],
        "score": lambda noise: bayes_score(
            noise, first.points, first.masses, second.points, second.masses
        ),
    }
