"""Summaries of mixed tables: what they say, of whom, and what they refuse."""

import math
import pickle
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skpuffer.accountants import GroupPrivacy
from skpuffer.exceptions import PrivacyLeakWarning, UnsupportedError
from skpuffer.noise import DiscreteLaplaceNoise
from skpuffer.privacy import Notion
from skpuffer.schema import Number, Schema
from skpuffer.schema._cells import cell_key
from skpuffer.summary import PrivateSummary
from skpuffer.summary._schema import Column, TableEncoder, check_levels
from tests.refused import refused, warned

from .releases import NO_NOISE

LEVELS = ["n", "s", "w"]
PUBLIC = {
    "bounds": {"age": (0, 100), "pay": (0.0, 8.0)},
    "categories": {"region": LEVELS},
}
EVERYTHING = ["mean", "std", "var", "rate", "quantile", "median", "histogram", "count"]


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, size=n),
            "region": rng.choice(LEVELS, size=n, p=[0.5, 0.3, 0.2]),
            "smoker": rng.random(n) < 0.3,
            "pay": rng.uniform(-1, 8, size=n),
        }
    )


def summary(**options):
    return PrivateSummary(**{"accountant": NO_NOISE, **PUBLIC, **options})


# -- what it says ----------------------------------------------------------------------


def test_without_noise_it_describes_the_table():
    data = table()
    data["pay"] = data["pay"].clip(0, 8)
    found = summary(statistics=EVERYTHING, bins=8).fit(data).result_
    exact = data[["age", "pay"]].describe()
    for name in ("age", "pay"):
        assert found.loc["count", name] == 300
        assert found.loc["mean", name] == pytest.approx(exact.loc["mean", name])
        std = data[name].std(ddof=0)
        assert found.loc["std", name] == pytest.approx(std)
        assert found.loc["var", name] == pytest.approx(std**2)
        width = 100 / 8 if name == "age" else 1
        for label in ("25%", "50%", "75%"):
            assert abs(found.loc[label, name] - exact.loc[label, name]) < width
        assert found.loc["median", name] == found.loc["50%", name]
    assert found.loc["rate", "pay"] == pytest.approx((data["pay"] > 0).mean())
    assert found.loc["rate", "smoker"] == pytest.approx(data["smoker"].mean())
    assert found.loc["mean", "smoker"] == pytest.approx(data["smoker"].mean())
    shares = data["region"].value_counts(normalize=True)
    for level in LEVELS:
        assert found.loc[f"rate[{level}]", "region"] == pytest.approx(shares[level])
        assert found.loc[f"histogram[{level}]", "region"] == pytest.approx(
            300 * shares[level]
        )
    assert found.loc["histogram[True]", "smoker"] == pytest.approx(data["smoker"].sum())
    counts, _ = np.histogram(data["pay"], bins=8, range=(0, 8))
    rows = [f"histogram[{i}, {i + 1})" for i in range(7)] + ["histogram[7, 8]"]
    np.testing.assert_allclose(found.loc[rows, "pay"], counts, atol=1e-6)
    assert found.loc[rows, "region"].isna().all()
    assert np.isnan(found.loc["mean", "region"])
    assert np.isnan(found.loc["median", "smoker"])


@pytest.mark.parametrize("by", ["region", ["region"], ["smoker", "region"]])
def test_without_noise_it_describes_the_groups(by):
    data = table()
    data["pay"] = data["pay"].clip(0, 8)
    options = {"statistics": EVERYTHING, "by": by, "columns": ["age", "pay"]}
    found = summary(**options, bins=50).fit(data).result_
    groups = data.groupby(by)
    for name in ("age", "pay"):
        column = groups[name]
        for label, exact in (
            ("count", column.count()),
            ("mean", column.mean()),
            ("std", column.std(ddof=0)),
            ("rate", column.apply(lambda x: (x > 0).mean())),
        ):
            np.testing.assert_allclose(
                found[name, label].sort_index(), exact.sort_index(), rtol=1e-5
            )
        width = 2 if name == "age" else 0.16
        gap = found[name, "median"].sort_index() - column.median().sort_index()
        assert np.all(np.abs(gap) < 2 * width)
        bins = [label for label in found[name] if label.startswith("histogram")]
        assert len(bins) == 50
        np.testing.assert_allclose(
            found[name][bins].sum(axis=1), found[name, "count"], atol=1e-6
        )


def test_groups_without_records_are_there_all_the_same():
    data = table()
    options = {"categories": {"region": [*LEVELS, "x"]}, "by": "region"}
    found = summary(statistics=["count", "mean"], columns=["age"], **options).fit(data)
    assert list(found.result_.index) == [*LEVELS, "x"]
    assert abs(found.result_.loc["x", ("age", "count")]) < 1e-6
    assert np.isnan(found.result_.loc["x", ("age", "mean")])


def test_statistics_by_column_and_defaults():
    data = table()
    asked = {"age": "mean", "region": ["rate"], "smoker": ["rate", "mean"]}
    found = summary(statistics=asked).fit(data).result_
    assert list(found.columns) == ["age", "region", "smoker"]
    assert list(found.index) == ["mean", *(f"rate[{v}]" for v in LEVELS), "rate"]
    plain = summary().fit(data).result_
    assert list(plain.index) == ["count", "mean", "std"]
    assert list(plain.columns) == ["age", "region", "smoker", "pay"]


def test_counts_alone_need_groups():
    data = table()
    found = summary(statistics=["count"], by=["smoker", "region"], columns=[]).fit(data)
    assert list(found.result_.columns) == [("records", "count")]
    exact = pd.crosstab(data["smoker"], data["region"])
    cross = found.to_crosstab()
    np.testing.assert_allclose(cross, exact[LEVELS], atol=1e-6)
    assert list(cross.columns) == LEVELS
    assert (cross.index.name, cross.columns.name) == ("smoker", "region")
    with refused(ValueError, "summary.nothing_private_asked"):
        summary(statistics="count").fit(data)


def test_cross_tables():
    data = table()
    # levels in an order of their own, which the cross-table keeps
    options = {"by": ["region", "smoker"], "categories": {"region": ["w", "n", "s"]}}
    found = summary(statistics=["mean", "median"], columns=["age", "pay"], **options)
    found.fit(data)
    cross = found.to_crosstab("mean", column="age")
    exact = data.pivot_table(values="age", index="region", columns="smoker")
    np.testing.assert_allclose(cross, exact.loc[["w", "n", "s"]], rtol=1e-6)
    assert found.to_crosstab().to_numpy().sum() == pytest.approx(len(data))
    with refused(ValueError, "summary.crosstab_statistic_not_unique", n_found=2):
        found.to_crosstab("mean")
    with refused(ValueError, "summary.crosstab_statistic_not_unique", n_found=0):
        found.to_crosstab("std", column="age")
    with refused(ValueError, "summary.crosstab_needs_two_columns"):
        clone(found).set_params(by="region").fit(data).to_crosstab()
    with pytest.raises(NotFittedError):
        clone(found).to_crosstab()


def test_three_way_cross_table():
    data = table().assign(old=lambda d: d["age"] > 50)
    found = summary(statistics="rate", columns=["pay"], by=["region", "smoker", "old"])
    cross = found.fit(data).to_crosstab()
    assert cross.shape == (3, 4)
    exact = data.groupby(["region", "smoker", "old"]).size()
    assert cross.loc["n", (True, False)] == pytest.approx(exact["n", True, False])


# -- tables of every kind --------------------------------------------------------------


def test_pandas_polars_and_arrays_agree():
    data = table()
    options = {"statistics": EVERYTHING, "by": "region", "random_state": 3}
    ours = summary(**options, columns=["age", "smoker", "pay"])
    pandas = clone(ours).fit(data)
    polars = clone(ours).fit(pl.DataFrame({c: data[c].to_numpy() for c in data}))
    pd.testing.assert_frame_equal(pandas.result_, polars.result_)
    assert list(pandas.feature_names_in_) == list(polars.feature_names_in_)

    array = clone(ours).set_params(
        by=1,
        columns=[0, 3],
        bounds={0: (0, 100), 3: (0.0, 8.0)},
        categories={1: LEVELS},
    )
    named = clone(ours).set_params(columns=["age", "pay"]).fit(data)
    for values in (data.to_numpy(), data.to_numpy().tolist()):
        found = clone(array).fit(values).result_
        np.testing.assert_array_equal(found.to_numpy(), named.result_.to_numpy())
        assert list(found.columns.levels[0]) == [0, 3]


@pytest.mark.parametrize("dtype", ["category", "string", object])
def test_categorical_columns_of_every_type(dtype):
    data = table()
    exact = summary(statistics="rate", columns=["region"]).fit(data).result_
    cast = data.astype({"region": dtype})
    found = summary(statistics="rate", columns=["region"]).fit(cast).result_
    np.testing.assert_allclose(found, exact)


def test_numbers_as_levels():
    data = table().assign(region=lambda d: d["region"].map({"n": 1, "s": 2, "w": 3}))
    found = summary(statistics="rate", categories={"region": [1, 2, 3]})
    found.set_params(columns=["region"]).fit(data)
    shares = data["region"].value_counts(normalize=True)
    assert found.result_.loc["rate[2]", "region"] == pytest.approx(shares[2])


def test_frames_whose_columns_are_numbers():
    data = table()
    renamed = data.set_axis(range(4), axis=1)
    options = {"by": 1, "columns": [0], "bounds": {0: (0, 100)}}
    found = summary(statistics=["mean"], categories={1: LEVELS}, **options).fit(renamed)
    exact = data.groupby("region")["age"].mean()
    np.testing.assert_allclose(found.result_[0, "mean"].sort_index(), exact, rtol=1e-6)


def test_bounds_and_grids_by_column_or_for_all():
    data = table()
    by_column = summary(columns=["age", "pay"]).fit(data).result_
    whole = ([0, 0, 0, 0.0], [100, 1, 1, 8.0])
    for bounds in (whole, np.array(whole)):
        found = summary(columns=["age", "pay"], bounds=bounds).fit(data).result_
        pd.testing.assert_frame_equal(found, by_column, rtol=1e-6)
    scalar = summary(columns=["age"], bounds=(0, 100)).fit(data).result_
    assert scalar.loc["mean", "age"] == pytest.approx(by_column.loc["mean", "age"])
    # edges need no bounds
    options = {"statistics": ["histogram"], "columns": ["age"], "bounds": None}
    for bins in ([0, 30, 60, 100], {"age": np.array([0, 30, 60, 100.0])}):
        found = summary(bins=bins, **options).fit(data).result_["age"]
        np.testing.assert_allclose(
            found, np.histogram(data["age"], [0, 30, 60, 100])[0], atol=1e-6
        )


def test_missing_values_are_counted_only_if_listed():
    data = table()
    values = data["region"].tolist()
    values[0] = values[5] = None
    data["region"] = values
    plain = summary(statistics="rate", columns=["region"]).fit(data).result_["region"]
    # they count as nothing: shares are those of all 300 records
    assert plain.sum() == pytest.approx(298 / 300)
    for levels in ([*LEVELS, None], [None, *LEVELS]):
        listed = {"categories": {"region": levels}, "bounds": None}
        asked = ["rate", "histogram"]
        for frame in (data, pl.DataFrame({"region": values})):
            found = summary(statistics=asked, columns=["region"], **listed)
            held = found.fit(frame).result_["region"]
            # shares are those of the records with a level, whose number is there
            assert held.filter(like="rate").sum() == pytest.approx(1)
            assert "rate[None]" not in held
            assert held["histogram[None]"] == pytest.approx(2, abs=1e-3)
            assert held["count"] == pytest.approx(298, abs=1e-3)


@pytest.mark.parametrize("value", [(1, [2]), Decimal("sNaN"), [1], {}, 1j], ids=repr)
def test_whatever_a_cell_holds_it_is_no_level_and_nothing_raises(value):
    data = table()
    values = data["region"].astype(object)
    values.iat[0], values.iat[5] = value, None
    options = {"statistics": "rate", "columns": ["region"], "bounds": None}
    rates = summary(**options).fit(data.assign(region=values)).result_["region"]
    assert rates.sum() == pytest.approx(298 / 300)


KINDS = ["string[python]", "string[pyarrow]", "large_string[pyarrow]"]
if pd.isna(pd.Series([None], dtype=object).astype("str")[0]):  # pandas 3
    KINDS.append("str")


@pytest.mark.parametrize("kind", [*KINDS, "category", "polars"])
@given(cells=st.lists(st.sampled_from(["n", "s", "", " n", "7", "x", None])))
def test_coded_columns_are_read_as_their_cells(kind, cells):
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    plain = pd.DataFrame(
        {"c": np.array([*cells, None], dtype=object)[:-1]}, dtype=object
    )
    column = plain.astype(kind) if kind != "polars" else pl.DataFrame({"c": cells})
    for levels in (LEVELS, ["x", 7, "n "], ["s", None], [1.5]):
        read = TableEncoder((Column("c", 0, check_levels("c", levels)),), 1)
        expected = read(plain)
        np.testing.assert_array_equal(read(column), expected)
        strict = replace(read, strict=True)
        # whether a level is listed is said without quoting it
        unlisted = set(map(cell_key, cells)) - {None, *map(cell_key, levels)}
        if not unlisted:
            np.testing.assert_array_equal(strict(column), expected)
        elif kind != "category":
            with refused(ValueError, "summary.prior_values_not_listed"):
                strict(column)


def test_levels_stay_whole_numbers_beside_the_level_of_missing_values():
    book = Schema({"k": [1, 2, 3]})
    summary = PrivateSummary(statistics=["count"], by="k", schema=book)
    index = summary.fit(pd.DataFrame({"k": [1, 2, 3] * 20})).result_.index
    assert list(map(repr, index[:3])) == ["1", "2", "3"]


# -- noise -----------------------------------------------------------------------------


def test_noise_is_in_proportion_to_each_statistic_s_own_range():
    accountant = GroupPrivacy(epsilon=1.0, alpha=2.0)
    found = summary(
        accountant=accountant,
        statistics={"age": ["mean"], "pay": ["std"], "smoker": ["rate"]},
    ).fit(table())
    # mean: 1, mean and square: 5/4, sign: 1
    in_units = math.sqrt(1 + 5 / 4 + 1) / 300
    np.testing.assert_allclose(
        found.noise_.std(4), in_units * np.array([50.0, 4.0, 16.0, 0.5])
    )
    assert found.certificate_.release == "summary"


def test_groups_cost_no_more_than_one():
    accountant = GroupPrivacy(epsilon=1.0, alpha=2.0)
    options = {"accountant": accountant, "statistics": ["histogram"]}
    whole = summary(columns=["age"], **options).fit(table())
    groups = summary(columns=["age"], by=["region", "smoker"], **options).fit(table())
    assert groups.noise_ == whole.noise_
    assert groups.certificate_.sensitivity == whole.certificate_.sensitivity


@pytest.mark.parametrize("by", [None, "region"])
def test_published_statistics_spread_as_the_noise_does(by, n_trials):
    data, trials = table(2000), n_trials(100)
    model = summary(
        accountant=GroupPrivacy(epsilon=1.0, alpha=2.0),
        statistics={"age": ["mean"], "pay": ["histogram"]},
        by=by,
        bins=4,
    )
    fits = [model.fit(data).result_ for _ in range(trials)]
    if by is None:
        found = np.array([f["pay"].dropna().to_numpy() for f in fits])
        means = np.array([f.loc["mean", "age"] for f in fits])
        half = model.noise_.std(5)[0]
        assert np.std(means) / half == pytest.approx(1, abs=5 / math.sqrt(2 * trials))
    else:
        found = np.array([f["pay"].to_numpy().ravel() for f in fits])
    exact = summary(statistics=model.statistics, by=by, bins=4).fit(data).result_
    centre = exact["pay"].dropna().to_numpy().ravel()
    scaled = (found - centre) / (2000 * model.noise_.std()[-1])
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], scaled.size)
    assert low < np.sum(scaled**2) < high


def test_small_groups_are_not_divided_by():
    data = table(400)
    data["region"] = ["n"] * 395 + ["s"] * 5
    model = summary(
        accountant=GroupPrivacy(epsilon=0.5, delta=1e-5),
        statistics=["mean", "median", "count"],
        columns=["age"],
        by="region",
    )
    for _ in range(5):
        found = model.fit(data).result_["age"]
        size = 400 * model.noise_.std()[0]
        unfit = found["count"] < max(1.0, 2 * size)
        np.testing.assert_array_equal(found["mean"].isna(), unfit)
        assert not unfit["n"] and found["median"].notna()["n"]


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, code, parameters",
    [
        ({"statistics": ["skew"]}, "summary.statistics_unknown", {}),
        ({"statistics": []}, "summary.statistics_unknown", {}),
        (
            {"statistics": {"height": ["mean"]}},
            "summary.column_not_in_data",
            {"parameter": "statistics", "name": "height"},
        ),
        (
            {"statistics": {"region": ["mean"]}},
            "summary.statistic_impossible_for_column",
            {"name": "region", "kind": "categorical"},
        ),
        (
            {"statistics": {"smoker": ["median"]}},
            "summary.statistic_impossible_for_column",
            {"name": "smoker", "kind": "boolean"},
        ),
        (
            {"statistics": ["mean"], "columns": ["region"]},
            "summary.columns_statistics_inapplicable",
            {},
        ),
        (
            {"columns": ["height"]},
            "summary.column_not_in_data",
            {"parameter": "columns", "name": "height"},
        ),
        (
            {"columns": ["age", "age"]},
            "summary.column_named_twice",
            {"parameter": "columns"},
        ),
        (
            {"by": "height"},
            "summary.column_not_in_data",
            {"parameter": "by", "name": "height"},
        ),
        (
            {"by": ["region", "region"]},
            "summary.column_named_twice",
            {"parameter": "by"},
        ),
        ({"by": "age"}, "summary.keys_need_delta", {"accountant_type": "GroupPrivacy"}),
        ({"by": "region", "columns": ["region"]}, "summary.by_also_summarised", {}),
        (
            {"statistics": {"age": "mean"}, "columns": ["pay"]},
            "summary.columns_without_statistics",
            {},
        ),
        ({"categories": None}, "summary.column_not_numeric", {"name": "region"}),
        ({"categories": {"region": []}}, "summary.levels_repeated", {}),
        ({"categories": {"region": "nsw"}}, "summary.levels_not_listed", {}),
        ({"categories": {"region": ["n", "n"]}}, "schema.levels_read_alike", {}),
        (
            {"bounds": None},
            "summary.columns_without_bounds",
            {"missing": ["age", "pay"]},
        ),
        (
            {"bounds": {"age": (0, 9)}},
            "summary.columns_without_bounds",
            {"missing": ["pay"]},
        ),
        (
            {"bounds": {"age": (9, 0)}},
            "bounds.low_not_below_high",
            {"name": "bounds['age']"},
        ),
        (
            {"bounds": {"age": ([0], [1])}},
            "bounds.column_pair_invalid",
            {"name": "bounds", "column": "age"},
        ),
        ({"bounds": {"age": (0, math.inf)}}, "bounds.not_finite", {}),
        ({"bounds": (0, math.nan)}, "bounds.not_finite", {}),
        (
            {"bounds": ([0, 1], 2)},
            "bounds.count_differs_from_features",
            {"size": 2, "n_features": 4},
        ),
        ({"bounds": {"height": (0, 1)}}, "summary.columns_without_bounds", {}),
        ({"bins": 0}, "parameter.count_too_small", {"name": "bins", "least": 1}),
        ({"bins": [3, 2, 1]}, "summary.bins_invalid", {}),
        ({"bins": [1]}, "summary.bins_invalid", {}),
        ({"bins": {"age": [0, math.inf]}}, "summary.bins_invalid", {}),
        (
            {"bins": {"height": 3}},
            "summary.column_not_in_data",
            {"parameter": "bins", "name": "height"},
        ),
        (
            {"quantiles": (0.5, 1.0)},
            "parameter.probability_out_of_range",
            {"name": "quantiles"},
        ),
        ({"quantiles": (math.nan,)}, "parameter.is_nan", {"name": "quantiles"}),
    ],
    ids=str,
)
def test_bad_parameters(options, code, parameters):
    model = summary(**options)
    with refused(ValueError, code, **parameters):
        model.fit(table())
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


@pytest.mark.parametrize(
    "change, match",
    [
        ({"age": math.nan}, "summary.column_missing_values"),
        ({"pay": math.inf}, "summary.column_infinite"),
        ({"pay": "much"}, "summary.column_not_numeric"),
    ],
    ids=str,
)
def test_bad_data_is_refused_without_quoting_it(change, match):
    data = table().astype({"age": float, "pay": object, "region": object})
    if "pay" not in change:
        data = data.astype({"pay": float})
    ((name, value),) = change.items()
    data.loc[7, name] = value
    model = summary().fit(table())
    with refused(ValueError, match) as error:
        model.fit(data)
    if isinstance(value, str):
        assert not re.search(rf"\b{value}\b", str(error.value))
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_an_empty_table_is_refused():
    with refused(ValueError, "summary.table_empty"):
        summary().fit(table().iloc[:0])


def test_columns_that_are_not_read_may_hold_anything():
    data = table().assign(notes=None, when=pd.Timestamp(0))
    found = summary(statistics="mean", columns=["age"]).fit(data).result_
    assert found.loc["mean", "age"] == pytest.approx(data["age"].mean())


def test_bounds_from_the_data_warn_and_leave_an_estimate():
    data = table()
    model = summary(bounds="empirical", statistics=["mean"], columns=["age", "pay"])
    with warned(PrivacyLeakWarning, "assume.bounds_read_from_data"):
        model.fit(data)
    assert model.certificate_.notion == Notion.ESTIMATED
    np.testing.assert_allclose(
        model.result_.loc["mean"], data[["age", "pay"]].mean(), rtol=1e-6
    )


def test_clone_and_pickle():
    model = summary(by="region").fit(table())
    again = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(again.result_, model.result_)
    assert again.certificate_ == model.certificate_
    assert not hasattr(clone(model), "result_")


def test_a_whole_code_book_may_be_given():
    table = pd.DataFrame({"age": [20.0, 40.0, 60.0], "region": ["n", "s", "n"]})
    book = {"region": ["n", "s"], "income": ["low", "high"]}
    limits = {"age": (0, 100), "hours": (0, 99)}
    fitted = PrivateSummary(
        statistics=["mean"], by="region", bounds=limits, categories=book
    ).fit(table)
    assert ("age", "mean") in fitted.result_.columns


def test_counts_are_whole_numbers_for_noise_made_of_such():
    frame = table()
    options = {"statistics": ["histogram"], "columns": ["region"]}
    accountant = GroupPrivacy(epsilon=1.0, alpha=np.inf, noise="discrete_laplace")
    counted = summary(accountant=accountant, **options).fit(frame)
    assert counted.noise_ == DiscreteLaplaceNoise(1.0)
    released = counted.result_.to_numpy()
    np.testing.assert_allclose(released, np.rint(released), atol=1e-9)
    means = summary(accountant=accountant, statistics=["mean"], columns=["age"])
    with refused(UnsupportedError, "noise.integer_family_for_reals"):
        means.fit(frame)


@pytest.mark.parametrize("by", [None, "g"])
def test_deviations_are_of_all_that_the_noise_moves_smoothly(by):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.random(90), "g": np.arange(90) % 2})
    asked = ["count", "mean", "std", "var", "rate", "histogram", "median"]
    model = PrivateSummary(
        statistics={"x": asked},
        by=by,
        bounds={"x": (0, 1)},
        bins=2,
        categories={"g": [0, 1]},
    ).fit(table)

    def statistics(found):
        names = found.columns.get_level_values(1) if by else found.index
        return {name.partition("[")[0] for name in names}

    assert statistics(model.result_) == set(asked)
    assert statistics(model.result_std_) == set(asked) - {"median"}


@pytest.mark.parametrize("groups", [None, "region"])
def test_whole_numbers_are_a_bin_each(groups):
    columns = {"age": Number(16.5, 90, integer=True), "region": LEVELS}
    ages = np.repeat([20, 40, 41], [10, 60, 30])
    data = pd.DataFrame({"age": ages, "region": "n"})
    found = summary(
        statistics={"age": ["quantile", "mean"]},
        by=groups,
        quantiles=(0.05, 0.5, 0.9),
        schema=Schema(columns),
        bounds=None,
        categories=None,
    ).fit(data)
    result = found.result_["age"] if groups is None else found.result_.loc["n", "age"]
    assert result[["5%", "50%", "90%"]].tolist() == [20, 40, 41]
