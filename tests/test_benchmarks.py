"""The benchmarks: what the released error is, and that figures of each are stored."""

import importlib
import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skpuffer import scenarios
from skpuffer.accountants import compatibility_table
from skpuffer.accountants._base import known_accountants
from skpuffer.testing import all_estimators

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py"))


@pytest.fixture(scope="module")
def benchmark():
    """Give a benchmark's module by its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        yield lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_stored_with_versions(name):
    stored = pd.read_csv(ROOT / "benchmarks" / "results" / f"{name}.csv")
    assert len(stored) > 1
    assert {"numpy", "versions"} & set(stored.columns)


@pytest.fixture(scope="module")
def released_errors(benchmark):
    """Errors of a sticky series, recorded a twentieth above the middle of its bins."""
    rng = np.random.default_rng(0)
    codes = np.cumsum(rng.random(2000) < 0.2) % 3
    values = np.arange(3.0)[:, None]
    correlated = benchmark("correlated")
    series = correlated.Series(values[codes] + 0.05, codes, values, "kW")
    return correlated.released_errors(series, 500)


def test_released_error_holds_what_binning_changes(benchmark, released_errors):
    found = released_errors
    of_mean = {name: error for (q, name), error in found.items() if q == "mean"}
    assert of_mean["binning alone"] == pytest.approx(0.05)
    # one reading of 1000, in [0, 2], at epsilon = 1: noise of 0.002, unlike its error
    assert of_mean["plain DP"] == pytest.approx(0.05, rel=0.01)
    assert all(error >= 0.05 * 0.99 for error in of_mean.values())
    assert found["shares", "binning alone"] == 0
    assert found["shares", "plain DP"] == pytest.approx(0.002, rel=0.1)
    benchmark("correlated").check(found)


def test_quilts_that_are_no_better_than_groups_are_told(benchmark, released_errors):
    found = released_errors | {
        ("shares", "quilts"): released_errors["shares", "group privacy"]
    }
    with pytest.raises(AssertionError):
        benchmark("correlated").check(found)


def test_without_a_directory_the_shipped_series_are_used(benchmark):
    found = benchmark("correlated").real_series(None)
    assert list(found) == ["power by the hour", "power by the minute"]
    assert [len(one.codes) for one in found.values()] == [8760, 10078]
    for one in found.values():
        apart = np.abs(one.values[one.codes] - one.recorded).mean()
        assert 0 < apart < 0.5


def test_gains_are_stored_for_all_that_the_library_has(benchmark):
    """A new estimator, scenario or accountant is asked for its gain before it ships."""
    stored = pd.read_csv(benchmark("_report").RESULTS / "gains.csv")
    private = {
        entry.name
        for entry in all_estimators()
        if {"scenario", "accountant"} <= set(entry.instance.get_params())
    }
    # its votes are those of the classifier; what is set beside defaults follows a comma
    fitted = stored["estimator"].unique()
    plain = {name for name in fitted if "," not in name}
    # what is released of these is a sum, as of others that are stored
    assert plain == private - {
        "PATEAggregator",
        "PrivateBounds",
        "PrivateCovariance",
        "PrivateLinearRegression",
        "PrivateLogit",
    }
    assert {name.partition(",")[0] for name in fitted} == plain
    cases = benchmark("_scenarios").cases(40)
    assert set(stored["scenario"]) == set(cases)
    in_use = {type(case.scenario) for case in cases.values()}
    in_use |= {
        type(case.scenario.scenario)
        for case in cases.values()
        if isinstance(case.scenario, scenarios.BlocksScenario)
    }
    offered = {getattr(scenarios, name) for name in scenarios.__all__}
    classes = filter(inspect.isclass, offered)
    known = {k for k in classes if issubclass(k, scenarios.Scenario)}
    # what is bounded of a draw is no epsilon that noise for records compares with
    of_draws = {scenarios.SubsampleScenario}
    assert in_use == known - {scenarios.Scenario} - of_draws
    recommended = {k.__name__ for k in known_accountants() if k.recommended}
    assert set(stored["accountant"]) == recommended
    # every estimator has a cell under every scenario by each accountant
    key = ["scenario", "estimator", "accountant"]
    assert not stored.duplicated(key).any()
    assert len(stored) == len(cases) * len(fitted) * len(recommended)
    benchmark("gains").check(stored)


#: Scenarios of the gains, as `compatibility_table` names their kind.
KINDS = {
    "AttributeScenario, a small move": "AttributeScenario, level='record'",
    "AttributeScenario, a table": "AttributeScenario, level='record'",
    "BayesianNetworkScenario": "BlocksScenario of a BayesianNetworkScenario",
    "JointTableScenario": "BlocksScenario of a JointTableScenario",
    "SimulatorScenario": "SimulatorScenario, draw_pair (an estimate)",
    **dict.fromkeys(
        ("BoundedOdds(4)", "BoundedInference(.72)", "DeclaredOdds", "BinnedLaw"),
        "AttributeScenario, a declared belief",
    ),
}


def test_what_is_said_to_work_is_what_was_fitted(benchmark):
    """The table of what works with what, against fits of large tables."""
    stored = pd.read_csv(benchmark("_report").RESULTS / "gains.csv")
    stored["scenario"] = stored["scenario"].replace(KINDS)
    # an estimate is to be had; what took too long is neither refused nor found
    reason = stored["reason"].fillna("")
    stored["had"] = stored["works"] | reason.str.startswith("an estimate")
    stored = stored[~reason.str.contains("seconds of computing")]
    key = ["accountant", "scenario", "release"]
    # a kind works if some estimator with such a release does
    fitted = stored.groupby(key)["had"].any()
    said = pd.DataFrame(compatibility_table(n_records=100)).set_index(key)["works"]
    both = fitted.index.intersection(said.index)
    assert len(both) > 900
    differ = both[fitted[both] != said[both]]
    assert not len(differ), list(differ)


@pytest.mark.parametrize("part", ["learning", "attacks", "overfitted", "table"])
def test_sliced_learning_is_stored_whole(benchmark, part):
    """Every budget that the page of the paper draws, within what is allowed."""
    sliced = benchmark("sliced_learning")
    stored = pd.read_csv(benchmark("_report").RESULTS / f"sliced_{part}.csv")
    key = [
        column
        for column in ("table", "model", "accounting", "epsilon", "split")
        if column in stored
    ]
    assert not stored.duplicated(key).any()
    every = [stored[column].unique() for column in key]
    if part != "overfitted":
        # of the last there is one more, without any budget
        assert len(stored) == np.prod([len(values) for values in every])
    budgets = {"overfitted": (*sliced.OVERFITTED, np.inf), "table": sliced.TABLE}
    assert set(stored["epsilon"]) == set(budgets.get(part, sliced.EPSILONS))
    ways = {
        "attacks": sliced.ATTACKED,
        "overfitted": (*sliced.WAYS, "none"),
    }
    # where one record differs, hidden batches are differential privacy of it
    expected = set(ways.get(part, sliced.WAYS))
    expected -= {sliced.RECORD} if part == "overfitted" else set()
    assert set(stored["accounting"]) == expected
    sliced.PARTS[part][1](stored)


@pytest.mark.parametrize("part", ["utility", "shapes", "held_out", "runtime"])
def test_sliced_queries_are_stored_whole(benchmark, part):
    """Every budget, query and table that the page of the paper draws."""
    queries = benchmark("sliced_queries")
    stored = pd.read_csv(benchmark("_report").RESULTS / queries.FILES[part])
    keys = ("task", "query", "reading", "mechanism", "epsilon", "split", "n", "dim")
    keys += ("distance",)
    # what is not told apart by is measured
    key = [column for column in keys if column in stored]
    if part == "held_out":
        key.remove("epsilon")
    assert not stored.duplicated(key).any()
    if part == "runtime":
        assert set(stored["n"]) == set(queries.NUMBERS)
    else:
        assert set(stored["task"]) == set(queries.TASKS)
        assert set(stored["query"]) == set(queries.QUERIES)
    if part == "utility":
        assert set(stored["epsilon"]) == set(queries.EPSILONS)
        assert set(stored["mechanism"]) == set(queries.WAYS)
        # nothing bounds coefficients, whatever the group
        bounded = stored["mechanism"].isin(queries.DIFFERENTIAL)
        assert len(stored[~bounded]) == 8 * 4 * 2 * 22 * 7
        assert len(stored[bounded]) == 8 * 2 * 2 * 22 * 2
    queries.PARTS[part][1](stored)


def test_tasks_of_groups_are_those_of_the_paper(benchmark):
    """Sizes and largest moves of summaries in units, computed by another script."""
    tasks = benchmark("_group_tasks")
    largest = {
        "Heart, sex, natural": ([96, 201], 0.4598449619),
        "Student, sex, natural": ([208, 187], 0.1838105949),
        "Student, quintile, natural": ([102, 84, 78, 58, 73], 3.911934637),
    }
    for name, (sizes, expected) in largest.items():
        task = tasks.task_of(name)
        assert sorted(task.sizes) == sorted(sizes)
        points = np.concatenate(tasks.values(task, "summary"))
        moves = points[:, None] - points
        assert np.sum(moves**2, axis=2).max() == pytest.approx(expected, rel=1e-9)
    for name in tasks.TASKS:
        if name.endswith("balanced") and not name.startswith("Adult"):
            assert len(set(tasks.task_of(name).sizes)) == 1


def test_no_group_moves_further_than_its_diameter(benchmark):
    tasks = benchmark("_group_tasks")
    task = tasks.task_of("Heart, sex, natural")
    rng = np.random.default_rng(0)
    for query in ("summary", "random forest"):
        run, _ = tasks.QUERIES[query]
        for k in (1, 20, 96):
            rows = rng.choice(96, k, replace=False)
            X, y = task.X[task.group == 0], task.y[task.group == 0]
            changed, labels = X.copy(), y.copy()
            changed[rows] = task.X[task.group == 1][rows]
            labels[rows] = 1
            moved = run(task, X, y) - run(task, changed, labels)
            assert np.linalg.norm(moved) <= tasks.diameter(query, k, 96)
    assert np.isinf(tasks.diameter("linear SVM"))


def test_regret_is_that_of_the_library_as_it_is(benchmark):
    """What the rule of the additive models is compared with starts from the rule."""
    regret = benchmark("additive_regret")
    for module, name, value in regret.constants(regret.the_rule()):
        assert getattr(module, name) == value, name
    compared = [regret.in_words(setting) for setting in regret.settings()]
    assert len({*compared, regret.RULE}) == 61
    stored = regret.read_csv(regret.FILE, ())
    for _, group in stored.groupby(["data", "epsilon"]):
        assert set(group["setting"]) == {*compared, regret.RULE}
    assert set(stored["data"]) == set(regret.LOADERS)
    regret.check(stored)


def test_regret_is_no_reward_for_noise(benchmark):
    """Where all settings are alike, the best of those seen is no better."""
    regret = benchmark("additive_regret")
    scores = 5 * np.random.default_rng(0).normal(size=(20, 61, 2))
    frame = pd.concat(
        pd.DataFrame(
            {
                "data": f"table {k}",
                "epsilon": 1.0,
                "setting": [regret.RULE, *map(str, range(60))],
                "first_half": halves[:, 0],
                "other_half": halves[:, 1],
                "score": halves.mean(axis=1),
            }
        )
        for k, halves in enumerate(scores)
    )
    found = regret.regrets(frame)
    assert abs(found["regret"].mean()) < 3
    assert found["at most"].mean() > 6
    with pytest.raises(AssertionError):
        regret.check(frame.assign(first_half=np.arange(len(frame)) * 1.0))


def test_sliced_distances_take_little_more_than_their_sorts(benchmark):
    stored = pd.read_csv(benchmark("_report").RESULTS / "sliced_transport.csv")
    sliced = benchmark("sliced_transport")
    assert set(zip(stored["what"], stored["to"], strict=True)) >= set(sliced.AT_MOST)
    sliced.check(stored)


def test_bins_take_no_more_noise_than_poisson_batches(benchmark):
    """Estimators take them by default where a record is added or removed."""
    schemes = benchmark("allocation_schemes")
    stored = pd.read_csv(ROOT / "benchmarks" / "results" / "allocation_schemes.csv")
    schemes.check(stored)
    with pytest.raises(AssertionError):
        schemes.check(stored.assign(saved=-1e-3))


def test_everyday_statistics_err_no_more_than_peers(benchmark):
    """Within what draws may err, and where the limit is passed by the formula too."""
    everyday = benchmark("everyday")
    stored = pd.read_csv(benchmark("_report").RESULTS / "everyday.csv")
    key = ["statistic", "column", "n", "epsilon"]
    sizes = (10_000, 1_000_000)
    assert set(stored["n"]) == set(sizes)
    assert len(stored) == 3 * len(everyday.COLUMNS) * len(sizes) * 3
    assert not stored.duplicated(key).any()
    assert stored["opendp"].notna().all() and stored["diffprivlib"].notna().all()
    everyday.check(stored)
    with pytest.raises(AssertionError):
        everyday.check(stored.assign(ratio=2 * stored["ratio"] + 1, ratio_error=0.01))


def test_quantiles_err_no_more_than_those_of_peers_that_are_told_the_same():
    stored = pd.read_csv(ROOT / "benchmarks" / "results" / "quantiles.csv")
    one = stored[stored.quantiles.isin(["0.5", "0.25"])]
    assert len(one) == 24
    for peer in ("opendp", "diffprivlib"):
        ratios = one[f"{peer}_ratio"].dropna()
        assert len(ratios) == 12
        assert ratios.max() <= 1.03
    # of quartiles in one release, whichever of the two: with a resolution or without
    several = stored[stored.quantiles == "0.25 0.5 0.75"]
    ours = several[["ours", "ours_on_grid"]].min(axis=1)
    peer = several.opendp_error.fillna(several.diffprivlib_error)
    assert (ours / peer).max() <= 1.03
    # a summary has no floor of twenty bins, which was 0.06 for quartiles
    assert stored[stored.epsilon >= 1].summary.max() < 0.01
