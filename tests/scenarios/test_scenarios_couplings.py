"""Names of couplings: releases add up under one name, so it tells all that it is of."""

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest

from skpuffer import scenarios
from skpuffer.releases import PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import (
    Adjacency,
    AttributeScenario,
    DiffusionScenario,
    GaussianScenario,
    MarkovChainScenario,
)
from skpuffer.summary._mean import Moments
from skpuffer.utils._bounds import Bounds

N = 400
PRIOR = pd.DataFrame({"s": [0, 0, 1, 1, 2, 2], "u": [0.0, 2.0, 1.0, 3.0, 2.0, 2.5]})
SERIES = 0.5 ** np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
FLIP = np.array([[0.9, 0.1], [0.2, 0.8]])

#: By kind: what a scenario is made of, and others, of which each is another coupling.
MADE_OF = {
    "AttributeScenario": (
        AttributeScenario("s", level="record", prior=PRIOR, prior_as="law"),
        {
            "level": ["dataset"],
            "prior": [PRIOR.iloc[1:], [PRIOR, PRIOR.iloc[1:]]],
            "pairs": [[(0, 1)], [(0, 2)]],
            "prior_as": ["support"],
        },
    ),
    "AttributeScenario, units": (
        AttributeScenario(
            "s", level="record", prior=PRIOR, prior_as="law", unit="id", max_rows=2
        ),
        {"unit": ["house", None]},
    ),
    "GaussianScenario": (
        GaussianScenario(
            covariance=np.array([[1.0, 0.5], [0.5, 2.0]]),
            secret=["s"],
            domain=([0.0], [1.0]),
            columns=["s", "u"],
        ),
        {
            "covariance": [np.array([[1.0, 0.4], [0.4, 2.0]])],
            "domain": [([0.0], [2.0])],
            "level": ["dataset"],
            "secret": [["u"]],
        },
    ),
    "GaussianScenario, series": (
        GaussianScenario(
            covariance=SERIES, covariance_of="records", domain=(0, 1), columns=["u"]
        ),
        {
            "covariance": [SERIES**2],
            "domain": [(0, 2)],
            "protected": [[0], [1], [0, 1]],
        },
    ),
    "DiffusionScenario": (
        DiffusionScenario(1.0, np.linspace(0.1, 2.0, N), 1.0),
        {
            "curvature": [2.0],
            "times": [np.linspace(0.1, 3.0, N)],
            "diameter": [2.0],
        },
    ),
    "MarkovChainScenario": (
        MarkovChainScenario(FLIP),
        {
            "transition": [FLIP[::-1], FLIP[::-1, ::-1]],
            "initial": [[0.5, 0.5], [1.0, 0.0]],
            "protected": [[0], [200]],
            "event_delta": [1e-3],
        },
    ),
    "MarkovChainScenario, cuts": (
        MarkovChainScenario(FLIP, cuts={"u": [0.0]}),
        {"cuts": [{"u": [1.0]}], "times": ["t"]},
    ),
}

#: What is no part of a coupling: how a table is read, and tables that are simulated.
NO_PART = {
    *("table", "column", "columns", "target", "states", "mean", "shape"),
    *("n_draws", "random_state", "n_jobs", "verbose", "confidence", "covariance_of"),
    # all rows of a unit are coupled, however many of them are read
    "max_rows",
    # of a chain all pairs are of one coupling step by step, or of any
    "pairs",
}


def name_of(scenario, norm=2.0, middle=0.0):
    names = ("u",) if getattr(scenario, "times", None) is None else ("u", "t")
    context = PublicContext(n_records=N, n_features=len(names), feature_names=names)
    release = QueryRelease(
        contribution=Moments((0,), Bounds((middle - 5.0,), (middle + 5.0,))),
        is_sum=True,
        n_records=N,
        dim=1,
        sensitivity=Sensitivity(add_remove={1: 1.0, 2: 1.0}),
        context=context,
    )
    bound = scenario.set_params(table="visits").bind(context)
    return bound.fact(Adjacency, release, norm).coupling_id


def changed(scenario, **change):
    return type(scenario)(**scenario.get_params(deep=False) | change)


def test_every_kind_that_names_a_table_is_tried():
    kinds = {
        name
        for name in scenarios.__all__
        if inspect.isclass(getattr(scenarios, name))
        and issubclass(getattr(scenarios, name), scenarios.Scenario)
        and "table" in inspect.signature(getattr(scenarios, name)).parameters
    }
    assert kinds == {name.partition(",")[0] for name in MADE_OF}
    for kind in kinds:
        told = {key for name in MADE_OF if kind in name for key in MADE_OF[name][1]}
        asked = set(inspect.signature(getattr(scenarios, kind)).parameters)
        assert asked <= told | NO_PART


@pytest.mark.parametrize("kind", MADE_OF)
def test_no_two_couplings_share_a_name(kind):
    base, changes = MADE_OF[kind]
    base = changed(base)
    names = {"as it is": name_of(base)}
    assert "of 'visits'" in names["as it is"]
    # of equal content it is one
    assert name_of(changed(base)) == names["as it is"]
    for key, others in changes.items():
        for at, other in enumerate(others):
            names[key, at] = name_of(changed(base, **{key: other}))
    if kind == "AttributeScenario":
        # the best coupling is of a map of records, and in a norm
        names["norm"] = name_of(base, norm=1.0)
        names["map"] = name_of(base, middle=1.0)
    for (one, mine), (other, its) in itertools.combinations(names.items(), 2):
        assert mine != its, (one, other)


#: What an adjacency says of where its records are, and others.
PLACES = {
    "sequences": [
        ((0, 1), (2, 3)),
        ((0,), (1, 2, 3)),
        ((0, 1, 2), (3,)),
        ((0, 1, 2, 3),),
        ((0, 1), (3, 2)),
        ((0, 1), (2, 4)),
    ],
    "window": [2, 3, None],
    "count": [2, 3],
    "relation": ["replace", "add_remove"],
    "units": [None, "id"],
}


def test_records_that_lie_elsewhere_share_no_name():
    def name_of(**changes):
        one = {key: values[0] for key, values in PLACES.items()} | changes
        sequences = tuple(np.array(places) for places in one.pop("sequences"))
        fact = Adjacency(move=np.inf, coupling_id=None, sequences=sequences, **one)
        # a name of its own is kept
        assert fact.together("of visits") == "of visits"
        return fact.together(fact.any_coupling())

    names = [name_of()] + [
        name_of(**{key: value})
        for key, values in PLACES.items()
        for value in values[1:]
    ]
    assert len(set(names)) == len(names)
