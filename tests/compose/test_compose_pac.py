"""Any estimator, by what its output tells of who was drawn of a pool."""

import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV

from skpuffer.accountants import PAC, Best, ResidualPAC
from skpuffer.compose import OutputPerturbation
from skpuffer.exceptions import (
    CompositionError,
    PrivacyWarning,
    ScenarioError,
    SeededNoiseWarning,
    UnsupportedError,
)
from skpuffer.information import subset_value
from skpuffer.privacy import compose, mixed_information
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import OutputSamples, RecordScenario, SubsampleScenario
from skpuffer.summary import PrivateMean
from skpuffer.transport import Ball
from tests.refused import refused, says, warned

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(-2, 0.5, (30, 2)), RNG.normal(2, 0.5, (30, 2))])
Y = np.repeat([0, 1], 30)
# which forests find it hard to tell
Y[::7] = 1 - Y[::7]

ESTIMATORS = [
    (LogisticRegression(), {"query": ["coef_", "intercept_"]}),
    (RandomForestClassifier(3, max_depth=2), {"query": "feature_importances_"}),
    (
        KMeans(2, n_init=1),
        {"query": "cluster_centers_", "canonical": "sort", "ball": 10.0},
    ),
]


def scenario(secret="dataset", **options):
    return SubsampleScenario(secret=secret, **{"n_subsets": 24} | options)


def fitted(model, X=X, y=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return model.fit(X, y)


@pytest.mark.parametrize("estimator, options", ESTIMATORS)
def test_estimators_that_nobody_changed(estimator, options):
    powers = []
    for secret, accountant in (
        ("dataset", PAC(0.25)),
        ("record", ResidualPAC(0.25, n_draws=1000)),
    ):
        model = OutputPerturbation(
            estimator,
            scenario=scenario(secret, n_subsets=12),
            accountant=accountant,
            **options,
        )
        fitted(model)
        certificate = model.certificate_
        assert certificate.certified and certificate.mutual_information <= 0.25
        assert certificate.n_records == 30
        assert says(certificate.assumptions, "assume.subsample_pool_known")
        if secret == "record":
            assert certificate.table_information > certificate.mutual_information
        value = model.value_
        parts = value.values() if isinstance(value, dict) else [value]
        dim = sum(np.size(part) for part in parts)
        powers.append(float(np.sum(model.noise_.variance(dim))))
    # a weaker promise for less noise
    assert powers[1] < powers[0]


def test_a_student_learns_from_predictions_on_public_rows():
    rng = np.random.default_rng(1)
    public = np.concatenate([rng.normal(-2, 0.5, (5, 2)), rng.normal(2, 0.5, (5, 2))])
    held = np.concatenate([rng.normal(-2, 0.5, (50, 2)), rng.normal(2, 0.5, (50, 2))])
    teacher = OutputPerturbation(
        RandomForestClassifier(5, max_depth=2),
        query=lambda model: model.predict_proba(public)[:, 1],
        scenario=scenario("record"),
        accountant=ResidualPAC(0.25, n_draws=1000),
        random_state=0,
    )
    fitted(teacher)
    assert teacher.certificate_.certified
    assert teacher.value_.shape == (10,)
    assert np.sum(teacher.noise_.variance(10)) > 0
    # nothing of the forest is left but what it said, with noise
    assert not hasattr(teacher, "estimator_")
    student = LogisticRegression().fit(public, teacher.value_ > 0.5)
    assert student.score(held, np.repeat([False, True], 50)) > 0.9


def test_centres_in_one_order():
    model = OutputPerturbation(
        KMeans(2, n_init=1),
        "cluster_centers_",
        scenario(),
        PAC(2.0),
        canonical="sort",
    )
    as_it_comes = clone(model).set_params(canonical=None)
    fitted(model)
    assert model.value_[0, 0] < model.value_[1, 0]
    assert model.predict(X).shape == (60,)
    # clusters that trade places would be hidden by noise of their distance
    outputs = _outputs(model)
    assert np.ptp(outputs[:, 0]) < 2.0
    assert np.ptp(_outputs(as_it_comes)[:, 0]) >= np.ptp(outputs[:, 0])


def _outputs(model):
    return _bound(model)[1].fact(OutputSamples, _bound(model)[0]).draws


def _bound(model):
    """The release of a fit, and the scenario it was bound to."""
    held = {}

    class Watching(PAC):
        recommended = False

        def _account(self, release, bound, norm):
            held["found"] = release, bound
            return super()._account(release, bound, norm)

    fitted(clone(model).set_params(accountant=Watching(2.0)))
    return held["found"]


def test_all_that_goes_with_a_centre_is_put_into_its_place():
    model = OutputPerturbation(
        GaussianMixture(2, random_state=0),
        ["means_", "weights_"],
        scenario(size=20),
        PAC(3.0),
        canonical="sort",
    )
    release, _ = _bound(model)
    uneven = np.concatenate([X[:30], X[30:40]])
    exact = release.run(uneven)
    assert exact[0] < exact[2]
    assert exact[4:] == pytest.approx([0.75, 0.25], abs=0.01)
    with refused((ValueError, ScenarioError), "simulation.release_not_computable"):
        model.set_params(query=["means_", "lower_bound_"]).fit(X)


def test_a_ball_holds_every_output():
    model = OutputPerturbation(
        LogisticRegression(), "coef_", scenario(), PAC(0.5), ball=((1.0, 1.0), 0.1)
    )
    release, bound = _bound(model)
    assert release.ball == Ball(0.1, (1.0, 1.0))
    draws = bound.fact(OutputSamples, release).draws
    assert release.ball.holds(draws)
    assert np.linalg.norm(draws - 1.0, axis=1).max() == pytest.approx(0.1)
    assert release.ball.holds(release.run(X, Y)[None])
    fitted(model)
    said = model.certificate_.assumptions
    assert says(said, "assume.outputs_projected_to_ball", radius=0.1)


def test_a_model_of_the_output_of_a_mean_certifies_all_subsets():
    pool = RNG.uniform(-1, 1, size=(60, 1))
    mean = QueryRelease(
        query=lambda X, y: X.mean(axis=0), n_records=30, dim=1, ball=(0.0, 0.25)
    )
    accountant = ResidualPAC(0.5, certificate="sampled_prior", n_tables=1000)
    subsets = SubsampleScenario(pool, 30, prior="sampled", n_subsets=200)
    found = accountant.calibrate(mean, subsets, random_state=0)
    assert found.certificate.certified
    assert found.certificate.mutual_information <= 0.5


def test_a_projection_moves_what_is_outside_alone():
    ball = Ball(2.0, [1.0, 0.0])
    points = np.array([[1.0, 0.0], [3.0, 0.0], [1.0, -2.5], [1e300, 1e300]])
    within = ball.project(points)
    assert ball.holds(within)
    assert np.array_equal(within[:2], points[:2])
    assert within[2] == pytest.approx([1.0, -2.0])
    assert not np.isfinite(ball.project(np.array([np.inf, 0.0]))).all()


@pytest.mark.parametrize(
    "options, error, name",
    [
        ({"ball": (0.0, -1.0)}, ValueError, "ball"),
        ({"ball": (0.0, 1e300)}, ValueError, "ball"),
        ({"ball": (math.nan, 1.0)}, ValueError, "ball"),
        ({"ball": (0.0, 1.0, 2.0)}, TypeError, "ball"),
        ({"ball": ([0.0, 0.0, 0.0], 1.0)}, ValueError, "ball"),
        ({"ball": (0.0, 1.0), "linear": np.ones((2, 2))}, ValueError, "ball"),
    ],
)
def test_balls_that_are_none(options, error, name):
    with pytest.raises(error, match=f"'{name}'"):
        QueryRelease(query=lambda X, y: X, n_records=2, dim=2, **options)
    with refused(ValueError, "release.ball_without_query"):
        QueryRelease(
            contribution=lambda X, y: X, is_sum=True, n_records=2, dim=2, ball=(0, 1.0)
        )


def test_options_that_are_none():
    for options in ({"ball": 0.0}, {"ball": "large"}, {"canonical": "shuffle"}):
        model = OutputPerturbation(
            LogisticRegression(), scenario=scenario(), accountant=PAC(), **options
        )
        with pytest.raises(ValueError, match=next(iter(options))):
            model.fit(X, Y)
        assert not hasattr(model, "certificate_")


@pytest.mark.parametrize(
    "accountant, options, error, code, parameters",
    [
        (PAC(0.0), {}, ValueError, "parameter.not_positive", {"name": "budget"}),
        (
            ResidualPAC(0.7),
            {"secret": "record"},
            UnsupportedError,
            "pac.budget_kept_without_noise",
            {},
        ),
        (PAC(), {"size": 60}, ScenarioError, "subsample.size_too_large", {}),
        (
            ResidualPAC(certificate="sampled_prior"),
            {"prior": "sampled"},
            UnsupportedError,
            "pac.ball_missing",
            {},
        ),
        (
            PAC(method="confidence"),
            {"prior": "sampled"},
            UnsupportedError,
            "pac.ball_missing",
            {},
        ),
        (PAC(method="algorithm1"), {}, UnsupportedError, "pac.ball_missing", {}),
        (
            PAC(method="efficient", basis=np.ones((2, 2))),
            {},
            ValueError,
            "gaussian.basis_not_orthonormal",
            {},
        ),
        (
            PAC(method="efficient", basis=np.eye(3)),
            {},
            ValueError,
            "gaussian.basis_shape_wrong",
            {"dim": 2},
        ),
        (
            ResidualPAC(cost=np.eye(3)),
            {},
            ValueError,
            "pac.cost_of_wrong_shape",
            {"n_units": 2},
        ),
        (
            ResidualPAC(noise="laplace"),
            {"prior": "sampled"},
            UnsupportedError,
            "pac.exact_noise_for_drawn_outputs",
            {},
        ),
        (
            PAC(correction="sliced"),
            {"prior": "sampled"},
            UnsupportedError,
            "pac.correction_needs_exact_covariance",
            {"correction": "sliced"},
        ),
        (PAC(), {"n_subsets": 1}, ScenarioError, "subsample.single_subset_certain", {}),
        (
            PAC(),
            {"prior": "enumerated"},
            ScenarioError,
            "subsample.too_many_subsets",
            {},
        ),
        (PAC(), {"secret": "groups"}, ScenarioError, "subsample.groups_not_given", {}),
        (
            PAC(),
            {"pool": (X, Y)},
            ScenarioError,
            "subsample.design_with_public_pool",
            {},
        ),
        (
            Best(delta=1e-5),
            {},
            UnsupportedError,
            "subsample.needs_mutual_information_accountant",
            {},
        ),
    ],
)
def test_what_is_refused_leaves_nothing_fitted(
    accountant, options, error, code, parameters
):
    model = OutputPerturbation(
        LogisticRegression(), "coef_", scenario(**options), accountant
    )
    with refused(error, code, **parameters):
        model.fit(X, Y)
    assert not hasattr(model, "certificate_") and not hasattr(model, "value_")


class Counted(LogisticRegression):
    """A model that tells how often it was fitted."""

    fits = []

    def fit(self, X, y, sample_weight=None):
        self.fits.append(len(X))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    "accountant, options",
    [
        (PAC(0.0), {}),
        (ResidualPAC(math.nan), {}),
        (PAC(method="algorithm1"), {}),
        (PAC(method="algorithm1", confidence=0.9), {}),
        (PAC(method="efficient", basis=np.ones((2, 2))), {}),
        (ResidualPAC(certificate="sampled_prior"), {"prior": "sampled"}),
        (ResidualPAC(cost=np.zeros((2, 2))), {}),
        (ResidualPAC(noise="laplace", family="full"), {}),
        (PAC(), {"size": 61}),
        (PAC(), {"n_subsets": 1}),
        (PAC(), {"prior": "enumerated"}),
        (PAC(), {"independent": True, "stratify": True}),
    ],
)
def test_nothing_is_run_for_what_is_refused(accountant, options):
    Counted.fits.clear()
    model = OutputPerturbation(Counted(), "coef_", scenario(**options), accountant)
    with pytest.raises((ValueError, TypeError, UnsupportedError)):
        model.fit(X, Y)
    assert not Counted.fits
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_ball_of_another_length_and_vectors_of_none():
    for options, words in (
        ({"query": "coef_", "ball": ([0.0, 0.0, 0.0], 1.0)}, "'ball'.*2 coordinates"),
        ({"query": lambda model: np.empty(0)}, "empty.*'query'"),
    ):
        model = OutputPerturbation(
            LogisticRegression(), scenario=scenario(), accountant=PAC(), **options
        )
        with pytest.raises(ScenarioError, match=words):
            model.fit(X, Y)
        assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("secret", ["record", "groups"])
def test_budgets_of_two_fits_add_up_about_the_whole_table_alone(secret):
    options = {"n_subsets": 8, "secret": secret}
    if secret == "groups":
        options["groups"] = np.repeat([0, 1], 30)
    accountant = ResidualPAC(0.01, n_draws=1000, confidence=0.9)

    def certificate(**changes):
        model = PrivateMean(SubsampleScenario(**options | changes), accountant)
        return fitted(model, X=X[:, :1], y=None).certificate_

    single = [certificate() for _ in range(2)]
    with refused(CompositionError, "compose.single_secret_information"):
        compose(single)
    mixed = mixed_information(single)
    whole = math.fsum(c.table_information for c in single)
    assert mixed.mutual_information <= whole * (1 + 1e-12)
    whole = [certificate(secret="dataset", groups=None) for _ in range(2)]
    assert compose(whole).mutual_information == pytest.approx(0.02)
    with refused(CompositionError, "compose.information_scenarios_differ"):
        compose([*whole, *single])


def test_what_stays_unknown_of_a_draw():
    model = PrivateMean(scenario(size=2, prior="enumerated"), PAC(0.5))
    certificate = fitted(model, X=X[::6], y=None).certificate_
    # all pairs of ten records are as likely
    report = certificate.residual_report(subset_value(10, 2))
    assert report.entropy == pytest.approx(math.log(45))
    assert report.residual == pytest.approx(math.log(45) - 0.5)
    assert report.residual_privacy == pytest.approx(-0.5)
    assert report == certificate.residual_report()
    # of a few of them that were drawn beforehand less is unknown from the start
    model.set_params(scenario=scenario(size=2, n_subsets=8))
    drawn = fitted(model, X=X[::6], y=None).certificate_
    assert drawn.residual_report(subset_value(10, 2)).intrinsic < -1


@pytest.mark.parametrize("accountant", [PAC(0.0), ResidualPAC(-1.0)])
def test_a_mean_without_a_budget(accountant):
    model = PrivateMean(scenario(), accountant)
    with refused(ValueError, "parameter.not_positive", name="budget"):
        model.fit(X)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_who_is_one_record_more_is_not_who_was_drawn():
    model = OutputPerturbation(LogisticRegression(), accountant=PAC(), sensitivity=1.0)
    with refused(UnsupportedError, "accountant.facts_not_offered", owner="PAC"):
        model.fit(X, Y)
    assert not PAC().supports(
        QueryRelease(query=lambda X, y: X, n_records=60, dim=1), RecordScenario()
    )


@pytest.mark.parametrize(
    "outputs, code",
    [
        (lambda X, y: [np.nan], "scenario.release_not_finite"),
        (
            lambda X, y: np.arange(float(X[0, 0]) + 1),
            "simulation.release_length_varies",
        ),
    ],
)
def test_outputs_that_no_noise_hides(outputs, code):
    pool = np.arange(6.0)[:, None]
    release = QueryRelease(query=outputs, n_records=3)
    subsets = SubsampleScenario(pool, 3, prior="enumerated")
    with refused(ScenarioError, code):
        PAC().calibrate(release, subsets)


def test_a_model_that_fails_on_a_subset():
    model = OutputPerturbation(KMeans(40), "cluster_centers_", scenario(), PAC())
    with refused(ScenarioError, "subsample.remedy_larger_or_stratified"):
        model.fit(X)
    assert not hasattr(model, "certificate_")


def test_the_default_accountant_says_which_would_do():
    model = OutputPerturbation(LogisticRegression(), "coef_", scenario())
    with refused(UnsupportedError, "subsample.needs_mutual_information_accountant"):
        model.fit(X, Y)


def test_an_exact_release_says_why():
    model = OutputPerturbation(
        LogisticRegression(), "coef_", scenario(n_subsets=4), ResidualPAC(2.0)
    )
    with warned(PrivacyWarning, "pac.budget_allows_all"):
        model.fit(X, Y)
    assert model.noise_.is_zero


def test_a_mean_needs_no_bounds():
    model = PrivateMean(scenario(), PAC(0.5))
    fitted(model, y=None)
    assert model.certificate_.mutual_information == 0.5
    assert model.mean_.shape == (2,)


def test_budgets_are_searched_as_any_parameter():
    model = OutputPerturbation(
        LogisticRegression(),
        ["coef_", "intercept_"],
        scenario(n_subsets=8),
        PAC(0.5),
        random_state=0,
    )
    budgets = {"accountant__budget": [0.1, 1.0]}
    search = GridSearchCV(model, budgets, cv=2, error_score="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        search.fit(X, Y)
    best = search.best_estimator_
    twin = pickle.loads(pickle.dumps(best))
    assert twin.certificate_ == best.certificate_
    assert np.array_equal(twin.predict(X), best.predict(X))
    assert clone(best).get_params()["accountant__budget"] in (0.1, 1.0)
