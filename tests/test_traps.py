"""Ways to a promise that would not hold, each refused, labelled or made loud."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.compose import PublicPreprocessing
from skpuffer.distributions import PointMass
from skpuffer.exceptions import PrivacyWarning, ScenarioError, UnsupportedError
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.noise import Shift
from skpuffer.privacy import compose
from skpuffer.scenarios import (
    AttributeScenario,
    LawsScenario,
    RecordScenario,
    SimulatorScenario,
)
from skpuffer.summary import PrivateMean, PrivateStandardScaler, PrivateSummary
from tests.refused import refused, says, warned

WASSERSTEIN = GeneralWasserstein(1.0, alpha=4.0)


def prior():
    values = np.tile(np.arange(50) / 50, 2)
    return pd.DataFrame({"sex": np.repeat([0, 1], 50), "a": values, "y": values > 0.5})


def attribute(table, **options):
    options = {"level": "record", "prior_as": "law"} | options
    return AttributeScenario("sex", prior=table, **options)


def test_filling_gaps_with_the_tables_mean_mixes_records_wherever_the_gaps_are():
    late = pd.DataFrame({"a": np.r_[np.linspace(0, 1, 20), np.full(180, np.nan)]})
    model = PublicPreprocessing(
        FunctionTransformer(lambda table: table.fillna(table.mean())),
        PrivateMean(bounds=(0, 1)),
    )
    with refused(ValueError, "preprocessing.mixes_records"):
        model.fit(late)
    constant = FunctionTransformer(lambda table: table.fillna(0.5))
    model.set_params(transformer=constant).fit(late)
    assert says(model.certificate_.assumptions, "assume.preprocessing_fixed_beforehand")


def test_an_array_is_not_matched_to_a_named_prior():
    X = prior()[["sex", "a"]].astype(float)
    with refused(ScenarioError, "prior.only_prior_names_columns"):
        PrivateMean(attribute(prior()), WASSERSTEIN).fit(X.to_numpy())
    tied = prior().drop(columns="y")
    tied["a"] += 0.1 * tied["sex"] + 0.01  # rows of its own
    fitted = PrivateMean(attribute(tied), WASSERSTEIN).fit(X)
    assert list(fitted.feature_names_in_) == ["a"]


def test_columns_that_pandas_numbers_are_positions():
    rng = np.random.default_rng(0)
    a = rng.integers(2, size=200).astype(float)
    secret = rng.integers(2, size=200).astype(float)
    table = np.column_stack([secret, a, a, secret])
    public, table = table[:80], table[80:]
    scenario = AttributeScenario(0, level="record", prior=public, prior_as="law")
    framed = AttributeScenario(
        0, level="record", prior=pd.DataFrame(public), prior_as="law"
    )
    for said in (scenario, framed):
        rest = table[:, 1:]
        for X in (rest, pd.DataFrame(rest), pd.DataFrame(table), table):
            fitted = PrivateMean(said, WASSERSTEIN, bounds=(0, 1)).fit(X)
            # the secret stands once more among the columns: it moves by its whole range
            assert fitted.certificate_.sensitivity >= 2 / 200
            assert fitted.mean_.shape == (3,)


def test_a_target_of_another_name_is_not_taken_for_the_priors():
    table = prior()
    scenario = attribute(table, target="y")
    model = PrivateLogisticRegression(scenario, WASSERSTEIN)
    with refused(
        ScenarioError, "target.name_differs_from_data", target="y", target_name="sex"
    ):
        model.fit(table[["a"]].astype(float), table["sex"])


def test_simulated_tables_have_the_columns_of_the_data():
    def draw(secret, rng):
        return pd.DataFrame({"b": rng.random(30), "a": rng.random(30) + secret})

    def both(s, t, rng):
        base = rng.random(30)
        return tuple(pd.DataFrame({"b": base, "a": base + v}) for v in (s, t))

    scenario = SimulatorScenario(draw, both, secrets=[0.0, 1.0], n_draws=3)
    X = pd.DataFrame({"a": np.linspace(0, 1, 30), "b": 0.0})
    with refused(ScenarioError, "prior.only_prior_names_columns"):
        PrivateMean(scenario, WASSERSTEIN).fit(X.to_numpy())
    with pytest.warns(PrivacyWarning):
        fitted = PrivateMean(scenario, WASSERSTEIN).fit(X)
    assert fitted.certificate_.sensitivity == pytest.approx(1.0)


def test_a_wasserstein_promise_for_any_record_is_differential_privacy():
    model = PrivateMean(RecordScenario(), WASSERSTEIN, bounds=(0, 1))
    certificate = model.fit(np.linspace(0, 1, 20)[:, None]).certificate_
    assert certificate.notion == "renyi_dp" and not certificate.composable
    assert not certificate.implies("renyi_pufferfish")


def test_a_scaled_array_does_not_reach_a_model_whose_prior_is_in_raw_units():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"sex": rng.integers(2, size=90), "a": rng.random(90)})
    scenario = attribute(prior(), target="y")
    pipeline = make_pipeline(
        PrivateStandardScaler(scenario, WASSERSTEIN),
        PrivateLogisticRegression(scenario, WASSERSTEIN),
    )
    with (
        pytest.warns(PrivacyWarning),
        refused(ScenarioError, "prior.only_prior_names_columns"),
    ):
        pipeline.fit(X, (X["a"] > 0.5).rename("y"))


def test_a_value_changes_in_two_steps_under_add_remove():
    x = np.linspace(0, 1, 40)[:, None]
    # whose Rényi costs are in proportion to the square of a move
    accountant = GroupPrivacy(1.0, 4.0, noise="gaussian")
    added, replaced = (
        PrivateMean(RecordScenario(relation=relation), accountant, bounds=(0, 1))
        .fit(x)
        .certificate_
        for relation in ("add_remove", "replace")
    )
    assert added.implies("approximate_dp") and not added.implies("renyi_pufferfish")
    assert added.rpp_epsilon == pytest.approx(4.0)
    assert replaced.implies("renyi_pufferfish") and replaced.rpp_epsilon == 1.0
    # the value that is two steps away, against the same noise
    moved = Shift(1 / 40, norm=2, dim=1)
    model = PrivateMean(RecordScenario(), accountant, bounds=(0, 1)).fit(x)
    assert model.noise_.renyi(4.0, moved) == pytest.approx(added.rpp_epsilon)
    assert compose([added, added]).rpp_epsilon == math.inf


def test_laws_of_deviations_do_not_speak_of_second_moments():
    laws = LawsScenario([(PointMass([0.0, 1.0]), PointMass([0.0, 3.0]))])
    X = np.linspace(-1, 1, 20)[:, None]
    with refused(ScenarioError, "summary.laws_with_bounds"):
        PrivateStandardScaler(laws, WASSERSTEIN, bounds=(-10, 10)).fit(X)
    PrivateStandardScaler(laws, WASSERSTEIN).fit(X)
    with refused(ScenarioError, "summary.laws_for_stacked_moments"):
        PrivateSummary(laws, WASSERSTEIN, bounds=(-10, 10)).fit(X)


def test_the_pairs_left_out_are_named():
    table = pd.DataFrame({"sex": ["a", "b", "c"] * 4, "v": [0.0, 0.0, 5.0] * 4})
    model = PrivateMean(attribute(table, pairs=[("a", "b")]), WASSERSTEIN)
    with warned(PrivacyWarning, "release.exact_without_noise"):
        model.fit(table.assign(v=table["v"] + 0.25))
    assumptions = model.certificate_.assumptions
    assert says(assumptions, "assume.only_chosen_pairs_protected")
    assert "the secret does not reach" not in str(model.certificate_)


def test_samples_that_happen_to_agree_release_nothing_exactly():
    sample = pd.DataFrame({"sex": [0, 0, 1, 1], "v": [0.0, 1.0, 0.0, 1.0]})
    model = PrivateMean(attribute(sample, prior_as="sample"), WASSERSTEIN)
    with refused(UnsupportedError, "noise.samples_do_not_move"):
        model.fit(sample)
    assert not hasattr(model, "mean_")


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_a_column_transformer_may_hand_over_the_secret_column(output):
    table = prior().astype(float)
    scaler = PrivateStandardScaler(
        attribute(table.assign(a=table["a"] + 0.1 * table["sex"] + 0.01)), WASSERSTEIN
    )
    columns = ColumnTransformer([("scale", scaler, ["a", "y", "sex"])])
    columns.set_output(transform=output).fit(table)
    assert list(columns.get_feature_names_out()) == ["scale__a", "scale__y"]
    assert columns.transform(table).shape == (100, 2)


def test_messages_do_not_quote_private_values():
    X = np.linspace(0, 1, 10)[:, None]
    model = PrivateLogisticRegression(classes=["healthy", "ill"])
    labels = np.array(["healthy", "ill"] * 4 + ["peculiar", "ill"])
    # it counts as nothing, and nothing is said of it
    assert "peculiar" not in str(model.fit(X, labels).certificate_)
    # nor of a target of another type, which one record can give all others
    with refused(ValueError, "target.no_record_has_one") as caught:
        model.fit(X, np.full(10, 4711))
    assert "4711" not in str(caught.value)
    with refused(ValueError, "target.one_class_only") as caught:
        PrivateLogisticRegression().fit(X, np.repeat("peculiar", 10))
    assert "peculiar" not in str(caught.value)


def test_one_kind_of_promise_at_a_time():
    with refused(ValueError, "parameter.alpha_and_delta_both"):
        PrivateMean(accountant=GroupPrivacy(alpha=3.0, delta=1e-5), bounds=(0, 1)).fit(
            [[0.0], [1.0]]
        )
    with pytest.raises(ValueError, match="alpha"):
        PrivateMean(bounds=(0, 1)).set_params(accountant__alpha=3.0)


def test_a_secret_of_all_records_is_not_compared_with_one_of_one():
    table = prior()[["sex", "a"]].astype(float)
    table["a"] += 0.1 * table["sex"]
    shared = PrivateMean(attribute(table, level="dataset"), WASSERSTEIN)
    assert shared.fit(table[["a"]] + 0.001).certificate_.gain is None


def test_a_released_scaler_may_scale_data_and_prior():
    table = prior()[["sex", "a", "y"]].astype(float)
    table["a"] = 100 * (table["a"] + 0.1 * table["sex"])
    scenario = attribute(table, target="y")
    X, y = table[["sex", "a"]].assign(a=table["a"] + 1.0), table["y"]
    scaler = PrivateStandardScaler(scenario, WASSERSTEIN).fit(X)
    raw, scaled = (
        PublicPreprocessing(before, PrivateMean(scenario, WASSERSTEIN)).fit(X)
        for before in (FunctionTransformer(), FrozenEstimator(scaler))
    )
    ratio = np.max(raw.noise_.std()) / np.max(scaled.noise_.std())
    assert ratio == pytest.approx(scaler.scale_[0])
    model = PublicPreprocessing(
        FrozenEstimator(scaler), PrivateLogisticRegression(scenario, WASSERSTEIN)
    )
    assert model.fit(X, y).certificate_.certified


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_an_empirical_prior_of_numbered_columns_is_that_of_the_array():
    table = prior()[["a"]].to_numpy() + 0.1 * prior()[["sex"]].to_numpy()
    secret = prior()["sex"].to_numpy()
    scenario = AttributeScenario("sex", level="record", prior="empirical")
    shifts = {
        PrivateMean(scenario, WASSERSTEIN, bounds=(0, 2))
        .fit(X, secret=secret)
        .certificate_.sensitivity
        for X in (table, pd.DataFrame(table), pd.DataFrame(table, columns=["a"]))
    }
    assert len(shifts) == 1
