"""Models released by output perturbation of records that depend on each other."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import cholesky
from scipy.special import expit
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, MarkovQuilt
from skpuffer.compose import OutputPerturbation
from skpuffer.compose._output_perturbation import RecordPoint
from skpuffer.exceptions import ScenarioError
from skpuffer.kernel.releases import PUBLIC_TARGET
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.linear_model._base_linear import (
    LabelledRecord,
    ModelRows,
    SignedRecord,
    TargetRecord,
    TargetScale,
)
from skpuffer.linear_model._minimiser_constants import LogisticConstants
from skpuffer.linear_model._ridge import _Moments
from skpuffer.releases import Sensitivity
from skpuffer.scenarios import (
    AttributeScenario,
    DiffusionScenario,
    GaussianScenario,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.summary import PrivateMean
from skpuffer.training import Logistic
from tests.refused import refused, says

from ..attack import SHARE, assert_tight

N = 30
TIMES = np.arange(N)
SERIES = 0.6 ** np.abs(TIMES[:, None] - TIMES)
BUDGET = {"epsilon": 0.6, "alpha": 4.0}
FIXED = "targets are public"


def series(covariance=SERIES, **options):
    options = {"covariance_of": "records", "domain": (-0.5, 0.5)} | options
    return GaussianScenario(covariance=covariance, **options)


def labels(seed=0):
    return np.random.default_rng(seed).integers(0, 2, N)


def logistic(n, C):
    return LogisticConstants(loss=Logistic(), n_records=n, radius=math.hypot(1, 1), C=C)


def says_that_targets_are_public(certificate):
    return any(FIXED in str(text) for text in certificate.assumptions)


# -- how far contributions move -------------------------------------------------------

vectors = st.lists(st.floats(-3, 3), min_size=6, max_size=6)


@given(
    rows=vectors,
    target=st.floats(-1, 1),
    intercept=st.sampled_from([0.0, 0.5, 1.0]),
    data_norm=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_no_record_moves_its_contribution_further(rows, target, intercept, data_norm):
    X = np.reshape(rows, (2, 3))
    gaps = np.abs(X[:1] - X[1:])
    moments = _Moments(data_norm, intercept, 3)
    moved = np.diff(moments(X, np.full(2, target)), axis=0)[0]
    for norm in (1.0, 2.0, math.inf):
        bound = moments.move(gaps, norm)[0]
        assert np.linalg.norm(moved, norm) <= bound * (1 + 1e-12) + 1e-12
        assert np.all(bound <= moments.move(2 * gaps, norm) + 1e-12)
    assert moments.move(np.full((1, 3), 1e9), 2)[0] <= 2 * moments.norm * (1 + 1e-12)
    rows = ModelRows(data_norm, intercept)
    scaled = ModelRows(data_norm, intercept, unit=data_norm)
    for record in (
        SignedRecord(rows),
        LabelledRecord(rows, 3, 7.0),
        TargetRecord(scaled, TargetScale()),
    ):
        assert (
            record.move(np.full((1, 3), 1e9), 2)[0] == 2 * data_norm / record.rows.unit
        )
        for label in range(2):
            moved = np.diff(record(X, np.full(2, label)), axis=0)[0]
            bound = record.move(gaps, 2)[0]
            assert np.linalg.norm(moved) <= bound * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("intercept", [0.0, 1.0])
def test_second_moments_move_as_far_as_that(intercept):
    """The bound of ridge regression is attained, on a circle or on its radius."""
    moments = _Moments(1.0, intercept, 2)
    angles = np.linspace(0, math.pi, 401)
    lengths = np.linspace(0, 1, 401)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    radius = np.column_stack([lengths, np.zeros_like(lengths)])
    X = np.concatenate([circle, radius])
    rows = moments(X, np.ones(len(X)))
    moved = np.linalg.norm(rows - rows[0], axis=1)
    gaps = np.linalg.norm(X - X[0], axis=1)
    bound = moments.move(np.column_stack([gaps, np.zeros_like(gaps)]), 2)
    assert np.all(moved <= bound * (1 + 1e-12) + 1e-12)
    for gap in (0.1, 0.5, 2 / 3, 1.0, 1.5):
        near = np.abs(gaps - gap) < 2e-2
        assert np.max(moved[near] / bound[near]) == pytest.approx(1.0, abs=1e-6)


# -- what a model pays ----------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "output"])
def test_a_classifier_pays_for_each_record_by_how_far_it_moves(solver):
    X = np.random.default_rng(0).normal(size=(N, 1))
    model = PrivateLogisticRegression(
        series(), GroupPrivacy(**BUDGET), solver=solver, C=0.05
    ).fit(X, labels())
    constants = logistic(N, 0.05)
    slack = 2 * 1e-3 * constants.C * constants.lipschitz
    # by rank, every secret record at once
    moves = np.sort(SERIES, axis=0)[::-1].max(axis=1)
    expected = sum(constants.move(b) for b in moves) + slack
    certificate = model.certificate_
    assert certificate.sensitivity == pytest.approx(expected)
    assert says_that_targets_are_public(certificate)
    group = PrivateLogisticRegression(
        RecordScenario(N, relation="replace"), GroupPrivacy(**BUDGET), C=0.05
    ).fit(X, labels())
    assert certificate.sensitivity < 0.2 * group.certificate_.sensitivity
    assert not says_that_targets_are_public(group.certificate_)


def test_more_classes_and_an_infinite_move_of_all_records():
    X = np.random.default_rng(0).normal(size=(N, 1))
    y = TIMES % 3
    far = series(np.ones((N, N)) * 0.999999 + np.eye(N) * 1e-6, domain=(-1e9, 1e9))
    model = PrivateLogisticRegression(far, GroupPrivacy(**BUDGET), C=0.05).fit(X, y)
    group = PrivateLogisticRegression(
        RecordScenario(N, relation="replace"), GroupPrivacy(**BUDGET), C=0.05
    ).fit(X, y)
    assert model.certificate_.sensitivity == pytest.approx(
        group.certificate_.sensitivity
    )


def test_ridge_regression_of_a_gaussian_table():
    names = ["a", "b"]
    sigma = pd.DataFrame([[1.0, 0.3], [0.3, 1.0]], names, names)
    scenario = GaussianScenario(covariance=sigma, secret="b", domain=(-1, 1))
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 1)), columns=["a"])
    model = PrivateRidge(
        scenario, GroupPrivacy(**BUDGET), target_bounds=(-1, 1), fit_intercept=False
    )
    certificate = model.fit(X, X["a"]).certificate_
    assert certificate.sensitivity == pytest.approx(0.6 * math.sqrt(5 - 2.4 + 0.36))
    assert says_that_targets_are_public(certificate)


# -- any estimator --------------------------------------------------------------------


def ridge(scenario, accountant=None, **options):
    accountant = GroupPrivacy(**BUDGET) if accountant is None else accountant
    return OutputPerturbation(
        Ridge(alpha=N, fit_intercept=False),
        "coef_",
        scenario,
        accountant,
        **{"sensitivity": 0.5} | options,
    )


def test_any_model_pays_for_each_record_by_how_far_it_moves():
    X = np.random.default_rng(0).normal(size=(N, 1))
    y = X[:, 0].clip(-1, 1)
    one = ridge(RecordScenario()).fit(X, y).certificate_.sensitivity
    assert one == 0.5
    clique = ridge(RecordScenario(5)).fit(X, y).certificate_.sensitivity
    assert clique == pytest.approx(5 * one)
    # without `lipschitz` every record may become any other
    blind = ridge(series()).fit(X, y).certificate_
    assert blind.sensitivity == pytest.approx(N * one)
    assert not says_that_targets_are_public(blind)
    seeing = ridge(series(), lipschitz=0.2).fit(X, y).certificate_
    moves = np.sort(SERIES, axis=0)[::-1].max(axis=1)
    assert seeing.sensitivity == pytest.approx(np.minimum(0.5, 0.2 * moves).sum())
    assert says_that_targets_are_public(seeing)
    assert says(seeing.assumptions, "assume.lipschitz_unproved", lipschitz=0.2)
    capped = ridge(series(), lipschitz=1e6).fit(X, y).certificate_
    assert capped.sensitivity == pytest.approx(blind.sensitivity)


def test_a_transformer_has_no_target_to_take_for_granted():
    X = np.random.default_rng(0).normal(size=(N, 2))
    diffusion = DiffusionScenario(curvature=0.4, times=TIMES + 1.0, diameter=1.0)
    model = OutputPerturbation(
        StandardScaler(with_std=False),
        "mean_",
        diffusion,
        GroupPrivacy(**BUDGET),
        lipschitz=1 / N,
    )
    certificate = model.fit(X).certificate_
    # each of two features by as much as the record
    moved = math.sqrt(2) * np.exp(-0.4 * (TIMES + 1.0)).sum() / N
    assert certificate.sensitivity == pytest.approx(moved)
    assert not says_that_targets_are_public(certificate)


def test_a_chain_counts_records_of_any_model():
    states = np.array([[0.0], [1.0]])
    scenario = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]], event_delta=0)
    X = states[labels()]
    pure = {"epsilon": 1.0, "alpha": math.inf, "noise": "laplace"}

    def moved(accountant, **options):
        options = {"sensitivity": Sensitivity({1: 0.5}, {1: 0.5})} | options
        model = OutputPerturbation(
            KMeans(2, n_init=1), "cluster_centers_", scenario, accountant, **options
        )
        return model.fit(X).certificate_.sensitivity

    assert moved(GroupPrivacy(**pure)) == pytest.approx(N * 0.5)
    assert moved(MarkovQuilt(1.0)) < N * 0.5
    # states are one apart, and l1 is that of two centres
    near = moved(GroupPrivacy(**pure), lipschitz=0.1, n_outputs=2)
    assert near == pytest.approx(N * 0.1 * math.sqrt(2))


@pytest.mark.parametrize("event_delta", [0.0, 1e-6])
def test_a_chain_counts_records_of_a_classifier(event_delta):
    n = 400
    scenario = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]], event_delta=event_delta)
    X, y = np.arange(n)[:, None] % 2.0, np.arange(n) // 2 % 2
    model = PrivateLogisticRegression(scenario, GroupPrivacy(**BUDGET), C=0.01)
    certificate = model.fit(X, y).certificate_
    constants = logistic(n, 0.01)
    one = 2 * constants.C * constants.lipschitz
    slack = 1e-3 * one
    count = (certificate.sensitivity - slack) / one
    assert certificate.event_delta <= event_delta
    if event_delta:
        assert 1 < count < n / 4  # a window
    else:
        assert count == pytest.approx(n)
    # that other records' labels do not follow it is taken for granted, and said
    assert says(certificate.assumptions, "assume.targets_not_stated")
    mean = PrivateMean(scenario, GroupPrivacy(**BUDGET)).fit(X).certificate_
    assert not any("targets" in str(text) for text in mean.assumptions)


def test_labels_that_go_with_a_secret_are_arbitrary_records():
    rng = np.random.default_rng(0)
    prior = pd.DataFrame({"x": [0.0, 0.1] * 4, "s": [0, 1] * 4, "t": [0, 0, 1, 1] * 2})
    X = pd.DataFrame({"x": rng.normal(size=N).clip(-1, 1)})
    y = labels()

    def moved(prior):
        scenario = AttributeScenario(
            "s", level="record", prior=prior, prior_as="law", target="t"
        )
        model = OutputPerturbation(
            LogisticRegression(C=0.1, fit_intercept=False),
            "coef_",
            scenario,
            GroupPrivacy(**BUDGET),
            sensitivity=Sensitivity({2: 0.1}, {2: 0.2}),
            lipschitz=0.3,
        )
        return model.fit(X, y).certificate_.sensitivity

    assert moved(prior) == pytest.approx(0.03)
    assert moved(prior.assign(t=prior["s"])) == pytest.approx(0.2)


def test_targets_that_go_with_a_secret_move_the_record_as_well():
    """In l2 of features and target, and by no more than a record that is replaced."""
    X = pd.DataFrame({"x": np.linspace(-1, 1, N)})

    def moved(x, t, lipschitz=0.2):
        prior = pd.DataFrame({"x": [0.0, x], "s": [0, 1], "t": [0.0, t]})
        scenario = AttributeScenario(
            "s", level="record", prior=prior, prior_as="law", target="t"
        )
        model = OutputPerturbation(
            Ridge(),
            "coef_",
            scenario,
            GroupPrivacy(**BUDGET),
            sensitivity=Sensitivity({2: 0.1}, {2: 0.2}),
            lipschitz=lipschitz,
        )
        return model.fit(X, np.linspace(0, 1, N)).certificate_.sensitivity

    assert moved(0.3, 0.0) == pytest.approx(0.2 * 0.3)
    assert moved(0.0, 0.4) == pytest.approx(0.2 * 0.4)
    assert moved(0.3, 0.4) == pytest.approx(0.2 * 0.5)
    assert moved(0.3, 0.4, lipschitz=9.0) == pytest.approx(0.2)


def test_a_record_is_the_point_of_its_features_and_its_target():
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for X in (rows, sparse.csr_array(rows)):
        np.testing.assert_array_equal(RecordPoint("none")(X), rows)
        np.testing.assert_array_equal(RecordPoint("none")(X, [1, 2, 3]), rows)
        one = RecordPoint("numbers")(X, [7, 8, 9])
        np.testing.assert_array_equal(one, np.column_stack([rows, [7, 8, 9]]))
        two = RecordPoint("numbers")(X, np.arange(6).reshape(3, 2))
        np.testing.assert_array_equal(two[:, 2:], [[0, 1], [2, 3], [4, 5]])
    labels = RecordPoint("labels", 3, 0.7)(rows * 0, np.array([0, 2, 2]))
    apart = np.linalg.norm(labels[:, None] - labels, axis=2)
    np.testing.assert_allclose(apart, 0.7 * np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]))
    # where targets stay, features are all that moves, which is said
    gaps = np.array([[3.0, 4.0]])
    said_of = {"none": (), "numbers": (PUBLIC_TARGET,), "labels": (PUBLIC_TARGET,)}
    for target, said in said_of.items():
        point = RecordPoint(target, 2)
        assert point.move_assumptions == said
        assert point.needs_target is bool(said)
        moves = [float(point.move(gaps, norm)[0]) for norm in (1, 2, np.inf)]
        assert moves == [7.0, 5.0, 4.0]


def test_what_must_be_said_of_labels():
    X, y = np.zeros((N, 1)), labels()
    model = OutputPerturbation(
        LogisticRegression(), "coef_", series(), GroupPrivacy(), lipschitz=1.0
    )
    with refused(ValueError, "query.lipschitz_ignores_labels"):
        model.fit(X, y)
    model.set_params(sensitivity=Sensitivity({math.inf: 1.0}))
    with refused(ValueError, "query.sensitivity_not_in_l2"):
        model.fit(X, y)
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="lipschitz"):
            model.set_params(sensitivity=1.0, lipschitz=bad).fit(X, y)


def test_rows_outside_the_states_are_refused():
    scenario = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    with refused(ScenarioError, "markov.records_not_states"):
        ridge(scenario).fit(np.full((N, 1), 0.5), np.zeros(N))


# -- attackers ------------------------------------------------------------------------


def worlds(record, value, covariance):
    """A sampler of series given the value of one record."""
    slope = covariance[:, record]
    rest = covariance - np.outer(slope, slope)
    rest = np.delete(np.delete(rest, record, 0), record, 1)
    root = cholesky(rest, lower=True)

    def draw(n, rng):
        free = rng.normal(size=(n, len(root))) @ root.T
        return slope * value + np.insert(free, record, 0.0, axis=1)

    return draw


def ridge_by_hand(x, y):
    return ((x @ y) / ((x**2).sum(axis=1) + N))[:, None]


def logistic_by_hand(x, y, C):
    """Newton steps for many tables of one clipped column at once."""
    x, sign = np.clip(x, -1, 1), 2.0 * y - 1
    w = np.zeros(len(x))
    for _ in range(12):
        p = expit(-sign * x * w[:, None])
        slope = w - C * (sign * x * p).sum(axis=1)
        w = w - slope / (1 + C * (x**2 * p * (1 - p)).sum(axis=1))
    assert np.abs(slope).max() < 1e-9
    return w[:, None]


#: How series go on from a value, by the name of the scenario.
CORRELATIONS = {"series": 0.6, "one value": 1 - 1e-6}

#: The part of the noise that is found to be too little. Of a mean of records that are
#: all one, the bound is attained; else the other records blur, and the bounds of models
#: are for any table, from which these are far.
SHARES = {
    ("mean", "series"): 0.2,
    ("mean", "one value"): SHARE,
    ("mean", "clique"): SHARE,
    ("logistic", "series"): 0.005,
    ("logistic", "one value"): 0.03,
    ("logistic", "clique"): 0.03,
    ("ridge", "series"): 0.005,
    ("ridge", "one value"): 0.03,
    ("ridge", "clique"): 0.03,
}


@pytest.mark.parametrize("which, scenario", SHARES)
def test_no_attacker_tells_a_value_from_a_model(which, scenario):
    y = np.ones(N, dtype=int)
    clique, record, values = np.arange(12, 18), 15, (-2.0, 2.0)
    if scenario == "clique":
        secret = RecordScenario(len(clique), relation="replace")
        bound = {"sensitivity": 4 / N}
    else:
        covariance = CORRELATIONS[scenario] ** np.abs(TIMES[:, None] - TIMES)
        secret = series(covariance, domain=values, protected=[record])
        bound = {"lipschitz": 1 / N}
    accountant = GeneralWasserstein(**BUDGET)
    if which == "logistic":
        C = 0.5
        model = PrivateLogisticRegression(
            secret, accountant, solver="output", C=C, tol=1e-6
        ).set_params(fit_intercept=False, classes=[0, 1])
    elif which == "ridge":
        # the coefficient is that of sums over n: one record of |x| <= 3 and |y| <= 1
        # moves x y by three at most and x^2 by nine, and |coefficient| < 1/2
        model = ridge(secret, accountant, sensitivity=10.5 / N)
    else:
        centre = StandardScaler(with_std=False)
        model = OutputPerturbation(centre, "mean_", secret, accountant, **bound)

    def fitted(x):
        if which == "logistic":
            return logistic_by_hand(x, y, C)
        if which == "ridge":
            return ridge_by_hand(np.clip(x, -3, 3), y)
        return x.mean(axis=1)[:, None]

    # one real fit is what is drawn below many times at once
    X = TIMES[:, None] / N
    model.set_params(random_state=7).fit(X, y)
    one = model.coef_ if which == "logistic" else model.value_
    drawn = fitted(X.T) + model.noise_.sample((1, 1), 7)
    np.testing.assert_allclose(np.ravel(one), drawn[0], rtol=1e-5)

    def released(value, noise):
        def draw(n, rng):
            if scenario == "clique":
                # the rest is fixed, and the attacker knows it
                x = np.linspace(-1, 1, N)[None, :]
                x[:, clique] = value
            else:
                x = worlds(record, value, covariance)(n, rng)
            return fitted(x) + noise.sample((n, 1), rng)

        return draw

    assert_tight(
        model.certificate_,
        model.noise_,
        lambda noise: [released(value, noise) for value in values],
        share=SHARES[which, scenario],
        seed=1,
        n_draws=10_000,
    )
