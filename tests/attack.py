"""An attacker who tells two worlds apart, and what a certificate lets him.

Whoever sees one noisy output and guesses which of two worlds it came from has, for
each rule of guessing, a true-positive rate (he says "first" in the first world) and a
false-positive rate (he says so in the second). A promise bounds ``TPR - e^eps * FPR``
for every eps by a delta. Here the rule is chosen on a fifth of the draws and measured
on the others, with an exact (Clopper-Pearson) lower bound of what was measured: if that
exceeds what is allowed, the promise is broken beyond reasonable doubt.

An attack that finds nothing says little unless it would have found something. So each
one is made twice, by `assert_tight`: with the noise that was certified, and with a
share of it, which the same attacker must catch.
"""

from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from skpuffer.audit import EPSILONS, distinguishing_attack
from skpuffer.privacy import Certificate, Notion

#: The part of the certified noise that every attacker must find to be too little.
SHARE = 0.7

#: Points at which the score of many atoms is computed, besides the atoms.
_GRID = 2**11

#: Scales of noise around the atoms: further out no Gaussian draw is, and the odds of
#: Laplace noise are the same.
_REACH = 9


def attack(
    first,
    second,
    certificate,
    *,
    n_draws,
    rng,
    epsilons=EPSILONS,
    score=None,
    confidence=1 - 1e-6,
    whole_curve=True,
):
    """Attack a promise with draws of the released output in two worlds.

    Parameters
    ----------
    first, second : callable of (n, rng)
        Return noisy outputs of shape (n,) or (n, dim), each from a fresh world.
    certificate : Certificate
    n_draws : int
        Draws in each world; a fifth of them choose the rule, the others measure it.
    rng : numpy.random.Generator
    epsilons : sequence of float
        Where to compare; the confidence is shared out over all comparisons.
    score : callable of outputs, default=None
        Grows with the odds of the first world; the log-likelihood ratio makes the
        Bayes attacker. None learns one: a coordinate itself, or a quadratic logistic
        regression in several dimensions.
    confidence : float, default=1 - 1e-6
        That no finding of the report is wrong.
    whole_curve : bool, default=True
        As in :func:`skpuffer.audit.allowed_delta`.

    Returns
    -------
    Comparison
    """
    outputs = (
        np.asarray(draw(n_draws, rng), dtype=float).reshape(n_draws, -1)
        for draw in (first, second)
    )
    attacked = distinguishing_attack(*outputs, score=score, confidence=confidence)
    return attacked.against(certificate, epsilons=epsilons, whole_curve=whole_curve)


def assert_within(certificate, first, second, **options):
    """Attack, and hold that nothing exceeds what is allowed; return the report.

    Parameters
    ----------
    certificate : Certificate
    first, second : callable of (n, rng)
    **options : dict
        Of `attack`.
    """
    report = attack(first, second, certificate, **options)
    assert not report.broken, f"an attacker beats the certificate {report}"
    return report


def assert_beaten(certificate, first, second, **options):
    """Attack, and hold that more is achieved than allowed; arguments as above."""
    report = attack(first, second, certificate, **options)
    assert report.broken, f"an attacker should beat the certificate, but {report}"
    return report


def weakened(noise, share=SHARE):
    """Noise of the same family with so much less of a scale."""
    return noise.with_scale(np.multiply(noise.scale, share).tolist())


def assert_tight(
    certificate, noise, worlds, *, seed, score=None, share=SHARE, **options
):
    """Attack the certified noise, which must do, and a share of it, which must not.

    Parameters
    ----------
    certificate : Certificate
    noise : Noise
        What was certified.
    worlds : callable of a noise
        Returns two samplers of outputs with that noise.
    seed : int
    score : callable of a noise, default=None
        Returns the attacker's score if he knows that noise.
    share : float, default=SHARE
    **options : dict
        Of `attack`.
    """
    for check, used in (
        (assert_within, noise),
        (assert_beaten, weakened(noise, share)),
    ):
        check(
            certificate,
            *worlds(used),
            score=None if score is None else score(used),
            rng=np.random.default_rng(seed),
            **options,
        )


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
