"""Records that depend on each other, from a prior to a release, on real series too."""

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import FunctionTransformer

from skpuffer.accountants import (
    ApproximateWasserstein,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    MarkovQuilt,
    PrivacyLoss,
)
from skpuffer.compose import PublicPreprocessing
from skpuffer.datasets import (
    fetch_activity,
    fetch_household_power,
    load_household_power,
)
from skpuffer.distributions import Discrete
from skpuffer.ensemble import PATEClassifier
from skpuffer.exceptions import CompositionError, ScenarioError, SeededNoiseWarning
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.privacy import Notion, compose
from skpuffer.releases import QueryRelease, Sensitivity, VoteRelease
from skpuffer.scenarios import (
    BlocksScenario,
    GaussianScenario,
    JointTableScenario,
    LawsScenario,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.summary import PrivateMean, PrivateSummary
from tests.refused import refused

PURE = {"epsilon": 1.0, "alpha": math.inf, "noise": "laplace"}


def learnt(codes, k, extra=1.0):
    """Transition probabilities of a public series, with `extra` of each added."""
    counts = np.full((k, k), float(extra))
    np.add.at(counts, (codes[:-1], codes[1:]), 1)
    return counts / counts.sum(axis=1, keepdims=True)


def binned(values, width, n_bins):
    return np.minimum((values.dropna().to_numpy() / width).astype(int), n_bins - 1)


def every_five_seconds(frame):
    parts = []
    for _, trial in frame.groupby("trial", sort=False, observed=True):
        seconds = trial["time_s"].to_numpy()
        grid = np.arange(0.0, seconds.max() + 1e-9, 5.0)
        last = np.searchsorted(seconds, grid, side="right") - 1
        parts.append(trial["activity"].to_numpy()[last] - 1)
    return np.concatenate(parts)


# -- real series ----------------------------------------------------------------------


@pytest.fixture
def series(request):
    """Give codes and number of states of a real series by its name."""

    def give(name):
        if name == "activity":  # the one that is not shipped
            home = request.getfixturevalue("data_dir")
            bunch = fetch_activity(data_home=home, download_if_missing=False)
            return every_five_seconds(bunch.frame), 4
        if name == "hours":
            filled = load_household_power("hours").data["Global_active_power_filled"]
            return binned(filled / 60, 0.5, 10), 10
        return binned(load_household_power("minutes").target, 0.8, 12), 12

    return give


@pytest.mark.parametrize(
    "name, at_most", [("hours", 0.01), ("minutes", 0.025), ("activity", 0.06)]
)
def test_quilts_leave_real_series_of_use(series, name, at_most):
    """The first half is public, the second is released, at epsilon = 1."""
    codes, k = series(name)
    half = len(codes) // 2
    chain, X = learnt(codes[:half], k), codes[half:, None].astype(float)
    quilt = PrivateMean(MarkovChainScenario(chain), MarkovQuilt(1.0)).fit(X)
    everyone = MarkovChainScenario(chain, event_delta=0)
    group = PrivateMean(everyone, GroupPrivacy(**PURE)).fit(X)
    # Laplace noise: its mean absolute size is its scale
    ratio = quilt.noise_.scale[0] / group.noise_.scale[0]
    assert ratio < at_most < 0.2
    assert group.noise_.scale[0] == pytest.approx(k - 1)  # all there is to know
    assert quilt.certificate_.notion is Notion.PURE_PUFFERFISH
    error = abs(quilt.mean_[0] - X.mean())
    assert error < 20 * quilt.noise_.scale[0]  # but once in 5e8


def test_activities_by_their_laws(series):
    codes, k = series("activity")
    half = len(codes) // 2
    release = QueryRelease(
        contribution=lambda X, y: (X == 2).astype(float),  # lying
        is_sum=True,
        n_records=half,
        dim=1,
    )
    scenario = MarkovChainScenario(learnt(codes[:half], k), event_delta=1e-6)
    laws = GeneralWasserstein(**PURE).calibrate(release, scenario)
    quilt = MarkovQuilt(1.0).calibrate(release, scenario)
    assert laws.noise.scale < quilt.noise.scale / 2
    # what was left out is in the certificate
    assert 0 < laws.certificate.event_delta <= 1e-6
    assert quilt.certificate.event_delta == 0


def test_the_share_of_each_state_costs_two_of_the_mean(series):
    codes, k = series("activity")
    half = len(codes) // 2
    X = codes[half:, None].astype(float)
    scenario = MarkovChainScenario(learnt(codes[:half], k))
    shares = PrivateSummary(
        scenario,
        MarkovQuilt(1.0),
        statistics=["histogram"],
        bins=np.arange(k + 1) - 0.5,
    ).fit(X)
    mean = PrivateMean(scenario, MarkovQuilt(1.0), bounds=(0, 1)).fit(X)
    # a reading moves two counts by one each, or a bounded mean by two half-ranges
    assert shares.certificate_.sensitivity == pytest.approx(
        len(X) * mean.certificate_.sensitivity
    )
    released = shares.result_.to_numpy().ravel() / len(X)
    exact = np.bincount(codes[half:], minlength=k) / len(X)
    assert np.abs(released - exact).max() < 20 * shares.noise_.scale / len(X)


@pytest.mark.slow
def test_teachers_of_stretches_learn_from_a_dependent_series(data_dir):
    """Will the next hour draw above 1 kW? The first half is public."""
    bunch = fetch_household_power(
        "hours", data_home=data_dir, download_if_missing=False
    )
    power = bunch.data["Global_active_power_filled"].dropna().to_numpy() / 60
    levels = np.searchsorted([0.5, 1.0, 2.0], power)
    half, k = len(levels) // 2, 4
    chain = learnt(levels[:half], k)
    # a record is an hour and the next, by which the target is its own
    pairs = np.array([(now, then) for now in range(k) for then in range(k)])
    after = (pairs[:, 1, None] == pairs[None, :, 0]) * chain[pairs[:, 1]][
        :, pairs[:, 1]
    ]
    X = np.column_stack([levels[:-1], levels[1:]]).astype(float)
    y = levels[1:] >= 2
    X_public, y_public, X_private, y_private = X[:half], y[:half], X[half:], y[half:]

    def accuracy(accountant, groups, event_delta=1e-6):
        scenario = MarkovChainScenario(after, states=pairs, event_delta=event_delta)
        now = FunctionTransformer(lambda X: np.eye(k)[np.asarray(X)[:, 0].astype(int)])
        model = PublicPreprocessing(
            now,
            PATEClassifier(
                LogisticRegression(),
                n_teachers=80,
                n_queries=k,
                scenario=scenario,
                accountant=accountant,
                classes=[False, True],
            ),
        ).fit(X_private, y_private, groups=groups)
        return model.score(X_public, y_public), model.noise_.scale

    stretches = np.arange(len(X_private)) // 200
    quilts = MarkovQuilt(1.0, delta=1e-5, noise="gaussian")
    score, noise = accuracy(quilts, stretches)
    # once in a thousand runs or so the noise turns an answer over
    assert score >= 0.80
    # as of two votes that a record would change
    votes = VoteRelease(n_records=160, n_teachers=80, n_classes=2, n_queries=k)
    two = PrivacyLoss(1.0, 1e-5).calibrate(votes, RecordScenario(k=2)).noise.scale
    assert noise == pytest.approx(two, rel=0.01)
    # the whole series at once would move every vote
    _, everyone = accuracy(PrivacyLoss(1.0, 1e-5), stretches, event_delta=0.0)
    assert everyone == pytest.approx(40 * two)


# -- transitions that were never seen -------------------------------------------------

SEEN = np.tile([0, 0, 1, 1, 2, 2, 1, 1, 0], 40)


def influence(chain, left, right):
    """Influence of a quilt so many steps to each side, at infinite order."""
    n = 101
    release = QueryRelease(
        query=lambda X, y: X.sum(),
        n_records=n,
        dim=1,
        sensitivity=Sensitivity({1: 1.0}, {1: 1.0}),
    )
    scenario = MarkovChainScenario(chain, protected=[n // 2])
    accountant = MarkovQuilt(1.0, max_distance=max(left, right))
    certificate = accountant.calibrate(release, scenario).certificate
    return certificate.sensitivity


def chain_influence(chain, distance):
    """The same by hand, to the right: what a state so far away tells of this one."""
    steps = np.linalg.matrix_power(np.asarray(chain), distance)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(steps[:, None]) - np.log(steps[None])
    return np.nanmax(ratios)


def test_a_transition_never_seen_has_infinite_influence_one_step_away():
    raw, smooth = learnt(SEEN, 3, extra=0), learnt(SEEN, 3)
    assert raw[0, 2] == 0 and raw[2, 0] == 0 and np.all(smooth > 0)
    assert math.isinf(chain_influence(raw, 1))
    assert math.isfinite(chain_influence(raw, 2))
    assert math.isfinite(chain_influence(smooth, 1))
    # with quilts one step away only, nothing but all records will do
    assert influence(raw, 1, 1) == 101
    # two steps away every state can be reached from every other
    assert influence(raw, 60, 60) < 101


def test_quilts_one_step_away_serve_large_budgets_only_without_zeros():
    n = 101
    release = QueryRelease(
        query=lambda X, y: X.sum(),
        n_records=n,
        dim=1,
        sensitivity=Sensitivity({1: 1.0}, {1: 1.0}),
    )
    sizes = [
        MarkovQuilt(50.0, max_distance=1)
        .calibrate(release, MarkovChainScenario(chain, protected=[n // 2]))
        .certificate.sensitivity
        for chain in (learnt(SEEN, 3, extra=0), learnt(SEEN, 3))
    ]
    assert sizes == [n, 1]


# -- from a prior to a release --------------------------------------------------------


def test_no_choice_of_accountant_or_scenario_is_a_dead_end():
    """Every accountant that a chain supports releases a mean, and says what it is."""
    chain = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]], event_delta=0)
    X = np.repeat([[0.0], [1.0]], 15, axis=0)
    accountants = [
        GeneralWasserstein(1.0, 4.0),
        ApproximateWasserstein(1.0, 4.0, event_delta=1e-3),
        DistributionAwareWasserstein(1.0, 4.0),
        MarkovQuilt(1.0, 4.0),
        GroupPrivacy(1.0, 4.0),
    ]
    scales = {}
    for accountant in accountants:
        for noise in ("laplace", "gaussian"):
            model = PrivateMean(chain, clone(accountant).set_params(noise=noise)).fit(X)
            assert model.certificate_.epsilon == 1.0
            assert any("Markov chain" in str(a) for a in model.certificate_.assumptions)
            scales[type(accountant).__name__, noise] = model.noise_.std(1)[0]
    for noise in ("laplace", "gaussian"):
        general = scales["GeneralWasserstein", noise]
        assert scales["ApproximateWasserstein", noise] <= general * (1 + 1e-9)
        assert scales["DistributionAwareWasserstein", noise] <= general * (1 + 1e-9)
        assert general <= scales["MarkovQuilt", noise]
        assert scales["MarkovQuilt", noise] <= scales["GroupPrivacy", noise] * (
            1 + 1e-9
        )


def test_a_search_over_a_correlated_scenario():
    times = np.arange(40)
    scenario = GaussianScenario(
        covariance=0.5 ** np.abs(times[:, None] - times),
        covariance_of="records",
        domain=(-1, 1),
    )
    rng = np.random.default_rng(0)
    y = times % 2
    X = (2 * y - 1 + rng.normal(size=40))[:, None]
    model = PrivateLogisticRegression(
        scenario, GroupPrivacy(alpha=4.0), data_norm=3.0, random_state=0
    )
    # each fold has fewer records than the covariance speaks of
    with refused(ScenarioError, "gaussian.covariance_not_whole_columns"):
        GridSearchCV(
            model, {"accountant__epsilon": [1.0]}, cv=3, error_score="raise"
        ).fit(X, y)
    with pytest.warns(SeededNoiseWarning):
        scales = [
            clone(model).set_params(accountant__epsilon=e).fit(X, y).noise_.scale
            for e in (0.5, 1.0, 2.0)
        ]
    assert scales == sorted(scales, reverse=True)


def test_preprocessing_by_a_public_map_gives_up_the_moves_but_not_the_promise():
    """How far a mapped record moves is not known, so each may become any other."""
    scenario = GaussianScenario(covariance=[[1.0]], secret=0, domain=(-0.1, 0.1))
    X = np.random.default_rng(0).normal(size=(50, 1))
    model = PrivateMean(scenario, GroupPrivacy(1.0, 4.0), bounds=(-1, 1))
    direct = clone(model).fit(X).certificate_
    mapped = PublicPreprocessing(FunctionTransformer(np.tanh), model).fit(X)
    assert direct.sensitivity == pytest.approx(0.2 / 50)
    assert mapped.certificate_.sensitivity == pytest.approx(2 / 50)


def test_states_are_checked_as_the_query_reads_them():
    """States in raw units, a chain behind a public map: both meet in the model."""
    scenario = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]], states=[[1.0], [10.0]])
    model = PublicPreprocessing(
        FunctionTransformer(np.log10), PrivateMean(scenario, MarkovQuilt(1.0))
    )
    model.fit(np.repeat([[1.0], [10.0]], 10, axis=0))
    with refused(ScenarioError, "markov.records_not_states"):
        model.fit(np.repeat([[1.0], [9.0]], 10, axis=0))


def test_blocks_check_their_own_rows():
    chain = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]], event_delta=0)
    blocks = BlocksScenario(chain, sizes=[4, 6])
    good = np.repeat([[0.0], [1.0]], 5, axis=0)
    found = PrivateMean(blocks, GeneralWasserstein(**PURE)).fit(good)
    whole = PrivateMean(chain, GeneralWasserstein(**PURE)).fit(good)
    assert found.certificate_.sensitivity <= whole.certificate_.sensitivity
    bad = good.copy()
    bad[7] = 2.0
    with refused(ScenarioError, "markov.records_not_states"):
        PrivateMean(blocks, GeneralWasserstein(**PURE)).fit(bad)
    tables = JointTableScenario([[0, 0], [1, 1]], [0.5, 0.5])
    pairs = BlocksScenario(tables, sizes=2)
    PrivateMean(pairs, GeneralWasserstein()).fit([[0], [0], [1], [1]])
    with refused(ScenarioError, "joint.data_not_listed"):
        PrivateMean(pairs, GeneralWasserstein()).fit([[0], [0], [1], [0]])


# -- what must not be done ------------------------------------------------------------


def test_two_releases_of_nothing_that_give_a_sign_away_are_not_added_up():
    """X_2 is a coin, X_3 the coin times the secret: each alone has no loss."""
    signs = JointTableScenario(
        [[s, u, s * u] for s in (-1, 1) for u in (-1, 1)], [1, 1, 1, 1], protected=[0]
    )
    accountant, parts = GeneralWasserstein(1.0, 2.0, noise="laplace"), []
    for who in (1, 2):
        told = QueryRelease(query=lambda X, y, who=who: X[who], n_records=3, dim=1)
        parts.append(accountant.calibrate(told, signs).certificate)
    assert [part.epsilon for part in parts] == [0.0, 0.0]
    with refused(CompositionError, "compose.certificate_not_composable"):
        compose(parts)
    both = QueryRelease(query=lambda X, y: X[1:].ravel(), n_records=3, dim=2)
    assert accountant.calibrate(both, signs).certificate.sensitivity == 2.0


def test_a_rare_secret_is_never_left_out():
    """Example 2: the average of two records of 1, 2 and, rarely, 100."""
    values, masses = [1, 2, 100], [500, 499, 1]
    independent = JointTableScenario(
        [[a, b] for a in values for b in values],
        [p * q for p in masses for q in masses],
    )
    average = QueryRelease(query=lambda X, y: X.mean(), n_records=2, dim=1)
    for accountant in (GeneralWasserstein(), ApproximateWasserstein(event_delta=0.003)):
        found = accountant.calibrate(average, independent).certificate
        assert found.sensitivity == 49.5
    laws = [(np.array(values) + v) / 2 for v in values]
    allowed = LawsScenario([(Discrete(laws[0], masses), Discrete(laws[1], masses))])
    found = GeneralWasserstein().calibrate(average, allowed).certificate
    assert found.sensitivity == 0.5
