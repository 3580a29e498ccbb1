"""Privacy parameters are checked by plain code, whatever scikit-learn is set to."""

import math

import numpy as np
import pandas as pd
import pytest
import sklearn

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, Support
from skpuffer.distributions import PointMass
from skpuffer.exceptions import (
    InfiniteDistanceError,
    ScenarioError,
    Statement,
    UnsupportedError,
)
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.releases import PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import (
    AttributeScenario,
    JointTableScenario,
    LawsScenario,
    RecordScenario,
)
from tests.refused import refused, says

LAWS = LawsScenario([(PointMass(0.0), PointMass(1.0))])
KINDS = pytest.mark.parametrize("kind", [GeneralWasserstein, GroupPrivacy])


def release(**options):
    options = {
        "query": lambda X, y: X.mean(axis=0),
        "n_records": 4,
        "dim": 1,
        "sensitivity": Sensitivity(add_remove={1: 0.25, 2: 0.25}),
    } | options
    return QueryRelease(**options)


@pytest.fixture(params=[False, True], ids=["", "validation skipped"], autouse=True)
def validation(request):
    with sklearn.config_context(skip_parameter_validation=request.param):
        yield


@KINDS
@pytest.mark.parametrize(
    "options, said",
    [
        ({"epsilon": 0}, Statement("parameter.not_positive", name="epsilon")),
        ({"epsilon": -1.0}, Statement("parameter.not_positive", name="epsilon")),
        ({"epsilon": math.inf}, Statement("parameter.not_positive", name="epsilon")),
        ({"epsilon": math.nan}, Statement("parameter.is_nan", name="epsilon")),
        ({"epsilon": None}, Statement("parameter.not_real_number", name="epsilon")),
        ({"epsilon": "1"}, Statement("parameter.not_real_number", name="epsilon")),
        ({"epsilon": True}, Statement("parameter.not_real_number", name="epsilon")),
        ({"alpha": 1}, Statement("parameter.renyi_order_out_of_range", name="alpha")),
        ({"alpha": 0.5}, Statement("parameter.renyi_order_out_of_range", name="alpha")),
        ({"alpha": math.nan}, Statement("parameter.is_nan", name="alpha")),
        ({"alpha": 2.0, "delta": 1e-5}, Statement("parameter.alpha_and_delta_both")),
        (
            {"alpha": math.inf, "noise": "gaussian"},
            Statement("noise.family_not_pure"),
        ),
        ({"delta": 0}, Statement("parameter.probability_out_of_range", name="delta")),
        ({"delta": 1.0}, Statement("parameter.probability_out_of_range", name="delta")),
        (
            {"delta": -0.1},
            Statement("parameter.probability_out_of_range", name="delta"),
        ),
        ({"delta": 1.5}, Statement("parameter.probability_out_of_range", name="delta")),
        ({"delta": math.nan}, Statement("parameter.is_nan", name="delta")),
        ({"noise": "cauchy"}, Statement("parameter.option_unknown", name="noise")),
        ({"noise": None}, Statement("parameter.option_unknown", name="noise")),
        ({"noise": GaussianNoise((1.0, 2.0))}, Statement("noise.several_scales")),
    ],
    ids=repr,
)
def test_bad_budget(kind, options, said):
    accountant = kind(**options)
    for attempt in (
        accountant.check,
        lambda: accountant.calibrate(release(), RecordScenario()),
        lambda: accountant.certify(GaussianNoise(1.0), release(), RecordScenario()),
    ):
        with refused((ValueError, TypeError), said.code, **said.parameters):
            attempt()


@KINDS
@pytest.mark.parametrize("scenario", [None, "record", 3, RecordScenario, object()])
def test_not_a_scenario(kind, scenario):
    for attempt in (
        lambda: kind().calibrate(release(), scenario),
        lambda: kind().certify(GaussianNoise(1.0), release(), scenario),
        lambda: kind().supports(release(), scenario),
    ):
        with refused(TypeError, "scenario.not_a_scenario"):
            attempt()


@KINDS
@pytest.mark.parametrize("noise", [None, 1.0, "gaussian", GaussianNoise])
def test_not_a_noise(kind, noise):
    with refused(TypeError, "noise.not_a_noise"):
        kind().certify(noise, release(), RecordScenario())


@KINDS
@pytest.mark.parametrize(
    "options, said",
    [
        ({"k": 0}, Statement("parameter.count_too_small", name="k")),
        ({"k": 1.5}, Statement("parameter.count_too_small", name="k")),
        ({"k": math.inf}, Statement("parameter.count_too_small", name="k")),
        ({"relation": "swap"}, Statement("parameter.option_unknown", name="relation")),
    ],
    ids=repr,
)
def test_bad_record_scenario(kind, options, said):
    with refused(ValueError, said.code, **said.parameters):
        kind().calibrate(release(), RecordScenario(**options))


def test_a_release_without_bounds():
    with refused(UnsupportedError, "accountant.remedy_bound_record"):
        GroupPrivacy().calibrate(release(sensitivity=None), RecordScenario())
    with refused(InfiniteDistanceError, "release.vector_length_unknown"):
        GroupPrivacy().calibrate(
            release(sensitivity=Sensitivity(add_remove={})), RecordScenario()
        )
    # an l2 bound is none in l1 where the dimension is not known
    with refused(InfiniteDistanceError, "release.vector_length_unknown"):
        GroupPrivacy(noise="laplace").calibrate(
            release(sensitivity=Sensitivity(add_remove={2: 1.0}), dim=None),
            RecordScenario(),
        )


def test_who_would_do_instead():
    support = GroupPrivacy().supports(release(), LAWS)
    assert isinstance(support, Support) and not support
    reason = str(support.reason)
    for word in ("GroupPrivacy", "Adjacency", "LawsScenario", "OutputDistributions"):
        assert word in reason
    assert says(support.reason, "accountant.remedy_other_accountants")
    assert "GeneralWasserstein" in reason
    with refused(UnsupportedError, "accountant.remedy_other_accountants"):
        GroupPrivacy().calibrate(release(), LAWS)
    assert GeneralWasserstein().supports(release(), LAWS) == Support(True)


def test_a_scenario_of_another_table_is_not_supported():
    tables = JointTableScenario([[0, 0], [1, 1]], [0.5, 0.5])
    for kind in (GroupPrivacy, GeneralWasserstein):
        support = kind().supports(release(n_records=60), tables)
        assert not support
        assert says(support.reason, "joint.record_count_differs", n_records=60)
        with refused(ScenarioError, "joint.record_count_differs", n_records=60):
            kind().calibrate(release(n_records=60), tables)
        assert kind().supports(release(n_records=2), tables)
        # what fits no table at all is a mistake, whatever is to be released
        with refused(ScenarioError, "parameter.array_not_finite", name="tables"):
            kind().supports(release(), JointTableScenario("tables", [0.5, 0.5]))


def test_a_noise_of_another_dimension():
    with refused(ValueError, "noise.shift_dimension_mismatch", noise_dim=2):
        GeneralWasserstein().certify(GaussianNoise([1.0, 2.0]), release(), LAWS)


def test_no_noise_covers_no_shift():
    nothing = GeneralWasserstein().certify(GaussianNoise(0.0), release(), LAWS)
    assert nothing.epsilon == math.inf
    for delta in (1e-5, 0.5):
        assert nothing.to_approximate(delta).epsilon == math.inf


def test_a_noise_that_the_accountant_would_not_have_chosen():
    """What is certified is the noise at hand, in its own norm."""
    accountant = GeneralWasserstein(alpha=2, noise="gaussian")
    certificate = accountant.certify(LaplaceNoise(2.0), release(), LAWS)
    assert certificate.norm == 1.0
    assert certificate.epsilon == LaplaceNoise(2.0).renyi(2, 1.0)


def test_a_scenario_bound_to_another_table():
    """The number of records is a public fact; that of another table is none."""
    table = pd.DataFrame({"s": [0, 1], "x": [0.0, 1.0]})
    scenario = AttributeScenario("s", level="dataset", prior=table, prior_as="law")

    def total(n):
        return QueryRelease(
            contribution=lambda X, y: np.asarray(X, dtype=float),
            is_sum=True,
            n_records=n,
            dim=1,
        )

    bound = scenario.bind(PublicContext(n_records=2))
    for kind in (GeneralWasserstein, GroupPrivacy):
        assert kind().calibrate(total(2), bound).certificate.sensitivity == 2.0
        assert kind().calibrate(total(50), scenario).certificate.sensitivity == 50.0
        with refused(
            ValueError, "scenario.bound_to_other_record_count", n_bound=2, n_release=50
        ):
            kind().calibrate(total(50), bound)
        with refused(
            ValueError, "scenario.bound_to_other_record_count", n_bound=2, n_release=50
        ):
            kind().certify(GaussianNoise(1.0), total(50), bound)


def test_delta_left_to_the_noise():
    table = pd.DataFrame({"s": [0, 1] * 500, "x": [0.0, 1.0] * 500})
    scenario = AttributeScenario(
        "s", level="record", prior=table, prior_as="confidence"
    )
    total = QueryRelease(
        contribution=lambda X, y: np.asarray(X, dtype=float),
        is_sum=True,
        n_records=3,
        dim=1,
    )
    accountant = GeneralWasserstein(epsilon=1.0, delta=1e-5)
    for attempt in (
        lambda: accountant.calibrate(total, scenario),
        lambda: accountant.certify(GaussianNoise(1.0), total, scenario),
    ):
        with refused(ValueError, "event.mass_above_delta"):
            attempt()
