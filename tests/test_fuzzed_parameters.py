"""Extreme parameters: an error that names one, or noise and results that are finite."""

import dataclasses
import inspect
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.utils import get_tags

from skpuffer import accountants, noise, scenarios
from skpuffer.accountants import (
    Accountant,
    GeneralWasserstein,
    GroupPrivacy,
    MarkovQuilt,
)
from skpuffer.distributions import (
    Continuous,
    Discrete,
    Gaussian,
    PointMass,
    Samples,
    Support,
    distribution_distance,
)
from skpuffer.exceptions import ScenarioError, UnsupportedError
from skpuffer.kernel import numbers
from skpuffer.kernel.numbers import lengths_of
from skpuffer.noise import CorrelatedGaussianNoise, DegenerateGaussianNoise, Noise
from skpuffer.scenarios import Scenario
from skpuffer.summary import PrivateMean
from skpuffer.testing import all_estimators
from skpuffer.training import Training
from tests.refused import refused

from .gaussian_bound import GaussianBound

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
    getattr(numbers, name)
    for name in (
        "check_real",
        "check_positive",
        "check_extent",
        "check_non_negative",
        "check_order",
        "check_probability",
        "check_at_least_one",
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
        with refused(
            ValueError, "parameter.size_not_workable", name="width", least=1e-70
        ):
            numbers.check_positive(width=value)
    assert numbers.check_positive(width=1e300, finite=False) == 1e300
    assert numbers.check_positive(width=np.float32(0.5)) == 0.5
    assert numbers.check_extent(width=0) == 0.0
    assert numbers.check_extent(width=math.inf) == math.inf
    with refused(
        ValueError,
        "parameter.probability_too_small",
        name="width",
        least_probability=1e-300,
    ):
        numbers.check_probability(width=5e-324)
    with refused(ValueError, "parameter.count_beyond_floats", name="width"):
        numbers.check_count(width=10**30)


# -- noise and accountants ----------------------------------------------------------


@pytest.mark.parametrize("family", public("noise", noise, Noise))
def test_noise(family):
    needed = {
        CorrelatedGaussianNoise: {"covariance": np.eye(3)},
        DegenerateGaussianNoise: {"factor": np.eye(3)[:, :2]},
    }.get(family, {})
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


# -- scenarios ----------------------------------------------------------------------

#: What no table of numbers is, besides.
ODD = (
    *EXTREMES,
    object(),
    [],
    {},
    1j,
    [None],
    [[1], [1, 2]],
    [0.0, 5e-324],
    [-5e-324, 5e-324],
    [0.0, 10**400],
    [[0.0, 1e300]] * 4,
    [[0.0, 5e-324]] * 4,
    [[1, 5e-324], [5e-324, 1]],
    [["a", "b"]],
    np.array([[1.0, np.nan], [0.0, 1.0]]),
    np.ma.masked_array([1.0, 0.0], [True, False]),
    lambda *given: None,
)

CHAIN = {"transition": [[0.9, 0.1], [0.2, 0.8]], "states": [0.0, 1.0]}
HALF = [0.5, 0.5]

#: Parameters that are in order, for a table of four records of one number.
SOUND = {
    scenarios.AttributeScenario: [
        {"column": 0, "level": "record", "prior": np.eye(2), "prior_as": "law"},
        {"column": 0, "level": "dataset", "prior": lambda rng: np.eye(2)},
    ],
    scenarios.BayesianNetworkScenario: [
        {
            "parents": {0: (), 1: (0,), 2: (), 3: ()},
            "tables": {0: HALF, 1: [HALF, [0.4, 0.6]], 2: HALF, 3: HALF},
        },
        {
            "parents": {0: (), 1: (0,)},
            "tables": {0: HALF, 1: [HALF, [0.4, 0.6]]},
            "level": "attribute",
            "moves": {0: 1.0, 1: 1.0},
        },
    ],
    scenarios.BlocksScenario: [
        {"scenario": scenarios.MarkovChainScenario(**CHAIN), "sizes": 2}
    ],
    scenarios.DependenceScenario: [{"distance": 0.5}],
    scenarios.DiffusionScenario: [
        {"curvature": 0.5, "times": [1, 2, 3, 4], "diameter": 1.0}
    ],
    scenarios.GaussianScenario: [
        {
            "covariance": np.eye(4) + 0.5,
            "covariance_of": "records",
            "domain": HALF + [1],
            "shape": "points",
        },
        {
            "covariance": [[1.0]],
            "secret": 0,
            "domain": 1.0,
            "shape": "ball",
            "level": "dataset",
        },
        {"mean": [0.0], "covariance": [[1.0]], "secret": 0, "domain": (-1, 1)},
    ],
    scenarios.GroupScenario: [
        {"column": 0, "prior": np.array([[0, 0.0], [0, 0.5], [1, 0.5], [1, 1.0]])},
        {
            "column": 0,
            "prior": lambda rng: np.array([[0, 0.0], [0, 0.5], [1, 0.5], [1, 1.0]]),
            "n_worlds": 4,
        },
    ],
    scenarios.JointTableScenario: [
        {"tables": [[0, 0, 0, 0], [1, 1, 1, 1]], "probabilities": HALF}
    ],
    scenarios.LawsScenario: [{"laws": [(PointMass(0), PointMass(1))]}],
    scenarios.MarkovChainScenario: [
        {**CHAIN, "initial": HALF},
        {**CHAIN, "states": None, "cuts": {0: [0.5]}},
    ],
    scenarios.PrevalenceScenario: [
        {"column": 0, "low": 1, "high": 2},
        {"column": "x", "low": 0.25, "high": 0.5, "law": "binomial"},
    ],
    scenarios.RecordScenario: [{}],
    scenarios.SimulatorScenario: [
        {
            "draw": lambda secret, rng: np.array([[secret]] * 4),
            "draw_pair": lambda a, b, rng: np.array([[[a]] * 4, [[b]] * 4]),
            "secrets": [0.0, 0.5],
            "n_draws": 4,
            "confidence": 0.9,
        }
    ],
    scenarios.SubsampleScenario: [
        {"size": 2, "n_subsets": 8},
        {"size": 0.5, "prior": "sampled", "n_subsets": 4, "independent": True},
        {"pool": np.zeros((6, 1)), "size": 4, "prior": "enumerated"},
        {"size": 2, "prior": "enumerated", "secret": "groups", "groups": [0, 0, 1, 1]},
    ],
}

#: What names a parameter by what it is: its values are read as public rows, and no
#: other node may be left.
OTHERWISE = {
    "prior": ["public rows"],
    "secrets": ["public rows"],
    "protected": ["No protected node"],
}

CASES = [
    pytest.param(kind, sound, name, id=f"{kind.__name__}-{number}-{name}")
    for kind in public("scenarios", scenarios, Scenario)
    for number, sound in enumerate(SOUND[kind])
    for name in kind(**sound).get_params(deep=False)
]


def fitted(scenario):
    """A model under a scenario, by the first accountant that knows what it offers."""
    known = GroupPrivacy(), GeneralWasserstein(), MarkovQuilt(), GaussianBound()
    for accountant in known:
        model = PrivateMean(scenario, accountant, bounds=(-1, 1))
        _, error = attempt(model.fit, np.zeros((4, 1)))
        if not isinstance(error, UnsupportedError):
            break
    return model, error


@pytest.mark.parametrize("kind, sound, name", CASES)
def test_scenarios(kind, sound, name):
    _, error = fitted(kind(**sound))
    assert error is None
    for value in ODD:
        model, error = fitted(kind(**sound | {name: value}))
        if error is not None:
            words = f"'{name}'", "'sensitivity'", *OTHERWISE.get(name, ())
            assert any(word in str(error) for word in words), (value, error)
            assert not hasattr(model, "mean_")
            continue
        assert np.all(np.isfinite(model.mean_)), value
        assert 0 < np.min(model.noise_.std()) < math.inf, value
        promised = model.certificate_
        spent = promised.epsilon or promised.mutual_information
        assert 0 < spent < math.inf, value


#: Values, and parameters that are sensitivities already, which may be smaller.
VALUES = [
    (scenarios.DiffusionScenario, "curvature", lambda size: size),
    (scenarios.DiffusionScenario, "diameter", lambda size: size),
    (scenarios.DiffusionScenario, "times", lambda size: [0, size]),
    (scenarios.GaussianScenario, "mean", lambda size: [size]),
    (scenarios.GaussianScenario, "covariance", lambda size: [[size]]),
    (scenarios.GaussianScenario, "domain", lambda size: (-size, size)),
    (scenarios.GaussianScenario, "domain", lambda size: (0, size)),
    (scenarios.JointTableScenario, "tables", lambda size: [[0, 0], [size, 0]]),
    (scenarios.MarkovChainScenario, "states", lambda size: [0, size]),
]


EXTENTS = [
    (scenarios.BayesianNetworkScenario, "moves", lambda size: {0: 1.0, 1: size}),
    (scenarios.DependenceScenario, "distance", lambda size: size),
]


@pytest.mark.parametrize(
    "kind, name, made, least",
    [(*one, 1e-71) for one in VALUES] + [(*one, 1e-151) for one in EXTENTS],
)
def test_scenarios_state_sizes_that_noise_can_cover(kind, name, made, least):
    for size in (5e-324, least, 1e71, 1e300, 10**400):
        scenario = kind(**SOUND[kind][-1] | {name: made(size)})
        with pytest.raises(ValueError, match=f"'{name}'"):
            scenario.check()


@pytest.mark.parametrize("size", [5e-324, 1e-71, 1e71, 1e300])
def test_distributions_are_of_sizes_that_noise_can_cover(size):
    for distribution in (
        PointMass(size),
        Discrete([0, size]),
        Samples([[0, 1], [0, size]]),
        Support([size, -size]),
        Gaussian(size, 1.0),
        *([Gaussian(0.0, size)] if size > 1 else []),
        Continuous(stats.uniform(0, size)),
        Continuous(stats.norm(0, size)),
    ):
        scenario = scenarios.LawsScenario([(distribution, distribution)])
        with refused(ScenarioError, "laws.distribution_out_of_range"):
            scenario.check()


@pytest.mark.parametrize(
    "made, name",
    [
        (lambda: PointMass(10**400), "point"),
        (lambda: Discrete([0, 10**400]), "points"),
        (lambda: Discrete([0, 1], [1, 10**400]), "weights"),
        (lambda: Gaussian(10**400, 1.0), "mean"),
        (lambda: Gaussian(0.0, 10**400), "covariance"),
    ],
)
def test_numbers_beyond_floats_are_none_of_a_distribution(made, name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        made()


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-100, 1e100, 1e300])
@pytest.mark.parametrize("norm", [1, 2, 3, math.inf])
def test_a_distance_vanishes_where_nothing_moves_only(size, norm):
    still, moved = np.zeros((2, 2)), np.array([[0.0, 0.0], [0.0, size]])
    assert lengths_of(moved, norm) == pytest.approx([0, size], rel=1e-3, abs=0)
    assert lengths_of(still, norm).tolist() == [0, 0]
    for kind in (Discrete, Samples, Support):
        found = distribution_distance(kind(still), kind(moved), norm)
        assert found == pytest.approx(size, rel=1e-3, abs=0)
    found = distribution_distance(Gaussian(0.0, 1.0), Gaussian(size, 1.0), norm)
    assert found == size


def test_a_dependence_that_has_faded_leaves_no_release_without_noise():
    # the value of one column moves the other by less than can be squared
    for shape, domain in (("box", (0, 1)), ("ball", 1.0), ("points", (0, 1))):
        for faint in (5e-324, 1e-200):
            scenario = scenarios.GaussianScenario(
                covariance=[[1.0, faint], [faint, 1.0]],
                secret=0,
                domain=domain,
                shape=shape,
            )
            _, error = fitted(scenario)
            assert "'sensitivity'" in str(error)


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
    names = set(entry.instance.get_params(deep=False)) - OTHERS
    if "training" in names:
        names |= {f"training__{name}" for name in set(Training().get_params()) - OTHERS}
    for name in sorted(names):
        givens = FATAL
        if "bounds" in name:
            givens = [pair for v in EXTREMES for pair in ((-1, v), (v, 1))]
        for given in givens:
            model = clone(entry.instance).set_params(**{name: given})
            _, error = attempt(model.fit, *arguments)
            if error is not None:
                assert named(error, name.rpartition("__")[2]), (name, given, error)
                continue
            certificate = getattr(model, "certificate_", None)
            if certificate is not None:
                assert 0 < certificate.epsilon < math.inf, (name, given)
                assert np.all(np.isfinite(model.noise_.std())), (name, given)
            for attribute in ("coef_", "intercept_", "mean_", "scale_"):
                made = getattr(model, attribute, 0.0)
                assert np.all(np.isfinite(made)), (name, given, attribute)
