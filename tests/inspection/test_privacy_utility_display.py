"""The display of score against budget: what it computes, and what it draws."""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, scale

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.exceptions import SeededNoiseWarning, UnsupportedError
from skpuffer.inspection import PrivacyUtilityDisplay
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import AttributeScenario
from skpuffer.summary import PrivateSummary
from tests.refused import refused, warned

EPSILONS = [0.5, 2.0, 8.0]
RENYI = "Budget ε: Rényi differential privacy, order α = 4"


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    X, y = load_breast_cancer(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(y))[:150]
    return scale(X)[chosen, :6], y[chosen]


def model(**params):
    accountant = GroupPrivacy(epsilon=1.0, alpha=4, noise="gaussian")
    return PrivateLogisticRegression(accountant=accountant, data_norm=4.0, **params)


def made(**params):
    """A display with known means and deviations."""
    params = {"ceiling": [0.8, 1.0], **params}
    scores = [[0.4, 0.6], [0.5, 0.7], [0.6, 0.9]]
    return PrivacyUtilityDisplay(epsilons=[0.1, 1.0, 10.0], scores=scores, **params)


# -- what is computed -----------------------------------------------------------------


def test_scores_are_those_of_cross_validation(data):
    X, y = data
    cv = StratifiedKFold(4, shuffle=True, random_state=1)
    reference = LogisticRegression(C=0.1)
    display = PrivacyUtilityDisplay.from_estimator(
        model(random_state=0),
        X,
        y,
        epsilons=EPSILONS,
        reference=reference,
        cv=cv,
        scoring="neg_log_loss",
    )
    for epsilon, scores in zip(EPSILONS, display.scores, strict=True):
        twin = model(random_state=0).set_params(accountant__epsilon=epsilon)
        expected = cross_val_score(twin, X, y, cv=cv, scoring="neg_log_loss")
        np.testing.assert_allclose(scores, expected, rtol=1e-10)
    expected = cross_val_score(reference, X, y, cv=cv, scoring="neg_log_loss")
    np.testing.assert_allclose(display.ceiling, expected, rtol=1e-10)


def test_a_shuffling_splitter_gives_all_budgets_and_the_ceiling_the_same_splits(data):
    X, y = data
    X = np.column_stack([np.arange(len(y)), X])
    first = ColumnTransformer([("rest", "passthrough", slice(1, None))])
    display = PrivacyUtilityDisplay.from_estimator(
        make_pipeline(first, model()),
        X,
        y,
        epsilons=EPSILONS,
        reference=make_pipeline(first, LogisticRegression()),
        # without a seed: each call of split would give other splits
        cv=ShuffleSplit(3, test_size=0.3),
        scoring=lambda estimator, X, y: X[:, 0].sum(),
    )
    assert len(set(display.ceiling)) > 1
    for scores in display.scores:
        np.testing.assert_array_equal(scores, display.ceiling)


def test_budgets_are_sorted_and_distinct(data):
    display = PrivacyUtilityDisplay.from_estimator(
        model(), *data, epsilons=(4, 1, 1.0, 2), cv=2, scoring=_budget_of
    )
    np.testing.assert_array_equal(display.epsilons, [1, 2, 4])
    np.testing.assert_array_equal(display.scores, [[1, 1], [2, 2], [4, 4]])
    assert display.ceiling is None


def _budget_of(estimator, X, y):
    return estimator.accountant_.epsilon


def _seed_of(estimator, X, y):
    return -1 if estimator.random_state is None else estimator.random_state


def test_a_seed_gives_common_random_numbers_across_budgets_only(data):
    def seeds(random_state):
        with warned(
            SeededNoiseWarning, "noise.scores_from_seed", owner="PrivacyUtilityDisplay"
        ) as caught:
            display = PrivacyUtilityDisplay.from_estimator(
                model(),
                *data,
                epsilons=EPSILONS,
                cv=3,
                n_repeats=2,
                scoring=_seed_of,
                random_state=random_state,
            )
        assert len(caught) == 1  # once, not for every fit
        return display.scores

    scores = seeds(0)
    assert scores.shape == (3, 6)
    assert len(set(scores[0])) == 6
    np.testing.assert_array_equal(scores, np.tile(scores[0], (3, 1)))
    np.testing.assert_array_equal(scores, seeds(0))
    assert not np.intersect1d(scores, seeds(1)).size
    np.testing.assert_array_equal(
        seeds(np.random.default_rng(5)), seeds(np.random.default_rng(5))
    )


def test_common_random_numbers_scale_one_draw(data):
    """Noise at two budgets is one draw at two scales."""
    X, y = data

    def noise(estimator, X, y):
        # tol far below the noise: what is left of coef_ is the exact minimiser
        return estimator.coef_[0, 0]

    display = PrivacyUtilityDisplay.from_estimator(
        model(tol=1e-9),
        X,
        y,
        epsilons=[1.0, 4.0, 16.0],
        cv=2,
        scoring=noise,
        random_state=3,
    )
    # the Gaussian scale falls as 1 / sqrt(epsilon): 1, 1/2, 1/4, to the exact value
    step = np.diff(display.scores, axis=0)
    np.testing.assert_allclose(step[0], 2 * step[1], rtol=1e-4)
    assert np.all(np.abs(step[0]) > 1e-6)


def test_without_a_seed_noise_is_fresh(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = PrivacyUtilityDisplay.from_estimator(
            model(),
            *data,
            epsilons=[1],
            cv=[(np.arange(100), np.arange(100, 150))],
            n_repeats=4,
            scoring="neg_log_loss",
        )
    assert display.scores.shape == (1, 4)
    assert len(set(display.scores[0])) == 4


def test_a_seed_leaves_the_worlds_of_a_scenario_alone(data):
    X, y = data
    table = pd.DataFrame(X[:, :2], columns=["a", "b"])
    table["group"] = (X[:, 0] > 0).astype(int)
    scenario = AttributeScenario(
        "group", level="record", prior=table[::2], random_state=7, prior_as="law"
    )
    display = PrivacyUtilityDisplay.from_estimator(
        PrivateLogisticRegression(scenario, GeneralWasserstein(alpha=4)),
        table[1::2],
        y[1::2],
        epsilons=[1],
        cv=2,
        scoring=lambda estimator, X, y: estimator.scenario.random_state,
        random_state=0,
    )
    np.testing.assert_array_equal(display.scores, [[7, 7]])
    label = "Budget ε: Rényi differential privacy, order α = 4"
    assert display.budget_name == label


def test_a_seed_needs_something_to_seed(data):
    class Unseeded(BaseEstimator):
        def __init__(self, accountant=None):
            self.accountant = accountant

        def fit(self, X, y=None):
            return self

        def score(self, X, y=None):
            return 1.0

    with refused(ValueError, "inspection.no_random_state_to_seed"):
        PrivacyUtilityDisplay.from_estimator(
            Unseeded(GroupPrivacy()), *data, random_state=0
        )


def test_two_jobs_give_the_scores_of_one(data):
    def scores(n_jobs):
        return PrivacyUtilityDisplay.from_estimator(
            model(),
            *data,
            epsilons=[1, 10],
            reference=LogisticRegression(),
            cv=3,
            scoring="neg_log_loss",
            random_state=0,
            n_jobs=n_jobs,
        )

    one, two = scores(None), scores(2)
    np.testing.assert_allclose(one.scores, two.scores, rtol=1e-7)
    np.testing.assert_allclose(one.ceiling, two.ceiling, rtol=1e-7)
    assert two.budget_name == RENYI


def test_more_budget_more_accuracy(data):
    display = PrivacyUtilityDisplay.from_estimator(
        model(C=0.1),
        *data,
        epsilons=[0.01, 1000],
        reference=LogisticRegression(),
        n_repeats=4,
        random_state=0,
    )
    low, high = display.scores.mean(axis=1)
    assert low + 0.1 < high <= display.ceiling.mean() + 0.05


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitter(data, routing):
    X, y = data
    groups = np.arange(len(y)) % 5
    with config_context(enable_metadata_routing=routing):
        display = PrivacyUtilityDisplay.from_estimator(
            model(),
            np.column_stack([groups, X]),
            y,
            epsilons=[1],
            groups=groups,
            cv=GroupKFold(5),
            scoring=lambda estimator, X, y: len(np.unique(X[:, 0])),
        )
    np.testing.assert_array_equal(display.scores, np.ones((1, 5)))


def test_params_reach_the_private_fit_and_not_the_reference(data):
    X, y = data

    class Recorder(BaseEstimator):
        def __init__(self, accountant=None):
            self.accountant = accountant

        def fit(self, X, y=None, secret=None):
            self.seen_ = secret
            return self

    def seen(estimator, X):
        return -1 if getattr(estimator, "seen_", None) is None else len(estimator.seen_)

    display = PrivacyUtilityDisplay.from_estimator(
        Recorder(GroupPrivacy()),
        X,
        epsilons=[1],
        reference=LogisticRegressionOfNothing(),
        cv=3,
        scoring=seen,
        params={"secret": np.arange(len(y))},
    )
    np.testing.assert_array_equal(display.scores, [[100, 100, 100]])
    np.testing.assert_array_equal(display.ceiling, [-1, -1, -1])


class LogisticRegressionOfNothing(BaseEstimator):
    """A reference whose fit takes no parameter and no target."""

    def fit(self, X, y=None):
        assert y is None
        return self


def test_data_frames_and_the_estimator_stay_as_they_are(data):
    X, y = data
    estimator = model()
    before = repr(estimator)
    frame = pd.DataFrame(X).add_prefix("x")
    display = PrivacyUtilityDisplay.from_estimator(
        estimator,
        frame,
        pd.Series(y),
        epsilons=[5],
        cv=2,
        scoring=lambda estimator, X, y: float(X.columns[0] == "x0"),
    )
    np.testing.assert_array_equal(display.scores, [[1, 1]])
    assert repr(estimator) == before
    assert not hasattr(estimator, "certificate_")


# -- which parameter holds the budget -------------------------------------------------


class Holder(BaseEstimator):
    """A meta-estimator with an accountant of its own, for two budgets in one."""

    def __init__(self, estimator, accountant=None):
        self.estimator = estimator
        self.accountant = accountant

    def fit(self, X, y):
        self.estimator_ = self.estimator.fit(X, y)
        return self

    def score(self, X, y):
        return self.estimator_.score(X, y)


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateLogisticRegression(data_norm=4.0),
        model(),
        make_pipeline(FunctionTransformer(), model()),
        make_pipeline(FunctionTransformer(), PrivateLogisticRegression()),
        GridSearchCV(model(), {"C": [0.01, 0.02]}, cv=2),
    ],
    ids=["default", "plain", "pipeline", "default in pipeline", "search"],
)
def test_the_budget_is_found_and_set(data, estimator):
    def budget(fitted, X, y):
        fitted = getattr(fitted, "best_estimator_", fitted)
        return _budget_of(fitted[-1] if hasattr(fitted, "steps") else fitted, X, y)

    display = PrivacyUtilityDisplay.from_estimator(
        estimator, *data, epsilons=[0.7, 3], cv=2, scoring=budget
    )
    np.testing.assert_array_equal(display.scores, [[0.7, 0.7], [3, 3]])
    # the notion is found wherever the certificate is
    assert "differential privacy" in display.budget_name


def test_the_private_step_names_the_curve(data):
    display = PrivacyUtilityDisplay.from_estimator(
        make_pipeline(FunctionTransformer(), model()), *data, epsilons=[1], cv=2
    )
    assert display.estimator_name == "PrivateLogisticRegression"


# nothing is known of the rows that this wrapper hands on
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyLeakWarning")
def test_two_budgets_are_listed_and_one_can_be_chosen(data):
    estimator = Holder(model())
    with refused(
        ValueError,
        "inspection.budget_parameter_ambiguous",
        found="accountant__epsilon, estimator__accountant__epsilon",
    ):
        PrivacyUtilityDisplay.from_estimator(estimator, *data)
    display = PrivacyUtilityDisplay.from_estimator(
        estimator,
        *data,
        epsilons=[2.5],
        param_name="estimator__accountant__epsilon",
        cv=2,
        scoring=lambda estimator, X, y: _budget_of(estimator.estimator_, X, y),
    )
    np.testing.assert_array_equal(display.scores, [[2.5, 2.5]])


def test_no_budget_is_an_error(data):
    with refused(ValueError, "inspection.budget_parameter_not_found"):
        PrivacyUtilityDisplay.from_estimator(LogisticRegression(), *data)


# -- bad input, before anything is fitted ---------------------------------------------


class NeverFitted(PrivateLogisticRegression):
    def fit(self, X, y=None, *, secret=None):
        raise AssertionError("fitted before its parameters were checked")


@pytest.mark.parametrize(
    "params, message",
    [
        ({"epsilons": []}, "epsilons"),
        ({"epsilons": [1, 0]}, "epsilons"),
        ({"epsilons": [1, np.inf]}, "epsilons"),
        ({"n_repeats": 0}, "n_repeats"),
        ({"scoring": ["accuracy", "roc_auc"]}, "scoring"),
        ({"scoring": "no such score"}, "scoring"),
        ({"std_display_style": "band"}, "std_display_style"),
        ({"param_name": "accountant__epsilom"}, "epsilom"),
        ({"reference": LogisticRegression}, "reference"),
        ({"reference": "ridge"}, "reference"),
    ],
)
def test_bad_parameters_are_named_before_any_fit(data, params, message):
    with pytest.raises((ValueError, TypeError), match=message):
        PrivacyUtilityDisplay.from_estimator(NeverFitted(), *data, **params)
    assert not plt.get_fignums()


def test_a_scorer_of_many_scores_is_an_error(data):
    with refused(ValueError, "inspection.one_score_wanted"):
        PrivacyUtilityDisplay.from_estimator(
            model(),
            *data,
            epsilons=[1],
            cv=2,
            scoring=lambda estimator, X, y: {"a": 1.0, "b": 2.0},
        )


def test_a_failing_fit_is_raised(data):
    with pytest.raises(ValueError, match="data_norm"):
        PrivacyUtilityDisplay.from_estimator(model().set_params(data_norm=-1.0), *data)


def test_scores_of_another_shape_are_an_error():
    display = PrivacyUtilityDisplay(epsilons=[1, 2, 3], scores=[[1.0, 2.0, 3.0]])
    with refused(ValueError, "inspection.scores_shape_mismatch"):
        display.plot()


def test_matplotlib_is_imported_late_and_its_absence_says_how_to_get_it(
    monkeypatch, data
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    message = "inspection.matplotlib_missing"
    with refused(ImportError, message):
        PrivacyUtilityDisplay.from_estimator(NeverFitted(), *data)
    with refused(ImportError, "inspection.matplotlib_missing"):
        made().plot()


# -- what is drawn --------------------------------------------------------------------


def band(collection):
    """Lowest and highest point of a filled band at each budget."""
    x, y = collection.get_paths()[0].vertices.T
    return {v: (y[x == v].min(), y[x == v].max()) for v in np.unique(x)}


def test_drawn_as_mean_and_one_standard_deviation():
    display = made(estimator_name="model", score_name="Accuracy").plot()
    np.testing.assert_allclose(display.line_.get_xdata(), [0.1, 1, 10])
    np.testing.assert_allclose(display.line_.get_ydata(), [0.5, 0.6, 0.75])
    drawn = band(display.fill_between_)
    np.testing.assert_allclose(drawn[0.1], (0.4, 0.6))
    np.testing.assert_allclose(drawn[10], (0.6, 0.9))
    np.testing.assert_allclose(display.ceiling_line_.get_ydata(), [0.9, 0.9])
    low = display.ceiling_band_.get_y()
    np.testing.assert_allclose([low, display.ceiling_band_.get_height()], [0.8, 0.2])
    assert display.ceiling_line_.get_linestyle() == "--"
    assert display.errorbar_ is None
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_ylabel() == "Accuracy"
    assert display.ax_.get_xlabel() == "Budget ε"
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["model", "Without privacy"]


def test_negated():
    display = made().plot(negate_score=True)
    np.testing.assert_allclose(display.line_.get_ydata(), [-0.5, -0.6, -0.75])
    np.testing.assert_allclose(display.ceiling_line_.get_ydata(), [-0.9, -0.9])


def test_error_bars():
    display = made(estimator_name="model").plot(std_display_style="errorbar")
    assert display.line_ is None and display.fill_between_ is None
    line, _, (bars,) = display.errorbar_
    np.testing.assert_allclose(line.get_ydata(), [0.5, 0.6, 0.75])
    np.testing.assert_allclose(bars.get_segments()[2], [[10, 0.6], [10, 0.9]])


def test_the_line_alone():
    display = made(ceiling=None).plot(std_display_style=None)
    assert display.line_ is not None
    assert display.fill_between_ is None and display.errorbar_ is None
    assert display.ceiling_line_ is None and display.ceiling_band_ is None
    assert made().plot(std_display_style=None).ceiling_band_ is None
    assert display.ax_.get_legend() is None  # nothing has a name


def test_options_of_matplotlib_replace_the_defaults():
    display = made().plot(
        line_kw={"c": "red", "ls": ":"},
        fill_between_kw={"alpha": 0.7},
        ceiling_kw={"c": "blue", "ls": "-", "label": "Ceiling"},
    )
    assert display.line_.get_color() == "red"
    assert display.line_.get_linestyle() == ":"
    assert display.fill_between_.get_alpha() == 0.7
    assert display.ceiling_line_.get_color() == "blue"
    assert display.ceiling_line_.get_label() == "Ceiling"
    display = made().plot(std_display_style="errorbar", errorbar_kw={"c": "green"})
    assert display.errorbar_[0].get_color() == "green"


@pytest.mark.parametrize(
    "epsilons, scale_",
    [((0.1, 1, 10), "log"), ((1, 2, 10), "log"), ((1, 2, 9.9), "linear")],
)
def test_axis_is_logarithmic_from_a_decade_on(epsilons, scale_):
    display = PrivacyUtilityDisplay(epsilons=epsilons, scores=np.ones((3, 2)))
    assert display.plot().ax_.get_xscale() == scale_


def test_default_budgets_are_ticks():
    display = PrivacyUtilityDisplay(
        epsilons=[0.1, 0.3, 1, 3, 10], scores=np.ones((5, 2))
    ).plot()
    display.figure_.draw_without_rendering()
    low, high = display.ax_.get_xlim()
    ticks = zip(display.ax_.get_xticks(), display.ax_.get_xticklabels(), strict=True)
    shown = [label.get_text() for tick, label in ticks if low <= tick <= high]
    assert shown == ["0.1", "0.3", "1", "3", "10"]
    assert not any(t.get_text() for t in display.ax_.get_xticklabels(minor=True))


@pytest.mark.parametrize(
    "accountant, label",
    [
        (GroupPrivacy(alpha=4), RENYI),
        (
            GroupPrivacy(delta=1e-6),
            "Budget ε: (ε, δ)-differential privacy, δ = 1e-06",
        ),
    ],
)
def test_the_axis_names_the_notion_of_the_certificate(data, accountant, label):
    display = PrivacyUtilityDisplay.from_estimator(
        PrivateLogisticRegression(accountant=accountant), *data, epsilons=[1, 2], cv=2
    )
    assert display.ax_.get_xlabel() == display.budget_name == label


def test_curves_of_two_notions_share_an_axis_that_names_none():
    display = made(budget_name=RENYI).plot()
    made(budget_name=RENYI).plot(ax=display.ax_)
    assert display.ax_.get_xlabel() == RENYI
    made(budget_name="Budget ε: another").plot(ax=display.ax_)
    assert display.ax_.get_xlabel() == "Budget ε"
    made().plot(ax=display.ax_, budget_name="Mine")
    assert display.ax_.get_xlabel() == "Mine"


@pytest.mark.parametrize(
    "scoring, negate_score, name",
    [
        (None, False, "Score"),
        (None, True, "Negative score"),
        ("roc_auc", False, "Roc auc"),
        ("neg_log_loss", False, "Negative log loss"),
        ("neg_log_loss", True, "Log loss"),
        ("accuracy", True, "Negative accuracy"),
        (_seed_of, False, " seed of"),
        (
            make_scorer(log_loss, response_method="predict_proba"),
            False,
            "Score",
        ),
    ],
)
def test_score_is_named_as_in_scikit_learn(data, scoring, negate_score, name):
    display = PrivacyUtilityDisplay.from_estimator(
        model(), *data, epsilons=[1], cv=2, scoring=scoring, negate_score=negate_score
    )
    assert display.ax_.get_ylabel() == name
    sign = -1 if negate_score else 1
    np.testing.assert_allclose(
        display.line_.get_ydata(), sign * display.scores.mean(axis=1)
    )


# -- from a search --------------------------------------------------------------------


def search_over(grid, estimator=None, **params):
    params = {"cv": 3, "error_score": "raise", **params}
    return GridSearchCV(model() if estimator is None else estimator, grid, **params)


def test_from_search_reads_its_scores(data):
    search = search_over({"accountant__epsilon": [4, 1, 2]}, scoring="roc_auc")
    search.fit(*data)
    display = PrivacyUtilityDisplay.from_search(search, ceiling=[0.5, 0.7])
    np.testing.assert_array_equal(display.epsilons, [1, 2, 4])
    np.testing.assert_allclose(
        display.line_.get_ydata(), search.cv_results_["mean_test_score"][[1, 2, 0]]
    )
    np.testing.assert_array_equal(
        display.scores[0],
        [search.cv_results_[f"split{i}_test_score"][1] for i in (0, 1, 2)],
    )
    np.testing.assert_allclose(display.ceiling_line_.get_ydata(), 0.6)
    assert display.estimator_name == "PrivateLogisticRegression"
    assert display.score_name == "Roc auc"
    assert display.budget_name == RENYI


def test_from_search_of_a_pipeline_shows_the_best_of_other_parameters(data):
    pipeline = make_pipeline(FunctionTransformer(), PrivateLogisticRegression())
    name = "privatelogisticregression__"
    grid = {f"{name}C": [1e-3, 1e-2], f"{name}accountant__epsilon": [1, 10]}
    search = search_over(grid, pipeline).fit(*data)
    display = PrivacyUtilityDisplay.from_search(search)
    results = pd.DataFrame(search.cv_results_)
    best = results.groupby(f"param_{name}accountant__epsilon")["mean_test_score"].max()
    np.testing.assert_allclose(display.line_.get_ydata(), best.loc[[1, 10]])
    assert display.estimator_name == "PrivateLogisticRegression"
    assert "(ε, δ)" in display.budget_name


@pytest.mark.parametrize("orders, label", [([4], RENYI), ([2, 4], "Budget ε")])
def test_from_search_over_several_promises_names_none(data, orders, label):
    grid = {"accountant__epsilon": [1, 2], "accountant__alpha": orders}
    display = PrivacyUtilityDisplay.from_search(search_over(grid).fit(*data))
    assert display.budget_name == label


def test_from_search_leaves_out_candidates_without_a_budget(data):
    search = search_over([{"accountant__epsilon": [1, 2]}, {"C": [0.5]}]).fit(*data)
    display = PrivacyUtilityDisplay.from_search(search)
    np.testing.assert_array_equal(display.epsilons, [1, 2])
    np.testing.assert_allclose(
        display.line_.get_ydata(), search.cv_results_["mean_test_score"][:2]
    )


def test_from_search_of_several_scores_takes_the_one_refitted(data):
    grid = {"accountant__epsilon": [1, 2]}
    scoring = ["accuracy", "neg_log_loss"]
    search = search_over(grid, scoring=scoring, refit="neg_log_loss").fit(*data)
    display = PrivacyUtilityDisplay.from_search(search, negate_score=True)
    np.testing.assert_allclose(
        display.line_.get_ydata(), -search.cv_results_["mean_test_neg_log_loss"]
    )
    assert display.score_name == "Log loss"
    unfitted = search_over(grid, scoring=scoring, refit=False).fit(*data)
    with refused(ValueError, "search.several_scores_none_named"):
        PrivacyUtilityDisplay.from_search(unfitted)


def test_from_search_without_refit_has_no_certificate_to_read(data):
    search = search_over({"accountant__epsilon": [1, 2]}, refit=False).fit(*data)
    display = PrivacyUtilityDisplay.from_search(search)
    assert display.budget_name == "Budget ε"


def test_from_search_errors(data):
    grid = {"accountant__epsilon": [1, 2]}
    with pytest.raises(NotFittedError):
        PrivacyUtilityDisplay.from_search(search_over(grid))
    search = search_over({"C": [0.01, 0.02]}).fit(*data)
    with refused(ValueError, "inspection.budget_parameter_not_found"):
        PrivacyUtilityDisplay.from_search(search)
    with refused(
        ValueError, "search.budget_not_searched", param_name="accountant__epsilon"
    ):
        PrivacyUtilityDisplay.from_search(search, param_name="accountant__epsilon")
    halving = HalvingGridSearchCV(model(), grid, cv=2, min_resources=60).fit(*data)
    with refused(ValueError, "search.successive_halving_not_comparable"):
        PrivacyUtilityDisplay.from_search(halving)


def test_from_search_refuses_failed_fits(data):
    scoring = make_scorer(_refuses)
    search = search_over(
        {"accountant__epsilon": [1, 2]}, scoring=scoring, error_score=np.nan
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(*data)
    with refused(ValueError, "search.fits_failed"):
        PrivacyUtilityDisplay.from_search(search)


def _refuses(y_true, y_pred):
    raise ValueError("no score")


def test_what_a_budget_buys_is_drawn_before_it_is_spent():
    """By previews, and so without a row, at each budget what a fit would say."""
    model = PrivateSummary(
        by="s",
        statistics=["mean"],
        bounds={"x": (0, 10)},
        categories={"s": ["a", "b"]},
    )
    display = PrivacyUtilityDisplay.from_preview(
        model, 1000, feature_names=["s", "x"], epsilons=[2, 0.5]
    )
    assert display.epsilons.tolist() == [0.5, 2]
    for epsilon, scores in zip(display.epsilons, display.scores, strict=True):
        asked = clone(model).set_params(accountant__epsilon=epsilon)
        preview = asked.preview(1000, feature_names=["s", "x"])
        assert scores.tolist() == np.ravel(preview.std["result_"]).tolist()
    assert (display.scores[0] > 2 * display.scores[1]).all()
    assert display.ax_.get_yscale() == "log"
    with refused(UnsupportedError, "release.no_confidence_intervals"):
        PrivacyUtilityDisplay.from_preview(
            PrivateLogisticRegression(classes=[0, 1]), 100, n_features=1
        )
