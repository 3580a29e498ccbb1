"""The number of records may be private: it leaves with noise, or not at all."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer._template._intervals import interval_width
from skpuffer.accountants import PrivacyLoss
from skpuffer.base import MOST_RECORDS
from skpuffer.compose import PrivatePipeline
from skpuffer.covariance import PrivateCovariance
from skpuffer.decomposition import PrivatePCA
from skpuffer.exceptions import ScenarioError, UnsupportedError
from skpuffer.kernel.queries import NORMS
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import BlocksScenario, RecordScenario
from skpuffer.schema import Category, Number, Schema
from skpuffer.summary import (
    PrivateBounds,
    PrivateCDF,
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateSummary,
)
from skpuffer.summary._gaps import count_weight
from skpuffer.summary._mean import _SENSITIVITY
from tests.engines import lazy_frame
from tests.refused import codes_of, refused, says

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

UNTOLD = RecordScenario(size="private")
EXACT = PrivacyLoss(1e6, 1e-9, noise="gaussian")
COLUMNS = {
    "a": Number(0, 10),
    "b": Number(-5, 5, missing=False),
    "g": Category(["x", "y"], missing_level=False),
}
BOOK = Schema(COLUMNS, size="private")
ALL = ["count", "size", "mean", "std", "var", "sum", "rate", "histogram", "median"]


def made(seed, n, gaps=0.3):
    """A table whose corners are records, and gaps."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "a": rng.choice([0.0, 3.0, 10.0], n),
            "b": rng.choice([-5.0, 0.0, 5.0], n),
            "g": rng.choice(["x", "y"], n),
        }
    )
    table.loc[rng.random(n) < gaps, "a"] = np.nan
    return table


def told(estimator, *arguments, **options):
    """Return a fit, its release, and the table as the release reads it."""
    held = []

    class Told(type(estimator)):
        def _execute(self, task, release, noise, rng):
            X = task.X
            if task.weights is not None:
                X = np.column_stack([X, task.weights])
            held.append((release, X))
            return super()._execute(task, release, noise, rng)

    model = Told(**estimator.get_params(deep=False)).fit(*arguments, **options)
    return model, *held[0]


ESTIMATORS = {
    "mean": PrivateMean(schema=BOOK),
    "means without gaps": PrivateMean(schema=BOOK.without("a")),
    "weighted mean": PrivateMean(schema=BOOK, weight_bounds=(0.5, 2.0)),
    "scaler": PrivateStandardScaler(schema=BOOK),
    "bounds": PrivateBounds(schema=BOOK),
    "covariance": PrivateCovariance(schema=BOOK),
    "covariance without gaps": PrivateCovariance(schema=BOOK.without("a")),
    "distributions": PrivateCDF(schema=BOOK, bins=16),
    "summary": PrivateSummary(statistics=ALL, schema=BOOK),
    "weighted summary": PrivateSummary(
        statistics=["count", "mean"], schema=BOOK, weight_bounds=(0.5, 2.0)
    ),
    "counts": PrivateSummary(statistics=["count", "size", "rate"], schema=BOOK),
    "groups": PrivateSummary(statistics=ALL, schema=BOOK, by="g"),
}

# -- what leaves, and how far one record moves it --------------------------------------


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_neighbouring_tables_are_as_far_apart_as_is_said(name, noise):
    """All tables with one record less, and with one replaced by another."""
    accountant = PrivacyLoss(1.0, 1e-5, noise=noise)
    model, table = ESTIMATORS[name], made(0, 80)
    weights = {}
    if "weighted" in name:
        weights = {"sample_weight": np.resize([2.0, 0.5, 1.0, 0.5, 2.0], len(table))}
    model, release, X = told(model.set_params(accountant=accountant), table, **weights)
    X = np.asarray(X, dtype=float)
    units = np.ones(release.dim) if release.units is None else np.array(release.units)
    whole = release.run(X) / units
    fewer = np.array(
        [release.run(np.delete(X, i, axis=0)) / units for i in range(len(X))]
    )
    # the place of one record is taken by another, one at a time
    moved = {"add_remove": fewer - whole, "replace": fewer[:, None] - fewer[None]}
    for relation, moves in moved.items():
        for norm in NORMS:
            found = np.linalg.norm(moves, norm, axis=-1).max()
            said = release.sensitivity.value(relation, norm, release.dim)
            assert found <= said * (1 + 1e-12)
            if name in ("mean", "counts") and relation == "add_remove":
                assert found == pytest.approx(said)
    assert release.n_records == MOST_RECORDS and release.factor == 1
    assert model.certificate_.n_records is None
    norm = 2.0 if noise == "gaussian" else 1.0
    assert model.certificate_.sensitivity == pytest.approx(
        release.sensitivity.value("add_remove", norm, release.dim)
    )


@pytest.mark.parametrize("n_columns", [1, 4, 25])
@pytest.mark.parametrize("norm", [1.0, 2.0, 4.0])
def test_no_other_weight_of_the_count_errs_less_half_way_to_the_bounds(norm, n_columns):
    beside = _SENSITIVITY[1].times(n_columns ** (1 / norm))
    beside = type(beside)({**beside.add_remove, norm: n_columns ** (1 / norm)})

    def error(weight, at):
        whole = (n_columns + weight**norm) ** (1 / norm)
        return whole * math.hypot(1, at / weight) / n_columns ** (1 / norm)

    best = count_weight(beside, norm)
    others = best * np.exp(np.linspace(-2, 2, 401))
    assert error(best, 0.5) <= min(error(w, 0.5) for w in others) * (1 + 1e-12)
    if norm == 2:
        assert error(best, 0.5) == pytest.approx(1 + 0.5 / math.sqrt(n_columns))


def test_the_number_of_records_alone_is_a_release():
    table = made(0, 200, gaps=0.0).drop(columns="a")
    parameters = {"bounds": {"b": (-5, 5)}, "categories": {"g": ["x", "y"]}}
    for statistics in ("count", "size", ["count", "size"]):
        asked = PrivateSummary(statistics=statistics, **parameters)
        with refused(ValueError, "summary.nothing_private_asked"):
            asked.fit(table)
        asked.set_params(scenario=UNTOLD, accountant=PrivacyLoss(1.0)).fit(table)
        assert abs(asked.result_ - 200).to_numpy().max() < 40
        assert asked.noise_.family == "discrete_laplace"
        assert np.ptp(asked.result_.to_numpy()) == 0
        np.testing.assert_allclose(asked.result_std_, asked.noise_.std(1)[0])
        assert asked.certificate_.sensitivity == 1


@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 10_000), gaps=st.sampled_from([0.0, 0.4]))
@pytest.mark.parametrize("by", [None, "g"])
def test_statistics_are_those_of_pandas(by, seed, gaps):
    table = made(seed, 150, gaps)
    model = PrivateSummary(
        accountant=EXACT, statistics=ALL[:-1], bins=5, by=by, schema=BOOK
    ).fit(table)
    groups = [("x", "y")] if by is None else [("x",), ("y",)]
    for group in groups:
        part = table[table["g"].isin(group)]
        held = model.result_ if by is None else model.result_.loc[group[0]].unstack(0)
        for name in ("a", "b"):
            x = part[name].dropna()
            expected = {
                "count": len(x),
                "size": len(part),
                "mean": x.mean(),
                "std": x.std(ddof=0),
                "sum": x.sum(),
                "rate": (x > 0).mean(),
            }
            for statistic, value in expected.items():
                assert held.loc[statistic, name] == pytest.approx(value, abs=0.3)


def test_all_estimators_find_what_they_find_of_a_public_number():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(2, 9, 500), "b": rng.uniform(-4, 5, 500)})
    table.loc[:99, "a"] = np.nan
    for model, names in {
        PrivateMean(): ["mean_", "mean_std_"],
        PrivateStandardScaler(): ["mean_", "var_"],
        PrivateCovariance(): ["covariance_", "mean_", "n_complete_"],
        PrivateCDF(): ["n_answers_"],
    }.items():
        fits = [
            model.set_params(
                accountant=EXACT,
                schema=Schema({"a": (0, 10), "b": Number(-5, 5, missing=False)}),
                scenario=RecordScenario(size=size),
            ).fit(table)
            and {name: getattr(model, name) for name in names}
            for size in ("public", "private", 500)
        ]
        for name in names:
            for other in fits[1:]:
                np.testing.assert_allclose(fits[0][name], other[name], atol=2e-2)
    model = PrivateMean(UNTOLD, EXACT, bounds=(-5, 10))
    weights = rng.uniform(0, 3, 500)
    model.set_params(weight_bounds=(0, 2)).fit(table[["b"]], sample_weight=weights)
    held = np.minimum(weights, 2)
    assert model.mean_[0] == pytest.approx(np.average(table["b"], weights=held), 1e-2)
    assert model.weight_sum_ == pytest.approx(held.sum(), 1e-2)
    assert not hasattr(model, "size_")


def test_units_are_counted_where_they_are_the_records():
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(40), 3)
    table = pd.DataFrame({"id": ids, "x": rng.uniform(size=120)})
    scenario = RecordScenario(unit="id", max_rows=2, size="private")
    for weight, n in (("row", 80), ("unit", 40)):
        model = PrivateMean(scenario, EXACT, bounds=(0, 1), weight=weight)
        assert model.fit(table).size_ == pytest.approx(n, abs=0.1)


def test_groups_that_nobody_listed_have_a_private_number_too():
    table = pd.DataFrame({"city": ["k"] * 400 + ["l"] * 300, "x": 1.0})
    model = PrivateSummary(
        UNTOLD,
        PrivacyLoss(4.0, 1e-4),
        statistics=["count"],
        by="city",
        bounds={"x": (0, 2)},
    ).fit(table)
    np.testing.assert_allclose(model.result_["x", "count"], [400, 300], atol=30)
    assert codes_of(model.certificate_.assumptions).isdisjoint(
        {"assume.neighbouring_tables"}
    )


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_engines_count_the_records_too(engine):
    table = made(0, 300)
    for model in (
        PrivateMean(accountant=EXACT, schema=BOOK),
        PrivateCovariance(accountant=EXACT, schema=BOOK),
        PrivateSummary(accountant=EXACT, statistics=ALL, schema=BOOK),
    ):
        here, release, X = told(model, table)
        there, same, elsewhere = told(model, lazy_frame(engine, table))
        np.testing.assert_allclose(same.run(elsewhere), release.run(X), rtol=1e-6)
        assert here.certificate_.sensitivity == pytest.approx(
            there.certificate_.sensitivity
        )
    # nothing is said of a number that is private but that it is none
    one = lazy_frame(engine, table[["b"]].iloc[:1])
    PrivateMean(UNTOLD, bounds=(-5, 5)).fit(one)
    with refused(ValueError, "lazy.too_few_records"):
        PrivateMean(bounds=(-5, 5)).fit(one)


def test_counts_are_clipped_and_not_negative_without_the_number():
    table = made(0, 30)
    asked = PrivateSummary(
        accountant=PrivacyLoss(0.05),
        statistics=["count", "size", "mean", "rate", "histogram", "sum"],
        schema=BOOK,
        bins=3,
        nonnegative=True,
        clip=True,
    )
    for _ in range(10):
        found = asked.fit(table).result_
        assert not (found.loc[["count", "size"]] < 0).any(axis=None)
        bins = [label for label in found.index if label.startswith("histogram")]
        assert not (found.loc[bins] < 0).any(axis=None)
        size = found.loc["size"].iloc[0]
        assert found.loc[bins, "b"].sum() == pytest.approx(size, rel=1e-3, abs=1e-3)


# -- how much it costs, and what intervals cover ---------------------------------------


def draws(size, noise, epsilon, n, at, n_draws, gaps=0.0):
    """Means of many fits to fresh tables of one column, and their deviations.

    Of tables whose sums are drawn: values are -0.5, 0 or 0.5 off `at`, or missing.
    """
    rng = np.random.default_rng(0)
    values = np.clip(at + np.array([-0.5, 0.0, 0.5]), -1, 1)
    shares = np.array([*(1 - gaps) * np.array([0.3, 0.4, 0.3]), gaps])
    entry = Number(-1, 1, missing=gaps > 0)
    model = PrivateMean(
        accountant=PrivacyLoss(epsilon, 1e-5, noise=noise),
        schema=Schema({"x": entry}, size=size),
    )
    counts = rng.multinomial(n, shares, n_draws)
    small = pd.DataFrame({"x": [*values, np.nan][: 4 if gaps else 3]})
    fitted, release, X = told(model, np.resize(small["x"], (n, 1)))
    # of each kind of record what it adds, in the units of the release
    X = np.asarray(X, dtype=float)[: len(small)]
    adds = release.factor * release.contribution(X) * np.asarray(release.units)
    exact = counts[:, : len(small)] @ adds
    noise = fitted.noise_
    noisy = exact + noise.sample(exact.shape, rng)
    stds = noise.std(release.dim)
    truth = (counts[:, :3] @ values) / counts[:, :3].sum(axis=1)
    if hasattr(release.contribution, "read"):
        n = 1 if size == "private" else n
        read = [release.contribution.read(row, stds, n) for row in noisy]
        found = np.array([[r.first[0], r.first_std[0]] for r in read]).T
    else:
        found = noisy[:, 0], np.full(n_draws, stds[0])
    population = shares[:3] @ values / shares[:3].sum()
    return *found, truth, population, interval_width(noise, 0.95)


def errors(*arguments, **options):
    """Root mean square error of the noise, and of noise and sampling."""
    found, _, truth, population, _ = draws(*arguments, **options)
    return [math.sqrt(np.mean((found - of) ** 2)) for of in (truth, population)]


@pytest.mark.parametrize("gaps", [0.0, 0.05])
@pytest.mark.parametrize("at", [0.0, 0.25, 0.5])
def test_a_private_number_costs_a_mean_no_more_than_the_formula_says(at, gaps):
    """Of 10,000 records, within half a half-range of the middle, by 2,000 draws."""
    options = {"n": 10_000, "at": at, "n_draws": 2000, "gaps": gaps}
    # clipped at the upper bound, the mean is below its middle value
    public, private = (
        errors(size, "gaussian", 1.0, **options) for size in ("public", "private")
    )
    _, _, _, mean, _ = draws("public", "gaussian", 1.0, **options)
    ratio = math.sqrt(1.5 * (1 + mean**2 * (2 + (gaps > 0))))
    ratio /= math.sqrt(1 + mean**2 * (gaps > 0))
    assert private[0] / public[0] == pytest.approx(ratio, rel=0.06)
    assert ratio < 1.63
    # next to which the sample errs more
    for noise in ("gaussian", "laplace"):
        public, private = (
            errors(size, noise, 1.0, **options) for size in ("public", "private")
        )
        assert private[1] < 1.02 * public[1]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("n", [200, 10_000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_intervals_cover_what_they_say(epsilon, n, noise):
    for gaps in (0.0, 0.2):
        found, stds, truth, _, width = draws(
            "private", noise, epsilon, n, 0.3, 1500, gaps
        )
        there = np.isfinite(found)
        # of fewer the noise is most of the number, and nothing is said
        assert there.mean() > (0.6 if n * epsilon < 100 else 0.999)
        covered = np.abs(found - truth)[there] <= width * stds[there]
        assert 0.93 <= covered.mean() <= 0.985


# -- what is stated, and refused -------------------------------------------------------


def test_certificates_say_what_is_known_of_the_number():
    X = np.random.default_rng(0).uniform(0, 1, (50, 1))
    stated = {
        None: "assume.neighbouring_tables",
        "public": "assume.neighbouring_tables",
        "private": "assume.neighbouring_tables_size_private",
        60: "assume.neighbouring_tables_size_declared",
    }
    codes = set(stated.values())
    for size, code in stated.items():
        for model in (
            PrivateMean(bounds=(0, 1)),
            PrivateQuantile(bounds=(0, 1)),
            PrivateCDF(bounds=(0, 1)),
        ):
            found = model.set_params(scenario__size=size).fit(X).certificate_
            assert codes_of(found.assumptions) & codes == {code}
            assert found.n_records == {"private": None, 60: 60}.get(size, 50)
    # what is declared is what sums are divided by
    model = PrivateMean(RecordScenario(size=100), EXACT, bounds=(0, 1)).fit(X)
    assert model.mean_[0] == pytest.approx(0.5 + (X - 0.5).sum() / 100, abs=1e-2)
    assert says(
        model.certificate_.assumptions,
        "assume.neighbouring_tables_size_declared",
        n_records=100,
    )


def test_a_code_book_says_it_for_all_estimators():
    X = pd.DataFrame({"x": np.linspace(0, 1, 40)})
    book = Schema({"x": Number(0, 1, missing=False)}, size="private")
    assert Schema.from_json(book.to_json()) == book
    assert book.select(["x"]).size == book.without("y").size == "private"
    assert book.with_target(None).size == "private"
    plain = Schema({"x": Number(0, 1, missing=False)})
    assert plain != book and "size" not in plain.to_dict() and plain.size is None
    assert PrivateMean(schema=book).fit(X).certificate_.n_records is None
    PrivateMean(UNTOLD, schema=book).fit(X)
    for size in (40, "public"):
        with refused(ValueError, "size.scenario_and_schema_differ"):
            PrivateMean(RecordScenario(size=size), schema=book).fit(X)
    for size in (0, 2.5, "secret"):
        with pytest.raises(ValueError, match="'size'"):
            Schema({"x": (0, 1)}, size=size)
        with pytest.raises(ValueError, match="'size'"):
            PrivateMean(RecordScenario(size=size), bounds=(0, 1)).fit(X)


def test_what_cannot_do_without_the_number_is_refused():
    X = pd.DataFrame({"x": np.linspace(0, 1, 40)})
    y = np.arange(40) % 2
    for size in ("private", 40):
        book = Schema({"x": (0, 1), "y": [0, 1]}, target="y", size=size)
        told = RecordScenario(size=size)
        for model in (
            PrivateLogisticRegression(schema=book),
            PrivatePCA(schema=book),
            PrivateLogisticRegression(told, classes=[0, 1]),
            PrivateRidge(told, target_bounds=(0, 1)),
        ):
            with refused(UnsupportedError, "size.estimator_without", size=size):
                model.fit(X, y)
        blocks = BlocksScenario(RecordScenario(k=2), 2)
        with refused(UnsupportedError, "size.scenario_without"):
            PrivateMean(blocks, schema=book.without("y")).fit(X)
        blocks = BlocksScenario(RecordScenario(k=2, size=size), 2)
        with refused(UnsupportedError, "size.release_with_number"):
            PrivateMean(blocks, bounds=(0, 1)).fit(X)
        # what was made with the number, and not by an estimator
        one = Sensitivity(add_remove={2: 1.0})
        release = QueryRelease(
            query=lambda X, y: X.sum(), n_records=40, dim=1, sensitivity=one
        )
        with refused(UnsupportedError, "size.release_with_number"):
            PrivacyLoss(1.0).calibrate(release, told)
    for relation in ("replace", "relabel"):
        with refused(ScenarioError, "size.relation_without"):
            RecordScenario(relation=relation, size="private").check()
    replaced = RecordScenario(relation="replace")
    with refused(ScenarioError, "size.relation_without"):
        PrivateMean(replaced, schema=Schema({"x": (0, 1)}, size="private")).fit(X)
    # a declared number is a divisor as any other
    PrivateMean(replaced, schema=Schema({"x": (0, 1)}, size=40)).fit(X)


def test_previews_need_no_number_that_is_private_or_declared():
    book = Schema({"x": Number(0, 1, missing=False)}, size="private")
    for model in (PrivateMean(schema=book), PrivateMean(UNTOLD, bounds=(0, 1))):
        columns = {} if model.schema else {"n_features": 1}
        before = model.preview(**columns)
        model.fit(np.zeros((7, 1)))
        assert before.certificate.epsilon == model.certificate_.epsilon
        assert np.array_equal(before.noise.scale, model.noise_.scale)
    before = PrivateMean(RecordScenario(size=500), bounds=(0, 1)).preview(n_features=1)
    assert before.certificate.n_records == 500
    with refused(ValueError, "preview.n_records_not_told"):
        PrivateMean(bounds=(0, 1)).preview(n_features=1)


def test_steps_of_a_pipeline_may_have_a_private_number():
    X = np.random.default_rng(0).uniform(0, 1, (300, 2))
    model = PrivatePipeline(
        [
            ("scale", PrivateStandardScaler(UNTOLD, bounds=(0, 1))),
            ("mean", PrivateMean(UNTOLD, bounds=(-5, 5))),
        ],
        accountant=PrivacyLoss(1.0),
    ).fit(X)
    assert codes_of(model.certificate_.assumptions).isdisjoint(
        {"assume.neighbouring_tables"}
    )
    assert model.certificate_.n_records is None
