"""What is to be learnt cannot be the secret, whatever it is called."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GeneralWasserstein, OverlapAmplification
from skpuffer.compose import PrivatePipeline, PublicPreprocessing
from skpuffer.exceptions import PrivacyLeakWarning, ScenarioError
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.scenarios import AttributeScenario, BlocksScenario, BoundedOdds
from tests.refused import refused, warned

N = 1000
RNG = np.random.default_rng(0)
RACES = ["White", "Black", "Asian", "Other"]
RACE = pd.Series(RNG.choice(RACES, N, p=[0.8, 0.1, 0.06, 0.04]), name="race")
AGE, HOURS = RNG.uniform(size=(2, N))
X = pd.DataFrame({"age": AGE, "race": RACE, "hours": HOURS})

BELIEF = AttributeScenario("race", level="record", prior=BoundedOdds(2.0))


def believed(y, scenario=BELIEF):
    return PrivateLogisticRegression(
        scenario, OverlapAmplification(0.1), classes=sorted(set(np.asarray(y).tolist()))
    )


def scaled(y):
    public = X[["age", "hours"]].iloc[:50] * 0.5 + 0.1
    return PublicPreprocessing(StandardScaler(), believed(y), reference=public)


def piped(y):
    return PrivatePipeline([("model", believed(y))])


def in_blocks(y):
    inner = AttributeScenario("race", level="dataset", prior=BoundedOdds(2.0))
    return believed(y, BlocksScenario(inner, sizes=1))


def by_a_prior(y):
    prior = pd.DataFrame({"age": [0.1, 0.9] * 50, "hours": 0.5, "race": RACES * 25})
    scenario = AttributeScenario("race", level="record", prior=prior, prior_as="law")
    return PrivateLogisticRegression(
        scenario, GeneralWasserstein(1.0, alpha=2.0), classes=sorted(set(map(str, y)))
    )


CODES = pd.factorize(RACE)[0]
SPELLINGS = {
    "array": RACE.to_numpy(),
    "list": RACE.tolist(),
    "renamed": RACE.rename("group"),
    "codes": CODES,
    "texts": pd.Series(CODES + 7).map(str),
}


@pytest.mark.parametrize("y", SPELLINGS.values(), ids=SPELLINGS)
def test_a_target_that_is_the_secret_is_refused(y):
    for door in (believed, scaled, piped, in_blocks):
        with refused(ScenarioError, "target.is_secret_recoded", column="race"):
            door(y).fit(X, y)
    # whether the table has the column, or it is given apart
    with refused(ScenarioError, "target.is_secret_recoded", column="race"):
        believed(y).fit(X.drop(columns="race"), y, secret=RACE)


def test_behind_a_prior_table_it_is_refused_too():
    with refused(ScenarioError, "target.is_secret_recoded", column="race"):
        by_a_prior(RACE).fit(X, RACE.to_numpy())


def changed(share):
    """The secret, in a share of records that of somebody else, and in one surely."""
    rng = np.random.default_rng(0)
    found = np.where(rng.random(N) < share, rng.permutation(RACE), RACE)
    found[7] = next(race for race in RACES if race != RACE[7])
    return found


@pytest.mark.parametrize(
    "y",
    [changed(0.0), changed(0.01), np.where(RACE == "White", "w", "o")],
    ids=["one record", "one in a hundred", "one value"],
)
def test_a_target_that_is_nearly_the_secret_promises_nothing(y):
    with warned(PrivacyLeakWarning, "target.nearly_secret_recoded", column="race"):
        promise = believed(y).fit(X, y).certificate_
    assert not promise.certified


def test_numbers_of_many_values_are_compared():
    pay = pd.Series(np.random.default_rng(1).lognormal(size=N), name="pay")
    table = X[["age", "hours"]].assign(pay=pay)
    scenario = AttributeScenario("pay", level="record", prior=BoundedOdds(2.0))
    model = PrivateRidge(scenario, OverlapAmplification(0.1), target_bounds=(0, 10))
    for y in (pay.to_numpy(), (pay / 1000).tolist(), -pay.to_numpy()):
        with refused(ScenarioError, "target.is_secret_recoded", column="pay"):
            model.fit(table, y)
    rough = pay + np.random.default_rng(2).normal(size=N)
    assert model.fit(table, rough.rename("rough")).certificate_.certified


def test_other_targets_are_certified_and_named():
    labels = pd.Series(changed(0.3) == "White", name="label")
    for y in (labels, labels.to_numpy(), RNG.permutation(RACE)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", PrivacyLeakWarning)
            promise = believed(y).fit(X, y).certificate_
        assert promise.certified
        name = "'label'" if y is labels else "which has no name"
        assert any(
            "target" in one and name in one and "not the secret 'race'" in one
            for one in map(str, promise.assumptions)
        )


def test_few_records_agree_by_chance():
    few = X.iloc[:8].assign(race=["a", "b"] * 4)
    y = np.array([0, 1] * 4)
    assert believed(y).fit(few, y).certificate_.certified
