"""An attack on a search as a whole: on what its best trial came to, scores and all.

With its positive control: of 0.7 times the noise the same attacker finds it too little.
A trial here is a number with noise of the search's own, as a model or a score is, and
what the attacker chose beforehand is how trials are ranked: by post-processing of the
number, as a hold-out that he knows ranks models. Those above a threshold are best, and
of the others the lowest. So a record that moves the number moves the ranks as well.
"""

from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.privacy_loss._overlap import OverlapCurve
from skpuffer.scenarios import AttributeScenario, BoundedOdds

from ..attack import assert_beaten, assert_tight, assert_within, promise_of

#: Without the record, and with it: the number is 0 or 1 before noise.
WITHOUT, WITH = ([1.0, 0.0], [0.0, 1.0])
#: Threshold in standard deviations, and in which direction numbers are read.
FIRST, SECOND = (1.75, 1), (0.75, -1)


def ranked(numbers, threshold):
    """Ranks of noisy numbers: the larger the better."""
    above = numbers > threshold
    return np.where(above, 1e6 + numbers, -numbers)


def best_numbers(runs, noise, chances, ranking):
    """Draws of the number of the best trial; all trials of a search read one record."""
    scale = float(np.max(noise.scale))
    threshold, sign = ranking

    def draw(n, rng):
        # as runs.draw does one at a time, whose law has a test of its own
        masses = np.cumsum(runs.masses(covered=1 - 1e-12))
        trials = 1 + np.searchsorted(masses[:-1], rng.random(n), side="right")
        exact = rng.choice([0.0, 1.0], p=chances, size=n)
        numbers = sign * np.repeat(exact, trials)
        numbers = numbers + noise.sample((trials.sum(),), rng)
        searches = np.repeat(np.arange(n), trials)
        order = np.lexsort((ranked(numbers, threshold * scale), searches))
        return numbers[order[np.cumsum(trials) - 1]]

    return draw


def log_density(runs, noise, chances, ranking, outputs):
    """Of the best: that of a trial, times the slope of the generating function."""
    scale = float(np.max(noise.scale))
    threshold, sign = ranking
    x = outputs[:, 0]
    total = 0.0
    for exact, chance in zip((0.0, 1.0), chances, strict=True):
        z, t = ((value - sign * exact) / scale for value in (x, threshold * scale))
        better = np.where(x > threshold * scale, norm.sf(z), norm.sf(t) + norm.cdf(z))
        slope = np.exp(runs.log_slope(np.clip(better, 0, 1)))
        total = total + chance * norm.pdf(z) * slope
    return np.log(total)


def arguments(preview, first, second, ranking):
    curve = preview.certificate.curve
    runs = (curve.curve if isinstance(curve, OverlapCurve) else curve).runs

    def worlds(noise):
        return [best_numbers(runs, noise, each, ranking) for each in (first, second)]

    def score(noise):
        one, other = (
            partial(log_density, runs, noise, each, ranking) for each in (first, second)
        )
        return lambda outputs: one(outputs) - other(outputs)

    return worlds, score


def previewed(scenario=None, **params):
    made = PrivateGridSearchCV(
        PrivateLogisticRegression(scenario=scenario), {"C": [0.1, 1.0]}, **params
    )
    return made.preview(500, feature_names=["a", "b"], classes=[0, 1])


@pytest.mark.parametrize(
    "trials, n_trials",
    [("geometric", 6.0), ("logarithmic", 3.0), ("poisson", 3.0)],
)
@pytest.mark.parametrize("ranking", [FIRST, SECOND])
def test_a_search_tells_no_more_than_is_promised(trials, n_trials, ranking):
    preview = previewed(
        accountant=PrivacyLoss(2.5, 0.02), trials=trials, n_trials=n_trials
    )
    worlds, score = arguments(preview, WITHOUT, WITH, ranking)
    assert_tight(
        preview.certificate,
        preview.noise,
        worlds,
        score=score,
        seed=0,
        n_draws=60_000,
    )


def test_a_single_trials_noise_would_not_do_for_a_search():
    """Of the noise that the same promise takes for one fit the attacker has more."""
    preview = previewed(accountant=PrivacyLoss(2.5, 0.02), n_trials=6.0)
    single = PrivateLogisticRegression(
        accountant=PrivacyLoss(2.5, 0.02, noise="gaussian")
    ).preview(500, n_features=2, classes=[0, 1])
    mu = single.certificate.curve.gaussian_mu
    worlds, score = arguments(preview, WITHOUT, WITH, FIRST)
    unaccounted = preview.noise.with_scale(1 / mu)
    assert float(unaccounted.scale) < float(preview.noise.scale)
    assert_beaten(
        preview.certificate,
        *worlds(unaccounted),
        score=score(unaccounted),
        rng=np.random.default_rng(0),
        n_draws=60_000,
    )


def test_under_a_belief_a_search_tells_no_more_than_is_promised():
    """The secret shifts the odds of a record by 2 either way."""
    race = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    preview = previewed(
        race, accountant=OverlapAmplification(0.8, delta=0.02), n_trials=6.0
    )
    worlds, score = arguments(preview, [2 / 3, 1 / 3], [1 / 3, 2 / 3], FIRST)
    options = {"rng": np.random.default_rng(0), "n_draws": 60_000}
    assert_within(
        preview.certificate,
        *worlds(preview.noise),
        score=score(preview.noise),
        **options,
    )
    # whoever knows the record is held to the fallback, of the whole search
    worlds, score = arguments(preview, WITHOUT, WITH, FIRST)
    fallback = promise_of(preview.certificate.curve.curve)
    assert_tight(fallback, preview.noise, worlds, score=score, seed=0, n_draws=60_000)
