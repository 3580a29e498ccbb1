"""Scores of a finished model on private records: exact, bounded and with intervals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss, get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.exceptions import UnsupportedError
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLogit
from skpuffer.model_selection import PrivateScore
from skpuffer.scenarios import (
    AttributeScenario,
    BlocksScenario,
    BoundedOdds,
    DependenceScenario,
    RecordScenario,
)
from skpuffer.schema import Category, Number, Schema
from tests.engines import lazy_frame
from tests.refused import refused

EXACT = PrivacyLoss(1e7, 1e-5)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.normal(size=n),
            "sex": rng.choice(["F", "M"], n),
            "id": np.arange(n) // 2,
        }
    )
    wrong = rng.normal(scale=np.where(table.sex == "F", 0.5, 2.0))
    return table, pd.Series(np.where(table.a + wrong > 0, "yes", "no"))


TABLE, Y = people(3000)
FEATURES = TABLE[["a", "b"]]
MODEL = LogisticRegression().fit(*(part[:1000] for part in (FEATURES, Y)))
BARE = LogisticRegression().fit(FEATURES.to_numpy(), Y)
NUMBERS = 3 * TABLE.a + TABLE.b
LINE = LinearRegression().fit(FEATURES.to_numpy(), NUMBERS + TABLE.id % 2)


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
def test_scores_are_those_of_scikit_learn(array, gaps):
    model = LogisticRegression().fit(FEATURES.to_numpy(), Y) if array else MODEL
    X = FEATURES.to_numpy() if array else TABLE
    known = np.arange(len(Y)) % 5 > 0 if gaps else np.full(len(Y), True)
    y = Y.where(known, None)
    rows = X[known] if array else FEATURES[known]
    found = PrivateScore(model, accountant=EXACT).fit(X, y)
    assert found.score_ == pytest.approx(model.score(rows, Y[known]), abs=1e-4)
    brier = PrivateScore(model, accountant=EXACT, scoring="neg_brier_score").fit(X, y)
    chances = model.predict_proba(rows)[:, 1]
    expected = -brier_score_loss(Y[known] == "yes", chances)
    assert brier.score_ == pytest.approx(expected, abs=1e-4)
    row = brier.to_frame().iloc[0]
    assert row["statistic"] == "neg_brier_score"
    assert row["n"] == pytest.approx(known.sum(), abs=0.1)


@pytest.mark.parametrize(
    "made",
    [
        lambda: (MODEL, TABLE, Y.to_frame()),
        lambda: (MODEL, pl.from_pandas(TABLE), pl.Series(Y.to_list())),
        lambda: (BARE, sparse.csr_matrix(FEATURES.to_numpy()), Y),
        lambda: (BARE, FEATURES.to_numpy().tolist(), Y.tolist()),
        lambda: (FrozenEstimator(MODEL), TABLE, Y),
        lambda: (make_pipeline(StandardScaler(), BARE).fit(FEATURES, Y), TABLE, Y),
    ],
)
def test_tables_and_targets_are_read_in_any_form(made):
    model, X, y = made()
    found = PrivateScore(model, accountant=EXACT).fit(X, y).score_
    assert found == pytest.approx(MODEL.score(FEATURES, Y), abs=0.05)


@pytest.mark.parametrize("name", ["neg_mean_squared_error", "neg_mean_absolute_error"])
def test_errors_of_regressors_are_those_within_the_bounds(name):
    X, bounds = FEATURES.to_numpy(), (-12.0, 12.0)
    model = PrivateScore(LINE, None, EXACT, scoring=name, target_bounds=bounds)
    found = model.fit(X, NUMBERS).score_
    assert found == pytest.approx(get_scorer(name)(LINE, X, NUMBERS), abs=1e-3)
    # a target that is no number is none, and others are clipped
    some = NUMBERS.where(TABLE.id > 9)
    kept = some.notna()
    expected = get_scorer(name)(LINE, X[kept], NUMBERS[kept])
    assert model.fit(X, some).score_ == pytest.approx(expected, abs=1e-3)
    assert abs(model.fit(X, NUMBERS.replace(NUMBERS[0], np.inf)).score_ - found) < 0.01


@pytest.mark.parametrize("categories", [{"sex": ["F", "M"]}, None])
def test_groups_have_scores_of_their_own(categories):
    model = PrivateScore(
        MODEL, RecordScenario(unit="id", max_rows=2), EXACT, by="sex"
    ).set_params(categories=categories)
    if categories is None:  # found by their keys, with an epsilon of theirs
        model.set_params(accountant=PrivacyLoss(50.0, 1e-5))
    found = model.fit(TABLE, Y)
    right = pd.Series(MODEL.predict(FEATURES) == Y).groupby(TABLE.sex).mean()
    np.testing.assert_allclose(found.score_[right.index], right, atol=0.02)
    frame = found.to_frame(of="table")
    assert frame["sex"].tolist() == ["F", "M"]
    assert set(frame["statistic"]) == {"accuracy"}


def test_intervals_cover_what_they_are_for():
    """Scores of a known model in tables drawn anew, and in this one."""
    n, covered = 400, []
    model = PrivateScore(MODEL, accountant=PrivacyLoss(1.0, 1e-5))
    # with the share of right ones in a large table for that of the population
    large, y = people(200_000, seed=1)
    share = MODEL.score(large[["a", "b"]], y)
    for seed in range(60):
        table, y = people(n, seed=seed + 2)
        found = model.fit(table[["a", "b"]], y)
        truths = share, MODEL.score(table[["a", "b"]], y)
        for of, truth in zip(("population", "table"), truths, strict=True):
            low, high = found.confidence_interval(of=of)["score_"]
            covered.append(low <= truth <= high)
            assert low <= found.score_ <= high
    # at 95 % fewer than one in 10,000 runs
    assert np.sum(covered[::2]) > 48 and np.sum(covered[1::2]) > 48


class Hostile(ClassifierMixin, BaseEstimator):
    """Predicts what nobody asked for."""

    def __init__(self, answer=None):
        self.answer = answer

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        if self.answer == "raise":
            raise RuntimeError(f"cannot predict {X}")
        return np.full(len(X), 1)[: self.answer]

    def predict_proba(self, X):
        return np.full((len(X), 2), self.answer, dtype=float)


@pytest.mark.parametrize("answer", [np.nan, np.inf, -1e308, 7.0])
def test_no_prediction_makes_a_record_worth_more(answer):
    X, y = np.zeros((50, 1)), np.ones(50, int)
    model = PrivateScore(
        Hostile(answer).fit(X, y), accountant=EXACT, scoring="neg_brier_score"
    )
    assert -1.001 <= model.fit(X, y).score_ <= 0.001


def test_an_error_of_the_model_tells_nothing():
    X, y = np.full((50, 1), 1234.5), np.ones(50, int)
    with pytest.raises(ValueError, match="Hostile") as caught:
        PrivateScore(Hostile("raise").fit(X, y)).fit(X, y)
    assert "1234" not in str(caught.value) and caught.value.__context__ is None
    with refused(ValueError, "search.not_one_answer_per_record"):
        PrivateScore(Hostile(49).fit(X, y)).fit(X, np.arange(50) % 2)


def test_a_record_moves_no_sum_further_than_is_certified():
    """Of many wrong answers and none, whatever the noise adds up."""
    X = np.zeros((40, 1))
    model = PrivateScore(Hostile().fit(X, X), RecordScenario(relation="replace"), EXACT)
    scores = []
    for n_wrong in range(3):
        y = np.arange(40) >= n_wrong
        scores.append(model.fit(X, y.astype(int)).score_)
        release = model.summary_.certificate_
    np.testing.assert_allclose(np.diff(scores), -1 / 40, atol=1e-3)
    # one rate falls and the other rises
    assert release.sensitivity >= np.sqrt(2) / 40 * (1 - 1e-9)


def test_what_is_released_is_heard_of_and_says_what_it_rests_on():
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (1.5, 1e-4)})
    with ledger:
        found = PrivateScore(MODEL).fit(TABLE, Y)
    assert len(ledger.report()) == 1
    said = [s.code for s in found.certificate_.assumptions]
    assert "assume.model_public_by_record" in said
    assert found.certificate_.certified


def test_a_copy_keeps_the_finished_model():
    model = PrivateScore(MODEL, accountant=PrivacyLoss(3.0), by=["sex"])
    copy = clone(model)
    assert copy.estimator is MODEL and copy.accountant is not model.accountant
    assert copy.fit(TABLE, Y).score_.shape == (2,)


def test_private_models_are_scored_by_their_code_book():
    book = Schema(
        {"a": Number(-4, 4), "sex": ["F", "M"], "y": Category(["no", "yes"])},
        target="y",
    )
    private = PrivateLogit(accountant=PrivacyLoss(20.0), schema=book)
    private.fit(TABLE[["a", "sex"]][:500], Y[:500])
    found = PrivateScore(private, accountant=EXACT, by="sex").fit(TABLE, Y)
    right = pd.Series(private.predict(TABLE[["a", "sex"]]) == Y)
    expected = right.groupby(TABLE.sex).mean()
    np.testing.assert_allclose(found.score_[expected.index], expected, atol=0.01)


@pytest.mark.parametrize(
    "model, X, kind, code",
    [
        (MODEL, lazy_frame("polars", FEATURES), TypeError, "score.table_is_lazy"),
        (LINE, FEATURES, ValueError, "search.scoring_needs_target_bounds"),
        (MODEL, np.zeros(3000), ValueError, "table.not_two_dimensional"),
    ],
)
def test_what_has_no_score_says_so(model, X, kind, code):
    with refused(kind, code):
        PrivateScore(model).fit(X, Y)


def test_what_is_not_there_is_refused():
    with refused(ValueError, "score.groups_not_there", lacking=["town"]):
        PrivateScore(MODEL, by="town").fit(TABLE, Y)
    with pytest.raises(NotFittedError):
        PrivateScore(LogisticRegression()).fit(TABLE, Y)
    with pytest.raises(NotFittedError):
        PrivateScore(MODEL).to_frame()


@pytest.mark.parametrize(
    "scenario",
    [
        AttributeScenario("sex", prior=people(300, seed=9)[0], prior_as="support"),
        AttributeScenario("sex", prior=BoundedOdds(4.0)),
        BlocksScenario(AttributeScenario("sex", prior=BoundedOdds(4.0)), sizes=2),
        DependenceScenario(0.1),
    ],
)
def test_a_model_that_may_read_the_secret_is_not_scored(scenario):
    coded = TABLE.assign(sex=(TABLE.sex == "F") * 1.0)
    model = LogisticRegression().fit(coded[["a", "sex"]], coded.sex)
    accountant = OverlapAmplification(epsilon=0.1, delta=1e-5)
    with refused(UnsupportedError, "score.scenario_of_columns"):
        PrivateScore(model, scenario, accountant).fit(coded, coded.sex)


@pytest.mark.parametrize("cell", ["n/a", pd.NaT, 1j, 10**400, [1], "7"])
@pytest.mark.parametrize("model, y", [(LINE, NUMBERS), (BARE, Y)])
def test_one_odd_target_changes_no_other_record(model, y, cell):
    X, bounds = FEATURES.to_numpy(), (-12.0, 12.0)
    odd = y.astype(object)
    odd[5] = cell
    score = PrivateScore(model, accountant=EXACT, target_bounds=bounds)
    expected = score.fit(X, y).score_
    # by one record of 3,000
    assert score.fit(X, odd).score_ == pytest.approx(expected, abs=0.05)


def test_the_noise_is_what_is_stated():
    model = PrivateScore(MODEL, accountant=PrivacyLoss(1.0, 1e-5))
    table, y = FEATURES[:300], Y[:300]
    drawn = [model.fit(table, y).score_ for _ in range(250)]
    stated = model.to_frame(of="table")["std_error"].iloc[0]
    # five deviations, and less than 0.7 of the noise would miss
    assert np.std(drawn) == pytest.approx(stated, rel=0.22)
    # one right answer more is 1 / 300, and the noise of epsilon 1 is no less
    assert stated > 0.9 / 300
