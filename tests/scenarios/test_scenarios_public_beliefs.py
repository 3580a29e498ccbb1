"""Beliefs about one record that are read from public rows."""

import copy
import pickle
import threading
from decimal import Decimal

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skpuffer.accountants import OverlapAmplification
from skpuffer.compose import PublicPreprocessing
from skpuffer.exceptions import (
    EstimatedGuaranteeWarning,
    PrivacyWarning,
    ScenarioError,
)
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.preprocessing import PublicOneHotEncoder
from skpuffer.privacy_loss._overlap import FiniteOverlap
from skpuffer.releases import GradientRelease, PublicContext
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BoundedOdds,
    DeclaredOdds,
    RecordBelief,
    ReferenceTable,
)
from skpuffer.scenarios._priors._coding import coding_of
from skpuffer.scenarios._priors._overlap import prior_leaks
from skpuffer.schema import Number, Schema
from skpuffer.summary import PrivateMean
from tests.refused import refused as is_refused
from tests.refused import says, warned

#: Two values of z, of masses .6 and .4 given one secret, .4 and .6 given the other.
COINS = pd.DataFrame(
    {"s": [0] * 5 + [1] * 5, "z": ["x"] * 3 + ["y"] * 2 + ["x"] * 2 + ["y"] * 3}
)


def scenario(prior, **options):
    return AttributeScenario("s", **{"level": "record", "prior": prior} | options)


def fact(prior, names=("z",), *, has_target=False, **options):
    release = GradientRelease(
        n_records=50,
        n_steps=3,
        sampling="full_batch",
        context=PublicContext(
            n_records=50,
            n_features=len(names),
            feature_names=names,
            has_target=has_target,
        ),
    )
    return scenario(prior, **options).bind(release.context).fact(RecordBelief, release)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 800
    age = rng.integers(18, 80, n)
    s = (rng.random(n) < 0.3 + 0.005 * (age - 40)).astype(int)
    job = np.where(rng.random(n) < 0.5 + 0.1 * s, "clerk", "cook")
    pay = rng.random(n) < 0.5 + 0.01 * (age - 50)
    return pd.DataFrame({"age": age, "job": job, "s": s, "pay": pay.astype(int)})


# -- how much is left to hide ----------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon, w, eta",
    [
        (0.1, None, 0.1579316328),
        (0.3, None, 0.0600564770),
        (0.1, 1.5, 0.1610861032),
        (0.1, 2.0, 0.1918029958),
        (0.3, 1.5, 0.0914848635),
        (0.3, 2.0, 0.1300587723),
    ],
)
def test_a_law_and_odds_for_the_rest(epsilon, w, eta):
    rest = None if w is None else BoundedOdds(w)
    law = fact(BinnedLaw(COINS, rest=rest)).overlap
    assert law.etas(epsilon) == pytest.approx((eta, eta), abs=1e-10)
    # a classifier that says the same, at the same rows
    given = np.where(COINS["z"] == "x", 0.4, 0.6)
    odds = fact(DeclaredOdds(given, COINS[["z"]], rest=rest)).overlap
    assert odds.etas(epsilon) == pytest.approx((eta, eta), abs=1e-10)


def test_odds_are_weighed_by_the_rows_they_are_of():
    rng = np.random.default_rng(1)
    given = rng.beta(1, 3, 2000)
    rows = pd.DataFrame({"z": rng.normal(size=2000)})
    overlap = fact(DeclaredOdds(given, rows, rest=BoundedOdds(1.5))).overlap
    rate = given.mean()
    p, q = given / rate / 2000, (1 - given) / (1 - rate) / 2000
    exact = FiniteOverlap(tuple(q), tuple(p), 1.5)
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        found, truth = np.array(overlap.etas(epsilon)), np.array(exact.etas(epsilon))
        # values of about one likelihood ratio are taken together: no less is left
        assert np.all(found >= truth) and np.all(found <= truth * (1 + 1e-3))


def test_whatever_is_known_already():
    # z is fair given s, and so is u; together they give s away
    rows = pd.DataFrame({"s": [0, 0, 1, 1], "z": [0, 1, 0, 1], "u": [0, 1, 1, 0]})
    apart = fact(BinnedLaw(rows[["s", "z"]])).overlap
    assert max(apart.etas(0.1)) < 1e-12
    assert fact(BinnedLaw(rows), ("z", "u")).overlap.etas(0.1)[0] == pytest.approx(1)
    # a column that tells nothing by itself tells all to those who know another
    noisy = pd.concat([rows] * 9 + [rows.assign(u=1 - rows["u"])])
    blind = fact(BinnedLaw(noisy[["s", "z"]])).overlap.etas(0.1)[0]
    knowing = fact(BinnedLaw(noisy, known=("z",)), ("z", "u")).overlap.etas(0.1)[0]
    assert blind < 1e-12 and knowing == pytest.approx(0.9 - np.exp(0.1) * 0.1)
    # to know all leaves nothing, and the worst is what counts
    every = fact(BinnedLaw(noisy, known=("z", "u")), ("z", "u")).overlap.etas(0.1)[0]
    assert every == knowing
    # odds declared at the same rows, of the same columns
    given = np.where(noisy["z"] == noisy["u"], 0.1, 0.9)
    odds = DeclaredOdds(given, noisy[["z", "u"]], known=("u",))
    assert fact(odds, ("z", "u")).overlap.etas(0.1)[0] == pytest.approx(knowing)


def test_what_a_value_rules_out_is_not_compared_under_it():
    rows = pd.DataFrame({"s": [0, 0, 1, 1], "z": [0, 1, 1, 1], "k": [0, 1, 1, 1]})
    overlap = fact(BinnedLaw(rows, known=("k",)), ("z", "k")).overlap
    # given k = 1 nothing is left to tell, and k = 0 is no value of those with s = 1
    assert max(overlap.etas(0.0)) == pytest.approx(0.5)


def test_how_far_public_rows_are_trusted(people):
    rows = people[["s", "job"]]
    law, declared = BinnedLaw(rows), fact(BinnedLaw(rows), ("job",))
    assert declared.certified and declared.confidence == 1
    assert says(declared.belief, "assume.belief_binned_law", n_rows=800)
    sample = fact(law, ("job",), prior_as="sample")
    assert not sample.certified and sample.overlap == declared.overlap
    sure = fact(law, ("job",), prior_as="confidence", confidence=0.9)
    assert sure.confidence == 0.9 and sure.certified
    # Weissman et al. (2003) for two values, a union bound over both secrets
    n = rows["s"].value_counts().min()
    t = 0.5 * np.sqrt(2 * np.log(2 / 0.05) / n)
    eta = declared.overlap.etas(0.1)[0] + t * (1 + np.exp(0.1))
    assert sure.overlap.etas(0.1)[0] == pytest.approx(eta)
    ages = people[["s", "age"]]
    with is_refused(ScenarioError, "prior.confidence_edges_from_rows"):
        fact(BinnedLaw(ages, {"age": 3}), ("age",), prior_as="confidence")
    assert fact(BinnedLaw(ages, {"age": [40]}), ("age",), prior_as="confidence")
    # any masses on these rows: nothing overlaps, and the fallback is what is promised
    assert fact(law, ("job",), prior_as="support").overlap.etas(3.0) == (1.0, 1.0)
    odds = DeclaredOdds(np.full(800, 0.4), rows[["job"]])
    with is_refused(ScenarioError, "prior.confidence_needs_binned_law"):
        fact(odds, ("job",), prior_as="confidence")


def test_what_is_known_already_is_trusted_no_further_than_its_rows():
    # few have k = 1, of whom hardly anything is known then
    rows = pd.DataFrame(
        [(s, z, k) for s in (0, 1) for z in (0, 1) for k in [0] * 900 + [1] * 100],
        columns=["s", "z", "k"],
    )
    prior = BinnedLaw(rows, known=("k",))
    found = fact(prior, ("z", "k"), prior_as="confidence").overlap
    variation = fact(BinnedLaw(rows), ("z", "k"), prior_as="confidence").overlap
    moved = min(variation.variation, 0.05)
    # those with k = 1 may well be told apart by z, and the rest be as it was
    p, q = (
        np.array([0.05 + moved, 0.05 - moved]),
        np.array([0.05 - moved, 0.05 + moved]),
    )
    given = FiniteOverlap(tuple(p / 0.1), tuple(q / 0.1))
    for epsilon in (0.0, 0.1, 0.5):
        assert found.etas(epsilon)[0] >= given.etas(epsilon)[0]
    # what the rows rule out may still be so
    rows.loc[rows["s"] == 0, "k"] = 0
    assert fact(prior.set_params(rows=rows.copy()), ("z", "k")).overlap.etas(0)[0] < 1
    doubted = fact(prior, ("z", "k"), prior_as="confidence").overlap
    assert doubted.etas(0.1) == (1.0, 1.0)


def test_the_private_rows_are_no_public_ones():
    table = pd.DataFrame({"s": np.arange(60) % 2, "a": np.linspace(0.0, 1.0, 60)})
    odds = np.linspace(0.3, 0.6, 60)
    for prior, rows, leaks in (
        (BinnedLaw(table, {"a": 3}), table[::-1], True),
        # raw values are compared, before bins make them alike
        (BinnedLaw(table, {"a": 3}), table.assign(a=table["a"] + 0.008), False),
        (BinnedLaw(table), table.assign(a=table["a"] ** 2), False),
        (DeclaredOdds(odds, table[["a"]]), table[30:], True),
        (DeclaredOdds(odds, table[["a"]]), table + 0.008, False),
    ):
        asked = scenario(prior)
        assert leaks == bool(prior_leaks(asked, rows, None, None, None))
    mean = PrivateMean(asked, OverlapAmplification(0.3), bounds=(0, 1))
    with warned(PrivacyWarning, "prior.holds_private_records"):
        assert not mean.fit(table).certificate_.certified


def test_what_would_be_so_if_the_belief_is_off():
    near = dict(fact(BinnedLaw(COINS, rest=BoundedOdds(1.5))).wider)
    names = list(near)
    assert ["0.05" in names[0], "0.1" in names[1], "within 3" in names[2]] == [True] * 3
    eta = 0.1610861032
    for name, t in zip(names, (0.05, 0.1), strict=False):
        assert near[name].etas(0.1)[0] == pytest.approx(eta + t * (1 + np.exp(0.1)))
    assert near[names[2]].etas(0.1)[0] > eta
    assert dict(fact(BinnedLaw(COINS, rest=BoundedOdds(1.0))).wider).keys() == set(
        names[:2]
    )


def test_where_some_is_known_distributions_given_it_are_off():
    # few have k = 1; that these are off by t says less than that all records are
    rows = pd.DataFrame(
        [(s, z, k) for s in (0, 1) for z in (0, 1) for k in [0] * 9 + [1]],
        columns=["s", "z", "k"],
    )
    found = fact(BinnedLaw(rows, known=("k",)), ("z", "k"))
    (said, off), *_ = found.wider
    assert said == "given what is known, distributions off by 0.05 in total variation"
    p, q = np.array([0.55, 0.45]), np.array([0.45, 0.55])
    given = FiniteOverlap(tuple(p), tuple(q)).etas(0.1)[0]
    assert given <= off.etas(0.1)[0] <= given + 0.05 * (1 + np.exp(0.1)) + 1e-12


def test_what_is_changed_in_place_afterwards():
    rows, bins = COINS.assign(a=np.arange(10.0)), {"a": [4.5]}
    prior = BinnedLaw(rows, bins)
    before = fact(prior, ("z", "a"))
    # rows count as they were read, in all that is made of them
    rows.loc[:, "a"] = 0.0
    rows.loc[10] = [0, "x", 7.0]
    assert fact(prior, ("z", "a")).overlap == before.overlap
    assert "<10 rows>" in repr(prior)
    assert says(before.belief, "assume.belief_binned_law", n_rows=10)
    assert clone(prior).laws(scenario(prior)) is prior.laws(scenario(prior))
    # other rows are others, and so are other bins, however they were changed
    bins["a"].insert(0, 1.5)
    assert len(set(prior.read(scenario(prior), COINS.assign(a=range(10)))["a"])) == 3
    prior.set_params(rows=COINS, bins=None)
    assert fact(prior).overlap.etas(0.1)[0] == pytest.approx(0.1579316328)
    # a belief that was used is told from none
    assert joblib.hash(BinnedLaw(COINS)) == joblib.hash(prior)
    # what cannot be pickled cannot be compared, and is refused as what it is
    for unhashed in (lambda: 3, threading.Lock()):
        with is_refused(ScenarioError, "prior.bins_invalid_at_column", name="a"):
            fact(BinnedLaw(COINS.assign(a=1.0), {"a": unhashed}), ("z", "a"))


def test_a_copy_is_of_what_was_read():
    """A process that a belief is sent to works with the belief of its parent."""
    rows, given = COINS.copy(), np.linspace(0.4, 0.6, 10)
    features = COINS[["z"]].copy()
    law, odds = BinnedLaw(rows), DeclaredOdds(given, features)
    before = [fact(prior).overlap for prior in (law, odds)]
    rows.loc[:, "z"] = features.loc[:, "z"] = "x"
    given[:] = 0.5
    for prior, overlap in zip((law, odds), before, strict=True):
        for twin in (
            pickle.loads(pickle.dumps(prior)),
            copy.deepcopy(prior),
            copy.copy(prior),
            clone(prior),
        ):
            assert fact(twin).overlap == overlap
            assert joblib.hash(twin) == joblib.hash(prior)
    # what was never read is read when it is sent
    fresh = BinnedLaw(COINS.copy())
    sent = pickle.loads(pickle.dumps(fresh))
    fresh.rows.loc[:, "z"] = "x"
    assert fact(fresh).overlap == fact(sent).overlap == before[0]
    # and what cannot be read is refused where it is used
    assert copy.deepcopy(BinnedLaw("rows")).rows == "rows"
    masked = np.ma.masked_equal(np.eye(2), 0)
    assert copy.copy(BinnedLaw(masked)).rows is masked


def test_of_a_classifier_that_cannot_be_copied_there_is_one():
    class Guess:
        classes_ = np.array([0, 1])

        def __init__(self):
            self.lock = threading.Lock()

        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    guess = Guess()
    prior = DeclaredOdds(guess, COINS[["z"]])
    assert fact(prior).overlap.etas(0.1)[0] == 0
    assert copy.copy(prior).propensity is guess


# -- reading private rows --------------------------------------------------------------


def test_values_are_read_as_the_nearest_declared():
    public = pd.DataFrame({"a": [1, 2, 4, 9], "b": ["v", "u", "u", "v"]})
    coding = coding_of(public, {"a": [2.5]}, ("a", "b"))
    read = coding.read(
        pd.DataFrame({"a": [-5, 2.5, 2.6, 50], "b": ["u", "w", "v", ""]})
    )
    # two bins, of means 1.5 and 6.5; what was never declared is the first level
    assert read["a"].tolist() == [1.5, 1.5, 6.5, 6.5]
    assert read["b"].tolist() == ["u", "u", "v", "u"]
    levels = coding_of(public, {}, ("a",))
    # ties go to the lower value
    assert levels.read(pd.DataFrame({"a": [0, 3, 6.4, 6.5, 6.6]}))["a"].tolist() == [
        *(1, 2, 4, 4, 9)
    ]
    # what is no number is missing, and refused as such where it is read
    assert np.isnan(coding.read(pd.DataFrame({"a": ["x"]}))["a"].item())
    ordered = coding_of(public, {"b": ["v", "u"]}, ("b",))
    assert ordered.read(pd.DataFrame({"b": ["w"]}))["b"].tolist() == ["v"]
    # a bin that no public row is in is none of the values
    gap = coding_of(public, {"a": [3, 5, 8]}, ("a",))
    assert gap.read(pd.DataFrame({"a": [6.0, 6.6]}))["a"].tolist() == [4, 9]


@pytest.mark.parametrize(
    "declared, given, read",
    [
        (["x", "y"], [1, 2], ["x", "x"]),
        (["x", "y"], ["X", " y "], ["x", "y"]),
        ([1.0, 2.0], pd.array(["1", "2"], "string"), [1, 2]),
        (pd.Series([1, 2], dtype="category"), pd.array(["1", "2.0"], "string"), [1, 2]),
        (pd.Series([1, 2], dtype="category"), [2, 1], [2, 1]),
        ([False, True], ["True", "unknown"], [True, False]),
        ([False, True], [1, 0], [True, False]),
        ([1.0, 2.0], [True, False], [1, 1]),
    ],
    ids=str,
)
def test_cells_are_coded_by_what_was_written(declared, given, read):
    public = pd.DataFrame({"s": [0, 1]}).assign(a=declared)
    prior = scenario(BinnedLaw(public))
    assert prior.coded(pd.DataFrame({"a": given}))["a"].tolist() == read


@pytest.mark.parametrize("bins", [None, {"a": 3}, {"a": [0.0, 0.5]}, {"a": 1}])
def test_what_was_read_is_read_as_itself(bins):
    rng = np.random.default_rng(0)
    public = pd.DataFrame({"a": rng.normal(size=30).round(1)})
    coding = coding_of(public, bins or {}, ("a",))
    once = coding.read(pd.DataFrame({"a": rng.normal(size=200)}))
    assert coding.read(once).equals(once)
    assert set(once["a"]) <= set(coding.read(public)["a"])


def test_records_are_read_as_the_nearest_of_their_label():
    public = pd.DataFrame(
        {"s": [0, 1, 0, 1], "a": [0, 0, 10, 10], "b": [*"uvuv"], "y": [0, 1, 0, 1]}
    )
    prior = scenario(BinnedLaw(public), target="y")
    X = pd.DataFrame({"b": ["v", "u", "u"], "a": [9, 1, 10], "other": [1, 2, 3]})
    read, y = prior.coded_records(prior.coded(X), np.array([0, 0, 1]), "y")
    # of label 0 all have b = u, of label 1 all have b = v; a third column stays
    assert read["b"].tolist() == ["u", "u", "v"] and read["a"].tolist() == [10, 0, 10]
    assert read["other"].tolist() == [1, 2, 3] and list(read) == list(X)
    assert y.tolist() == [0, 0, 1] and y.dtype == int
    _, column = prior.coded_records(read, np.array([[0], [7], [1]]), "y")
    assert column.tolist() == [0, 1, 1]
    # without a label the nearest of all
    free, none = prior.coded_records(prior.coded(X[:1]), None, None)
    assert free["b"].tolist() == ["v"] and none is None


def test_what_is_missing_is_read_as_nothing(people):
    rows = people[["s", "age", "pay"]]
    prior = scenario(BinnedLaw(rows, {"age": [30, 50]}), target="pay")
    mean = PrivateMean(prior, OverlapAmplification(0.1), bounds=(18, 80))
    X = people[["age"]].astype(object)
    for missing in (None, np.nan, "Jo"):
        X.iloc[3, 0] = missing
        with is_refused(ValueError, "table.not_finite") as refused:
            mean.fit(X)
        assert "Jo" not in str(refused.value)
    y = np.ma.masked_array(people["pay"], mask=people["pay"] == 1)
    with is_refused(ValueError, "table.masked_array", name="y"):
        prior.coded_records(prior.coded(people[["age"]]), y, "pay")


def test_nothing_finer_than_the_bins_is_released(people):
    public, private = people[:600], people[600:].reset_index(drop=True)
    prior = scenario(BinnedLaw(public[["s", "age"]], {"age": [30, 50]}))
    X = private[["age", "s"]]
    # another record within its bin: the release does not know of it
    moved = X.copy()
    moved.loc[moved["age"] > 50, "age"] = 79
    mean = PrivateMean(
        prior, OverlapAmplification(0.1), bounds=(18, 80), random_state=0
    )
    with warned(PrivacyWarning, "noise.drawn_from_seed"):
        raw = clone(mean).fit(X)
    with warned(PrivacyWarning, "noise.drawn_from_seed"):
        again = clone(mean).fit(moved)
    assert raw.mean_ == pytest.approx(again.mean_, abs=1e-12)
    assert raw.certificate_.fallback > raw.certificate_.epsilon


def test_public_rows_declare_bounds_of_what_they_cover(people):
    prior = scenario(BinnedLaw(people[["s", "age"]], {"age": [30, 50]}))
    context = PublicContext(n_records=9, n_features=1, feature_names=("age",))
    low, high = prior.declared_bounds(context)
    # means of the outermost bins
    ages = people["age"]
    assert (low, high) == (ages[ages <= 30].mean(), ages[ages > 50].mean())
    wider = PublicContext(n_records=9, n_features=2, feature_names=("age", "pay"))
    assert prior.declared_bounds(wider) is None
    assert list(prior.public_table()) == ["age"]


def test_a_classifier_of_coded_rows(people):
    public, private = people[:600], people[600:].reset_index(drop=True)
    prior = scenario(BinnedLaw(public, {"age": 4}), target="pay")
    model = PublicPreprocessing(
        PublicOneHotEncoder({"job": ["clerk", "cook"]}),
        PrivateLogisticRegression(prior, OverlapAmplification(0.3), data_norm=60.0),
    )
    X, y = private[["age", "job", "s"]], private["pay"]
    fitted = clone(model).fit(X, y)
    certificate = fitted.certificate_
    assert certificate.gain > 1
    assert says(certificate.assumptions, "assume.belief_binned_law", n_rows=600)
    # predictions are of coded rows too, whatever else is in them
    coded = prior.coded(X)
    assert np.array_equal(fitted.predict(X), fitted.predict(coded))
    strange = X.assign(job="astronaut")
    expected = fitted.predict(X.assign(job="clerk"))
    assert np.array_equal(fitted.predict(strange), expected)
    stored = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(stored.predict(X), fitted.predict(X))
    # labels stay what they are
    assert fitted.classes_.dtype == y.dtype
    with is_refused(ValueError, "target.missing_values"):
        clone(model).fit(X, y.astype(float).where(y == 1))
    # a value of the secret that was never declared does not matter
    clone(model).fit(X.assign(s=7), y)


def test_odds_of_a_classifier(people):
    public, private = people[:600], people[600:].reset_index(drop=True)
    features = PublicOneHotEncoder({"job": ["clerk", "cook"]})
    guess = LogisticRegression().fit(public[["age"]], public["s"])
    prior = DeclaredOdds(guess, public[["age", "job"]], rest=BoundedOdds(2.0))
    asked = scenario(prior, table="staff")
    # as it was fitted, and with the same rows, in a copy
    copied = clone(asked)
    assert copied.prior.propensity is guess
    copied.set_params(prior__rest__w=3.0)
    assert asked.prior.rest.w == 2.0
    assert copied.explain(0.3)["eta"].item() > asked.explain(0.3)["eta"].item()
    model = PublicPreprocessing(
        features,
        PrivateLogisticRegression(asked, OverlapAmplification(0.3), data_norm=60.0),
    )
    fitted = model.fit(private[["age", "job", "s"]], private["pay"])
    assert "age, job" in fitted.certificate_.record
    assert fitted.certificate_.gain > 2
    with pytest.warns(EstimatedGuaranteeWarning):
        clone(model).set_params(estimator__scenario__prior_as="sample").fit(
            private[["age", "job", "s"]], private["pay"]
        )


def test_arrays_are_laid_out_as_the_public_rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    prior = AttributeScenario(
        1, level="record", prior=DeclaredOdds(rng.random(40), rows)
    )
    assert prior.secret_position(None, 3) == 1
    assert prior.secret_position(None, 2) is None
    with is_refused(ScenarioError, "prior.unnamed_column_count_differs", n_features=5):
        prior.secret_position(None, 5)
    mean = PrivateMean(prior, OverlapAmplification(1.0), bounds=(-4, 4))
    X = rng.normal(size=(40, 3))
    assert mean.fit(X).mean_.shape == (2,)
    # a frame's secret is not at that position
    named = pd.DataFrame(X, columns=[*"abc"])
    covered = clone(mean).set_params(scenario__prior__rest=BoundedOdds(2.0))
    with is_refused(ScenarioError, "attribute.position_for_named_data", column=1):
        covered.fit(named)


# -- what is refused -------------------------------------------------------------------


def test_what_is_read_must_be_covered():
    for prior in (BinnedLaw(COINS), DeclaredOdds(np.full(10, 0.5), COINS[["z"]])):
        with is_refused(ScenarioError, "prior.columns_read_not_covered"):
            fact(prior, ("age", "z"))
        with is_refused(ScenarioError, "prior.columns_read_not_covered"):
            fact(prior, has_target=True)
        rest = clone(prior).set_params(rest=BoundedOdds(1.0))
        fact(rest, ("age", "z"), has_target=True)
    fact(BinnedLaw(COINS.assign(y=0)), has_target=True, target="y")
    # a target of another name, or several under one, is not what the rows have
    full = scenario(BinnedLaw(COINS.assign(y=0)), target="y")
    known = {"n_records": 9, "feature_names": ("z",), "n_features": 1}
    for other, match in (
        ({"target_name": "health"}, "target.name_differs_from_data"),
        ({"n_targets": 2}, "prior.columns_read_not_covered"),
    ):
        with is_refused(ScenarioError, match):
            full.bind(PublicContext(**known, has_target=True, **other))


@pytest.mark.parametrize(
    "prior, match",
    [
        (BinnedLaw(COINS[["z"]]), "prior.rows_lack_secret"),
        # data without names is not read through the bins
        (BinnedLaw(np.eye(4)), "prior.rows_without_names"),
        (BinnedLaw(COINS, {"age": 3}), "prior.bins_unknown_columns"),
        (BinnedLaw(COINS, {"s": ["a"]}), "prior.bins_unknown_columns"),
        (BinnedLaw(COINS, ["z"]), "prior.bins_not_dict_or_schema"),
        (BinnedLaw(COINS, {"z": 3}), "prior.bins_need_levels"),
        (BinnedLaw(COINS, {"z": ["x"]}), "prior.bins_lack_seen_values"),
        (
            BinnedLaw(COINS.assign(z=1.0), {"z": [2, 1]}),
            "prior.bins_not_ascending_edges",
        ),
        (BinnedLaw(COINS.assign(z=1.0), {"z": 0}), "prior.bins_not_one_bin"),
        (BinnedLaw(COINS.assign(z=np.nan)), "prior.rows_missing_values"),
        (BinnedLaw(COINS.assign(s=0)), "prior.secret_one_value_only"),
        (BinnedLaw(COINS, known=("s",)), "prior.known_unknown_columns"),
        (BinnedLaw(COINS, known="z"), "prior.known_not_a_list"),
        (BinnedLaw("rows"), "prior.rows_not_a_table"),
        (
            BinnedLaw(COINS, rest=BoundedOdds(2.0, share=0.1)),
            "odds.rest_range_or_share",
        ),
        ([BinnedLaw(COINS), BinnedLaw(COINS)], "prior.several_binned_laws"),
        (DeclaredOdds(np.full(10, 0.5), None), "prior.rows_not_a_table"),
        (DeclaredOdds("s", COINS), "propensity.source_invalid"),
        (DeclaredOdds(None, COINS), "propensity.source_invalid"),
        (
            DeclaredOdds(np.full(9, 0.5), COINS),
            "propensity.probabilities_shape_invalid",
        ),
        (
            DeclaredOdds(np.full(10, 1.5), COINS),
            "propensity.probabilities_shape_invalid",
        ),
        (
            DeclaredOdds(np.full((10, 2), 0.4), COINS),
            "propensity.probabilities_not_sum_one",
        ),
        (DeclaredOdds(np.zeros(10), COINS), "propensity.value_without_probability"),
        (
            DeclaredOdds(np.full(10, 0.5), COINS, rate=0.6),
            "propensity.rate_contradicts_probabilities",
        ),
        (
            DeclaredOdds(np.full(10, 0.5), COINS, rate={7: 0.5}),
            "propensity.rate_not_share_or_dict",
        ),
        (
            DeclaredOdds(np.full((10, 4), 0.25), COINS, rate=0.5),
            "propensity.rate_not_each_value",
        ),
    ],
)
def test_bad_beliefs(prior, match):
    with is_refused(ScenarioError, match):
        fact(prior)


def test_bad_beliefs_beside_a_scenario(people):
    with is_refused(TypeError, "odds.rest_not_bounded_odds"):
        fact(BinnedLaw(COINS, rest=2.0))
    # a guess of the secret that reads it
    guess = LogisticRegression().fit(people[["age", "s"]], people["s"])
    with is_refused(ScenarioError, "propensity.reads_secret"):
        fact(DeclaredOdds(guess, people))
    guess = LogisticRegression().fit(people[["age"]], people["s"])
    with is_refused(ScenarioError, "propensity.rows_lack_columns"):
        fact(DeclaredOdds(guess, people[["job"]]))
    # a rate that agrees up to rounding is no contradiction
    fact(DeclaredOdds(np.full(10, 0.333), COINS, rate=0.33))
    with is_refused(ScenarioError, "scenario.pair_secret_unknown"):
        fact(BinnedLaw(COINS), pairs=[(0, 5)])
    assert fact(BinnedLaw(ReferenceTable(COINS)), pairs=[(0, 1)]).certified


def test_what_is_worked_out_of_public_rows_is_kept_by_clones_and_made_anew_for_others():
    rows = pd.DataFrame({"sex": [0, 1] * 30, "age": np.arange(60.0)})
    scenario = AttributeScenario(
        "sex", level="record", prior=BinnedLaw(rows, {"age": 3})
    )
    scenario.check()
    twin = clone(scenario)
    assert twin.prior.laws(twin) is scenario.prior.laws(scenario)
    (read,), (again,) = scenario._public_tables(), twin._public_tables()
    assert read is again
    assert read.frame()["age"].nunique() == 3
    # other bins are another belief, and the rows are read by them
    twin.set_params(prior__bins={"age": 5})
    (other,) = twin._public_tables()
    assert other.frame()["age"].nunique() == 5
    assert scenario._public_tables()[0] is read


@pytest.mark.parametrize("by", ["edges", "schema"])
@pytest.mark.parametrize("other", [1j, 10**400, -1, 2**63, "x", None], ids=str)
@pytest.mark.parametrize("value", ["x", "4", 2**63, 3, Decimal(3)], ids=str)
def test_a_record_is_read_alike_whatever_stands_beside_it(by, value, other):
    rows = pd.DataFrame({"secret": [0, 1] * 4, "u": [0.0, 1, 3, 4, 5, 6, 7, 8]})
    bins = {"u": [2.0, 5.0]} if by == "edges" else Schema({"u": Number(0, 9, bins=3)})
    prior = AttributeScenario(
        "secret", level="record", prior=BinnedLaw(rows, bins=bins), prior_as="law"
    )

    def read(*values):
        frame = pd.DataFrame({"u": pd.Series(list(values), dtype=object)})
        return prior.coded_records(frame, None, None, fill_rows=True)[0]["u"].tolist()

    assert read(value, other) == read(value) + read(other)
