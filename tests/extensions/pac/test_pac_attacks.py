"""Attacks under a finite prior, beside what a bound on mutual information allows."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from skpuffer.audit import bayes_attack, fano_audit, map_attack, pool_attack
from skpuffer.exceptions import UncertifiedError, UnsupportedError
from skpuffer.information import posterior_success
from skpuffer.noise import DegenerateGaussianNoise, GaussianNoise, LaplaceNoise
from skpuffer.privacy import Certificate
from skpuffer.scenarios import OutputSamples
from tests.refused import refused


def samples(draws, weights=None, memberships=None, **options):
    draws = np.asarray(draws, dtype=float)
    n = len(draws)
    weights = np.full(n, 1 / n) if weights is None else np.asarray(weights)
    if memberships is not None:
        options.setdefault("secret", "record")
    return OutputSamples(
        draws=draws.reshape(n, -1),
        weights=weights,
        groups=np.zeros(n, dtype=int),
        memberships=memberships,
        **{"regime": "enumerated"} | options,
    )


def subsets(pool=10, size=5):
    """All subsets of a pool of numbers, by their means."""
    bits = np.array(
        [
            np.isin(np.arange(pool), chosen)
            for chosen in itertools.combinations(range(pool), size)
        ],
        dtype=int,
    )
    return samples(bits @ np.arange(pool) / size, memberships=bits)


def independent(pool=10, share=5):
    """Fair coins for each record of a pool, and the sum over a public share."""
    bits = np.array(list(itertools.product([0, 1], repeat=pool)))
    return samples(bits @ np.arange(pool) / share, memberships=bits)


SIGN = samples([-1.0, 1.0])


def bound(nats, notion="mutual_information", **options):
    return Certificate(notion=notion, mutual_information=nats, **options)


@pytest.mark.parametrize(
    "outputs, variance, secret, success",
    [
        (SIGN, 1.0, 0, 0.8413447),
        (samples([0.0, 1.0, 2.0, 3.0]), 1.0, 0, 0.5371937),
        (subsets(), 1.4125130, 9, 0.6348833),
        (subsets(), 8.7159277, 0, 0.5648153),
        (independent(), 5.6584786, 9, 0.6267002),
    ],
)
def test_the_best_guess_is_right_as_often_as_is_known(
    outputs, variance, secret, success
):
    noise = GaussianNoise(np.sqrt(variance))
    attack = bayes_attack(outputs, noise, n_draws=40_000, confidence=0.999)
    low, high = attack.intervals()[secret]
    assert low < success < high
    assert attack.n_draws == 40_000


def test_the_best_guess_is_that_of_the_likeliest_secret():
    outputs = samples([-1.0, 0.5, 2.0], [0.5, 0.3, 0.2])
    bayes = bayes_attack(outputs, GaussianNoise(0.8), n_draws=50_000)
    other = map_attack(
        [[-1.0], [0.5], [2.0]], GaussianNoise(0.8), prior=[0.5, 0.3, 0.2]
    )
    low, high = bayes.intervals()[0]
    assert low < other.accuracy < high
    assert bayes.priors.tolist() == [0.5]


def test_what_is_allowed_is_not_exceeded_and_is_with_less_noise():
    promise = bound(0.3368308)
    kept = bayes_attack(SIGN, GaussianNoise(1.0))
    assert not kept.exceeds(promise)
    assert kept.allowed(promise) == pytest.approx([posterior_success(0.3368308, 0.5)])
    # the same attack on seven tenths of the noise
    assert bayes_attack(SIGN, GaussianNoise(0.7)).exceeds(promise)


def test_each_record_is_held_to_its_own_prior():
    outputs = subsets()
    noise = GaussianNoise(np.sqrt(1.4125130))
    attack = bayes_attack(outputs, noise)
    own = bound(0.0567391, "record_mutual_information", table_information=0.25)
    assert not attack.exceeds(own)
    assert attack.worst in (0, 9)
    assert attack.priors == pytest.approx(np.full(10, 0.5))
    # a budget of the whole table holds of each record too, and allows more
    whole = bound(0.25)
    assert np.all(attack.allowed(whole) > attack.allowed(own))
    # what is promised of single records alone says nothing of the table
    alone = bound(0.05, "record_mutual_information")
    table = bayes_attack(replace(outputs, secret="dataset"), noise)
    assert table.secret == "dataset"
    assert table.priors == pytest.approx([1 / 252])
    with refused(UncertifiedError, "audit.secret_not_of_certificate"):
        table.allowed(alone)
    assert table.allowed(own) == pytest.approx([posterior_success(0.25, 1 / 252)])


def test_a_group_is_guessed_as_one():
    outputs = samples(
        [0.0, 3.0, 0.5, 2.0],
        [0.4, 0.3, 0.2, 0.1],
        np.array([[0], [1], [0], [1]]),
        secret="groups",
    )
    attack = bayes_attack(outputs, GaussianNoise(0.1))
    assert attack.priors == pytest.approx([0.6])
    assert attack.accuracies[0] > 0.999
    assert "groups" in repr(attack)


@pytest.mark.parametrize("outputs", [subsets(), independent()])
def test_normal_fits_guess_no_better_than_the_posterior(outputs):
    noise = GaussianNoise(1.0)
    best = bayes_attack(outputs, noise, n_draws=30_000)
    fitted = pool_attack(outputs, noise, n_draws=30_000)
    # these outputs are close to normal
    assert np.all(fitted.intervals()[:, 0] <= best.intervals()[:, 1])
    assert fitted.accuracies == pytest.approx(best.accuracies, abs=0.02)


@pytest.mark.every_run
def test_of_a_sampled_prior_other_tables_are_attacked_than_simulated():
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2, size=(4000, 10))
    outputs = samples(bits @ np.arange(10) / 5, memberships=bits, regime="sampled")
    attack = pool_attack(outputs, GaussianNoise(np.sqrt(5.6584786)))
    assert attack.n_draws == 2000
    low, high = attack.intervals()[9]
    assert low < 0.6267002 < high
    assert pool_attack(outputs, GaussianNoise(1.0), n_draws=50).n_draws == 50


@pytest.mark.parametrize(
    "classes, accuracy, nats",
    [
        (4, 0.868, 0.8511),
        (100, 0.451, 1.3941),
        (10, 0.783, 1.3027),
        (10, 0.275, 0.1214),
    ],
)
def test_fano(classes, accuracy, nats):
    n = 10**8
    audit = fano_audit(bound(nats * 1.001), round(accuracy * n), n, classes)
    assert audit.information == pytest.approx(nats, abs=1e-3)
    assert not audit.exceeds
    assert fano_audit(bound(nats * 0.99), round(accuracy * n), n, classes).exceeds


def test_fano_takes_no_chance_for_information():
    # a constant guess, and one that is worse
    assert fano_audit(bound(0.1), 10, 100, 10).information == 0
    assert fano_audit(bound(0.1), 0, 100, 10).information == 0
    few = fano_audit(bound(0.1), 8, 10, 10).information
    assert 0 < few < fano_audit(bound(0.1), 800, 1000, 10).information


# -- what is refused -------------------------------------------------------------------


@pytest.mark.every_run
def test_only_promises_of_information_are_attacked():
    attack = bayes_attack(SIGN, GaussianNoise(1.0), n_draws=100)
    with refused(UncertifiedError, "audit.estimate_bounds_no_information"):
        attack.allowed(bound(0.3, "estimated"))
    with refused(UncertifiedError, "audit.secret_not_of_certificate"):
        attack.allowed(Certificate(notion="pure_dp", epsilon=1.0))
    with refused(UncertifiedError, "audit.estimate_bounds_no_information"):
        fano_audit(bound(0.3, "estimated"), 1, 2, 2)


@pytest.mark.parametrize("attack", [bayes_attack, pool_attack])
@pytest.mark.parametrize(
    "option, match",
    [
        ({"n_draws": 0}, "n_draws"),
        ({"confidence": 1.0}, "confidence"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_parameters_are_checked(attack, option, match):
    with pytest.raises(ValueError, match=match):
        attack(subsets(), GaussianNoise(1.0), **option)


def test_other_noise_and_other_facts_are_refused():
    with refused(UnsupportedError, "audit.noise_not_gaussian"):
        bayes_attack(SIGN, LaplaceNoise(1.0))
    flat = DegenerateGaussianNoise(1.0, factor=[[1.0], [0.0]])
    with refused(UnsupportedError, "audit.noise_not_full_rank"):
        bayes_attack(samples([[0.0, 1.0], [1.0, 0.0]]), flat)
    with refused(TypeError, "audit.outputs_not_output_samples"):
        bayes_attack([[0.0], [1.0]], GaussianNoise(1.0))
    with refused(ValueError, "audit.outputs_without_single_records"):
        pool_attack(SIGN, GaussianNoise(1.0))
    few = samples([0.0, 1.0], memberships=np.array([[0], [1]]))
    with refused(ValueError, "audit.too_few_tables_with_record"):
        pool_attack(few, GaussianNoise(1.0))


@pytest.mark.parametrize(
    "counts, code, parameters",
    [
        ((5, 4, 2), "audit.hits_above_guesses", {}),
        ((-1, 4, 2), "parameter.count_too_small", {"name": "hits"}),
        ((1, 0, 2), "parameter.count_too_small", {"name": "n_guesses"}),
        ((1, 2, 1), "parameter.count_too_small", {"name": "n_classes"}),
    ],
)
def test_fano_checks_its_counts(counts, code, parameters):
    with refused(ValueError, code, **parameters):
        fano_audit(bound(0.1), *counts)
