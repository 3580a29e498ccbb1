"""How often intervals hold the truth: every statistic, budget and shape of data.

    python -m benchmarks.coverage [--quick] [--draws 2000] [--only ESTIMATOR ...]

Tables of 200 and 2,000 people are drawn anew for each fit. They have a number (normal,
skewed, or of heavy tails that the bounds cut; a tenth of it missing), a group of three
in ten, and a category. Counted is how often an interval holds the number it is for: of
the whole table without noise (``table``), or of the population that the table was drawn
from (``population``), taken from two million people.

An interval that is marked as wide may hold it more often. None may do so less often
than 93 % at a level of 95 %, as far as so many draws tell. ``--quick`` takes few draws
of one shape and stores nothing. Any other run stores the figures of each cell in
``benchmarks/results/coverage.csv``, and for each statistic the least and the largest in
``coverage_statistics.csv``, which a page of the documentation shows. ``--only``
measures the estimators named, and keeps the stored figures of the others.
"""

import argparse
import itertools
import warnings

import joblib
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import skpuffer
from benchmarks._report import RESULTS, print_table, versions, write_csv
from skpuffer.accountants import PrivacyLoss
from skpuffer.covariance import PrivateCovariance
from skpuffer.linear_model import PrivateLinearRegression, PrivateLogit
from skpuffer.scenarios import RecordScenario
from skpuffer.schema import Category, Number, Schema
from skpuffer.summary import PrivateCDF, PrivateMean, PrivateSummary

KINDS, SIZES, EPSILONS = ("normal", "skewed", "heavy"), (200, 2000), (0.1, 1.0, 10.0)
LEVEL, LEAST, MOST = 0.95, 0.93, 0.97
GROUPS, LEVELS = ["F", "M"], ["a", "b", "c"]
#: Fewer intervals tell nothing of how often they are too long.
ENOUGH = 100
KEY = ["estimator", "statistic", "of"]

BOOK = Schema(
    {
        "x": Number(0, 10),
        "s": Category(GROUPS, missing_level=False, fill="F"),
        "k": Category(LEVELS, missing_level=False, fill="a"),
    }
)
SLOPES = Schema(
    {
        "x": Number(0, 10),
        "s": Category(GROUPS, missing_level=False, fill="F"),
        "y": Number(0, 10),
    },
    target="y",
)
PAIR = Schema({"x": Number(0, 10), "y": Number(0, 10)})
ODDS = Schema(
    {"x": Number(0, 10), "s": SLOPES["s"], "z": Category([False, True])}, target="z"
)
WITH_TARGET = ("PrivateLinearRegression", "PrivateLogit")
OF_X = ["count", "mean", "std", "var", "sum", "median"]


def people(kind, n, rng):
    """Draw a table."""
    if kind == "skewed":
        x = 10 * rng.beta(1, 6, n)
    else:
        x = 5 + (
            rng.normal(0, 1, n) if kind == "normal" else rng.standard_t(2.5, n) / 2
        )
    sex = rng.choice(GROUPS, n, p=[0.7, 0.3])
    x = np.clip(x + 0.5 * (sex == "M"), 0, 10)
    y = np.clip(4 + 0.2 * (x - 5) + 0.4 * (sex == "M") + rng.normal(0, 0.8, n), 0, 10)
    x[rng.random(n) < 0.1] = np.nan
    k = rng.choice(LEVELS, n, p=[0.6, 0.3, 0.1])
    z = rng.random(n) < 1 / (1 + np.exp(0.4 * (4 - y)))
    return pd.DataFrame({"x": x, "s": sex, "k": k, "y": y, "z": z})


# -- what is fitted, and what its numbers are without noise ----------------------------


def models(epsilon, n):
    """Yield names, estimators, columns that they read, and how tables are asked for."""
    accountant = PrivacyLoss(epsilon)
    asked = {"x": OF_X, "k": ["rate"]}
    yield "PrivateMean", PrivateMean(accountant=accountant, bounds=(0, 10)), ["x"]
    for name, parameters in {
        "PrivateSummary": {},
        "PrivateSummary, nonnegative": {"nonnegative": True},
        "PrivateSummary, by group": {"by": "s"},
        "PrivateSummary, private size": {"scenario": RecordScenario(size="private")},
    }.items():
        yield (
            name,
            PrivateSummary(
                accountant=accountant, schema=BOOK, statistics=asked, **parameters
            ),
            ["x", "s", "k"],
        )
    yield "PrivateCDF", PrivateCDF(accountant=accountant, bounds=(0, 10)), ["x"]
    yield (
        "PrivateLinearRegression",
        PrivateLinearRegression(accountant=accountant, schema=SLOPES),
        ["x", "s", "y"],
    )
    yield (
        "PrivateCovariance",
        PrivateCovariance(accountant=accountant, schema=PAIR),
        [*"xy"],
    )
    if n >= 2000:
        yield "PrivateLogit", PrivateLogit(accountant=accountant, schema=ODDS), [*"xsz"]


def truths(table):
    """Numbers of a table without noise, by group, column and statistic."""
    found = {}
    groups = {None: table} | dict(list(table.groupby("s")))
    for group, rows in groups.items():
        x = rows["x"].dropna()
        numbers = {
            "count": len(x),
            "mean": x.mean(),
            "std": x.std(ddof=0),
            "var": x.var(ddof=0),
            "sum": x.sum(),
            "median": x.median(),
            **{f"{q:g}%": x.quantile(q / 100) for q in (25, 50, 75)},
        }
        found |= {(group, "x", name): value for name, value in numbers.items()}
        found |= {
            (group, "k", f"rate[{level}]"): (rows["k"] == level).mean()
            for level in LEVELS
        }
    for column in ("mean", "std", "var", "median"):
        difference = found["M", "x", column] - found["F", "x", column]
        found["M - F", "x", column] = difference
    for level in LEVELS:
        label = f"rate[{level}]"
        found["M - F", "k", label] = found["M", "k", label] - found["F", "k", label]
    whole = table.dropna()
    design = np.column_stack([np.ones(len(whole)), whole["x"], whole["s"] == "M"])
    solved = np.linalg.lstsq(design.astype(float), whole["y"], rcond=None)[0]
    logit = LogisticRegression(C=np.inf, tol=1e-8).fit(design[:, 1:], whole["z"])
    for name, matrix in {"covariance": whole.cov, "correlation": whole.corr}.items():
        found[None, "x, y", name] = matrix(numeric_only=True).loc["x", "y"]
    odds = [*logit.intercept_, *logit.coef_[0]]
    for target, values in (("y", solved), ("z", odds)):
        for name, value in zip(("intercept", "x", "s_M"), values, strict=True):
            found[target, name, "coefficient"] = value
    return found


def frames(name, model, of):
    """Yield tidy tables of one fit, and the group that a row without one is of."""
    if name == "PrivateMean":
        low, high = model.confidence_interval(LEVEL, of=of)["mean_"]
        row = {"column": "x", "statistic": "mean", "low": low[0], "high": high[0]}
        yield name, pd.DataFrame([row | {"wide": of == "population"}])
        return
    frame = model.to_frame(LEVEL, of=of)
    if name == "PrivateCovariance":
        frame["column"] += ", " + frame["other"]
    yield name, frame
    if "by group" in name:
        found = model.compare("F", LEVEL, of=of)
        yield f"{name}, differences", found.assign(s="M - F")


def measure(kind, n, epsilon, draws, seed, population, only=()):
    """Return a row for each statistic: how often its intervals hold the truth."""
    rng, rows = np.random.default_rng(seed), {}
    scaled = {
        key: value * n / SAMPLED if key[2] in ("count", "sum") else value
        for key, value in population.items()
    }
    fitted = [one for one in models(epsilon, n) if not only or one[0] in only]
    for _ in range(draws):
        table = people(kind, n, rng)
        of_table = truths(table)
        for (name, model, columns), of in itertools.product(
            fitted, ("table", "population")
        ):
            target = columns[-1] if name in WITH_TARGET else None
            if of == "table":
                read = table[columns]
                if name == "PrivateMean":
                    read = read.fillna(5.0)
                if name == "PrivateCDF":
                    read = read.dropna()
                if target is not None:
                    model.fit(read.drop(columns=target), read[target])
                else:
                    model.fit(read)
            truth = of_table if of == "table" else scaled
            for shown, frame in frames(name, model, of):
                groups = frame["s"] if "s" in frame else [target] * len(frame)
                listed = (
                    frame[c] for c in ("column", "statistic", "low", "high", "wide")
                )
                for group, column, label, low, high, wide in zip(
                    groups, *listed, strict=True
                ):
                    key = _key(group, column, label)
                    if key not in truth:
                        continue
                    # as many records as are drawn here, where it takes them to arrive
                    arrive = of == "population" and label in ("count", "sum")
                    if arrive and "private size" in name:
                        continue
                    true = truth[key]
                    if name == "PrivateMean":
                        true = (
                            0.9 * true + 0.5 if of == "population" else _filled(table)
                        )
                    inside = low - 1e-9 <= true <= high + 1e-9
                    statistic = label.partition("[")[0]
                    at = shown, statistic, of, bool(wide)
                    held = rows.setdefault(at, [0, 0])
                    held[0] += inside
                    held[1] += 1
    found = [
        dict(zip((*KEY, "wide"), at, strict=True)) | {"held": h, "intervals": m}
        for at, (h, m) in rows.items()
    ]
    return pd.DataFrame(found).assign(kind=kind, n=n, epsilon=epsilon)


def _filled(table):
    return table["x"].fillna(5.0).mean()


def _key(group, column, label):
    return group, "intercept" if column == "constant" else column, label


SAMPLED = 2_000_000


def pooled(frame, key):
    """Return how often intervals held, and how many were marked as wide, by a key."""
    wide = frame["intervals"].where(frame["wide"], 0)
    total = frame.assign(wide=wide).groupby(key, sort=False)
    total = total[["held", "intervals", "wide"]].sum()
    share = total["held"] / total["intervals"]
    return pd.DataFrame({"share": share, "wide": total["wide"] / total["intervals"]})


def check(frame, draws):
    """Assert that no interval is too short, and return those that are too long."""
    # of shapes and sizes together; intervals of one table count as one
    found = pooled(frame, [*KEY, "epsilon"])["share"]
    error = np.sqrt(LEVEL * (1 - LEVEL) / (draws * len(KINDS) * len(SIZES)))
    short = found[found < LEAST - 2 * error]
    assert short.empty, short
    sharp = frame[~frame["wide"]]
    enough = sharp.groupby([*KEY, "epsilon"])["intervals"].transform("sum") >= ENOUGH
    found = pooled(sharp[enough], [*KEY, "epsilon"])["share"]
    return found[found > MOST + 2 * error]


def by_statistic(frame):
    """Return a row for each statistic, with how often its intervals hold by budget."""
    share = pooled(frame, [*KEY, "epsilon"])["share"].unstack("epsilon", sort=False)
    share.columns = [f"ε = {epsilon:g}" for epsilon in share.columns]
    wide = pooled(frame, KEY)["wide"].rename("marked as wide")
    return share.round(3).join(wide.round(2)).reset_index()


def main(arguments=None):
    """Measure, print, store; see the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=())
    options = parser.parse_args(arguments)
    cells = list(itertools.product(KINDS, SIZES, EPSILONS))
    if options.quick:
        cells = [("skewed", 200, 1.0)]
    draws = 20 if options.quick else options.draws
    population = {}
    for kind in dict.fromkeys(kind for kind, *_ in cells):
        population[kind] = truths(people(kind, SAMPLED, np.random.default_rng(1)))

    def one(at, kind, n, epsilon):
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked = kind, n, epsilon, draws, at, population[kind]
            return measure(*asked, only=options.only)

    jobs = 1 if options.quick else options.jobs
    parts = joblib.Parallel(n_jobs=jobs)(
        joblib.delayed(one)(at, *cell) for at, cell in enumerate(cells)
    )
    # small tables have nothing of some estimators
    frame = pd.concat([part for part in parts if "held" in part], ignore_index=True)
    if options.only:
        stored = pd.read_csv(RESULTS / "coverage.csv")[frame.columns]
        kept = stored[~stored["estimator"].str.split(",").str[0].isin(options.only)]
        frame = pd.concat([kept, frame], ignore_index=True)
    shown = by_statistic(frame)
    print_table(shown.astype(str).to_numpy().tolist(), header=list(shown))
    if options.quick:
        # of few draws; some of a statistic are wide, so that they are counted together
        assert (pooled(frame, KEY)["share"] >= 0.6).all()
        return
    used = {"skpuffer": skpuffer.__version__} | versions("numpy", "scipy", "pandas")
    write_csv(frame.assign(**used), "coverage.csv")
    write_csv(shown, "coverage_statistics.csv")
    print(check(frame, draws).to_string())


if __name__ == "__main__":
    main()
