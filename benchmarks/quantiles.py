"""Error of private medians and quartiles, beside diffprivlib and OpenDP.

    python -m benchmarks.quantiles [--quick]

The root mean square error about the exact quantile of a normal sample, within bounds of
ten standard deviations, at pure epsilon 0.1, 1 and 10, under records that are added or
removed and records that are replaced. Ours is the mean over the law that is drawn from,
without draws of its own; beside it that of the histogram of twenty bins it does away
with. Peers are drawn from in the same run where they are installed: diffprivlib's
scores are those of replaced records, OpenDP's of added or removed ones, over 2001
candidates. OpenDP adds exponential noise (permute-and-flip), which errs less at a small
budget and promises pure epsilon alone; its candidates leave a floor.

Stores the figures with versions in ``benchmarks/results/quantiles.csv``. ``--quick``
takes the small table, checks what must hold on every machine, and stores nothing.
"""

import argparse
import math
import sys
import types
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import GroupPrivacy
from skpuffer.exceptions import PrivacyWarning
from skpuffer.noise import GumbelNoise
from skpuffer.scenarios import RecordScenario
from skpuffer.summary import PrivateSummary
from skpuffer.summary._rank_scores import RankScores

LOW, HIGH = BOUNDS = (-10.0, 10.0)
LEVELS, EPSILONS = (0.5, 0.25), (0.1, 1.0, 10.0)
#: Peers take seconds for a draw from tables that are larger.
SMALL, N_DRAWS = 10_000, 80


def of_law(x, q, epsilon, relation):
    """Error of the law that values are chosen by, between sorted records."""
    scale = RankScores(0, (q,), *BOUNDS).ranges(relation)[0] / epsilon
    edges = np.concatenate([[LOW], x, [HIGH]])
    widths, ranks = np.diff(edges), np.arange(len(x) + 1)
    with np.errstate(divide="ignore"):
        weights = np.log(widths) - np.abs(ranks - q * len(x)) / scale
    weights = np.exp(weights - weights.max())
    # of a value that is uniform within its interval
    ends = edges - np.quantile(x, q)
    squares = (ends[:-1] ** 2 + ends[:-1] * ends[1:] + ends[1:] ** 2) / 3
    return math.sqrt(weights @ squares / weights.sum())


def of_draws(x, q, epsilon, relation, n_draws):
    scores = RankScores(0, (q,), *BOUNDS)
    noise = GumbelNoise(scores.ranges(relation)[0] / epsilon)
    rng = np.random.default_rng(0)
    return [scores.choose(x[:, None], noise, rng)[0] for _ in range(n_draws)]


def of_histogram(x, q, epsilon, relation, n_draws):
    model = PrivateSummary(
        RecordScenario(relation=relation),
        GroupPrivacy(epsilon, math.inf, noise="laplace"),
        statistics=["quantile"],
        quantiles=(q,),
        bounds=BOUNDS,
    )
    draws = [model.fit(x[:, None]).result_.to_numpy() for _ in range(n_draws)]
    return np.ravel(draws)


def of_diffprivlib(x, q, epsilon, n_draws):
    # its models need an older scikit-learn, its quantiles none
    sys.modules.setdefault("diffprivlib.models", types.ModuleType("models"))
    from diffprivlib import tools

    return [
        tools.quantile(x, q, epsilon=epsilon, bounds=BOUNDS) for _ in range(n_draws)
    ]


def of_opendp(x, q, epsilon, n_draws):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    candidates = np.linspace(*BOUNDS, 2001).tolist()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    score = dp.t.make_quantile_score_candidates(
        domain, dp.symmetric_distance(), candidates, q
    )

    def make(scale):
        return score >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True)

    choose = make(dp.binary_search_param(make, d_in=1, d_out=epsilon))
    rows = x.tolist()
    return [candidates[choose(rows)] for _ in range(n_draws)]


def error(values, x, q):
    return float(np.sqrt(np.mean((np.asarray(values) - np.quantile(x, q)) ** 2)))


def measured(sizes, peers=True):
    """Errors by table, level, epsilon and relation."""
    rows = []
    for n in sizes:
        x = np.sort(np.random.default_rng(0).normal(size=n))
        for q in LEVELS:
            for epsilon in EPSILONS:
                for relation in ("add_remove", "replace"):
                    row = {"n": n, "q": q, "epsilon": epsilon, "relation": relation}
                    row["ours"] = of_law(x, q, epsilon, relation)
                    bins = of_histogram(x, q, epsilon, relation, 10)
                    row["twenty_bins"] = error(bins, x, q)
                    of_peer = {
                        "add_remove": ("opendp", of_opendp),
                        "replace": ("diffprivlib", of_diffprivlib),
                    }
                    name, draw = of_peer[relation]
                    if peers and n <= SMALL and find_spec(name):
                        found = draw(x, q, epsilon, N_DRAWS)
                        row |= {"peer": name, "peer_error": error(found, x, q)}
                        row["peer_draws"] = N_DRAWS
                    rows.append(row)
    return pd.DataFrame(rows)


def check(frame):
    """Check that the floor is gone, and that draws are of the law."""
    plenty = frame[frame.epsilon >= 1]
    assert (plenty.ours < plenty.twenty_bins).all(), plenty
    x = np.sort(np.random.default_rng(0).normal(size=1000))
    drawn = error(of_draws(x, 0.5, 1.0, "replace", 1000), x, 0.5)
    assert 0.85 < drawn / of_law(x, 0.5, 1.0, "replace") < 1.15, drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", PrivacyWarning)
    with threadpool_limits(1):
        frame = measured((SMALL,) if quick else (SMALL, 1_000_000), peers=not quick)
    check(frame)
    rows = [
        [f"{v:.3g}" if isinstance(v, float) else v for v in r] for r in frame.to_numpy()
    ]
    print_table(rows, list(frame))
    if not quick:
        used = ["numpy", "scikit-learn"]
        used += [p for p in ("diffprivlib", "opendp") if find_spec(p)]
        write_csv(frame.assign(**versions(*used)), "quantiles.csv")


if __name__ == "__main__":
    main()
