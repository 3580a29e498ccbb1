"""One budget for a whole pipeline: how it is split, spent and attacked."""

import math
import pickle

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from skpuffer.accountants import PAC, Best, GroupPrivacy, PrivacyLoss, RenyiDP
from skpuffer.compose import (
    PrivatePipeline,
    make_private_pipeline,
)
from skpuffer.compose import _private_pipeline as pipelines
from skpuffer.decomposition import PrivatePCA
from skpuffer.exceptions import (
    BudgetExceededError,
    CompositionError,
    PrivacyLeakWarning,
    UnsupportedError,
)
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateRidge, PrivateSGDClassifier
from skpuffer.privacy import compose
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedOdds,
    RecordScenario,
    SubsampleScenario,
)
from skpuffer.summary import PrivateMean, PrivateStandardScaler
from skpuffer.training import Training
from tests.refused import refused

from ..attack import assert_tight
from .pipelines import X, Y, logistic, pipeline, scaler

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.WeakPromiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]

# -- one budget, one certificate -------------------------------------------------------


def test_all_of_the_budget_is_spent_and_no_more():
    model = pipeline().fit(X, Y)
    promised = model.certificate_
    assert 2 * (1 - 2e-3) < promised.epsilon <= 2
    assert (promised.delta, promised.n_releases) == (1e-5, 2)
    assert promised == compose(list(model.certificates_.values()), delta=1e-5)
    # what each spends alone is more, added up
    assert sum(model.epsilons_.values()) > 2.5
    for name, step in model.named_steps_.items():
        assert step.certificate_ is model.certificates_[name]
        assert step.accountant_.epsilon == model.epsilons_[name]
        assert step.noise_ == model.noises_[name]


@pytest.mark.parametrize(
    "n_features, epsilon, families",
    [
        # alone a scaler of few columns errs less with Laplace noise; with others, the
        # composition of Gaussian noise leaves each step more
        (2, 2.0, ["gaussian"] * 3),
        (1, 0.5, ["gaussian"] * 3),
        # not enough where the whole budget is large
        (1, 8.0, ["laplace", "laplace", "gaussian"]),
    ],
)
def test_families_are_chosen_by_what_all_steps_err_together(
    n_features, epsilon, families
):
    model = PrivatePipeline(
        [("one", scaler()), ("two", scaler()), ("model", logistic(data_norm=5.0))],
        accountant=PrivacyLoss(epsilon, 1e-5),
        # by which each step's error is that of its own noise alone
        shares={"one": 1, "two": 1, "model": 1},
    )

    def planned(noise):
        told = model.set_params(accountant__noise=noise).preview(
            1000, n_features=n_features, classes=[0, 1]
        )
        assert told.certificate.epsilon == pytest.approx(epsilon, rel=1e-3)
        return [step.noise for step in told.steps.values()]

    auto, gaussian = planned("auto"), planned("gaussian")
    assert [noise.family for noise in auto] == families
    assert (auto == gaussian) == (families == ["gaussian"] * 3)
    fitted = model.set_params(accountant__noise="auto").fit(X[:, :n_features], Y)
    assert [noise.family for noise in fitted.noises_.values()] == families
    assert fitted.certificate_.epsilon <= epsilon


def test_a_choice_of_families_leaves_nothing_unspent():
    # with a little more than 1.63 the scaler would take Laplace noise, which adds up
    # worse, so that the total jumps above 2
    model = make_private_pipeline(
        PrivateStandardScaler(bounds=(-1, 1)),
        PrivateRidge(target_bounds=(-1, 1)),
        accountant=PrivacyLoss(2.0),
    )
    auto = model.preview(2000, n_features=4)
    assert 2 * (1 - 1e-3) < auto.certificate.epsilon <= 2
    gaussian = model.set_params(accountant__noise="gaussian")
    assert gaussian.preview(2000, n_features=4).epsilons == auto.epsilons


def test_a_pure_promise_keeps_its_noise():
    model = PrivatePipeline(
        [("one", scaler()), ("two", PrivateMean(bounds=(-1, 1)))],
        accountant=GroupPrivacy(1.0, math.inf),
    ).fit(X)
    assert {noise.family for noise in model.noises_.values()} == {"laplace"}
    assert model.certificate_.notion == "pure_dp"


def test_two_gaussian_steps_compose_to_the_root_of_their_squares():
    """Closed form, through no composition of the library's: one Gaussian mechanism."""
    model = PrivatePipeline(
        [("a", scaler(with_std=False)), ("b", PrivateMean(bounds=(-1, 1)))],
        accountant=PrivacyLoss(1.0, 1e-5, noise="gaussian"),
        shares={"a": 1, "b": 1},
    ).fit(X)
    # three columns in [-1, 1], of which a record that comes or goes moves each by 1 / n
    deviations = [noise.std(3)[0] for noise in model.noises_.values()]
    mus = [np.sqrt(3) / len(X) / deviation for deviation in deviations]
    assert mus[0] == pytest.approx(mus[1], rel=1e-6)
    exact = GaussianCurve(np.sqrt(sum(mu**2 for mu in mus))).epsilon(1e-5)
    # noise has a little room for the grid besides
    assert exact <= model.certificate_.epsilon <= 1
    assert exact == pytest.approx(1, rel=1e-3)


def test_less_noise_than_where_budgets_are_added():
    """The naive split gives each step half of epsilon and half of delta."""
    shares = {"scaler": 1, "model": 1}
    tight = pipeline(shares=shares).fit(X, Y)
    naive = [
        scaler(accountant=PrivacyLoss(1.0, 5e-6, noise="gaussian")).fit(X),
        logistic(accountant=PrivacyLoss(1.0, 5e-6, noise="gaussian")).fit(X, Y),
    ]
    for one, other in zip(tight.noises_.values(), naive, strict=True):
        assert np.all(one.std() < 0.75 * other.noise_.std())
    # and that is no other promise: it adds up to less than what was asked for
    spent = compose([one.certificate_ for one in naive], delta=1e-5)
    assert spent.epsilon < 1.45


@settings(max_examples=6)
@given(
    shares=st.tuples(st.floats(0.05, 1.0), st.floats(0.05, 1.0)),
    epsilon=st.floats(0.05, 8.0),
)
def test_shares_are_kept_and_no_total_is_above(shares, epsilon):
    told = dict(zip(("scaler", "model"), shares, strict=True))
    preview = pipeline(epsilon=epsilon, shares=told).preview(
        400, n_features=3, classes=[0, 1]
    )
    assert epsilon * (1 - 2e-3) < preview.certificate.epsilon <= epsilon * (1 + 1e-9)
    ratio = preview.epsilons["scaler"] / preview.epsilons["model"]
    assert ratio == pytest.approx(shares[0] / shares[1])


def test_more_budget_is_less_noise_in_each_step():
    found = [
        pipeline(epsilon=epsilon).preview(400, n_features=3, classes=[0, 1])
        for epsilon in (0.5, 1.0, 2.0)
    ]
    for name in ("scaler", "model"):
        spreads = [np.max(each.steps[name].noise.std()) for each in found]
        assert spreads[0] > spreads[1] > spreads[2] > 0


@pytest.mark.parametrize(
    "accountant",
    [
        RenyiDP(1.0, alpha=4.0, delta=None),
        RenyiDP(1.0, delta=1e-5),
        PrivacyLoss(1.0, 1e-5, noise="laplace"),
        GroupPrivacy(1.0, delta=1e-5, noise="gaussian"),
        GroupPrivacy(1.0, alpha=np.inf, noise="laplace"),
    ],
    ids=lambda accountant: repr(accountant),
)
def test_whatever_counts_the_budget(accountant):
    model = PrivatePipeline(
        [("a", scaler()), ("b", PrivatePCA(n_components=2, data_norm=3.0))],
        accountant=accountant,
    )
    promised = model.fit(X).certificate_
    assert (1 - 2e-3) < promised.epsilon <= 1 + 1e-9
    assert promised.alpha == getattr(accountant, "alpha", None)
    if promised.alpha == np.inf:
        assert sum(model.epsilons_.values()) == pytest.approx(1)


def test_the_whole_is_promised_at_the_order_of_the_budget():
    own = RenyiDP(0.2, alpha=2.0, delta=None)
    model = PrivatePipeline(
        [("a", scaler(accountant=own)), ("b", PrivateMean(bounds=(-1, 1)))],
        accountant=RenyiDP(1.0, alpha=4.0, delta=None),
    )
    promised = model.preview(400, n_features=2).certificate
    assert promised.alpha == 4.0
    assert (1 - 2e-3) < promised.epsilon <= 1 + 1e-9


def test_steps_with_an_accountant_of_their_own_spend_what_that_says():
    model = pipeline()
    model.set_params(scaler__accountant=PrivacyLoss(0.5, 1e-6)).fit(X, Y)
    assert model.epsilons_["scaler"] == 0.5
    assert model.certificates_["scaler"].delta == 1e-6
    assert 2 * (1 - 2e-3) < model.certificate_.epsilon <= 2
    # all of them: nothing is split, and the budget is a ceiling
    model.set_params(model__accountant=PrivacyLoss(1.0, 1e-5)).fit(X, Y)
    assert model.epsilons_ == {"scaler": 0.5, "model": 1.0}
    assert model.certificate_.epsilon < 1.6
    free = model.set_params(accountant=None).fit(X, Y).certificate_
    assert free == compose(list(model.certificates_.values()))
    for epsilon, said in (
        (0.4, "pipeline.steps_over_budget"),
        (1.0, "pipeline.steps_over_budget"),
    ):
        with refused(ValueError, said):
            model.set_params(accountant=PrivacyLoss(epsilon, 1e-5)).fit(X, Y)
    with refused(ValueError, "pipeline.nothing_left_for_steps"):
        pipeline(epsilon=0.4).set_params(scaler__accountant=PrivacyLoss(0.5, 1e-6)).fit(
            X, Y
        )
    alone = PrivatePipeline(
        [("model", logistic(accountant=PrivacyLoss(3.0)))], accountant=PrivacyLoss(1.0)
    )
    with refused(ValueError, "pipeline.steps_over_budget"):
        alone.fit(X, Y)


def pure(epsilon):
    return GroupPrivacy(epsilon, alpha=math.inf, noise="laplace")


def two_scalers(first=None, second=None, **params):
    steps = [("one", scaler(accountant=first)), ("two", scaler(accountant=second))]
    return PrivatePipeline(steps, **params)


def test_a_ceiling_is_reached_and_not_passed():
    """Pure budgets add up exactly, so that all there is can be spent, and no more."""
    spent = two_scalers(pure(0.25), pure(0.75), accountant=pure(1.0)).fit(X)
    assert 1 - 1e-12 < spent.certificate_.epsilon <= 1.0
    for epsilon in (0.75 + 3e-6, 0.8):
        with refused(ValueError, "pipeline.steps_over_budget"):
            two_scalers(pure(0.25), pure(epsilon), accountant=pure(1.0)).fit(X)
    # of what is left another step takes all
    rest = two_scalers(pure(0.25), accountant=pure(1.0)).fit(X)
    assert rest.epsilons_["one"] == 0.25
    assert rest.epsilons_["two"] == pytest.approx(0.75, rel=2e-3)
    assert rest.certificate_.epsilon <= 1.0
    for epsilon, said in (
        (1.0, "budget.no_part_small_enough"),
        (1.5, "pipeline.nothing_left_for_steps"),
    ):
        with refused(ValueError, said):
            two_scalers(pure(epsilon), accountant=pure(1.0)).fit(X)


def test_a_ceiling_is_known_before_there_are_rows():
    """A preview promises what a fit would, and refuses what it would refuse."""
    ceiling = {"accountant": pure(1.0)}
    whole = two_scalers(pure(0.25), pure(0.75), **ceiling).preview(400, n_features=3)
    assert 1 - 1e-12 < whole.certificate.epsilon <= 1.0
    for model, said in (
        (
            two_scalers(pure(0.25), pure(0.75 + 3e-6), **ceiling),
            "pipeline.steps_over_budget",
        ),
        (two_scalers(pure(1.5), **ceiling), "pipeline.nothing_left_for_steps"),
    ):
        with refused(ValueError, said):
            model.preview(400, n_features=3)


@pytest.mark.parametrize(
    "accountant, at",
    [
        (PrivacyLoss(1.0, 1e-6, noise="gaussian"), {"delta": 1e-6}),
        (RenyiDP(1.0, delta=1e-7), {"delta": 1e-7}),
        (RenyiDP(1.0, alpha=3.0, delta=None), {"alpha": 3.0}),
        (pure(1.0), {"alpha": math.inf}),
    ],
    ids=repr,
)
def test_the_whole_is_read_at_what_its_accountant_says(accountant, at):
    model = two_scalers(accountant=accountant).fit(X)
    found = list(model.certificates_.values())
    assert model.certificate_ == compose(found, **at)
    # and not at what the steps would be read at by default
    assert model.preview(400, n_features=3).certificate == compose(found, **at)


def test_one_step_alone_is_what_it_is_by_itself():
    own = PrivateMean(bounds=(-1, 1), accountant=PrivacyLoss(0.3, 1e-6))
    told = PrivateMean(bounds=(-1, 1), scenario=RecordScenario(k=2))
    mean = PrivateMean(bounds=(-1, 1))
    others = {"scenario": RecordScenario(k=3), "accountant": PrivacyLoss(0.7)}
    for step, params, alone in (
        (own, {}, own),
        (own, {"accountant": PrivacyLoss(0.3, 1e-6)}, own),
        # what a step says itself goes first
        (told, others, told.set_params(accountant=PrivacyLoss(0.7))),
        (mean, others, PrivateMean(bounds=(-1, 1), **others)),
    ):
        given = PrivateMean(**step.get_params(deep=False))
        if step is told:
            given.set_params(accountant=None)
        found = make_private_pipeline(given, **params).fit(X).certificate_
        assert found == alone.fit(X).certificate_


def test_by_default_it_is_differential_privacy_at_the_numbers_of_the_estimators():
    promised = pipeline(accountant=None).fit(X, Y).certificate_
    assert promised.notion == "approximate_dp" and promised.delta == 1e-5
    assert 1 - 2e-3 < promised.epsilon <= 1
    one = make_private_pipeline(logistic()).fit(X, Y).certificate_
    assert one == logistic().fit(X, Y).certificate_


def test_by_default_a_belief_of_a_step_is_accounted_for_as_in_the_step():
    belief = AttributeScenario("smokes", level="record", prior=BoundedOdds(4.0))
    mean = PrivateMean(scenario=belief, bounds=(-1, 1))
    names = ["age", "smokes"]
    promised = make_private_pipeline(mean).preview(400, feature_names=names).certificate
    assert promised.notion == "approximate_pufferfish"
    assert promised == mean.preview(400, feature_names=names).certificate


def test_noisier_steps_get_more_of_the_budget():
    def share(bounds):
        model = PrivatePipeline(
            [
                ("wide", PrivateStandardScaler(bounds=(-1, 1))),
                ("model", PrivateMean(bounds=(-1, 1))),
            ],
            accountant=PrivacyLoss(1.0),
        )
        epsilons = model.preview(400, n_features=bounds).epsilons
        return epsilons["wide"] / epsilons["model"]

    # means and second moments of all columns, against means; whatever the units
    assert 1 < share(1) < 2
    assert share(9) == pytest.approx(share(1), rel=0.1)


def test_composition_of_subsampled_steps_is_by_their_privacy_losses():
    model = PrivatePipeline(
        [
            ("scaler", scaler()),
            (
                "model",
                PrivateSGDClassifier(max_iter=3, training=Training(batch_size=40)),
            ),
        ],
        accountant=PrivacyLoss(1.0, 1e-5),
    ).fit(X, Y)
    assert 1 - 2e-3 < model.certificate_.epsilon <= 1
    # halves of epsilon and delta would be 1 together
    assert sum(model.epsilons_.values()) > 1.02


# -- the ledger ------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["callback", "block", "on a step"])
def test_a_ledger_hears_of_each_release_once(how, recwarn):
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (np.inf, 1e-5)})
    model = pipeline()
    if how == "block":
        with ledger:
            model.fit(X, Y)
    elif how == "callback":
        model.set_callbacks(ledger).fit(X, Y)
    else:
        with ledger:
            copy = pickle.loads(pickle.dumps(model))  # as in a worker process
        assert len(ledger.report()) == 0
        model = copy
        with ledger:
            model.fit(X, Y)
    assert not [one for one in recwarn if one.category is PrivacyLeakWarning]
    report = ledger.report()
    assert len(report) == 2
    assert ["PrivateStandardScaler" in each for each in report["estimator"]] == [1, 0]
    total, promised = ledger.total(), model.certificate_
    assert total.epsilon == promised.epsilon
    assert total.curve == promised.curve and total.n_releases == 2
    assert set(total.assumptions) == set(promised.assumptions)


class Listener:
    """A callback that counts the fits and releases it hears of."""

    def __init__(self):
        self.heard = 0

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        self.heard += 1


def test_a_callback_of_a_step_hears_of_its_fit_and_of_no_plan():
    alone, within = Listener(), Listener()
    scaler().set_callbacks(alone).fit(X)
    first = scaler().set_callbacks(within)
    PrivatePipeline([("one", first), ("two", scaler())]).fit(X)
    assert within.heard == alone.heard > 0


def test_previews_and_plans_are_heard_of_by_nobody():
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (np.inf, 1e-5)})
    with ledger:
        pipeline().preview(400, n_features=3, classes=[0, 1])
        assert len(ledger.report()) == 0
        with pytest.raises(CompositionError):
            pipeline().set_params(
                model__scenario=RecordScenario(relation="replace")
            ).fit(X, Y)
    assert len(ledger.report()) == 0


def test_a_ceiling_stops_the_second_step_and_nothing_is_fitted():
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (1.8, 1e-5)})
    model = pipeline().set_callbacks(ledger)
    with pytest.raises(BudgetExceededError) as caught:
        model.fit(X, Y)
    assert any("'scaler'" in note for note in caught.value.__notes__)
    assert len(ledger.report()) == 1
    assert not [name for name in vars(model) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_search_over_processes_is_in_the_ledger(tmp_path):
    ledger = PrivacyLedger(
        tmp_path / "spent.db",
        {"approximate_dp": (np.inf, 1e-5)},
        survives="process_kill",
    )
    grid = {"accountant__epsilon": [0.5, 1.0], "model__C": [1.0]}
    search = GridSearchCV(pipeline(accountant=None), grid, cv=2, n_jobs=2)
    search.set_params(error_score="raise").set_callbacks(ledger).fit(X, Y)
    report = ledger.report()
    # two budgets, two folds and the refit, each of two steps
    assert len(report) == 10
    best = search.best_estimator_
    assert best.certificate_.epsilon <= search.best_params_["accountant__epsilon"]
    with ledger:
        # a method of the library: workers need not know of this file
        fitted = joblib.Parallel(n_jobs=2)(
            joblib.delayed(pipeline().fit)(X, Y) for _ in range(3)
        )
    assert len(ledger.report()) == 16
    assert all(model.certificate_.n_releases == 2 for model in fitted)


# -- an attacker -----------------------------------------------------------------------

#: A record that is there, or counts as nothing.
TABLES = [np.array([[1.0], *[[0.0]] * 49]), np.zeros((50, 1))]


def attacked(epsilon=1.5, delta=0.05, seeds=(None, None)):
    first, second = seeds
    scaler = PrivateStandardScaler(bounds=(-1, 1), with_std=False, random_state=first)
    return PrivatePipeline(
        [
            ("scaler", scaler),
            ("mean", PrivateMean(bounds=(-1, 1), random_state=second)),
        ],
        accountant=PrivacyLoss(epsilon, delta, noise="gaussian"),
        shares={"scaler": 1, "mean": 1},
    )


def test_an_attacker_of_the_whole_gets_what_the_certificate_allows():
    """Both means together, the second of rows that the first has moved."""
    model = attacked().fit(TABLES[0])
    first, second = model.noises_.values()

    def means(table, released):
        return np.clip(table[:, 0] - released[:, None], -1, 1).mean(axis=1)

    def worlds(noise):
        # the second in the same proportion to what was calibrated
        share = float(np.max(noise.scale) / np.max(first.scale))
        other = second.with_scale(np.multiply(second.scale, share).tolist())

        def draw(table):
            def of(n, rng):
                one = table.mean() + noise.sample((n, 1), rng)[:, 0]
                return np.column_stack(
                    [one, means(table, one) + other.sample((n, 1), rng)[:, 0]]
                )

            return of

        return [draw(table) for table in TABLES]

    def score(noise):
        share = float(np.max(noise.scale) / np.max(first.scale))
        scales = [float(np.max(n.std(1))) * share for n in (first, second)]

        def log_ratio(outputs):
            one, two = outputs.T
            squares = [
                ((one - t.mean()) / scales[0]) ** 2
                + ((two - means(t, one)) / scales[1]) ** 2
                for t in TABLES
            ]
            return (squares[1] - squares[0]) / 2

        return log_ratio

    assert_tight(model.certificate_, first, worlds, seed=0, score=score, n_draws=50_000)


def test_what_is_fitted_has_the_noise_that_is_attacked(monkeypatch):
    """The same attacker's model of the two releases holds of real fits."""
    plans = []

    def planned(*arguments):
        plans[:] = plans or [original(*arguments)]
        return plans[0]

    original = pipelines.plan_steps
    monkeypatch.setattr(pipelines, "plan_steps", planned)
    squares = []
    for trial in range(100):
        model = attacked(seeds=(trial, 100 + trial)).fit(TABLES[0])
        one, two = model["scaler"].mean_[0], model["mean"].mean_[0]
        exact = np.clip(TABLES[0][:, 0] - one, -1, 1).mean()
        scales = [float(n.std(1)[0]) for n in model.noises_.values()]
        squares += [((one - 0.02) / scales[0]) ** 2, ((two - exact) / scales[1]) ** 2]
    low, high = chi2.ppf([1e-6, 1 - 1e-6], len(squares))
    assert low < sum(squares) < high
    # seven tenths of the noise would be noticed
    assert not low < 0.49 * sum(squares)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_one_step_alone_may_have_a_budget_of_no_epsilon():
    mean = PrivateMean(bounds=(-1, 1), scenario=SubsampleScenario(n_subsets=24))
    for step, params in (
        (mean, {"accountant": PAC(0.25)}),
        (PrivateMean(**{**mean.get_params(deep=False), "accountant": PAC(0.25)}), {}),
    ):
        model = make_private_pipeline(step, **params).fit(X[:30])
        assert 0 < model.certificate_.mutual_information <= 0.25
        assert model.certificate_.epsilon is None and model.epsilons_ == {}
    # and is not within one of an epsilon, whatever that is
    own = PrivateMean(**{**mean.get_params(deep=False), "accountant": PAC(0.25)})
    with pytest.raises((ValueError, UnsupportedError)):
        make_private_pipeline(own, accountant=PrivacyLoss(50.0)).fit(X[:30])


def test_a_nested_parameter_makes_the_default_accountant_of_the_scenario():
    belief = AttributeScenario("smokes", level="record", prior=BoundedOdds(4.0))
    steps = [("mean", PrivateMean(bounds=(-1, 1)))]

    def default(**params):
        return PrivatePipeline(steps).set_params(**params).accountant

    def is_same(one, other):
        return type(one) is type(other) and one.get_params() == other.get_params()

    assert is_same(default(accountant__epsilon=3.0), PrivacyLoss(3.0, 1e-5))
    told = default(scenario=belief, accountant__epsilon=3.0)
    assert is_same(told, Best(3.0, delta=1e-5))
    known = PrivatePipeline(steps, scenario=belief)
    assert is_same(known.set_params(accountant__epsilon=3.0).accountant, told)
    # one that is there, or given in the same call, is changed and not replaced
    known = PrivatePipeline(steps, accountant=RenyiDP(1.0, delta=1e-6))
    known.set_params(accountant__epsilon=3.0)
    assert is_same(known.accountant, RenyiDP(3.0, delta=1e-6))
    told = default(accountant=RenyiDP(1.0), accountant__epsilon=3.0)
    assert is_same(told, RenyiDP(3.0))
    assert default(mean__bounds=(0, 1)) is None


def test_a_budget_of_no_epsilon_is_not_split():
    with refused(UnsupportedError, "pipeline.accountant_without_epsilon"):
        pipeline(accountant=PAC(0.1)).fit(X, Y)
