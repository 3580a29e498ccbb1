"""Error of private medians and quartiles, beside diffprivlib and OpenDP.

    python -m benchmarks.quantiles [--quick] [--records N ...]

The root mean square error about the exact quantile of a normal sample, within bounds of
ten standard deviations, at pure epsilon 0.1, 1 and 10, under records that are added or
removed and records that are replaced. A single quantile, and the three quartiles in one
release (the mean square of their errors, at that epsilon for all of them).

Like is set beside like. diffprivlib chooses between records, by scores for replaced
ones; its error is that of the probabilities it computes. OpenDP chooses one of 2001
candidates, by scores for added or removed records. Ours is told the same: nothing, or
the resolution of these candidates. Errors of ours that have a law in closed form are
means over it; all others are of 2,000 draws (quartiles of a million records of 300),
those of peers in the same run where they are installed. Beside them stands ours
without a resolution, which has no floor; and a ``PrivateSummary`` of the same budget.

On the whole line there are more values to choose from than on a grid, and where noise
is large they cost: at 10,000 records and epsilon = 0.1 the median errs by 1.55 of
OpenDP's, whose candidates hold the answer. Told the same ours errs by 0.92 of it.

Stores the figures with versions in ``benchmarks/results/quantiles.csv``. ``--quick``
takes the small table, checks what must hold on every machine, and stores nothing;
``--records``, ``--epsilon`` and ``--together`` (quartiles in one release alone) measure
a part. A figure is stored as soon as it is there, in place of that of the same row.
"""

import argparse
import itertools
import math
import sys
import types
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, read_csv, renewed, versions, write_csv
from skpuffer.accountants import GroupPrivacy
from skpuffer.exceptions import PrivacyWarning
from skpuffer.scenarios import RecordScenario
from skpuffer.summary import PrivateQuantile, PrivateSummary
from skpuffer.summary._quantile import RankScores

LOW, HIGH = BOUNDS = (-10.0, 10.0)
STEP, NEAR = 0.01, 0.6
QUARTILES = (0.25, 0.5, 0.75)
TASKS, EPSILONS = ((0.5,), (0.25,), QUARTILES), (0.1, 1.0, 10.0)
SMALL, LARGE, N_DRAWS, N_FEW = 10_000, 1_000_000, 2000, 300
#: Peers by the relation that is their own.
PEERS = {"add_remove": "opendp", "replace": "diffprivlib"}
FILE, KEY = "quantiles.csv", ["n", "quantiles", "epsilon", "relation"]


def accountant(epsilon):
    return GroupPrivacy(epsilon, math.inf, noise="laplace")


def drawn(x, levels, epsilon, relation, step, n_draws):
    """Draws of ours: the release and the noise of a fit, chosen from again."""
    model = PrivateQuantile(
        RecordScenario(relation=relation),
        accountant(epsilon),
        quantiles=list(levels),
        bounds=BOUNDS,
        resolution=step,
    ).fit(x[:2, None])  # no noise depends on the number of records
    scores = RankScores(0, levels, *BOUNDS, step)
    rng = np.random.default_rng(0)
    return [scores.choose(x[:, None], model.noise_, rng) for _ in range(n_draws)]


def of_law(x, q, epsilon, relation):
    """Error of the law that values are chosen by, between sorted records."""
    scale = RankScores(0, (q,), *BOUNDS).ranges(relation)[0] / epsilon
    edges = np.concatenate([[LOW], x, [HIGH]])
    widths, ranks = np.diff(edges), np.arange(len(x) + 1)
    with np.errstate(divide="ignore"):
        weights = np.log(widths) - np.abs(ranks - q * len(x)) / scale
    weights = np.exp(weights - weights.max())
    return of_intervals(edges, weights, np.quantile(x, q))


def of_intervals(edges, weights, truth):
    """Error of a value that is uniform within an interval, by their weights."""
    ends = edges - truth
    squares = (ends[:-1] ** 2 + ends[:-1] * ends[1:] + ends[1:] ** 2) / 3
    return math.sqrt(weights @ squares / weights.sum())


def of_flips(x, q, epsilon, relation):
    """Error of permute-and-flip on the grid, by a quadrature of its law."""
    scores = RankScores(0, (q,), *BOUNDS, STEP)
    grid = LOW + STEP * np.arange(round((HIGH - LOW) / STEP) + 1)
    # no record of a normal sample is a candidate
    score = -np.abs(np.searchsorted(x, grid) - q * len(x))
    score *= epsilon / scores.ranges(relation)[0]
    score -= score.max()
    near = np.flatnonzero(score > -60)
    # of the candidate with most, by the level its noise reaches above the best score
    t, dt = np.linspace(0, 60, 60_001, retstep=True)
    log_none = sum(np.log(-np.expm1(-(t[1:] - s))) for s in score[near])
    chances = []
    for s in score[near]:
        own = np.log(-np.expm1(-(t[1:] - s)))
        chances.append(np.sum(np.exp(s - t[1:] + log_none - own)) * dt)
    chances = np.array(chances)
    errors = grid[near] - np.quantile(x, q)
    return math.sqrt(chances @ errors**2 / chances.sum())


def of_summary(x, levels, epsilon, relation, n_draws):
    model = PrivateSummary(
        RecordScenario(relation=relation),
        accountant(epsilon),
        statistics=["quantile"],
        quantiles=levels,
        bounds=BOUNDS,
    )
    return [model.fit(x[:, None]).result_.to_numpy()[:, 0] for _ in range(n_draws)]


def of_diffprivlib(x, levels, epsilon):
    """Error by the probabilities of its mechanism, as its quantiles set it up."""
    # its models need an older scikit-learn, its mechanisms none
    sys.modules.setdefault("diffprivlib.models", types.ModuleType("models"))
    from diffprivlib.mechanisms import Exponential

    edges, squares = np.concatenate([[LOW], x, [HIGH]]), []
    for q in levels:
        # the budget is split evenly over quantiles
        mechanism = Exponential(
            epsilon=epsilon / len(levels),
            sensitivity=1,
            utility=list(-np.abs(np.arange(len(x) + 1) - q * len(x))),
            measure=list(np.diff(edges)),
        )
        weights = np.diff(mechanism._probabilities, prepend=0.0)
        squares.append(of_intervals(edges, weights, np.quantile(x, q)) ** 2)
    return math.sqrt(np.mean(squares))


def of_opendp(x, levels, epsilon, n_draws):
    """Draws of its noisy maximum, of near candidates, whose scores take long."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    every = np.linspace(*BOUNDS, round((HIGH - LOW) / STEP) + 1)
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    found = []
    for q in levels:
        # all others are dozens of scales away, and take their time
        candidates = every[np.abs(every - np.quantile(x, q)) < NEAR]
        score = dp.t.make_quantile_score_candidates(
            domain, dp.symmetric_distance(), candidates.tolist(), q
        )

        def make(scale, score=score):
            return score >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True)

        scale = dp.binary_search_param(make, d_in=1, d_out=epsilon / len(levels))
        choose = dp.m.make_noisy_max(
            score.output_domain,
            score.output_metric,
            dp.max_divergence(),
            scale,
            negate=True,
        )
        scores = score(x.tolist())
        found.append([candidates[choose(scores)] for _ in range(n_draws)])
    return np.transpose(found)


def error(values, x, levels):
    misses = np.asarray(values) - np.quantile(x, levels)
    return float(np.sqrt(np.mean(misses**2)))


def measured(sizes, tasks, epsilons, n_draws, peers=True):
    """Yield errors by table, levels, epsilon and relation."""
    for n in sizes:
        x = np.sort(np.random.default_rng(0).normal(size=n))
        for task in itertools.product(tasks, epsilons, PEERS):
            yield errors(x, *task, n_draws, peers)


def errors(x, levels, epsilon, relation, n_draws, peers):
    """Return a row: the errors of ours, and that of the peer of this relation."""
    n, task = len(x), (x, levels, epsilon, relation)
    # noise for each of a million records takes its time
    draws = min(n_draws, N_FEW) if n > SMALL and len(levels) > 1 else n_draws
    if len(levels) == 1:
        one = x, levels[0], epsilon, relation
        line, grid = of_law(*one), of_flips(*one)
    else:
        line, grid = (
            error(drawn(*task, step, draws), x, levels) for step in (None, STEP)
        )
    row = {
        "n": n,
        "quantiles": " ".join(map(str, levels)),
        "epsilon": epsilon,
        "relation": relation,
        "draws": draws,
        "ours": line,
        "ours_on_grid": grid,
        "summary": error(of_summary(*task, 20), x, levels),
    }
    own = PEERS[relation]
    if peers and own == "opendp" and find_spec(own):
        row["opendp_error"] = error(of_opendp(*task[:3], draws), x, levels)
        row["opendp_ratio"] = grid / row["opendp_error"]
    if peers and own == "diffprivlib" and find_spec(own):
        row["diffprivlib_error"] = of_diffprivlib(*task[:3])
        row["diffprivlib_ratio"] = line / row["diffprivlib_error"]
    return row


def check(frame):
    """Check that draws are of the laws that errors are read off."""
    x = np.sort(np.random.default_rng(0).normal(size=1000))
    for step, of in ((None, of_law), (STEP, of_flips)):
        found = error(drawn(x, (0.5,), 1.0, "replace", step, 1000), x, (0.5,))
        assert 0.85 < found / of(x, 0.5, 1.0, "replace") < 1.15, found
    # the rounds of quartiles err less than three medians at a third of the budget
    few = frame[(frame.n == SMALL) & (frame.epsilon == 1)]
    assert few.empty or few[few.quantiles != "0.5"].ours.max() < 3e-3, few


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--records", type=int, nargs="+", default=(SMALL, LARGE))
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--together", action="store_true")
    options = parser.parse_args()
    quick = options.quick
    warnings.simplefilter("ignore", PrivacyWarning)
    used = ["numpy", "scikit-learn", *(p for p in PEERS.values() if find_spec(p))]
    measures = measured(
        (SMALL,) if quick else options.records,
        (QUARTILES,) if options.together else TASKS,
        options.epsilon,
        100 if quick else N_DRAWS,
        peers=not quick,
    )
    frame = pd.DataFrame()
    with threadpool_limits(1):
        for row in measures:
            print(row, flush=True)
            found = pd.DataFrame([row | versions(*used)])
            frame = pd.concat([frame, found], ignore_index=True)
            if not quick:
                kept = renewed(read_csv(FILE, list(found)), found, KEY)
                write_csv(ordered(kept), FILE)
    check(frame)
    rows = [
        [f"{v:.3g}" if isinstance(v, float) else v for v in r] for r in frame.to_numpy()
    ]
    print_table(rows, list(frame))


def ordered(frame):
    """Return the rows by size, in the order of a run."""
    rows = list(itertools.product(TASKS, EPSILONS, PEERS))
    places = {(" ".join(map(str, q)), *rest): i for i, (q, *rest) in enumerate(rows)}
    place = [
        places.get(key, len(places))
        for key in zip(frame.quantiles, frame.epsilon, frame.relation, strict=True)
    ]
    found = frame.assign(place=place).sort_values(["n", "place"], kind="stable")
    return found.drop(columns="place")


if __name__ == "__main__":
    main()
