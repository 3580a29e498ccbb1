"""A prior, or a reference table, that is the private table certifies nothing."""

import warnings
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GeneralWasserstein, OverlapAmplification
from skpuffer.compose import PrivatePipeline, PublicPreprocessing
from skpuffer.ensemble import PATEClassifier
from skpuffer.exceptions import PrivacyLeakWarning
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BlocksScenario,
    DeclaredOdds,
)
from skpuffer.scenarios._priors._overlap import columns_of, shares_records
from skpuffer.summary import PrivateMean, PrivateSummary
from tests.refused import says, warned


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
    leaks = [w.message for w in caught if w.category is PrivacyLeakWarning]
    assert model.certificate_.certified == (not leaks)
    for leak in leaks:
        assert says(leak, "prior.holds_private_records")
        assert says(model.certificate_.assumptions, "prior.holds_private_records")
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


def test_a_part_of_the_rows_is_no_prior():
    table = continuous()
    assert mean_of(half(table), table)
    assert mean_of(table, table.iloc[:50])  # private rows that are a part of it
    assert mean_of(half(table.iloc[:100]), table)
    assert not mean_of(half(table.iloc[:4]), table)


def test_columns_by_position():
    table = continuous()
    prior = table.to_numpy()
    scenario = AttributeScenario(1, level="record", prior=prior, prior_as="law")
    model = PrivateMean(scenario, GeneralWasserstein(1.0, alpha=2.0), bounds=(0.0, 1.0))
    with warned(PrivacyLeakWarning, "prior.holds_private_records"):
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
        with warned(PrivacyLeakWarning, "prior.holds_private_records"):
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
    with warned(PrivacyLeakWarning, "prior.holds_private_records"):
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
    with warned(PrivacyLeakWarning, "prior.holds_private_records"):
        model.fit(table)
    assert not model.certificate_.certified


@pytest.mark.parametrize("change", [lambda table: table, shuffled, half])
def test_a_reference_table_that_is_private(change):
    table = continuous()[["age", "income"]]
    y = np.arange(len(table)) % 2
    inner = PrivateLogisticRegression(classes=[0, 1])
    model = PublicPreprocessing(StandardScaler(), inner, reference=change(table))
    with warned(PrivacyLeakWarning, "prior.holds_private_records"):
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


def test_numbers_that_are_near_are_not_the_same():
    whole = np.random.default_rng(2).integers(0, 1000, (60, 2)).astype(float)
    beside = whole + np.linspace(20, 40, 60)[:, None]
    assert not shares_records(*map(columns_of, (beside, whole)))
    assert not shares_records(*map(columns_of, (whole, beside)))
    assert shares_records(*map(columns_of, (whole, whole * (1 + 1e-6))))
    # nor is a number its negative, whose bits are the same but for one
    signed = np.random.default_rng(3).normal(size=(60, 2))
    assert not shares_records(*map(columns_of, (signed, -signed)))


# -- partial and near copies, as they came -------------------------------------------


def rich(seed, n=400):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(17, 90, n),
            "pay": rng.lognormal(8, 1, n),
            "dose": rng.normal(size=n),
            "job": rng.choice(["none", "some", "much"], n),
            "sex": rng.integers(0, 2, n),
            "label": rng.integers(0, 2, n),
        }
    )


PRIVATE, OTHERS = rich(0), rich(1, 600)
SMALL = OverlapAmplification(1.0, max_fallback=2.0, if_belief_suffices="cap")


def numbers(change):
    def changed(table):
        return table.assign(age=change(table.age), pay=change(table.pay))

    return changed


COPIES = {
    "as they are": shuffled,
    "twice": lambda t: pd.concat([t, t]),
    "drawn again": lambda t: t.sample(frac=1, replace=True, random_state=5),
    "six digits": numbers(lambda c: pd.Series([float(f"{v:.6g}") for v in c], c.index)),
    "six decimals": numbers(lambda c: c.astype(float).round(6)),
    "single": numbers(lambda c: c.astype("float32")),
    "text": lambda t: t.astype(object).map(str),
    "spelt": lambda t: t.assign(job=" " + t.job.str.upper(), label=t.label == 1),
    "columns turned": columns_turned,
    "recoded": lambda t: t.assign(sex=t.sex.map({0: "m", 1: "f"}), label=1 - t.label),
}


def certified_behind(door, public):
    """Whether a fit to the private rows is certified, and not refused."""
    X, y = PRIVATE.drop(columns="label"), PRIVATE["label"]
    numbers = ["age", "pay", "dose"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = door(public, numbers).fit(X, y)
    except ValueError as error:
        # by PrivatePipeline, or by a scenario whose secrets are spelt differently
        refusals = (
            "prior.holds_private_records",
            "pipeline.reference_holds_private_records",
            "attribute.values_not_in_prior",
        )
        if says(error, refusals):
            return False
        raise
    return model.certificate_.certified


def prior_law(public, numbers):
    public = public.astype(dict.fromkeys(numbers, float))
    scenario = AttributeScenario(
        "sex", level="record", prior=public[[*numbers, "sex", "label"]], prior_as="law"
    )
    model = PrivateMean(scenario, GeneralWasserstein(1.0, alpha=2.0), bounds=(0, 1e4))
    return Selected(model, numbers)


def binned(public, numbers):
    public = public.astype(dict.fromkeys(numbers, float))
    law = BinnedLaw(public[[*numbers, "sex"]], dict.fromkeys(numbers, 3))
    scenario = AttributeScenario("sex", level="record", prior=law)
    model = PrivateMean(scenario, SMALL, bounds=(0, 1e4))
    return Selected(model, numbers)


def declared(public, numbers):
    odds = np.full(len(public), 0.5)
    scenario = AttributeScenario(
        "sex", level="record", prior=DeclaredOdds(odds, public[numbers])
    )
    model = PrivateMean(scenario, SMALL, bounds=(0, 1e4))
    return Selected(model, numbers)


def preprocessed(public, numbers):
    scaler = ColumnTransformer([("scale", StandardScaler(), numbers)])
    return PublicPreprocessing(scaler, PrivateLogisticRegression(), reference=public)


def piped(public, numbers):
    scaler = ColumnTransformer([("scale", StandardScaler(), numbers)])
    steps = [("scaler", scaler), ("model", PrivateLogisticRegression())]
    return PrivatePipeline(steps, reference=public)


class Selected:
    """A mean of some columns, and of the secret that is left out of them."""

    def __init__(self, model, columns):
        self.model, self.columns = model, columns

    def fit(self, X, y):
        return self.model.fit(X[[*self.columns, "sex"]])


DOORS = [prior_law, binned, declared, preprocessed, piped]


@pytest.mark.parametrize("door", DOORS)
def test_copies_of_private_rows_are_no_public_rows(door):
    assert certified_behind(door, OTHERS)
    # all doors ask in one place, which knows the kinds of copies
    first = door == next(iter(DOORS))
    for name, change in list(COPIES.items())[: None if first else 1]:
        assert not certified_behind(door, change(PRIVATE)), name
    for share in (399 / 400, 0.1) if first else (0.1,):
        some = PRIVATE.sample(frac=share, random_state=4)
        assert not certified_behind(door, some), share
        assert not certified_behind(door, pd.concat([some, OTHERS])), share


def test_a_few_shared_rows_go_by_and_one_record_decides_nothing_else():
    def shared(n):
        public = pd.concat([PRIVATE.iloc[:n], OTHERS])
        return shares_records(*map(columns_of, (PRIVATE, public)))

    found = [shared(n) for n in range(60)]
    assert not any(found[:5]) and all(found[-20:])
    # there is one threshold, which one record more passes
    assert found == sorted(found)


def test_cells_that_cannot_be_compared_raise_nothing():
    class Odd:
        def __str__(self):
            raise RuntimeError("secret")

    odd = PRIVATE.astype(object)
    for cell in (Odd(), [1], Decimal("sNaN"), 1j, None, b"x", 10**400):
        odd.loc[7, "pay"] = cell
        assert not shares_records(*map(columns_of, (odd, OTHERS)))
        assert shares_records(*map(columns_of, (odd, PRIVATE)))


def test_a_grid_of_all_values_is_no_copy():
    grid = pd.DataFrame(list(product(range(8), range(8), range(4))), columns=[*"abc"])
    table = grid.sample(120, replace=True, random_state=1)
    assert not shares_records(*map(columns_of, (table, grid)))


def test_honest_splits_of_real_tables_share_no_records(data_dir):
    rng = np.random.default_rng(0)
    files = "adult_test.csv.gz", "german_credit.csv", "rice.csv.gz"
    for file in (*files, "heart_cleveland.csv", "household_power_hourly.csv.gz"):
        table = pd.read_csv(data_dir / file)
        for _ in range(10):
            n = int(rng.integers(1, table.shape[1] + 1))
            part = table[list(rng.choice(table.columns, n, replace=False))]
            part = part.sample(int(rng.integers(200, len(table))), random_state=0)
            cut = len(part) // int(rng.integers(2, 6))
            halves = part.iloc[:cut], part.iloc[cut:]
            assert not shares_records(*map(columns_of, halves)), list(part.columns)


def test_private_rows_are_no_unlabeled_public_ones():
    def certified(public):
        teacher = PATEClassifier(
            GaussianNB(), n_teachers=20, n_queries=20, classes=[0, 1], unlabeled=public
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            teacher.fit(PRIVATE[names], PRIVATE["label"])
        return teacher.certificate_.certified

    names = ["age", "pay", "dose"]
    assert certified(OTHERS[names])
    assert not certified(pd.concat([OTHERS, PRIVATE[:200]])[names])


@pytest.mark.parametrize("place", [0, 9_000, 17_000])
def test_copies_are_found_wherever_they_are_in_a_large_table(place):
    table, other = continuous(n=20_000), continuous(seed=1, n=500)
    assert not shares_records(columns_of(table), columns_of(other))
    copied = pd.concat([table.iloc[place : place + 3000], other])
    assert shares_records(columns_of(table), columns_of(copied))


class Odd:
    """It says nothing of what it is, and is equal to every other cell."""

    __hash__ = None

    def __eq__(self, other):
        return True

    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize("kind", ["texts", "numbers", "dates"])
@pytest.mark.parametrize("cell", [Odd(), [1], Decimal("sNaN"), "01/02/2020"])
def test_no_cell_hides_that_rows_are_shared(kind, cell):
    first = np.random.default_rng(0).permutation(1000)[:200]
    own, other = (
        {
            "texts": np.char.add("p", numbers.astype(str)),
            "numbers": numbers,
            "dates": pd.to_datetime(numbers, unit="D"),
        }[kind]
        for numbers in (first, first + 1000)
    )
    held = np.fromiter(map(str, own), dtype=object)
    held[0] = cell
    private = {"a": pd.Series(held)}
    assert shares_records(private, {"a": pd.Series(own)})
    assert not shares_records(private, {"a": pd.Series(other)})
