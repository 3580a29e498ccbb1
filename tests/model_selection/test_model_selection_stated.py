"""What a search states, and where it refuses: in full, and before a fit as in one."""

import math
import warnings
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skpuffer._template._preview import UnreadRows
from skpuffer.accountants import (
    Best,
    GroupPrivacy,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.compose import PublicPreprocessing
from skpuffer.exceptions import (
    PrivacyLeakWarning,
    PrivacyWarning,
    SeededNoiseWarning,
    Statement,
    UnsupportedError,
)
from skpuffer.kernel.run import ON_GRID, noise_grid
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.model_selection import _base as searches
from skpuffer.model_selection._candidates import held_out_context, read_part
from skpuffer.naive_bayes import PrivateGaussianNB
from skpuffer.noise import DiscreteLaplaceNoise, GaussianNoise, LaplaceNoise
from skpuffer.privacy._written import SEEDED
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BlocksScenario,
    BoundedOdds,
    DeclaredOdds,
    RecordScenario,
)
from skpuffer.training import Training
from tests.refused import refused as is_refused
from tests.refused import says
from tests.refused import warned as is_warned

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (150, 2))
Y = (X[:, 0] > 0).astype(int)
GRID = {"C": [1.0, 10.0]}
MODEL = PrivateLogisticRegression()
DECLARED = PrivateLogisticRegression(classes=[0, 1])
RIDGE = PrivateRidge()

PARTS = Statement("assume.candidates_and_held_out_public")
ERRORS = Statement("assume.trial_errors_not_hidden")
LABELS = Statement("assume.class_labels_public")
UNTOLD = Statement("assume.number_of_trials_untold")
EACH = Statement("assume.every_candidate_fitted_once")


def drawn(law, mean):
    return Statement("assume.number_of_trials_drawn_secretly", law=law, mean=mean)


def search(model=MODEL, grid=GRID, **params):
    return PrivateGridSearchCV(model, grid, **params)


TABLE = pd.DataFrame(X, columns=["a", "b"]).assign(s=np.arange(150) % 2)


def believed(public, kind):
    """A scenario whose belief is read from public rows."""
    rest = BoundedOdds(2.0)
    if kind == "law":
        prior = BinnedLaw(public, {"a": [0.0], "b": [0.0]}, rest=rest)
    else:
        prior = DeclaredOdds(np.full(len(public), 0.4), public[["a", "b"]], rest=rest)
    return AttributeScenario("s", level="record", prior=prior)


def counted(scenario, validation_fraction=0.5, **params):
    model = PrivateGaussianNB(scenario=scenario, classes=[0, 1], bounds=(-0.5, 0.5))
    return search(
        model,
        {"priors": [None]},
        accountant=OverlapAmplification(1.0, delta=1e-5, if_belief_suffices="cap"),
        trials="each",
        validation_fraction=validation_fraction,
        **params,
    )


def previewed(made, n_records=150):
    declared = made.estimator in (DECLARED, RIDGE)
    told = {} if declared else {"classes": [0, 1]}
    return made.preview(n_records, n_features=2, **told)


# -- what a certificate rests on ------------------------------------------------------


@pytest.mark.parametrize(
    "model, params, said",
    [
        (MODEL, {}, [PARTS, ERRORS, LABELS, UNTOLD, drawn("geometric", 4)]),
        (DECLARED, {}, [PARTS, ERRORS, UNTOLD, drawn("geometric", 4)]),
        (MODEL, {"trials": "each"}, [PARTS, ERRORS, LABELS, EACH]),
        (DECLARED, {"trials": "each"}, [PARTS, ERRORS, EACH]),
        (
            DECLARED,
            {"trials": "poisson", "n_trials": 7.5},
            [PARTS, ERRORS, UNTOLD, drawn("poisson", 7.5)],
        ),
        (
            DECLARED,
            {"trials": "logarithmic", "n_trials": 3},
            [PARTS, ERRORS, UNTOLD, drawn("logarithmic", 3)],
        ),
        (
            DECLARED,
            {"trials": 2.5, "n_trials": 3},
            [
                PARTS,
                ERRORS,
                UNTOLD,
                drawn(Statement("assume.law_negative_binomial", shape=2.5), 3),
            ],
        ),
    ],
)
def test_all_that_a_search_rests_on_besides_its_trials_is_said(model, params, said):
    made = search(model, **params)
    stated = previewed(made).certificate.assumptions
    assert list(stated[-len(said) :]) == said
    # and all that one of its fits and its score rest on, of each part's own size
    for n in (120, 30):
        assert any(f"the number of records ({n})" in str(text) for text in stated)
    # of the score too how its digits are drawn
    assert stated.count(ON_GRID) == 1
    assert made.fit(X, Y).certificate_.assumptions == stated
    # neither is said that is not so
    assert (LABELS in stated) == (LABELS in said)
    assert SEEDED not in stated


def test_a_seed_is_said_of_a_search_and_of_its_preview():
    for trials in ("geometric", "each"):
        made = search(DECLARED, random_state=0, trials=trials)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            stated = previewed(made).certificate.assumptions
            assert stated.count(SEEDED) == 1
            assert made.fit(X, Y).certificate_.assumptions == stated


@pytest.mark.parametrize("n_jobs", [None, 1])
def test_trials_draw_of_the_systems_entropy_unless_there_is_a_seed(n_jobs):
    """Noise of a generator is in floating point, whatever is said of its digits."""
    run, given = searches.run_trials, []

    def noted(tryings, drawn, states, jobs):
        given.append((list(states), jobs))
        return run(tryings, drawn, states, jobs)

    with mock.patch.object(searches, "run_trials", noted):
        made = search(DECLARED, n_jobs=n_jobs).fit(X, Y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            search(DECLARED, random_state=0, trials="each").fit(X, Y)
    (states, jobs), (seeded, _) = given
    assert {*states} == {None} and jobs == n_jobs
    assert all(isinstance(state, np.random.Generator) for state in seeded)
    assert len({state.random() for state in seeded}) == len(seeded) == 2
    # and where it is not, sums of scores are on a public grid
    steps = made.best_score_ * 30 / noise_grid(made.noise_, 30, integer=True)
    assert steps == pytest.approx(np.round(steps), abs=1e-3)


@pytest.mark.parametrize(
    "accountant, noise, notion, epsilon, alpha, delta",
    [
        (None, GaussianNoise, "approximate_dp", 1.0, None, 1e-5),
        (PrivacyLoss(2.0, 1e-6), GaussianNoise, "approximate_dp", 2.0, None, 1e-6),
        (GroupPrivacy(9.0), GaussianNoise, "renyi_dp", 9.0, 2.0, 0.0),
        (
            GroupPrivacy(3.0, alpha=math.inf),
            DiscreteLaplaceNoise,
            "pure_dp",
            3.0,
            math.inf,
            0.0,
        ),
        (RenyiDP(1.0, None, alpha=3.0), GaussianNoise, "renyi_dp", 1.0, 3.0, 0.0),
    ],
)
def test_it_promises_what_its_accountant_was_asked_for(
    accountant, noise, notion, epsilon, alpha, delta
):
    preview = previewed(search(accountant=accountant, n_trials=2))
    assert type(preview.noise) is noise
    c = preview.certificate
    assert (c.notion, c.epsilon, c.alpha, c.delta) == (notion, epsilon, alpha, delta)
    assert c.accountant == repr(accountant or PrivacyLoss())
    assert c.noise_gain is None
    assert c.release.endswith(" | accuracy of 30 held-out records")


def test_a_noise_that_was_chosen_is_that_of_scores_too():
    accountant = GroupPrivacy(3.0, alpha=math.inf, noise=LaplaceNoise(1.0))
    assert type(previewed(search(accountant=accountant)).noise) is LaplaceNoise


def test_under_a_belief_it_promises_what_is_asked_of_it_by_default():
    race = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    made = search(PrivateLogisticRegression(scenario=race))
    c = made.preview(150, feature_names=["a", "b"], classes=[0, 1]).certificate
    assert (c.notion, c.epsilon, c.delta) == ("approximate_pufferfish", 1.0, 1e-5)
    assert c.accountant == "OverlapAmplification()"
    assert math.isfinite(c.fallback) and c.noise_gain >= 1


def test_whatever_is_believed_a_search_keeps_within_its_fallback():
    """Both the budget under the belief and that without it are of all of the search."""
    race = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    made = PrivateLogisticRegression(scenario=race)
    told = {"feature_names": ["a", "b"], "classes": [0, 1]}

    def certificate(**params):
        accountant = OverlapAmplification(1.0, delta=1e-5, **params)
        return search(made, accountant=accountant).preview(150, **told).certificate

    free, bound = certificate(), certificate(max_fallback=1.5)
    assert free.fallback > 1.5 and free.epsilon == 1.0
    assert 1.45 < bound.fallback <= 1.5 * (1 + 1e-6)
    assert bound.epsilon < 1.0


def test_steps_before_it_that_were_fitted_are_said_in_the_certificate():
    pipe = make_pipeline(StandardScaler(), search(DECLARED))
    with is_warned(
        PrivacyLeakWarning, "pipeline.unnoised_step_before", step="StandardScaler"
    ) as warned:
        pipe.fit(X, Y)
    certificate = pipe[-1].certificate_
    assert not certificate.certified and not certificate.composable
    assert "StandardScaler" in str(certificate.assumptions[-1])
    assert len([w for w in warned if w.category is PrivacyLeakWarning]) == 1
    # the model that it publishes promises no more
    assert pipe[-1].best_estimator_.certificate_ is certificate


# -- the side door: a preview is refused where a fit is -------------------------------


@pytest.mark.parametrize(
    "made, kind, match",
    [
        (search(accountant=1.0), TypeError, "'accountant'"),
        (search(accountant=Best()), UnsupportedError, "'accountant'"),
        (search(accountant=PrivacyLoss(-1.0)), ValueError, "'epsilon'"),
        (search(n_jobs=0), ValueError, "'n_jobs'"),
        (search(n_trials=1), ValueError, "'n_trials'"),
        (search(n_trials=1 + 1e-7), ValueError, "'n_trials'"),
        (search(n_trials=1_000_001), ValueError, "'n_trials'"),
        (search(trials="each", n_trials=2), ValueError, "'n_trials'"),
        (search(trials=-0.1), ValueError, "shape|trials"),
        (search(validation_fraction=0.0), ValueError, "'validation_fraction'"),
        (search(validation_fraction=1.0), ValueError, "'validation_fraction'"),
        (search(validation_fraction=0.003), ValueError, "'validation_fraction'"),
        (search(validation_fraction=0.997), ValueError, "'validation_fraction'"),
        (search(validation_fraction=math.nan), ValueError, "'?validation_fraction'?"),
        (search(validation_fraction=-0.5), ValueError, "'?validation_fraction'?"),
        (search(scoring="f1"), ValueError, "'scoring'"),
        (search(row_wise=["nowhere"]), ValueError, "'row_wise'"),
        (search(grid={"accountant__epsilon": [1.0]}), ValueError, "'accountant'"),
        (search(grid={"schema": [None]}), ValueError, "'schema' cannot be searched"),
        (search(LogisticRegression()), UnsupportedError, "private estimator"),
        (search(MODEL, grid={"C": []}), ValueError, "empty"),
        (
            search(PrivateLogisticRegression(accountant=PrivacyLoss())),
            ValueError,
            "accountant of its own",
        ),
        (
            search(PrivateLogisticRegression(random_state=0)),
            ValueError,
            "'random_state' of its own",
        ),
        (search(RIDGE, grid={}), ValueError, "target_bounds"),
        (
            search(make_pipeline(StandardScaler(), MODEL), grid={}),
            UnsupportedError,
            "standardscaler",
        ),
    ],
)
def test_a_preview_refuses_what_a_fit_does(made, kind, match):
    for attempt in (lambda: previewed(made), lambda: made.fit(X, Y)):
        with pytest.raises(kind, match=match):
            attempt()
    assert not hasattr(made, "certificate_")


class _Drifting(PrivateLogisticRegression):
    """Somebody's estimator whose fits take more steps than their plan."""

    def _release(self, task):
        release = super()._release(task)
        more = 0 if isinstance(task.X, UnreadRows) else 5
        return replace(release, n_steps=release.n_steps + more)


@pytest.mark.parametrize("trials", ["geometric", "each"])
def test_trials_of_other_fits_than_were_accounted_for_publish_nothing(trials):
    # noise is set anew for more steps, and of full batches the promise may be the same
    batches = Training(sampling="poisson", batch_size=50)
    made = search(
        _Drifting(classes=[0, 1], training=batches),
        {"training__n_steps": [3, 4]},
        trials=trials,
    )
    with is_refused(RuntimeError, "search.accounted_other_fits"):
        made.fit(X, Y)
    assert not hasattr(made, "certificate_")


def test_of_the_records_either_part_needs_one():
    made = search(DECLARED, validation_fraction=0.5, accountant=PrivacyLoss(9.0))
    for n_records in (0, -3, 2.5, "many", None):
        with is_refused(
            (ValueError, TypeError),
            ("parameter.count_too_small", "parameter.not_real_number"),
        ):
            previewed(made, n_records)
    with is_refused(ValueError, "search.validation_part_empty", held=0):
        previewed(made, 1)
    assert previewed(made, 2).certificate.n_records == 2


def test_before_a_fit_there_is_nothing_to_ask_for():
    made = search(DECLARED)
    for ask in (
        lambda: made.classes_,
        lambda: made.n_features_in_,
        lambda: made.feature_names_in_,
        lambda: made.predict(X),
        lambda: made.score(X, Y),
    ):
        with pytest.raises(NotFittedError):
            ask()
    # a model's scores and predictions, and no more of what it may do
    for name in ("transform", "partial_fit", "calibrate"):
        assert not hasattr(made, name)


def test_public_rows_that_are_the_private_ones_are_refused():
    """Of a fit it would be an estimate, from which nothing follows for a search."""
    model = PublicPreprocessing(StandardScaler(), DECLARED, reference=X)
    made = search(model, grid={"estimator__C": [1.0]})
    with is_refused(UnsupportedError, "search.estimator_leaks"):
        made.fit(X, Y)
    assert not hasattr(made, "certificate_")


@pytest.mark.parametrize("kind", ["law", "odds"])
def test_public_rows_of_a_belief_that_are_the_private_ones_are_refused(kind):
    """Also where either part of the table, by itself, may share rows by chance."""
    scenario = believed(TABLE, kind)
    with is_refused(UnsupportedError, "search.estimator_leaks"):
        counted(scenario).fit(TABLE, Y)
    # with other rows, or before there are any
    others = TABLE.assign(a=-TABLE["a"])
    found = counted(scenario).fit(others, Y).certificate_
    assert found.certified and found.notion == "approximate_pufferfish"


@pytest.mark.parametrize("name", ["a", "b", "t"])
def test_targets_that_are_named_as_a_column_hide_no_public_rows(name):
    """Which a column of the table by the same name is read beside."""
    targets = pd.Series(Y, name=name)
    made = counted(believed(TABLE, "odds"))
    with is_refused(UnsupportedError, "search.estimator_leaks"):
        made.fit(TABLE, targets)
    model = made.estimator.set_params(accountant=made.accountant)
    with pytest.warns(PrivacyWarning):
        assert not model.fit(TABLE, targets).certificate_.certified


def test_a_scenario_of_as_many_records_as_a_part_has_is_searched_under():
    blocks = BlocksScenario(RecordScenario(k=70), sizes=[70, 5])
    model = PrivateGaussianNB(scenario=blocks, classes=[0, 1], bounds=(-0.5, 0.5))
    made = search(model, {"priors": [None]}, accountant=PrivacyLoss(1.0, 1e-5))
    made.set_params(trials="each", validation_fraction=0.5)
    stated = made.preview(150, n_features=2).certificate
    assert made.fit(X, Y).certificate_.epsilon == stated.epsilon == 1.0


def test_rows_are_mapped_once_more_only_to_be_compared():
    """Only a scenario that has public rows compares the whole table."""
    seen = []

    def noted(rows):
        seen.append(len(rows))
        return rows

    def whole(scenario):
        made = counted(scenario, row_wise=["step"])
        steps = [("step", FunctionTransformer(noted)), ("model", made.estimator)]
        made.set_params(estimator=Pipeline(steps), param_grid={"model__priors": [None]})
        if scenario is None:
            made.set_params(accountant=PrivacyLoss(1.0, 1e-5))
        seen.clear()
        made.fit(TABLE[["a", "b"]], Y)
        return seen.count(len(TABLE))

    # no public row is a private one
    public = TABLE.assign(a=-TABLE["a"])
    assert whole(believed(public, "odds")) == whole(None) + 1


def test_public_rows_that_are_held_out_are_refused():
    """Whichever part of the table they are in."""
    errors = []
    for seed in range(6):
        made = counted(believed(TABLE[:60], "odds"), 2 / 150, random_state=seed)
        try:
            assert made.fit(TABLE, Y).certificate_.certified
        except UnsupportedError as error:
            errors.append(error)
    assert len(errors) == 6
    assert all(says(error, "prior.holds_private_records") for error in errors)


def test_no_row_is_there_to_be_looked_at_before_the_noise_is_known():
    """Whatever calibrates is told how many there are, and of their columns."""
    read = read_part(DECLARED, X, Y, None)
    for found, n in ((read.unread(), 150), (read.unread(7), 7)):
        assert type(found.table.X) is type(found.table.y) is UnreadRows
        assert found.table.n_given == n
        plan = found.plan(PrivacyLoss(0.5))
        assert plan.whole.n_records == n and plan.whole.epsilon == 0.5
        # of the other part there are as many as are said, and no groups of this one
        other = held_out_context(plan, 3)
        assert (other.n_records, other.groups) == (3, None)
        assert other.classes == plan.release.context.classes


def test_steps_that_do_nothing_stay_in_the_pipeline_and_do_nothing():
    pipe = Pipeline([("idle", "passthrough"), ("none", None), ("model", DECLARED)])
    found = search(pipe, grid={"model__C": [1.0, 10.0]}).fit(X, Y)
    assert [name for name, _ in found.best_estimator_.steps] == [
        "idle",
        "none",
        "model",
    ]
    np.testing.assert_array_equal(
        found.predict(X), found.best_estimator_[-1].predict(X)
    )
