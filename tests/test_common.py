"""Every estimator against scikit-learn's checks and ours."""

from inspect import signature

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import (
    estimator_checks_generator,
    parametrize_with_checks,
)

from skpuffer.accountants import PrivacyLoss
from skpuffer.base import all_or_nothing
from skpuffer.linear_model import PrivateLogisticRegression, PrivateSGDClassifier
from skpuffer.testing import all_estimators, privacy_checks
from skpuffer.testing._estimator_checks import check_interrupted_fit_leaves_nothing
from skpuffer.training import Training

ENTRIES = all_estimators()

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


#: Why a weight is no repetition of a record in some models.
BY_NUMBER = "losses are means over the public number of records, beside a penalty"
NO_REPETITION = {
    "PrivateAdditiveClassifier": "shapes are smoothed by the number of records",
    "PrivateAdditiveRegressor": "shapes are smoothed by the number of records",
    "PrivateLinearRegression": "of more columns than records noise sets the slopes",
    "PrivateLogisticRegression": BY_NUMBER,
    "PrivateMLPClassifier": "batches are drawn by record, whatever its weight",
    "PrivateRidge": BY_NUMBER,
    "PrivateSGDClassifier": BY_NUMBER,
    "PrivateSGDRegressor": BY_NUMBER,
}


def expected_failures(estimator):
    """Reasons by check: all of them are about weights."""
    if getattr(estimator, "weight_bounds", None) is None:
        return {}
    found = {"check_all_zero_sample_weights_error": "an error would tell of weights"}
    reason = NO_REPETITION.get(type(estimator).__name__)
    if reason is not None:
        found["check_sample_weight_equivalence_on_dense_data"] = reason
        found["check_sample_weight_equivalence_on_sparse_data"] = reason
    return found


def test_classes_have_few_bases():
    """Of scikit-learn's own there are six."""
    deep = {e.name: len(e.estimator_class.__mro__) for e in ENTRIES}
    assert not {name: depth for name, depth in deep.items() if depth > 14}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_constructors_take_few_parameters(entry):
    """Without exception, also where scikit-learn's search has a signature to keep."""
    assert len(signature(entry.estimator_class).parameters) <= 16


@parametrize_with_checks(
    [entry.instance for entry in ENTRIES], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def weight_checks():
    """Checks of scikit-learn about weights, without noise to speak of."""
    for entry in ENTRIES:
        model = clone(entry.instance)
        if "weight_bounds" not in model.get_params(deep=False):
            continue
        model.set_params(weight_bounds=(0, 5), accountant=PrivacyLoss(1e12, 1e-9))
        expected = expected_failures(model)
        for fresh, check in estimator_checks_generator(model, legacy=True):
            name = check.func.__name__
            if "sample_weight" not in name:
                continue
            marks = []
            if name in expected:
                marks = [
                    pytest.mark.xfail(reason=expected[name], raises=AssertionError)
                ]
            yield pytest.param(fresh, check, marks=marks, id=f"{entry.name}-{name}")


@pytest.mark.parametrize("estimator, check", [*weight_checks()])
def test_weights_are_repetitions_or_declared_to_be_none(estimator, check):
    check(estimator)


#: Estimators that share their fit with another one, and checks that take longest.
TWINS = "PrivateAdditiveRegressor", "PrivateRandomizedSearchCV"
LONG = "check_interrupted_fit_leaves_nothing", "check_no_canary_is_quoted"


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(
            check,
            id=f"{entry.name}-{name}",
            marks=[pytest.mark.slow] * (entry.name in TWINS and name in LONG),
        )
        for entry in ENTRIES
        for name, check in privacy_checks(entry.instance)
    ],
)
def test_privacy_checks(check):
    check()


@pytest.mark.parametrize(
    "estimator",
    [
        *[entry.instance for entry in ENTRIES if not privacy_checks(entry.instance)],
        PrivateSGDClassifier(training=Training(warm_start=True)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_interrupted_fits_of_others_leave_nothing_either(estimator):
    """Of those that release nothing, and where a fit goes on from another."""
    check_interrupted_fit_leaves_nothing(estimator)


MAPS = [entry for entry in ENTRIES if hasattr(entry.instance, "transform")]


@pytest.mark.parametrize("entry", MAPS, ids=lambda entry: entry.name)
def test_no_record_is_mapped_to_what_ends_the_fit_of_the_next_step(entry):
    """In a plain pipeline, whose first step is paid for by then."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1e-2, 1e-2, (60, 3)), np.arange(60) % 2
    model = clone(entry.instance)
    # next to no noise on a scale that is small
    exact = {"accountant": PrivacyLoss(1e6), "bounds": (-1e-2, 1e-2)}
    if "accountant" in model.get_params(deep=False):
        known = exact.keys() & model.get_params(deep=False)
        model.set_params(**{name: exact[name] for name in known})
    large = np.finfo(float).max
    beside = X.copy()
    beside[:3] = [large, -large, large], [large, large, 0], [-1e200, 1e160, 5e-324]
    pipeline = make_pipeline(model, PrivateLogisticRegression(classes=[0, 1]))
    pipeline.fit(beside, y)
    made, usual = (np.asarray(pipeline[0].transform(rows)) for rows in (beside, X))
    assert np.all(np.isfinite(made.astype(float)))
    np.testing.assert_allclose(made[3:], usual[3:], rtol=1e-9)


def test_a_parameter_with_an_underscore_is_no_trace_of_a_fit():
    class Named(BaseEstimator):
        def __init__(self, lambda_=1.0):
            self.lambda_ = lambda_

        @all_or_nothing
        def fit(self, X, y=None):
            self.coef_, self._rows = np.mean(X), X
            raise KeyboardInterrupt

    model = Named()
    model.note = "the user's own"
    with pytest.raises(KeyboardInterrupt):
        model.fit([[1.0]])
    assert vars(model) == {"lambda_": 1.0, "note": "the user's own"}


def test_every_package_is_listed():
    names = {entry.name for entry in ENTRIES}
    assert names >= {
        "OutputPerturbation",
        "PrivateLogisticRegression",
        "PrivateMean",
        "PrivateStandardScaler",
        "PrivateStatistic",
        "PrivateSummary",
        "PublicBinner",
        "PublicImputer",
        "PublicMinMaxScaler",
        "PublicOneHotEncoder",
        "PublicPreprocessing",
        "RowNormClipper",
    }
    for name, estimator_class, instance in ENTRIES:
        assert estimator_class.__name__ == name
        assert type(instance) is estimator_class
