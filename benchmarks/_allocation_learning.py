"""Logistic regression at one budget, under samplings and strategies of noise."""

import math
from functools import lru_cache

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks._allocation import (
    CHAIN,
    EXACT,
    FRESH,
    KNOWN,
    POISSON,
    Run,
    scale_of,
)
from benchmarks._tables import LOADERS, split
from skpuffer.noise import GaussianNoise
from skpuffer.noise.strategies import (
    banded_inverse_square_root,
    banded_matrix_factorization,
    banded_square_root,
    buffered_linear_toeplitz,
    identity,
)
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.training import LinearGradients, Logistic, Multinomial, train

#: Batches of an epoch.
BATCHES = 16
#: Gradients are clipped to this length; those of rows in the unit ball are about it.
CLIP = 1.0
#: Value of the intercept's column.
INTERCEPT = 0.5
#: What is chosen among, for every way alike, on splits that no accuracy is of.
RATES, AVERAGES = (1.0, 4.0, 16.0, 64.0, 256.0), (0.0, 0.5)

FULL, KEPT, PUBLIC = "full batch", "kept bins", "not private"
#: Sampling and strategy by the name of a way.
WAYS = {
    FULL: ("full_batch", lambda n: identity()),
    POISSON: ("poisson", lambda n: identity()),
    FRESH: ("fresh_bins", lambda n: identity()),
    KEPT: ("balls_in_bins", lambda n: identity()),
    f"{KEPT}, BSR(4)": ("balls_in_bins", lambda n: banded_square_root(4)),
    f"{KEPT}, BISR(4)": ("balls_in_bins", lambda n: banded_inverse_square_root(4)),
    f"{KEPT}, BandMF(16)": (
        "balls_in_bins",
        lambda n: banded_matrix_factorization(n, BATCHES, BATCHES),
    ),
    f"{KEPT}, BLT": (
        "balls_in_bins",
        lambda n: buffered_linear_toeplitz(n, n_batches=BATCHES),
    ),
}


def run_of(way, n_epochs):
    """Return the run of a way: batches, epochs and strategy."""
    _, strategy = WAYS[way]
    n_batches = 1 if way == FULL else BATCHES
    return Run(way, strategy(n_batches * n_epochs), n_batches, n_epochs)


@lru_cache(maxsize=1024)
def scale(way, n_epochs, epsilon):
    """Return the least noise that is promised for a way, in clip norms."""
    run = run_of(way, n_epochs)
    known = scale_of(KNOWN, Run(way, run.strategy, 1, 1), epsilon, 1.0)
    start = known * math.sqrt(run.gram(1.0)[0, 0]) / 2
    if way == FULL:
        accounts = (KNOWN,)
    elif way in (POISSON, FRESH):
        accounts = (way,)
    else:
        accounts = (KNOWN, EXACT) if run.independent else (KNOWN, CHAIN)
    return min(scale_of(account, run, epsilon, start) for account in accounts)


@lru_cache(maxsize=64)
def _split(table, seed):
    X, y = _table(table)
    return split(X, y, seed)


@lru_cache(maxsize=4)
def _table(table):
    return LOADERS[table]()


def _model(table):
    _, y = _table(table)
    n_classes = len(np.unique(y))
    if n_classes == 2:
        return Logistic(), 1, None
    return Multinomial(), n_classes, n_classes


def accuracy(table, n_epochs, epsilon, way, seed, rate, average):
    """Return the accuracy of one run on rows that were held out."""
    part = _split(table, seed)
    n = len(part.y_train)
    loss, n_outputs, n_classes = _model(table)
    run = run_of(way, n_epochs)
    release = GradientRelease(
        n_records=n,
        batch_size=None if way == FULL else math.ceil(n / BATCHES),
        n_steps=run.n_steps,
        sampling=WAYS[way][0],
        clip_norm=CLIP,
        optimiser=Optimiser(learning_rate=rate, average=average),
        noise_correlation=None if run.independent else run.strategy,
    )
    assert release.steps_per_epoch == run.n_batches
    gradients = LinearGradients(
        loss, part.X_train, part.y_train, n_classes=n_classes, intercept_scale=INTERCEPT
    )
    noise = GaussianNoise(CLIP * scale(way, n_epochs, epsilon))
    value = train(gradients, release, noise, np.random.default_rng(seed))
    weights = value[:-n_outputs].reshape(-1, n_outputs)
    scores = part.X_test @ weights + INTERCEPT * value[-n_outputs:]
    guess = scores[:, 0] > 0 if n_outputs == 1 else scores.argmax(axis=1)
    return float(np.mean(guess == part.y_test))


def accuracies(table, n_epochs, epsilon, way, n_tuned, n_seeds):
    """Return the accuracy of a way, at the rate and the average that were best.

    Returns
    -------
    dict
        Mean and standard error over seeds, none of which was among those by which
        the rate was chosen.
    """

    def of(rate, average, seeds):
        return [
            accuracy(table, n_epochs, epsilon, way, seed, rate, average)
            for seed in seeds
        ]

    tuned = {
        (rate, average): np.mean(of(rate, average, range(1000, 1000 + n_tuned)))
        for rate in RATES
        for average in AVERAGES
    }
    rate, average = max(tuned, key=tuned.get)
    found = of(rate, average, range(n_seeds))
    return {
        "sigma": scale(way, n_epochs, epsilon),
        "rate": rate,
        "average": average,
        "accuracy": float(np.mean(found)),
        "error": float(np.std(found, ddof=1) / math.sqrt(n_seeds)),
        "n_seeds": n_seeds,
    }


def public_accuracy(table, n_seeds):
    """Return the accuracy without privacy, and that of the commonest class."""
    found, common = [], []
    for seed in range(n_seeds):
        part = _split(table, seed)
        model = LogisticRegression(C=100.0, max_iter=2000).fit(
            part.X_train, part.y_train
        )
        found.append(model.score(part.X_test, part.y_test))
        common.append(np.mean(part.y_test == np.bincount(part.y_train).argmax()))
    return {
        "accuracy": float(np.mean(found)),
        "error": float(np.std(found, ddof=1) / math.sqrt(n_seeds)),
        "common": float(np.mean(common)),
        "n_seeds": n_seeds,
    }
