"""Groups that nobody listed: which are released, what that costs, and what is read."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpuffer.accountants import (
    Best,
    GeneralWasserstein,
    GroupPrivacy,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.compose import PrivatePipeline
from skpuffer.exceptions import (
    BudgetExceededError,
    CompositionError,
    NotComposableError,
    PrivacyWarning,
    ScenarioError,
    UnsupportedError,
)
from skpuffer.ledger import PrivacyLedger
from skpuffer.scenarios import DependenceScenario, RecordScenario
from skpuffer.schema import Date, Number, Schema
from skpuffer.summary import PrivateBounds, PrivateSummary
from tests.refused import refused, says

RNG = np.random.default_rng(0)
LARGE = PrivacyLoss(1e6, 1e-5)


# -- what is read ----------------------------------------------------------------------


N = 3000
TABLE = pd.DataFrame(
    {
        "city": RNG.choice(["Ulm", "Bonn", "Köln", None], N, p=[0.5, 0.3, 0.1, 0.1]),
        "year": RNG.choice([2020, 2021], N),
        "x": RNG.uniform(0, 10, N),
    }
)
#: A key of one record.
TABLE.loc[7, "city"] = "Hiddensee"
ASKED = {"statistics": ["count", "mean"], "bounds": {"x": (0, 10)}, "columns": ["x"]}


def by_pandas(by, table=TABLE):
    known = table[table.city != "Hiddensee"]
    return known.groupby(by, dropna=False).x.agg(["count", "mean"])


@pytest.mark.parametrize("by", ["city", "year", ["city", "year"], ["year", "city"]])
@pytest.mark.parametrize("frame", [lambda t: t, pl.from_pandas], ids=["pandas", "pl"])
def test_groups_are_those_of_pandas(by, frame):
    table = TABLE if by == "year" else TABLE.drop(index=7)
    model = PrivateSummary(accountant=LARGE, by=by, **ASKED).fit(frame(table))
    expected = table.groupby(by, dropna=False).x.agg(["count", "mean"])
    found = model.result_["x"]
    pd.testing.assert_index_equal(found.index, expected.index, exact=False)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert list(model.feature_names_in_) == ["city", "year", "x"]
    assert np.isfinite(model.result_std_["x"]["count"]).all()


def test_arrays_and_code_books_do_as_well():
    values = TABLE[["year", "x"]].to_numpy()
    model = PrivateSummary(
        accountant=LARGE, by=0, statistics=["mean"], bounds={1: (0, 10)}
    ).fit(values)
    expected = TABLE.groupby("year").x.mean()
    assert model.result_.index.tolist() == [2020, 2021]
    np.testing.assert_allclose(model.result_[1]["mean"], expected, rtol=1e-3)
    book = Schema({"x": Number(0, 10, missing=False)})
    model = PrivateSummary(
        accountant=LARGE, by="city", statistics=["count", "mean"], schema=book
    ).fit(TABLE)
    np.testing.assert_allclose(model.result_["x"], by_pandas("city"), rtol=1e-3)


def test_parts_of_dates_go_with_listed_levels_alone():
    book = Schema({"x": Number(0, 10), "day": Date("2020-01-01", "2020-12-31")})
    table = TABLE.assign(day="2020-03-01", month=1)
    model = PrivateSummary(accountant=LARGE, by=["month", "city"], schema=book)
    with refused(ValueError, "summary.by_levels_not_public", name="city"):
        model.fit(table)
    assert len(model.set_params(by="month").fit(table).result_) >= 12


def test_nothing_is_left_of_what_is_not_released():
    model = PrivateSummary(by="city", key_share=0.4, **ASKED).fit(TABLE)
    assert "Hiddensee" not in model.result_.index
    assert model.result_.index.isin(["Bonn", "Köln", "Ulm", np.nan]).all()
    for part in (pickle.dumps(model), repr(vars(model)).encode()):
        assert b"Hiddensee" not in part and b"Ulm" in part
    with_two = PrivateSummary(accountant=LARGE, by="city", **ASKED)
    others = with_two.fit(TABLE.assign(city=TABLE.city.where(TABLE.city != "Ulm")))
    assert len(others.result_) == 3
    # who is in none of the released groups is in none of the counts
    np.testing.assert_allclose(others.result_["x"]["count"].sum(), N - 1, atol=0.01)


def test_of_no_key_the_table_is_empty():
    ids = pd.DataFrame({"city": np.arange(50), "x": 1.0})
    model = PrivateSummary(by="city", **ASKED).fit(ids)
    assert model.result_.shape == model.result_std_[model.result_.columns[:1]].shape[
        :1
    ] + (2,)
    assert len(model.result_) == 0 and model.certificate_.n_releases == 2


def test_cells_are_keys_by_what_was_written():
    cells = np.array(["1", 1, 1.0, "01", True, " 1", "2", None], dtype=object)
    table = pd.DataFrame({"city": np.repeat(cells, 20), "x": 1.0})
    model = PrivateSummary(accountant=LARGE, by="city", **ASKED).fit(table)
    np.testing.assert_allclose(model.result_["x"]["count"], [120, 20, 20], atol=0.01)
    assert model.result_.index[:2].tolist() == [1, 2]
    assert np.isnan(model.result_.index[2])


@pytest.mark.parametrize("dtype", [object, "str", "string[python]", "category"])
def test_letters_are_no_truth_values(dtype):
    cells = pd.Series(["F", "M", " F", "no", "true", "f"] * 20, dtype=dtype)
    table = pd.DataFrame({"city": cells, "x": 1.0})
    model = PrivateSummary(accountant=LARGE, by="city", **ASKED).fit(table)
    counts = model.result_["x"]["count"].round().to_dict()
    assert counts == {1: 20, "F": 40, "M": 20, "f": 20, "no": 20}


# -- units, budgets, ledgers -----------------------------------------------------------


def test_a_unit_counts_once_for_each_of_its_keys():
    n = 300
    alone = pd.DataFrame({"id": np.arange(n), "city": np.arange(n), "x": 1.0})
    many = pd.DataFrame({"id": np.arange(n, n + 60), "city": "Köln", "x": 1.0})
    people = RecordScenario(unit="id", max_rows=4)
    model = PrivateSummary(people, PrivacyLoss(1e6, 0.01), by="city", **ASKED)
    model.fit(pd.concat([alone] * 9 + [many]))
    # by their four rows about a third of the others would be released
    assert "Köln" in model.result_.index and len(model.result_) < 9
    stated = model.certificate_.assumptions
    assert says(stated, "assume.keys_of_units_limited", max_keys=4, moves=4)
    assert says(stated, "assume.record_of_units", k=1, unit="id", max_rows=4)


@pytest.mark.parametrize(
    "relation, k", [("add_remove", 1), ("replace", 1), ("add_remove", 3)]
)
@pytest.mark.parametrize(
    "accountant",
    [
        None,
        Best(0.7, delta=1e-5),
        GroupPrivacy(0.7, delta=1e-5),
        RenyiDP(0.7, delta=1e-5),
    ],
)
def test_one_certificate_is_within_the_budget(relation, k, accountant):
    model = PrivateSummary(
        RecordScenario(relation=relation, k=k), accountant, by="city", **ASKED
    ).fit(TABLE)
    found, epsilon = model.certificate_, 1.0 if accountant is None else 0.7
    assert found.n_releases == 2 and found.delta == 1e-5
    assert 0.8 * epsilon < found.epsilon <= epsilon
    assert model.accountant_.epsilon == epsilon
    moves = 1 if relation == "add_remove" else 2
    facts = {"moves": moves, "max_units": k}
    assert says(found.assumptions, "assume.keys_of_units_limited", **facts)
    assert found.relation == relation


def test_a_ledger_hears_of_both_before_they_are_drawn(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", {"approximate_dp": (1.5, 1e-5)})
    model = PrivateSummary(by="city", **ASKED).set_callbacks(ledger).fit(TABLE)
    assert ledger.total().epsilon == pytest.approx(model.certificate_.epsilon, rel=0.01)
    # what is left is enough for the keys alone
    with pytest.raises(BudgetExceededError):
        model.fit(TABLE)
    assert not hasattr(model, "result_")


@pytest.mark.parametrize(
    "parameters, table, kind",
    [
        ({}, TABLE.assign(x=TABLE.x.where(TABLE.x > 1)), ValueError),
        ({"bounds": None}, TABLE, ValueError),
        ({"accountant": GeneralWasserstein(1.0, delta=1e-5)}, TABLE, CompositionError),
    ],
)
def test_what_fails_does_so_before_the_keys_are_paid_for(
    tmp_path, parameters, table, kind
):
    ledger = PrivacyLedger(tmp_path / "ledger", {"approximate_dp": (1.5, 1e-5)})
    model = PrivateSummary(by="city", **{**ASKED, **parameters})
    with pytest.raises(kind):
        model.set_callbacks(ledger).fit(table)
    assert not len(ledger.report())


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_seeds_leave_an_estimate():
    model = PrivateSummary(by="city", random_state=0, **ASKED).fit(TABLE)
    assert model.certificate_.seeded and not model.certificate_.certified


def test_behind_a_step_that_mixes_rows_an_estimate_is_left():
    centred = FunctionTransformer(lambda t: t.assign(x=t.x - t.x.mean()))
    steps = make_pipeline(centred, PrivateSummary(by="city", **ASKED))
    with pytest.warns(PrivacyWarning):
        model = steps.fit(TABLE)[-1]
    assert not model.certificate_.certified and len(model.result_) > 1
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (10.0, 1e-4)})
    with ledger, pytest.raises(NotComposableError), pytest.warns(PrivacyWarning):
        steps.fit(TABLE)
    assert not len(ledger.report())


@pytest.mark.parametrize(
    "parameters, kind, code",
    [
        (
            {"accountant": GroupPrivacy(1.0, alpha=math.inf)},
            UnsupportedError,
            "summary.keys_need_delta",
        ),
        (
            {"scenario": DependenceScenario(0.1)},
            ScenarioError,
            "summary.keys_need_records",
        ),
    ],
)
def test_what_keys_do_not_hold_for_is_refused(parameters, kind, code):
    with refused(kind, code):
        PrivateSummary(by="city", **parameters, **ASKED).fit(TABLE)


def test_nobody_plans_keys_beforehand():
    model = PrivateSummary(by="city", **ASKED)
    with refused(ValueError, "summary.by_levels_not_public", name="city"):
        model.preview(N, feature_names=list(TABLE))
    steps = [
        ("bounds", PrivateBounds(scale=False)),
        ("summary", PrivateSummary(by=0, statistics=["mean"], bounds={1: (0, 10)})),
    ]
    with refused(ValueError, "summary.by_levels_not_public", name=0):
        PrivatePipeline(steps, accountant=LARGE).fit(TABLE[["year", "x"]].to_numpy())
    # of one step there is nothing to plan
    alone = PrivatePipeline([("summary", model)]).fit(TABLE)
    assert alone.certificate_.n_releases == 2
