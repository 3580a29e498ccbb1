"""What a code book does to a table, for the curator; and types of columns."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.additive import PrivateAdditiveClassifier
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.naive_bayes import PrivateCategoricalNB, PrivateGaussianNB
from skpuffer.schema import Category, Date, Number, Schema, Time
from skpuffer.summary import PrivateMean, PrivateSummary
from tests.engines import lazy_frame
from tests.refused import refused

BOOK = Schema(
    {
        "age": Number(17, 90, missing=[-9], fill=40),
        "sex": ["F", "M"],
        "grade": Category([1, 2], missing_level=False, fill=2, missing=["?"]),
        "day": Date("2020-01-01", "2024-12-31"),
        "y": ["no", "yes"],
    },
    target="y",
)
TABLE = pd.DataFrame(
    {
        "age": ["30", "95", "old", None, "-9", "12"],
        "sex": ["F", "m", None, "M", "F", "F"],
        "grade": [1, 2, 3, "?", None, 1],
        "day": ["2020-01-05", "2019-01-01", "soon", "2024-12-31", None, "2021-01-01"],
        "y": ["no", "yes", "maybe", "no", None, "no"],
        "name": list("abcdef"),
    }
)
#: missing, clipped, unlisted, unreadable, filled, example
EXPECTED = {
    "age": (2, 2, 0, 1, 3, 1),
    "sex": (1, 0, 1, 0, 0, 1),
    "grade": (2, 0, 1, 0, 3, 2),
    "day": (1, 1, 0, 1, 0, 1),
    "y": (1, 0, 1, 0, 0, 2),
}
FATES = ["missing", "clipped", "unlisted", "unreadable", "filled", "example"]


def in_polars(table):
    return pl.DataFrame(
        {name: [None if pd.isna(v) else str(v) for v in table[name]] for name in table}
    )


@pytest.mark.parametrize(
    "read", [lambda t: t, in_polars, lambda t: in_polars(t).lazy()]
)
@pytest.mark.parametrize("apart", [False, True])
def test_a_check_counts_what_happens_to_cells(read, apart):
    X, y = (TABLE.drop(columns="y"), TABLE["y"]) if apart else (TABLE, None)
    found = BOOK.check(read(X), y)
    frame = found.to_frame().set_index("column")
    assert {c: tuple(frame.loc[c, FATES]) for c in frame.index} == EXPECTED
    assert found.n_records == len(TABLE) and found.unread == ("name",)
    assert not found.is_clean
    assert BOOK.check(TABLE.iloc[[0, 0]]).is_clean


def test_a_check_reads_names_literally_that_engines_take_for_patterns():
    table = pl.DataFrame({"^x.*$": [1.0, 2.0, None], "x1": [9.0] * 3})
    book = Schema({"^x.*$": Number(0, 1)})
    expected = book.check(table.to_pandas()).to_frame()
    pd.testing.assert_frame_equal(
        book.check(table.lazy()).to_frame()[FATES], expected[FATES]
    )


def test_a_check_shows_no_value_and_names_what_is_not_there():
    found = BOOK.check(TABLE.drop(columns=["age"]))
    for text in (str(found), found._repr_html_()):
        assert "maybe" not in text and "soon" not in text
        assert "release" in text.splitlines()[0]
    held = found.to_frame().set_index("column")["held"]
    assert not held["age"] and held.drop("age").all()


def test_a_check_counts_as_pandas_does_on_random_tables():
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = np.where(rng.random(40) < 0.3, np.nan, rng.normal(0, 3, 40))
        k = rng.choice(["a", "b", "c", None], 40)
        table = pd.DataFrame({"x": x, "k": k})
        found = Schema({"x": (-2, 2), "k": ["a", "b"]}).check(table).to_frame()
        outside = (table.x < -2) | (table.x > 2)
        assert found["missing"].tolist() == [table.x.isna().sum(), table.k.isna().sum()]
        assert found["clipped"].tolist() == [outside.sum(), 0]
        assert found["unlisted"].tolist() == [0, (table.k == "c").sum()]


def test_a_draft_reads_names_and_types_alone():
    table = pl.DataFrame(
        {
            "n": [1],
            "x": [0.5],
            "b": [True],
            "t": ["u"],
            "d": [pd.Timestamp("2020").date()],
            "h": [pd.Timestamp("2020-01-01 09:00").time()],
        }
    )
    drafts = [Schema.draft(X, target="b") for X in (table, table.lazy(), table[:0])]
    assert len(set(drafts)) == 1
    text = drafts[0]
    assert "target='b'" in text
    for kind in ("Number(", "integer=True", "False, True", "Date(", "Time("):
        assert kind in text
    with refused(TypeError, "schema.draft_not_frame"):
        Schema.draft(np.eye(2))
    with refused(ValueError, "schema.target_not_a_column"):
        Schema.draft(table, target="z")


# -- types of columns, which are public ------------------------------------------------

DAYS = pd.date_range("2024-01-01", periods=6)
WRONG = [
    (DAYS, Number(0, 30_000)),
    (DAYS, Time()),
    (DAYS, Category(["a", "b"])),
    ([1, 2] * 3, Category(["a", "b"])),
    ([1.5, 2.5] * 3, Date("2020-01-01", "2024-01-01")),
    ([True, False] * 3, Category(["a", "b"])),
    ([[1], [2, 3]] * 3, Category(["a"])),
]
RIGHT = [
    (DAYS, Date("2020-01-01", "2024-12-31")),
    (DAYS, Category(["2024-01-01", "2024-01-02"])),
    ([1, 2] * 3, Category(["01", "b"])),
    ([True, False] * 3, Category(["yes", "no"])),
    ([True, False] * 3, Number(0, 1)),
    (["1", "x"] * 3, Number(0, 1)),
    ([np.nan] * 6, Category(["a", "b"])),
]
MODELS = [
    lambda s: PrivateSummary(statistics=["mean", "rate"], schema=s),
    lambda s: PrivateMean(schema=s),
    lambda s: PrivateCategoricalNB(schema=s),
    lambda s: PrivateAdditiveClassifier(schema=s),
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("cells, entry", [*WRONG, *RIGHT], ids=str)
def test_types_that_an_entry_cannot_hold_are_refused(cells, entry, model):
    table = pd.DataFrame({"c": cells})
    schema = Schema({"c": entry, "y": [0, 1]}, target="y")
    wrong = any(cells is one and entry is other for one, other in WRONG)
    estimator = model(schema)
    y = pd.Series([0, 1] * 3, name="y")
    # cells of pandas that are lists have no type that says so
    frames = [pl.from_pandas(table), *([] if isinstance(cells[0], list) else [table])]
    for X in frames:
        if wrong:
            with refused(ValueError, "schema.type_not_held", name="c"):
                estimator.fit(X, y)
            assert not hasattr(estimator, "certificate_")
        else:
            estimator.fit(X, y)


@pytest.mark.parametrize("of", [list, pd.Categorical, pl.Series])
def test_texts_that_are_no_numbers_are_no_answers(of):
    """One odd cell makes texts of a column, and must not decide whether it is read."""
    budget = PrivacyLoss(1e5)
    for cells, mean, n_answers in (
        (["one"] * 150 + ["2"] * 50, 2, 50),
        (["1", "3"] * 100, 2, 200),
        (["1", "3"] * 99 + ["1", "n/a?"], 396 / 199, 199),
    ):
        frame = pl.DataFrame if of is pl.Series else pd.DataFrame
        model = PrivateMean(accountant=budget, schema=Schema({"x": (0, 10)}))
        found = model.fit(frame({"x": of(cells)}))
        np.testing.assert_allclose(found.mean_, [mean], atol=0.1)
        np.testing.assert_allclose(found.n_answers_, [n_answers], atol=0.5)


# -- targets of which none is declared -------------------------------------------------


NUMBERS = Schema({"x": (0, 1), "y": (0, 1)}, target="y")


@pytest.mark.parametrize(
    "model, y",
    [
        (PrivateLogisticRegression(classes=["low", "high"]), [0, 1, 0, 1]),
        (PrivateLogisticRegression(classes=[0, 1]), ["low", "high", "a", "b"]),
        (PrivateAdditiveClassifier(classes=[0, 1], bounds=(0, 1)), [2, 3, 2, 3]),
        (PrivateRidge(schema=NUMBERS), ["a", None, "b", "c"]),
        (PrivateGaussianNB(classes=["a", "b"], bounds=(0, 1)), ["A", "B", "A", None]),
    ],
)
def test_targets_none_of_which_is_declared_are_no_training_set(model, y):
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (100.0, 1e-4)})
    X = np.linspace(0, 1, 4)[:, None]
    with ledger, refused(ValueError, "target.no_record_has_one"):
        model.fit(X, np.array(y, dtype=object))
    assert len(ledger.report()) == 0
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("cells", [["ann", "bob"], ["ann", None], [None, np.nan]])
def test_a_column_without_any_number_is_no_mean(cells, missing):
    model = PrivateSummary(
        statistics=["mean"], schema=Schema({"a": Number(0, 10, missing=missing)})
    )
    table = pd.DataFrame({"a": pd.Series(cells * 300, dtype=object)})
    if missing and cells == [None, np.nan]:
        model.fit(table)
    else:
        with refused(ValueError, "schema.no_cell_held", name="a", kind="Number"):
            model.fit(table)
    # one record makes a column of texts: it is read, and the others as they are
    table = pd.concat([table[:1], pd.DataFrame({"a": ["1.5"] * 2000})])
    found = model.set_params(accountant=PrivacyLoss(1e3)).fit(table)
    assert abs(found.result_.loc["mean", "a"] - 1.5) < 0.1


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize(
    "column, readable",
    [(Number(0, 10), "1.5"), (Date("2020-01-01", "2024-12-31"), "2021-05-06")],
)
def test_texts_that_an_engine_cannot_read_are_no_mean(
    engine, missing, column, readable
):
    schema = Schema({"a": replace(column, missing=missing)})
    model = PrivateSummary(statistics=["mean"], schema=schema)
    kind = type(column).__name__
    for cells in (["ann", "bob"], ["ann", ""], ["", "n/a"]):
        table = lazy_frame(engine, pd.DataFrame({"a": cells * 30}))
        if missing and "ann" not in cells:
            model.fit(table)
        else:
            with refused(ValueError, "schema.no_cell_held", name="a", kind=kind):
                model.fit(table)
    model.fit(lazy_frame(engine, pd.DataFrame({"a": ["ann"] * 59 + [readable]})))
