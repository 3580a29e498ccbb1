"""What remains unknown: references, and values that no release can have."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import entr
from scipy.stats import logistic

from skpuffer.information import (
    ResidualReport,
    alphabet_value,
    cross_entropy_value,
    gaussian_value,
    logistic_value,
    membership_value,
    subset_value,
)
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "residual_pac_gaussian.json").read_text(
        "utf-8"
    )
)["O-36"]

NODES, MASSES = np.polynomial.hermite_e.hermegauss(200)
MASSES = MASSES / MASSES.sum()


def normal_entropy(variance):
    return math.log(2 * math.pi * math.e * variance) / 2


def test_four_inputs():
    masses = ORACLES["probabilities"]
    entropy = float(entr(masses).sum())
    assert entropy == pytest.approx(ORACLES["entropy"], abs=1e-7)
    report = ResidualReport(entropy, 0.5, alphabet_value(4))
    assert report.intrinsic == pytest.approx(ORACLES["intrinsic"], abs=1e-7)
    assert report.residual == pytest.approx(entropy - 0.5)
    assert report.residual_privacy == pytest.approx(report.intrinsic - 0.5)


def test_the_logistic_reference_of_a_normal_prior():
    for case in ORACLES["logistic"]:
        points = math.sqrt(case["variance"]) * NODES[:, None]
        value = logistic_value(points, MASSES)
        assert value == pytest.approx(case["value"], abs=1e-5)
        divergence = value - normal_entropy(case["variance"])
        assert divergence == pytest.approx(case["divergence"], abs=1e-5)
    # of the reference itself the value is its entropy
    grid = logistic.ppf((np.arange(100_000) + 0.5) / 100_000)[:, None]
    entropy = logistic_value(grid)
    assert entropy == pytest.approx(ORACLES["logistic_entropy"], abs=1e-3)


def test_the_entropy_of_a_reference_is_not_the_value():
    # N(0, 25) against the logistic: an entropy of 2 is said to serve as the value
    with refused(ValueError, "pac.value_below_entropy"):
        ResidualReport(normal_entropy(25), 0.1, ORACLES["logistic_entropy"])


def test_the_gaussian_reference():
    case = ORACLES["gaussian"]
    assert gaussian_value(case["covariance"]) == pytest.approx(case["value"], abs=1e-7)
    # the prior need not be Gaussian: two coins of the same moments have less entropy
    assert 2 * math.log(2) < gaussian_value(case["covariance"])


def test_one_record_is_not_a_subset():
    # the published one-hot index has the value log N; fifteen of thirty have more
    value = subset_value(30, 15)
    assert value == pytest.approx(math.log(math.comb(30, 15)))
    with refused(ValueError, "pac.value_below_entropy"):
        ResidualReport(value, 0.5, alphabet_value(30))
    assert subset_value(30, 1) == pytest.approx(alphabet_value(30))
    assert membership_value(30) > value


@pytest.mark.parametrize("achieved", [20.884, 20.889, 20.908, 22.896, 23.156, 27.687])
def test_published_residuals_that_no_release_leaves(achieved):
    # thirty fair memberships: losses of decoders that are worse than guessing
    entropy = membership_value(30)
    with refused(ValueError, "pac.residual_exceeds_entropy"):
        ResidualReport.of_residual(entropy, achieved, entropy)
    report = ResidualReport.of_residual(entropy, 20.294, entropy)
    assert report.information == pytest.approx(0.5, abs=1e-3)


@given(st.floats(0, 3), st.floats(0, 3), st.floats(0, 5), st.booleans())
def test_the_order_of_the_three(entropy, excess, information, discrete):
    report = ResidualReport(entropy, information, entropy + excess, discrete)
    assert report.residual_privacy <= report.intrinsic + 1e-12 <= 1e-12
    assert report.residual <= entropy
    if discrete:
        assert report.residual >= 0
    else:
        gap = report.intrinsic - report.residual_privacy
        assert gap == pytest.approx(information, abs=1e-9)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_value_is_never_below_the_entropy(n, seed):
    rng = np.random.default_rng(seed)
    prior, reference = rng.dirichlet(np.ones(n), size=2)
    value = cross_entropy_value(np.log(reference), prior)
    ResidualReport(float(entr(prior).sum()), 0.0, value)


@pytest.mark.parametrize(
    "function, arguments, name",
    [
        (alphabet_value, (0,), "n_values"),
        (subset_value, (3, 4), "size"),
        (subset_value, (3, -1), "size"),
        (subset_value, (0, 0), "n_records"),
        (membership_value, (0,), "n_records"),
        (gaussian_value, ([[1.0, 1], [1, 1]],), "covariance"),
        (gaussian_value, ([[-1.0]],), "covariance"),
        (cross_entropy_value, ([-math.inf, 0.0],), "log_densities"),
        (cross_entropy_value, ([],), "log_densities"),
        (cross_entropy_value, ([0.0], [0.5, 0.5]), "weights"),
        (logistic_value, ([1.0],), "points"),
        (logistic_value, ([[math.nan]],), "points"),
        (ResidualReport, (1.0, -0.1, 1.0), "information"),
        (ResidualReport, (1.0, 0.1, 0.5), "value"),
        (ResidualReport, (math.nan, 0.1, 0.5), "entropy"),
        (ResidualReport.of_residual, (1.0, 1.1, 1.0), "residual"),
    ],
)
def test_bad_inputs(function, arguments, name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        function(*arguments)
