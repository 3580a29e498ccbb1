"""Secrets of people with several rows: an attribute, or all of a record."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skpuffer.accountants import (
    GeneralWasserstein,
    OverlapAmplification,
    PrivacyLoss,
)
from skpuffer.compose import PrivatePipeline, PublicPreprocessing
from skpuffer.exceptions import CompositionError, ScenarioError, UnsupportedError
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.preprocessing import PublicMinMaxScaler
from skpuffer.privacy import compose
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios import (
    Adjacency,
    AttributeScenario,
    BinnedLaw,
    BlocksScenario,
    BoundedOdds,
    DependenceScenario,
    RecordScenario,
)
from skpuffer.summary import PrivateMean
from tests.refused import refused, says

RNG = np.random.default_rng(0)
IDS = np.repeat(np.arange(30), RNG.integers(1, 9, 30))
MOST = 3
KEPT = int(np.minimum(np.bincount(IDS), MOST).sum())
PRIOR = pd.DataFrame({"sex": list("ffmm"), "height": [160.0, 170, 168, 182]})
TABLE = pd.DataFrame(
    {
        "id": IDS,
        "sex": np.where(IDS % 2, "f", "m"),
        "height": RNG.uniform(160, 182, len(IDS)),
    }
)
Y = pd.Series(RNG.integers(0, 2, len(IDS)), name="ill")
UNITS = {"unit": "id", "max_rows": MOST}


def attribute(prior=PRIOR, **parameters):
    if isinstance(prior, pd.DataFrame):
        parameters = {"prior_as": "law"} | parameters
    return AttributeScenario("sex", level="record", prior=prior, **parameters)


def mean(scenario, accountant=None):
    return PrivateMean(
        scenario, accountant or PrivacyLoss(1.0, 1e-9, noise="laplace"), bounds=(0, 200)
    )


# -- what is promised ------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 3])
def test_sums_of_all_rows_of_a_unit_are_within_the_shift(most):
    """By brute force: sums of r rows drawn given either secret, coupled at best."""
    scenario = attribute(unit="id", max_rows=most)
    found = mean(scenario).fit(TABLE).certificate_
    n = int(np.minimum(np.bincount(IDS), most).sum())
    # in half ranges of 100
    bound = found.sensitivity * n * 100
    worst = 0.0
    for n_rows in range(1, most + 1):
        sums = [
            np.sort([sum(one) for one in itertools.product(heights, repeat=n_rows)])
            for _, heights in PRIOR.groupby("sex").height
        ]
        # equally many of equal mass: in one dimension the sorted coupling is best
        worst = max(worst, np.max(np.abs(sums[0] - sums[1])))
    assert worst <= bound * (1 + 1e-12)
    assert bound == pytest.approx(12 * most, rel=1e-4)
    assert found.coupling_count == most


def test_an_attack_on_the_attribute_of_a_person_with_several_rows():
    """The noise keeps the promise for all rows of a person, and 0.7 of it does not."""
    prior = pd.DataFrame({"sex": list("fm"), "height": [0.0, 1.0]})
    scenario = AttributeScenario(
        "sex", level="record", prior=prior, prior_as="law", unit="id", max_rows=4
    )
    table = pd.DataFrame({"id": np.repeat(np.arange(5), 6)})
    table["sex"] = np.where(table.id == 0, "m", "f")
    table["height"] = (table.sex == "m").astype(float)
    accountant = PrivacyLoss(1.0, 1e-9, noise="laplace")
    fit = PrivateMean(scenario, accountant, bounds=(0, 1)).fit(table)
    drawn = np.ravel(fit.noise_.sample((200_000, 1), np.random.default_rng(0)))
    # of 20 rows that are kept four move, from one bound to the other
    shift = 4 / 20

    def largest_odds(share):
        here, there = share * drawn + shift > shift, share * drawn > shift
        return np.log(here.mean() / there.mean())

    assert largest_odds(1.0) <= 1.0 + 0.05
    assert largest_odds(0.7) > 1.2


@pytest.mark.parametrize("prior", [PRIOR, BoundedOdds(2.0)])
def test_one_row_of_a_unit_costs_what_a_record_by_itself_does(prior):
    accountant = OverlapAmplification(0.3)
    if isinstance(prior, pd.DataFrame):
        accountant = GeneralWasserstein()
    first = TABLE.drop_duplicates("id")
    single = mean(attribute(prior), accountant).fit(first[["sex", "height"]])
    one = mean(attribute(prior, unit="id", max_rows=1), accountant).fit(TABLE)
    for name in ("sensitivity", "gain", "epsilon"):
        assert getattr(one.certificate_, name) == getattr(single.certificate_, name)


def test_a_belief_about_all_rows_of_a_unit_is_amplified_from_their_replacement():
    odds = attribute(BoundedOdds(2.0), **UNITS)
    found = mean(odds, OverlapAmplification(0.3)).fit(TABLE).certificate_
    plain = RecordScenario(relation="replace", **UNITS)
    whole = mean(plain).fit(TABLE.drop(columns="sex")).certificate_
    assert found.sensitivity == whole.sensitivity
    assert says(found.assumptions, "assume.together_one_unit", max_rows=MOST)
    # values of a unit may differ: the belief is about all of them
    varied = TABLE.assign(sex=RNG.permutation(TABLE.sex))
    mean(odds, OverlapAmplification(0.3)).fit(varied)


def test_training_takes_a_unit_for_one_record_whatever_is_believed():
    for scenario, accountant in [
        (attribute(PRIOR.assign(ill=[0, 1, 0, 1]), target="ill"), PrivacyLoss(1.0)),
        (attribute(BoundedOdds(2.0)), OverlapAmplification(0.3)),
    ]:
        scenario.set_params(**UNITS)
        model = PrivateLogisticRegression(scenario, accountant, data_norm=200.0)
        model.fit(TABLE, Y)
        assert model.release_.n_records == 30
        assert model.feature_names_in_.tolist() == ["height"]
        assert model.certificate_.coupling_count == 1
        assert "units:1 of 'id'" in model.certificate_.coupling_id
        expected = model.predict(TABLE[["height"]])
        for given in (TABLE, TABLE.drop(columns="id"), pl.from_pandas(TABLE)):
            np.testing.assert_array_equal(model.predict(given), expected)


def test_every_row_of_a_unit_may_be_an_event_outside_of_the_confidence():
    prior = pd.concat([PRIOR] * 4000, ignore_index=True)
    context = PublicContext(n_records=50, feature_names=("height",), n_features=1)
    release = QueryRelease(
        contribution=lambda X, y: X, is_sum=True, n_records=50, dim=1, context=context
    )
    deltas = {}
    for most in (1, 2, 4):
        scenario = attribute(
            prior, prior_as="confidence", unit="id", max_rows=most, table="visits"
        )
        fact = scenario.bind(context).fact(Adjacency, release)
        deltas[most] = fact.delta
        assert fact.coupling_id is None
    for most in (2, 4):
        assert deltas[most] == pytest.approx(1 - (1 - deltas[1]) ** most)


def test_attributes_of_units_add_up_with_those_of_the_same_units_alone():
    table = TABLE.assign(doctor=np.arange(len(TABLE)) % 2 * 15 + IDS % 2)

    def certificate(**parameters):
        scenario = attribute(table="visits", **parameters)
        left = {"id", "doctor"} - {parameters.get("unit")}
        return mean(scenario).fit(table.drop(columns=left)).certificate_

    mine = certificate(**UNITS)
    assert compose([mine, certificate(**UNITS)], delta=1e-5).coupling_id
    for other in (certificate(unit="doctor", max_rows=MOST), certificate()):
        with pytest.raises(CompositionError):
            compose([mine, other], delta=1e-5)


def test_a_dependent_unit_moves_as_far_as_all_its_rows():
    rows = TABLE[["id", "height"]]
    found = [
        mean(DependenceScenario(0.0, **given), GeneralWasserstein()).fit(rows)
        for given in ({"unit": "id", "max_rows": most} for most in (1, 3))
    ]
    one, three = (
        fit.certificate_.sensitivity * np.minimum(np.bincount(IDS), most).sum()
        for fit, most in zip(found, (1, 3), strict=True)
    )
    assert three == pytest.approx(3 * one, rel=1e-4)
    stated = {"unit": "id", "max_rows": 3}
    assert says(
        found[1].certificate_.assumptions, "assume.dependence_of_units", **stated
    )


# -- every door ------------------------------------------------------------------------


def test_ids_and_secrets_are_both_left_out():
    for scenario, table, given in [
        (attribute(**UNITS), TABLE, {}),
        (attribute(max_rows=MOST), TABLE.drop(columns="id"), {"groups": IDS}),
        (attribute(**UNITS), TABLE.drop(columns="sex"), {"secret": TABLE.sex}),
        (attribute(**UNITS), pl.from_pandas(TABLE), {}),
    ]:
        fit = mean(scenario).fit(table, **given)
        assert fit.feature_names_in_.tolist() == ["height"]
        assert says(
            fit.certificate_.assumptions, "assume.units_independent", max_rows=MOST
        )
    inside = PublicPreprocessing(PublicMinMaxScaler((0, 200)), mean(attribute(**UNITS)))
    assert inside.fit(TABLE).certificate_.coupling_count == MOST


def test_searches_and_pipelines_read_both():
    odds = attribute(BoundedOdds(2.0), **UNITS)
    model = PrivateLogisticRegression(odds, data_norm=200.0)
    search = PrivateGridSearchCV(
        model, {"C": [0.1, 1]}, accountant=OverlapAmplification(0.3)
    ).fit(TABLE, Y)
    assert "units:1 of 'id'" in search.certificate_.coupling_id
    pipeline = PrivatePipeline(
        [("scaler", PublicMinMaxScaler((0, 200))), ("model", model)],
        accountant=OverlapAmplification(0.3),
    ).fit(TABLE, Y)
    assert pipeline.n_features_in_ == 1
    assert pipeline.named_steps_["model"].release_.n_records == 30
    np.testing.assert_array_equal(
        pipeline.predict(TABLE), pipeline.predict(TABLE[["height"]])
    )


def test_weights_beside_what_is_known_of_a_record_are_refused():
    odds = attribute(BoundedOdds(2.0), **UNITS)
    model = mean(odds, OverlapAmplification(0.3)).set_params(weight_bounds=(0.5, 1))
    with refused(UnsupportedError, "weights.scenario_without"):
        model.fit(TABLE, sample_weight=np.ones(len(TABLE)))


@pytest.mark.parametrize(
    "parameters, code",
    [
        ({"unit": "id"}, "units.max_rows_missing"),
        ({"unit": 0, "max_rows": 2}, "units.positions_beside_secret"),
        ({"unit": "sex", "max_rows": 2}, "units.unit_is_secret"),
        ({"level": "dataset", "max_rows": 2}, "units.level_not_record"),
        (
            {"prior": BinnedLaw(PRIOR, ["height"]), "prior_as": None, **UNITS},
            "units.belief_of_single_rows",
        ),
    ],
)
def test_what_would_promise_less_than_it_says_is_refused(parameters, code):
    given = {"level": "record", "prior": PRIOR, "prior_as": "law"} | parameters
    with refused(ScenarioError, code):
        mean(AttributeScenario("sex", **given)).fit(TABLE)


def test_secrets_that_vary_within_a_unit_are_refused_where_a_table_is_the_prior():
    varied = TABLE.assign(sex=["f", "m"] * (len(TABLE) // 2) + ["f"] * (len(TABLE) % 2))
    scenario = attribute(unit="id", max_rows=10)
    with refused(ScenarioError, "units.secret_varies"):
        mean(scenario).fit(varied)


def test_units_of_an_attribute_within_blocks_are_refused():
    with refused(ScenarioError, "blocks.of_units"):
        mean(BlocksScenario(attribute(**UNITS), sizes=1)).fit(TABLE)
