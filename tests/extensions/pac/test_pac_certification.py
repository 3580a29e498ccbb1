"""Certificates of mutual information: how often they miss, how much they add."""

import inspect
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import entr, softmax
from scipy.stats import binom, multivariate_normal, norm
from sklearn.linear_model import LogisticRegression

import skpuffer.information as information
from skpuffer.exceptions import UncertifiedError
from skpuffer.information import (
    InformationBound,
    OutputModel,
    certify_scale,
    density_bound,
    entropy_bound,
    largest_bound,
    log_det,
    mean_lower_bound,
    mean_upper_bound,
    retry_scale,
    waterfill,
)
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "residual_pac_gaussian.json").read_text(
        "utf-8"
    )
)["channels"]

SIGN, FOUR, GRID = ORACLES["sign"], ORACLES["four"], ORACLES["grid"]


def posterior_entropies(case, n, rng):
    """Entropies of the exact posteriors of `n` draws of a release."""
    atoms, weights = np.array(case["atoms"], float), np.array(case["weights"])
    noise = np.array(case["noise_covariance"])
    drawn = rng.choice(len(atoms), size=n, p=weights)
    y = atoms[drawn] + rng.multivariate_normal(np.zeros(len(noise)), noise, n)
    inverse = np.linalg.inv(noise)
    away = y[:, None] - atoms
    logits = np.log(weights) - np.einsum("nmi,ij,nmj->nm", away, inverse, away) / 2
    return entr(softmax(logits, axis=1)).sum(axis=1)


def bound_of(case, n, rng, method="betting", gamma=0.05):
    entropy, n_atoms = float(entr(case["weights"]).sum()), len(case["atoms"])
    draws = posterior_entropies(case, n, rng)
    return entropy_bound(draws, entropy, n_atoms, gamma=gamma, method=method)


@pytest.mark.parametrize("case", [SIGN, FOUR])
@pytest.mark.parametrize("method", ["betting", "bernstein"])
def test_bounds_are_above_what_is_told(case, method):
    rng = np.random.default_rng(1)
    for _ in range(20):
        found = bound_of(case, 2000, rng, method)
        assert found.certified
        assert found.estimate < found.upper < case["information"] + 0.15
        assert found.upper >= case["information"]


@pytest.mark.slow
@pytest.mark.parametrize("case", [SIGN, FOUR])
@pytest.mark.parametrize("method", ["betting", "bernstein", "asymptotic"])
def test_misses_are_as_rare_as_stated(case, method, n_trials):
    n, gamma, rng = n_trials(400, least=40), 0.05, np.random.default_rng(2)
    misses = sum(
        bound_of(case, 500, rng, method, gamma).upper < case["information"]
        for _ in range(n)
    )
    # what a rate of gamma leaves a chance of one in a thousand to
    most = binom.isf(1e-3, n, gamma)
    assert misses <= (2 * most if method == "asymptotic" else most)


@pytest.mark.slow
def test_the_count_of_misses_would_show_a_bound_that_is_none(n_trials):
    # the positive control: the estimate is below the truth every second time
    n, rng = n_trials(400, least=40), np.random.default_rng(3)
    misses = sum(
        bound_of(SIGN, 500, rng).estimate < SIGN["information"] for _ in range(n)
    )
    assert misses > 2 * binom.isf(1e-3, n, 0.05)


def test_slack_at_twenty_thousand_draws_of_sixteen_atoms():
    rng = np.random.default_rng(4)
    slacks = {
        method: (found := bound_of(GRID, 20_000, rng, method)).upper - found.estimate
        for method in ("betting", "bernstein", "asymptotic")
    }
    assert slacks["asymptotic"] < slacks["betting"] <= 0.006
    assert slacks["betting"] < slacks["bernstein"] <= 0.0075


def test_asymptotic_bounds_certify_nothing():
    found = bound_of(SIGN, 500, np.random.default_rng(5), "asymptotic")
    assert not found.certified
    with refused(UncertifiedError, "pac.asymptotic_method_certifies_nothing"):
        certify_scale(lambda scale, gamma: found, [1.0], 10.0, 0.05)
    with refused(UncertifiedError, "pac.asymptotic_method_certifies_nothing"):
        retry_scale(lambda scale, gamma: found, 1.0, 10.0, 0.05)


@pytest.mark.parametrize("draws", [np.zeros(50), np.ones(50)])
@pytest.mark.parametrize("method", ["betting", "bernstein"])
def test_draws_that_never_vary_do_not_settle_it(draws, method):
    low = mean_lower_bound(draws, 0, 1, 0.05, method)
    high = mean_upper_bound(draws, 0, 1, 0.05, method)
    assert 0 <= low <= draws[0] <= high <= 1
    assert high - low > 0.05


def test_closed_forms_of_the_bounds():
    draws = np.random.default_rng(15).beta(2, 5, size=300)
    log_term, variance = math.log(2 / 0.05), draws.var(ddof=1)
    slack = math.sqrt(2 * variance * log_term / 300) + 7 * log_term / (3 * 299)
    found = mean_lower_bound(draws, 0, 1, 0.05, "bernstein")
    assert found == pytest.approx(draws.mean() - slack, rel=1e-12)
    error = 1.6448536269514722 * math.sqrt(variance / 300)
    found = mean_lower_bound(draws, 0, 1, 0.05, "asymptotic")
    assert found == pytest.approx(draws.mean() - error, rel=1e-12)


@pytest.mark.parametrize("law", ["wide", "mostly zero"])
def test_the_player_is_as_rich_as_it_takes_at_the_bound(law):
    rng = np.random.default_rng(16)
    draws = rng.uniform(size=80) if law == "wide" else rng.binomial(1, 0.3, size=80)
    gamma = 0.01
    bound = mean_lower_bound(draws, 0, 1, gamma)
    wealth, total, squares = 1.0, 0.5, 0.25
    for t, draw in enumerate(draws, start=1):
        # all that is known before this draw
        stake = math.sqrt(2 * math.log(1 / gamma) / (80 * squares / t))
        wealth *= 1 + min(stake, 0.75 / bound) * (draw - bound)
        total += draw
        squares += (draw - total / (t + 1)) ** 2
    assert 0 < bound < draws.mean()
    assert wealth == pytest.approx(1 / gamma, rel=1e-6)


@given(st.lists(st.floats(-2, 3), min_size=2, max_size=40), st.floats(1e-6, 0.4))
@pytest.mark.parametrize("method", ["betting", "bernstein"])
def test_the_two_sides_are_mirrors(method, draws, gamma):
    draws = np.array(draws)
    low = mean_lower_bound(draws, -2, 3, gamma, method)
    high = mean_upper_bound(-draws, -3, 2, gamma, method)
    assert low == pytest.approx(-high, abs=1e-12)
    assert -2 <= low <= draws.mean() + 1e-9


@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 0.1))
def test_rarer_failure_is_a_wider_bound(seed, gamma):
    draws = np.random.default_rng(seed).beta(0.3, 1, size=200)
    for method in ("betting", "bernstein", "asymptotic"):
        wide = mean_lower_bound(draws, 0, 1, gamma, method)
        assert wide <= mean_lower_bound(draws, 0, 1, 2 * gamma, method) + 1e-12


@pytest.mark.slow
def test_betting_covers_skewed_draws(n_trials):
    # where the normal approximation fails: rare large values
    n, gamma, rng = n_trials(2000, least=200), 0.05, np.random.default_rng(6)
    draws = (rng.uniform(size=(n, 200)) < 0.02).astype(float)
    misses = {
        method: sum(mean_lower_bound(-d, -1, 0, gamma, method) > -0.02 for d in draws)
        for method in ("betting", "asymptotic")
    }
    assert misses["betting"] <= binom.isf(1e-3, n, gamma)
    assert misses["asymptotic"] > misses["betting"]


def linear_bound(told):
    return lambda scale, gamma: InformationBound(
        told / scale + 0.01 * math.log(1 / gamma), told / scale, gamma, "betting", 9
    )


def test_the_smallest_declared_scale_that_passes():
    scale, found = certify_scale(linear_bound(1.0), [8, 1, 2, 4], 0.4, gamma=0.05)
    # each of four at its share: two would pass at the whole of it only
    assert scale == 4
    assert found.upper == pytest.approx(0.25 + 0.01 * math.log(4 / 0.05))
    assert found.gamma == 0.05


def test_tries_share_the_probability_of_failure():
    shares = []

    def bound(scale, gamma):
        shares.append(gamma)
        return linear_bound(1.0)(scale, gamma)

    scale, found = retry_scale(bound, 1.0, 0.4, gamma=0.05, factor=2.0)
    assert scale == 4
    assert found.gamma == 0.05
    assert_allclose(shares, [0.025, 0.0125, 0.00625])
    assert sum(shares) < 0.05


def test_the_largest_of_several_bounds():
    bounds = [
        InformationBound(0.2, 0.15, 0.01, "betting", 500),
        InformationBound(0.3, 0.1, 0.02, "betting", 400),
    ]
    found = largest_bound(bounds)
    assert (found.upper, found.estimate, found.n_draws) == (0.3, 0.1, 400)
    assert found.gamma == pytest.approx(0.03)
    assert found.certified
    weak = InformationBound(0.1, 0.1, 0.01, "asymptotic", 400)
    assert not largest_bound([*bounds, weak]).certified
    with refused(ValueError, "pac.bounds_empty"):
        largest_bound([])


def test_noise_for_several_priors_is_certified_for_each():
    """Each takes its share of what may fail."""
    rng, names = np.random.default_rng(24), (SIGN, {**SIGN, "weights": [0.3, 0.7]})

    def bound(scale, gamma):
        return largest_bound(
            bound_of(
                {**case, "noise_covariance": [[scale**2]]}, 4000, rng, gamma=gamma / 2
            )
            for case in names
        )

    scale, found = retry_scale(bound, 0.5, 0.4, 0.05)
    assert found.upper <= 0.4
    for case in names:
        atoms = information.Atoms(case["atoms"], case["weights"])
        channel = information.MixtureChannel(atoms, [[scale**2]])
        bank = information.Bank.quadrature(atoms)
        assert 0.3 < channel.information(bank).value <= 0.4


def test_nothing_is_released_where_nothing_passes():
    with refused(UncertifiedError, "pac.no_declared_scale_certified"):
        certify_scale(linear_bound(1.0), [1, 2], 0.01, gamma=0.05)
    with refused(UncertifiedError, "pac.no_tried_scale_certified"):
        retry_scale(linear_bound(1.0), 1.0, 0.01, gamma=0.05, n_tries=3)


@pytest.mark.every_run
@pytest.mark.parametrize("regularisation", [1.0, 1e-3])
def test_a_weak_decoder_never_certifies(regularisation):
    # a decoder trained to tell the sixteen atoms from the release: its loss is above
    # the entropy that is left, so what it implies is below what is told
    rng = np.random.default_rng(7)
    atoms = np.array(GRID["atoms"], float)[:, 0]
    deviation = GRID["noise_covariance"][0][0] ** 0.5

    def releases(n):
        drawn = rng.integers(len(atoms), size=n)
        return (atoms[drawn] + deviation * rng.normal(size=n))[:, None], drawn

    decoder = LogisticRegression(C=regularisation, max_iter=1000)
    decoder.fit(*releases(1000))
    held_out, truth = releases(4000)
    losses = -decoder.predict_log_proba(held_out)[np.arange(4000), truth]
    implied = math.log(16) - losses.mean()
    error = losses.std() / 4000**0.5
    if regularisation < 1:
        assert implied + 5 * error < 0.7 * GRID["information"]
        # with no noise at all it would still imply less than half a nat
        clear = atoms[truth][:, None]
        certain = -decoder.predict_log_proba(clear)[np.arange(4000), truth]
        assert math.log(16) - certain.mean() < 0.6 < math.log(16)
    else:
        assert implied < GRID["information"] + 3 * error
    # such losses are refused as entropies of exact posteriors
    with refused(ValueError, "pac.entropies_out_of_range"):
        entropy_bound(losses, math.log(16), 16, gamma=0.05)


def test_no_certificate_takes_a_decoder():
    for name in information.__all__:
        thing = getattr(information, name)
        for parameter in inspect.signature(thing).parameters:
            assert parameter not in {
                "decoder",
                "classifier",
                "losses",
                "cross_entropy",
            }, name


def bimodal(n, rng):
    return rng.choice([-3.0, 3.0], size=(n, 1)) + rng.normal(0, 0.5, size=(n, 1))


@pytest.mark.parametrize(
    "size", [0, 1, pytest.param(2, marks=pytest.mark.slow)], ids=["S", "M", "L"]
)
def test_a_model_of_the_output_on_a_bimodal_prior(size):
    case = ORACLES["bimodal"]
    rng = np.random.default_rng(8)
    noise = waterfill([[9.25]], case["budget"])
    m, n = case["sizes"][size]
    model, fresh = OutputModel.fit(bimodal(m, rng), noise), bimodal(n, rng)
    found = model.bound(fresh, gamma=0.05, rng=rng, n_noise=1, method="bernstein")
    assert case["information"] < found.upper
    assert found.upper == pytest.approx(case["upper"][size], abs=0.02)
    sharper = model.bound(fresh, gamma=0.05, rng=rng, n_noise=4)
    assert case["information"] < sharper.upper
    assert sharper.upper - sharper.estimate < 0.6 * (found.upper - found.estimate)
    # below what a Gaussian of that covariance would tell
    assert sharper.upper < log_det([[9.25]], noise)


@pytest.mark.slow
@pytest.mark.parametrize("case", [SIGN, FOUR])
def test_the_model_of_few_points_misses_as_rarely_as_stated(case, n_trials):
    n, rng = n_trials(400, least=40), np.random.default_rng(22)
    atoms, noise = np.array(case["atoms"], float), case["noise_covariance"]

    def outputs(count):
        return atoms[rng.choice(len(atoms), size=count, p=case["weights"])]

    misses = controls = 0
    for _ in range(n):
        model = OutputModel.fit(outputs(200), noise)
        found = model.bound(outputs(500), gamma=0.05, rng=rng, n_noise=2)
        misses += found.upper < case["information"]
        controls += found.estimate < case["information"]
    most = binom.isf(1e-3, n, 0.05)
    # the control: the mean alone is below the truth too often for that
    assert misses <= most < controls


@pytest.mark.slow
def test_the_model_misses_as_rarely_as_stated(n_trials):
    case, rng = ORACLES["bimodal"], np.random.default_rng(9)
    n, noise = n_trials(400, least=40), waterfill([[9.25]], case["budget"])
    misses = 0
    for _ in range(n):
        model = OutputModel.fit(bimodal(100, rng), noise)
        found = model.bound(bimodal(500, rng), gamma=0.05, rng=rng, n_noise=2)
        misses += found.upper < case["information"]
    assert misses <= binom.isf(1e-3, n, 0.05)


def test_the_model_on_sixteen_atoms_keeps_its_slack():
    rng = np.random.default_rng(10)
    atoms, noise = np.array(GRID["atoms"], float), GRID["noise_covariance"]
    model = OutputModel.fit(rng.choice(atoms, size=4000), noise)
    found = model.bound(rng.choice(atoms, size=20_000), gamma=0.05, rng=rng, n_noise=16)
    assert GRID["information"] < found.upper
    assert found.upper - found.estimate < 0.0075


@given(
    st.integers(1, 3),
    st.floats(0.01, 0.99),
    st.floats(0.1, 5),
    st.integers(0, 2**32 - 1),
)
def test_no_loss_exceeds_its_bound(d, share, radius, seed):
    rng = np.random.default_rng(seed)
    training = rng.standard_t(2, size=(20, d))
    noise = np.diag(rng.uniform(0.01, 2, size=d))
    model = OutputModel.fit(training, noise, radius=radius, share=share)
    # the worst that may come, far out and with whatever noise
    outputs = 1e3 * rng.normal(size=(200, d))
    shifts = rng.normal(size=(200, d)) * rng.choice([0, 1, 10], size=(200, 1))
    losses = model.log_ratios(outputs, shifts)
    assert losses.max() <= model.largest + 1e-9
    assert losses.min() >= -model.floor
    inside = model.clip(outputs) - model.mean
    lengths = np.einsum("ni,ij,nj->n", inside, np.linalg.inv(model.spread), inside)
    assert np.all(lengths <= radius**2 * (1 + 1e-6))
    assert_allclose(model.clip(model.clip(outputs)), model.clip(outputs))


def test_losses_are_the_ratio_of_two_densities():
    rng = np.random.default_rng(11)
    training, noise = rng.normal(size=(5, 2)), np.array([[0.5, 0.1], [0.1, 0.3]])
    model = OutputModel.fit(training, noise, share=0.2)
    outputs, shifts = training[:3], rng.normal(size=(3, 2))
    y = outputs + shifts
    mixture = np.mean(
        [multivariate_normal(a, noise).pdf(y) for a in model.atoms], axis=0
    )
    wide = multivariate_normal(model.mean, model.spread + noise).pdf(y)
    expected = multivariate_normal(np.zeros(2), noise).logpdf(shifts)
    expected -= np.log(0.8 * mixture + 0.2 * wide)
    assert_allclose(model.log_ratios(outputs, shifts), expected, rtol=1e-10)


@pytest.mark.parametrize("far", [1e3, 1e7, 1e10])
def test_losses_of_outputs_far_from_each_other(far):
    """As those of the near ones alone, but for what the others weigh."""
    rng, noise = np.random.default_rng(23), [[1.0]]
    near = rng.normal(0, 2, size=(20, 1))
    model = OutputModel.fit(np.vstack([near, near + far]), noise)
    outputs, shifts = near[:5] + far, rng.normal(size=(5, 1))
    y = (outputs + shifts)[:, None] - (near + far)
    kernels = np.exp(-(y**2).sum(axis=2) / 2)
    expected = -(shifts[:, 0] ** 2) / 2 - np.log(0.95 * kernels.mean(axis=1) / 2)
    # the wide part adds next to nothing
    assert_allclose(model.log_ratios(outputs, shifts), expected, rtol=2e-2 / far**0.25)


def test_the_floor_of_a_model_is_that_of_its_bound():
    fresh = bimodal(200, np.random.default_rng(17))
    bounds = [
        OutputModel.fit(fresh, [[1.0]], floor=floor).bound(
            fresh, gamma=0.05, rng=np.random.default_rng(18), method="bernstein"
        )
        for floor in (0.01, 5.0, 50.0)
    ]
    # little is cut between five and fifty, and the range is wider
    assert bounds[0].estimate > bounds[1].estimate
    assert bounds[1].upper + 0.5 < bounds[2].upper


def test_a_ball_is_within_the_ellipsoid():
    rng = np.random.default_rng(12)
    training = rng.normal(size=(50, 2))
    training /= np.maximum(1, np.linalg.norm(training, axis=1, keepdims=True))
    model = OutputModel.fit(training, np.eye(2), ball=([0, 0], 1.0))
    angles = np.linspace(0, 2 * np.pi, 100)
    rim = np.c_[np.cos(angles), np.sin(angles)]
    assert_allclose(model.clip(rim), rim, atol=1e-12)


def test_a_single_wide_gaussian_certifies_the_gaussian_bound():
    # one atom of hardly any weight: what remains is the bound by the covariance
    rng = np.random.default_rng(13)
    training = rng.normal(size=(1000, 1))
    model = OutputModel.fit(training, [[1.0]], share=1 - 1e-9)
    fresh = rng.normal(size=(20_000, 1))
    found = model.bound(fresh, gamma=0.05, rng=rng, n_noise=1)
    assert found.estimate == pytest.approx(log_det([[1.0]], [[1.0]]), abs=0.02)
    assert found.upper > math.log(2) / 2


@pytest.mark.parametrize(
    "changes, name",
    [
        ({"entropies": [0.1, 0.8]}, "entropies"),
        ({"entropies": [-0.1, 0.1]}, "entropies"),
        ({"entropies": [0.1]}, "entropies"),
        ({"entropies": [math.nan, 0.1]}, "entropies"),
        ({"entropy": 0.8}, "entropy"),
        ({"entropy": -0.1}, "entropy"),
        ({"n_secrets": 1}, "n_secrets"),
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": 1.0}, "gamma"),
        ({"method": "clt"}, "method"),
    ],
)
def test_bad_inputs_of_the_posterior_route(changes, name):
    good = {"entropies": [0.1, 0.2], "entropy": 0.6, "n_secrets": 2, "gamma": 0.05}
    with pytest.raises(ValueError, match=f"'{name}'"):
        entropy_bound(**{**good, **changes})


def test_draws_of_noise_to_one_output_count_once():
    ratios = np.random.default_rng(14).uniform(-1, 1, size=(300, 4))
    found = density_bound(ratios, 2.0, gamma=0.05, floor=3.0)
    assert found.n_draws == 300
    same = density_bound(ratios.mean(axis=1), 2.0, gamma=0.05, floor=3.0)
    assert found.upper == pytest.approx(same.upper)
    # what is raised to the floor raises the mean
    assert density_bound(ratios, 2.0, gamma=0.05, floor=0.1).estimate > found.estimate


@pytest.mark.parametrize(
    "changes, name",
    [
        ({"log_ratios": [0.1]}, "log_ratios"),
        ({"log_ratios": [[[0.1]]]}, "log_ratios"),
        ({"log_ratios": [0.1, math.inf]}, "log_ratios"),
        ({"largest": 0.15}, "largest"),
        ({"largest": math.inf}, "largest"),
        ({"floor": -1.0}, "floor"),
        ({"gamma": 0.0}, "gamma"),
        ({"method": "clt"}, "method"),
    ],
)
def test_bad_inputs_of_densities(changes, name):
    good = {"log_ratios": [0.1, 0.2], "largest": 1.0, "gamma": 0.05}
    with pytest.raises(ValueError, match=f"'{name}'"):
        density_bound(**{**good, **changes})


def test_bad_inputs_of_means():
    with refused(ValueError, "pac.bounds_not_ordered_finite"):
        mean_lower_bound([0.1, 0.2], 1, 0, 0.05)
    with refused(ValueError, "pac.bounds_not_ordered_finite"):
        mean_upper_bound([0.1, 0.2], 0, math.inf, 0.05)
    with refused(ValueError, "pac.values_outside_bounds"):
        mean_lower_bound([0.1, 1.2], 0, 1, 0.05)
    with refused(ValueError, "pac.values_too_few_draws"):
        mean_upper_bound([[0.1, 0.2]], 0, 1, 0.05)


@pytest.mark.parametrize(
    "changes, name",
    [
        ({"scales": []}, "scales"),
        ({"scales": [0.0, 1.0]}, "scales"),
        ({"budget": 0.0}, "budget"),
        ({"gamma": 1.0}, "gamma"),
    ],
)
def test_bad_inputs_of_declared_scales(changes, name):
    good = {"scales": [1.0], "budget": 1.0, "gamma": 0.05}
    with pytest.raises(ValueError, match=f"'{name}'"):
        certify_scale(linear_bound(1.0), **{**good, **changes})


@pytest.mark.parametrize(
    "changes, name",
    [
        ({"scale": 0.0}, "scale"),
        ({"budget": -1.0}, "budget"),
        ({"gamma": 0.0}, "gamma"),
        ({"factor": 1.0}, "factor"),
        ({"n_tries": 0}, "n_tries"),
    ],
)
def test_bad_inputs_of_tries(changes, name):
    good = {"scale": 1.0, "budget": 1.0, "gamma": 0.05}
    with pytest.raises(ValueError, match=f"'{name}'"):
        retry_scale(linear_bound(1.0), **{**good, **changes})


@pytest.mark.parametrize(
    "changes, name",
    [
        ({"outputs": [[1.0]]}, "outputs"),
        ({"outputs": [[1.0], [1.0]]}, "outputs"),
        ({"outputs": [[1.0], [math.inf]]}, "outputs"),
        ({"outputs": [[1.0], [1.0, 2.0]]}, "outputs"),
        ({"noise_covariance": [[0.0]]}, "noise_covariance"),
        ({"noise_covariance": np.eye(2)}, "noise_covariance"),
        ({"radius": 0.0}, "radius"),
        ({"radius": math.inf}, "radius"),
        ({"share": 1.0}, "share"),
        ({"floor": -1.0}, "floor"),
        ({"ridge": 0.0}, "ridge"),
        ({"ball": ([0.0], -1.0)}, "ball"),
        ({"ball": ([0.0], 1.0), "radius": 1.0}, "radius"),
    ],
)
def test_bad_inputs_of_the_model(changes, name):
    good = {"outputs": [[0.0], [1.0]], "noise_covariance": [[1.0]]}
    with pytest.raises(ValueError, match=f"'{name}'"):
        OutputModel.fit(**{**good, **changes})


def test_bad_inputs_of_draws():
    model = OutputModel.fit([[0.0], [1.0]], [[1.0]])
    rng = np.random.default_rng(0)
    with refused(ValueError, "pac.clip_outputs_shape_wrong", dim=1):
        model.bound([[1.0, 2.0]], gamma=0.05, rng=rng)
    with refused(ValueError, "pac.bound_needs_two_draws"):
        model.bound([[1.0]], gamma=0.05, rng=rng)
    with refused(ValueError, "parameter.array_not_finite", name="outputs"):
        model.clip([[math.nan]])
    with refused(ValueError, "pac.outputs_noise_shapes_differ"):
        model.log_ratios([[1.0], [2.0]], [[1.0]])
    with refused(ValueError, "parameter.count_too_small", name="n_noise"):
        model.bound([[1.0], [2.0]], gamma=0.05, rng=rng, n_noise=0)
    with refused(ValueError, "pac.model_atoms_not_table"):
        OutputModel([1.0], [[1.0]], [0.0], [[1.0]], 1.0)
    with refused(ValueError, "pac.model_field_shape_wrong", name="mean"):
        OutputModel([[1.0]], [[1.0]], [0.0, 1.0], [[1.0]], 1.0)
    with refused(ValueError, "pac.model_field_shape_wrong", name="spread"):
        OutputModel([[1.0]], [[1.0]], [0.0], np.eye(2), 1.0)


def test_the_truth_of_the_channels():
    # by quadrature, so that what is missed above is the truth
    for case in (SIGN, GRID):
        atoms = np.array(case["atoms"], float)
        deviation = case["noise_covariance"][0][0] ** 0.5
        y = np.linspace(atoms.min() - 12 * deviation, atoms.max() + 12 * deviation,
                        100_001)  # fmt: skip
        mixed = np.dot(case["weights"], norm.pdf(y, atoms, deviation))
        entropy = np.trapezoid(entr(mixed), y)
        told = entropy - math.log(2 * math.pi * math.e * deviation**2) / 2
        assert told == pytest.approx(case["information"], rel=1e-6)
