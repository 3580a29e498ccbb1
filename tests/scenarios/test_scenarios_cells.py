"""Cells that are chosen from a public table, for many releases under one belief."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skpuffer.accountants import Best, OverlapAmplification
from skpuffer.exceptions import CompositionError, ScenarioError, UnsupportedError
from skpuffer.privacy import compose
from skpuffer.scenarios import AttributeScenario, BinnedLaw
from skpuffer.summary import PrivateMean
from tests.refused import refused

BOUNDS = ([0.0, 0.0], [100.0, 1.0])


def table(n=900, seed=0):
    """Rows with a secret, two numbers and a column of levels that depend on it."""
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "race": np.where(secret, "a", "b"),
            "age": np.clip(rng.normal(40 + 4 * secret, 15, n), 0, 100),
            "share": rng.beta(2 + 0.3 * secret, 3, n),
        }
    )


def mean(columns, scenario, rows, epsilon=0.2):
    at = [["age", "share"].index(column) for column in columns]
    bounds = tuple([side[i] for i in at] for side in BOUNDS)
    accountant = OverlapAmplification(epsilon, if_belief_suffices="cap")
    return PrivateMean(scenario, accountant, bounds=bounds).fit(rows[columns])


def scenario_of(public, **parameters):
    return AttributeScenario("race", prior=public, prior_as="cells", **parameters)


@pytest.mark.parametrize("n", [60, 300, 5000])
def test_cells_are_as_many_as_rows_of_the_rarest_secret_allow(n):
    public = table(n)
    laws = BinnedLaw(public, "auto").laws(scenario_of(public))
    rarest = public["race"].value_counts().min()
    assert 4 <= len(laws.atoms) <= min(200, rarest // 5)
    # neither column is left behind
    sizes = [len(column.values) for column in laws.coding.columns.values()]
    assert min(sizes) >= 2
    assert max(sizes) <= 3 * min(sizes)


def test_cells_do_not_depend_on_the_order_of_public_rows():
    public = table()
    mixed = public.sample(frac=1, random_state=1)
    first, second = (
        BinnedLaw(rows, "auto").read(scenario_of(rows), public.drop(columns="race"))
        for rows in (public, mixed)
    )
    pd.testing.assert_frame_equal(first, second)


def test_levels_beyond_the_frequent_ones_are_read_as_the_most_frequent():
    public = table(200)
    towns = np.array([f"t{i:02}" for i in range(40)])
    public["town"] = towns[np.minimum(np.arange(200) // 3, 39)]
    law = BinnedLaw(public, "auto")
    read = law.read(scenario_of(public), pd.DataFrame({"town": ["t39", "?", None]}))
    assert read["town"].tolist() == ["t39"] * 3
    assert law.laws(scenario_of(public)).masses.shape[1] <= 20


def test_few_values_are_kept():
    public = table()
    public["grade"] = np.arange(len(public)) % 5
    laws = BinnedLaw(public, "auto").laws(scenario_of(public))
    assert laws.coding.columns["grade"].values.tolist() == [0, 1, 2, 3, 4]


def test_a_table_by_cells_is_the_belief_in_its_automatic_cells():
    public, private = table(200), table(400, 1)
    by_name = mean(["age"], scenario_of(public), private)
    by_hand = mean(
        ["age"],
        AttributeScenario("race", prior=BinnedLaw(public, "auto")),
        private,
    )
    assert by_name.certificate_.epsilon == by_hand.certificate_.epsilon
    assert by_name.noise_.scale == by_hand.noise_.scale
    assert by_name.certificate_.composable


def test_releases_of_other_columns_add_up_under_one_belief():
    public, private = table(200), table(400, 1)
    scenario = scenario_of(public, table="survey")
    first, second = (
        mean([column], clone(scenario), private).certificate_
        for column in ("age", "share")
    )
    total = compose([first, second])
    each = max(first.epsilon, second.epsilon)
    assert each < total.epsilon <= 2 * each * 1.01
    assert set(total.columns) == {"age", "share"}
    # other public rows are another belief: nothing shows that the tables are one
    other = scenario_of(table(200, 7), table="survey")
    third = mean(["share"], other, private).certificate_
    with refused(CompositionError, "compose.table_columns_differ"):
        compose([first, third])


def divergence(first, second, places, noise, epsilon, rng):
    """Estimate, with its error, of what a record's distributions reveal together."""
    at = places[rng.choice(len(first), 100_000, p=first)]
    out = at + rng.normal(size=at.shape) * noise

    def density(masses):
        apart = (out[:, np.newaxis] - places) / noise
        return np.exp(-np.sum(apart**2, axis=2) / 2) @ masses

    gains = np.maximum(0, 1 - np.exp(epsilon) * density(second) / density(first))
    return gains.mean(), gains.std() / np.sqrt(len(gains))


@pytest.mark.parametrize("order", [1, -1])
def test_what_releases_reveal_together_is_within_their_certificate(order):
    public, private = table(200), table(40, 1)
    scenario = scenario_of(public, table="survey")
    means = [mean([column], scenario, private, 0.6) for column in ("age", "share")]
    total = compose([one.certificate_ for one in means])
    law = BinnedLaw(public, "auto")
    laws = law.laws(scenario)
    places = law.atoms(scenario)[["age", "share"]].to_numpy() / len(private)
    noise = np.array([one.noise_.std(1).item() for one in means])
    first, second = laws.masses[::order]
    rng = np.random.default_rng(0)
    for epsilon in (0.05, 0.2):
        bound = total.curve.delta(epsilon)
        truth, error = divergence(first, second, places, noise, epsilon, rng)
        assert truth - 4 * error <= bound
        # less noise than is stated would be seen
        more, error = divergence(first, second, places, noise / 2, epsilon, rng)
        assert more - 4 * error > bound


def test_a_scenario_is_the_same_after_use_as_before():
    public = table()
    scenario = scenario_of(public)
    before = joblib.hash(scenario)
    fitted = mean(["age"], scenario, table(400, 1))
    assert joblib.hash(scenario) == before
    again = pickle.loads(pickle.dumps(scenario))
    assert mean(["age"], again, table(400, 1)).noise_.scale == fitted.noise_.scale
    assert "cells" in repr(scenario)
    assert len(repr(scenario)) < 200


def test_a_function_that_draws_public_rows_is_called_with_the_public_seed():
    def draw(rng):
        return table(200, int(rng.integers(1000)))

    first, second = (
        AttributeScenario("race", prior=draw, prior_as="cells", random_state=seed)
        for seed in (0, 0)
    )
    private = table(400, 1)
    assert (
        mean(["age"], first, private).noise_.scale
        == mean(["age"], second, private).noise_.scale
    )


@pytest.mark.parametrize(
    "prior, code",
    [
        ("empirical", "prior.cells_of_private_rows"),
        (table(12), "prior.too_many_columns_for_cells"),
        (table().assign(share=np.nan), "prior.rows_missing_values"),
        (np.ones((30, 2)), "prior.rows_without_names"),
    ],
)
def test_what_has_no_cells_is_refused(prior, code):
    with refused(ScenarioError, code):
        AttributeScenario("race", prior=prior, prior_as="cells").check()


def test_another_word_than_auto_is_refused():
    with refused(ValueError, "parameter.option_unknown"):
        BinnedLaw(table(), "automatic").check()


def test_cells_from_the_rows_themselves_have_no_confidence():
    law = BinnedLaw(table(), "auto")
    scenario = AttributeScenario("race", prior=law, prior_as="confidence")
    with refused(ScenarioError, "prior.confidence_edges_from_rows"):
        mean(["age"], scenario, table(400, 1))


def test_a_table_of_which_nothing_is_said_is_refused_with_the_remedy():
    public, private = table(200), table(400, 1)
    with refused(UnsupportedError, "best.prior_only_a_sample") as caught:
        PrivateMean(AttributeScenario("race", prior=public), Best(), bounds=BOUNDS).fit(
            private[["age", "share"]]
        )
    assert len(str(caught.value)) < 400
    # the remedy that it names is one
    PrivateMean(scenario_of(public), Best(), bounds=BOUNDS).fit(
        private[["age", "share"]]
    )
