"""Units of lazy tables: rows are weighed by how many their unit has."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skpuffer._template import _lazy_tables
from skpuffer._template._lazy_tables import LazyTable, SummedColumns, number
from skpuffer.accountants import GeneralWasserstein, PrivacyLoss
from skpuffer.covariance import PrivateCovariance
from skpuffer.exceptions import ScenarioError, UnsupportedError
from skpuffer.scenarios import AttributeScenario, RecordScenario
from skpuffer.schema import Category, Number, Schema
from skpuffer.summary import PrivateMean, PrivateSummary
from skpuffer.summary._cells import Grouped
from skpuffer.summary._gaps import Ones, Stacked
from skpuffer.summary._mean import Moments
from skpuffer.utils._bounds import Bounds
from tests.engines import ENGINES, lazy_frame
from tests.refused import refused, says

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore:Dask support:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

RNG = np.random.default_rng(0)
IDS = np.repeat(np.arange(25), RNG.integers(1, 9, 25))
N = len(IDS)
TABLE = pd.DataFrame(
    {
        "id": IDS,
        "x": np.where(RNG.random(N) < 0.2, np.nan, RNG.random(N)),
        "sex": RNG.choice(["f", "m"], N),
    }
)
MOST = 3
SIZES = np.bincount(IDS)[IDS]
PEOPLE = RecordScenario(unit="id", max_rows=MOST)
SCHEMA = Schema({"x": (0, 1), "sex": Category(["f", "m"])})
EXACT = PrivacyLoss(1e7, 1e-9)


def weights_of(weight):
    return 1 / SIZES if weight == "unit" else np.minimum(1, MOST / SIZES)


@pytest.mark.parametrize("weight", ["row", "unit"])
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "dask" else name
        for name in ENGINES
    ],
)
def test_means_of_units_are_those_of_weighed_rows(engine, weight):
    shares = weights_of(weight)
    given = lazy_frame(engine, TABLE)
    options = {"schema": SCHEMA, "weight": weight}
    mean = PrivateMean(PEOPLE, EXACT, **options).fit(given)
    there = TABLE.x.notna()
    expected = (shares * TABLE.x)[there].sum() / shares[there].sum()
    assert mean.mean_[0] == pytest.approx(expected, abs=1e-6)
    said = mean.certificate_.assumptions
    n_records = 25 if weight == "unit" else round(shares.sum())
    assert says(said, "assume.neighbouring_tables", n_records=n_records)
    assert says(said, "assume.units_weighed_elsewhere", most=MOST)
    # of a unit in several cells, the rows of all cells count
    summary = PrivateSummary(
        PEOPLE, EXACT, columns=["x"], statistics=["mean"], by="sex", **options
    ).fit(given)
    found = summary.result_["x", "mean"]
    for sex in "fm":
        chosen = there & (TABLE.sex == sex)
        expected = (shares * TABLE.x)[chosen].sum() / shares[chosen].sum()
        assert found[sex] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_ids_are_one_unit_as_readers_write_them(engine):
    texts = ["1", "1.0", " 01", "a", " a", "NA", "nan", None, "12345678901234567890"]
    table = pd.DataFrame({"id": texts, "x": 1.0})
    for ids, n_units in [
        (texts, 3),
        ([1.5, 1.5, np.nan, 2.0, 2, 3, 3, 3, 3], 3),
        (pd.array([1, None, 1, 2, 2, 2, 2, 2, None], dtype="Int64"), 2),
        ([True] * 4 + [False] * 5, 2),
        (pd.to_datetime(["2020-01-01"] * 5 + ["2020-01-02"] * 4), 2),
    ]:
        given = table.assign(id=ids)
        if engine == "duckdb":
            lazy = lazy_frame(engine, given)
        else:
            cells = texts if ids is texts else [*given.id]
            cells = [None if cell is pd.NA else cell for cell in cells]
            lazy = pl.DataFrame({"id": cells, "x": given.x.tolist()}).lazy()
        mean = PrivateMean(RecordScenario(unit="id", max_rows=1), EXACT, bounds=(0, 1))
        said = mean.fit(lazy).certificate_.assumptions
        assert says(said, "assume.neighbouring_tables", n_records=n_units)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_other_sums_of_units_are_those_of_weighed_rows(engine):
    rows = pd.DataFrame({"id": IDS, "x": RNG.random(N), "z": RNG.random(N)})
    shares = weights_of("row")
    covariance = PrivateCovariance(PEOPLE, EXACT, bounds=(0, 1))
    found = covariance.fit(lazy_frame(engine, rows)).covariance_
    n = shares.sum()
    expected = n / (n - 1) * np.cov(rows[["x", "z"]].T, aweights=shares, bias=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)


# -- what is promised ------------------------------------------------------------------

BOUNDS = Bounds(np.array([0.0]), np.array([1.0]))
BLOCKS = [
    Moments((0,), BOUNDS, order=1),
    Moments((0,), BOUNDS, order=2),
    Grouped((1,), (2,), Moments((0,), BOUNDS, order=2)),
]


def summed(table, most, alone, block):
    """Sums of a table whose rows are in one of two cells by turns."""
    table = table.assign(cell=np.arange(len(table)) % 2)
    lazy = LazyTable(pl.from_pandas(table).lazy())
    lazy = lazy.by_units("id", most, alone=alone)
    columns = [number(lazy, "x"), number(lazy, "cell")]
    rows = SummedColumns(lazy, columns, "a test")
    whole = SimpleNamespace(block=block) if alone else block
    return rows.sum(whole), rows.rounding(whole)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
def test_all_rows_of_a_unit_are_within_the_sensitivity(block, alone):
    """By brute force: units of any number of rows, at and between the bounds."""
    most = 2
    rest = pd.DataFrame({"id": [7, 7, 7, 8], "x": [0.1, 0.9, 0.3, 0.7]})
    without, rounding = summed(rest, most, alone, block)
    sums = {}
    for size in (1, 2, 4):
        for x in itertools.combinations_with_replacement((0.0, 0.35, 2.0), size):
            unit = pd.DataFrame({"id": [3] * size, "x": x})
            given = pd.concat([rest, unit])
            sums[size, x], _ = summed(given, most, alone, block)
    counted = 1 if alone else most
    slack = 2 * counted * np.linalg.norm(rounding)
    moves = [np.linalg.norm(one - without) for one in sums.values()]
    one = counted * block.sensitivity.add_remove[2]
    assert max(moves) <= one + slack
    # rows in two cells move each of these by less
    if not isinstance(block, Grouped):
        assert max(moves) == pytest.approx(one, rel=1e-6)
    # replaced by one of as many rows
    for size in (1, 4):
        vectors = [v for (n, _), v in sums.items() if n == size]
        apart = max(np.linalg.norm(a - b) for a in vectors for b in vectors)
        assert apart <= counted * block.sensitivity.replace[2] + slack


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("in_floats", [True, False])
def test_units_are_rounded_by_no_more_than_is_said(monkeypatch, alone, in_floats):
    """In floats, and where a unit has more rows than floats add up exactly."""
    most = 5
    if not in_floats:
        monkeypatch.setattr(_lazy_tables, "_MOST_IN_FLOATS", 1)
    x = RNG.random(200) * 0.999
    ids = RNG.integers(0, 4, 200)
    table = pd.DataFrame({"id": ids, "x": x})
    sizes = np.bincount(ids)
    factors = 1 / sizes if alone else np.minimum(1, most / sizes)
    for block in BLOCKS[:2]:
        found, rounding = summed(table, most, alone, block)
        u = 2 * x - 1
        rows = np.column_stack([u, u * u - 0.5][: block.order])
        expected = [math.fsum(factors[ids] * column) for column in rows.T]
        allowed = 4 * (1 if alone else most) * rounding
        assert np.all(np.abs(found - expected) <= allowed)


@pytest.mark.parametrize("alone", [False, True])
def test_no_unit_is_rounded_further_than_is_said(alone):
    """One by one, counts of units too: 49 rows that each count for a 49th, say."""
    most, off = 5, []
    block = Stacked((Ones(), BLOCKS[1]))
    for size in range(1, 60):
        x = RNG.random(size)
        table = pd.DataFrame({"id": np.full(size, 3), "x": x})
        found, rounding = summed(table, most, alone, block)
        u, share = 2 * x - 1, 1 / size if alone else min(1, most / size)
        rows = np.column_stack([np.ones(size), u, u * u - 0.5])
        expected = [share * math.fsum(column) for column in rows.T]
        counted = 1 if alone else min(size, most)
        room = counted * rounding + 1e-14
        assert np.all(np.abs(found - expected) <= room), size
        off.append(abs(found[0] - expected[0]))
    # some are counted as a little less than one
    assert (max(off) > 1e-12) == alone


def test_an_attack_on_a_person_of_a_lazy_table():
    """The noise keeps the promise for a whole unit, and 0.7 of it does not."""
    scenario = RecordScenario(unit="id", max_rows=4)
    ids = np.repeat(np.arange(5), 6)
    table = pd.DataFrame({"id": ids, "x": np.where(ids == 0, 1.0, 0.5)})
    accountant = PrivacyLoss(1.0, 1e-9, noise="laplace")
    mean = PrivateMean(scenario, accountant, bounds=(0, 1))
    fit = mean.fit(pl.from_pandas(table).lazy())
    drawn = np.ravel(fit.noise_.sample((200_000, 1), np.random.default_rng(0)))
    block = BLOCKS[0]
    here, there = (
        summed(one, 4, False, block)[0][0] for one in (table, table[table.id != 0])
    )
    # in units of half the range, as the noise is
    shift = (here - there) / 20 / 2

    def largest_odds(share):
        with_person = share * drawn + shift > shift
        return np.log(with_person.mean() / (share * drawn > shift).mean())

    assert largest_odds(1.0) <= 1.0 + 0.05
    assert largest_odds(0.7) > 1.2


def test_attributes_of_units_move_as_in_memory():
    prior = pd.DataFrame({"sex": list("ffmm"), "x": [0.0, 0.2, 0.3, 1.0]})
    scenario = AttributeScenario(
        "sex", level="record", prior=prior, prior_as="law", unit="id", max_rows=MOST
    )
    table = TABLE.assign(x=TABLE.x.fillna(0.5), sex=np.where(IDS % 2, "f", "m"))
    mean = PrivateMean(scenario, GeneralWasserstein(), bounds=(0, 1))
    found = [
        mean.fit(given).certificate_ for given in (table, pl.from_pandas(table).lazy())
    ]
    assert found[0].coupling_count == found[1].coupling_count == MOST
    assert found[0].sensitivity == pytest.approx(found[1].sensitivity, rel=1e-6)


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    "scenario, table, error, code",
    [
        (RecordScenario(max_rows=2), TABLE, ScenarioError, "units.ids_not_given"),
        (PEOPLE, TABLE[["x"]], ScenarioError, "units.column_not_there"),
        (PEOPLE, TABLE.assign(id=np.nan), ValueError, "units.no_row_has_an_id"),
    ],
)
def test_what_cannot_be_read_by_units_is_refused(scenario, table, error, code):
    mean = PrivateMean(scenario, schema=Schema({"x": Number(0, 1)}))
    for engine in ("polars", "duckdb"):
        with refused(error, code):
            mean.fit(lazy_frame(engine, table))


def test_whole_counts_of_units_are_refused_where_rows_are_weighed():
    options = {"schema": SCHEMA, "by": "sex", "columns": [], "statistics": ["count"]}
    table = pl.from_pandas(TABLE).lazy()
    with refused(UnsupportedError, "units.counts_elsewhere"):
        PrivateSummary(PEOPLE, **options).fit(table)
    found = PrivateSummary(PEOPLE, EXACT, weight="unit", **options).fit(table)
    assert found.certificate_.coupling_count == 1


def test_ids_of_lists_are_refused():
    table = pl.DataFrame({"id": [[1], [2]], "x": [0.0, 1.0]}).lazy()
    with refused(ValueError, "units.ids_of_no_kind"):
        PrivateMean(PEOPLE, bounds=(0, 1)).fit(table)
