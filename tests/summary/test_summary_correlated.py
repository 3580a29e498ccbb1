"""Summaries of records that depend on each other."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import cholesky
from sklearn.base import clone

from skpuffer.accountants import (
    AttributeGaussian,
    GeneralWasserstein,
    GroupPrivacy,
    MarkovQuilt,
)
from skpuffer.exceptions import PrivacyWarning, ScenarioError
from skpuffer.privacy import Notion, compose
from skpuffer.scenarios import (
    DiffusionScenario,
    GaussianScenario,
    JointTableScenario,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.summary import PrivateMean, PrivateStandardScaler, PrivateSummary
from skpuffer.summary._cells import Bins, Grouped, Levels, Signs
from skpuffer.summary._gaps import Ones, Stacked
from skpuffer.summary._mean import Averages, Moments
from skpuffer.utils._bounds import Bounds
from tests.refused import refused, warned

from ..attack import SHARE, assert_tight, bayes_score

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "rpp_scenarios.json").read_text()
)
NORMS = (1.0, 1.1, 1.5, 2.0, 3.0, math.inf)
N = 12
TIMES = np.arange(N)
SERIES = 0.5 ** np.abs(TIMES[:, None] - TIMES)
CHAIN = [[0.9, 0.1], [0.2, 0.8]]
BUDGET = {"epsilon": 0.6, "alpha": 4.0}
PURE = {"epsilon": 0.6, "alpha": math.inf, "noise": "laplace"}


def series(covariance=SERIES, **options):
    options = {"covariance_of": "records", "domain": (-1.0, 1.0)} | options
    return GaussianScenario(covariance=covariance, **options)


# -- how far contributions move -------------------------------------------------------

BOUNDS = Bounds((-1.0, 0.0), (1.0, 3.0))
# columns 0 and 1 are numbers, 2 and 3 codes of two and three levels
CONTRIBUTIONS = {
    "ones": Ones(),
    "first": Moments((0, 1), BOUNDS, 1),
    "second": Moments((1, 0), BOUNDS, 2),
    "signs": Signs((0, 1)),
    "bins": Bins(1, (0.0, 1.0, 2.0, 3.0)),
    "levels": Levels(3, 3),
}
CONTRIBUTIONS["stacked"] = Stacked(tuple(CONTRIBUTIONS.values()))
CONTRIBUTIONS["grouped"] = Grouped((2, 3), (2, 3), CONTRIBUTIONS["stacked"])

number = st.floats(-4, 4).map(lambda v: round(v, 3))
record = st.tuples(number, number, st.integers(0, 1), st.integers(0, 2))


@pytest.mark.parametrize("name", CONTRIBUTIONS)
@given(pair=st.tuples(record, record))
def test_no_record_moves_its_contribution_further(name, pair):
    contribution = CONTRIBUTIONS[name]
    here, there = np.array(pair, dtype=float)
    gaps = np.abs(here - there)[None]
    moved = (contribution(here[None]) - contribution(there[None]))[0]
    for norm in NORMS:
        bound = contribution.move(gaps, norm)
        assert bound.shape == (1,)
        assert np.linalg.norm(moved, norm) <= bound[0] * (1 + 1e-12) + 1e-12
        assert np.all(bound <= contribution.move(2 * gaps, norm) * (1 + 1e-12))
        assert contribution.move(np.zeros((3, 4)), norm) == pytest.approx(np.zeros(3))


@pytest.mark.parametrize("name", ["first", "second", "signs", "bins", "levels"])
@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_a_record_that_moves_anywhere_is_any_record(name, norm):
    contribution = CONTRIBUTIONS[name]
    anywhere = contribution.move(np.full((1, 4), 1e6), norm)[0]
    assert anywhere == pytest.approx(contribution.sensitivity.replace[norm])


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("gap", [0.1, 0.7, 1.0, 1.3, 1.8, 2.0])
def test_second_moments_move_as_far_as_that(norm, gap):
    """The bound is attained: over a grid of values of one column."""
    moments = Moments((0,), Bounds((-1.0,), (1.0,)), 2)
    u = np.linspace(-1, 1, 801)
    rows = moments(u[:, None])
    apart = np.abs(u[:, None] - u) <= gap + 1e-9
    moved = np.linalg.norm(rows[:, None] - rows, norm, axis=2)[apart].max()
    bound = moments.move(np.full((1, 1), gap), norm)[0]
    assert moved <= bound + 1e-8
    assert moved == pytest.approx(bound, abs=5e-3)


def test_the_matrix_of_the_means():
    rows = np.random.default_rng(0).normal(size=(5, 3))
    matrix = np.asarray(Averages(5, 3), dtype=float)
    assert matrix @ rows.ravel() == pytest.approx(rows.mean(axis=0))


# -- Gaussian tables ------------------------------------------------------------------


def test_the_mean_of_a_series_without_bounds_is_exact():
    """The published case: an autoregression of twenty records."""
    times = np.arange(20)
    scenario = series(0.5 ** np.abs(times[:, None] - times), domain=(0, 1))
    X = np.random.default_rng(0).normal(size=(20, 1))
    certificate = PrivateMean(scenario, GeneralWasserstein()).fit(X).certificate_
    assert certificate.sensitivity == pytest.approx(0.1498535156, abs=1e-9)
    assert certificate.notion is Notion.RENYI_PUFFERFISH
    assert not certificate.composable
    one = PrivateMean(series(domain=(0, 1), protected=[0]), GeneralWasserstein())
    first = one.fit(X[:N]).certificate_.sensitivity
    assert first == pytest.approx(SERIES[0].sum() / N)


def test_moves_cancel_without_bounds_and_add_up_with_them():
    covariance = np.array([[1.0, -0.5], [-0.5, 1.0]])
    X = np.zeros((2, 1))
    signed = PrivateMean(series(covariance), GeneralWasserstein()).fit(X)
    assert signed.certificate_.sensitivity == pytest.approx(2 * 0.5 / 2)
    clipped = PrivateMean(series(covariance), GeneralWasserstein(), bounds=(-4, 4))
    # in half-ranges of 4
    assert clipped.fit(X).certificate_.sensitivity == pytest.approx(2 * 1.5 / 2 / 4)


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateMean,
        PrivateStandardScaler,
        PrivateSummary,
    ],
)
def test_bounded_moments_of_a_series(estimator):
    rows = np.random.default_rng(0).normal(size=(N, 1))
    X = pd.DataFrame(rows, columns=["x"])
    accountant = GroupPrivacy(**BUDGET)
    model = estimator(series(table="loads"), accountant, bounds=(-2, 2))
    certificate = model.fit(X).certificate_
    # each record's move by hand: two units of the secret, as far as they reach it
    u = np.minimum(2 * SERIES / 2, 2.0)
    if estimator is not PrivateMean:
        u = u * np.sqrt(1 + (2 - u) ** 2)
    assert certificate.sensitivity == pytest.approx(u.sum(axis=0).max() / N)
    assert certificate.composable  # one coupling of the whole table, by its names
    twice = compose([certificate, certificate])
    assert twice.epsilon == pytest.approx(2 * BUDGET["epsilon"])
    nameless = estimator(series(), accountant, bounds=(-2, 2)).fit(X)
    for other in (clone(model).fit(rows), nameless):
        assert other.certificate_.sensitivity == certificate.sensitivity
        assert not other.certificate_.composable


def test_a_summary_reads_some_columns_of_a_gaussian_table():
    names = ["a", "b", "c"]
    sigma = pd.DataFrame(ORACLES["gaussian"]["covariance"], names, names)
    scenario = GaussianScenario(covariance=sigma, secret="b", domain=(0, 3))
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=names).assign(d="text")
    model = PrivateSummary(
        scenario, GroupPrivacy(**BUDGET), columns=["a"], bounds={"a": (-5, 5)}
    ).fit(X)
    # slope 0.6 over a domain of 3, in half-ranges of 5, for one record in 40
    gap = 0.6 * 3 / 5
    one = gap * math.sqrt(1 + (2 - gap) ** 2) / 40
    assert model.certificate_.sensitivity == pytest.approx(one)
    numbers = X.assign(d=1.0)
    with refused(ScenarioError, "gaussian.columns_missing_in_covariance"):
        model.set_params(columns=["a", "d"], bounds=(-5, 5)).fit(numbers)


def test_histograms_of_a_series_pay_for_each_record_that_moves():
    tridiagonal = np.eye(N) + 0.4 * (np.eye(N, k=1) + np.eye(N, k=-1))
    X = np.random.default_rng(0).normal(size=(N, 1))
    model = PrivateSummary(
        series(tridiagonal),
        GroupPrivacy(**BUDGET),
        statistics=["histogram"],
        bounds=(-2, 2),
        bins=4,
    )
    # three records may each leave a bin for another
    assert model.fit(X).certificate_.sensitivity == pytest.approx(3 * math.sqrt(2))


@given(rho=st.floats(0, 0.99), half=st.floats(0.3, 20))
def test_between_one_record_and_all_of_them(rho, half):
    covariance = (1 - rho) * np.eye(6) + rho
    X = np.zeros((6, 1))
    moved = [
        PrivateMean(scenario, GroupPrivacy(**BUDGET), bounds=(-half, half))
        .fit(X)
        .certificate_.sensitivity
        for scenario in (
            series(np.eye(6)),
            series(covariance),
            RecordScenario(6, relation="replace"),
        )
    ]
    assert moved[0] <= moved[1] * (1 + 1e-12)
    assert moved[1] <= moved[2] * (1 + 1e-12)
    if rho == 0:
        assert moved[0] == pytest.approx(moved[1])


def test_a_prior_that_varies_enough_takes_no_noise_and_says_so():
    X = np.random.default_rng(0).normal(size=(200, 1))
    scenario = GaussianScenario(covariance=[[1.0]], secret=0, domain=(-0.05, 0.05))
    accountant = AttributeGaussian(**BUDGET, use_prior_variance=True)
    with warned(PrivacyWarning, "scenario.promise_rests_on_prior_variance"):
        model = PrivateMean(scenario, accountant).fit(X)
    assert 0 < model.certificate_.epsilon <= BUDGET["epsilon"]
    assert any("no record" in str(text) for text in model.certificate_.assumptions)


def test_a_diffusion_is_summed_up():
    times = np.arange(1, N + 1)
    scenario = DiffusionScenario(curvature=0.5, times=times, diameter=2.0)
    X = np.zeros((N, 1))
    free = PrivateMean(scenario, GeneralWasserstein()).fit(X)
    decay = 2 * np.exp(-0.5 * times)
    assert free.certificate_.sensitivity == pytest.approx(
        min(decay.sum() / N, np.linalg.norm(decay) / math.sqrt(N))
    )
    bounded = PrivateMean(scenario, GroupPrivacy(), bounds=(-0.1, 0.1)).fit(X)
    moved = np.minimum(decay / 0.1, 2.0).sum() / N
    assert bounded.certificate_.sensitivity == pytest.approx(moved)


# -- attackers ------------------------------------------------------------------------


def gaussian_worlds(covariance, record, value, mean):
    """A sampler of series given the value of one record."""
    slope = covariance[:, record] / covariance[record, record]
    rest = covariance - np.outer(slope, covariance[record])
    rest = np.delete(np.delete(rest, record, 0), record, 1)
    root = cholesky(rest, lower=True)
    centre = mean + slope * (value - mean[record])

    def draw(n, rng):
        free = rng.normal(size=(n, len(root))) @ root.T
        return centre + np.insert(free, record, 0.0, axis=1)

    return draw


@pytest.mark.parametrize(
    "bounds, statistics",
    [(None, ["mean"]), ((-1.5, 1.5), ["mean"]), ((-1.5, 1.5), ["mean", "std"])],
)
@pytest.mark.parametrize("budget", [BUDGET, PURE], ids=["renyi", "pure"])
@pytest.mark.parametrize("decay", [0.8, 1 - 1e-6])
def test_no_attacker_tells_a_value_of_a_gaussian_series(
    decay, bounds, statistics, budget
):
    # from the lower bound on: of squares, those move most
    values = (-1.5, 0.5)
    scenario = series(decay ** np.abs(TIMES[:, None] - TIMES), domain=values)
    covariance, mean = scenario.covariance, np.zeros(N)
    if bounds is None:
        model = PrivateMean(scenario, GeneralWasserstein(**budget))
    else:
        model = PrivateSummary(
            scenario,
            GroupPrivacy(**budget),
            statistics=statistics,
            bounds=bounds,
        )
    model.fit(np.zeros((N, 1)))
    record = int(np.argmax(covariance.sum(axis=0)))

    def exact(x):
        if bounds is None:
            return x.mean(axis=1)[:, None]
        u = np.clip(x / bounds[1], -1, 1)
        parts = [u] if statistics == ["mean"] else [u, u**2 - 0.5]
        moments = np.stack([part.mean(axis=1) for part in parts], axis=1)
        return moments * [bounds[1] ** k for k in range(1, len(parts) + 1)]

    def released(value, noise):
        worlds = gaussian_worlds(covariance, record, value, mean)

        def draw(n, rng):
            outputs = exact(worlds(n, rng))
            return outputs + noise.sample(outputs.shape, rng)

        return draw

    # what the record pulls the others to
    slope = covariance[record] / covariance[record, record]
    pulled = exact(np.outer(values, slope))[:, None]

    assert_tight(
        model.certificate_,
        model.noise_,
        lambda noise: [released(value, noise) for value in values],
        score=lambda noise: bayes_score(noise, pulled[0], [1.0], pulled[1], [1.0]),
        # where the others vary they blur, and bounds cut; where they repeat it, neither
        share=0.35 if decay == 0.8 else SHARE,
        seed=1,
        n_draws=20_000,
    )


def chain_worlds(time, state, n_records, transition=CHAIN):
    """A sampler of two-state series given the state at one time."""
    P = np.array(transition)
    start = np.array([P[1, 0], P[0, 1]]) / (P[1, 0] + P[0, 1])
    back = (P * start[:, None]).T / start[:, None]  # the chain in reverse

    def draw(n, rng):
        x = np.empty((n, n_records), dtype=int)
        x[:, time] = state
        for t in range(time + 1, n_records):
            x[:, t] = rng.random(n) < P[x[:, t - 1], 1]
        for t in range(time - 1, -1, -1):
            x[:, t] = rng.random(n) < back[x[:, t + 1], 1]
        return x

    return draw


#: One that forgets its state and one that hardly ever does.
CHAINS = {"moving": CHAIN, "frozen": [[1 - 1e-5, 1e-5], [1e-5, 1 - 1e-5]]}


@pytest.mark.parametrize("accountant", [GeneralWasserstein, MarkovQuilt, GroupPrivacy])
@pytest.mark.parametrize("estimator", [PrivateMean, PrivateSummary])
@pytest.mark.parametrize("chain", CHAINS)
def test_no_attacker_tells_a_state_of_a_chain(accountant, estimator, chain):
    n_records, time = 30, 15
    scenario = MarkovChainScenario(CHAINS[chain], event_delta=0)
    options = {"statistics": ["mean"]} if estimator is PrivateSummary else {}
    model = estimator(scenario, accountant(**PURE), **options)
    model.fit(chain_worlds(time, 0, n_records)(1, np.random.default_rng(0)).T)

    def released(state, noise):
        worlds = chain_worlds(time, state, n_records, CHAINS[chain])

        def draw(n, rng):
            exact = worlds(n, rng).mean(axis=1)[:, None] - 0.5
            return exact + noise.sample(exact.shape, rng)

        return draw

    share = SHARE
    if chain == "moving":
        # neither the farthest counts nor a quilt's are those of a typical series
        share = 0.3 if accountant is GeneralWasserstein else 0.05
    assert_tight(
        model.certificate_,
        model.noise_,
        lambda noise: [released(state, noise) for state in (0, 1)],
        share=share,
        seed=1,
        n_draws=20_000,
    )


def test_no_attacker_tells_a_clique():
    """Four people of one mind, among forty."""
    model = PrivateMean(RecordScenario(4), GroupPrivacy(**BUDGET), bounds=(-1, 1))
    rest = np.linspace(-1, 1, 36)
    model.fit(np.r_[rest, np.ones(4)][:, None])

    def released(value, noise):
        exact = np.r_[rest, np.full(4, value)].sum() / 40
        return lambda n, rng: exact + noise.sample((n, 1), rng)

    # added or removed: against the four being absent, the divisor being public
    assert_tight(
        model.certificate_,
        model.noise_,
        lambda noise: [released(value, noise) for value in (1.0, 0.0)],
        seed=1,
        n_draws=40_000,
    )


def test_laws_take_less_noise_than_quilts_and_quilts_less_than_all_records():
    X = chain_worlds(10, 0, 40)(1, np.random.default_rng(0)).T
    scenario = MarkovChainScenario(CHAIN, event_delta=0)
    scales = [
        PrivateMean(scenario, accountant(**PURE)).fit(X).noise_.std(1)[0]
        for accountant in (GeneralWasserstein, MarkovQuilt, GroupPrivacy)
    ]
    assert scales == sorted(scales)
    # 7 counts of 40 against all of them
    assert scales[0] / scales[2] == pytest.approx(7 / 40)


# -- rows that cannot be --------------------------------------------------------------


class Untouched(GroupPrivacy):
    """An accountant that must not be reached."""

    def calibrate(self, release, scenario, random_state=None):
        raise AssertionError("calibrated on rows that cannot be")


@pytest.mark.parametrize(
    "estimator", [PrivateMean, PrivateSummary, PrivateStandardScaler]
)
@pytest.mark.parametrize(
    "scenario, parameter",
    [
        (MarkovChainScenario(CHAIN), "'states'"),
        (MarkovChainScenario(CHAIN, states=[[1.0], [0.25]]), "'states'"),
        (JointTableScenario([[0, 0, 0], [0, 1, 1]], [0.5, 0.5]), "'tables'"),
        (
            JointTableScenario([[0, 0, 0], [0, 1, 1], [0.5, 0.5, 0.75]], [0.5, 0.5, 0]),
            "'tables'",
        ),
    ],
)
def test_rows_outside_the_declared_domain_are_refused(estimator, scenario, parameter):
    model = estimator(scenario, Untouched())
    for frame in (False, True):
        X = np.array([[0.5], [0.5], [0.75]])
        X = pd.DataFrame(X, columns=["x"]) if frame else X
        with pytest.raises(ScenarioError, match=parameter) as caught:
            model.fit(X)
        assert "0.75" not in str(caught.value)  # it may be private
        assert not hasattr(model, "certificate_")


def test_rows_inside_the_declared_domain_pass():
    X = pd.DataFrame({"x": [1.0, 0.25, 0.25, 1.0], "other": list("abcd")})
    scenario = MarkovChainScenario(CHAIN, states=[1.0, 0.25])
    model = PrivateSummary(scenario, GroupPrivacy(), columns=["x"]).fit(X)
    assert model.result_.loc["mean"].notna().all()
    third = PrivateMean(MarkovChainScenario(CHAIN, states=[1 / 3, 2 / 3]))
    third.set_params(accountant=GroupPrivacy())
    third.fit(np.array([[1 / 3], [2 / 3 + 1e-12]]))  # rounding is no other state
    tables = JointTableScenario([[0, 0], [0, 1]], [0.5, 0.5])
    PrivateMean(tables, GeneralWasserstein()).fit([[0], [1]])
