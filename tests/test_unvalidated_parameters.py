"""Parameters that a promise rests on are checked by plain code.

Whatever scikit-learn's switch for the validation of parameters says: with it off, these
checks are all that stands between a slip and too little noise.
"""

import math

import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression, Ridge

from skpuffer.accountants import PrivacyLoss
from skpuffer.compose import OutputPerturbation, PrivatePipeline
from skpuffer.scenarios import DependenceScenario, RecordScenario
from skpuffer.summary import (
    PrivateCDF,
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateStatistic,
    PrivateSummary,
)

BOUNDS = {"bounds": (-1, 1)}


def fitted_vector(**given):
    return OutputPerturbation(Ridge(), **({"sensitivity": 0.1} | given))


def statistic(**given):
    return PrivateStatistic(**({"sensitivity": 0.1} | given))


def two_steps(**given):
    steps = [("one", PrivateStandardScaler(**BOUNDS)), ("two", PrivateMean(**BOUNDS))]
    return PrivatePipeline(steps, **given)


NOT_POSITIVE = (0.0, -1.0, math.inf, math.nan)
BAD_BOUNDS = ((1, -1), (0, 0), (0, math.inf), (math.nan, 1), "range", (1, 2, 3))
BAD_UNITS = ([1.0, 0.0], [1.0, -1.0], [1.0, math.nan], [[1.0, 1.0]], [])
REFUSED = [
    *[
        (make(sensitivity=bad), "'sensitivity'")
        for make in (fitted_vector, statistic)
        for bad in NOT_POSITIVE
    ],
    *[
        (make(units=bad), "'units'")
        for make in (fitted_vector, statistic)
        for bad in BAD_UNITS
    ],
    *[
        (make(n_outputs=bad), "'n_outputs'")
        for make in (fitted_vector, statistic)
        for bad in (0, -1, 1.5)
    ],
    *[
        (make(n_outputs=3, units=[1.0, 1.0]), "'units' has 2 entries")
        for make in (fitted_vector, statistic)
    ],
    *[
        (make(sensitivity=None), "give the parameter 'sensitivity'")
        for make in (fitted_vector, statistic)
    ],
    *[(fitted_vector(lipschitz=bad), "'lipschitz'") for bad in NOT_POSITIVE],
    *[(fitted_vector(query=bad), "'query'") for bad in ([], [3], ["coef_", 3])],
    (
        OutputPerturbation(LogisticRegression(), lipschitz=1.0, sensitivity=None),
        "give the parameter 'sensitivity'",
    ),
    (
        # records move only so far, but a label that changes is no small move
        OutputPerturbation(
            LogisticRegression(), scenario=DependenceScenario(0.1), lipschitz=1.0
        ),
        "says nothing of records whose label changes",
    ),
    (statistic(statistic="mean"), "'statistic' must be a function"),
    *[
        (kind(bounds=bad), "'bounds'")
        for kind in (
            PrivateMean,
            PrivateStandardScaler,
            PrivateQuantile,
            PrivateCDF,
            PrivateSummary,
        )
        for bad in BAD_BOUNDS
    ],
    (PrivateStandardScaler(with_mean=False, with_std=False, **BOUNDS), "nothing"),
    *[
        (PrivateQuantile(quantiles=bad, **BOUNDS), "'quantiles'")
        for bad in (0.0, 1.0, -0.1, math.nan, [0.5, 1.5], [], [[0.5]])
    ],
    *[
        (PrivateQuantile(resolution=bad, **BOUNDS), "'resolution'")
        for bad in (*NOT_POSITIVE, [1.0, 0.0], [[0.1]])
    ],
    *[
        (PrivateCDF(bins=bad, **BOUNDS), "'bins'")
        for bad in (1, 0, 2.5, [0, 1], [0, 1, 1], [0, math.inf, 9], [[0, 1, 2]], 2**21)
    ],
    *[
        (PrivateSummary(statistics=["histogram"], bins=bad, **BOUNDS), "'bins'")
        for bad in (0, -1, 2.5, [0], [0, 1, 1], [0, math.inf], {0: [1, 0]}, {0: 0})
    ],
    *[
        (PrivateSummary(statistics=["quantile"], quantiles=bad, **BOUNDS), "'quantile")
        for bad in (0.0, 1.0, [0.5, 2.0], math.nan)
    ],
    *[
        (PrivateSummary(statistics=bad, **BOUNDS), "'statistics'")
        for bad in ("range", ["mean", "most"], [], {0: ["most"]})
    ],
    *[
        (PrivateSummary(by=0, categories=bad, **BOUNDS), "'categories'")
        for bad in ({0: "ab"}, {0: []}, {0: [1, 1]}, {0: [None, math.nan]})
    ],
    *[
        (two_steps(shares=bad), "shares")
        for bad in ({"one": 1.0}, {"one": 1.0, "two": 0.0}, {"one": 1.0, "two": -1.0})
    ],
    *[(two_steps(row_wise=bad), "'row_wise'") for bad in ("one", 3, ["three"])],
    *[
        (PrivateMean(accountant=PrivacyLoss(**bad), **BOUNDS), "epsilon|delta")
        for bad in ({"epsilon": 0.0}, {"epsilon": math.nan}, {"delta": 1.0})
    ],
    *[(PrivateMean(RecordScenario(k=bad), **BOUNDS), "'k'") for bad in (0, -1, 1.5)],
    (PrivateMean(RecordScenario(relation="none"), **BOUNDS), "'relation'"),
    (PrivateMean("record", **BOUNDS), "'scenario' must be an instance of Scenario"),
    (PrivateMean(accountant=1.0, **BOUNDS), "'accountant' must be an instance"),
]


@pytest.mark.parametrize("model, said", REFUSED, ids=[said for _, said in REFUSED])
def test_they_are_checked_before_any_row_is_read(model, said):
    with (
        config_context(skip_parameter_validation=True),
        pytest.raises((ValueError, TypeError), match=said),
    ):
        model.fit("no table")
    assert not [name for name in vars(model) if name.endswith("_")]
