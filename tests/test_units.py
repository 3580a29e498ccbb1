"""People with several rows: what is kept of each, and what is promised of all."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.preprocessing import MinMaxScaler

from skpuffer._template._reading import split_secrets
from skpuffer._template._units import rows_of_units
from skpuffer.accountants import PrivacyLoss
from skpuffer.compose import PrivatePipeline, PublicPreprocessing
from skpuffer.exceptions import (
    CompositionError,
    ScenarioError,
    Statement,
    UnsupportedError,
)
from skpuffer.linear_model import PrivateLogisticRegression, PrivateSGDClassifier
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.preprocessing import PublicMinMaxScaler
from skpuffer.privacy import compose
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import (
    AttributeScenario,
    BlocksScenario,
    BoundedOdds,
    RecordScenario,
)
from skpuffer.schema import Schema
from skpuffer.summary import (
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateSummary,
)
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import LinearGradients, Logistic, Training
from tests.refused import refused, says

RNG = np.random.default_rng(0)
IDS = np.repeat(np.arange(30), RNG.integers(1, 9, 30))
TABLE = pd.DataFrame({"id": IDS, "x": RNG.random(len(IDS)), "z": RNG.random(len(IDS))})
Y = pd.Series((TABLE.x > 0.5).astype(int), name="y")
MOST = 3
KEPT = int(np.minimum(np.bincount(IDS), MOST).sum())
PEOPLE = RecordScenario(unit="id", max_rows=MOST)


def by_groups(**parameters):
    return RecordScenario(max_rows=MOST, **parameters)


# -- which rows are kept ---------------------------------------------------------------


def test_at_most_so_many_rows_of_each_unit_are_kept_in_their_order():
    ids = np.where(RNG.random(len(IDS)) < 0.1, -1, RNG.permutation(IDS))
    for most in (1, 2, 5, 20):
        kept = rows_of_units(ids, most, np.random.default_rng(most))
        expected = np.minimum(np.bincount(ids[ids >= 0]), most)
        assert np.array_equal(np.bincount(ids[kept], minlength=30), expected)
        assert np.all(np.diff(kept) > 0)


def test_rows_of_a_unit_are_kept_with_equal_chance_and_apart_from_other_units():
    ids = np.array([0, 1, 0, 0, 1, 1, 1])
    rng = np.random.default_rng(0)
    runs = [tuple(rows_of_units(ids, 2, rng)) for _ in range(6000)]
    pairs = [
        (tuple(i for i in run if ids[i] == 0), tuple(i for i in run if ids[i] == 1))
        for run in runs
    ]
    # 3 x 6 pairs of choices, each as likely as any other
    counts = pd.Series(pairs).value_counts()
    assert len(counts) == 18
    assert np.all(abs(counts - 6000 / 18) < 5 * np.sqrt(6000 / 18))


def test_ids_are_one_unit_however_a_reader_types_them():
    table = pd.DataFrame({"id": ["1", "1.0", 1, "01", " 2", 2.0, None, None], "x": 1.0})
    scenario = RecordScenario(unit="id", max_rows=1)
    mean = PrivateMean(scenario, PrivacyLoss(1e6, 1e-9), bounds=(0, 1))
    found = mean.fit(table).certificate_
    assert says(found.assumptions, "assume.neighbouring_tables", n_records=2)


# -- every door drops rows, and the column of ids --------------------------------------


def kept_of(certificate):
    (n,) = {
        s.parameters["n_records"]
        for s in certificate.assumptions
        if s.code == "assume.neighbouring_tables"
    }
    return n


DOORS = [
    lambda s: PrivateMean(s, bounds=(0, 1)),
    lambda s: PrivateSummary(s, statistics=["mean"], bounds=(0, 1)),
    lambda s: PrivateSummary(s, statistics=["mean"], schema=Schema({"x": (0, 1)})),
    lambda s: PrivateLogisticRegression(s),
    lambda s: PublicPreprocessing(
        PublicMinMaxScaler((0, 1)), PrivateLogisticRegression(s)
    ),
]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("frame", [lambda t: t, pl.from_pandas])
def test_every_estimator_reads_units(door, frame):
    model = door(PEOPLE).fit(frame(TABLE), Y)
    # rows, or in training people
    kept = 30 if hasattr(model, "predict") else KEPT
    assert kept_of(model.certificate_) == kept
    assert "id" not in getattr(model, "feature_names_in_", ())
    # by ids beside the table
    by_ids = door(by_groups()).fit(frame(TABLE[["x", "z"]]), Y, groups=IDS)
    assert kept_of(by_ids.certificate_) == kept
    stated = {"k": 1, "unit": "id", "max_rows": MOST}
    assert says(model.certificate_.assumptions, "assume.record_of_units", **stated)
    if hasattr(model, "predict"):
        # the column of ids is ignored
        np.testing.assert_array_equal(
            model.predict(frame(TABLE)), model.predict(frame(TABLE[["x", "z"]]))
        )


def test_pipelines_and_searches_read_units():
    steps = [
        ("scaler", PrivateStandardScaler(bounds=(0, 1))),
        ("model", PrivateLogisticRegression()),
    ]
    pipeline = PrivatePipeline(steps, scenario=PEOPLE, accountant=PrivacyLoss(2.0))
    found = pipeline.fit(TABLE, Y)
    kept = {name: kept_of(c) for name, c in found.certificates_.items()}
    assert kept == {"scaler": KEPT, "model": 30}
    pipeline.set_params(scenario=by_groups()).fit(TABLE[["x", "z"]], Y, groups=IDS)
    assert kept_of(pipeline.certificates_["scaler"]) == KEPT
    search = PrivateGridSearchCV(
        PrivateLogisticRegression(PEOPLE), {"C": [0.1, 1]}, accountant=PrivacyLoss(5.0)
    ).fit(TABLE, Y)
    assert set(search.best_params_) == {"C"}
    # scikit-learn's own, over folds of units
    outer = GridSearchCV(
        PrivateLogisticRegression(PEOPLE),
        {"C": [0.1, 1]},
        cv=GroupKFold(3),
        error_score="raise",
    )
    outer.fit(TABLE, Y, groups=IDS)


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame])
def test_a_column_by_position_is_left_out_once_whatever_the_number_of_steps(frame):
    rows = TABLE.assign(w=TABLE.z)[["id", "x", "z", "w"]].to_numpy()
    steps = [
        ("public", MinMaxScaler()),
        ("scaler", PrivateStandardScaler(bounds=(0, 1))),
        ("model", PrivateLogisticRegression()),
    ]
    scenario = RecordScenario(unit=0, max_rows=MOST)
    # the step that is fitted on public rows leaves the column out of these too
    pipeline = PrivatePipeline(
        steps, scenario=scenario, accountant=PrivacyLoss(2.0), reference=rows[:5] + 7.0
    )
    pipeline.fit(frame(rows), Y)
    assert pipeline.n_features_in_ == 3
    assert pipeline.named_steps_["model"].coef_.shape == (1, 3)
    np.testing.assert_array_equal(pipeline.predict(rows), pipeline.predict(rows[:, 1:]))
    preview = pipeline.preview(len(rows), n_features=4, classes=[0, 1])
    assert set(preview.epsilons) == {"scaler", "model"}


def test_columns_of_several_scenarios_are_left_out_by_their_place_in_the_table():
    rows = np.arange(12.0).reshape(2, 6)
    third = AttributeScenario(2, level="record", prior=BoundedOdds(2.0))
    first, fifth = (RecordScenario(unit=at, max_rows=1) for at in (0, 4))
    for scenarios in ([first, third, fifth, third], [fifth, first, fifth, third]):
        for given in (rows, pd.DataFrame(rows)):
            rest, secret = split_secrets(scenarios, given, None)
            assert np.array_equal(rest, rows[:, [1, 3, 5]])
            assert np.array_equal(secret, rows[:, 2])


def test_numbers_that_are_no_positions_are_refused_as_names():
    rows = TABLE.to_numpy()
    scenario = RecordScenario(unit=1, max_rows=MOST)
    with refused(ScenarioError, "units.numbered_columns_ambiguous"):
        PrivateMean(scenario, bounds=(0, 1)).fit(pd.DataFrame(rows, columns=[1, 2, 3]))


def test_ids_are_routed_to_fits_and_folds():
    model = PrivateLogisticRegression(by_groups())
    given = TABLE[["x", "z"]], Y
    with config_context(enable_metadata_routing=True):
        routed = clone(model).set_fit_request(groups=True)
        options = {"cv": GroupKFold(3), "error_score": "raise"}
        found = cross_validate(routed, *given, params={"groups": IDS}, **options)
        assert len(found["test_score"]) == 3
        GridSearchCV(routed, {"C": [0.1, 1]}, **options).fit(*given, groups=IDS)
        weighted = clone(model).set_params(weight_bounds=(0.5, 2.0))
        weighted.set_fit_request(groups=True, sample_weight=True)
        weighted.set_score_request(sample_weight=False)
        both = {"groups": IDS, "sample_weight": np.ones(len(IDS))}
        cross_validate(weighted, *given, params=both, **options)
    # to folds alone they say nothing of units to the fits
    with refused(ScenarioError, "units.ids_not_given"):
        cross_validate(model, *given, groups=IDS, **options)


def test_searches_take_ids_by_name_alone():
    search = PrivateGridSearchCV(
        PrivateLogisticRegression(by_groups()),
        {"C": [0.1, 1]},
        accountant=PrivacyLoss(5.0),
    )
    with refused(ScenarioError, "search.ids_without_column"):
        search.fit(TABLE[["x", "z"]], Y)
    asked = {"name": "groups", "why": Statement("search.groups_in_column")}
    with refused(TypeError, "parameter.fit_argument_unexpected", **asked):
        search.fit(TABLE[["x", "z"]], Y, groups=IDS)


# -- what is promised ------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_all_rows_of_a_unit_are_within_the_sensitivity(relation):
    """By brute force, over every unit and rows at the ends of the bounds."""
    scenario = RecordScenario(relation=relation, unit="id", max_rows=2)
    ids = np.array([0, 0, 1, 2, 2])
    x = np.array([0.2, 0.9, 0.4, 0.0, 1.0])
    accountant = PrivacyLoss(1.0, 1e-9, noise="laplace")
    model = PrivateMean(scenario, accountant, bounds=(0, 1))
    model.fit(pd.DataFrame({"id": ids, "x": x}))
    # the noise is in units of half the range
    bound = model.certificate_.sensitivity / 2
    worst = 0.0
    for unit in range(3):
        rows = ids == unit
        others = [()]
        if relation == "replace":
            others = list(itertools.product((-0.5, 0.5), repeat=int(rows.sum())))
        for other in others:
            worst = max(worst, abs((x - 0.5)[rows].sum() - sum(other)) / len(ids))
    assert worst <= bound
    assert bound == pytest.approx((1 + (relation == "replace")) / 5, rel=1e-5)


def test_an_attack_on_a_person_with_all_rows_at_a_bound():
    """The noise keeps the promise for a whole unit, and 0.7 of it does not."""
    scenario = RecordScenario(unit="id", max_rows=4)
    ids = np.repeat(np.arange(5), 6)
    with_person = pd.DataFrame({"id": ids, "x": np.where(ids == 0, 1.0, 0.5)})
    accountant = PrivacyLoss(1.0, 1e-9, noise="laplace")
    fit = PrivateMean(scenario, accountant, bounds=(0, 1)).fit(with_person)
    drawn = np.ravel(fit.noise_.sample((200_000, 1), np.random.default_rng(0)))
    # four rows half a range from the middle
    shift = 4 * 0.5 / kept_of(fit.certificate_)

    def largest_odds(share):
        here, there = share * drawn + shift > shift, share * drawn > shift
        return np.log(here.mean() / there.mean())

    assert largest_odds(1.0) <= 1.0 + 0.05
    assert largest_odds(0.7) > 1.2


def test_noise_grows_with_the_rows_of_a_unit():
    found = []
    for most in (1, 2, 4):
        scenario = RecordScenario(unit="id", max_rows=most)
        model = PrivateMean(scenario, bounds=(0, 1)).fit(TABLE)
        found.append(model.certificate_.sensitivity * kept_of(model.certificate_))
    np.testing.assert_allclose(found, [2.0, 4.0, 8.0], rtol=1e-4)


# -- groups that are public ------------------------------------------------------------


def household(**parameters):
    return RecordScenario(relation="replace", sizes="public", **parameters)


@pytest.mark.parametrize("door", DOORS)
def test_of_public_groups_all_rows_are_read_and_the_largest_counts(door):
    largest = int(np.bincount(IDS).max())
    model = door(household(unit="id")).fit(TABLE, Y)
    same = door(RecordScenario(relation="replace", unit="id", max_rows=largest))
    same.fit(TABLE, Y)
    assert model.certificate_.sensitivity == same.certificate_.sensitivity
    said = model.certificate_.assumptions
    kept = 30 if hasattr(model, "predict") else len(IDS)
    assert kept_of(model.certificate_) == kept
    assert says(said, "assume.sizes_of_units_public")
    assert says(said, "assume.record_of_units", max_rows=largest)
    by_ids = door(household()).fit(TABLE[["x", "z"]], Y, groups=IDS)
    assert by_ids.certificate_.sensitivity == same.certificate_.sensitivity


def test_sizes_that_are_read_change_no_other_parameter():
    told = household(k=3, unit="id", size=7)
    usual = RecordScenario().get_params()
    others = told.get_params()
    del others["max_rows"]
    assert all(usual[name] != value for name, value in others.items())
    assert told.of_sizes(5).get_params() == others | {"max_rows": 5}
    assert told.of_sizes(5).count == 15


def test_blocks_and_public_groups_cost_the_same():
    largest = int(np.bincount(IDS).max())
    blocks = BlocksScenario(RecordScenario(largest, "replace"))
    found = [
        PrivateMean(scenario, bounds=(0, 1)).fit(TABLE[["x", "z"]], groups=IDS)
        for scenario in (blocks, household())
    ]
    one, other = (fit.certificate_.sensitivity for fit in found)
    assert one == pytest.approx(other, rel=1e-6)


def test_pipelines_and_previews_read_public_sizes():
    largest = int(np.bincount(IDS).max())
    steps = [
        ("scaler", PrivateStandardScaler(bounds=(0, 1))),
        ("model", PrivateLogisticRegression()),
    ]
    pipeline = PrivatePipeline(
        steps, scenario=household(unit="id"), accountant=PrivacyLoss(2.0)
    ).fit(TABLE, Y)
    assert kept_of(pipeline.certificates_["scaler"]) == len(IDS)
    assert pipeline.certificates_["scaler"].coupling_count == largest
    mean = PrivateMean(household(unit="id"), bounds=(0, 1))
    preview = mean.preview(len(IDS), feature_names=["id", "x", "z"], groups=IDS)
    fitted = mean.fit(TABLE).certificate_
    assert preview.certificate.sensitivity == fitted.sensitivity


def test_public_sizes_that_nobody_reads_are_refused():
    mean = PrivateMean(household(unit="id"), bounds=(0, 1))
    lazy = pl.from_pandas(TABLE).lazy()
    for fit in (
        lambda: mean.fit(lazy),
        lambda: mean.preview(10, n_features=2),
        lambda: PrivateGridSearchCV(
            PrivateLogisticRegression(household(unit="id")),
            {"C": [0.1, 1]},
            accountant=PrivacyLoss(5.0),
        ).fit(TABLE, Y),
        lambda: PrivateMean(BlocksScenario(household(), 1), bounds=(0, 1)).fit(TABLE),
    ):
        with refused(ValueError, "units.sizes_not_read"):
            fit()
    with refused(ScenarioError, "units.public_sizes_need_replace"):
        PrivateMean(RecordScenario(sizes="public"), bounds=(0, 1)).fit(TABLE)


def test_replaced_units_have_as_many_rows_where_rows_are_counted():
    replaced = RecordScenario(relation="replace", unit="id", max_rows=MOST)
    code = "assume.records_of_units_replaced"
    for weight in ("row", "unit"):
        mean = PrivateMean(replaced, bounds=(0, 1), weight=weight).fit(TABLE)
        (public,) = [
            s.parameters["what"].code
            for s in mean.certificate_.assumptions
            if s.code == "assume.neighbouring_tables"
        ]
        assert (public == code) == (weight == "row")


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    "scenario, table, given, code",
    [
        (RecordScenario(unit="id"), TABLE, {}, "units.max_rows_missing"),
        (PEOPLE, TABLE[["x"]], {}, "units.column_not_there"),
        (PEOPLE, TABLE, {"groups": IDS}, "units.groups_beside_unit"),
        (RecordScenario(unit=True, max_rows=1), TABLE, {}, "units.unit_is_no_column"),
        (RecordScenario(unit=-1, max_rows=1), TABLE, {}, "units.unit_is_no_column"),
        (RecordScenario(unit=0.5, max_rows=1), TABLE, {}, "units.unit_is_no_column"),
        (by_groups(), TABLE, {}, "units.ids_not_given"),
        (
            BlocksScenario(RecordScenario(relation="replace")),
            TABLE[["x"]],
            {"groups": IDS},
            "blocks.larger_than_k",
        ),
    ],
)
def test_what_would_promise_less_than_it_says_is_refused(scenario, table, given, code):
    model = PrivateMean(scenario, bounds=(0, 1))
    with refused(ScenarioError, code):
        model.fit(table, **given)
    assert not hasattr(model, "mean_")


def test_a_table_without_any_id_is_refused():
    with refused(ValueError, "units.no_row_has_an_id"):
        PrivateMean(PEOPLE, bounds=(0, 1)).fit(TABLE.assign(id=None))


# -- training, of which a unit is one record -------------------------------------------


def rows_of(unit_sizes, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    units = rng.permutation(np.repeat(np.arange(len(unit_sizes)), unit_sizes))
    X = rng.normal(size=(len(units), 3)).astype(dtype) * 2
    return X, (X[:, 0] > 0).astype(int), units


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [None, 0.5])
def test_a_sum_over_units_is_of_means_of_clipped_gradients(dtype, weights):
    X, y, units = rows_of([3, 1, 7, 2], dtype=dtype)
    w = None if weights is None else np.full(len(y), weights)
    rows = LinearGradients(Logistic(), X, y, weights=w)
    gradients = rows.of_units(units)
    run = GradientRelease(n_records=4, n_steps=1, sampling="full_batch", clip_norm=0.3)
    at = np.array([0.3, -0.2, 0.5, 0.1])
    each = np.array([rows.clipped_sum(at, np.array([i]), run) for i in range(len(y))])
    means = np.array([each[units == u].mean(axis=0) for u in range(4)])
    assert gradients.n_records == 4
    for batch in (None, [0], [2, 2, 1], [], [3, 0, 1, 2]):
        index = None if batch is None else np.array(batch, dtype=int)
        expected = means[slice(None) if batch is None else batch].sum(axis=0)
        found = gradients.clipped_sum(at, index, run)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    # a unit, of however many rows, moves no sum by more than the clip norm
    for u in range(4):
        alone = gradients.clipped_sum(at, np.array([u]), run)
        assert np.linalg.norm(alone) <= 0.3


TRAINED = [
    PrivateLogisticRegression,
    PrivateSGDClassifier,
    PrivateLinearSVC,
    PrivateMLPClassifier,
]


@pytest.mark.parametrize("sampling", ["full_batch", "poisson", "shuffled_epochs"])
@pytest.mark.parametrize("model", TRAINED)
def test_noise_of_training_is_that_of_as_many_single_records(model, sampling):
    """2,000 people of 1 to 40 rows, ten in the mean, whatever `max_rows`."""
    sizes = np.clip(np.random.default_rng(0).geometric(0.1, 2000), 1, 40)
    X, y, units = rows_of(sizes)
    batch = {} if sampling == "full_batch" else {"batch_size": 100}
    training = Training(n_steps=20, sampling=sampling, **batch)
    first = np.unique(units, return_index=True)[1]
    single = model(accountant=PrivacyLoss(1.0), training=training)
    single.fit(X[first], y[first])
    for most in (3, 40):
        scenario = RecordScenario(max_rows=most)
        people = model(scenario, PrivacyLoss(1.0), training=training)
        people.fit(X, y, groups=units)
        assert people.release_.n_records == 2000
        assert people.release_.divisor == single.release_.divisor
        dim = people.release_.dim
        np.testing.assert_allclose(
            people.noise_.std(dim), single.noise_.std(dim), rtol=1e-6
        )
        # of few steps, or small batches, a model is as good as chance has it
        if sampling == "full_batch" and model is not PrivateMLPClassifier:
            assert people.score(X, y) > single.score(X, y) - 0.05
        # the whole run: each step's sum moves by the clip norm of one record
        assert people.certificate_.sensitivity == single.certificate_.sensitivity


def test_solvers_that_sum_rows_pay_for_all_rows_of_a_unit():
    X, y, units = rows_of(np.full(100, 4))
    found = [
        PrivateLogisticRegression(scenario, solver="output", **given).fit(
            X, y, **({} if scenario is None else {"groups": units})
        )
        for scenario, given in [(None, {}), (RecordScenario(max_rows=4), {})]
    ]
    one, four = (model.certificate_.sensitivity for model in found)
    assert four == pytest.approx(4 * one, rel=1e-2)


def test_a_release_of_rows_is_never_taken_for_one_of_units(monkeypatch):
    monkeypatch.setattr(PrivateQuantile, "_reads_units", lambda self: True)
    with refused(UnsupportedError, "units.release_of_rows"):
        PrivateQuantile(scenario=PEOPLE, bounds=(0, 1)).fit(TABLE)


# -- beside other promises -------------------------------------------------------------


def certificate_of(scenario, table, **parameters):
    return PrivateMean(scenario, bounds=(0, 1), **parameters).fit(table).certificate_


def test_units_add_up_with_the_same_units_alone():
    # one patient sees many doctors: what hides a doctor does not hide a patient
    table = TABLE.assign(doctor=np.arange(len(TABLE)) % 4)
    doctors = RecordScenario(unit="doctor", max_rows=MOST)
    rows = certificate_of(PEOPLE, TABLE[["id", "x"]])
    units = certificate_of(PEOPLE, TABLE[["id", "x"]], weight="unit")
    assert compose([rows, units], delta=1e-5).coupling_id == units.coupling_id
    for other in (
        certificate_of(doctors, table[["doctor", "x"]], weight="unit"),
        certificate_of(RecordScenario(), TABLE[["x"]]),
        certificate_of(RecordScenario(k=MOST), TABLE[["x"]]),
        certificate_of(RecordScenario(k=2 * MOST, relation="replace"), TABLE[["x"]]),
    ):
        for mine in (rows, units):
            with refused(CompositionError, "compose.couplings_differ"):
                compose([mine, other], delta=1e-5)


@pytest.mark.parametrize("training", [None, Training(batch_size=8, n_steps=3)])
def test_fits_of_a_search_are_planned_by_units_and_its_scores_by_rows(training):
    found = PrivateGridSearchCV(
        PrivateLogisticRegression(PEOPLE, training=training),
        {"C": [0.1, 1]},
        accountant=PrivacyLoss(5.0, noise="gaussian"),
        trials="each",
    ).fit(TABLE, Y)
    assert found.best_estimator_.release_.n_records <= 30
    mu = found.certificate_.curve.gaussian_mu
    if mu is not None:
        # rows of one unit lie in either part, and all of them may be scored
        scores = np.sqrt(2) * MOST / found.noise_.scale
        fits = np.sqrt(2) / found.best_estimator_.noise_.scale
        clip = found.best_estimator_.release_.total_clip_norm
        n_steps = found.best_estimator_.release_.n_steps
        assert mu >= np.hypot(scores, fits * clip * np.sqrt(n_steps)) * (1 - 1e-6)


def test_units_within_blocks_are_refused():
    for inner in (PEOPLE, by_groups()):
        with refused(ScenarioError, "blocks.of_units"):
            certificate_of(BlocksScenario(inner, sizes=1), TABLE[["id", "x"]])
