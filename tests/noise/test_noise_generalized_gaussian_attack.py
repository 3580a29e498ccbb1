"""Attackers on generalised Gaussian noise, with the best rule there is.

They see noise, or noise that moved by a displacement they know, and call what has the
larger privacy loss "moved". No promise may allow them less than they achieve.
"""

import math

import numpy as np
import pytest

from skpuffer.noise import GeneralizedGaussianNoise, Shift

from ..attack import assert_beaten, assert_tight, assert_within, promise_of

EPSILONS = (0.0, 0.3, 1.0, 2.0, 3.0)


def moved_by(displacement):
    """Worlds and score of `assert_tight`: noise moved by so much, or not."""
    moves = np.asarray(displacement)

    def at(place, noise):
        return lambda n, rng: place + noise.sample((n, len(moves)), rng)

    def score(noise):
        beta = noise.beta
        return lambda x: (
            np.abs(x / noise.scale) ** beta - np.abs((x - moves) / noise.scale) ** beta
        ).sum(axis=1)

    return {"worlds": lambda noise: [at(moves, noise), at(0.0, noise)], "score": score}


def displacements(beta):
    """Shifts, displacements that they contain, and whether these attain the bound.

    Small ones attain it too, but take more draws to see. Below beta = 2 what is spread
    costs less than the same in one coordinate.
    """
    order = min(beta, 2)
    for u in (0.3, 1.0, 2.0):
        yield Shift(u, dim=1), [u], u > 0.5
        yield Shift(u, norm=1, dim=3), [u / 3] * 3, False
        for parts in (2, 5, 40):
            spread = [u / parts ** (1 / order)] * parts
            yield Shift(u, norm=order, dim=None), spread, u > 0.5 and beta >= 2
    yield Shift(1.0, norm=2, dim=7), [math.sqrt(1 / 7)] * 7, beta >= 2


@pytest.mark.slow
@pytest.mark.parametrize("beta", [1.0, 1.25, 1.5, 2.0, 3.0, 4.0])
def test_no_attacker_beats_the_trade_off(beta, n_trials):
    noise = GeneralizedGaussianNoise(1.0, beta=beta)
    options = {
        "n_draws": n_trials(20_000, least=10_000),
        "epsilons": EPSILONS,
    }
    for shift, displacement, attained in displacements(beta):
        promise, attacked = promise_of(noise.curve(shift)), moved_by(displacement)
        if attained:
            assert_tight(promise, noise, **attacked, seed=int(beta * 100), **options)
        else:
            assert_within(
                promise,
                *attacked["worlds"](noise),
                score=attacked["score"](noise),
                rng=np.random.default_rng(int(beta * 100)),
                **options,
            )


@pytest.mark.parametrize("beta", [1.25, 3.0])
def test_the_attacker_comes_close(beta):
    noise = GeneralizedGaussianNoise(1.0, beta=beta)
    options = {"n_draws": 50_000, "epsilons": (0.0, 0.3)}
    report = assert_within(
        promise_of(noise.curve(1.0)),
        *moved_by([1.0])["worlds"](noise),
        rng=np.random.default_rng(4),
        **options,
    )
    best = {f.epsilon: f for f in report.findings if f.direction == "first"}
    for epsilon, finding in best.items():
        gained = finding.tpr - math.exp(epsilon) * finding.fpr
        assert gained == pytest.approx(finding.allowed, rel=0.05)


def test_the_attacker_breaks_what_one_coordinate_would_promise():
    # the published claim: in its own norm the dimension does not matter
    m, u = 100, 0.5
    spread = [u / m ** (1 / 3)] * m
    noise = GeneralizedGaussianNoise(1.0, beta=3.0)
    attacked = moved_by(spread)
    worlds = attacked["worlds"](noise)
    options = {
        "score": attacked["score"](noise),
        "n_draws": 20_000,
        "rng": np.random.default_rng(5),
    }
    assert_beaten(promise_of(noise.curve(u)), *worlds, **options)
    # with the l2 radius of the same displacement all is well
    wide = Shift(float(np.linalg.norm(spread)), dim=None)
    assert_within(promise_of(noise.curve(wide)), *worlds, **options)
