"""Every estimator against scikit-learn's checks and ours."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpuffer.utils import all_estimators
from skpuffer.utils.estimator_checks import privacy_checks

ENTRIES = all_estimators()

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


def expected_failures(estimator):
    return {}


@parametrize_with_checks(
    [entry.instance for entry in ENTRIES], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{entry.name}-{name}")
        for entry in ENTRIES
        for name, check in privacy_checks(entry.instance)
    ],
)
def test_privacy_checks(check):
    check()


def test_every_package_is_listed():
    names = {entry.name for entry in ENTRIES}
    assert names >= {
        "OutputPerturbation",
        "PrivateLogisticRegression",
        "PrivateMean",
        "PrivateStandardScaler",
        "PrivateSummary",
        "PublicOneHotEncoder",
        "PublicPreprocessing",
        "RowNormClipper",
    }
    for name, estimator_class, instance in ENTRIES:
        assert estimator_class.__name__ == name
        assert type(instance) is estimator_class
