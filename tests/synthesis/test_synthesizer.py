"""Synthetic tables: what they keep, what they never read, what they refuse."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skpuffer.accountants import (
    Best,
    GroupPrivacy,
    OverlapAmplification,
    PrivacyLoss,
)
from skpuffer.distributions import PointMass
from skpuffer.exceptions import PrivacyWarning, UnsupportedError
from skpuffer.privacy import Notion
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BoundedOdds,
    LawsScenario,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.schema import Category, Number, Schema
from skpuffer.synthesis import PrivateTableSynthesizer
from skpuffer.testing._canaries import NUMBER, TEXT, listen
from tests.refused import refused, says, warned

#: What the noise takes is tested where it is said.
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateTableSynthesizer has too much noise"
)

MUCH = PrivacyLoss(50.0, 1e-2)
SCHEMA = Schema(
    {
        "age": Number(18, 80, integer=True, missing=False),
        "income": Number(0, 1e5, amount=True, missing=False),
        "city": ["north", "south", "west"],
        "grade": Category(["low", "mid", "high"], ordered=True, missing_level=False),
        "children": Number(0, 4, integer=True, missing_level=True),
        "ill": Category(["no", "yes"], missing_level=False),
    },
    target="ill",
)


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 81, n)
    grade = np.clip((age - 18) // 21 + (rng.random(n) < 0.2), 0, 2)
    ill = rng.random(n) < 0.1 + 0.7 * (grade == 2)
    return pd.DataFrame(
        {
            "age": age,
            "income": rng.lognormal(8 + grade, 0.5, n),
            "city": rng.choice(["north", "south", None], n),
            "grade": np.array(["low", "mid", "high"])[grade],
            "children": rng.choice([0, 1, 2, np.nan], n),
            "ill": np.where(ill, "yes", "no"),
            "left out": rng.random(n),
        }
    )


def synthesizer(accountant=MUCH, schema=SCHEMA, **options):
    options = {"random_state": 0, **options}
    return PrivateTableSynthesizer(accountant=accountant, schema=schema, **options)


@pytest.fixture(scope="module")
def fitted():
    return synthesizer().fit(people())


# -- what a synthetic table is ---------------------------------------------------------


def test_types_and_levels_are_those_of_the_code_book(fitted):
    rows = fitted.sample(500, random_state=0)
    assert list(rows) == fitted.columns_ == list(SCHEMA.with_target(None).names)
    assert len(rows) == 500
    assert rows["age"].dtype == np.int64
    assert rows["age"].between(18, 80).all()
    assert rows["income"].dtype == float
    assert rows["income"].between(0, 1e5).all()
    assert list(rows["city"].cat.categories) == ["north", "south", "west"]
    assert 0.2 < rows["city"].isna().mean() < 0.45
    assert rows["grade"].cat.ordered
    assert rows["children"].dtype == "Int64"
    assert set(rows["children"].dropna()) <= {0, 1, 2, 3, 4}
    # a target has its levels alone
    assert not rows["ill"].isna().any()
    assert fitted.n_features_in_ == 6
    np.testing.assert_array_equal(fitted.feature_names_in_, fitted.columns_)


def test_margins_and_links_are_kept(fitted):
    real, rows = people(), fitted.sample(random_state=0)
    assert len(rows) == len(real) == fitted.n_samples_
    assert fitted.structure_ == "classes"
    assert set(map(frozenset, fitted.tree_)) >= {frozenset({"age", "grade"})}
    for columns in ("ill", ["grade", "ill"]):
        expected = real.value_counts(columns, normalize=True)
        found = rows.value_counts(columns, normalize=True)
        assert (expected - found.reindex(expected.index)).abs().sum() < 0.05
    assert abs(rows["age"].mean() - real["age"].mean()) < 1
    linked = rows.groupby("grade", observed=True)["age"].mean()
    assert linked["low"] + 20 < linked["high"]


def test_sampled_margins_are_the_released_ones_up_to_rounding(fitted):
    rows = fitted.sample(30_000, random_state=1)
    for name in ("ill", "grade", "city"):
        released = 10 * fitted.marginal(name)
        found = rows[name].cat.codes.to_numpy()
        counts = np.bincount(np.where(found < 0, len(released) - 1, found))
        # each group of a parent's cell is rounded by itself
        np.testing.assert_allclose(counts, released, atol=40)


def test_whole_numbers_are_drawn_from_their_own_bin():
    """An edge that is a whole number belongs to the bin above it."""
    edges = (0.0, 2.0, 8.0, 20.0, 64.0)
    schema = Schema({"x": Number(0, 64, integer=True, bins=edges, missing=False)})
    values = np.random.default_rng(0).choice([0, 1, 8, 19], 3000)
    model = synthesizer(schema=schema).fit(pd.DataFrame({"x": values}))
    rows = model.sample(30_000, random_state=1)
    counts = np.histogram(rows["x"], edges)[0]
    np.testing.assert_allclose(counts, 10 * model.marginal("x"), atol=10)


def test_marginals_agree_and_sum_to_the_public_number(fitted):
    pair = fitted.marginal(["grade", "ill"])
    assert pair.index.names == ["grade", "ill"]
    assert pair.sum() == pytest.approx(3000)
    assert pair.min() >= 0
    for k, name in enumerate(("grade", "ill")):
        summed = pair.groupby(level=k, sort=False).sum()
        np.testing.assert_allclose(summed, fitted.marginal(name))
    triple = fitted.marginal(["ill", "city", "age"])
    assert triple.groupby(level=0, sort=False).sum().to_numpy() == pytest.approx(
        fitted.marginal("ill").to_numpy()
    )
    assert list(fitted.marginal("city").index) == ["north", "south", "west", "missing"]


def test_rows_come_from_a_seed_or_from_nowhere(fitted):
    one = fitted.sample(50, random_state=3)
    pd.testing.assert_frame_equal(one, fitted.sample(50, random_state=3))
    np.random.seed(0)  # noqa: NPY002  (that it has no effect is what is checked)
    first = fitted.sample(50)
    np.random.seed(0)  # noqa: NPY002
    assert not first.equals(fitted.sample(50))


def test_rows_cost_nothing(fitted):
    before = fitted.certificate_
    fitted.sample(10)
    fitted.marginal("age")
    assert fitted.certificate_ is before


def test_number_of_rows():
    model = synthesizer(n_samples=7).fit(people(200))
    assert len(model.sample()) == model.n_samples_ == 7
    assert len(model.sample(3)) == 3
    for n in (0, -1, 2.5, "3"):
        with refused(
            (TypeError, ValueError),
            ("parameter.count_too_small", "parameter.not_real_number"),
        ):
            model.sample(n)


def test_integers_fall_on_whole_numbers_of_their_cell():
    schema = Schema(
        {
            "x": Number(0, 10, integer=True, missing=False),
            "y": Number(0, 100, integer=True, bins=16, missing=False),
        }
    )
    table = pd.DataFrame({"x": np.arange(300) % 11, "y": np.full(300, 97)})
    rows = synthesizer(schema=schema).fit(table).sample(2000, random_state=0)
    assert set(rows["x"]) == set(range(11))
    assert abs(np.bincount(rows["x"]) - 2000 / 11).max() < 40
    # of the last sixteenth, both ends included
    assert set(rows.loc[rows["y"] > 93, "y"]) == set(range(94, 101))


def test_polars_frames_are_read():
    table = pl.DataFrame(people(400).to_dict("list"), strict=False)
    one = synthesizer().fit(table).sample(20, random_state=0)
    two = synthesizer().fit(people(400)).sample(20, random_state=0)
    pd.testing.assert_frame_equal(one, two)


def test_arrays_go_by_position_and_need_bounds_or_levels():
    X = people(500)[["age", "city"]].to_numpy()
    model = PrivateTableSynthesizer(
        accountant=MUCH, bounds=(18, 80), categories={1: ["north", "south"]}
    ).fit(X)
    assert list(model.sample(5)) == [0, 1]
    frame = PrivateTableSynthesizer(
        accountant=MUCH,
        bounds={"age": (18, 80)},
        categories={"city": ["north", "south"]},
        target="city",
    ).fit(people(500)[["age", "city"]])
    assert list(frame.sample(5)) == ["age", "city"]
    assert not frame.sample(50)["city"].isna().any()


# -- what it never reads --------------------------------------------------------------


@pytest.mark.parametrize("name", ["age", "income", "city", "grade", "children", "ill"])
def test_nothing_of_the_code_book_comes_from_the_data(name):
    """Values that nobody listed change no level, bound, cell or number of rows."""
    table, model = people(300), synthesizer()
    wild = table.astype({name: object})
    wild.loc[:50, name] = TEXT
    wild.loc[51:80, name] = 1e12
    one, two = (model.fit(t).sample(400, random_state=0) for t in (table, wild))
    assert one.dtypes.equals(two.dtypes)
    assert model.certificate_ == clone(model).fit(table).certificate_
    assert not two.astype(str).isin([TEXT, "1000000000000.0"]).any(axis=None)


def test_a_row_whose_target_is_none_counts_as_nothing():
    table = people(2000)
    some = table.copy()
    some.loc[:499, "ill"] = "perhaps"
    some.loc[:499, "grade"] = "high"
    model = synthesizer(accountant=PrivacyLoss(500.0, 1e-2)).fit(some)
    rest = table[500:]
    # shares are those of the others, the sum is the public number
    assert model.n_samples_ == 2000
    shares = model.marginal("grade") / 2000
    expected = rest["grade"].value_counts(normalize=True)[["low", "mid", "high"]]
    np.testing.assert_allclose(shares, expected, atol=0.01)


def test_a_number_may_be_the_target():
    model = synthesizer(target="age", n_bins=3).fit(people(2000))
    assert model.structure_ == "classes"
    assert "age" not in {name for link in model.tree_ for name in link}
    by_age = model.sample(random_state=0).groupby("grade", observed=True)["age"].mean()
    assert by_age["low"] + 15 < by_age["high"]


def test_a_schema_whose_target_is_a_number_names_no_classes():
    model = synthesizer(schema=SCHEMA.with_target("age")).fit(people(3000))
    assert model.structure_ == "tree"
    assert len(model.tree_) <= 5


# -- noise decides, by public numbers --------------------------------------------------


def test_noise_takes_the_classes_and_then_the_tree():
    table = people(1000)
    found = {
        epsilon: synthesizer(PrivacyLoss(epsilon, 1e-5)).fit(table)
        for epsilon in (10.0, 1.5, 0.3)
    }
    assert [model.structure_ for model in found.values()] == [
        "classes",
        "tree",
        "independent",
    ]
    poor = found[0.3]
    assert poor.tree_ == []
    for epsilon, said in (
        (1.5, "synthesis.given_up_class_links"),
        (0.3, "synthesis.given_up_links"),
    ):
        with warned(PrivacyWarning, said):
            synthesizer(PrivacyLoss(epsilon, 1e-5)).fit(table)
    # the whole budget goes to the margins: one stage
    rows = poor.sample(5000, random_state=0)
    joint = pd.crosstab(rows["grade"], rows["ill"], normalize=True).to_numpy()
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    np.testing.assert_allclose(joint, product, atol=0.02)


def test_structure_does_not_depend_on_the_data():
    noise = people(1000).apply(lambda c: c.sample(frac=1, random_state=1).to_numpy())
    for epsilon in (10.0, 1.5, 0.3):
        one, two = (
            synthesizer(PrivacyLoss(epsilon, 1e-5)).fit(t)
            for t in (people(1000), noise)
        )
        assert one.structure_ == two.structure_
        assert one.noise_ == two.noise_


def test_structure_is_of_the_noise_that_is_drawn():
    # of one count Laplace noise would be the least, of these tables it is not
    for epsilon, structure in ((1.5, "tree"), (0.8, "independent")):
        for kind in (PrivacyLoss, Best):
            model = synthesizer(kind(epsilon, delta=1e-5)).fit(people(1000))
            assert model.structure_ == structure


# -- scenarios and accountants ---------------------------------------------------------


@pytest.mark.parametrize(
    "scenario, times", [({}, 1), ({"relation": "replace"}, 1), ({"k": 3}, 3)]
)
def test_record_scenarios(scenario, times):
    accountant = PrivacyLoss(2.0, 1e-5)
    model = synthesizer(accountant, scenario=RecordScenario(**scenario))
    model.fit(people(500))
    # in units of the stages, which have sensitivity one under this very relation
    one = synthesizer(accountant).fit(people(500)).noise_.scale
    assert model.noise_.scale == pytest.approx(times * one)
    assert model.certificate_.epsilon == pytest.approx(2.0)


def test_pure_promises_by_laplace_noise():
    accountant = GroupPrivacy(2.0, alpha=np.inf, noise="laplace")
    model = synthesizer(accountant).fit(people(3000))
    assert model.certificate_.notion is Notion.PURE_DP
    assert model.noise_.family == "laplace"
    assert model.noise_.scale == pytest.approx(0.5)
    assert len(model.sample()) == 3000


def test_best_finds_a_candidate():
    model = synthesizer(Best(epsilon=1.0, delta=1e-5)).fit(people(500))
    one = synthesizer(PrivacyLoss(1.0, 1e-5)).fit(people(500))
    assert model.noise_.scale <= one.noise_.scale * (1 + 1e-6)


def test_a_secret_column_is_left_out_and_the_certificate_says_so():
    scenario = AttributeScenario("city", level="record", prior=BoundedOdds(4.0))
    model = synthesizer(OverlapAmplification(1.0, delta=1e-5), scenario=scenario)
    model.fit(people(2000))
    assert "city" not in model.columns_
    assert "city" not in model.sample(5)
    assumptions = model.certificate_.assumptions
    kept = ["age", "income", "grade", "children", "ill"]
    assert says(assumptions, "assume.synthetic_columns_public", columns=kept)
    assert says(assumptions, "assume.synthetic_secret_left_out", column="city")
    said = " ".join(map(str, assumptions))
    assert "audit_belief" in said
    # for the whole mechanism at once: less noise than differential privacy
    plain = synthesizer(
        PrivacyLoss(1.0, 1e-5), scenario=RecordScenario(relation="replace")
    ).fit(people(2000))
    assert model.noise_.scale < 0.5 * plain.noise_.scale


def test_a_belief_about_coded_records():
    public = people(4000, seed=9)[["city", "grade", "ill"]].assign(
        city=lambda d: d["city"].fillna("west")
    )
    scenario = AttributeScenario("city", level="record", prior=BinnedLaw(public))
    schema = Schema(
        {name: SCHEMA[name] for name in ("city", "grade", "ill")}, target="ill"
    )
    table = people(2000)[["city", "grade", "ill"]].assign(
        city=lambda d: d["city"].fillna("west")
    )
    model = synthesizer(
        OverlapAmplification(0.05, delta=1e-5), schema, scenario=scenario
    ).fit(table)
    assert model.columns_ == ["grade", "ill"]
    assert model.certificate_.notion is Notion.APPROXIMATE_PUFFERFISH


def test_a_chain_of_records():
    """Its states are coded as the records are."""
    rng = np.random.default_rng(0)
    states = (np.cumsum(rng.random(300) < 0.2) % 2)[:, None]
    chain = MarkovChainScenario([[0.8, 0.2], [0.2, 0.8]])
    for public in ({"bounds": (0, 1)}, {"schema": Schema({0: (0, 1)})}):
        model = PrivateTableSynthesizer(chain, n_bins=2, **public).fit(states)
        assert model.certificate_.certified
        assert len(model.sample(5)) == 5


def test_scenarios_of_one_output_are_refused():
    with pytest.raises(UnsupportedError):
        synthesizer(
            Best(epsilon=1.0, delta=1e-5),
            scenario=LawsScenario([(PointMass(0.0), PointMass(1.0))]),
        ).fit(people(50))


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, code, parameters",
    [
        ({"schema": None}, "synthesis.schema_missing", {}),
        (
            {"bounds": (0, 1)},
            "schema.parameter_disagrees_at_column",
            {"parameter": "bounds"},
        ),
        (
            {"categories": {"city": ["a"]}},
            "schema.parameter_disagrees_at_column",
            {"parameter": "categories"},
        ),
        ({"target": "wealth"}, "synthesis.target_not_in_schema", {"target": "wealth"}),
        ({"max_cells": 100}, "synthesis.table_too_many_cells", {"max_cells": 100}),
        ({"max_cells": 0}, "parameter.count_too_small", {"name": "max_cells"}),
        ({"n_bins": 0}, "parameter.count_too_small", {"name": "n_bins"}),
        ({"n_samples": 0}, "parameter.count_too_small", {"name": "n_samples"}),
        ({"shares": (0.5, 0.5)}, "synthesis.shares_invalid", {}),
        ({"shares": (0.5, 0.4, 0.2)}, "synthesis.shares_invalid", {}),
        ({"shares": (0.5, 0.6, -0.1)}, "synthesis.shares_invalid", {}),
        (
            {
                "scenario": AttributeScenario(
                    "ill", level="record", prior=BoundedOdds(4.0)
                )
            },
            "synthesis.target_is_secret",
            {},
        ),
    ],
)
def test_parameters_are_refused_before_anything_is_read(options, code, parameters):
    class Unread(pd.DataFrame):
        def to_numpy(self, *_args, **_kwargs):
            raise AssertionError("the table was read")

    model = synthesizer(**options)
    with refused(ValueError, code, **parameters):
        model.fit(Unread(people(20)))
    with pytest.raises(NotFittedError):
        model.sample()


def test_the_largest_table_is_named():
    schema = Schema(
        {"a": list(range(300)), "b": list(range(300)), "c": ["x"], "y": [0, 1]},
        target="y",
    )
    table = pd.DataFrame({"a": [1, 2], "b": [1, 2], "c": ["x"] * 2, "y": [0, 1]})
    with refused(ValueError, "synthesis.table_too_many_cells", most=181202):
        synthesizer(schema=schema, max_cells=10_000).fit(table)


@pytest.mark.parametrize("n", [0, 1])
def test_empty_tables_and_one_row_are_refused(n):
    for model, table in (
        (synthesizer(), people(n)),
        (PrivateTableSynthesizer(bounds=(0, 1)), np.zeros((n, 2))),
    ):
        with pytest.raises(ValueError, match=f"{n} sample"):
            model.fit(table)
        assert not hasattr(model, "certificate_")


def test_a_column_that_is_not_there_is_named():
    with refused(ValueError, "schema.table_lacks_columns"):
        synthesizer().fit(people(20).drop(columns="grade"))


def test_columns_of_a_marginal_are_checked(fitted):
    for columns in ("left out", ["age", "age"], [], ["ill", "wealth"]):
        with refused(ValueError, "synthesis.columns_invalid"):
            fitted.marginal(columns)
    small = clone(fitted).set_params(max_cells=3000).fit(people(100))
    with refused(ValueError, "synthesis.columns_too_many_cells"):
        small.marginal(["age", "income", "city", "grade"])


def test_nothing_is_quoted():
    table = people(60).astype({"age": object, "city": object})
    table.loc[4, ["age", "city", "ill"]] = [NUMBER, TEXT, TEXT]
    for options in ({}, {"accountant": PrivacyLoss(0.1, 1e-5)}, {"verbose": True}):
        with listen() as said:
            synthesizer(**options).fit(table)
        assert not said.songs
        assert said.error is None
    with listen() as said:
        PrivateTableSynthesizer(bounds=(0, 1)).fit(table[["age", "city"]])
    assert not said.songs


def test_progress_is_shown(capsys):
    synthesizer(verbose=True).fit(people(300))
    assert "pairs of columns" in capsys.readouterr().err


@pytest.mark.parametrize("target", [None, "ill"])
def test_a_private_number_of_records_is_read_off_the_noisy_counts(target):
    schema = SCHEMA.with_target(target)
    for epsilon, kind in ((50.0, None), (0.02, "independent")):
        model = PrivateTableSynthesizer(
            RecordScenario(size="private"), PrivacyLoss(epsilon, 1e-2), schema=schema
        ).fit(people(1000))
        # tables are chosen as for some thousands of records, however many may be there
        assert kind in (None, model.structure_)
        assert abs(model.n_samples_ - 1000) < (100 if kind is None else 50_000)
        assert model.marginal("city").sum() == pytest.approx(model.n_samples_, abs=1)


@pytest.mark.parametrize("n_bins", [1, 2, 3, 32])
def test_whole_numbers_are_drawn_up_to_both_bounds(n_bins):
    schema = Schema({"k": Number(-2, 7, integer=True, missing=False), "c": ["x"]})
    table = pd.DataFrame({"k": np.tile(np.arange(-2, 8), 100), "c": "x"})
    model = PrivateTableSynthesizer(accountant=MUCH, schema=schema, n_bins=n_bins)
    drawn = model.fit(table).sample(1000)["k"].value_counts()
    assert sorted(drawn.index) == list(range(-2, 8))
    assert drawn.min() > 50
