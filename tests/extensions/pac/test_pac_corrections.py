"""How far releases are from Gaussian: bounds, diagnostics, and traps."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import entr
from scipy.stats import norm

from skpuffer.extensions.pac.information._corrections import _squared_distance
from skpuffer.information import (
    decoder_deviation,
    donsker_varadhan_gap,
    log_det,
    slice_statistic,
    sliced_gap,
    surrogate_terms,
    waterfill,
)
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "residual_pac_gaussian.json").read_text(
        "utf-8"
    )
)

COINS = np.array([[-1.0], [1.0]])
CORNERS = np.array([[-4.0, -1], [-4, 1], [4, -1], [4, 1]])


def told(points, variance):
    """Mutual information of equally likely points and release, by quadrature."""
    deviation = math.sqrt(variance)
    y = np.linspace(min(points) - 12 * deviation, max(points) + 12 * deviation, 100_001)
    mixed = norm.pdf(y, np.array(points)[:, None], deviation).mean(axis=0)
    entropy = np.trapezoid(entr(mixed), y)
    return entropy - math.log(2 * math.pi * math.e * variance) / 2


def test_two_coins():
    case = ORACLES["O-38"]["coins"]
    for budget, gap, part in zip(*case.values(), strict=True):
        noise = waterfill([[1.0]], budget)
        assert budget - told([-1, 1], noise[0, 0]) == pytest.approx(gap, abs=2e-7)
        found = sliced_gap(COINS, noise)
        assert found == pytest.approx(part, abs=1e-6)
        # a bound, and a small part
        assert 0 < found < gap


def test_four_corners():
    for case in ORACLES["O-38"]["corners"]:
        noise = waterfill(np.diag([16.0, 1]), case["budget"])
        found = sliced_gap(CORNERS, noise, bases=[np.eye(2)])
        assert found == pytest.approx(case["coordinates"], abs=1e-6)
        assert case["slices_times_d"] < found < case["gap"]
        # the published ones, on a fine grid of directions
        deviations = np.sqrt(np.diag(noise) + [16, 1])
        angles = np.pi * (np.arange(180) + 0.5) / 180
        white, raw = [], []
        for v in np.c_[np.cos(angles), np.sin(angles)]:
            u = v / deviations
            white.append(
                _squared_distance(
                    CORNERS @ u, np.full(4, 0.25), math.sqrt(u @ noise @ u)
                )
            )
            size = math.sqrt(v @ np.diag(deviations**2) @ v)
            u = v / size
            raw.append(
                size**2
                * _squared_distance(
                    CORNERS @ u, np.full(4, 0.25), math.sqrt(u @ noise @ u)
                )
            )
        average = np.mean(white) / 2
        assert average == pytest.approx(case["slices"], abs=2e-6)
        assert 2 * average == pytest.approx(case["slices_times_d"], abs=4e-6)
        assert max(white) / 2 == pytest.approx(case["slice"], abs=2e-5)
        theorem4 = np.mean(raw) / (2 * max(deviations**2))
        assert theorem4 == pytest.approx(case["theorem4"], abs=2e-6)


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 3))
def test_the_gap_of_projections_is_a_bound(seed, budget):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(6, 1))
    noise = waterfill(np.cov(points.T, bias=True).reshape(1, 1), budget)
    gap = budget - told(points[:, 0], noise[0, 0])
    assert 0 <= sliced_gap(points, noise) <= gap + 1e-6


@given(st.integers(0, 2**32 - 1))
def test_the_gap_does_not_depend_on_units(seed):
    rng = np.random.default_rng(seed)
    points, noise = rng.normal(size=(5, 2)), np.diag(rng.uniform(0.1, 1, size=2))
    expected = sliced_gap(points, noise)
    assert sliced_gap(points * 1e6, noise * 1e12) == pytest.approx(expected, abs=1e-9)
    assert sliced_gap(points + 1e3, noise) == pytest.approx(expected, abs=1e-6)
    # more bases find no less
    assert sliced_gap(points, noise, bases=[np.eye(2)]) <= expected + 1e-12


def test_gaussian_outputs_have_no_gap():
    points = norm.ppf((np.arange(300) + 0.5) / 300)[:, None]
    assert sliced_gap(points, [[1.0]]) < 1e-4


def test_the_published_statistic_is_biased_and_ours_is_not():
    rng = np.random.default_rng(0)
    for n, bias in [(50, 0.0516), (200, 0.0144)]:
        quantiles = norm.ppf((np.arange(n) + 0.5) / n)
        samples = np.sort(rng.normal(size=(2, 4000, n)), axis=2)
        # against a second sample, and against the exact quantiles
        published = ((samples[0] - samples[1]) ** 2).mean() / 2
        exact = ((samples[0] - quantiles) ** 2).mean() / 2
        assert published == pytest.approx(bias, rel=0.05)
        assert exact == pytest.approx(bias / 2, rel=0.15)
    shown = [
        slice_statistic(rng.normal(size=(100, 2)), rng=rng, n_directions=10, n_null=50)
        for _ in range(100)
    ]
    assert np.mean(np.array(shown) > 0) < 0.2
    assert np.mean(shown) < 0.002


def test_the_statistic_sees_coins():
    rng = np.random.default_rng(1)
    releases = rng.choice(COINS, size=5000) + 0.5 * rng.normal(size=(5000, 1))
    expected = _squared_distance(
        COINS[:, 0] / math.sqrt(1.25), np.array([0.5, 0.5]), 0.5 / math.sqrt(1.25)
    )
    found = slice_statistic(releases, rng=rng, n_directions=1)
    assert found == pytest.approx(expected / 2, rel=0.15)


def coin_releases(n, rng, noise=0.5):
    return rng.choice(COINS, size=n) + math.sqrt(noise) * rng.normal(size=(n, 1))


def test_a_function_that_tells_coins_from_gaussian():
    case = ORACLES["O-38"]["donsker_varadhan"]
    rng = np.random.default_rng(2)
    # half of the releases fit, the other half bounds
    releases = coin_releases(40_000, rng, case["noise"])
    found = donsker_varadhan_gap(
        releases, [0.0], [[1.5]], gamma=0.05, rng=rng, n_surrogates=4
    )
    assert case["bound"]["20000"] - 0.002 < found < case["gap"]
    simpler = donsker_varadhan_gap(
        releases, [0.0], [[1.5]], gamma=0.05, rng=rng, features="moments"
    )
    assert 0.03 < simpler < case["gap"]


@pytest.mark.slow
def test_a_function_of_more_draws():
    case = ORACLES["O-38"]["donsker_varadhan"]
    rng = np.random.default_rng(3)
    releases = coin_releases(400_000, rng, case["noise"])
    found = donsker_varadhan_gap(
        releases,
        [0.0],
        [[1.5]],
        gamma=0.05,
        rng=rng,
        features="moments",
        n_surrogates=3,
    )
    assert case["bound"]["200000"] - 0.002 < found < case["gap"]


def test_gaussian_releases_show_no_gap():
    rng = np.random.default_rng(4)
    found = [
        donsker_varadhan_gap(
            rng.normal(size=(1000, 1)), [0.0], [[1.0]], gamma=0.05, rng=rng
        )
        for _ in range(5)
    ]
    assert max(found) == 0


def test_estimated_moments_are_a_trap():
    # a Gaussian output: no gap at all, and the Gaussian bound is what is told
    variance, noise, estimate = 1.0, 1.0, 3.0
    truth = math.log(2) / 2
    total, wide = variance + noise, estimate
    # divergence of the release from a Gaussian of the wrong variance
    divergence = (total / wide - 1 - math.log(total / wide)) / 2
    assert divergence > 0.03
    # subtracted from the Gaussian bound, it promises less than is told
    assert log_det([[variance]], [[noise]]) - divergence < truth - 0.03
    # the identity for any Gaussian: nodes of the output's law
    nodes, masses = np.polynomial.hermite_e.hermegauss(40)
    terms = surrogate_terms(nodes[:, None], [[noise]], [0.0], [[wide]])
    mean = terms @ masses / masses.sum()
    assert mean - divergence == pytest.approx(truth, abs=1e-10)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_terms_with_the_moments_of_the_release(seed, d):
    rng = np.random.default_rng(seed)
    outputs = rng.normal(size=(10, d))
    noise = np.diag(rng.uniform(0.1, 2, size=d))
    spread = np.atleast_2d(np.cov(outputs.T, bias=True))
    terms = surrogate_terms(outputs, noise, outputs.mean(axis=0), spread + noise)
    assert terms.mean() == pytest.approx(log_det(spread, noise), rel=1e-9)
    # any other Gaussian bounds it less sharply
    others = surrogate_terms(outputs, noise, outputs[0], np.eye(d))
    assert others.mean() >= terms.mean() - 1e-9


@pytest.mark.every_run
def test_the_published_deviation_of_decoders():
    case = ORACLES["O-37"]
    found = decoder_deviation(case["n_samples"], case["bound"], case["gamma"])
    assert found == pytest.approx(case["deviation"], abs=1e-7)
    # of a single function, on one side
    single = case["bound"] * math.sqrt(-math.log(case["gamma"]) / 2e4)
    assert single == pytest.approx(case["hoeffding"], abs=1e-7)
    # the published sample size brings it to a tenth of a nat
    n = case["sample_size"]
    assert decoder_deviation(n, 5.0, 0.05, 1 / math.sqrt(n)) <= 0.1
    assert decoder_deviation(n - 1, 5.0, 0.05, 1 / math.sqrt(n - 1)) > 0.1


@pytest.mark.parametrize(
    "changes, name",
    [
        ({"atoms": [1.0]}, "atoms"),
        ({"atoms": [[1.0, 2.0]]}, "atoms"),
        ({"atoms": [[math.nan], [0.0]]}, "atoms"),
        ({"noise_covariance": [[0.0]]}, "noise_covariance"),
        ({"weights": [1.0]}, "weights"),
        ({"bases": [[[2.0]]]}, "bases"),
        ({"bases": [np.eye(2)]}, "bases"),
    ],
)
def test_bad_inputs_of_projections(changes, name):
    good = {"atoms": COINS, "noise_covariance": [[1.0]]}
    with pytest.raises(ValueError, match=f"'{name}'"):
        sliced_gap(**{**good, **changes})


@pytest.mark.parametrize(
    "changes, name",
    [
        ({"releases": [[0.0]] * 3}, "releases"),
        ({"releases": [[0.0, 1.0]] * 9}, "releases"),
        ({"mean": [0.0, 1.0]}, "releases"),
        ({"covariance": [[0.0]]}, "covariance"),
        ({"gamma": 1.0}, "gamma"),
        ({"features": "cosines"}, "features"),
        ({"clip": 0.0}, "clip"),
        ({"penalty": 0.0}, "penalty"),
        ({"n_surrogates": 0}, "n_surrogates"),
    ],
)
def test_bad_inputs_of_functions(changes, name):
    good = {
        "releases": [[0.0]] * 9,
        "mean": [0.0],
        "covariance": [[1.0]],
        "gamma": 0.05,
        "rng": np.random.default_rng(0),
    }
    with pytest.raises(ValueError, match=f"'{name}'"):
        donsker_varadhan_gap(**{**good, **changes})


def test_other_bad_inputs():
    rng = np.random.default_rng(0)
    with refused(ValueError, "sliced.statistic_too_few_draws"):
        slice_statistic([[1.0], [2.0]], rng=rng)
    draws = rng.normal(size=(20, 1))
    for name, bad in [("n_directions", 0), ("level", 1.0), ("n_null", 0)]:
        with pytest.raises(ValueError, match=f"'{name}'"):
            slice_statistic(draws, rng=rng, **{name: bad})
    for outputs, mean, spread in [
        ([[1.0]], [0.0, 0.0], np.eye(2)),
        ([[1.0, 0.0]], [0.0], np.eye(2)),
        ([[1.0, 0.0]], [0.0, 0.0], np.eye(1)),
        ([1.0, 0.0], [0.0, 0.0], np.eye(2)),
    ]:
        with refused(ValueError, "pac.surrogate_dimensions_differ"):
            surrogate_terms(outputs, np.eye(2), mean, spread)
    for position, name in enumerate(["n_samples", "bound", "gamma", "rademacher"]):
        arguments = [10, 1.0, 0.05, 0.0]
        arguments[position] = -1
        with pytest.raises(ValueError, match=f"'{name}'"):
            decoder_deviation(*arguments)
    assert_allclose(surrogate_terms([[0.0]], [[1.0]], [0.0], [[1.0]]), 0, atol=1e-15)
