"""Private means: noise, bounds, and the published sensitivities of real columns."""

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.distributions import Discrete
from skpuffer.exceptions import (
    EmpiricalPriorWarning,
    EstimatedGuaranteeWarning,
    PrivacyLeakWarning,
    ScenarioError,
    SeededNoiseWarning,
    UnsupportedError,
)
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.privacy import Notion
from skpuffer.scenarios import (
    AttributeScenario,
    LawsScenario,
    RecordScenario,
    SimulatorScenario,
)
from skpuffer.summary import PrivateMean, PrivateStandardScaler
from tests.refused import refused, warned

from ..attack import assert_beaten, assert_tight, assert_within, bayes_score
from .releases import NO_NOISE

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "transport.json").read_text()
)


def rows(n=40, d=3, seed=0):
    return np.random.default_rng(seed).uniform(-2, 6, size=(n, d))


def student():
    """Final grades and whether extra classes were paid for, from the histograms."""
    oracle = ORACLES["student"]
    frames = [
        pd.DataFrame({"G3": np.repeat(np.arange(len(counts)), counts), "paid": paid})
        for paid, counts in (("no", oracle["no"]), ("yes", oracle["yes"]))
    ]
    return pd.concat(frames, ignore_index=True).astype({"G3": float})


# -- noise -----------------------------------------------------------------------------


def test_the_noise_is_what_differential_privacy_needs():
    X = rows()
    mean = PrivateMean(
        accountant=GroupPrivacy(epsilon=0.5, alpha=4.0), bounds=(-2, [6, 6, 18])
    ).fit(X)
    # Gaussian mechanism: sigma^2 = alpha s^2 / (2 epsilon), in units of half-ranges
    in_units = math.sqrt(3) / len(X) * math.sqrt(4.0 / (2 * 0.5))
    assert isinstance(mean.noise_, GaussianNoise)
    np.testing.assert_allclose(mean.noise_.std(3), in_units * np.array([4, 4, 10]))
    assert mean.certificate_.sensitivity == pytest.approx(math.sqrt(3) / len(X))
    assert mean.certificate_.notion == Notion.RENYI_DP
    assert mean.certificate_.composable

    mean.set_params(
        scenario=RecordScenario(k=2, relation="replace"),
        accountant=GroupPrivacy(epsilon=0.5, alpha=math.inf, noise="laplace"),
    ).fit(X)
    assert isinstance(mean.noise_, LaplaceNoise)
    # l1: two records, each out and in, three coordinates
    expected = 2 * 2 * 3 / len(X) / 0.5
    np.testing.assert_allclose(mean.noise_.scale, expected * np.array([4, 4, 10]))


def test_the_published_means_spread_as_the_noise_does(n_trials):
    X, trials = rows(), n_trials(200)
    mean = PrivateMean(bounds=(-2, [6, 6, 18]))
    found = np.array([mean.fit(X).mean_ for _ in range(trials)])
    scaled = (found - X.mean(axis=0)) / mean.noise_.std(3)
    # squares of Laplace noise, which has the heavier tail, have a variance of five
    assert abs(np.mean(scaled**2) - 1) < 5 * math.sqrt(5 / scaled.size)
    # independent of each other and of one fit to the next
    corners = np.corrcoef(scaled.T)[np.triu_indices(3, 1)]
    assert np.all(np.abs(corners) < 6 / math.sqrt(trials))


def test_without_noise_it_is_the_mean_of_the_clipped_data():
    X = rows()
    mean = PrivateMean(accountant=NO_NOISE, bounds=([-2, 0, 1], [6, 5, 2])).fit(X)
    expected = np.clip(X, [-2, 0, 1], [6, 5, 2]).mean(axis=0)
    np.testing.assert_allclose(mean.mean_, expected, rtol=1e-9)
    again = pickle.loads(pickle.dumps(mean))
    np.testing.assert_array_equal(again.mean_, mean.mean_)
    assert again.certificate_ == mean.certificate_


# -- bounds ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds, match",
    [
        ((6, -2), "low < high"),
        ((0, math.inf), "finite"),
        (([0, 0], 1), "2 bounds, the data has 3 features"),
        ((0, 1, 2), "pair"),
        ("data", "bounds"),
    ],
)
def test_bad_bounds(bounds, match):
    mean = PrivateMean(bounds=bounds)
    with pytest.raises(ValueError, match=match) as error:
        mean.fit(rows())
    assert "bounds" in str(error.value)
    with pytest.raises(NotFittedError):
        check_is_fitted(mean)


def test_no_bounds_and_no_scenario_that_knows_any():
    for make in (PrivateMean, PrivateStandardScaler):
        with pytest.raises(UnsupportedError, match=f"{make.__name__}.*'bounds'"):
            make().fit(rows())


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_bounds_by_column(kind):
    X = rows()
    table = kind({"c": X[:, 0], "a": X[:, 1], "b": X[:, 2]})
    code_book = {"a": (0, 5), "b": (1, 2), "c": (-2, 6), "income": (0, 1e6)}
    by_order = PrivateMean(accountant=NO_NOISE, bounds=([-2, 0, 1], [6, 5, 2])).fit(X)
    for bounds, data in (
        (code_book, table),
        ({0: (-2, 6), 2: (1, 2), 1: (0, 5)}, X),
    ):
        by_name = PrivateMean(accountant=NO_NOISE, bounds=bounds).fit(data)
        np.testing.assert_allclose(by_name.mean_, by_order.mean_)
        assert by_name.noise_ == by_order.noise_
    del code_book["a"]
    with refused(ValueError, "bounds.columns_without_pair"):
        PrivateMean(bounds=code_book).fit(table)
    with refused(ValueError, "bounds.columns_without_pair"):
        PrivateMean(bounds=code_book).fit(X)


def test_bounds_by_column_and_declared_for_the_rest():
    table = student()
    table["G1"] = np.clip(table["G3"], 2, 6)
    scenario = AttributeScenario("paid", level="record", prior=table, prior_as="law")
    mean = PrivateMean(scenario, NO_NOISE, bounds={"G3": (5, 10)})
    data = pd.DataFrame({"G1": [-5.0, 90.0], "G3": [-5.0, 90.0]})
    np.testing.assert_allclose(mean.fit(data).mean_, [4.0, 7.5])


def test_bounds_from_the_data_warn_and_leave_an_estimate():
    X = rows()
    mean = PrivateMean(accountant=NO_NOISE, bounds="empirical")
    with warned(PrivacyLeakWarning, "assume.bounds_read_from_data"):
        mean.fit(X)
    assert mean.certificate_.notion == Notion.ESTIMATED
    np.testing.assert_allclose(mean.mean_, X.mean(axis=0))
    half = np.ptp(X, axis=0) / 2
    np.testing.assert_allclose(
        mean.noise_.std(3) / half, mean.noise_.std(3)[0] / half[0]
    )


def test_bounds_declared_by_the_prior():
    table = student()
    scenario = AttributeScenario("paid", level="record", prior=table, prior_as="law")
    mean = PrivateMean(scenario, NO_NOISE).fit(pd.DataFrame({"G3": [-5.0, 10.0, 90.0]}))
    np.testing.assert_allclose(mean.mean_, [10.0])  # clipped to the grades 0 to 20


# -- scenarios -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("keep_secret", [True, False])
def test_student_grades_move_by_eight(kind, keep_secret):
    table = student()
    scenario = AttributeScenario("paid", level="record", prior=table, prior_as="law")
    private = table.iloc[::2]
    n = len(private)
    private = private if keep_secret else private[["G3"]]
    private = kind({name: private[name].to_numpy() for name in private.columns})
    mean = PrivateMean(scenario, GeneralWasserstein(epsilon=1.0, alpha=2.0))
    mean.fit(private)
    certificate = mean.certificate_
    assert certificate.notion == Notion.RENYI_PUFFERFISH
    assert not certificate.composable
    # in half-ranges of ten grades; without the scenario one record may move twenty
    assert certificate.sensitivity == pytest.approx(8 / 10 / n, rel=1e-12)
    assert certificate.record_sensitivity == pytest.approx(20 / 10 / n, rel=1e-12)
    np.testing.assert_allclose(mean.noise_.std(1), 8 / n)
    assert list(mean.feature_names_in_) == ["G3"]


def test_adult_incomes_move_by_one():
    parts = ORACLES["adult"]["above_50k_and_total"].items()
    table = pd.concat(
        [
            pd.DataFrame({"race": race, "rich": np.repeat([1.0, 0.0], [k, n - k])})
            for race, (k, n) in parts
        ]
    )
    scenario = AttributeScenario("race", level="record", prior=table, prior_as="law")
    private = table.iloc[::2]
    mean = PrivateMean(scenario, GeneralWasserstein(), bounds=(0, 1)).fit(private)
    moved = mean.certificate_.sensitivity * len(private) / 2
    assert moved == pytest.approx(ORACLES["adult"]["max_inf"], rel=1e-12)


def test_shares_of_the_data_set_level():
    table = student()
    scenario = AttributeScenario("paid", level="dataset", prior=table, prior_as="law")
    mean = PrivateMean(scenario, GroupPrivacy(epsilon=1.0, alpha=2.0))
    mean.fit(table.iloc[::2].drop(columns="paid"))
    # all records move by up to eight grades together
    assert mean.certificate_.sensitivity == pytest.approx(8 / 10, rel=1e-9)


def test_laws_given_outright_need_no_bounds():
    X = rows(d=1)
    scenario = LawsScenario([(Discrete([0.0, 1.0]), Discrete([0.5, 3.0]))])
    accountant = GeneralWasserstein(epsilon=2.0, alpha=3.0, noise="gaussian")
    mean = PrivateMean(scenario, accountant).fit(X)
    assert mean.certificate_.sensitivity == 2.0
    np.testing.assert_allclose(mean.noise_.std(1), 2 * math.sqrt(3 / (2 * 2.0)))


def test_a_simulator_needs_no_bounds():
    def pair(s, t, rng):
        base = rng.normal(size=(40, 2))
        return base + s, base + t

    scenario = SimulatorScenario(
        lambda s, rng: rng.normal(s, size=(40, 2)), pair, secrets=[0.0, 0.5], n_draws=20
    )
    mean = PrivateMean(scenario, GeneralWasserstein())
    with pytest.warns(EstimatedGuaranteeWarning):
        mean.fit(rows(d=2))
    assert mean.certificate_.sensitivity == pytest.approx(0.5 * math.sqrt(2))
    # its columns must be those of the data, which the release knows
    with refused(ScenarioError, "prior.only_data_names_columns"):
        mean.fit(pd.DataFrame(rows(d=2), columns=["a", "b"]))


def test_an_empirical_prior_needs_the_secret():
    table = student()
    scenario = AttributeScenario("paid", level="record", prior="empirical")
    mean = PrivateMean(scenario, GeneralWasserstein(), bounds=(0, 20))
    with (
        pytest.warns(EmpiricalPriorWarning),
        pytest.warns(EstimatedGuaranteeWarning),
    ):
        mean.fit(table[["G3"]], secret=table["paid"])
    assert mean.certificate_.sensitivity == pytest.approx(0.8 / len(table))
    assert mean.certificate_.notion == Notion.ESTIMATED


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_no_attacker_beats_the_certificate(noise, n_trials):
    # point laws, as far apart as the prior allows: the hardest case of the promise
    prior = pd.DataFrame({"secret": [0, 1], "x": [0.0, 1.0]})
    scenario = AttributeScenario("secret", level="record", prior=prior, prior_as="law")
    alpha = math.inf if noise == "laplace" else 4.0
    mean = PrivateMean(scenario, GeneralWasserstein(1.0, alpha, noise=noise))
    worlds = [pd.DataFrame({"x": [x, 0.0, 1.0, 0.0]}) for x in (0.0, 1.0)]
    fitted = clone(mean).set_params(random_state=0).fit(worlds[0])

    def fits(world):
        return lambda n, rng: [
            mean.set_params(random_state=rng).fit(world).mean_ for _ in range(n)
        ]

    # as many whole fits as tell noise from none
    certificate, noise = fitted.certificate_, fitted.noise_
    score = bayes_score(noise, [0.25], [1.0], [0.5], [1.0])
    options = {"score": score, "rng": np.random.default_rng(5)}
    assert_within(
        certificate, *map(fits, worlds), n_draws=n_trials(60, least=60), **options
    )
    without = [lambda n, rng, x=x: np.full(n, x) for x in (0.25, 0.5)]
    assert_beaten(certificate, *without, n_draws=60, **options)
    # a fit is the exact mean and the noise, of which many are drawn at once
    for x, world in zip((0.25, 0.5), worlds, strict=True):
        one = mean.set_params(random_state=7).fit(world)
        assert one.noise_ == noise
        np.testing.assert_allclose(one.mean_, x + noise.sample(1, 7), rtol=1e-12)

    def drawn(noise):
        return [lambda n, rng, x=x: x + noise.sample((n, 1), rng) for x in (0.25, 0.5)]

    assert_tight(
        certificate, noise, drawn, seed=5, score=lambda _: score, n_draws=60_000
    )


def test_a_seed_warns_and_repeats():
    X = rows()
    with pytest.warns(SeededNoiseWarning):
        one = PrivateMean(bounds=(-2, 6), random_state=1).fit(X)
    other = clone(one).fit(X)
    np.testing.assert_array_equal(one.mean_, other.mean_)
    assert not np.any(one.mean_ == clone(one).set_params(random_state=2).fit(X).mean_)
