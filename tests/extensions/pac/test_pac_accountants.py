"""Accountants of mutual information: their numbers, what they say, what they refuse."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skpuffer.accountants import PAC, Best, ResidualPAC
from skpuffer.exceptions import (
    CompositionError,
    PrivacyWarning,
    ScenarioError,
    Statement,
    UncertifiedError,
    UnsupportedError,
)
from skpuffer.information import (
    Atoms,
    Bank,
    LaplaceMarginal,
    MixtureChannel,
    ProductLaw,
    log_det,
    posterior_success,
)
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DegenerateGaussianNoise,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
)
from skpuffer.privacy import Notion, compose, mixed_information
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    QueryRelease,
    Sensitivity,
    Stage,
    VoteRelease,
)
from skpuffer.scenarios import RecordScenario, SimulatorScenario, SubsampleScenario
from tests.accountants.contract import Offering, Rumour, unread
from tests.extensions.pac.finite_priors import CORNERS, bits, line, prior
from tests.refused import refused as is_refused
from tests.refused import says, warned

SIGN = (-1.0, 1.0)


def power(found, dim=1):
    return float(np.sum(found.noise.variance(dim)))


def calibrated(accountant, case, seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return accountant.calibrate(*case, random_state=seed)


def true_information(case, noise, **options):
    """By a rule without randomness."""
    release, scenario = case
    fact = scenario.make(release, 2)
    atoms = Atoms(fact.draws, fact.weights, fact.memberships)
    channel = MixtureChannel(atoms, noise)
    bank = Bank.quadrature(atoms)
    if fact.memberships is None:
        return channel.information(bank).value
    return float(channel.secrets(bank).values.max())


# -- the noise that was published ------------------------------------------------------


@pytest.mark.parametrize(
    "points, budget, closed_form, waterfill, residual",
    [
        (np.reshape(SIGN, (-1, 1)), 0.5, 1.0, 0.5819767, 0.5001561),
        (CORNERS, 1.0, 12.5, 6.064, 1.1460312),
        (CORNERS, 0.5, 25.0, 17.56974, 16.70056),
        (np.reshape(range(16), (-1, 1)), 0.5, 21.25, 12.367005, 12.0351447),
        (np.reshape(range(16), (-1, 1)), 1.0, 10.625, 3.3259999, 2.9788189),
    ],
)
def test_noise_at_one_budget(points, budget, closed_form, waterfill, residual):
    case, dim = prior(points), np.shape(points)[1]
    by = {"closed_form": closed_form, "waterfill": waterfill}
    for method, expected in by.items():
        found = PAC(budget, method).calibrate(*case)
        assert power(found, dim) == pytest.approx(expected, rel=1e-4)
        assert found.certificate.confidence == 1.0
        assert found.certificate.certified
    found = calibrated(ResidualPAC(budget, "eigen"), case)
    # a certificate by draws costs some percent, and never more than water-filling
    assert (
        residual * 0.999
        <= power(found, dim)
        <= min(waterfill * (1 + 1e-6), 1.2 * residual)
    )
    assert found.certificate.mutual_information <= budget
    assert true_information(case, found.noise) <= budget


def test_two_humps():
    """Half of N(-3, 1/4), half of N(3, 1/4), as 400 atoms."""
    from scipy.stats import norm

    hump = norm.ppf((np.arange(200) + 0.5) / 200) / 2
    case = line(*(hump - 3), *(hump + 3))
    for method, expected in {"closed_form": 4.625, "waterfill": 1.44779}.items():
        found = PAC(1.0, method).calibrate(*case)
        assert power(found) == pytest.approx(expected, rel=2e-3)
    found = calibrated(ResidualPAC(1.0), case)
    assert 0.29 <= power(found) <= 0.294976 * 1.25


@pytest.mark.parametrize(
    "budget, waterfill, residual",
    [
        (0.05, 8.7159710, 8.7159277),
        (0.25, 1.4130362, 1.4125130),
        (0.5, 0.5334787, 0.5325810),
    ],
)
def test_subsets_of_ten(budget, waterfill, residual):
    scenario = SubsampleScenario(np.arange(10.0)[:, None], 5, prior="enumerated")
    mean = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=5, dim=1)
    found = PAC(budget).calibrate(mean, scenario)
    assert power(found) == pytest.approx(waterfill, rel=1e-6)
    assert found.certificate.entropy == pytest.approx(5.5294291)
    best = ResidualPAC(budget, n_draws=5000).calibrate(mean, scenario, random_state=0)
    assert residual <= power(best) <= waterfill * (1 + 1e-6)


def ten_records(secret):
    """Sums of independent fair memberships of 0, …, 9, over five."""
    members = bits(10)
    fields = {"secret": secret}
    if secret == "record":
        fields["memberships"] = members
    return prior(members @ np.arange(10.0)[:, None] / 5, regime="design", **fields)


def test_budgets_of_records_need_less_noise_for_less():
    found = calibrated(ResidualPAC(0.05, n_draws=4000), ten_records("record"))
    # at 5.6584786 the record that leaks most leaks 0.05, and the table 0.2039
    assert 5.65 < power(found) < 5.6584786 * 1.25
    certificate = found.certificate
    assert certificate.notion == Notion.RECORD_MUTUAL_INFORMATION
    assert 0.15 < certificate.table_information < 0.23
    assert not certificate.composable
    whole = calibrated(ResidualPAC(0.05, n_draws=4000), ten_records("dataset"))
    assert power(whole) == pytest.approx(27.0987, rel=1e-3)
    assert whole.certificate.composable
    exact = ten_records("record")
    at = [5.6584786, 5.6584786 * 0.49]
    leaks = [true_information(exact, [[n]]) for n in at]
    assert leaks[0] == pytest.approx(0.05, rel=1e-5)
    assert leaks[1] > 0.07


def test_of_a_record_the_whole_table_is_bounded_by_the_covariance_too():
    found = PAC(0.05).calibrate(*ten_records("record"))
    assert power(found) == pytest.approx(27.0987460, rel=1e-6)
    # it is about all of the table, and so about each record
    assert found.certificate.notion == Notion.MUTUAL_INFORMATION
    assert found.certificate.implies("record_mutual_information")
    assert found.certificate.prior_success == 0.5


def test_budgets_of_records_do_not_add_up():
    members = bits(2)
    signs = 1 - 2 * members
    outputs = [signs[:, :1] * signs[:, 1:], signs[:, 1:].astype(float)]
    secrets = {"secret": "record", "memberships": members}
    equal, second = (prior(z, regime="design", **secrets) for z in outputs)
    accountant = ResidualPAC(0.3, n_draws=20_000)
    noise = GaussianNoise(1.0)
    first = accountant.certify(noise, *equal)
    # whether two bits are equal tells nothing of either, and all of a table of one bit
    assert first.mutual_information < 0.02
    assert 0.3368308 <= first.table_information < 0.36
    # so no noise at all would keep that budget
    with is_refused(UnsupportedError, "pac.budget_kept_without_noise"):
        accountant.calibrate(*equal)
    told = accountant.certify(noise, *second)
    assert told.mutual_information >= 0.3368308
    with is_refused(CompositionError, "compose.single_secret_information"):
        compose([first, told])
    # jointly 0.1736 of the first bit
    assert mixed_information([first, told]).mutual_information > 0.1735895


# -- what holds of any prior -----------------------------------------------------------

POINTS = arrays(
    float,
    st.tuples(st.integers(3, 6), st.integers(1, 3)),
    elements=st.floats(-10, 10).map(lambda x: round(x, 3)),
).filter(lambda z: np.ptp(z, axis=0).min() > 0.1)


@settings(max_examples=25, deadline=None)
@given(points=POINTS, budget=st.floats(0.01, 3.0))
def test_waterfilling_needs_the_least_noise(points, budget):
    case, dim = prior(points), np.shape(points)[1]
    found = {
        method: PAC(budget, method).calibrate(*case)
        for method in ("waterfill", "closed_form", "proportional", "efficient")
    }
    least = power(found["waterfill"], dim)
    covariance = Atoms(points).covariance
    for each in found.values():
        assert least <= power(each, dim) * (1 + 1e-6)
        leaks = log_det(covariance, each.noise.covariance_matrix(dim))
        assert leaks <= budget * (1 + 1e-9)
        assert each.certificate.mutual_information <= budget * (1 + 1e-9)


@settings(max_examples=5, deadline=None)
@given(points=POINTS, budget=st.floats(0.2, 0.9))
def test_what_is_certified_is_kept(points, budget):
    case, dim = prior(points), np.shape(points)[1]
    accountant = ResidualPAC(budget, n_draws=500)
    found = calibrated(accountant, case)
    if dim < 3:
        assert true_information(case, found.noise) <= budget * (1 + 1e-9)
    assert power(found, dim) <= power(PAC(budget).calibrate(*case), dim) * (1 + 1e-6)


def test_the_first_way_that_costs_less_is_taken():
    """Of small budgets a certificate by few draws costs more than water-filling."""
    found = calibrated(ResidualPAC(0.01, n_draws=500), line(0.0, 1.0, 2.0, 3.0))
    certificate = found.certificate
    assert certificate.confidence == 1.0 and certificate.mutual_information == 0.01
    assert any("for certain" in str(text) for text in certificate.assumptions)


@pytest.mark.parametrize("family", ["scale", "eigen", "full"])
def test_noise_is_in_the_units_of_the_release(family):
    units = (1.0, 100.0)
    accountant = ResidualPAC(0.5, family, n_draws=2000)
    for each in (PAC(0.5), accountant):
        plain = calibrated(each, prior(CORNERS))
        wide = prior(np.multiply(CORNERS, units), release={"units": units})
        scaled = calibrated(each, wide)
        ratio = np.sqrt(scaled.noise.variance(2) / plain.noise.variance(2))
        assert ratio == pytest.approx(units, rel=0.05)


def test_a_cost_moves_noise_to_where_it_is_cheap():
    dear = np.diag([100.0, 1.0])
    plain = calibrated(ResidualPAC(0.5, "full", n_draws=2000), prior(CORNERS))
    moved = calibrated(
        ResidualPAC(0.5, "full", n_draws=2000, cost=dear), prior(CORNERS)
    )
    spared, was = moved.noise.variance(2), plain.noise.variance(2)
    assert spared[0] < was[0] and spared[1] > was[1]


def test_coordinates_that_never_vary_get_no_noise():
    points = np.column_stack([np.arange(4.0), np.full(4, 7.0), [0, 1, 0, 1.0]])
    found = PAC(0.5).calibrate(*prior(points))
    assert isinstance(found.noise, GaussianNoise)
    assert found.noise.variance(3)[1] == 0
    said = found.certificate.assumptions
    assert says(said, "assume.constant_coordinates_released", count=1, dim=3)
    best = calibrated(ResidualPAC(0.5, n_draws=1000), prior(points))
    assert isinstance(best.noise, DegenerateGaussianNoise)
    assert best.noise.variance(3)[1] == 0
    # a direction that only seems not to vary gets some
    tilted = np.column_stack([np.arange(4.0), np.arange(4.0) / 3])
    found = calibrated(ResidualPAC(0.5, n_draws=1000), prior(tilted))
    assert isinstance(found.noise, CorrelatedGaussianNoise)


def test_an_output_that_tells_nothing_needs_no_noise():
    constant = prior(np.ones((3, 2)))
    for accountant in (PAC(0.5), ResidualPAC(0.5)):
        found = accountant.calibrate(*constant)
        assert found.noise.is_zero
        assert found.certificate.mutual_information == 0


def test_a_budget_for_everything_needs_no_noise():
    accountant = ResidualPAC(0.7)
    with warned(PrivacyWarning, "pac.budget_allows_all"):
        found = accountant.calibrate(*line(*SIGN))
    assert found.noise.is_zero and found.certificate.certified
    assert found.certificate.mutual_information == pytest.approx(math.log(2), rel=1e-2)
    # the bound by the covariance never comes to an end
    assert not PAC(0.7).calibrate(*line(*SIGN)).noise.is_zero


# -- attackers -------------------------------------------------------------------------


def success(noise, n=40_000):
    """How often the sign of an output is guessed right, by the best guess."""
    rng = np.random.default_rng(0)
    truth = rng.choice(SIGN, size=(n, 1))
    released = truth + noise.sample((n, 1), rng)
    return float(np.mean(np.sign(released) == truth))


@pytest.mark.every_run
def test_the_best_guess_is_as_good_as_allowed():
    found = calibrated(ResidualPAC(0.5), line(*SIGN))
    certificate = found.certificate
    assert certificate.prior_success == 0.5
    allowed = posterior_success(certificate.mutual_information, 0.5)
    assert success(found.noise) <= allowed
    # at less noise the same guess is better than the budget allows
    less = found.noise.with_scale(0.7 * np.asarray(found.noise.scale))
    assert success(less) > posterior_success(0.5, 0.5) + 0.01
    assert ResidualPAC(0.5).certify(less, *line(*SIGN)).mutual_information > 0.5


@pytest.mark.every_run
def test_membership_is_guessed_no_better_than_allowed():
    found = calibrated(ResidualPAC(0.05, n_draws=4000), ten_records("record"))
    release, scenario = ten_records("record")
    fact = scenario.make(release, 2)
    atoms = Atoms(fact.draws, fact.weights, fact.memberships)
    bank = Bank.quadrature(atoms)

    def best_guess(noise):
        return float(MixtureChannel(atoms, noise).secrets(bank).bayes_success.max())

    allowed = posterior_success(0.05, 0.5)
    assert 0.55 < best_guess(found.noise) <= allowed
    # of less noise the information is more than was allowed
    less = found.noise.with_scale(0.7 * np.asarray(found.noise.scale))
    assert true_information(ten_records("record"), less) > 0.05 * 1.3


def test_certificates_fail_no_more_often_than_they_say():
    """Through noise at which 0.6327202 nats leak."""
    accountant = ResidualPAC(0.5, confidence=0.8, n_draws=200, interval="bernstein")
    noise = GaussianNoise(0.5)
    stated = [
        accountant.certify(noise, *line(*SIGN)).mutual_information for _ in range(60)
    ]
    # 0.2 of 60 are 12; more than 20 would be one in three hundred
    assert sum(value < 0.6327202 for value in stated) <= 20
    sharper = replace_interval(accountant, "betting")
    assert np.median(sharper) < np.median(stated)


def replace_interval(accountant, interval):
    accountant = accountant.set_params(interval=interval)
    return [
        accountant.certify(GaussianNoise(0.5), *line(*SIGN)).mutual_information
        for _ in range(20)
    ]


@pytest.mark.parametrize("secret", ["dataset", "groups"])
def test_where_draws_certify_nothing_the_covariance_does(secret):
    """What an outlier leaks hardly falls until the noise reaches as far as it is."""
    points, weights = (-1.0, 1.0, 1e10), [0.49, 0.49, 0.02]
    codes = {"memberships": np.arange(3)[:, None]} if secret == "groups" else {}
    case = line(*points, weights=weights, secret=secret, **codes)
    # its own entropy is 0.098
    short = ResidualPAC(0.1, n_draws=500)
    # a limit of single tables is an estimate, of which a covariance knows nothing
    limited = ResidualPAC(0.1, n_draws=500, max_secret_leakage=4.0)
    seed = next(seed for seed in range(30) if not _is_certified(limited, case, seed))
    with is_refused(UncertifiedError, "pac.budget_uncertified_by_draws"):
        calibrated(limited, case, seed)
    found = calibrated(short, case, seed)
    kept = found.certificate
    assert kept.mutual_information == pytest.approx(0.1) and kept.confidence == 1.0
    filled = calibrated(PAC(0.1), line(*points, weights=weights))
    assert power(found) == pytest.approx(power(filled), rel=1e-6)
    assert true_information(case, found.noise) <= 0.1
    if secret == "groups":
        assert kept.table_information == pytest.approx(0.1)
        assert kept.notion == Notion.GROUP_MUTUAL_INFORMATION


def _is_certified(accountant, case, seed):
    try:
        calibrated(accountant, case, seed)
    except UncertifiedError:
        return False
    return True


# -- the exposed -----------------------------------------------------------------------


def test_an_outlier_is_seen():
    case = line(*np.linspace(-1, 1, 99), 50.0)
    with warned(PrivacyWarning, "pac.outlier_secret_leaks"):
        found = ResidualPAC(0.25).calibrate(*case, random_state=0)
    # at 0.707 it leaks 4.605 nats, log 100: it is known for certain
    assert 0.7 < power(found) < 0.9
    assert found.certificate.worst_leakage == pytest.approx(4.605, rel=0.01)
    with warned(PrivacyWarning, "pac.outlier_secret_leaks"):
        filled = PAC(0.25).calibrate(*case, random_state=0)
    assert power(filled) == pytest.approx(38.7, rel=0.01)
    limited = calibrated(ResidualPAC(0.25, max_secret_leakage=1.0), case)
    assert power(limited) > power(filled)
    assert limited.certificate.worst_leakage <= 1.1


# -- what is said ----------------------------------------------------------------------


def test_what_a_certificate_says():
    certificate = PAC(0.5).calibrate(*line(*SIGN)).certificate
    assert certificate.epsilon is None
    assert certificate.mutual_information == 0.5
    assert certificate.entropy == pytest.approx(math.log(2))
    text = certificate.details()
    for words in ("0.5 nats", "on average", "not differential privacy", "0.9518"):
        assert words in text
    with pytest.raises(UncertifiedError):
        certificate.to_approximate(1e-5)
    both = compose([certificate, certificate])
    assert both.mutual_information == 1.0


def test_noise_that_is_more_than_enough_says_so():
    certificate = PAC(0.5).certify(GaussianNoise(10.0), *line(*SIGN))
    assert certificate.mutual_information == pytest.approx(0.5 * math.log1p(0.01))
    # without noise it tells all there is
    bare = PAC(0.5).certify(GaussianNoise(0.0), *line(*SIGN))
    assert bare.mutual_information == pytest.approx(math.log(2))
    bare = ResidualPAC(0.5).certify(GaussianNoise(0.0), *line(*SIGN))
    assert bare.mutual_information == pytest.approx(math.log(2))


@pytest.mark.parametrize("correction", ["sliced", "donsker_varadhan"])
def test_what_is_off_gaussian_is_taken_off(correction):
    found = PAC(1.0, correction=correction).calibrate(*line(*SIGN), random_state=0)
    saved = 1 - found.certificate.mutual_information
    # the noise stays as it is
    assert power(found) == pytest.approx(1 / math.expm1(2), rel=1e-6)
    if correction == "sliced":
        # the bound by covariance exceeds what there is to know, to which it is cut
        assert found.certificate.mutual_information == pytest.approx(math.log(2))
        assert found.certificate.confidence == 1.0
    else:
        # of all of 0.3227898
        assert 0.31 > saved >= 1 - math.log(2)
        assert found.certificate.confidence == pytest.approx(0.95)


def test_a_correction_is_taken_off_the_bound_by_the_covariance_alone():
    """And not off what there is to know, where that is less."""
    at = {0.25: 0.0006698, 0.5: 0.0067464}
    for budget, gap in at.items():
        accountant = PAC(budget, correction="sliced")
        noise = accountant.calibrate(*line(*SIGN)).noise
        bounded = accountant.certify(noise, *line(*SIGN)).mutual_information
        assert budget - bounded == pytest.approx(gap, rel=1e-3)
    large = PAC(2.0, correction="donsker_varadhan")
    bounded = calibrated(large, line(*SIGN)).certificate.mutual_information
    assert bounded >= true_information(line(*SIGN), [[1 / math.expm1(4)]])


def test_estimates_are_no_promises():
    clt = calibrated(ResidualPAC(0.5, interval="clt", n_draws=1000), line(*SIGN))
    assert not clt.certificate.certified
    case = line(*SIGN, release={"ball": (0.0, 2.0)})
    with warned(PrivacyWarning, "pac.algorithm1_estimate_only"):
        found = PAC(0.5, "algorithm1").calibrate(*case)
    assert not found.certificate.certified and not found.certificate.composable
    unsure = prior(CORNERS, certified=False)
    for accountant in (PAC(0.5), ResidualPAC(0.5, n_draws=500)):
        assert not calibrated(accountant, unsure).certificate.certified


def test_the_published_confidence_rule():
    """Of variances 9 and 1, v=0.4 and 0.1, c=1e-4 and r=5."""
    points = [[3.0, 1.0], [3.0, -1.0], [-3.0, 1.0], [-3.0, -1.0]]
    case = prior(points, release={"ball": (0.0, 5.0)})
    accountant = PAC(0.5, "algorithm1", security=1e-4)
    found = calibrated(accountant, case)
    assert found.noise.variance(2) == pytest.approx([15.0133274, 5.0133274])
    found = calibrated(accountant.set_params(security=1.0), case)
    assert found.noise.variance(2) == pytest.approx([15.0, 15.0])


# -- a sample of a larger prior --------------------------------------------------------


def sampled(n=200, ball=4.0, **fields):
    """Outputs around -3 or 3, in a ball, of which there are draws alone."""

    def again(n, rng):
        rng = np.random.default_rng(rng)
        return rng.choice([-3.0, 3.0], (n, 1)) + rng.uniform(-0.8, 0.8, (n, 1))

    release = {} if ball is None else {"ball": (0.0, ball)}
    fields = {"again": again, "entropy": None} | fields
    return prior(again(n, 1), regime="sampled", release=release, **fields)


def test_of_a_sample_the_covariance_is_an_estimate():
    found = PAC(1.0).calibrate(*sampled())
    assert found.certificate.notion == Notion.ESTIMATED
    assert any(
        "sampled" in str(t) or "drawn of" in str(t)
        for t in found.certificate.assumptions
    )
    found = calibrated(ResidualPAC(1.0, n_draws=1000), sampled())
    assert found.certificate.notion == Notion.ESTIMATED
    assert found.certificate.mutual_information > 0.6


def test_confidence_raises_the_covariance():
    plain = PAC(1.0).calibrate(*sampled())
    variance = 9 + 0.64 / 3
    for n in (500, 5000):
        accountant = PAC(1.0, "confidence", confidence=0.95, n_tables=n)
        found = accountant.calibrate(*sampled(), random_state=0)
        certificate = found.certificate
        assert certificate.certified and certificate.confidence == pytest.approx(0.95)
        assert power(found) > power(plain)
        assert log_det([[variance]], [[power(found)]]) <= 1.0
        assert any("ball of radius 4" in str(text) for text in certificate.assumptions)
    # where all is known there is nothing to be unsure of
    exact = PAC(0.5, "confidence").calibrate(*line(*SIGN))
    assert power(exact) == pytest.approx(0.5819767) and exact.certificate.certified


def test_a_model_of_the_output_certifies_a_sample():
    accountant = ResidualPAC(1.0, certificate="sampled_prior", n_tables=3000)
    found = accountant.calibrate(*sampled(), random_state=0)
    certificate = found.certificate
    assert certificate.notion == Notion.MUTUAL_INFORMATION
    assert certificate.mutual_information <= 1.0
    # less than the covariance asks for, and no more than a larger prior may tell
    assert power(found) < power(PAC(1.0).calibrate(*sampled()))
    fine = np.linspace(-0.8, 0.8, 81)
    atoms = Atoms(np.concatenate([fine - 3, fine + 3])[:, None])
    channel = MixtureChannel(atoms, found.noise)
    assert channel.information(Bank.quadrature(atoms)).value < 1.0
    back = accountant.certify(found.noise, *sampled())
    assert back.certified and back.mutual_information < 1.1


def test_a_certificate_that_cannot_be_had_is_refused():
    accountant = ResidualPAC(0.01, certificate="sampled_prior", n_tables=100)
    with is_refused(UncertifiedError, "pac.budget_uncertified_by_tables"):
        accountant.calibrate(*sampled(ball=400.0), random_state=0)


# -- what is refused -------------------------------------------------------------------

SIMULATED = SimulatorScenario(
    lambda secret, rng: rng.normal(secret, size=(5, 1)), secrets=[0, 1], n_draws=100
)


@pytest.mark.parametrize("kind", [PAC, ResidualPAC])
@pytest.mark.parametrize("budget", [0.0, -1.0, math.nan, math.inf, None, "1"])
def test_budgets_that_are_none(kind, budget):
    with is_refused(
        (ValueError, TypeError),
        ("parameter.is_nan", "parameter.not_positive", "parameter.not_real_number"),
    ):
        kind(budget).calibrate(*line(*SIGN))


def test_a_last_digit_that_is_lost_in_the_units():
    """In units both are one number, which would be released without noise."""
    values = np.nextafter(2.0, 0.0) - 2.0**-52 * np.arange(2)
    unit = next(u for u in np.linspace(1.5, 1.99, 50) if values[0] / u == values[1] / u)
    case = line(*values, release={"units": (float(unit),)})
    for accountant in (PAC(), ResidualPAC()):
        with is_refused(ScenarioError, "pac.coordinate_lost_in_units"):
            accountant.calibrate(*case)


@pytest.mark.parametrize("accountant", [PAC(), ResidualPAC()])
def test_a_coordinate_without_noise_is_told_to_its_last_digit(accountant):
    points = np.column_stack([np.arange(4.0), 1 + 1e-13 * np.arange(4)])
    release, bound = prior(points)
    found = accountant.certify(GaussianNoise((1e3, 0.0)), release, bound)
    assert found.mutual_information == pytest.approx(math.log(4))


@pytest.mark.parametrize(
    "accountant, said",
    [
        (PAC(method="best"), Statement("parameter.option_unknown", name="method")),
        (
            PAC(method="algorithm1", confidence=0.9),
            Statement("pac.confidence_with_algorithm1"),
        ),
        (PAC(confidence=0.9), Statement("pac.confidence_without_its_method")),
        (
            PAC(method="confidence", confidence=1.0),
            Statement("parameter.probability_out_of_range", name="confidence"),
        ),
        (
            PAC(n_tables=100),
            Statement("pac.parameter_of_other_method", name="n_tables"),
        ),
        (
            PAC(basis=np.eye(1)),
            Statement("pac.parameter_of_other_method", name="basis"),
        ),
        (PAC(share=0.5), Statement("pac.parameter_of_other_method", name="share")),
        (
            PAC(method="algorithm1", share=1.5),
            Statement("parameter.probability_out_of_range", name="share"),
        ),
        (
            PAC(security=1.0),
            Statement("pac.parameter_of_other_method", name="security"),
        ),
        (
            PAC(correction="exact"),
            Statement("parameter.option_unknown", name="correction"),
        ),
        (
            ResidualPAC(family="round"),
            Statement("parameter.option_unknown", name="family"),
        ),
        (
            ResidualPAC(certificate="decoder"),
            Statement("parameter.option_unknown", name="certificate"),
        ),
        (
            ResidualPAC(confidence=0.0),
            Statement("parameter.probability_out_of_range", name="confidence"),
        ),
        (
            ResidualPAC(interval="normal"),
            Statement("parameter.option_unknown", name="interval"),
        ),
        (
            ResidualPAC(solver="adam"),
            Statement("parameter.option_unknown", name="solver"),
        ),
        (
            ResidualPAC(noise="cauchy"),
            Statement("parameter.option_unknown", name="noise"),
        ),
        (
            ResidualPAC(cost=[[0.0]]),
            Statement("parameter.covariance_not_positive_definite", name="cost"),
        ),
        (ResidualPAC(cost=np.eye(2)), Statement("pac.cost_of_wrong_shape")),
        (
            ResidualPAC(n_draws=10),
            Statement("parameter.count_too_small", name="n_draws"),
        ),
        (
            ResidualPAC(n_tables=10),
            Statement("parameter.count_too_small", name="n_tables"),
        ),
        (
            ResidualPAC(max_secret_leakage=0.0),
            Statement("parameter.not_positive", name="max_secret_leakage"),
        ),
        (ResidualPAC(allow_no_noise=1), Statement("parameter.not_bool")),
    ],
)
def test_parameters_that_make_no_sense(accountant, said):
    with is_refused((ValueError, TypeError), said.code, **said.parameters):
        accountant.calibrate(*line(*SIGN))


@pytest.mark.parametrize(
    "release",
    [
        GradientRelease(n_records=5, n_steps=2, sampling="full_batch"),
        VoteRelease(n_records=5, n_teachers=2, n_classes=2, n_queries=1),
        AdaptiveRelease(
            n_records=5,
            stages=(Stage("first", 1, Sensitivity(add_remove={2: 1.0}), 1.0),),
        ),
    ],
)
def test_runs_and_votes(release):
    scenario = RecordScenario().bind(release.context)
    for accountant in (PAC(), ResidualPAC()):
        support = accountant.supports(release, scenario)
        assert not support and "one output" in str(support.reason)
        assert "PrivacyLoss" in str(support.reason)


def test_nobody_else_chooses_them():
    release, scenario = line(*SIGN)
    support = Best().supports(release, scenario)
    assert not support
    # and they are no remedy for a differential privacy that is refused
    refused = PAC().supports(release, Offering(scenario, Rumour, None))
    assert not refused
    assert not PAC.recommended and not ResidualPAC.recommended


@pytest.mark.parametrize(
    "accountant",
    [
        PAC(method="confidence"),
        PAC(method="algorithm1"),
        ResidualPAC(certificate="sampled_prior"),
    ],
)
def test_without_a_ball(accountant):
    with is_refused(UnsupportedError, "pac.ball_missing"):
        accountant.calibrate(*sampled(ball=None))


def test_a_ball_is_asked_for_before_the_query_is_run():
    release = QueryRelease(query=unread, n_records=5, dim=1)
    accountant = ResidualPAC(certificate="sampled_prior")
    with is_refused(UnsupportedError, "pac.ball_missing"):
        accountant.calibrate(release, SIMULATED)
    assert not accountant.supports(release, SIMULATED)


@pytest.mark.parametrize(
    "case, said",
    [
        (line(0.0, math.nan), Statement("parameter.array_not_finite")),
        (
            line(0.0, 3.0, release={"ball": (0.0, 2.0)}),
            Statement("pac.output_outside_ball"),
        ),
        (
            line(0.0, 3.0, regime="guessed"),
            Statement("pac.regime_or_secret_unknown", regime="guessed"),
        ),
        (
            line(0.0, 3.0, secret="table"),
            Statement("pac.regime_or_secret_unknown", secret="table"),
        ),
        (line(0.0, 3.0, secret="record"), Statement("pac.memberships_missing")),
        (line(0.0, 3.0, delta=0.1), Statement("pac.outputs_outside_event")),
        (line(0.0, 3.0, release={"dim": 2}), Statement("pac.outputs_of_wrong_shape")),
        (
            line(0.0, 3.0, memberships=[[0.5], [1.0]], secret="record"),
            Statement("pac.memberships_not_integers"),
        ),
        (line(1.0, 1.0, regime="sampled"), Statement("pac.samples_do_not_vary")),
    ],
)
def test_outputs_that_are_no_prior(case, said):
    for accountant in (PAC(0.1), ResidualPAC(0.1)):
        with is_refused(
            (UnsupportedError, ScenarioError), said.code, **said.parameters
        ):
            accountant.calibrate(*case)


def test_fresh_tables_that_cannot_be_had():
    for accountant in (
        PAC(method="confidence"),
        ResidualPAC(certificate="sampled_prior"),
    ):
        with is_refused(UnsupportedError, "pac.fresh_tables_not_drawn"):
            accountant.calibrate(*sampled(again=None))
        with is_refused(UnsupportedError, "pac.fresh_outputs_malformed"):
            accountant.calibrate(*sampled(again=lambda n, rng: np.full((n, 1), 9.0)))
    with is_refused(UnsupportedError, "pac.sampled_certificate_for_known_outputs"):
        ResidualPAC(certificate="sampled_prior").calibrate(
            *line(*SIGN, release={"ball": (0.0, 2.0)})
        )
    with is_refused(UnsupportedError, "pac.correction_needs_exact_covariance"):
        PAC(correction="sliced").calibrate(*sampled())


@pytest.mark.every_run
def test_laplace_noise():
    found = calibrated(ResidualPAC(0.5, noise="laplace"), line(*SIGN))
    assert isinstance(found.noise, LaplaceNoise)
    # at variance 0.4967 half a nat leaks
    assert 0.4967 <= power(found) < 0.4967 * 1.1
    law = ProductLaw(LaplaceMarginal(), np.array(found.noise.scale))
    assert true_information(line(*SIGN), law) <= 0.5
    assert success(found.noise) <= posterior_success(0.5, 0.5)
    less = found.noise.with_scale(0.7 * np.asarray(found.noise.scale))
    assert ResidualPAC(0.5).certify(less, *line(*SIGN)).mutual_information > 0.55
    # of records too, and in units
    members = bits(2)
    fields = {"secret": "record", "memberships": members, "regime": "design"}
    outputs = members * [1.0, 20.0]
    case = prior(outputs, release={"units": (1.0, 20.0)}, **fields)
    found = calibrated(ResidualPAC(0.2, noise="laplace", n_draws=2000), case)
    assert found.certificate.notion == Notion.RECORD_MUTUAL_INFORMATION
    ratio = np.divide(*found.noise.scale[::-1])
    assert ratio == pytest.approx(20.0, rel=0.2)
    with is_refused(
        UnsupportedError, "pac.exact_noise_for_drawn_outputs", noise="laplace"
    ):
        ResidualPAC(0.3, noise="laplace").calibrate(*sampled())
    constant = prior([[0.0, 1.0], [1.0, 1.0]])
    with is_refused(UnsupportedError, "pac.laplace_scale_not_positive"):
        ResidualPAC(0.3, noise="laplace").calibrate(*constant)


def test_other_noise():
    with is_refused(UnsupportedError, "pac.noise_not_gaussian"):
        PAC().certify(LaplaceNoise(1.0), *line(*SIGN))
    with is_refused(UnsupportedError, "pac.noise_not_gaussian"):
        ResidualPAC().certify(LaplaceNoise(1.0), *sampled())
    for accountant in (PAC(), ResidualPAC()):
        with is_refused(UnsupportedError, "pac.noise_not_gaussian"):
            accountant.certify(L2LaplaceNoise(1.0), *line(*SIGN))
        with is_refused(ValueError, "pac.noise_dimension_mismatch"):
            accountant.certify(GaussianNoise((1.0, 1.0)), *line(*SIGN))


def test_noise_that_could_be_left_out():
    """Of ten thousand bits and their sum, no bit is known and the sum is."""
    members = bits(6)
    secrets = {"secret": "record", "memberships": members, "regime": "design"}
    case = prior(members.sum(axis=1, keepdims=True), **secrets)
    with is_refused(UnsupportedError, "pac.budget_kept_without_noise", secret="record"):
        ResidualPAC(0.3).calibrate(*case)
    found = calibrated(ResidualPAC(0.3, allow_no_noise=True), case)
    assert found.noise.is_zero
    certificate = found.certificate
    # H(U) - H(U | sum) of six fair bits, and the entropy of their sum
    atoms = Atoms(members.sum(axis=1, keepdims=True))
    assert certificate.table_information == pytest.approx(atoms.output_entropy)
    assert certificate.mutual_information < 0.11


def test_simulated_tables_are_an_estimate():
    release = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=5, dim=1)
    found = PAC(0.5).calibrate(release, SIMULATED)
    assert found.certificate.notion == Notion.ESTIMATED
    assert replace(found.certificate, notion="estimated") == found.certificate
