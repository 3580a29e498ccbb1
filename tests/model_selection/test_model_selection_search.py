"""Searches: one budget for search and winner, one release, and nothing else kept."""

import json
import math
import pickle
import warnings
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

from skpuffer.accountants import (
    Best,
    GroupPrivacy,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.additive import PrivateAdditiveRegressor
from skpuffer.certificate import check
from skpuffer.cluster import PrivateKMeans
from skpuffer.compose import (
    OutputPerturbation,
    PublicPreprocessing,
    audit_pipeline,
)
from skpuffer.decomposition import PrivatePCA
from skpuffer.exceptions import (
    BudgetExceededError,
    CompositionError,
    PrivacyLeakWarning,
    PrivacyWarning,
    SeededNoiseWarning,
    Statement,
    UnsupportedError,
    WeakPromiseWarning,
)
from skpuffer.kernel.run import ON_GRID, SUMS_ON_GRID
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import (
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.model_selection import PrivateGridSearchCV, PrivateRandomizedSearchCV
from skpuffer.model_selection import _base as searches
from skpuffer.privacy_loss import BestRunCurve
from skpuffer.privacy_loss._overlap import OverlapCurve
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedOdds,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.schema import Schema
from skpuffer.summary import PrivateMean, PrivateStandardScaler
from skpuffer.training import Training
from tests.refused import refused, says, warned

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :6] / np.abs(X[:, :6]).max(axis=0)
FRAME = pd.DataFrame(X, columns=list("abcdef"))
GRID = {"C": [0.1, 1.0, 10.0]}
RACE = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))


def search(grid=GRID, model=None, **params):
    model = PrivateLogisticRegression(data_norm=2.0) if model is None else model
    return PrivateGridSearchCV(model, grid, **params)


# -- what is promised ------------------------------------------------------------------


def test_search_and_winner_keep_one_budget():
    found = search(accountant=PrivacyLoss(2.0, 1e-6)).fit(X, y)
    certificate = found.certificate_
    assert (certificate.notion, certificate.epsilon) == ("approximate_dp", 2.0)
    assert certificate.delta == 1e-6
    curve = certificate.curve
    assert isinstance(curve, BestRunCurve)
    assert (curve.runs.mean, curve.runs.shape) == (6.0, 1.0)
    # spent to a part in five hundred, and not beyond
    assert 2.0 * (1 - 2.1e-3) < curve.epsilon(1e-6) <= 2.0
    assert certificate.n_records == len(X)
    assert certificate.n_releases == 1
    assert found.accountant_.epsilon == 2.0
    # the model promises no less than the search that chose it
    assert found.best_estimator_.certificate_ is certificate
    assert says(certificate.assumptions, "assume.number_of_trials_untold")
    assert certificate.choice.code == "search.compared_best_of_trials"
    assert certificate.choice.parameters["n_trials"] == 3
    # how digits are drawn is said of the sums of a fit, and of the score
    for said in (ON_GRID, SUMS_ON_GRID):
        assert said in certificate.assumptions


@pytest.mark.parametrize(
    "accountant, notion",
    [
        (RenyiDP(1.0), "approximate_dp"),
        (RenyiDP(1.0, None, alpha=6.0), "renyi_dp"),
        (PrivacyLoss(1.0, noise="laplace"), "approximate_dp"),
    ],
)
def test_accountants_of_any_neighbouring_tables_will_do(accountant, notion):
    found = search(accountant=accountant).fit(X, y)
    assert found.certificate_.notion == notion
    assert found.certificate_.epsilon == 1.0
    assert found.best_estimator_.accountant_.epsilon < 1.0
    # of the fit alone, of which the curve is not made
    assert found.certificate_.events is None


def test_a_pure_promise():
    model = PrivateRidge(data_norm=0.2, target_bounds=(25, 346))
    accountant = GroupPrivacy(9.0, alpha=math.inf)
    found = search({"alpha": [1.0, 10.0]}, model, accountant=accountant)
    found.fit(*load_diabetes(return_X_y=True))
    assert (found.certificate_.notion, found.certificate_.epsilon) == ("pure_dp", 9.0)
    # of a geometric number a trial keeps at least a third
    assert 3.0 < found.best_estimator_.accountant_.epsilon < 9.0


def test_two_records_cost_fit_and_score():
    one = search(model=PrivateLogisticRegression(scenario=RecordScenario(k=1)))
    two = search(
        model=PrivateLogisticRegression(
            scenario=RecordScenario(k=2, relation="replace")
        )
    )
    one, two = (
        one.preview(569, n_features=6, classes=[0, 1]),
        two.preview(569, n_features=6, classes=[0, 1]),
    )
    assert two.noise.scale > 2.5 * one.noise.scale
    assert two.certificate.coupling_id == "replace:2"


def test_a_belief_amplifies_the_search_last():
    model = PrivateLogisticRegression(data_norm=2.0, scenario=RACE)
    found = search(model=model, accountant=OverlapAmplification(0.4)).fit(FRAME, y)
    certificate = found.certificate_
    assert certificate.notion == "approximate_pufferfish"
    assert certificate.epsilon == 0.4
    assert isinstance(certificate.curve, OverlapCurve)
    assert isinstance(certificate.curve.curve, BestRunCurve)
    assert not isinstance(certificate.curve.curve.curve, OverlapCurve)
    assert certificate.fallback > 0.8
    # and asks for less noise than differential privacy with the same numbers
    anyone = PrivateLogisticRegression(
        data_norm=2.0, scenario=RecordScenario(relation="replace")
    )
    plain = search(model=anyone, accountant=PrivacyLoss(0.4)).fit(X, y)
    needed = plain.noise_.scale / found.noise_.scale
    # which is what the certificate says, and no more than that
    assert 2 < 0.99 * needed < certificate.gain <= needed
    assert f"{certificate.gain:.3g} times less noise" in certificate.details()
    # the default where there is a belief
    assert type(search(model=model).fit(FRAME, y).accountant_) is OverlapAmplification


def test_a_belief_that_is_enough_is_refused_or_capped():
    near = AttributeScenario("race", level="record", prior=BoundedOdds(1.2))
    model = PrivateLogisticRegression(data_norm=2.0, scenario=near)
    # of a budget other than one, in whose units a fallback is none
    accountant = OverlapAmplification(0.8, max_fallback=3.0)
    with refused(UnsupportedError, "overlap.belief_alone_within_budget"):
        search(model=model, accountant=accountant).fit(FRAME, y)
    accountant = clone(accountant).set_params(if_belief_suffices="cap")
    found = search(model=model, accountant=accountant).fit(FRAME, y)
    # whatever is believed of the record, of the whole search
    assert 2.9 < found.certificate_.fallback <= 3.0


@pytest.mark.parametrize("trials", ["logarithmic", "geometric", "poisson", 3.0, 0.2])
def test_more_certain_numbers_of_trials_take_more_noise(trials):
    found = search(trials=trials, n_trials=12).preview(
        569, n_features=6, classes=[0, 1]
    )
    shape = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}
    assert found.certificate.curve.runs.shape == shape.get(trials, trials)
    assert found.certificate.curve.runs.mean == 12.0


def test_noise_by_budget_and_by_number_of_trials():
    def scale(**params):
        preview = search(**params).preview(569, n_features=6, classes=[0, 1])
        return preview.noise.scale

    assert scale(accountant=PrivacyLoss(2.0)) < scale() < scale(n_trials=50)
    assert scale(trials="logarithmic") < scale() < scale(trials="poisson")
    # hardly more than one trial: what a fit by itself takes, of the same family
    lone = scale(n_trials=1.0001)
    one = PrivacyLoss(noise="gaussian")
    plain = PrivateLogisticRegression(accountant=one).preview(
        569, n_features=6, classes=[0, 1]
    )
    assert lone == pytest.approx(_gaussian_scale(plain.certificate), rel=5e-3)


def _gaussian_scale(certificate):
    return 1 / certificate.curve.gaussian_mu


def test_a_preview_promises_what_a_fit_does():
    made = search(trials="poisson", accountant=PrivacyLoss(3.0))
    preview = made.preview(len(X), n_features=6, classes=[0, 1])
    found = made.fit(X, y)
    assert preview.certificate == found.certificate_
    assert preview.noise == found.noise_
    assert preview.std["best_score_"] == found.best_score_std_
    assert preview.estimator == "PrivateGridSearchCV"
    assert "nothing has been spent" in str(preview)


# -- what is released ------------------------------------------------------------------


def test_the_winner_is_the_model_that_was_scored():
    # each of which is good: one run of a search may be its only one
    found = search({"C": [10.0, 30.0]}, accountant=PrivacyLoss(8.0)).fit(X, y)
    assert found.best_params_ in found.candidates_
    assert found.candidates_[found.best_index_] == found.best_params_
    assert found.best_params_ == {"C": found.best_estimator_.C}
    np.testing.assert_array_equal(found.predict(X), found.best_estimator_.predict(X))
    np.testing.assert_array_equal(
        found.predict_proba(X), found.best_estimator_.predict_proba(X)
    )
    assert found.decision_function(X).shape == (len(X),)
    assert found.score(X, y) > 0.8
    # the scores of a search are of the fifth of the records that it held out
    assert abs(found.best_score_ - found.score(X, y)) < 0.15
    assert found.n_features_in_ == 6
    np.testing.assert_array_equal(found.classes_, [0, 1])
    assert not hasattr(found, "transform")


def test_nothing_tells_how_many_trials_there_were():
    found = search().fit(X, y)
    assert {name for name in vars(found) if name.endswith("_")} == {
        "accountant_",
        "best_estimator_",
        "best_index_",
        "best_params_",
        "best_score_",
        "best_score_std_",
        "candidates_",
        "certificate_",
        "noise_",
    }
    # to the last byte what is kept is as long after one trial as after many
    sizes = set()
    for n_trials in (1, 17):
        with mock.patch.object(searches.RandomRuns, "draw", return_value=n_trials):
            sizes.add(len(pickle.dumps(search({"C": [1.0]}).fit(X, y))))
    assert len(sizes) == 1


def test_the_score_has_the_noise_that_is_certified(n_trials):
    """One candidate and one trial: the score less what the model truly scores."""
    n = n_trials(50, least=50)
    errors, stds = [], []
    for _ in range(n):
        made = search({"C": [1.0]}, accountant=PrivacyLoss(1.0))
        held = {}
        with (
            mock.patch.object(searches.RandomRuns, "draw", return_value=1),
            mock.patch.object(
                searches, "run_trials", _remembering(searches.run_trials, held)
            ),
        ):
            made.fit(X, y)
        trying = held["tryings"][0]
        exact = trying.score.total(made.best_estimator_, trying.X_score, trying.y_score)
        errors.append(made.best_score_ * len(trying.y_score) - exact[0])
        stds.append(made.best_score_std_ * len(trying.y_score))
    ratio = np.std(errors) / stds[0]
    assert abs(ratio - 1) < 4 / math.sqrt(2 * n)
    assert set(stds) == {stds[0]}


def _remembering(function, held):
    def called(tryings, *args):
        held["tryings"] = tryings
        return function(tryings, *args)

    return called


def test_trials_are_drawn_uniformly_and_the_highest_score_wins():
    counts = np.zeros(3)
    held = {}
    with mock.patch.object(searches, "best_outcome", lambda found: _noted(found, held)):
        for seed in range(10):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SeededNoiseWarning)
                made = search(n_trials=20, random_state=seed).fit(X, y)
            outcomes = held["outcomes"]
            assert made.best_score_ * 114 == pytest.approx(
                max(one.score for one in outcomes)
            )
            for one in outcomes:
                counts[one.candidate] += 1
    total = counts.sum()
    assert 80 < total < 450
    np.testing.assert_allclose(counts / total, 1 / 3, atol=5 / math.sqrt(total))


def truncated(rate):
    """Poisson numbers, given that they are not zero."""
    return lambda k: stats.poisson(rate).cdf(k) - stats.poisson(rate).pmf(0)


#: Distributions of the number of trials, of mean five.
NUMBERS = {
    "geometric": stats.geom(1 / 5).cdf,
    "logarithmic": stats.logser(0.9305).cdf,
    "poisson": lambda k: truncated(4.9651)(k) / -math.expm1(-4.9651),
}


@pytest.mark.parametrize("trials", NUMBERS)
def test_the_number_of_trials_has_the_distribution_it_is_accounted_for_with(trials):
    counts, draws = [], 500
    outcomes = searches.BasePrivateSearch._outcomes

    def watched(own, table, plan, runs, rng, seeded):
        with mock.patch.object(searches, "run_trials", noted):
            rng = np.random.default_rng(0)
            for _ in range(draws):
                outcomes(own, table, plan, runs, rng, seeded)
        return outcomes(own, table, plan, runs, rng, seeded)

    def noted(tryings, drawn, states, n_jobs):
        counts.append(len(drawn))
        return []

    with mock.patch.object(searches.BasePrivateSearch, "_outcomes", watched):
        search({"C": [1.0]}, n_trials=5, trials=trials).fit(X, y)
    assert len(counts) == draws
    expected = NUMBERS[trials](np.arange(1, 30))
    found = np.mean(np.array(counts)[:, None] <= np.arange(1, 30), axis=0)
    # of Kolmogorov's distance, at a chance of one in a thousand
    assert np.abs(found - expected).max() < 1.95 / math.sqrt(draws)


def _noted(outcomes, held):
    held["outcomes"] = outcomes
    return searches_best(outcomes)


searches_best = searches.best_outcome


def test_ties_are_broken_by_coins_and_not_by_position():
    outcomes = [
        searches.Outcome(candidate=i, score=5.0, coin=coin)
        for i, coin in enumerate([0.2, 0.9, 0.4])
    ]
    assert searches_best(outcomes).candidate == 1
    assert searches_best(outcomes[::-1]).candidate == 1


def test_a_good_candidate_is_found():
    bad_and_good = {"C": [1e-6, 10.0]}
    params = {"accountant": PrivacyLoss(8.0), "n_trials": 12, "trials": "poisson"}
    won = [search(bad_and_good, **params).fit(X, y).best_params_["C"] for _ in range(4)]
    assert won.count(10.0) >= 3


def test_seeds_are_repeated_and_said():
    with pytest.warns(SeededNoiseWarning):
        one = search(random_state=3).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        other = search(random_state=3).fit(X, y)
    assert one.best_score_ == other.best_score_
    np.testing.assert_array_equal(
        one.best_estimator_.coef_, other.best_estimator_.coef_
    )
    seeded = Statement("assume.noise_from_seed")
    assert one.certificate_.assumptions.count(seeded) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "from a seed" not in str(search().fit(X, y).certificate_)


# -- where candidates come from --------------------------------------------------------


def test_a_randomised_search_draws_its_candidates_first():
    model = PrivateRidge(data_norm=0.2, target_bounds=(25, 346))
    made = PrivateRandomizedSearchCV(
        model, {"alpha": loguniform(1e-2, 1e2)}, n_iter=4, accountant=PrivacyLoss(5.0)
    )
    table = load_diabetes(return_X_y=True)
    one = made.fit(*table).candidates_
    assert len({c["alpha"] for c in one}) == 4
    assert made.certificate_.curve.runs.mean == 4.0
    assert one != made.fit(*table).candidates_
    # whatever NumPy's own generator is at
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        made.set_params(random_state=0)
        assert made.fit(*table).candidates_ == made.fit(*table).candidates_
        # the table has no part in it
        other = clone(made).fit(table[0][::2], table[1][::2]).candidates_
    assert other == made.candidates_


def test_lists_of_grids_and_nested_parameters():
    pipe = make_pipeline(
        PolynomialFeatures(include_bias=False), PrivateLogisticRegression()
    )
    grid = [
        {"polynomialfeatures__degree": [1]},
        {"polynomialfeatures__degree": [2], "privatelogisticregression__C": [1, 10]},
    ]
    found = search(grid, pipe).fit(FRAME[["a", "b"]], y)
    assert len(found.candidates_) == 3
    assert found.best_estimator_.predict(FRAME[["a", "b"]]).shape == (len(X),)
    assert found.best_estimator_[-1].certificate_ is found.certificate_
    assert found.score(FRAME[["a", "b"]], y) > 0.5
    preview = search(grid, pipe).preview(569, feature_names=["a", "b"], classes=[0, 1])
    assert preview.certificate == found.certificate_


def test_public_preprocessing_stays_around_the_model():
    model = PublicPreprocessing(
        StandardScaler(), PrivateLogisticRegression(data_norm=3.0), reference=X[:80]
    )
    made = search({"estimator__C": [1.0, 10.0]}, model, accountant=PrivacyLoss(4.0))
    found = made.fit(X[80:], y[80:])
    assert found.score(X[80:], y[80:]) > 0.75
    assert found.best_estimator_.estimator_.certificate_ is found.certificate_
    assert "fitted on a reference table" in found.certificate_.details()


def test_a_code_book_and_texts():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.integers(20, 80, 300), "town": rng.choice(["A", "B"], 300)}
    )
    label = np.where((table.age > 50) ^ (rng.random(300) < 0.1), "old", "young")
    table.loc[0, "town"] = None
    schema = Schema(
        {"age": (17, 90), "town": ["A", "B"], "who": ["old", "young"]}, target="who"
    )
    model = PrivateLogisticRegression(schema=schema)
    found = search({"C": [1.0, 100.0]}, model, accountant=PrivacyLoss(8.0))
    found.fit(table, label)
    assert found.score(table, label) > 0.6
    assert "were taken" not in found.certificate_.details()
    assert not any(
        "found in the target" in str(a) for a in found.certificate_.assumptions
    )


def test_a_class_that_one_part_lacks_is_a_class_all_the_same():
    rare = y.copy()
    rare[:2] = 2
    found = search({"C": [1.0]}).fit(X, rare)
    np.testing.assert_array_equal(found.classes_, [0, 1, 2])
    assert says(found.certificate_.assumptions, "assume.class_labels_public")


def test_polars_and_pandas_give_names():
    polars = pytest.importorskip("polars")
    found = search().fit(polars.DataFrame(FRAME.to_dict("list")), y)
    assert list(found.feature_names_in_) == list("abcdef")


@pytest.mark.parametrize(
    "model",
    [
        PrivateRidge(data_norm=0.2, target_bounds=(25, 346)),
        PrivateHuberRegressor(data_norm=0.2, target_bounds=(25, 346)),
        PrivateSGDRegressor(data_norm=0.2, target_bounds=(25, 346), max_iter=2),
        PrivateAdditiveRegressor(
            schema=Schema(
                {f"c{i}": (-0.2, 0.2) for i in range(10)} | {"y": (25, 346)}, target="y"
            ),
            n_rounds=2,
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scores_of_regressors_are_in_the_units_of_the_target(model):
    """Some read their targets in other units, in which no prediction is."""
    data, target = load_diabetes(return_X_y=True)
    table = pd.DataFrame(data, columns=[f"c{i}" for i in range(10)])
    made = PrivateGridSearchCV(
        model,
        {},
        accountant=PrivacyLoss(9.0),
        n_trials=1.1,
        scoring="neg_mean_absolute_error",
    ).fit(table, target)
    error = np.mean(np.abs(np.clip(made.predict(table), 25, 346) - target))
    # of a fifth of 442 records
    assert abs(-made.best_score_ - error) < 25


# -- ledgers and other listeners -------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_ledger_hears_of_one_release(n_jobs):
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (2.0, 1e-5)})
    made = search(n_jobs=n_jobs, n_trials=4)
    with ledger:
        made.fit(X, y)
    made.set_callbacks(ledger)
    made.fit(X, y)
    report = ledger.report()
    assert len(report) == 2
    assert ledger.total().n_releases == 2
    assert ledger.total().epsilon < 2.0
    with ledger, pytest.raises(BudgetExceededError):
        search(accountant=PrivacyLoss(3.0)).fit(X, y)
    assert len(ledger.report()) == 2


def test_a_refused_search_draws_nothing():
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (0.5, 1e-5)})
    made = search()
    with (
        mock.patch.object(searches, "run_trials") as ran,
        ledger,
        pytest.raises(BudgetExceededError),
    ):
        made.fit(X, y)
    assert not ran.called
    assert not hasattr(made, "certificate_")


def test_it_adds_up_with_other_releases():
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (3.0, 1e-5)})
    with ledger:
        search().fit(X, y)
        PrivateMean(bounds=(0, 1), accountant=PrivacyLoss(noise="gaussian")).fit(X)
    assert 1.0 < ledger.total().epsilon < 2.0


def test_steps_fitted_before_it_make_it_an_estimate():
    pipe = make_pipeline(StandardScaler(), search({"C": [1.0]}))
    with warned(
        PrivacyLeakWarning, "pipeline.unnoised_step_before", step="StandardScaler"
    ):
        pipe.fit(X, y)
    assert not pipe[-1].certificate_.certified
    assert not audit_pipeline(pipe).is_private
    assert audit_pipeline(search()).is_private


def test_trials_say_nothing(capsys):
    class Loud(PrivateLogisticRegression):
        def _publish(self, value, release):
            super()._publish(value, release)
            print("fitted")
            warnings.warn("fitted", PrivacyWarning, stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search({"C": [1.0]}, Loud()).fit(X, y)
    assert capsys.readouterr().out == ""


def test_weak_promises_are_said_once():
    with pytest.warns(WeakPromiseWarning) as said:
        search(accountant=PrivacyLoss(20.0)).fit(X, y)
    assert len(said) == 1


# -- errors ----------------------------------------------------------------------------


class Fails(PrivateLogisticRegression):
    """Of some parameter it cannot be fitted, whatever the rows."""

    def _execute(self, task, release, noise, rng):
        if self.C < 1:
            raise ValueError("the secret number is 42")
        return super()._execute(task, release, noise, rng)


def test_an_error_in_a_trial_counts_as_the_lowest_score():
    found = search({"C": [0.1, 10.0]}, Fails(), n_trials=40, trials="poisson")
    for _ in range(2):
        assert found.fit(X, y).best_params_ == {"C": 10.0}


def test_where_every_trial_fails_nothing_is_quoted():
    made = search({"C": [0.1]}, Fails())
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (2.0, 1e-5)})
    with ledger, refused(ValueError, "search.no_trial_succeeded") as raised:
        made.fit(X, y)
    assert "42" not in str(raised.value)
    assert raised.value.__context__ is None
    assert len(ledger.report()) == 1
    assert not hasattr(made, "certificate_")


def test_bad_rows_are_refused_before_anything_is_spent():
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (2.0, 1e-5)})
    for at in (0, 1, 2, 3):
        broken = X.copy()
        broken[at, 1] = np.nan
        with ledger, refused(ValueError, "table.not_finite"):
            search({"C": [1.0]}).fit(broken, y)
    assert len(ledger.report()) == 0


def test_another_release_than_was_accounted_for_is_not_published():
    class Drifts(PrivateLogisticRegression):
        def _execute(self, task, release, noise, rng):
            self.drifted = True
            return super()._execute(task, release, noise, rng)

        def _publish(self, value, release):
            super()._publish(value, release)
            wider = replace(self.certificate_, curve=None)
            self.certificate_ = wider

    with refused(RuntimeError, "search.accounted_other_fits"):
        search({"C": [1.0]}, Drifts()).fit(X, y)


class Centre(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


LOGISTIC = PrivateLogisticRegression()


@pytest.mark.parametrize(
    "made, match",
    [
        (search({"accountant__epsilon": [1, 2]}), "accountant__epsilon"),
        (search({"accountant": [PrivacyLoss()]}), "'accountant' cannot be searched"),
        (search({"scenario": [RecordScenario()]}), "one scenario"),
        (search({"random_state": [0, 1]}), "random_state"),
        (search({"classes": [[0, 1]]}), "classes"),
        (search({"nonsense": [1]}), "nonsense"),
        (search({"C": []}), "empty|non-empty"),
        (search([]), "empty"),
        (search(scoring="f1"), "'accuracy' or"),
        (search(n_trials=1), "n_trials"),
        (search(n_trials=1e7), "n_trials"),
        (search(trials=1e4), "trials"),
        (search(trials="fixed"), "trials"),
        (search(trials=-1.0), "trials"),
        (search(validation_fraction=0.0), "validation_fraction"),
        (search(validation_fraction=1e-9), "validation_fraction"),
        (search(row_wise=["nowhere"], grid={"C": [1.0]}), "row_wise"),
        (search(model=LogisticRegression()), "private estimator"),
        (search(model=PrivateMean(bounds=(0, 1)), grid={}), "neither a classifier"),
        (search(model=make_pipeline(StandardScaler(), LOGISTIC), grid={}), "standards"),
        (search(model=make_pipeline(Centre(), LOGISTIC), grid={}), "centre"),
        (search({}, search()), "private estimator of skpuffer"),
        (search(model=GridSearchCV(LOGISTIC, GRID), grid={}), "chooses by scores"),
        (
            search(model=PrivateLogisticRegression(accountant=PrivacyLoss())),
            "accountant of its own",
        ),
        (
            search(model=PrivateLogisticRegression(random_state=0)),
            "'random_state' of its own",
        ),
        (
            search({}, PrivateSGDClassifier(training=Training(warm_start=True))),
            "'warm_start' or 'init'",
        ),
        (
            search({}, PrivateSGDClassifier(training=Training(init=LOGISTIC))),
            "'warm_start' or 'init'",
        ),
        (search(model=PrivateRidge(), grid={}), "target_bounds"),
    ],
)
def test_what_is_refused_names_the_parameter(made, match):
    with pytest.raises(ValueError, match=match):
        made.fit(X, y)
    assert not hasattr(made, "certificate_")


@pytest.mark.parametrize(
    "model, accountant, code",
    [
        (LOGISTIC, Best(), "search.accountant_unsupported"),
        (
            PrivateLogisticRegression(
                scenario=AttributeScenario("f", level="record", prior="empirical")
            ),
            OverlapAmplification(),
            "preview.prior_empirical",
        ),
    ],
)
def test_what_no_promise_follows_from_is_refused(model, accountant, code):
    made = search(model=model, accountant=accountant)
    with refused(ValueError, code):
        made.fit(FRAME, y)


def test_parts_of_a_chain_are_no_chains():
    chain = MarkovChainScenario([[0.9, 0.1]] * 2, states=[[0.0, 0.0], [1.0, 1.0]])
    model = PrivateLogisticRegression(scenario=chain)
    made = search(model=model, accountant=PrivacyLoss())
    with refused(CompositionError, "compose.best_run_table_coupling"):
        made.preview(500, n_features=2, classes=[0, 1])


def test_subclasses_of_accountants_are_not_known():
    class Mine(PrivacyLoss):
        pass

    with refused(UnsupportedError, "search.accountant_unsupported"):
        search(accountant=Mine()).fit(X, y)


def test_declared_steps_are_row_wise():
    step = FunctionTransformer(np.sqrt)
    pipe = make_pipeline(step, LOGISTIC)
    with refused(UnsupportedError, "search.estimator_not_one_private"):
        search({}, pipe).fit(X, y)
    found = search({}, pipe, row_wise=["functiontransformer"]).fit(X, y)
    assert found.predict(X).shape == (len(X),)


class Learning(PolynomialFeatures):
    """A subclass of what is known to learn the number of columns alone."""

    def fit(self, X, y=None):
        self.mean_ = np.mean(X, axis=0)
        return self


class NoFit(TransformerMixin, BaseEstimator):
    """Says that it needs no fit, and keeps what it is given."""

    def fit(self, X, y=None):
        self.mean_ = np.mean(X, axis=0)
        return self

    def transform(self, X):
        return X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class Centring(NoFit):
    """Lets each record change the others."""

    def transform(self, X):
        return X - np.mean(X, axis=0)


@pytest.mark.parametrize(
    "step, kind, code",
    [
        (Learning(), UnsupportedError, "search.estimator_not_one_private"),
        (Centring(), ValueError, "preprocessing.mixes_records"),
        (
            FrozenEstimator(PrivateStandardScaler(bounds=(0, 1)).fit(X)),
            UnsupportedError,
            "search.estimator_steps_not_public",
        ),
        (
            ColumnTransformer([("all", Normalizer(), lambda X: [0])]),
            UnsupportedError,
            "search.estimator_not_one_private",
        ),
        (
            Pipeline([("one", Normalizer())], memory="somewhere"),
            UnsupportedError,
            "search.estimator_steps_not_public",
        ),
    ],
)
def test_steps_that_would_leak_are_refused(step, kind, code):
    with refused(kind, code):
        search({}, make_pipeline(step, LOGISTIC)).fit(X, y)


def test_foreign_steps_that_need_no_fit_get_no_rows():
    rest = ColumnTransformer([("one", Normalizer(), [0])], remainder=NoFit())
    for step in (NoFit(), rest):
        found = search({}, make_pipeline(step, LOGISTIC)).fit(X, y)
        assert b"mean_" not in pickle.dumps(found.best_estimator_[:-1])


@pytest.mark.parametrize("name", ["sample_weight", "groups", "secret"])
def test_fit_takes_a_table_and_a_target(name):
    with pytest.raises(TypeError, match=name):
        search().fit(X, y, **{name: np.ones(len(X))})


def test_a_budget_that_is_none_is_refused_before_any_row():
    with refused(ValueError, "parameter.not_positive", name="epsilon"):
        search(accountant=PrivacyLoss(-1.0)).fit("no table", y)


def test_of_several_targets_a_record_has_no_one_number():
    model = OutputPerturbation(Ridge(), "coef_", sensitivity=1.0)
    with refused(ValueError, "search.target_not_one_column"):
        search({}, model).fit(X, np.column_stack([y, 1 - y]))


def test_no_target():
    with pytest.raises(ValueError, match="requires y"):
        search().fit(X)
    with pytest.raises(NotFittedError):
        search().predict(X)


def test_parameters_are_cloned_and_listed():
    made = search(accountant=PrivacyLoss(3.0), n_trials=5)
    assert made.get_params()["estimator__data_norm"] == 2.0
    again = clone(made).set_params(estimator__data_norm=1.0, accountant__epsilon=1.0)
    assert made.accountant.epsilon == 3.0 and again.accountant.epsilon == 1.0
    found = made.fit(X, y)
    assert json.loads(json.dumps(found.certificate_.to_dict()))["n_releases"] == 1
    assert pickle.loads(pickle.dumps(found)).best_score_ == found.best_score_


# -- every candidate once --------------------------------------------------------------


def test_a_plain_search_is_composed_and_tells_all_scores():
    found = search(trials="each", accountant=PrivacyLoss(2.0)).fit(X, y)
    certificate = found.certificate_
    assert (certificate.epsilon, certificate.n_releases) == (2.0, 1)
    # three fits, or three scores: a record is in one of the parts
    assert certificate.curve.gaussian_mu == pytest.approx(
        math.sqrt(3) / float(found.noise_.scale), rel=1e-6
    )
    assert found.scores_.shape == (3,)
    assert found.scores_.argmax() == found.best_index_
    assert found.best_score_ == found.scores_.max()
    said = " ".join(map(str, certificate.assumptions))
    assert "nobody learns" not in said
    assert "every candidate is fitted once" in said
    assert certificate.choice.code == "search.compared_every_candidate_once"
    assert certificate.choice.parameters["n_trials"] == 3
    preview = search(trials="each", accountant=PrivacyLoss(2.0)).preview(
        len(X), n_features=6, classes=[0, 1]
    )
    assert preview.certificate == certificate


def test_of_many_candidates_a_plain_search_takes_more_noise():
    def scale(n, trials):
        grid = {"C": np.geomspace(0.01, 100, n).tolist()}
        made = search(grid, trials=trials)
        return made.preview(500, n_features=6, classes=[0, 1]).noise.scale

    # two for each on average, which nearly always tries both
    assert scale(2, "each") < scale(2, "poisson")
    assert scale(12, "each") > scale(12, "geometric")
    # as the composition of Gaussian releases has it
    assert scale(12, "each") == pytest.approx(scale(3, "each") * 2, rel=2e-3)


def test_a_plain_search_under_a_belief_and_with_errors():
    model = PrivateLogisticRegression(data_norm=2.0, scenario=RACE)
    found = search(model=model, accountant=OverlapAmplification(0.4), trials="each")
    certificate = found.fit(FRAME, y).certificate_
    assert certificate.notion == "approximate_pufferfish"
    assert isinstance(certificate.curve, OverlapCurve)
    # the gain is no more than what the plain curve needs
    assert certificate.gain > 2
    # and the epsilon asked for is stated, of which a little was left
    assert not check(certificate).of("does not follow")
    made = search({"C": [0.1, 10.0]}, Fails(), trials="each").fit(X, y)
    assert np.isnan(made.scores_[0]) and made.best_params_ == {"C": 10.0}
    assert not hasattr(search().fit(X, y), "scores_")


def test_a_plain_search_has_no_number_of_trials():
    with refused(ValueError, "search.n_trials_with_each"):
        search(trials="each", n_trials=5).fit(X, y)


@pytest.mark.parametrize(
    "search", [PrivateGridSearchCV, partial(PrivateRandomizedSearchCV, n_iter=2)]
)
@pytest.mark.parametrize("with_target", [False, True])
@pytest.mark.parametrize(
    "estimator, grid",
    [
        (PrivateKMeans(bounds=(0, 1)), {"n_clusters": [2, 3]}),
        (PrivatePCA(bounds=(0, 1)), {"n_components": [1, 2]}),
        (PrivateStandardScaler(bounds=(0, 1)), {"with_std": [True, False]}),
        (PrivateMean(bounds=(0, 1)), {"clip": [True, False]}),
    ],
    ids=str,
)
def test_what_has_no_target_has_no_score_to_choose_by(
    search, estimator, grid, with_target
):
    X = np.random.default_rng(0).random((60, 2))
    y = (X[:, 0] > 0.5) * 1 if with_target else None
    with refused(ValueError, "search.estimator_has_no_score"):
        search(estimator, grid, accountant=PrivacyLoss(5.0)).fit(X, y)
