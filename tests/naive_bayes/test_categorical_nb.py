"""Categorical naive Bayes: what it counts, of whom, and what it refuses."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import CategoricalNB

from skpuffer.accountants import GroupPrivacy, OverlapAmplification, PrivacyLoss
from skpuffer.naive_bayes import PrivateCategoricalNB
from skpuffer.naive_bayes._categorical import class_tables, smoothed
from skpuffer.noise import DiscreteLaplaceNoise
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BlocksScenario,
    BoundedOdds,
    GaussianScenario,
    RecordScenario,
)
from skpuffer.schema import Category, Number, Schema

NO_NOISE = GroupPrivacy(epsilon=1e24, alpha=2.0)
LEVELS = ["n", "s", "w"]
SCHEMA = Schema(
    {
        "region": LEVELS,
        "age": Number(0, 100, bins=4),
        "pay": Number(0, 8, bins=2, missing_level=True),
        "answer": ["no", "yes"],
    },
    target="answer",
)

#: Whose sensitivities are in l2.
GAUSSIAN = PrivacyLoss(1.0, 1e-5, noise="gaussian")


def table(n=500, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "region": rng.choice(LEVELS, n, p=[0.5, 0.3, 0.2]),
            "age": rng.uniform(0, 100, n),
            "pay": rng.uniform(0, 8, n),
        }
    )
    y = np.where(frame["age"] + 30 * (frame["region"] == "w") > 60, "yes", "no")
    return frame, pd.Series(y, name="answer")


def model(**options):
    return PrivateCategoricalNB(**{"schema": SCHEMA, "accountant": NO_NOISE} | options)


# -- what it counts --------------------------------------------------------------------


def test_a_private_number_of_records_is_the_sum_of_the_released_counts():
    X, y = table()
    scenario = RecordScenario(size="private")
    accountant = PrivacyLoss(50.0, 1e-5)
    private = model(scenario=scenario, accountant=accountant).fit(X, y)
    public = model().fit(X, y)
    assert private.class_count_.sum() == pytest.approx(len(X), abs=5)
    np.testing.assert_allclose(private.class_count_, public.class_count_, atol=5)
    for name in ("category_count_", "feature_log_prob_"):
        pairs = zip(getattr(private, name), getattr(public, name), strict=True)
        for found, known in pairs:
            np.testing.assert_allclose(found, known, atol=5)


def test_without_noise_it_is_scikit_learns():
    X, y = table()
    found = model().fit(X, y)
    codes = SCHEMA.binning()(X)
    exact = CategoricalNB(min_categories=found.n_categories_).fit(codes, y)
    for ours, theirs in zip(found.category_count_, exact.category_count_, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    for ours, theirs in zip(
        found.feature_log_prob_, exact.feature_log_prob_, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_allclose(found.class_count_, exact.class_count_, atol=1e-6)
    np.testing.assert_array_equal(found.predict(X), exact.predict(codes))


def test_the_release_is_of_the_stated_sensitivity():
    X, y = table()
    found = model(accountant=GAUSSIAN, scenario=RecordScenario(relation="replace"))
    assert found.fit(X, y).certificate_.sensitivity == pytest.approx(math.sqrt(6))
    # three people of a household at once
    whole = model(accountant=GAUSSIAN, scenario=RecordScenario(k=3))
    assert whole.fit(X, y).certificate_.sensitivity == pytest.approx(3 * math.sqrt(3))


def test_counts_take_noise_on_the_integers():
    X, y = table()
    accountant = GroupPrivacy(1.0, math.inf, noise="discrete_laplace")
    found = model(accountant=accountant).fit(X, y)
    assert isinstance(found.noise_, DiscreteLaplaceNoise)
    assert found.certificate_.sensitivity == 3


@pytest.mark.parametrize("seed", range(3))
def test_all_that_is_published_agrees_whatever_the_noise(seed):
    X, y = table(50)
    found = model(accountant=PrivacyLoss(0.01, 1e-5), random_state=seed).fit(X, y)
    assert found.class_count_.sum() == pytest.approx(50)
    for counts in found.category_count_:
        assert np.all(counts >= 0)
        np.testing.assert_allclose(counts.sum(axis=1), found.class_count_)
    assert np.all(np.isfinite(found.predict_log_proba(X)))


def test_the_best_mean_of_what_columns_say_of_a_class():
    """Sums of L cells have the variance L: weights one over L, so 2/3 and 1/3."""
    value = np.array([20.0, 10, 20, 10, 20, 10] + [5.0, 5, 5, 5, 0, 0])
    sizes, tables = class_tables(value, (2, 4), 48, 2)
    first = np.array([2 * 30 + 60, 2 * 10 + 10]) / 3
    # both are brought to the public sum alike
    np.testing.assert_allclose(sizes, first + (48 - first.sum()) / 2)
    for found in tables:
        np.testing.assert_allclose(found.sum(axis=1), sizes)


def test_noise_that_hides_a_cell_speaks_for_no_class():
    [shares] = smoothed([np.array([[9.0, 0.0], [1.0, 0.0]])], 0.0, 10.0)
    # pseudo-counts of 2 in a class of mean size, in proportion to the sizes
    np.testing.assert_allclose(shares[0], [12.6 / 16.2, 3.6 / 16.2])
    np.testing.assert_allclose(shares[0], shares[1])


@given(st.integers(0, 2**32 - 1), st.floats(0, 1e6))
def test_smoothed_counts_are_probabilities(seed, deviation):
    rng = np.random.default_rng(seed)
    value = rng.normal(0, 20, 3 * 9)
    sizes, tables = class_tables(value, (4, 5), 30, 3)
    assert np.all(sizes >= 0)
    for alpha in (0.0, 1.0):
        for found in smoothed(tables, alpha, deviation):
            np.testing.assert_allclose(found.sum(axis=1), 1)
            assert np.all(found >= 0)


# -- classes and tables ----------------------------------------------------------------


def test_a_declared_class_may_be_empty():
    X, y = table()
    found = model(schema=SCHEMA.without("answer"), classes=["maybe", "no", "yes"])
    found.fit(X, y)
    assert found.class_count_[0] == pytest.approx(0, abs=1e-6)
    assert np.all(np.isfinite(found.predict_proba(X)))
    bare = found.set_params(alpha=0.0).fit(X, y)
    assert bare.class_prior_[0] == pytest.approx(0, abs=1e-9)
    assert np.all(np.isfinite(bare.class_count_))


def test_classes_are_never_those_of_the_labels():
    X, y = table()
    y.iloc[0] = "something else"
    found = model().fit(X, y)
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.class_count_.sum() == pytest.approx(499)


def test_predict_takes_levels_and_gaps_that_no_record_had():
    X, y = table()
    found = model().fit(X, y)
    new = pd.DataFrame(
        {"region": ["x", None, "w"], "age": [np.nan, 1e9, -1e9], "pay": [3, None, "?"]}
    )
    assert found.predict(new).shape == (3,)
    # what nobody had is as likely in each class, up to their sizes
    assert found.n_categories_.tolist() == [4, 5, 3]
    # columns in another order, and one more, are the same table
    shuffled = X[["pay", "region", "age"]].assign(note="?")
    np.testing.assert_array_equal(found.predict(shuffled), found.predict(X))


def test_bounds_and_categories_are_a_schema_too():
    X, y = table()
    by_parameters = PrivateCategoricalNB(
        accountant=NO_NOISE,
        n_bins=4,
        bounds={"age": (0, 100), "pay": (0, 8)},
        categories={"region": LEVELS},
        classes=["no", "yes"],
    ).fit(X, y)
    schema = Schema(
        {
            "region": LEVELS,
            "age": Number(0, 100, missing=False),
            "pay": Number(0, 8, missing=False),
            "answer": ["no", "yes"],
        },
        target="answer",
    )
    by_schema = model(schema=schema, n_bins=4).fit(X, y)
    for ours, theirs in zip(
        by_parameters.category_count_, by_schema.category_count_, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_array_equal(by_parameters.predict(X), by_schema.predict(X))
    numbers = PrivateCategoricalNB(accountant=NO_NOISE, n_bins=4, bounds=(0, 100))
    assert numbers.fit(X[["age", "pay"]].to_numpy(), y).n_categories_.tolist() == [4, 4]


# -- scenarios -------------------------------------------------------------------------


def coded(n=600, seed=0):
    """A secret that moves one of three columns."""
    rng = np.random.default_rng(seed)
    race = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "race": race,
            "job": (race + (rng.random(n) < 0.4)) % 2,
            "age": rng.integers(0, 4, n),
            "pay": rng.integers(0, 3, n),
        }
    )


BOOK = Schema({"job": [0, 1], "age": Category([0, 1, 2, 3]), "pay": [0, 1, 2]})


@pytest.mark.parametrize(
    "prior",
    [
        # made in the test: what is remembered of a belief lives as long as it does
        lambda: BinnedLaw(coded(4000, 1), rest=BoundedOdds(2.0)),
        lambda: BoundedOdds(4.0),
    ],
    ids=["binned law", "bounded odds"],
)
def test_a_belief_gains_over_differential_privacy(prior):
    frame, prior = coded(), prior()
    y = np.random.default_rng(2).integers(0, 2, len(frame))
    scenario = AttributeScenario("race", level="record", prior=prior)
    found = PrivateCategoricalNB(
        scenario, OverlapAmplification(1.0, delta=1e-5), schema=BOOK, classes=[0, 1]
    ).fit(frame, y)
    assert found.certificate_.gain > 1.2
    np.testing.assert_array_equal(
        found.predict(frame), found.predict(frame.drop(columns="race"))
    )


def test_a_schema_may_know_the_secret_column_which_is_left_out():
    frame, y = coded(), np.tile([0, 1], 300)
    scenario = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    whole = Schema({"race": [0, 1], "job": [0, 1], "age": [0, 1, 2, 3]})
    found = PrivateCategoricalNB(scenario, schema=whole, classes=[0, 1]).fit(frame, y)
    assert found.binning_.names == ("job", "age")


def test_columns_that_the_secret_does_not_move_cost_nothing():
    """A secret column, one that goes with it, and one that is independent."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    covariance = np.eye(3)
    covariance[0, 1] = covariance[1, 0] = 0.5
    scenario = GaussianScenario(
        covariance=pd.DataFrame(covariance, frame.columns, frame.columns),
        secret="a",
        domain=(-1, 1),
    )
    found = PrivateCategoricalNB(
        scenario, GAUSSIAN, n_bins=8, bounds=(-4, 4), classes=[0, 1]
    ).fit(frame, rng.integers(0, 2, 200))
    # sqrt(2 * moving columns), of sqrt(2 * 3)
    assert found.certificate_.sensitivity == pytest.approx(2.0)


def test_a_table_for_a_prior_is_read_through_the_same_cells():
    public, frame = coded(2000, 1), coded()
    y = np.random.default_rng(2).integers(0, 2, len(frame))
    prior = public.assign(y=np.random.default_rng(3).integers(0, 2, len(public)))
    scenario = AttributeScenario(
        "race", level="record", prior=prior, prior_as="law", target="y"
    )
    found = PrivateCategoricalNB(scenario, GAUSSIAN, schema=BOOK, classes=[0, 1]).fit(
        frame, pd.Series(y, name="y")
    )
    # one coupling moves no record further than sqrt(2 * 3)
    assert found.certificate_.sensitivity <= math.sqrt(6) * (1 + 1e-9)


def test_columns_that_are_still_one_by_one_only_are_no_still_columns():
    """Of a secret that is the exclusive or of two columns each alone says nothing."""
    rows = pd.DataFrame({"a": [0, 1, 0, 1], "b": [0, 1, 1, 0], "race": [0, 0, 1, 1]})
    prior = pd.concat([rows.assign(y=0), rows.assign(y=1)], ignore_index=True)
    scenario = AttributeScenario(
        "race", level="record", prior=prior, prior_as="law", target="y"
    )
    frame = rows[["a", "b"]].sample(80, replace=True, random_state=0)
    found = PrivateCategoricalNB(
        scenario,
        GAUSSIAN,
        schema=Schema({"a": [0, 1], "b": [0, 1]}),
        classes=[0, 1],
    ).fit(frame, pd.Series(np.tile([0, 1], 40), name="y", index=frame.index))
    # one column of a record moves, whichever: from one cell to another
    assert found.certificate_.sensitivity == pytest.approx(math.sqrt(2))


def test_households_are_protected_whole():
    frame, y = coded(90), np.tile([0, 1], 45)
    of_one = AttributeScenario("race", level="dataset", prior=BoundedOdds(4.0))
    found = PrivateCategoricalNB(
        BlocksScenario(of_one, sizes=3), schema=BOOK, classes=[0, 1]
    ).fit(frame, y)
    alone = PrivateCategoricalNB(
        AttributeScenario("race", level="record", prior=BoundedOdds(4.0)),
        schema=BOOK,
        classes=[0, 1],
    ).fit(frame, y)
    assert np.max(found.noise_.scale) > 2 * np.max(alone.noise_.scale)
    numbers = PrivateCategoricalNB(
        BlocksScenario(of_one, sizes=3), bounds=(0, 3), classes=[0, 1]
    ).fit(frame, y)
    assert np.max(numbers.noise_.scale) > 2 * np.max(alone.noise_.scale)


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, said",
    [
        ({"schema": None}, "'schema'"),
        ({"bounds": (0, 1)}, "'bounds'"),
        ({"categories": {"region": [*LEVELS, "else"]}}, "'categories'"),
        ({"schema": None, "bounds": {"age": (0, 100)}}, "region"),
        ({"schema": None, "bounds": "empirical"}, "bounds"),
        (
            {"schema": None, "bounds": (0, 1), "categories": {"color": ["r"]}},
            "color",
        ),
        ({"schema": SCHEMA.select(["age"]).without("answer")}, None),
        ({"schema": Schema({"height": (0, 3), "age": (0, 9)})}, "height"),
        ({"classes": ["no", "maybe"]}, "disagree"),
        ({"alpha": -1.0}, "alpha"),
        ({"n_bins": 0}, "n_bins"),
    ],
)
def test_contradictory_parameters_are_named(options, said):
    X, y = table(60)
    fresh = model(**options)
    if said is None:
        # fewer columns than the table has: no more is read
        assert fresh.fit(X, y).n_features_in_ == 1
        return
    with pytest.raises((ValueError, TypeError), match=said):
        fresh.fit(X, y)
    assert not hasattr(fresh, "certificate_")
