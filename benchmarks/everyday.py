"""Error of one private mean, variance and histogram, beside diffprivlib and OpenDP.

    python -m benchmarks.everyday [--quick]

The root mean square error over 10,000 draws of noise (2,000 of the 20 counts of a
histogram), about the exact statistic of the clipped column, at pure epsilon 0.1, 1 and
10 on both sides. Means and variances are under records that are replaced, histograms of
20 bins under records that are added or removed, as with the peers. Two columns: normal
within three standard deviations, and exponential within ten, whose mean lies near an
end of the bounds. The noise is that of the default, of which the accountant chooses the
family.

Peers are measured in the same run, each by the interpreter of its own environment:
SKPUFFER_DIFFPRIVLIB_PYTHON and SKPUFFER_OPENDP_PYTHON name them. diffprivlib's means
and variances lie within their bounds and its counts are not negative; ours are
unbiased, and the counts of a histogram are clipped at zero where they are compared,
which costs nothing. A ratio is known to 1 or 2 % that way, and its standard error
stands beside it (of counts at epsilon = 10, of which a handful differs from the truth,
to no more than a third); beside that the same ratio from the variance of our
noise and from the scale that the peers' formula gives, without draws.

One goal is missed, 1.03: the variance of a column whose mean lies m half ranges off the
middle of its bounds, here 0.8, is at 1.06. First and second moment leave together and
``E u**2 - (E u)**2`` takes the noise of both, ``2.25 * sqrt(1 + 4 * m**2)`` where
OpenDP's variance alone takes 4: 0.56 of it at m = 0, as much at 0.73, 1.26 at an end.
Tried by algebra: noise of a variance alone is 1.78 times that of columns in the middle;
noise in the shape of the moments' own set of moves (a K-norm) would come to 1.02 of
OpenDP's, and 0.33 in the middle, but is a family of its own for each such set; a mean
first and a moment about it shares the budget between two releases, and loses in the
middle. Where the mean lies is not public, so no rule can choose.

Stores the figures with versions in ``benchmarks/results/everyday.csv``. ``--quick``
takes the small table and few draws of our own, checks what must hold on every machine,
and stores nothing.
"""

import argparse
import math
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._peers import Peer
from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import GroupPrivacy
from skpuffer.exceptions import PrivacyWarning
from skpuffer.scenarios import RecordScenario
from skpuffer.summary import PrivateMean, PrivateSummary

EPSILONS, BINS = (0.1, 1.0, 10.0), 20
N_DRAWS = {"mean": 10_000, "variance": 10_000, "histogram": 2_000}
COLUMNS = {
    "normal": ((-3.0, 3.0), lambda rng, n: rng.normal(size=n)),
    "exponential": ((0.0, 10.0), lambda rng, n: rng.exponential(size=n)),
}
RELATIONS = {"mean": "replace", "variance": "replace", "histogram": "add_remove"}
#: A ratio is taken for at most as much as this if it is within what draws may err.
LIMIT, ERRORS = 1.03, 3.0
PEERS = [
    Peer(
        name=name,
        variable=f"SKPUFFER_{name.upper()}_PYTHON",
        script=f"{name}_statistics.py",
        relation="replace",  # of means and variances
        pure=True,
    )
    for name in ("diffprivlib", "opendp")
]


class Redrawn:
    """Mixin that keeps what a fit releases, to draw its noise again and again."""

    def _execute(self, task, release, noise, rng):
        self.kept = release, release.run(task.X, task.y)
        return super()._execute(task, release, noise, rng)

    def draws(self, n_draws, read, rng):
        """What is published, by other draws of the same noise."""
        release, exact = self.kept
        for _ in range(n_draws):
            self._publish(exact + self.noise_.sample(exact.shape, rng), release)
            yield read(self)


class Mean(Redrawn, PrivateMean):
    """Mean whose noise is drawn again."""


class Summary(Redrawn, PrivateSummary):
    """Summary whose noise is drawn again."""


def models(bounds, epsilon):
    """Estimator of each statistic, and how its result is read."""

    def setting(statistic):
        scenario = RecordScenario(relation=RELATIONS[statistic])
        return scenario, GroupPrivacy(epsilon, math.inf)

    def result(model):
        return model.result_.to_numpy()[:, 0]

    def summary(statistic, asked):
        return Summary(*setting(statistic), statistics=asked, bounds=bounds, bins=BINS)

    return {
        "mean": (Mean(*setting("mean"), bounds=bounds), lambda m: m.mean_),
        "variance": (summary("variance", ["var"]), result),
        "histogram": (summary("histogram", ["histogram"]), result),
    }


def exact_of(x, bounds):
    """The statistics without noise."""
    counts = np.histogram(x, BINS, bounds)[0]
    return {"mean": x.mean(), "variance": x.var(), "histogram": counts}


def expected_ratio(statistic, model, exact, bounds, epsilon, n):
    """Error of our noise over that of the peers' scale, to first order in the noise."""
    spread, width = np.atleast_1d(model.noise_.std()), np.ptp(bounds)
    if statistic == "histogram":
        # a geometric mechanism of the same scale, for all who count
        t = math.exp(-epsilon)
        return float(spread[0] / (math.sqrt(2 * t) / (1 - t)))
    if statistic == "mean":
        return float(spread[0] / (math.sqrt(2) * width / (n * epsilon)))
    # of E x^2 - (E x)^2, about the middle of the bounds
    slope = 2 * (exact["mean"] - np.mean(bounds))
    error = math.hypot(spread[1], slope * spread[0])
    return error / (math.sqrt(2) * width**2 / (n * epsilon))


def rmse(squares):
    """Root of the mean of squared errors, and its standard error."""
    mean = np.mean(squares)
    spread = np.std(squares) / math.sqrt(len(squares))
    # of counts none may have been changed
    return math.sqrt(mean), spread / (2 * math.sqrt(mean)) if mean else 0.0


def rows_of(column, n, n_draws, peers):
    """Yield a row for each statistic and budget of one column."""
    bounds, draw = COLUMNS[column]
    x = np.clip(draw(np.random.default_rng(0), n), *bounds)
    exact = exact_of(x, bounds)
    asked = {"bounds": bounds, "bins": BINS, "epsilons": EPSILONS, "n_draws": n_draws}
    told = {peer.name: peer.measure(SimpleNamespace(x=x), **asked) for peer in peers}
    seeds = iter(np.random.SeedSequence(n).spawn(len(EPSILONS) * len(RELATIONS)))
    for epsilon in EPSILONS:
        for statistic, (model, read) in models(bounds, epsilon).items():
            model.fit(x[:, None])
            # no row errs by the draws of another
            times, rng = n_draws[statistic], np.random.default_rng(next(seeds))
            found = np.array(list(model.draws(times, read, rng))).reshape(times, -1)
            error, spread = rmse(np.square(found - exact[statistic]).mean(axis=1))
            row = {
                "statistic": statistic,
                "column": column,
                "n": n,
                "epsilon": epsilon,
                "relation": RELATIONS[statistic],
                "noise": model.noise_.family,
                "ours": error,
            }
            if statistic == "histogram":
                clipped = np.square(np.maximum(found, 0) - exact[statistic])
                row["ours_clipped"] = rmse(clipped.mean(axis=1))[0]
            for name, answer in told.items():
                squares = next(
                    part["squares"]
                    for part in answer["rows"]
                    if (part["statistic"], part["epsilon"]) == (statistic, epsilon)
                )
                row[name], row[f"{name}_error"] = rmse(squares)
                row[f"{name}_version"] = answer["versions"]["peer"]
            best = min(told, key=row.get, default=None)
            # without an error there is nothing to compare with, but the formula
            if best is not None and row[best] and error:
                row["ratio"] = row.get("ours_clipped", error) / row[best]
                relative = math.hypot(spread / error, row[f"{best}_error"] / row[best])
                row["ratio_error"] = row["ratio"] * relative
                row["best"] = best
            row["expected_ratio"] = expected_ratio(
                statistic, model, exact, bounds, epsilon, n
            )
            yield row


def check(frame):
    """Check that the limit is kept, by draws where there are any and by formula."""
    known = frame[frame["expected_ratio"] <= LIMIT]
    # the variance about the middle of bounds that the column is not in the middle of
    beyond = frame[frame["expected_ratio"] > LIMIT]
    assert set(beyond["statistic"]) <= {"variance"}, beyond
    assert set(beyond["column"]) <= {"exponential"}, beyond
    assert (frame["expected_ratio"] < 1.1).all(), beyond
    if "ratio" in frame:
        drawn = known[known["ratio"].notna()]
        assert (drawn["ratio"] <= LIMIT + ERRORS * drawn["ratio_error"]).all(), drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", PrivacyWarning)
    sizes = (10_000,) if quick else (10_000, 1_000_000)
    n_draws = dict.fromkeys(RELATIONS, 100) if quick else N_DRAWS
    peers = [] if quick else [peer for peer in PEERS if peer.interpreter]
    with threadpool_limits(1):
        frame = pd.DataFrame(
            [
                row
                for n in sizes
                for column in COLUMNS
                for row in rows_of(column, n, n_draws, peers)
            ]
        )
    check(frame)
    shown = [c for c in frame if not c.endswith(("_version", "_error"))]
    rows = [
        [f"{v:.3g}" if isinstance(v, float) else v for v in r]
        for r in frame[shown].to_numpy()
    ]
    print_table(rows, shown)
    if not quick:
        write_csv(frame.assign(**versions("numpy", "scikit-learn")), "everyday.csv")


if __name__ == "__main__":
    main()
