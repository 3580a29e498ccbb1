"""Simulations are done once for all budgets, and never shared by mistake."""

import gc
import pickle
import weakref

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from skpuffer.accountants import GeneralWasserstein
from skpuffer.compose import OutputPerturbation, PublicPreprocessing
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
def test_three_budgets_cost_one_simulation(name):
    scenario, n_tables = simulators(name)
    of = model(scenario)
    fits = [fit(of, accountant__epsilon=epsilon) for epsilon in (0.1, 1.0, 3.0)]
    assert fits == [n_tables, 0, 0]
    # other clones of the scenario, another noise and another order are no other tables
    assert fit(of, accountant__noise="laplace", accountant__delta=0.1) == 0


@pytest.mark.parametrize("name", ["group worlds", "group points", "attribute"])
def test_a_search_simulates_its_worlds_once(name):
    scenario, n_tables = simulators(name)
    search = GridSearchCV(
        model(scenario, query=["coef_", "intercept_"]),
        {"accountant__epsilon": [0.1, 1.0, 3.0]},
        cv=KFold(3),
        error_score="raise",
    ).fit(PRIVATE, LABEL)
    # three folds and three budgets, and the whole table; of one size in all folds
    sizes = 1 if name == "group points" else 2
    assert Counted.fits == 9 + 1 + sizes * n_tables
    assert not search.best_estimator_.certificate_.certified


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_of_the_simulation_is_another_one(name):
    scenario, n_tables = simulators(name)
    of = model(scenario)
    assert fit(of) == n_tables
    assert fit(of, scenario__random_state=1) == n_tables
    assert fit(of) == 0


def test_changed_queries_miss():
    scenario, n_tables = simulators("group worlds")
    assert fit(model(scenario)) == n_tables
    assert fit(model(scenario, Counted(C=0.1))) == n_tables
    assert fit(model(scenario, query=["coef_", "intercept_"])) == n_tables
    assert fit(model(scenario, query=lambda fitted: fitted.coef_)) == n_tables
    assert fit(model(scenario, query=lambda fitted: 2 * fitted.coef_)) == n_tables
    assert fit(model(scenario, make_pipeline(PCA(1), Counted()), lambda p: p[1].coef_))
    # and each is still there
    assert fit(model(scenario)) == fit(model(scenario, Counted(C=0.1))) == 0


FACTOR = 1.0


def test_a_query_that_reads_another_global_misses(monkeypatch):
    scenario, n_tables = simulators("group worlds")

    def query(fitted):
        return FACTOR * fitted.coef_

    first = clone(model(scenario, query=query)).fit(PRIVATE, LABEL)
    assert fit(model(scenario, query=query)) == 0
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert fit(model(scenario, query=query)) == n_tables
    second = clone(model(scenario, query=query)).fit(PRIVATE, LABEL)
    assert second.noise_.scale == pytest.approx(5 * first.noise_.scale)


def test_a_query_that_keeps_a_log_is_simulated_once():
    scenario, n_tables = simulators("group worlds")
    log = []

    def query(fitted):
        log.append(fitted.n_iter_)
        return fitted.coef_

    of = model(scenario, query=query)
    assert [fit(of), fit(of), len(log)] == [n_tables, 0, n_tables + 2]


def test_changed_priors_miss():
    scenario, n_tables = simulators("group worlds")
    of = model(scenario)
    assert fit(of) == n_tables
    other = PUBLIC.copy()
    other.loc[3, "x"] += 1e-9
    assert fit(of, scenario__prior=other) == n_tables
    other = PUBLIC.copy()
    other.loc[3, "label"] = 0
    assert fit(of, scenario__prior=other) == n_tables
    other = PUBLIC.copy()
    other.loc[3, "group"] = "b"
    assert fit(of, scenario__prior=other) == n_tables
    assert fit(of, scenario__prior=[PUBLIC, other]) == 2 * n_tables
    assert fit(of, scenario__n_worlds=5) == 15
    assert fit(of, scenario__prior=PUBLIC.copy()) == 0  # by content


def test_changed_contexts_miss():
    scenario, n_tables = simulators("group worlds")
    of = model(scenario)
    assert fit(of) == n_tables
    before = Counted.fits
    clone(of).fit(PRIVATE[:-2], LABEL[:-2])  # another number of records
    assert Counted.fits == before + n_tables + 1
    clone(of).fit(PRIVATE[["z", "x"]], LABEL)  # another order of columns
    assert Counted.fits == before + 2 * (n_tables + 1)
    clone(of).fit(PRIVATE, LABEL)
    assert Counted.fits == before + 2 * (n_tables + 1) + 1


def test_a_simulator_that_draws_otherwise_misses():
    def shifted(by):
        def draw(secret, rng):
            return rng.normal(secret + by, size=(N, 2)), rng.permutation(LABEL)

        return SimulatorScenario(draw, secrets=[0, 1], n_draws=5)

    one = shifted(0.0)
    assert [fit(model(one)), fit(model(one)), fit(model(shifted(1.0)))] == [20, 0, 20]
    assert fit(model(shifted(0.0))) == 0  # while the first lives
    assert fit(model(one), scenario__secrets=[0, 2]) == 20
    assert fit(model(one), scenario__n_draws=6) == 24


def test_a_simulator_with_a_state_of_its_own_is_asked_each_time():
    rng = np.random.default_rng(0)

    def draw(secret, _):
        return rng.normal(secret, size=(N, 2)), LABEL

    of = model(SimulatorScenario(draw, secrets=[0, 1], n_draws=5))
    assert [fit(of), fit(of)] == [20, 20]


def test_a_query_that_is_drawn_by_chance_is_run_each_time():
    scenario, n_tables = simulators("group worlds")
    of = model(scenario, Counted(random_state=np.random.RandomState(0)))
    assert [fit(of), fit(of)] == [n_tables, n_tables]


def test_public_preprocessing_is_part_of_what_is_simulated():
    scenario = SimulatorScenario(
        lambda secret, rng: (
            pd.DataFrame(rng.normal(secret, size=(N, 2)), columns=["x", "z"]),
            rng.permutation(LABEL),
        ),
        secrets=[0, 1],
        n_draws=5,
    )
    for n_rows, fits in ((20, 20), (20, 0), (30, 20)):
        before = Counted.fits
        PublicPreprocessing(
            PCA(1), model(scenario), reference=PUBLIC[["x", "z"]][:n_rows]
        ).fit(PRIVATE, LABEL)
        assert Counted.fits - before - 1 == fits


def test_private_rows_as_a_prior_are_not_remembered():
    scenario, _ = simulators("attribute")
    of = model(scenario).set_params(scenario__prior="empirical")
    table = PUBLIC.drop(columns="label")
    for _ in range(2):
        before = Counted.fits
        clone(of).set_params(scenario__level="record").fit(table, PUBLIC["label"])
        assert Counted.fits == before + 24 + 1
        assert len(MEMORY) == 0


def test_what_is_remembered_dies_with_the_last_clone():
    of = model(simulators("group worlds")[0])
    copy = clone(of)
    fit(of)
    del of
    gc.collect()
    assert fit(copy) == 0 and len(MEMORY)
    del copy
    gc.collect()
    MEMORY.held((MEMORY,), "nothing")
    assert len(MEMORY) == 0


def test_another_scenario_of_equal_content_keeps_it_alive():
    first = model(simulators("group worlds")[0])
    second = model(simulators("group worlds")[0])
    assert [fit(first), fit(second)] == [18, 0]
    del first
    gc.collect()
    third = model(simulators("group worlds")[0])
    assert [fit(second), fit(third)] == [0, 0]


@pytest.mark.parametrize("cached", [False, True])
def test_shapes_are_checked_whether_or_not_tables_were_simulated(cached):
    def query(fitted):
        # as many numbers as the largest coefficient has digits before its point
        return fitted.coef_[0, 0] * np.ones(1 + int(abs(fitted.coef_).max() > 50))

    of = model(
        GroupScenario("group", prior=PUBLIC, n_worlds=3),
        LogisticRegression(C=1e10, tol=1e-8, max_iter=10_000),
        query,
    )
    apart = PRIVATE.assign(x=np.where(LABEL == 1, 1e-2, -1e-2), z=0.0)
    if cached:
        clone(of).fit(PRIVATE, LABEL)
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


def test_in_a_worker_process_tasks_share_a_simulation(monkeypatch):
    """Each task brings a scenario of its own, which dies with it."""
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "a parent")
    of = model(simulators("group worlds")[0])
    fits = []
    for _ in range(3):
        task = pickle.loads(pickle.dumps(of))
        fits.append(fit(task))
        del task
        gc.collect()
    assert fits == [18, 0, 0]
    MEMORY.clear()


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


def test_distances_are_found_once_too(monkeypatch):
    """The distributions themselves are remembered, by which distances go."""
    scenario, _ = simulators("group worlds")
    release = QueryRelease(
        query=lambda X, y: X.mean(axis=0),
        n_records=N,
        dim=2,
        context=PublicContext(
            n_records=N, feature_names=("x", "z"), n_features=2, target_name="label"
        ),
    )
    facts = [
        clone(scenario).bind(release.context).fact(OutputDistributions, release)
        for _ in range(2)
    ]
    assert facts[0].distributions[0][0] is facts[1].distributions[0][0]
    points = facts[0].distributions[0][0].points
    with pytest.raises(ValueError, match="read-only"):
        points[0] = 0.0


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
