"""An attack on each mechanism at its tightest: two tables, or laws, as far as they go.

What is attacked is what an estimator executes, or the noise that an accountant
calibrates; and each attacker also meets too little of that noise, which he must notice.
"""

import math
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor

from skpuffer.accountants import (
    ApproximateWasserstein,
    AttributeGaussian,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
    MarkovQuilt,
    PrivacyLoss,
    RenyiDP,
    SinkhornWasserstein,
)
from skpuffer.compose import OutputPerturbation
from skpuffer.covariance import PrivateCovariance
from skpuffer.decomposition import PrivatePCA
from skpuffer.distributions import PointMass
from skpuffer.linear_model import (
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
)
from skpuffer.naive_bayes import PrivateCategoricalNB, PrivateGaussianNB
from skpuffer.noise import GeneralizedCauchyNoise
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import LawsScenario, MarkovChainScenario, RecordScenario
from skpuffer.schema import Schema
from skpuffer.summary import PrivateMean, PrivateStandardScaler, PrivateSummary
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import Training

from .attack import assert_tight, bayes_score, weakened
from .engines import lazy_frame

RENYI = {"epsilon": 1.0, "alpha": 4.0}
LOOSE = {"epsilon": 1.5, "delta": 0.05}

# -- accountants -----------------------------------------------------------------------

#: Two laws of the output that are a point each, one apart.
POINTS = LawsScenario([(PointMass(0.0), PointMass(1.0))])
#: One record that is counted or not, or three that are all alike.
RECORD = RecordScenario()
TRIPLETS = MarkovChainScenario([[1.0, 0.0], [0.0, 1.0]], initial=[0.5, 0.5])

FAMILIES = {
    "gaussian": {"noise": "gaussian"},
    "laplace": {"noise": "laplace"},
    "beta of 1.5": {"noise": "generalized_gaussian", "beta": 1.5},
    "beta of 3": {"noise": "generalized_gaussian", "beta": 3.0},
    "cauchy": {"noise": GeneralizedCauchyNoise(exponent=4.0)},
    "discrete": {"noise": "discrete_laplace"},
}

ACCOUNTANTS = {
    "approximate wasserstein": (
        ApproximateWasserstein(1.0, 4.0, event_delta=1e-3),
        POINTS,
    ),
    "attribute gaussian": (AttributeGaussian(1.0, alpha=4.0), POINTS),
    "distribution aware": (DistributionAwareWasserstein(**RENYI), POINTS),
    "distribution aware, delta": (DistributionAwareWasserstein(**LOOSE), POINTS),
    "general wasserstein": (GeneralWasserstein(**RENYI), POINTS),
    "kantorovich": (Kantorovich(1.0), POINTS),
    "markov quilt": (MarkovQuilt(1.0), TRIPLETS),
    "renyi dp": (RenyiDP(delta=None, **RENYI), RECORD),
    "renyi dp, delta": (RenyiDP(**LOOSE), RECORD),
    "sinkhorn wasserstein": (SinkhornWasserstein(**RENYI), POINTS),
} | {
    f"{kind.__name__}, {name}": (kind(**LOOSE, **noise), RECORD)
    for kind in (GroupPrivacy, PrivacyLoss)
    for name, noise in FAMILIES.items()
}


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_accountants(name):
    accountant, scenario = ACCOUNTANTS[name]
    release = QueryRelease(
        contribution=lambda X, y: np.asarray(X, dtype=float),
        is_sum=True,
        n_records=3,
        dim=1,
        is_integer=True,
        sensitivity=Sensitivity(add_remove={1: 1.0, 2: 1.0}),
    )
    found = accountant.calibrate(release, scenario)
    # all three follow the first, or they do not count
    counted = 3 if scenario is TRIPLETS else 1
    tables = [np.zeros((3, 1)), (np.arange(3) < counted)[:, None]]

    def worlds(noise):
        return [
            lambda n, rng, X=X: release.run(X) + noise.sample((n, 1), rng)
            for X in tables
        ]

    assert_tight(found.certificate, found.noise, worlds, seed=0, n_draws=50_000)


# -- estimators ------------------------------------------------------------------------

REPLACED, ABSENT = RecordScenario(relation="replace"), RecordScenario()
UNTOLD = RecordScenario(size="private")


def first_is(*values, rest=(0.0,) * 5):
    """Columns that differ in their first entry."""
    return [np.array([value, *rest]) for value in values]


def numbers(*values):
    """Tables of one column without a target."""
    return [(x[:, None], None) for x in first_is(*values)]


def elsewhere(*values, engine="polars", rest=(0.0, 0.0)):
    """Tables of one column that an engine holds."""
    return [
        (lazy_frame(engine, pd.DataFrame({"a": x})), None)
        for x in first_is(*values, rest=rest)
    ]


def targets(*values, x=1.0, rest=(0.0,) * 5):
    """Tables that differ in the target of a record, and perhaps in its feature."""
    features = first_is(*np.broadcast_to(x, len(values)))
    return [
        (x[:, None], y)
        for x, y in zip(features, first_is(*values, rest=rest), strict=True)
    ]


def misclassified():
    """Records that a linear classifier gets wrong whichever of two of them is there.

    Ten thousand pull one way, all well classified, so that hardly anything hinders the
    first in pulling across it, to either side, with nearly all of its gradient.
    """
    others = np.tile([-1.0, 0.0], (10_000, 1))
    along = 0.45
    across = math.sqrt(1 - along**2)
    return [
        (np.vstack([[along, side * across], others]), np.ones(10_001, dtype=int))
        for side in (-1, 1)
    ]


#: One step on all records, whose result is one noisy sum of gradients.
STEP = {
    "training": Training(
        n_steps=1,
        sampling="full_batch",
        clip_norm=0.1,
        learning_rate=1.0,
        momentum=0.0,
        average=0.0,
    ),
    "fit_intercept": False,
    "classes": [0, 1],
}
LABELS = targets(0, 1, rest=(0, 1, 0, 1, 0))

#: So many outputs show an attacker of the whole bound that noise is missing.
FEW = 1500


def turned():
    """Rows in the unit ball, of which one is turned as far as moves its products most.

    The cosine is -w**2 / 2 for the weight 1/2 of the mean.
    """
    rest = np.zeros((5, 2))
    return [
        (np.vstack([[[c, math.sqrt(1 - c**2)]], rest]), None) for c in (1.0, -1 / 8)
    ]


def without_one(value):
    """A table with a record of a value, and one without it."""
    return [(np.zeros((5, 1)), None), (np.array([[0.0] * 5 + [value]]).T, None)]


#: An estimator, a scenario, two of its tables, and how many outputs an attacker takes.
#: Of the bound of a logistic regression that is solved, which holds for any loss of
#: that slope, its table attains four fifths.
ESTIMATORS = {
    "mean": (PrivateMean(bounds=(-1, 1)), REPLACED, numbers(-1, 1), FEW),
    "scaler": (PrivateStandardScaler(bounds=(-1, 1)), REPLACED, numbers(-1, 1), FEW),
    "summary": (PrivateSummary(bounds=(-1, 1)), REPLACED, numbers(-1, 1), FEW),
    "histogram": (
        PrivateSummary(statistics=["histogram"], bounds=(-1, 1), bins=4),
        REPLACED,
        numbers(-0.9, 0.9),
        FEW,
    ),
    "quantile": (
        PrivateSummary(statistics=["quantile"], bounds=(-1, 1)),
        REPLACED,
        numbers(-0.9, 0.9),
        FEW,
    ),
    "mean, elsewhere": (
        PrivateMean(bounds=(-1, 1)),
        REPLACED,
        elsewhere(-1.0, 1.0, engine="duckdb"),
        FEW,
    ),
    "scaler, elsewhere": (
        PrivateStandardScaler(bounds=(-1, 1)),
        REPLACED,
        elsewhere(-1.0, 1.0),
        FEW,
    ),
    "histogram, elsewhere": (
        PrivateSummary(statistics=["histogram"], bounds=(-1, 1), bins=4),
        REPLACED,
        elsewhere(-0.9, 0.9),
        FEW,
    ),
    "mean, private number": (
        PrivateMean(bounds=(-1, 1)),
        UNTOLD,
        without_one(1.0),
        FEW,
    ),
    "number of records": (
        PrivateSummary(statistics=["size"], bounds=(-1, 1)),
        UNTOLD,
        without_one(0.0),
        FEW,
    ),
    "covariance, private number": (
        PrivateCovariance(bounds=(-1, 1)),
        UNTOLD,
        without_one(0.0),
        FEW,
    ),
    "ridge": (
        PrivateRidge(target_bounds=(-1, 1), fit_intercept=False),
        ABSENT,
        targets(0.0, 1.0, x=(0.0, 1.0)),
        FEW,
    ),
    "least squares": (
        PrivateLinearRegression(bounds=(-1, 1), target_bounds=(-1, 1)),
        ABSENT,
        # with the record and without
        [(x[at:], y[at:]) for at, (x, y) in enumerate(targets(1.0, 1.0))],
        FEW,
    ),
    "least squares, no number": (
        PrivateLinearRegression(schema=Schema({0: (-1, 1), "t": (-1, 1)}, target="t")),
        # that nothing is there is counted
        REPLACED,
        targets(math.nan, 1.0, x=1.0),
        FEW,
    ),
    "output perturbation": (
        OutputPerturbation(DummyRegressor(), query="constant_", sensitivity=2 / 6),
        REPLACED,
        targets(-1.0, 1.0),
        FEW,
    ),
    "logistic, solved": (
        PrivateLogisticRegression(
            solver="output", C=1.0, fit_intercept=False, classes=[0, 1], tol=1e-6
        ),
        REPLACED,
        misclassified(),
        5000,
    ),
    "gaussian bayes": (
        PrivateGaussianNB(bounds=(-1, 1), classes=[0, 1]),
        REPLACED,
        LABELS,
        FEW,
    ),
    "gaussian bayes, no class": (
        PrivateGaussianNB(bounds=(-1, 1), classes=[0, 1]),
        ABSENT,
        targets(0, 7, rest=(0, 1, 0, 1, 0)),
        FEW,
    ),
    "categorical bayes": (
        PrivateCategoricalNB(bounds=(-1, 1), n_bins=4, classes=[0, 1]),
        REPLACED,
        LABELS,
        FEW,
    ),
    "principal components": (PrivatePCA(data_norm=1.0), REPLACED, turned(), FEW),
    # a record that counts as nothing, beside one that counts as much as can be
    "summary, no level": (
        PrivateSummary(statistics=["rate"], categories={0: [0, 1]}),
        ABSENT,
        numbers(7, 1),
        FEW,
    ),
    "ridge, no target": (
        PrivateRidge(
            schema=Schema({0: (-1, 1), "t": (-1, 1)}, target="t"), fit_intercept=False
        ),
        ABSENT,
        targets(math.nan, 1.0, x=1.0),
        FEW,
    ),
    "sgd, no label": (
        PrivateSGDClassifier(**STEP),
        ABSENT,
        targets(7, 1, rest=(0, 1, 0, 1, 0)),
        FEW,
    ),
    "logistic": (PrivateLogisticRegression(**STEP), REPLACED, LABELS, FEW),
    "sgd": (PrivateSGDClassifier(**STEP), REPLACED, LABELS, FEW),
    "svc": (PrivateLinearSVC(**STEP), REPLACED, LABELS, FEW),
}


def executed(estimator, X, y):
    """Fit, and return what was executed: the validated data and the release."""
    seen, kind = [], type(estimator)
    execute = kind._execute

    def recording(self, task, release, noise, rng):
        seen.append((task, release))
        return execute(self, task, release, noise, rng)

    with mock.patch.object(kind, "_execute", recording):
        estimator.fit(X, y)
    ((task, release),) = seen
    if isinstance(release, QueryRelease):
        exact = release.run(task.X, task.y)  # the same every time
        release = replace(release, query=lambda X, y: exact)
    return task, release


#: What attains the sensitivity, and the family of the least error there.
CHOSEN = {
    "mean": (ESTIMATORS["mean"], "laplace"),
    "moments": (
        (PrivateStandardScaler(bounds=(-1, 1)), REPLACED, numbers(1, -0.5), FEW),
        "laplace",
    ),
    # at so large a delta, though one record moves two counts alone
    "histogram": (ESTIMATORS["histogram"], "gaussian"),
    "rate": (ESTIMATORS["summary, no level"], "discrete_laplace"),
}

#: They are trained anew for each output; of two that solve a ridge one will do.
LONG = ("logistic", "sgd", "sgd, no label", "svc", "ridge, no target")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LONG else ())
        for name in ESTIMATORS
    ],
)
def test_estimators(name):
    attack_estimator(*ESTIMATORS[name], PrivacyLoss(6.0, 0.05, noise="gaussian"))


@pytest.mark.parametrize("name", CHOSEN)
def test_the_noise_that_is_chosen_for_an_estimator(name):
    """Two tables as far apart as they go, at a budget that a few draws measure."""
    (estimator, scenario, tables, _), family = CHOSEN[name]
    found = attack_estimator(estimator, scenario, tables, 8000, PrivacyLoss(1.5, 0.05))
    assert found.family == family


@pytest.mark.slow
def test_what_is_released_of_a_table_that_lies_elsewhere():
    """Whole fits, whose noise is drawn for a release, and not for a test."""
    tables = [table for table, _ in elsewhere(-1.0, 1.0)]
    accountant = PrivacyLoss(6.0, 0.05, noise="gaussian")
    model = PrivateMean(REPLACED, accountant, bounds=(-1, 1))
    # outputs before any noise: of three records the others are nothing
    exact = np.array([-1.0, 1.0]) / 3
    released = [
        np.array([model.fit(table).mean_[0] for _ in range(FEW)]) for table in tables
    ]
    noise = model.noise_

    def worlds(used):
        share = np.max(used.scale) / np.max(noise.scale)
        return [
            lambda n, rng, mean=mean, means=means: mean + share * (means - mean)
            for mean, means in zip(exact, released, strict=True)
        ]

    assert_tight(
        model.certificate_,
        noise,
        worlds,
        score=lambda used: bayes_score(used, exact[:1], [1.0], exact[1:], [1.0]),
        seed=0,
        n_draws=FEW,
    )


def attack_estimator(estimator, scenario, tables, n_draws, accountant):
    """Attack what an estimator executes under two tables, and return its noise."""
    estimator = clone(estimator).set_params(scenario=scenario, accountant=accountant)
    runs = [executed(estimator, *table) for table in tables]
    noise = estimator.noise_

    quiet, rng = weakened(noise, 1e-9), np.random.default_rng(0)
    exact = [estimator._execute(*run, quiet, rng) for run in runs]
    # all that is done to the noise is linear, and the same in each coordinate
    first, second = (([point], [1.0]) for point in exact)

    # so what is drawn once can be looked at with any share of the noise
    drawn = {}

    def world(i, share):
        def draw(n, rng):
            if i not in drawn:
                outputs = [estimator._execute(*runs[i], noise, rng) for _ in range(n)]
                drawn[i] = np.stack(outputs) - exact[i]
            return exact[i] + share * drawn[i]

        return draw

    def worlds(used):
        share = np.max(used.scale) / np.max(noise.scale)
        return [world(i, share) for i in range(2)]

    assert_tight(
        estimator.certificate_,
        noise,
        worlds,
        score=lambda used: bayes_score(used, *first, *second),
        seed=0,
        n_draws=n_draws,
    )
    return noise
