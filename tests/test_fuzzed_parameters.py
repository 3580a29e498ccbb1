"""Extreme parameters: an error that names one, or noise and results that are finite."""

import dataclasses
import inspect
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

from skpuffer import accountants, noise
from skpuffer.accountants import Accountant
from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import CorrelatedGaussianNoise, Noise
from skpuffer.summary import PrivateMean
from skpuffer.testing import all_estimators
from skpuffer.utils import _checks

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
]

EXTREMES = (
    1e300,
    1e-300,
    5e-324,
    10**400,
    -(10**400),
    10**30,
    math.nan,
    math.inf,
    -1.0,
    0.0,
    "1",
    None,
    True,
    Decimal(1),
    Fraction(10**400),
    np.float32(0.5),
    np.array(1.0),
    np.array([1.0, np.nan]),
)

#: Those of them that nothing should ever be fitted with.
FATAL = (1e300, 5e-324, 10**400, math.nan, math.inf, "1", Decimal(1), EXTREMES[-1])

#: What takes an extreme to where no parameter of its own is named: the noise's scale.
DERIVED = ("scale", "sensitivity", "units", "n_steps")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (20, 3))
Y = np.tile([0, 1], 10)


def public(name, module, kind):
    """Classes of one kind that a package offers."""
    found = [getattr(module, each) for each in module.__all__]
    classes = [c for c in found if inspect.isclass(c) and issubclass(c, kind)]
    assert classes, name
    return [c for c in classes if not inspect.isabstract(c)]


def attempt(call, *args, **options):
    """What a call returns, and the error it raises instead."""
    try:
        return call(*args, **options), None
    except (TypeError, ValueError) as error:
        return None, error


def named(error, name):
    return any(word in str(error) for word in (name, *DERIVED))


# -- the checks themselves ----------------------------------------------------------

ONE_NUMBER = [
    getattr(_checks, name)
    for name in (
        "check_real",
        "check_positive",
        "check_extent",
        "check_non_negative",
        "check_order",
        "check_probability",
        "check_at_least_one",
        "check_share",
        "check_count",
    )
]


@pytest.mark.parametrize("check", ONE_NUMBER)
def test_checks_return_a_number_or_name_the_parameter(check):
    for value in EXTREMES:
        found, error = attempt(check, width=value)
        if error is not None:
            assert "'width'" in str(error)
            continue
        assert type(found) in (int, float)
        assert not math.isnan(found)
        assert type(value) not in (bool, str, Decimal, np.ndarray)


def test_what_cannot_be_worked_with_is_no_size():
    for value in (1e300, 5e-324, 1e71, 1e-71):
        with pytest.raises(ValueError, match=r"'width' must be in the range \[1e-70"):
            _checks.check_positive(width=value)
    assert _checks.check_positive(width=1e300, finite=False) == 1e300
    assert _checks.check_positive(width=np.float32(0.5)) == 0.5
    assert _checks.check_extent(width=0) == 0.0
    assert _checks.check_extent(width=math.inf) == math.inf
    with pytest.raises(ValueError, match="'width' must be at least 1e-300"):
        _checks.check_probability(width=5e-324)
    with pytest.raises(ValueError, match=r"'width' must be at most 2\*\*53"):
        _checks.check_count(width=10**30)


# -- noise and accountants ----------------------------------------------------------


@pytest.mark.parametrize("family", public("noise", noise, Noise))
def test_noise(family):
    needed = {CorrelatedGaussianNoise: {"covariance": np.eye(3)}}.get(family, {})
    for field in dataclasses.fields(family):
        for value in EXTREMES:
            drawn, error = attempt(family, **needed | {field.name: value})
            if error is not None:
                assert named(error, field.name), (field.name, value)
                continue
            sample = drawn.sample((3,), np.random.default_rng(0))
            assert np.all(np.isfinite(sample)), (field.name, value)
            loss, error = attempt(drawn.renyi, 2.0, 1.0)
            # a solver may find no loss, but none is said to be zero
            assert error is not None or loss > 0, (field.name, value)


@pytest.mark.parametrize("kind", public("accountants", accountants, Accountant))
def test_accountants(kind):
    for name in kind().get_params(deep=False):
        for value in EXTREMES:
            model = PrivateMean(accountant=kind(**{name: value}), bounds=(-1, 1))
            _, error = attempt(model.fit, X[:, :1])
            if error is not None:
                supported = not isinstance(error, UnsupportedError)
                assert named(error, name) or not supported, (name, value)
                assert not hasattr(model, "mean_")
                continue
            assert np.all(np.isfinite(model.mean_)), (name, value)
            assert 0 < np.min(model.noise_.std()) < math.inf
            assert 0 < model.certificate_.epsilon < math.inf


# -- estimators ---------------------------------------------------------------------

#: Not numbers, or of no weight for the noise.
OTHERS = {
    "accountant",
    "columns",
    "dtype",
    "estimator",
    "n_jobs",
    "query",
    "random_state",
    "reference",
    "scenario",
    "statistics",
    "transformer",
    "unlabeled",
    "verbose",
    "warm_start",
}


@pytest.mark.parametrize("entry", all_estimators(), ids=lambda entry: entry.name)
def test_estimators(entry):
    arguments = (X, Y) if get_tags(entry.instance).target_tags.required else (X,)
    for name in sorted(set(entry.instance.get_params(deep=False)) - OTHERS):
        givens = FATAL
        if "bounds" in name:
            givens = [pair for v in EXTREMES for pair in ((-1, v), (v, 1))]
        for given in givens:
            model = clone(entry.instance).set_params(**{name: given})
            _, error = attempt(model.fit, *arguments)
            if error is not None:
                assert named(error, name), (name, given, error)
                continue
            certificate = getattr(model, "certificate_", None)
            if certificate is not None:
                assert 0 < certificate.epsilon < math.inf, (name, given)
                assert np.all(np.isfinite(model.noise_.std())), (name, given)
            for attribute in ("coef_", "intercept_", "mean_", "scale_"):
                made = getattr(model, attribute, 0.0)
                assert np.all(np.isfinite(made)), (name, given, attribute)
