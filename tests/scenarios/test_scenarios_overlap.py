"""A prior, or a reference table, that is the private table certifies nothing."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GeneralWasserstein
from skpuffer.compose import PublicPreprocessing
from skpuffer.exceptions import PrivacyLeakWarning
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import AttributeScenario, BlocksScenario
from skpuffer.scenarios.priors._overlap import columns_of, shares_records
from skpuffer.summary import PrivateMean, PrivateSummary


def continuous(seed=0, n=200):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.uniform(size=n),
            "sex": rng.integers(0, 2, n),
            "income": rng.uniform(size=n),
        }
    )


def categorical(seed=0, n=400):
    rng = np.random.default_rng(seed)
    columns = {name: rng.integers(0, 4, n) / 4 for name in ("a", "b", "c")}
    return pd.DataFrame({"sex": rng.integers(0, 2, n), **columns})


def shuffled(table):
    return table.sample(frac=1, random_state=3)


def half(table):
    other = continuous(seed=7, n=150)[table.columns]
    return pd.concat([other, table.iloc[: len(table) // 2]])


def columns_turned(table):
    """Other order, further columns."""
    return table[table.columns[::-1]].assign(target=1.0, weight=2.0)


def mean_of(prior, X, **options):
    scenario = AttributeScenario(
        "sex", level="record", prior=prior, prior_as="law", **options
    )
    model = PrivateMean(scenario, GeneralWasserstein(1.0, alpha=2.0), bounds=(0.0, 1.0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    leaks = [str(w.message) for w in caught if w.category is PrivacyLeakWarning]
    assert model.certificate_.certified == (not leaks)
    for leak in leaks:
        assert "the prior holds the private records" in leak
        assert any("the prior holds" in text for text in model.certificate_.assumptions)
    return bool(leaks)


@pytest.mark.parametrize("make", [continuous, categorical])
def test_an_independent_table_is_certified(make):
    assert not mean_of(make(seed=1), make(seed=2))


@pytest.mark.parametrize("make", [continuous, categorical])
@pytest.mark.parametrize("change", [lambda table: table, shuffled, columns_turned])
def test_the_same_rows_are_no_prior(make, change):
    table = make()
    assert mean_of(change(table), table)
    assert mean_of([make(seed=1), change(table)], table)  # one of several


def test_half_of_the_rows_are_no_prior_and_fewer_go_by():
    table = continuous()
    assert mean_of(half(table), table)
    assert mean_of(table, table.iloc[:50])  # private rows that are a part of it
    assert not mean_of(half(table.iloc[:100]), table)


def test_columns_by_position():
    table = continuous()
    prior = table.to_numpy()
    scenario = AttributeScenario(1, level="record", prior=prior, prior_as="law")
    model = PrivateMean(scenario, GeneralWasserstein(1.0, alpha=2.0), bounds=(0.0, 1.0))
    with pytest.warns(PrivacyLeakWarning, match="holds the private records"):
        model.fit(prior[::-1])
    assert not model.certificate_.certified


def test_blocks_are_looked_at_together_and_alone():
    table = continuous()
    for prior in (table, table.iloc[100:]):
        inner = AttributeScenario("sex", level="record", prior=prior, prior_as="law")
        model = PrivateMean(
            BlocksScenario(inner, sizes=50),
            GeneralWasserstein(1.0, alpha=2.0),
            bounds=(0.0, 1.0),
        )
        with pytest.warns(PrivacyLeakWarning, match="holds the private records"):
            model.fit(table)
        assert not model.certificate_.certified


def test_behind_public_preprocessing():
    table = continuous()
    y = np.arange(len(table)) % 2
    prior = shuffled(table.assign(label=y))
    scenario = AttributeScenario(
        "sex", level="record", prior=prior, target="label", prior_as="law"
    )
    model = PublicPreprocessing(
        StandardScaler(),
        PrivateLogisticRegression(scenario, classes=[0, 1]),
    )
    with pytest.warns(PrivacyLeakWarning, match="the prior holds the private records"):
        model.fit(table, y)
    assert not model.certificate_.certified


def test_a_summary_with_levels():
    table = continuous().assign(job=np.tile(["none", "some"], 100))
    scenario = AttributeScenario(
        "sex", level="record", prior=shuffled(table), prior_as="law"
    )
    model = PrivateSummary(
        scenario,
        GeneralWasserstein(1.0, alpha=2.0),
        bounds={"age": (0, 1), "income": (0, 1)},
        categories={"job": ["none", "some"]},
    )
    with pytest.warns(PrivacyLeakWarning, match="holds the private records"):
        model.fit(table)
    assert not model.certificate_.certified


@pytest.mark.parametrize("change", [lambda table: table, shuffled, half])
def test_a_reference_table_that_is_private(change):
    table = continuous()[["age", "income"]]
    y = np.arange(len(table)) % 2
    inner = PrivateLogisticRegression(classes=[0, 1])
    model = PublicPreprocessing(StandardScaler(), inner, reference=change(table))
    with pytest.warns(PrivacyLeakWarning, match="the reference table holds"):
        model.fit(table, y)
    assert not model.certificate_.certified
    other = continuous(seed=1)[["income", "age"]]
    assert model.set_params(reference=other).fit(table, y).certificate_.certified


def test_text_zeros_and_sparse_columns():
    text = pd.DataFrame({"a": ["x", "y", "x"], "b": [0.0, 1.0, -0.0]})
    assert shares_records(*map(columns_of, (text, text[::-1])))
    assert not shares_records(*map(columns_of, (text, text.assign(a="x"))))
    zeros = np.array([[0.0, 1.0], [-0.0, 2.0]])
    assert shares_records(*map(columns_of, (sparse.csr_array(zeros), abs(zeros[::-1]))))


def test_single_precision_is_compared_as_such():
    rows = continuous()
    assert shares_records(*map(columns_of, (rows.astype(np.float32), shuffled(rows))))


def test_how_often_a_row_is_there_counts():
    rows = np.array([[0.0], [0.0], [1.0]])
    assert not shares_records(*map(columns_of, (rows, np.array([[0.0], [1.0], [1.0]]))))


def test_thirty_thousand_rows_are_compared():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(30_000, 15))
    assert shares_records(*map(columns_of, (table, rng.permutation(table))))


@pytest.mark.parametrize("back", [np.float32, np.float64])
def test_a_table_that_was_rounded_once_is_still_the_same(back):
    # whatever its dtype has become since
    rows = np.random.default_rng(1).normal(size=(60, 2))
    rounded = rows.astype(np.float32).astype(back)
    for one, other in ((rows, rounded), (rounded, rows)):
        assert shares_records(*map(columns_of, (one, other[::-1])))
    prior = pd.DataFrame(rounded, columns=["a", "b"]).assign(s=[0, 1] * 30)
    believed = AttributeScenario("s", level="record", prior=prior, prior_as="law")
    model = PrivateMean(believed, GeneralWasserstein(), bounds=(-9, 9), random_state=0)
    with pytest.warns(PrivacyLeakWarning):
        model.fit(pd.DataFrame(rows, columns=["a", "b"]))
    assert not model.certificate_.certified


def test_numbers_of_few_digits_are_not_taken_for_rounded_ones():
    whole = np.random.default_rng(2).integers(0, 1000, (60, 1)).astype(float)
    beside = whole + np.linspace(0.001, 0.4, 60)[:, None]
    assert not shares_records(*map(columns_of, (beside, whole)))
    assert not shares_records(*map(columns_of, (whole, beside)))
    # nor are two tables that only rounding would make the same
    rows = np.random.default_rng(3).normal(size=(60, 1))
    assert not shares_records(*map(columns_of, (rows, rows * (1 + 1e-12))))
