"""Simulations are done once for each fit, and never shared by mistake."""

import gc
import weakref

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skpuffer.accountants import GeneralWasserstein
from skpuffer.compose import OutputPerturbation
from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.exceptions import PrivacyWarning, ScenarioError
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios import (
    AttributeScenario,
    CoupledSamples,
    GroupScenario,
    OutputDistributions,
    SimulatorScenario,
)
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{PrivacyWarning.__module__}.PrivacyWarning"
)

N = 30
RNG = np.random.default_rng(0)
PUBLIC = pd.DataFrame(
    {
        "group": np.repeat(["a", "b", "c"], 20),
        "x": RNG.normal(size=60) + np.repeat([0.0, 0.3, 1.0], 20),
        "z": RNG.normal(size=60),
        "label": np.tile([0, 1], 30),
    }
)
PRIVATE = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["x", "z"])
LABEL = pd.Series(np.tile([0, 1], N // 2), name="label")


class Counted(LogisticRegression):
    """A model that counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).fits += 1
        return super().fit(X, y, sample_weight)


@pytest.fixture(autouse=True)
def from_nothing():
    gc.collect()
    MEMORY.clear()
    Counted.fits = 0


def draw(secret, rng):
    return rng.normal(secret, size=(N, 2)), rng.permutation(LABEL)


def draw_pair(first, second, rng):
    rows, labels = draw(0, rng)
    return (rows + first, labels), (rows + second, labels)


def simulators(name):
    """A scenario, and how many tables it simulates."""
    return {
        "group worlds": (GroupScenario("group", prior=PUBLIC, n_worlds=6), 18),
        "group points": (GroupScenario("group", prior=PUBLIC), 3),
        "attribute": (
            AttributeScenario("group", level="dataset", prior=PUBLIC, n_draws=4),
            24,
        ),
        "one record": (
            AttributeScenario("group", level="record", prior=PUBLIC, n_draws=4),
            24,
        ),
        "draw": (SimulatorScenario(draw, secrets=[0, 1], n_draws=5), 20),
        "draw_pair": (
            SimulatorScenario(draw, draw_pair, secrets=[0, 1], n_draws=5),
            10,
        ),
    }[name]


NAMES = ["group worlds", "group points", "attribute", "one record", "draw", "draw_pair"]


def model(scenario, estimator=None, query="coef_", **options):
    return OutputPerturbation(
        Counted() if estimator is None else estimator,
        query,
        scenario,
        GeneralWasserstein(),
        classes=[0, 1],
        **options,
    )


def fit(estimator, **changes):
    rows = PRIVATE
    if isinstance(estimator.scenario, SimulatorScenario):
        rows = PRIVATE.to_numpy()
    before = Counted.fits
    clone(estimator).set_params(**changes).fit(rows, LABEL)
    return Counted.fits - before - 1  # the fit on the private table


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_simulates_once_and_no_other_fit_shares_it(name):
    scenario, n_tables = simulators(name)
    of = model(scenario)
    # search and proof ask for one simulation
    fits = [fit(of), fit(of, accountant__noise="laplace"), fit(of)]
    assert fits == [n_tables] * 3


FACTOR = 1.0


class Read:
    """Code whose result is no matter of its content alone."""

    def __call__(self, X, y=None):
        return FACTOR * np.asarray(X, dtype=float)


@pytest.mark.parametrize("part", ["query", "draw", "contribution"])
def test_code_that_reads_something_else_is_run_again(part, monkeypatch):
    if part == "draw":

        def draw(secret, rng):
            return rng.normal(FACTOR * secret, size=(N, 2)), rng.permutation(LABEL)

        scenario = SimulatorScenario(draw, secrets=[0, 5], n_draws=20)
    else:
        scenario = AttributeScenario("group", level="record", prior=PUBLIC, n_draws=4)
    read = Read()
    shape = {"query": lambda X, y: read(X).mean(axis=0)}
    if part == "contribution":
        shape = {"contribution": read, "is_sum": True}
    release = QueryRelease(
        **({"query": lambda X, y: X.mean(axis=0)} | shape),
        n_records=N,
        dim=2,
        context=PublicContext(
            n_records=N,
            feature_names=None if part == "draw" else ("x", "z"),
            n_features=2,
            target_name="label",
        ),
    )
    accountant = GeneralWasserstein(epsilon=1.0)

    def scale():
        return accountant.calibrate(release, scenario).noise.scale

    before = scale()
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert scale() > 2 * before


def test_private_rows_as_a_prior_are_not_remembered():
    scenario, _ = simulators("attribute")
    of = model(scenario).set_params(scenario__prior="empirical")
    table = PUBLIC.drop(columns="label")
    for _ in range(2):
        before = Counted.fits
        clone(of).set_params(scenario__level="record").fit(table, PUBLIC["label"])
        assert Counted.fits == before + 24 + 1
        assert len(MEMORY) == 0


def test_shapes_are_checked():
    def query(fitted):
        # as many numbers as the largest coefficient has digits before its point
        return fitted.coef_[0, 0] * np.ones(1 + int(abs(fitted.coef_).max() > 50))

    of = model(
        GroupScenario("group", prior=PUBLIC, n_worlds=3),
        LogisticRegression(C=1e10, tol=1e-8, max_iter=10_000),
        query,
    )
    apart = PRIVATE.assign(x=np.where(LABEL == 1, 1e-2, -1e-2), z=0.0)
    with refused(ValueError, "query.shape_depends_on_records"):
        clone(of).fit(apart, LABEL)


@pytest.mark.slow
def test_processes_find_what_one_finds():
    """Whatever the query is: closures go to other processes as well."""
    factor = 2.0

    def facts(n_jobs):
        MEMORY.clear()
        release = QueryRelease(
            query=lambda X, y: factor * X.mean(axis=0),
            n_records=N,
            dim=2,
            context=PublicContext(
                n_records=N, feature_names=("x", "z"), n_features=2, target_name="label"
            ),
        )
        found = []
        for name, kind in (
            ("group worlds", OutputDistributions),
            ("attribute", CoupledSamples),
        ):
            scenario = simulators(name)[0].set_params(n_jobs=n_jobs)
            fact = scenario.bind(release.context).fact(kind, release)
            if kind is CoupledSamples:
                found += [side for *_, u, v in fact.draws for side in (u, v)]
            else:
                found += [one.points for one in fact.distributions[0]]
        return np.concatenate(found)

    assert np.array_equal(facts(None), facts(2))


@pytest.mark.parametrize("name", ["group worlds", "attribute", "draw"])
def test_a_progress_bar_is_shown_to_who_asks(name, capsys):
    scenario, n_tables = simulators(name)
    fit(model(scenario, LogisticRegression()))
    assert capsys.readouterr().err == ""
    MEMORY.clear()
    fit(model(scenario, LogisticRegression()), scenario__verbose=True)
    shown = capsys.readouterr().err
    assert "coef_ of LogisticRegression: 100%" in shown
    assert f"{n_tables if name != 'draw' else n_tables // 2}/" in shown


def test_a_table_that_the_query_refuses_is_named_where_it_is_public():
    table = PUBLIC.assign(label=(PUBLIC["group"] == "a").astype(int))
    of = model(GroupScenario("group", prior=table))
    with refused(ScenarioError, "group.rows_of_group"):
        clone(of).fit(PRIVATE, LABEL)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_jobs_are_a_number(n_jobs):
    for name in ("group worlds", "attribute", "draw"):
        scenario, _ = simulators(name)
        with refused(ScenarioError, "parameter.jobs_invalid", name="n_jobs"):
            scenario.set_params(n_jobs=n_jobs).check()


def test_no_rows_are_kept():
    scenario, _ = simulators("group worlds")
    private = PRIVATE.copy()
    gone = weakref.ref(private)
    kept = clone(model(scenario)).fit(private, LABEL)
    del private
    gc.collect()
    assert gone() is None and kept.certificate_ is not None
