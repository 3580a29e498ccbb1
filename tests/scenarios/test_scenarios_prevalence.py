"""Two worlds that differ in how common a value is."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from skpuffer.accountants import GroupPrivacy, PrivacyLoss, RenyiDP
from skpuffer.exceptions import (
    CompositionError,
    NoGainWarning,
    ScenarioError,
    SeededNoiseWarning,
    Statement,
    UnsupportedError,
)
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Notion, compose
from skpuffer.releases import (
    GradientRelease,
    PublicContext,
    QueryRelease,
    Sensitivity,
    VoteRelease,
)
from skpuffer.scenarios import Adjacency, PrevalenceScenario, RecordScenario
from tests.attack import assert_tight, bayes_score
from tests.refused import refused, says, warned


def fact(scenario, n=100, release=None, **public):
    context = PublicContext(n_records=n, **public)
    if release is None:
        release = GradientRelease(n_records=n, n_steps=2, sampling="full_batch")
    return scenario.bind(context).fact(Adjacency, release)


# -- counts and rates ------------------------------------------------------------------


@pytest.mark.parametrize(
    "ends, n, counts",
    [
        # the rates of a published experiment: two records of 50,000, not twenty
        ((0.10000, 0.10004), 50_000, (5000, 5002)),
        ((5000, 5020), 50_000, (5000, 5020)),
        # whole counts, of which the product of floats is a little less
        ((0.28, 0.29), 100, (28, 29)),
        ((0.57, 0.58), 100, (57, 58)),
        ((1 / 3, 2 / 3), 3, (1, 2)),
        ((0.0, 1.0), 7, (0, 7)),
        ((0.129, 0.139), 100, (12, 13)),
    ],
)
def test_rates_are_the_counts_they_name(ends, n, counts):
    scenario = PrevalenceScenario(None, *ends)
    assert scenario.counts(n) == counts
    bound = scenario.bind(PublicContext(n_records=n))
    low, high = counts
    assert bound.describe().endswith(f"{low} or {high} of {n} records")
    found = fact(scenario, n)
    assert found.count == high - low and found.count_is_certain and found.delta == 0
    code = "assume.prevalence_secret_counts"
    assert says(found.assumptions, code, low=low, high=high, n=n)


@given(a=st.integers(0, 300), b=st.integers(1, 300), n=st.integers(1, 10**6))
def test_rates_of_short_decimals_are_rounded_down(a, b, n):
    low, high = sorted((a / 1000, (a + b) / 1000))
    expected = tuple(math.floor(Fraction(k, 1000) * n) for k in (a, a + b))
    assert PrevalenceScenario(None, low, high).counts(n) == expected


def test_rates_of_a_small_table_may_be_one_world():
    scenario = PrevalenceScenario("cat", 0.10000, 0.10004)
    with refused(ScenarioError, "prevalence.counts_coincide"):
        scenario.bind(PublicContext(n_records=1000))
    with refused(ScenarioError, "prevalence.counts_coincide"):
        scenario.worlds(np.zeros((1000, 1)), np.arange(1000) % 2)


@pytest.mark.parametrize(
    "low, high, kind, said",
    [
        (3, 3, ScenarioError, Statement("prevalence.high_not_above_low")),
        (4, 3, ScenarioError, Statement("prevalence.high_not_above_low")),
        (-1, 3, ValueError, Statement("parameter.count_too_small", name="low")),
        (0.1, 3, ScenarioError, Statement("prevalence.ends_kinds_mixed")),
        (0, 0.5, ScenarioError, Statement("prevalence.ends_kinds_mixed")),
        (
            2.5,
            3.5,
            ScenarioError,
            Statement("prevalence.rate_out_of_range", name="low"),
        ),
        (
            0.5,
            1.5,
            ScenarioError,
            Statement("prevalence.rate_out_of_range", name="high"),
        ),
        (
            -0.5,
            0.5,
            ScenarioError,
            Statement("prevalence.rate_out_of_range", name="low"),
        ),
        (math.nan, 0.5, ValueError, Statement("parameter.is_nan", name="low")),
        (True, 2, TypeError, Statement("parameter.not_real_number", name="low")),
        ("a", 2, TypeError, Statement("parameter.not_real_number", name="low")),
        (None, 2, TypeError, Statement("parameter.not_real_number", name="low")),
    ],
)
def test_what_counts_nothing_is_refused(low, high, kind, said):
    scenario = PrevalenceScenario(None, low, high)
    for call in (
        scenario.check,
        lambda: scenario.bind(PublicContext(n_records=100)),
        lambda: scenario.counts(100),
        lambda: scenario.worlds(np.zeros((9, 1)), np.arange(9) % 2),
    ):
        with refused(kind, said.code, **said.parameters):
            call()


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"column": 1.5}, Statement("prevalence.column_invalid")),
        ({"column": True}, Statement("prevalence.column_invalid")),
        (
            {"relation": "add_remove"},
            Statement("parameter.option_unknown", name="relation"),
        ),
        ({"law": "poisson"}, Statement("parameter.option_unknown", name="law")),
        (
            {"event_delta": 1.5},
            Statement("parameter.share_out_of_range", name="event_delta"),
        ),
        ({"law": "binomial"}, Statement("prevalence.binomial_needs_rates")),
    ],
)
def test_other_parameters_are_checked(changes, said):
    params = {"column": None, "low": 1, "high": 3} | changes
    with refused((ValueError, TypeError), said.code, **said.parameters):
        PrevalenceScenario(**params).check()


def test_counts_leave_no_table():
    with refused(ValueError, "parameter.count_too_small", name="n_records"):
        PrevalenceScenario(None, 0.1, 0.2).counts(-1)
    scenario = PrevalenceScenario(None, 3, 11)
    with refused(ScenarioError, "prevalence.count_exceeds_records", high=11):
        scenario.bind(PublicContext(n_records=10))
    with refused(ScenarioError, "prevalence.count_exceeds_records", high=11):
        scenario.worlds(np.zeros((10, 1)), np.arange(10) % 2)
    assert fact(PrevalenceScenario(None, 0, 10), 10).count == 10


# -- the value and the column ----------------------------------------------------------


def test_the_value_is_a_public_class():
    classes = {"classes": ("cat", "cow", "dog"), "target_name": "animal"}
    for column in (None, "animal"):
        for relation in ("replace", "relabel"):
            options = {"relation": relation}
            fact(PrevalenceScenario(column, 1, 3, value="cat", **options), **classes)
            with refused(ScenarioError, "prevalence.class_unknown"):
                fact(
                    PrevalenceScenario(column, 1, 3, value="cats", **options), **classes
                )
            with refused(ScenarioError, "prevalence.class_not_named"):
                fact(PrevalenceScenario(column, 1, 3, **options), **classes)
    # of a column that is not the target nothing is known
    fact(PrevalenceScenario("fur", 1, 3, value="long"), **classes)


def test_only_targets_are_relabelled():
    scenario = PrevalenceScenario("race", 1, 3, relation="relabel")
    for name in (None, "income"):
        with refused(ScenarioError, "prevalence.relabel_needs_target"):
            fact(scenario, target_name=name)
    assert fact(scenario, target_name="race").relabelled
    assert fact(PrevalenceScenario(None, 1, 3, relation="relabel")).relabelled


def test_households_are_refused():
    with refused(ScenarioError, "scenario.group_ids_repeat"):
        PrevalenceScenario(None, 1, 3).check_groups(np.array([0, 0, 1]))


def test_it_is_a_parameter_object():
    scenario = PrevalenceScenario("race", 0.1, 0.2, value="Black", law="binomial")
    for twin in (clone(scenario), pickle.loads(pickle.dumps(scenario))):
        assert repr(twin) == repr(scenario)
        assert twin.get_params() == scenario.get_params()
    assert scenario.any_records
    assert not PrevalenceScenario(None, 1, 2, relation="relabel").any_records


# -- what is promised: group privacy ---------------------------------------------------


def releases(n):
    known = Sensitivity(add_remove={1: 1.0, 2: 1.0}, relabel={1: 0.5, 2: 0.5})
    context = PublicContext(n_records=n, feature_names=("x",), target_name="y")
    return [
        QueryRelease(
            query=lambda X, y: X.sum(axis=0),
            n_records=n,
            dim=1,
            sensitivity=known,
            context=context,
        ),
        *(
            GradientRelease(n_records=n, n_steps=5, context=context, **scheme)
            for scheme in (
                {"sampling": "full_batch"},
                {"batch_size": 10},
                {"batch_size": 10, "sampling": "fixed_size"},
            )
        ),
        VoteRelease(
            n_records=n, n_teachers=20, n_classes=2, n_queries=3, context=context
        ),
    ]


@pytest.mark.parametrize("relation", ["replace", "relabel"])
@pytest.mark.parametrize("which", range(5))
def test_it_is_group_privacy_of_as_many_records(relation, which):
    release = releases(100)[which]
    noise = GaussianNoise(3.0)
    prevalence = PrevalenceScenario(None, 20, 23, relation=relation)
    group = RecordScenario(3, relation)
    for accountant in (
        GroupPrivacy(alpha=8),
        PrivacyLoss(),
        RenyiDP(alpha=4.0, delta=None),
    ):
        if isinstance(accountant, GroupPrivacy) and which:
            continue
        mine, its = (
            accountant.certify(noise, release, secret) for secret in (prevalence, group)
        )
        assert mine.epsilon == its.epsilon and mine.notion is its.notion
        assert mine.coupling_id == its.coupling_id
        assert mine.coupling_count == its.coupling_count == 3
        assert any(
            f"RecordScenario(k=3, relation={relation!r})" in str(text)
            for text in mine.assumptions
        )
        # so they add up, for the pair of worlds
        assert compose([mine, its]).composable == its.composable


def test_different_distances_are_different_couplings():
    """Of the one more is known: what holds for more records holds for fewer."""
    release = releases(100)[0]
    noise = GaussianNoise(3.0)
    two, three = (
        GroupPrivacy(alpha=8).certify(noise, release, PrevalenceScenario(None, 20, k))
        for k in (22, 23)
    )
    assert compose([two, three]).coupling_count == 2
    relabelled = [
        GroupPrivacy(alpha=8).certify(
            noise, release, PrevalenceScenario(None, 20, k, relation="relabel")
        )
        for k in (22, 23)
    ]
    with pytest.raises(CompositionError):
        compose(relabelled)


def test_a_fit_says_that_nothing_is_gained():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(2, size=300)
    model = PrivateLogisticRegression(
        scenario=PrevalenceScenario(None, 0.40, 0.41),
        accountant=PrivacyLoss(8.0, delta=1e-5),
        classes=[0, 1],
        data_norm=1.0,
        random_state=0,
    )
    with (
        pytest.warns(SeededNoiseWarning),
        warned(NoGainWarning, "scenario.gains_nothing_over_dp", count=3),
    ):
        model.fit(X, y)
    assert "120 or 123 of 300 records" in model.certificate_.scenario


# -- a value by chance -----------------------------------------------------------------


@given(
    n=st.integers(1, 200),
    low=st.floats(0, 0.98),
    gap=st.floats(0.001, 0.02),
    event=st.floats(0, 1e-3),
)
@settings(max_examples=50)
def test_the_number_of_records_that_differ_is_binomial(n, low, gap, event):
    scenario = PrevalenceScenario(
        None, low, low + gap, law="binomial", event_delta=event
    )
    found = fact(scenario, n)
    assert found.survival.shape == (n,)
    exact = stats.binom.sf(np.arange(n), n, gap)
    # at least, as every error of a float is on the safe side, and no more than that
    assert np.all(found.survival >= exact * (1 - 1e-9))
    np.testing.assert_allclose(found.survival, exact, rtol=1e-6, atol=1e-300)
    assert 1 <= found.count <= n and not found.any_records
    if found.count < n:
        assert found.delta == found.survival[found.count] <= event
        assert found.count == 1 or found.survival[found.count - 1] > event
    else:
        assert found.delta == 0 and found.count_is_certain
    named = found.coupling_id is not None
    assert named == (found.delta == 0)


def test_the_law_is_read_by_the_privacy_loss():
    """The mean over the law costs less than its quantile, and more than its mean."""
    n, gap = 1000, 0.002
    run = GradientRelease(n_records=n, n_steps=5, sampling="full_batch")
    by_law = PrevalenceScenario(None, 0.1, 0.1 + gap, law="binomial")
    accountant = PrivacyLoss(2.0, delta=1e-5)
    found = accountant.calibrate(run, by_law)
    assert found.certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert not found.certificate.composable
    scale = {
        k: accountant.calibrate(run, RecordScenario(k, "replace")).noise.scale
        for k in (2, fact(by_law, n).count)
    }
    assert scale[2] < found.noise.scale < scale[fact(by_law, n).count]
    # a fixed count of as many in the mean
    fixed = accountant.calibrate(run, PrevalenceScenario(None, 100, 102))
    assert fixed.noise.scale == scale[2]


def test_an_order_has_no_room_for_an_event():
    run = GradientRelease(n_records=50, n_steps=5, sampling="full_batch")
    by_law = PrevalenceScenario(None, 0.1, 0.11, law="binomial")
    with refused(UnsupportedError, "event.count_uncertain_at_order"):
        RenyiDP(alpha=4.0, delta=None).calibrate(run, by_law)
    sure = clone(by_law).set_params(event_delta=0)
    everyone = RenyiDP(alpha=4.0, delta=None).calibrate(
        run, RecordScenario(50, "replace")
    )
    assert RenyiDP(alpha=4.0, delta=None).calibrate(run, sure).noise == everyone.noise


def test_what_is_rarer_than_any_float_may_happen():
    """No tail that underflows is an impossible one."""
    scenario = PrevalenceScenario(None, 0.1, 0.11, law="binomial", event_delta=0.0)
    found = fact(scenario, 20_000)
    assert np.all(found.survival > 0)
    assert found.count == 20_000 and found.count_is_certain
    # of the largest number alone, by exact arithmetic
    for n, gap in ((50, 1e-12), (400, 1e-4)):
        found = fact(PrevalenceScenario(None, 0.0, gap, law="binomial"), n).survival
        for k in (0, 1, 2, n // 2, n - 1):
            mass = Fraction(gap)
            exact = sum(
                math.comb(n, j) * mass**j * (1 - mass) ** (n - j)
                for j in range(k + 1, n + 1)
            )
            assert Fraction(found[k]) >= exact


def test_features_that_go_with_the_value_are_not_left_as_they_are():
    """Else a model of them tells how common it is, with no target relabelled."""
    said = "have the same law whatever the value is"
    for law, expected in (("binomial", True), ("fixed", False)):
        scenario = PrevalenceScenario(None, 0.1, 0.2, relation="relabel", law=law)
        assert (
            any(said in str(text) for text in fact(scenario, 50).assumptions)
            == expected
        )


# -- the worlds ------------------------------------------------------------------------


def table(n, rng, n_values=2):
    X = pd.DataFrame(
        {"a": rng.normal(size=n), "race": rng.integers(n_values, size=n)},
        index=np.arange(n) + 7,
    )
    return X, pd.Series(rng.integers(n_values, size=n), index=X.index, name="label")


@given(seed=st.integers(0, 2**31), data=st.data())
@settings(max_examples=60, deadline=None)
def test_worlds_are_the_least_relabelling(seed, data):
    rng = np.random.default_rng(seed)
    n_values = data.draw(st.integers(2, 4))
    n = data.draw(st.integers(8, 40))
    X, y = table(n, rng, n_values)
    # two values at least in either column
    X["race"] = [0, 1, *X["race"].tolist()[2:]]
    y[:] = [0, 1, *y.tolist()[2:]]
    low = data.draw(st.integers(0, n - 1))
    high = data.draw(st.integers(low + 1, n))
    column = data.draw(st.sampled_from([None, "race", "label"]))
    scenario = PrevalenceScenario(column, low, high, value=1)
    before = X.copy(), y.copy()
    (X0, y0), (X1, y1) = scenario.worlds(X, y, random_state=seed)
    pd.testing.assert_frame_equal(X, before[0])
    pd.testing.assert_series_equal(y, before[1])
    if column == "race":
        cells, first, second = X["race"], X0["race"], X1["race"]
        assert y0 is y and y1 is y
        assert X0["a"].equals(X["a"]) and list(X1) == list(X)
    else:
        cells, first, second = y, y0, y1
        assert X0 is X and X1 is X
    assert first.index.equals(cells.index) and first.dtype == cells.dtype
    assert (first == 1).sum() == low and (second == 1).sum() == high
    # the two differ in as many as the certificate says, and no fewer could
    assert (first != second).sum() == high - low
    assert np.all((second == 1) | (first != 1))
    # and each is as near to the table as its count allows
    held = (cells == 1).sum()
    assert (first != cells).sum() == abs(held - low)
    assert (second != cells).sum() == abs(held - high)
    # values that are there
    assert set(first) | set(second) <= set(cells)


def test_worlds_of_arrays():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(50, 3))
    (X0, _), (X1, _) = PrevalenceScenario(1, 0.2, 0.3).worlds(X, random_state=0)
    assert X0[:, 1].sum() == 10 and X1[:, 1].sum() == 15
    assert (X0 != X1).sum() == 5 and np.array_equal(X0[:, [0, 2]], X[:, [0, 2]])
    names = np.array(["no", "yes"])[X[:, 0]]
    (_, y0), (_, y1) = PrevalenceScenario(None, 3, 5).worlds(X, names, random_state=0)
    assert (y0 == "yes").sum() == 3 and (y1 == "yes").sum() == 5
    again = PrevalenceScenario(None, 3, 5).worlds(X, names, random_state=0)
    assert np.array_equal(again[0][1], y0)
    other = PrevalenceScenario(None, 3, 5).worlds(X, names, random_state=1)
    assert not np.array_equal(other[0][1], y0)


def test_worlds_of_other_frames():
    polars = pytest.importorskip("polars")
    X = polars.DataFrame({"a": [1.0] * 8, "race": ["x", "y"] * 4})
    (X0, _), (X1, _) = PrevalenceScenario("race", 1, 6).worlds(X, random_state=0)
    assert (X0["race"] == "y").sum() == 1 and (X1["race"] == "y").sum() == 6
    assert X0.columns == X.columns
    y = polars.Series("income", ["low", "high"] * 4)
    for column in (None, "income"):
        scenario = PrevalenceScenario(column, 1, 6, value="high")
        (_, y0), (_, y1) = scenario.worlds(X, y, random_state=0)
        assert ((y0 == "high").sum(), (y1 == "high").sum()) == (1, 6)
        assert (y0.dtype, y0.name) == (y.dtype, y.name)


def test_worlds_by_chance_have_the_law():
    n, low, high = 200, 0.1, 0.13
    y = np.arange(n) % 2
    scenario = PrevalenceScenario(None, low, high, law="binomial")
    counts = np.array(
        [
            [y0.sum(), y1.sum(), (y0 != y1).sum()]
            for (_, y0), (_, y1) in (
                scenario.worlds(np.zeros((n, 1)), y, random_state=seed)
                for seed in range(2000)
            )
        ]
    )
    assert np.array_equal(counts[:, 1] - counts[:, 0], counts[:, 2])
    for drawn, rate in zip(counts.T, (low, high, high - low), strict=True):
        expected = stats.binom(n, rate)
        error = expected.std() / math.sqrt(len(drawn))
        assert abs(drawn.mean() - expected.mean()) < 5 * error
        # at each number, of which the draws are whole
        seen = np.array([np.mean(drawn <= k) for k in range(n)])
        assert np.max(np.abs(seen - expected.cdf(np.arange(n)))) < 0.06


@pytest.mark.parametrize(
    "scenario, X, y, said",
    [
        (
            PrevalenceScenario(None, 1, 2),
            np.zeros((4, 1)),
            None,
            Statement("prevalence.target_missing"),
        ),
        (
            PrevalenceScenario("b", 1, 2),
            np.zeros((4, 1)),
            None,
            Statement("prevalence.column_unknown"),
        ),
        (
            PrevalenceScenario(1, 1, 2),
            np.zeros((4, 1)),
            None,
            Statement("prevalence.column_unknown"),
        ),
        (
            PrevalenceScenario("b", 1, 2),
            pd.DataFrame({"a": [1, 2]}),
            None,
            Statement("prevalence.column_unknown"),
        ),
        (
            PrevalenceScenario(None, 1, 2),
            np.zeros((3, 1)),
            [0, 1, 2],
            Statement("prevalence.value_not_named"),
        ),
        (
            PrevalenceScenario(None, 1, 2),
            np.zeros((3, 1)),
            [1, 1, 1],
            Statement("prevalence.value_not_named"),
        ),
        (
            PrevalenceScenario(None, 1, 2, value=7),
            np.zeros((3, 1)),
            [0, 1, 1],
            Statement("prevalence.value_not_in_column", value=7),
        ),
        (
            PrevalenceScenario(None, 1, 2, value=1),
            np.zeros((3, 1)),
            [1, 1, 1],
            Statement("prevalence.value_not_in_column"),
        ),
        (
            PrevalenceScenario(None, 1, 2),
            np.zeros((3, 1)),
            [0, 1, np.nan],
            Statement("prevalence.secret_column_missing_values"),
        ),
        (
            PrevalenceScenario(None, 1, 2),
            np.zeros((2, 1)),
            [[0], [1]],
            Statement("prevalence.target_not_one_dimensional"),
        ),
        (
            PrevalenceScenario(None, 1, 2),
            np.zeros((5, 1)),
            [0, 1, 1],
            Statement("prevalence.target_count_differs", given=3),
        ),
        (
            PrevalenceScenario(0, 1, 2),
            np.eye(5),
            [0, 1, 1],
            Statement("prevalence.target_count_differs", given=3),
        ),
    ],
)
def test_worlds_that_cannot_be_made(scenario, X, y, said):
    with refused(ScenarioError, said.code, **said.parameters):
        scenario.worlds(X, y, random_state=0)


# -- an attack -------------------------------------------------------------------------


def test_an_attacker_of_the_worlds_finds_that_noise_is_missing():
    """A run on either world, whose records with the value pull against the others."""
    n, steps = 60, 4
    scenario = PrevalenceScenario(None, 20, 23)
    release = GradientRelease(n_records=n, n_steps=steps, sampling="full_batch")
    found = PrivacyLoss(epsilon=2.0, delta=0.05).calibrate(release, scenario)
    y = np.arange(n) % 2
    worlds = scenario.worlds(np.zeros((n, 1)), y, random_state=0)
    # each sum of gradients, all as long as the clip norm
    sums = [np.where(labels == 1, 1.0, -1.0).sum() for _, labels in worlds]

    def drawn(noise):
        return [
            lambda k, rng, exact=exact: (
                exact + noise.sample((k, steps), rng).reshape(k, steps)
            )
            for exact in sums
        ]

    def score(noise):
        points = [np.full((1, steps), exact) for exact in sums]
        return bayes_score(noise, points[0], [1.0], points[1], [1.0])

    assert_tight(
        found.certificate, found.noise, drawn, score=score, seed=0, n_draws=20_000
    )
