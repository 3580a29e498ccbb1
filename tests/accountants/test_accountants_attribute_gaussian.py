"""The Gaussian mechanism of attribute privacy, with and without a prior's variance."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.model_selection import GridSearchCV

from skpuffer.accountants import AttributeGaussian, GeneralWasserstein
from skpuffer.distributions import Continuous, Discrete, Gaussian, Samples
from skpuffer.exceptions import InfiniteDistanceError, Statement, UnsupportedError
from skpuffer.kernel.noise import gaussian_delta
from skpuffer.noise import CorrelatedGaussianNoise, GaussianNoise, LaplaceNoise
from skpuffer.privacy import Notion
from skpuffer.privacy_loss import gaussian_renyi_divergence
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import GaussianScenario, LawsScenario
from skpuffer.summary import PrivateMean
from tests.refused import refused, says

from ..attack import SHARE, assert_beaten, assert_tight
from .oracle_distributions import ORACLES, attribute, output, scenario, table

ROW = ORACLES["attribute_gaussian"]
targets = st.one_of(
    st.sampled_from([1.5, 2.0, 8.0]).map(lambda a: {"alpha": a}),
    st.floats(1e-6, 0.2).map(lambda d: {"delta": d}),
)


def laws(shift=ROW["shift"], variance=ROW["variance"]):
    return LawsScenario([(Gaussian(0.0, variance), Gaussian(shift, variance))])


def with_prior(*args, **options):
    return AttributeGaussian(*args, use_prior_variance=True, **options)


def test_reference_variance_for_a_renyi_target():
    row = ROW["renyi"]
    found = with_prior(row["epsilon"], alpha=row["alpha"]).calibrate(output(), laws())
    assert found.noise.scale**2 == pytest.approx(row["noise_variance"], rel=1e-9)
    assert found.certificate.epsilon == row["epsilon"]


def test_less_noise_than_the_classical_mechanism_and_still_sound():
    row = ROW["classical"]
    constant = math.sqrt(2 * math.log(1.25 / row["delta"]))
    assert constant == pytest.approx(row["constant"], rel=1e-12)
    classical = (constant * ROW["shift"] / row["epsilon"]) ** 2 - ROW["variance"]
    assert classical == pytest.approx(row["noise_variance"], rel=1e-9)
    accountant = with_prior(row["epsilon"], delta=row["delta"])
    found = accountant.calibrate(output(), laws())
    assert found.noise.scale**2 < classical
    total = math.sqrt(ROW["variance"] + found.noise.scale**2)
    exact = gaussian_delta(row["epsilon"], ROW["shift"] / total)
    assert exact <= row["delta"]
    assert exact == pytest.approx(row["delta"], rel=1e-6)


@example(1.0, 5e-324, 1.0, {"alpha": 1.5})  # too small to be divided by
@given(st.floats(0.1, 5), st.floats(0.0, 9.0), st.floats(0.1, 3), targets)
def test_without_the_variance_it_is_the_wasserstein_mechanism(
    shift, variance, epsilon, target
):
    args = (output(), laws(shift, variance))
    plain = AttributeGaussian(epsilon, **target).calibrate(*args)
    wide = GeneralWasserstein(epsilon, noise="gaussian", **target)
    assert plain.noise == wide.calibrate(*args).noise
    # which covers what the variance would have hidden
    relied = with_prior(epsilon, **target).calibrate(*args)
    assert relied.noise.scale <= plain.noise.scale * (1 + 1e-9)
    if relied.noise.scale > 0:
        added = math.hypot(relied.noise.scale, math.sqrt(variance))
        assert added == pytest.approx(plain.noise.scale, rel=1e-6)
    back = with_prior(epsilon, **target).certify(relied.noise, *args)
    assert back.epsilon <= epsilon * (1 + 1e-9)


def test_a_variance_that_is_enough_by_itself():
    found = with_prior(1.0, alpha=2).calibrate(output(), laws(variance=100.0))
    assert found.noise.is_zero
    assert found.certificate.epsilon == pytest.approx(1 / 100)
    assert says(found.certificate.assumptions, "assume.prior_variance_protects")


def test_in_the_plane():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    first, second = Gaussian([0.0, 0.0], covariance), Gaussian([1.0, -1.0], covariance)
    both = LawsScenario([(first, second)])
    found = with_prior(0.2, alpha=3).calibrate(output(2), both)
    total = covariance + found.noise.scale**2 * np.eye(2)
    true = gaussian_renyi_divergence([0, 0], total, [1, -1], total, 3)
    assert true == pytest.approx(0.2, rel=1e-6) and true <= 0.2
    units = with_prior(0.2, alpha=3).calibrate(output(2, units=(1.0, 2.0)), both)
    total = covariance + np.diag(np.square(units.noise.scale))
    assert units.noise.scale[1] == 2 * units.noise.scale[0]
    true = gaussian_renyi_divergence([0, 0], total, [1, -1], total, 3)
    assert true == pytest.approx(0.2, rel=1e-6)
    matrix = CorrelatedGaussianNoise(covariance=[[1.0, 0.2], [0.2, 2.0]])
    total = covariance + np.array([[1.0, 0.2], [0.2, 2.0]])
    true = gaussian_renyi_divergence([0, 0], total, [1, -1], total, 3)
    certified = with_prior(alpha=3).certify(matrix, output(2), both)
    assert certified.epsilon == pytest.approx(true, rel=1e-9)


def test_a_direction_without_variance_hides_nothing():
    flat = np.diag([4.0, 0.0])
    first, second = Gaussian([0.0, 0.0], flat), Gaussian([1.0, 1.0], flat)
    both = LawsScenario([(first, second)])
    assert (
        with_prior(alpha=2).certify(GaussianNoise(0.0), output(2), both).epsilon
        == math.inf
    )
    found = with_prior(1.0, alpha=2).calibrate(output(2), both)
    total = flat + found.noise.scale**2 * np.eye(2)
    true = gaussian_renyi_divergence([0, 0], total, [1, 1], total, 2)
    assert true == pytest.approx(1.0, rel=1e-6)


def test_the_worst_pair_counts():
    both = LawsScenario(
        [
            (Gaussian(0.0, 9.0), Gaussian(2.0, 9.0)),
            (Gaussian(0.0, 0.1), Gaussian(1.0, 0.1)),
        ]
    )
    found = with_prior(0.5, alpha=2).calibrate(output(), both)
    # alpha shift^2 / (2 (v + s^2)) = 0.5: v + s^2 is 8 for the first pair, 2 otherwise
    assert found.noise.scale**2 == pytest.approx(1.9, rel=1e-6)


def test_laws_it_cannot_rely_on():
    unequal = LawsScenario([(Gaussian(0.0, 1.0), Gaussian(1.0, 2.0))])
    for accountant in (AttributeGaussian(alpha=2), with_prior(alpha=2)):
        with pytest.raises(InfiniteDistanceError):
            accountant.calibrate(output(), unequal)
    # finitely far from a Gaussian distribution, and another kind all the same
    normal, shifted = Continuous(stats.norm()), Gaussian(1.0, 1.0)
    for both in (
        scenario("flu"),
        LawsScenario([(Samples([0.0, 1.0]), Samples([1.0, 3.0]))]),
        LawsScenario([(normal, shifted)]),
        LawsScenario([(shifted, normal)]),
    ):
        with refused(UnsupportedError, "gaussian.covariances_differ"):
            with_prior(alpha=2).calibrate(output(), both)
    # the shift of other laws is covered all the same
    ours, plain = (
        kind(alpha=2).calibrate(output(), scenario("flu"))
        for kind in (AttributeGaussian, GeneralWasserstein)
    )
    assert ours.noise == plain.noise
    with refused(UnsupportedError, "gaussian.output_inexact"):
        with_prior(alpha=2).calibrate(output(slack=0.1), laws())


@pytest.mark.parametrize(
    "options, said",
    [
        (
            {"use_prior_variance": "yes"},
            Statement("parameter.not_bool"),
        ),
        ({"use_prior_variance": 1}, Statement("parameter.not_bool")),
        ({"alpha": math.inf}, Statement("noise.family_not_pure")),
        ({"alpha": 2, "delta": 0.1}, Statement("parameter.alpha_and_delta_both")),
        ({"epsilon": 0}, Statement("parameter.not_positive", name="epsilon")),
    ],
    ids=repr,
)
def test_bad_parameters(options, said):
    with refused((TypeError, ValueError), said.code, **said.parameters):
        AttributeGaussian(**options).calibrate(output(), laws())


def test_noise_that_does_not_add_to_the_variance():
    with refused(ValueError, "gaussian.prior_variance_other_noise"):
        with_prior(alpha=2).certify(LaplaceNoise(1.0), output(), laws())
    with refused(TypeError, "noise.not_a_noise"):
        with_prior(alpha=2).certify("gaussian", output(), laws())


def test_secrets_that_move_nothing():
    still = LawsScenario([(Gaussian(0.0, 1.0), Gaussian(0.0, 1.0))])
    found = with_prior(alpha=2).calibrate(output(), still)
    assert found.noise.is_zero and found.certificate.epsilon == 0.0


def test_in_an_estimator():
    options = {"scenario": attribute(), "bounds": (0.0, 1.0)}
    model = PrivateMean(accountant=AttributeGaussian(0.5, alpha=2), **options)
    plain = PrivateMean(accountant=GeneralWasserstein(0.5, alpha=2), **options)
    assert model.fit(table()).noise_ == plain.fit(table()).noise_
    with refused(UnsupportedError, "gaussian.covariances_differ"):
        PrivateMean(accountant=with_prior(alpha=2), **options).fit(table())
    search = GridSearchCV(
        model,
        {"accountant__epsilon": [0.5, 1.0]},
        cv=2,
        scoring=lambda model, X, y=None: -float(np.max(model.noise_.scale)),
        error_score="raise",
    )
    assert search.fit(table()).best_params_ == {"accountant__epsilon": 1.0}


def test_a_series_of_gaussian_records():
    """One record of a correlated series is secret; the others vary given it."""
    times = np.arange(20)
    covariance = 0.5 ** np.abs(times[:, None] - times)
    series = GaussianScenario(
        covariance=covariance, covariance_of="records", domain=(0, 1)
    )
    average = np.full((1, 20), 1 / 20)
    release = QueryRelease(
        query=lambda X, y: average @ X, linear=average, n_records=20, dim=1
    )
    plain, relied = (
        AttributeGaussian(0.001, alpha=8, use_prior_variance=use)
        .calibrate(release, series)
        .noise.scale
        for use in (False, True)
    )
    scales, slopes = [], covariance.sum(axis=1) / 20
    total = covariance.sum() / 400
    for slope in slopes:
        needed = 8 * slope**2 / (2 * 0.001) - (total - slope**2)
        scales.append(math.sqrt(max(0.0, needed)))
    assert relied == pytest.approx(max(scales), rel=1e-6)
    assert plain == pytest.approx(max(slopes) * math.sqrt(8 / 0.002), rel=1e-6)


def worlds(noise, variance):
    """Samplers of what is released where the query varies so much."""

    def world(mean):
        def draw(n, rng):
            exact = rng.normal(mean, math.sqrt(variance), size=(n, 1))
            return exact + noise.sample((n, 1), rng)

        return draw

    return [world(mean) for mean in (0.0, ROW["shift"])]


# the smaller the variance, the more of what hides the secret is noise
@pytest.mark.parametrize("variance, share", [(ROW["variance"], 0.01), (0.04, SHARE)])
def test_an_attacker(variance, share):
    found = with_prior(0.5, alpha=8).calibrate(output(), laws(variance=variance))
    assert_tight(
        found.certificate,
        found.noise,
        lambda noise: worlds(noise, variance),
        share=share,
        seed=2,
        n_draws=60_000,
    )


def test_an_attacker_who_knows_more():
    """The variance protects from who believes in it, and from nobody else."""
    found = with_prior(0.5, alpha=8).calibrate(output(), laws())
    informed = worlds(found.noise, variance=0.0)
    options = {"n_draws": 60_000, "rng": np.random.default_rng(2)}
    assert_beaten(found.certificate, *informed, **options)
    # without relying on it both are kept out
    sure = AttributeGaussian(0.5, alpha=8).calibrate(output(), laws())
    assert sure.certificate.notion is Notion.RENYI_PUFFERFISH
    assert sure.noise.scale > found.noise.scale
    point = LawsScenario([(Discrete([0.0]), Discrete([1.0]))])
    assert sure.certificate.epsilon == (
        AttributeGaussian(0.5, alpha=8).calibrate(output(), point).certificate.epsilon
    )


@given(st.integers(0, 10**6))
def test_a_direction_without_variance_tells_all(seed):
    line, other = np.random.default_rng(seed).normal(size=(2, 4))
    copies = np.outer(line, line)  # multiples of one number
    far = AttributeGaussian()._distance([(0.5 * line, copies)], 0.0)
    assert far == pytest.approx(0.5, rel=1e-6)
    assert AttributeGaussian()._distance([(line + other, copies)], 0.0) == math.inf
