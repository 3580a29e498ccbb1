"""Vectors of a group released with the noise of slices: error, attacks, and the price.

    python -m benchmarks.sliced_queries [--quick] [--only PART ...] [--ways WAY ...]
        [--jobs N]

The static half of Zhang and Vorobeychik, *Sliced Rényi Pufferfish privacy*, after its
section 6.1 and appendix W.1. Something is computed of the records of one group, and
which group it was is the secret. Four tables, each as it is and balanced; four queries:
a summary, the coefficients of a logistic regression and of a linear SVM, and the
importances of a random forest. Of each two readings: the query's value on a group is
all there is to it, or its values on 100 bootstrap tables are its law (on 60, where
there are five groups). The parts:

* ``utility``: error, signal and the best guess of the secret at order 4 and 22 budgets,
  by nine ways to set the noise, and what each budget is worth as one of Rényi
  Pufferfish privacy. Two of them are differential privacy: of all records of a group,
  and of one of its records, which is another promise. ``--ways`` measures some of them
  and keeps what is stored of the others.
* ``shapes``: total variance of each of them over that of the general Wasserstein
  mechanism, at one budget: the rank of the moves, the best diagonal; and what the
  promise is worth if the prior was made of half of the records and the other half is
  the truth.
* ``runtime``: slices, W_inf and its entropic form between two samples, in seconds.

Adult is the table of the folder that SKPUFFER_TEST_DATA names; without one, the sample
that is shipped. Stores a table for each part with versions in ``benchmarks/results/``.
``--quick`` takes few of all and stores nothing. What must hold is checked in every run.
"""

import argparse
import math
import time
import warnings
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks._group_tasks import (
    BOOTSTRAP,
    POINTS,
    QUERIES,
    READINGS,
    TASKS,
    diameter,
    release_of,
    scenario_of,
    task_of,
    values,
)
from benchmarks._report import print_table, read_csv, renewed, versions, write_csv
from skpuffer.accountants import (
    GeneralWasserstein,
    GroupPrivacy,
    ShapedWasserstein,
    SinkhornWasserstein,
    SlicedWasserstein,
)
from skpuffer.accountants._shaped._programme import least_shape
from skpuffer.audit import map_attack
from skpuffer.exceptions import PrivacyWarning
from skpuffer.noise import GaussianNoise
from skpuffer.releases import Sensitivity
from skpuffer.scenarios import RecordScenario
from skpuffer.transport import (
    SliceProfile,
    bottleneck_distance,
    entropic_distance,
    sliced_distances,
)

ALPHA = 4.0
#: The budgets of the paper.
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1, 2, 4, 8, 10, 12, 14, 18, 20, 25, 30, 35, 40)
EPSILONS += (45, 50, 55, 60)
SEEDS = 3
#: Releases by which error and signal are measured, each with each seed; guesses.
DRAWS, GUESSES = 400, 1000
#: Bootstrap tables of each of two groups, and of each of more.
WORLDS, WORLDS_OF_MORE = 100, 60
#: Directions of the slices.
SLICES = 200
#: Price of a nat of the entropic distance, in units of the query.
ENTROPY = 0.02

GWM, AVE, JOINT, EXACT = "GWM", "Ave", "Joint", "Joint, exact"
SHAPED, BARE, SINKHORN = "Shaped", "Shaped, no floor", "Sinkhorn"
GROUP, RECORD = "group", "one record"
WAYS = (GWM, AVE, JOINT, EXACT, SHAPED, BARE, SINKHORN, GROUP, RECORD)
#: Those whose budget is none of Rényi Pufferfish privacy.
SLICED = (AVE, JOINT, EXACT)
#: Differential privacy, where a bound on the query is known.
DIFFERENTIAL = (GROUP, RECORD)


def accountant_of(way, epsilon, dim):
    """Return the accountant of a way to set the noise."""
    budget = {"epsilon": float(epsilon), "alpha": ALPHA}
    if way in SLICED:
        return SlicedWasserstein(
            **budget,
            aggregation="average" if way == AVE else "joint",
            method="exact" if way == EXACT else "closed",
            profile=SliceProfile.sampled(dim, SLICES),
        )
    if way == BARE:
        return ShapedWasserstein(**budget, floor=0.0, allow_degenerate=True)
    if way == SINKHORN:
        return SinkhornWasserstein(**budget, entropy=ENTROPY, noise="gaussian")
    # round, and of the family that all are compared in
    if way in DIFFERENTIAL:
        return GroupPrivacy(**budget, noise="gaussian")
    if way == GWM:
        return GeneralWasserstein(**budget, noise="gaussian")
    return ShapedWasserstein(**budget)


def calibrated(way, epsilon, query, scenario, n_records=None):
    """Return the noise of a way at a budget, and its worth for the scenario.

    Parameters
    ----------
    way : str
    epsilon : float
    query : str
    scenario : LawsScenario
    n_records : int, default=None
        Of the smallest group, for differential privacy of one of its records.

    Returns
    -------
    noise : Noise
    rpp_epsilon : float
        Budget of Rényi Pufferfish privacy at the same order.
    """
    release = release_of(query)
    accountant = accountant_of(way, epsilon, release.dim)
    if way in DIFFERENTIAL:
        # whatever all the records of the group hold: one block of records, so to speak
        far = {2: diameter(query, None if way == GROUP else 1, n_records)}
        whole = release_of(query, sensitivity=Sensitivity(far, far))
        one = RecordScenario(1, relation="replace")
        noise = accountant.calibrate(whole, one).noise
        worth = GeneralWasserstein(alpha=ALPHA).certify(noise, release, scenario)
        return noise, worth.epsilon
    found = accountant.calibrate(release, scenario)
    return found.noise, found.certificate.rpp_epsilon


def at_budget(found, epsilon):
    """Return noise and worth at a budget, from those at a budget of one.

    A shape takes long to find, and is the same at all budgets: variances are inversely
    proportional to them.
    """
    noise, worth = found
    return noise.with_scale(noise.scale / math.sqrt(epsilon)), worth * epsilon


def variance_of(noise, dim):
    """Return the total variance of the noise of a vector."""
    return float(np.sum(np.broadcast_to(noise.variance(dim), (dim,))))


# -- error, signal and guesses ---------------------------------------------------------


def measured(noise, points, prior, n_draws, n_guesses, n_seeds):
    """Return error, signal and accuracy of the best guess, by draws.

    Parameters
    ----------
    noise : Noise
        Gaussian.
    points : list of ndarray of shape (n_worlds, dim)
        What is released of each group, before noise.
    prior : ndarray of shape (n_secrets,)
    n_draws, n_guesses, n_seeds : int

    Returns
    -------
    dict
    """
    found = []
    dim = points[0].shape[1]
    worlds, laws = np.stack(points), _whitened(noise, points)
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        groups = rng.choice(len(points), n_draws, p=prior)
        true = worlds[groups, rng.integers(worlds.shape[1], size=n_draws)]
        moves = noise.sample((n_draws, dim), rng)
        error, signal = np.sum(moves**2), np.sum(true**2)
        attack = map_attack(
            laws,
            GaussianNoise(1.0),
            prior=prior,
            n_draws=n_guesses,
            random_state=seed,
        )
        found.append(
            {
                "mse": error / n_draws,
                "mae": np.abs(moves).mean(),
                "l2": np.linalg.norm(moves, axis=1).mean(),
                "frobenius": math.sqrt(error / signal),
                "snr": 10 * math.log10(signal / error),
                "accuracy": attack.accuracy,
                "advantage": attack.advantage,
            }
        )
    frame = pd.DataFrame(found)
    return frame.mean().to_dict() | {"spread": frame["accuracy"].std(ddof=1)}


def _whitened(noise, points):
    """Distributions of what is released, in coordinates in which noise is standard."""
    dim = points[0].shape[1]
    variances, axes = np.linalg.eigh(noise.covariance_matrix(dim))
    # along the others, points of no noise agree
    some = variances > 1e-12 * variances.max()
    to_standard = axes[:, some] / np.sqrt(variances[some])
    _, laws = scenario_of([each @ to_standard for each in points])
    return laws


def utility_cell(name, query, reading, budgets, n_worlds, sizes, ways=WAYS):
    """Rows of one query of one task in one reading, at all budgets by some ways."""
    warnings.simplefilter("ignore", PrivacyWarning)
    task = task_of(name)
    most = WORLDS if len(task.secrets) == 2 else WORLDS_OF_MORE
    n_worlds = min(most, n_worlds) if reading == BOOTSTRAP else None
    points = values(task, query, n_worlds)
    scenario, _ = scenario_of(points)
    _, dim = QUERIES[query]
    rows = []
    for way in ways:
        if way in DIFFERENTIAL and math.isinf(diameter(query)):
            continue
        shape = calibrated(way, 1.0, query, scenario) if way in (SHAPED, BARE) else None
        for epsilon in budgets:
            noise, worth = (
                at_budget(shape, epsilon)
                if shape
                else calibrated(way, epsilon, query, scenario, task.sizes.min())
            )
            rows.append(
                {
                    "task": name,
                    "query": query,
                    "reading": reading,
                    "mechanism": way,
                    "epsilon": float(epsilon),
                    "rpp_epsilon": worth,
                    "sigma": math.sqrt(variance_of(noise, dim) / dim),
                }
                | measured(noise, points, task.prior, *sizes)
            )
    return pd.DataFrame(rows)


def utility(quick, jobs, ways=WAYS):
    """Error, signal and guesses at all budgets."""
    tasks = ("Heart, sex, natural", "Student, quintile, balanced")
    cells = [
        (name, query, reading)
        # the largest first, so that no worker is left with one at the end
        for name in (tasks if quick else TASKS)
        for query in (("summary", "random forest") if quick else QUERIES)
        for reading in READINGS
        if not set(ways) <= set(DIFFERENTIAL) or math.isfinite(diameter(query))
    ]
    budgets = (0.4, 4, 40) if quick else EPSILONS
    sizes = (100, 2000, 2) if quick else (DRAWS, GUESSES, SEEDS)
    n_worlds = 20 if quick else WORLDS
    found = Parallel(jobs, batch_size=1)(
        delayed(utility_cell)(*cell, budgets, n_worlds, sizes, ways) for cell in cells
    )
    yield pd.concat(found)


def with_stored(frame):
    """Return rows of some ways together with those that are stored of the others."""
    order = {
        "task": list(TASKS),
        "query": list(QUERIES),
        "reading": list(READINGS),
        "mechanism": list(WAYS),
        "epsilon": list(EPSILONS),
    }
    whole = renewed(read_csv(FILES["utility"], [*frame]), frame, [*order])
    places = [whole[column].map(at.index) for column, at in order.items()]
    return whole.iloc[np.lexsort(places[::-1])]


def check_utility(frame):
    """What must hold of noise, worth and guesses."""
    key = ["task", "query", "reading", "epsilon"]
    sigma = frame.pivot(index=key, columns="mechanism", values="sigma")
    slight = 1 + 1e-5
    assert (sigma[AVE] <= sigma[EXACT] * slight).all()
    assert (sigma[EXACT] <= sigma[JOINT] * slight).all()
    assert (sigma[JOINT] <= sigma[GWM] * slight).all()
    assert (sigma[GWM] <= sigma[SINKHORN] * slight).all()
    grouped = sigma[GROUP].notna()
    assert (sigma[GWM] <= sigma[GROUP] * slight)[grouped].all()
    assert (sigma[RECORD].notna() == grouped).all()
    assert (sigma[RECORD] <= sigma[GROUP] * slight)[grouped].all()
    # the full promise, at no more noise than the round one
    points = sigma.index.get_level_values("reading") == POINTS
    # of laws either search ends in an optimum of its own
    assert (sigma[BARE] <= sigma[SHAPED] * slight)[points].all()
    assert (sigma[SHAPED] <= sigma[GWM] * slight).all()
    # privacy of one record says nothing of what a group has in common
    full = frame[~frame["mechanism"].isin((*SLICED, RECORD))]
    assert (full["rpp_epsilon"] <= full["epsilon"] * slight).all()
    sliced = frame[frame["mechanism"].isin(SLICED)]
    assert (sliced["rpp_epsilon"] >= sliced["epsilon"] * (1 - 1e-6)).all()
    # error is that of the noise: d sigma^2
    dim = frame["query"].map({name: dim for name, (_, dim) in QUERIES.items()})
    assert np.allclose(frame["mse"], dim * frame["sigma"] ** 2, rtol=0.5)
    # guesses grow with the budget, except for draws
    wide = frame.pivot(
        index=["task", "query", "reading", "mechanism"],
        columns="epsilon",
        values="accuracy",
    )
    assert (wide.diff(axis=1).iloc[:, 1:].min() > -0.08).all()


# -- shapes, and a prior that is a little wrong ----------------------------------------


def shape_cell(name, query):
    """Row of one query of one task: variances over GWM's, all at one budget."""
    warnings.simplefilter("ignore", PrivacyWarning)
    task = task_of(name)
    points = values(task, query)
    scenario, _ = scenario_of(points)
    moves = np.array([u[0] - v[0] for u, v in combinations(points, 2)])
    _, dim = QUERIES[query]
    row = {"task": name, "query": query, "rank": int(np.linalg.matrix_rank(moves))}
    longest = np.sum(moves**2, axis=1).max()
    row["longest"] = math.sqrt(longest)
    round_one = dim * longest * ALPHA / 2
    for way in (AVE, EXACT, JOINT, SHAPED, BARE):
        noise, worth = calibrated(way, 1.0, query, scenario)
        row[way] = variance_of(noise, dim) / round_one
        if way in SLICED:
            row[f"{way}, worth"] = worth
    row["diagonal"] = least_shape(moves, diagonal=True).trace / (dim * longest)
    return row


def held_out_cell(name, query, split):
    """Rows of one query of one task: promises of half of the records on the others."""
    warnings.simplefilter("ignore", PrivacyWarning)
    task = task_of(name)
    if split < 0:
        first = np.arange(len(task.group)) % 2 == 0  # even rows
    else:
        first = np.random.default_rng(split).random(len(task.group)) < 0.5
    halves = [values(task.part(rows), query) for rows in (first, ~first)]
    (believed, _), (true, _) = map(scenario_of, halves)
    release, budget = release_of(query), {"epsilon": 1.0, "alpha": ALPHA}
    ways = {
        GWM: GeneralWasserstein(**budget, noise="gaussian"),
        SHAPED: ShapedWasserstein(**budget),
    }
    # what it takes to cover the other half: by how much any move is off
    moves = [[u[0] - v[0] for u, v in combinations(points, 2)] for points in halves]
    slack = max(np.linalg.norm(u - v) for u, v in zip(*moves, strict=True))
    ways["Shaped, slack"] = ShapedWasserstein(**budget, slack=float(slack))
    dim = release.dim
    longest = max(np.linalg.norm(move) for move in moves[0])
    rows = []
    for way, accountant in ways.items():
        noise = accountant.calibrate(release, believed).noise
        # of these priors alone: what a slack covers is no part of it
        asked = GeneralWasserstein if way == GWM else ShapedWasserstein
        found = asked(alpha=ALPHA).certify(noise, release, true)
        rows.append(
            {
                "task": name,
                "query": query,
                "split": "even rows" if split < 0 else str(split),
                "mechanism": way,
                "epsilon": found.epsilon,
                "slack": slack / longest,
                "variance": variance_of(noise, dim) / (dim * longest**2 * ALPHA / 2),
                # of the round noise that covers as much
                "variance_of_round": (1 + slack / longest) ** 2,
            }
        )
    return rows


def shapes(quick, jobs):
    """Variances over GWM's at one budget."""
    names = ("Heart, sex, natural", "Student, quintile, natural") if quick else TASKS
    queries = ("summary",) if quick else QUERIES
    rows = Parallel(jobs)(
        delayed(shape_cell)(name, query) for name in names for query in queries
    )
    yield pd.DataFrame(rows)


def held_out(quick, jobs):
    """What promises of one half of the records are worth on the other."""
    names = ("Heart, sex, natural",) if quick else TASKS
    queries = ("summary",) if quick else QUERIES
    rows = Parallel(jobs)(
        delayed(held_out_cell)(name, query, split)
        for name in names
        for query in queries
        for split in range(-1, 1 if quick else 3)
    )
    yield pd.DataFrame([row for found in rows for row in found])


def check_shapes(frame):
    """What must hold of shapes."""
    slight = 1 + 1e-5
    # between one axis and as many as there are moves, of all
    dim = frame["query"].map({name: dim for name, (_, dim) in QUERIES.items()})
    assert (frame[BARE] >= 1 / dim / slight).all()
    assert (frame[BARE] <= frame["rank"] / dim * slight).all()
    assert (frame[BARE] <= frame["diagonal"] * slight).all()
    assert (frame["diagonal"] <= slight).all()


def check_held_out(frame):
    """What must hold of halves: a slack that covers the other one does."""
    covered = frame[frame["mechanism"] == "Shaped, slack"]
    assert (covered["epsilon"] <= 1 + 1e-6).all(), covered
    assert (covered["variance"] <= covered["variance_of_round"] * (1 + 1e-6)).all()


# -- run time --------------------------------------------------------------------------

#: Points of either sample.
NUMBERS = (100, 300, 1000, 3000)


def runtime(quick, jobs):
    """Seconds between two samples of Gaussians that are one apart."""
    # as many slices as coordinates look along some direction hardly at all
    warnings.simplefilter("ignore", PrivacyWarning)
    cases = [(100, 5)] if quick else [(n, d) for d in (5, 50) for n in NUMBERS]
    rows = []
    for n, dim in cases:
        rng = np.random.default_rng(0)
        U, V = rng.normal(size=(2, n, dim))
        V[:, 0] += 1
        # some kinds of atoms are compiled or loaded by the first call
        sliced_distances([U[:2], V[:2]], SliceProfile.sampled(dim, dim))
        ways = {
            f"{m} slices": lambda U=U, V=V, dim=dim, m=m: sliced_distances(
                [U, V], SliceProfile.sampled(dim, m)
            )
            for m in (50, 200)
        }
        ways["W_inf"] = lambda U=U, V=V: bottleneck_distance(U, V)
        ways["Sinkhorn"] = lambda U=U, V=V: entropic_distance(
            U, V, ENTROPY, max_cells=1e7
        )
        for way, run in ways.items():
            taken = [_seconds(run) for _ in range(3 if n <= 1000 else 1)]
            rows.append(
                {"n": n, "dim": dim, "distance": way, "seconds": float(min(taken))}
            )
    frame = pd.DataFrame(rows)
    fastest = frame[frame["distance"] == "50 slices"].set_index(["n", "dim"])["seconds"]
    at = list(zip(frame["n"], frame["dim"], strict=True))
    yield frame.assign(ratio=frame["seconds"] / fastest.loc[at].to_numpy())


def _seconds(run):
    # of this process alone: others may run
    start = time.process_time()
    run()
    return time.process_time() - start


def check_runtime(frame):
    """Nothing: how long it takes depends on what else runs."""


#: Columns that are means over draws.
MEASURED = ("mse", "mae", "l2", "frobenius", "snr", "accuracy", "advantage", "spread")

FILES = {
    "utility": "sliced_queries.csv",
    "shapes": "sliced_queries_shapes.csv",
    "held_out": "sliced_queries_held_out.csv",
    "runtime": "sliced_queries_runtime.csv",
}

PARTS = {
    "utility": (utility, check_utility),
    "shapes": (shapes, check_shapes),
    "held_out": (held_out, check_held_out),
    "runtime": (runtime, check_runtime),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="PART", choices=PARTS)
    parser.add_argument("--ways", nargs="+", metavar="WAY", choices=WAYS)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.quick and options.ways:
        parser.error("--ways adds to what is stored, and --quick stores nothing")
    used = versions("numpy", "scipy", "scikit-learn")
    for part in options.only or PARTS:
        measure, check = PARTS[part]
        some = options.ways if part == "utility" else None
        if some:
            measure = partial(utility, ways=tuple(some))
        started = time.perf_counter()
        with threadpool_limits(1):
            frame = pd.concat(measure(options.quick, options.jobs))
        shown = frame.copy()
        for column in shown.select_dtypes("number"):
            # the draws are good for no more digits
            digits = 4 if column in MEASURED else 6
            shown[column] = [float(f"{value:.{digits}g}") for value in shown[column]]
        head = shown.groupby(list(shown)[0]).head(3)
        print_table(head.astype(str).to_numpy().tolist(), list(shown))
        print(f"{part}: {len(shown)} rows in {time.perf_counter() - started:.0f} s")
        if not options.quick:
            shown = shown.assign(alpha=ALPHA, **used)
            shown = with_stored(shown) if some else shown
            write_csv(shown, FILES[part])
        check(shown if some else frame)


if __name__ == "__main__":
    main()
