"""Gaussian noise within a budget: published values, orderings, refusals."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm

from skpuffer.information import (
    algorithm1,
    closed_form,
    efficient,
    inflated_covariance,
    log_det,
    proportional,
    waterfill,
)
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "residual_pac_gaussian.json").read_text(
        "utf-8"
    )
)

RULES = [waterfill, closed_form, proportional, efficient]


@st.composite
def covariances(draw, least=1e-3):
    d = draw(st.integers(1, 4))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    variances = np.exp(rng.uniform(math.log(least), math.log(1e3), size=d))
    matrix = (axes * variances) @ axes.T
    return (matrix + matrix.T) / 2


budgets = st.floats(0.01, 20)


@pytest.mark.every_run
def test_two_coordinates():
    case = ORACLES["O-1"]
    filled = waterfill(case["covariance"], case["budget"])
    assert_allclose(filled, np.diag(case["waterfill"]), rtol=1e-7)
    assert np.trace(filled) == pytest.approx(case["waterfill_trace"], rel=3e-8)
    linear = closed_form(case["covariance"], case["budget"])
    assert_allclose(linear, np.diag(case["closed_form"]), rtol=1e-6)
    found = log_det(case["covariance"], linear)
    assert found == pytest.approx(case["closed_form_log_det"], rel=1e-6)


@pytest.mark.every_run
def test_two_coordinates_at_other_budgets():
    covariance = ORACLES["O-1"]["covariance"]
    for case in ORACLES["O-2"]:
        filled = waterfill(covariance, case["budget"])
        assert_allclose(filled, np.diag(case["waterfill"]), rtol=1e-6)
        assert np.trace(filled) == pytest.approx(case["waterfill_trace"], rel=3e-8)
        linear = closed_form(covariance, case["budget"])
        assert_allclose(linear, np.diag(case["closed_form"]), rtol=1e-6)
        found = log_det(covariance, linear)
        assert found == pytest.approx(case["closed_form_log_det"], rel=1e-5)


@pytest.mark.every_run
def test_correlated_coordinates():
    case = ORACLES["O-3"]
    covariance, budget = case["covariance"], case["budget"]
    filled = waterfill(covariance, budget)
    assert_allclose(filled, case["waterfill"], rtol=1e-7)
    assert_allclose(np.linalg.eigvalsh(filled), case["waterfill_eigenvalues"], 1e-7)
    linear = closed_form(covariance, budget)
    assert np.trace(linear) == pytest.approx(case["closed_form_trace"], rel=1e-6)
    found = log_det(covariance, linear)
    assert found == pytest.approx(case["closed_form_log_det"], rel=1e-6)
    by_axes = efficient(covariance, budget)
    assert_allclose(by_axes, case["efficient"], rtol=1e-12)
    found = log_det(covariance, by_axes)
    assert found == pytest.approx(case["efficient_log_det"], rel=1e-6)


@pytest.mark.every_run
def test_one_coordinate():
    case = ORACLES["O-4"]
    assert waterfill([[1]], case["budget"])[0, 0] == pytest.approx(case["waterfill"])
    assert closed_form([[1]], case["budget"])[0, 0] == pytest.approx(1)
    # a single eigenvalue is filled in closed form
    assert waterfill([[1]], 0.5)[0, 0] == pytest.approx(1 / (math.e - 1), rel=1e-10)


@pytest.mark.every_run
def test_three_coordinates():
    case = ORACLES["O-5"]
    covariance = np.diag(case["variances"])
    linear = closed_form(covariance, case["budget"])
    assert_allclose(linear, np.diag(case["closed_form"]), rtol=1e-6)
    found = log_det(covariance, linear)
    assert found == pytest.approx(case["closed_form_log_det"], rel=1e-6)
    # the power at half a nat is the square of the sum of deviations
    assert np.trace(linear) == pytest.approx(6**2, rel=1e-6)
    filled = np.trace(waterfill(covariance, case["budget"]))
    assert filled == pytest.approx(case["waterfill_trace"], rel=3e-8)


@pytest.mark.every_run
def test_both_branches_of_the_published_rule():
    for case in ORACLES["O-6"]:
        parameters = {k: case[k] for k in ("radius", "c", "v", "beta_prime")}
        noise = algorithm1(case["covariance"], **parameters)
        assert_allclose(noise, np.diag(case["variances"]), rtol=1e-7)
        found = log_det(case["covariance"], noise)
        assert found == pytest.approx(case["log_det"], rel=1e-6)


def test_the_published_rule_is_isotropic_where_no_eigenvalue_leads():
    noise = algorithm1(np.diag([9.0, 1]), v=0.4, beta_prime=0.1, c=10, radius=5)
    assert_allclose(noise, np.eye(2) * (10 + 20) / 0.8)


@pytest.mark.every_run
def test_waterfill_is_a_fixed_point():
    case = ORACLES["O-1"]
    covariance = np.array(case["covariance"], float)
    noise = waterfill(covariance, case["budget"])
    posterior = np.linalg.inv(np.linalg.inv(covariance) + np.linalg.inv(noise))
    right = case["multiplier"] / 2 * np.diag(posterior)
    assert_allclose(np.diag(noise) ** 2, ORACLES["O-7"]["both_sides"], rtol=1e-7)
    assert_allclose(right, ORACLES["O-7"]["both_sides"], rtol=1e-7)


def _told(points, masses, variance):
    """Mutual information of few points through Gaussian noise, by quadrature."""
    y = np.linspace(min(points) - 12 * variance**0.5, max(points) + 12 * variance**0.5,
                    200_001)  # fmt: skip
    density = norm.pdf(y, np.array(points)[:, None], variance**0.5)
    mixed = np.dot(masses, density)
    safe = np.where(mixed > 0, mixed, 1)
    entropy = -np.trapezoid(mixed * np.log(safe), y)
    return entropy - math.log(2 * math.pi * math.e * variance) / 2


@pytest.mark.every_run
def test_the_published_rule_may_leak_more_than_plain_noise():
    # Proposition 3(i) of Residual-PAC: never, it says
    case = ORACLES["O-27"]
    p, outlier = case["probability"], case["outlier"]
    covariance = np.diag([1, p * (1 - p) * outlier**2])
    noises = {
        "algorithm1": algorithm1(
            covariance,
            v=case["v"],
            beta_prime=case["budget"] - case["v"],
            c=case["c"],
            radius=case["radius"],
        ),
        "closed_form": closed_form(covariance, case["budget"]),
        "waterfill": waterfill(covariance, case["budget"]),
    }
    told = {}
    for name, noise in noises.items():
        assert np.trace(noise) == pytest.approx(case["traces"][name], rel=1e-5)
        first, second = np.diag(noise)
        # independent coordinates through independent noise: what they tell adds up
        told[name] = math.log1p(1 / first) / 2
        told[name] += _told([0, outlier], [1 - p, p], second)
        assert told[name] == pytest.approx(case["information"][name], rel=1e-5)
    # more noise in all, and more told
    assert np.trace(noises["algorithm1"]) > np.trace(noises["closed_form"])
    assert told["algorithm1"] > max(told["closed_form"], told["waterfill"])


@pytest.mark.every_run
def test_the_papers_baseline_is_the_proportional_rule():
    for name in ("cifar10", "cifar100"):
        table = ORACLES["paper_budgets"][name]
        d = table["d"]
        # any spectrum of that trace
        covariance = np.diag(np.arange(1, d + 1) * 2 * table["trace"] / (d * (d + 1)))
        for budget, power in table["rows"]:
            noise = proportional(covariance, budget)
            assert np.trace(noise) == pytest.approx(power, rel=1e-4)


@pytest.mark.every_run
def test_confidence_costs_what_was_measured():
    case = ORACLES["O-40"]
    rng = np.random.default_rng(0)
    deviations = np.array(case["deviations"])
    radius = case["clip"] * np.linalg.norm(deviations)
    # of a standard normal clipped at three deviations
    tail = norm.sf(case["clip"])
    clipped = 1 - 2 * tail - 2 * case["clip"] * norm.pdf(case["clip"])
    clipped += 2 * case["clip"] ** 2 * tail
    exact = np.diag(deviations**2 * clipped)
    plain = np.trace(waterfill(exact, case["budget"]))
    for n, inflation, ratio in zip(
        case["n_draws"], case["inflation"], case["noise_ratio"], strict=True
    ):
        found, ratios = [], []
        for _ in range(20):
            draws = rng.normal(size=(n, 4)).clip(-case["clip"], case["clip"])
            draws *= deviations
            covariance, t = inflated_covariance(
                draws.T @ draws / n, n, radius=radius, gamma=case["gamma"]
            )
            # the truth is below the bound, as matrices are ordered
            assert np.linalg.eigvalsh(covariance - exact)[0] > 0
            found.append(t)
            ratios.append(np.trace(waterfill(covariance, case["budget"])) / plain)
        assert np.mean(found) == pytest.approx(inflation, rel=0.01)
        assert np.mean(ratios) == pytest.approx(ratio, rel=0.01)


def test_the_inflation_solves_its_equation():
    moment, n, radius, gamma = np.diag([2.0, 1]), 300, 3.0, 0.01
    covariance, t = inflated_covariance(moment, n, radius=radius, gamma=gamma)
    right = math.log(2 / gamma) * (radius**2 * (2 + t) + radius**2 * t / 3)
    assert n * t**2 / 2 == pytest.approx(right, rel=1e-9)
    assert_allclose(covariance, moment + t * np.eye(2))


@given(covariances(), budgets)
def test_waterfill_meets_the_budget_with_the_least_power(covariance, budget):
    filled = waterfill(covariance, budget)
    assert log_det(covariance, filled) == pytest.approx(budget, rel=1e-5)
    linear, shaped = closed_form(covariance, budget), proportional(covariance, budget)
    # by components, not in sum only
    values, vectors = np.linalg.eigh(covariance)
    by_axis = [((vectors.T @ m) * vectors.T).sum(axis=1) for m in (filled, linear)]
    assert np.all(by_axis[0] <= by_axis[1] * (1 + 1e-6) + 1e-9 * by_axis[1].max())
    assert np.trace(filled) <= np.trace(shaped) * (1 + 1e-9)
    assert log_det(covariance, shaped) == pytest.approx(budget, rel=1e-5)
    for noise in (linear, efficient(covariance, budget)):
        assert log_det(covariance, noise) <= budget * (1 + 1e-9)


@given(covariances(), budgets, st.floats(0.05, 0.95), st.floats(1e-6, 10))
def test_the_published_rule_takes_more_noise_on_known_covariance(
    covariance, budget, share, c
):
    noise = algorithm1(
        covariance,
        v=share * budget,
        beta_prime=(1 - share) * budget,
        c=c,
        radius=40.0,
    )
    assert np.trace(noise) >= np.trace(waterfill(covariance, budget)) * (1 - 1e-9)


@given(covariances(), budgets, st.floats(1.01, 5))
@pytest.mark.parametrize("rule", RULES)
def test_more_budget_takes_less_noise(rule, covariance, budget, factor):
    # as matrices are ordered: the second release is a degraded copy of the first
    more, less = rule(covariance, budget), rule(covariance, factor * budget)
    assert np.linalg.eigvalsh(more - less)[0] >= -1e-9 * np.trace(more)


@given(covariances(), budgets, st.floats(1e-20, 1e20))
@pytest.mark.parametrize("rule", RULES)
def test_units_do_not_matter(rule, covariance, budget, unit):
    expected = rule(covariance, budget)
    found = rule(unit * covariance, budget) / unit
    assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.trace(expected))


@given(covariances(), budgets)
def test_efficient_in_the_eigenbasis_is_the_closed_form(covariance, budget):
    _, vectors = np.linalg.eigh(covariance)
    expected = closed_form(covariance, budget)
    found = efficient(covariance, budget, basis=vectors)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.trace(expected))


@given(covariances(), budgets, st.integers(0, 2**32 - 1))
def test_efficient_holds_in_any_basis(covariance, budget, seed):
    # rotated back: the diagonal in the basis alone would break the budget
    shape = covariance.shape
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=shape))[0]
    noise = efficient(covariance, budget, basis=basis)
    assert log_det(covariance, noise) <= budget * (1 + 1e-9)


@pytest.mark.parametrize("budget", [1e-12, 25, 200])
def test_extreme_budgets(budget):
    covariance = np.diag([1, 1e-3, 1e3])
    noise = waterfill(covariance, budget)
    assert log_det(covariance, noise) == pytest.approx(budget, rel=1e-6)


@given(st.floats(1e-6, 30))
def test_the_budget_holds_to_the_last_digit(budget):
    for rule in (waterfill, proportional):
        noise = rule([[1.0]], budget)[0, 0]
        assert math.log1p(1 / noise) / 2 <= budget


def test_constant_coordinates_get_no_noise():
    assert not efficient(np.zeros((2, 2)), 0.5, basis=np.eye(2)).any()
    covariance = np.diag([4.0, 0, 1])
    for rule in RULES:
        noise = rule(covariance, 0.5)
        assert not noise[1].any()
        assert not noise[:, 1].any()
        assert noise[0, 0] > 0
        assert noise[2, 2] > 0
        kept = np.ix_([0, 2], [0, 2])
        assert_allclose(noise[kept], rule(covariance[kept], 0.5), rtol=1e-6)
        assert log_det(covariance, noise) <= 0.5 + 1e-9
        # the number of coordinates that vary, not of all of them
        assert not rule(np.zeros((2, 2)), 0.5).any()
    assert log_det(np.zeros((2, 2)), np.zeros((2, 2))) == 0


def test_a_direction_that_seems_constant_gets_noise():
    # two coordinates that sum to one as far as floats tell: a variance of round-off
    # cannot be told from one that is hidden by it
    covariance = np.array([[1.0, -1], [-1, 1]])
    for rule in (waterfill, closed_form, proportional):
        noise = rule(covariance, 0.5)
        assert np.linalg.eigvalsh(noise)[0] > 0
        assert np.isfinite(log_det(covariance, noise))


def test_gaussian_rules_never_stop_at_the_entropy():
    # a sign has no more than log 2 to tell; the bound by its covariance adds noise at
    # any budget, where exact accounting needs none
    for rule in RULES:
        assert rule([[1.0]], 2 * math.log(2))[0, 0] > 0.05


def test_noise_in_the_coordinates_of_the_basis_alone_would_break_the_budget():
    # the published rule returns the diagonal and leaves out the rotation back
    covariance, budget = np.diag([100.0, 0.01]), 0.5
    basis = np.array([[0.0, 1], [1, 0]])
    noise = efficient(covariance, budget, basis=basis)
    assert log_det(covariance, noise) <= budget
    assert log_det(covariance, basis.T @ noise @ basis) > 4 * budget


def test_what_did_not_vary_in_a_sample_is_covered_by_the_confidence_rule():
    # one draw in a hundred moves the second coordinate, and none of these did
    covariance, t = inflated_covariance(np.diag([1.0, 0]), 50, radius=2.0, gamma=0.05)
    assert np.linalg.eigvalsh(covariance)[0] == pytest.approx(t)
    assert np.linalg.eigvalsh(waterfill(covariance, 0.5))[0] > 0
    assert waterfill(np.diag([1.0, 0]), 0.5)[1, 1] == 0


def test_no_noise_where_something_varies_is_no_bound():
    assert log_det(np.eye(2), np.diag([1.0, 0])) == math.inf
    assert log_det(np.eye(1), np.zeros((1, 1))) == math.inf


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("budget", [0, -1.0, math.nan, math.inf, 1e-200, True, "1"])
def test_budgets_that_are_none(rule, budget):
    with refused(
        (TypeError, ValueError),
        (
            "parameter.is_nan",
            "parameter.not_positive",
            "parameter.not_real_number",
            "parameter.size_not_workable",
        ),
    ):
        rule(np.eye(2), budget)


@pytest.mark.parametrize("rule", [waterfill, proportional])
def test_budgets_at_which_noise_vanishes(rule):
    with refused(ValueError, "gaussian.budget_noise_vanishes"):
        rule(np.eye(1), 1e4)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "covariance",
    [
        [[1.0, 2.0]],
        [[1.0, 0.5], [0.4, 1.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[np.nan]],
        [[np.inf]],
        1.0,
        [],
    ],
)
def test_matrices_that_are_no_covariance(rule, covariance):
    with refused(
        ValueError,
        (
            "parameter.array_not_finite",
            "parameter.covariance_not_positive_definite",
            "parameter.covariance_not_square",
            "parameter.covariance_not_symmetric",
        ),
    ):
        rule(covariance, 0.5)


def test_other_bad_inputs():
    with refused(ValueError, "gaussian.basis_not_orthonormal"):
        efficient(np.eye(2), 0.5, basis=[[1, 1], [0, 1]])
    with refused(ValueError, "gaussian.basis_shape_wrong"):
        efficient(np.eye(2), 0.5, basis=np.eye(3))
    with refused(ValueError, "gaussian.covariance_shapes_differ"):
        log_det(np.eye(2), np.eye(3))
    with refused(
        ValueError,
        "parameter.covariance_not_positive_definite",
        name="noise_covariance",
    ):
        log_det(np.eye(2), -np.eye(2))
    good = {"v": 0.4, "beta_prime": 0.1, "c": 1e-4, "radius": 5.0}
    for name in good:
        with pytest.raises(ValueError, match=f"'{name}'"):
            algorithm1(np.eye(2), **{**good, name: 0.0})
    with refused(ValueError, "gaussian.radius_below_second_moment"):
        inflated_covariance(np.eye(2), 100, radius=1.0, gamma=0.05)
    with refused(ValueError, "parameter.probability_out_of_range", name="gamma"):
        inflated_covariance(np.eye(2), 100, radius=2.0, gamma=1)
    with refused(ValueError, "parameter.count_too_small", name="n_draws"):
        inflated_covariance(np.eye(2), 0, radius=2.0, gamma=0.05)
    with refused(
        ValueError, "parameter.covariance_not_positive_definite", name="second_moment"
    ):
        inflated_covariance([[1.0, 2], [2, 1]], 10, radius=2.0, gamma=0.05)
