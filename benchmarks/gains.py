"""What a scenario buys each estimator: noise of plain DP over the noise of the fit.

    python -m benchmarks.gains [--quick] [--only ESTIMATOR ...] [--scenarios ...]
                               [--accountants ...]

Every estimator is *fitted* by every recommended accountant under a scenario of every
kind, on real tables, for the promise (1, 1e-5). A row says whether the fit works or
with which words it was refused, and the gain: the noise that replacing as many
arbitrary records would need for the same promise, by its best accountant, over the
noise used. Where records depend on each other as many records are all that may differ
with the secret, so beside it stands the same for one record. A fit may take 30 seconds
of computing, and the row says where it was stopped.

Stores the figures with versions in ``benchmarks/results/gains.csv``, from which the
documentation makes its tables; ``--quick`` fits small tables and stores nothing.
``--only`` fits the estimators that are named, by the names of :func:`fits`, and
``--scenarios`` those under the scenarios of these names, ``--accountants`` by the
accountants of these; the stored figures of all others are kept.
"""

import argparse
import math
import signal
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pandas as pd
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, read_csv, renewed, versions, write_csv
from benchmarks._scenarios import cases
from skpuffer.accountants._base import known_accountants
from skpuffer.accountants._gain import gain_over_records
from skpuffer.additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from skpuffer.cluster import PrivateKMeans
from skpuffer.compose import OutputPerturbation
from skpuffer.decomposition import PrivatePCA
from skpuffer.ensemble import PATEClassifier
from skpuffer.exceptions import PrivacyWarning
from skpuffer.linear_model import (
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.linear_model._base_sgd import LinearTraining
from skpuffer.naive_bayes import PrivateCategoricalNB, PrivateGaussianNB
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.summary import (
    PrivateCDF,
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateStatistic,
    PrivateSummary,
)
from skpuffer.svm import PrivateLinearSVC
from skpuffer.synthesis import PrivateTableSynthesizer
from skpuffer.training import Training

FILE = "gains.csv"
#: What there is one row for.
KEY = ["scenario", "estimator", "accountant"]

EPSILON, DELTA = 1.0, 1e-5
RECORDS, QUICK_RECORDS = 1000, 40
#: Seconds of computing that a fit may take.
LIMIT = 30

#: Kinds of release, as in `compatibility_table`.
SUM = "sum over records (mean, histogram, …)"
SMOOTH = "smooth in each record (regularised models)"
BOUNDED, UNBOUNDED = "any query, with a sensitivity", "any query, without one"
FULL_BATCH, POISSON = (
    f"gradients, sampling={by!r}" for by in ("full_batch", "poisson")
)
LAST_ITERATE = "gradients of a linear model, whose last iterate leaves"
STAGES = "several sums in turn, each after the noisy ones before"
VOTES = "votes of teachers"
CHOICES = "choices by noisy scores (quantiles)"
#: How a refusal says that the release, whatever the scenario, is none to account for.
UNREAD = ("accounts for", "does not read")
#: Logistic regression takes the way that its accountant knows, and goes further.
EITHER = f"{SMOOTH} or {FULL_BATCH}"


@dataclass(frozen=True)
class Fit:
    """An estimator as it is fitted.

    Parameters
    ----------
    model : estimator
    target : Series or None
    release : str
        Which kind of release it makes.
    """

    model: Any
    target: pd.Series | None
    release: str


def _outputs(n, n_outputs):
    """Weights of a logistic regression, with as much of a proof as one likes.

    With C the objective is 1-strongly convex, rows are in the unit ball, and the
    weights never longer than sqrt(2 n C log 2).
    """
    C = 0.01
    logistic = LogisticRegression(C=C, fit_intercept=False)
    public = {"classes": [0, 1], "n_outputs": n_outputs}
    bounded = {"sensitivity": 2 * C, **public}
    lipschitz = C * (1 + math.sqrt(2 * n * C * math.log(2)) / 4)
    return (
        OutputPerturbation(logistic, lipschitz=lipschitz, **bounded),
        OutputPerturbation(logistic, **bounded),
        OutputPerturbation(logistic, **public),
    )


def _statistic(table):
    """Return a function of the table, of which no more is said than a sensitivity."""
    n, d = table.X.shape
    low, high = table.bounds
    move = (high - low) * math.sqrt(d) / n
    return PrivateStatistic(_column_means, sensitivity=move, n_outputs=d)


def _column_means(rows):
    return rows.mean(axis=0)


def fits(table):
    """Return what is fitted on a table, by name; labels and bounds are public."""
    n = len(table.X)
    labels, units = {"classes": [0, 1]}, {"target_bounds": (0, 1)}
    sums = (PrivateMean, PrivateSummary, PrivateStandardScaler)
    bayes = (PrivateGaussianNB, PrivateCategoricalNB)
    trained = (PrivateLinearSVC, PrivateSGDClassifier, PrivateMLPClassifier)
    smooth, bounded, unbounded = _outputs(n, table.X.shape[1])
    found = [
        *(Fit(kind(bounds=table.bounds), None, SUM) for kind in sums),
        Fit(PrivateCDF(bounds=table.bounds), None, SUM),
        Fit(PrivateQuantile(bounds=table.bounds), None, CHOICES),
        Fit(_statistic(table), None, BOUNDED),
        Fit(PrivateRidge(solver="moments", **units), table.number, SUM),
        Fit(PrivateHuberRegressor(**units), table.number, SMOOTH),
        Fit(PrivateSGDRegressor(**units), table.number, FULL_BATCH),
        Fit(PrivateLogisticRegression(**labels), table.label, EITHER),
        *(Fit(kind(**labels), table.label, FULL_BATCH) for kind in trained),
        Fit(PrivatePCA(bounds=table.bounds), None, SUM),
        *(Fit(kind(bounds=table.bounds, **labels), table.label, SUM) for kind in bayes),
        Fit(PrivateKMeans(2, bounds=table.bounds), None, STAGES),
        Fit(
            PrivateAdditiveClassifier(bounds=table.bounds, **labels),
            table.label,
            STAGES,
        ),
        Fit(
            PrivateAdditiveRegressor(bounds=table.bounds, **units),
            table.number,
            STAGES,
        ),
        Fit(PrivateTableSynthesizer(bounds=table.bounds), None, STAGES),
        Fit(PATEClassifier(n_teachers=min(50, n // 8), **labels), table.label, VOTES),
        Fit(smooth, table.label, SMOOTH),
    ]
    poisson = PrivateSGDClassifier(
        training=Training(sampling="poisson", batch_size=n // 10), **labels
    )
    others = {
        "PrivateLogisticRegression, solver='output'": Fit(
            PrivateLogisticRegression(solver="output", **labels), table.label, SMOOTH
        ),
        "PrivateSGDClassifier, sampling='poisson'": Fit(poisson, table.label, POISSON),
        "OutputPerturbation, a sensitivity alone": Fit(bounded, table.label, BOUNDED),
        "OutputPerturbation, nothing proven": Fit(unbounded, table.label, UNBOUNDED),
    }
    return {type(fit.model).__name__: fit for fit in found} | others


def accountants():
    """Return each recommended accountant at the target, by name."""
    kinds = [k for k in known_accountants() if k.recommended]
    return {kind.__name__: kind(EPSILON, delta=DELTA) for kind in kinds}


def _release_under(accountant, fit):
    """Return which kind of release an estimator makes under an accountant."""
    trained = fit.release in (FULL_BATCH, POISSON, EITHER)
    linear = isinstance(fit.model, LinearTraining)
    if accountant.last_iterate_only and trained and linear:
        return LAST_ITERATE
    return fit.release


def _why(error):
    """Return the first sentence of a refusal; of Best's, the one that tells most.

    Best lists the reasons of all accountants. That of the Wasserstein mechanism is what
    the scenario lacks for a query, that of `PrivacyLoss` for any other release.
    """
    first, *lines = str(error).split("\n")
    reasons = [line.split(": ", 1) for line in lines if ": " in line]
    of_queries, of_others = (
        [
            why
            for names, why in reasons
            if name in names and not any(unread in why for unread in UNREAD)
        ]
        for name in ("GeneralWasserstein", "PrivacyLoss")
    )
    said = (of_queries + of_others + [first])[0]
    # the remedies that follow are those of this one fit
    return said.split(". ")[0].split("; ")[0].rstrip(".")


@contextmanager
def limited(seconds):
    """Raise a TimeoutError once this process has computed for so long."""

    def stop(*_):
        raise TimeoutError(f"it takes more than {seconds:g} seconds of computing")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def outcome(model, target, case, accountant):
    """Fit once, and return what came of it as the cells of a row."""
    compared = []
    model.set_params(scenario=case.scenario, accountant=accountant)
    parts = (case.table.X,) if target is None else (case.table.X, target)
    start = time.process_time()
    try:
        # what `fit` compares before it warns of no gain, under every scenario
        with (
            limited(LIMIT),
            patch(
                "skpuffer.base.announce_gain",
                lambda model, *made: compared.append(made),
            ),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", PrivacyWarning)
            model.fit(*parts)
    except (ValueError, TimeoutError) as error:
        found = {"works": False, "reason": _why(error)}
        return found | {"seconds": time.process_time() - start}
    seconds = time.process_time() - start
    calibration, used, release, bound = compared[-1]
    made = (calibration, used.epsilon, release, bound)
    gain, one = gain_over_records(*made), gain_over_records(*made, count=1)
    certificate = model.certificate_
    won = str(certificate.choice).partition(", of the least")[0]
    return {
        "works": certificate.certified,
        "reason": "" if certificate.certified else "an estimate, which is no promise",
        "gain": gain[0] if gain else math.nan,
        "records": gain[1] if gain else math.nan,
        "gain_over_one": one[0] if one else math.nan,
        "won": won.replace(f"delta={DELTA:g}, ", "").replace(f"delta={DELTA:g}", ""),
        "seconds": seconds,
    }


def measured(n, *, small=False, scenarios=None, only=None, by=None):
    """Fit everything, and return a data frame with a row for each fit.

    What is fitted can be told by the names of scenarios, of :func:`fits` and of
    accountants.

    Small tables are fitted with one estimator of each kind of release, by `Best` alone,
    and without the one chain, whose quilts take longest; blocks of it stay.
    """
    asked = cases(n)
    if small:
        del asked["MarkovChainScenario"]
    if scenarios is not None:
        asked = {name: asked[name] for name in scenarios}
    rows = []
    for scenario, case in asked.items():
        every = fits(case.table)
        if small:
            # the first of each
            first = {fit.release: name for name, fit in reversed(every.items())}
            every = {name: every[name] for name in first.values()}
        if only is not None:
            every = {name: every[name] for name in only}
        by_name = accountants()
        for name, fit in every.items():
            for accountant in by or (("Best",) if small else by_name):
                found = outcome(fit.model, fit.target, case, by_name[accountant])
                row = {
                    "scenario": scenario,
                    "secret": case.in_words,
                    "table": case.table.name,
                    "n": len(case.table.X),
                    "estimator": name,
                    "release": _release_under(by_name[accountant], fit),
                    "accountant": accountant,
                }
                rows.append(row | found)
    return pd.DataFrame(rows)


def check(frame):
    """What must hold of gains at every size."""
    by_best = frame[frame["accountant"] == "Best"].set_index("scenario")
    fitted = by_best[by_best["works"]]
    # whoever counts whole records promises no less: a scenario never costs more
    assert (fitted["gain"] > 1 - 1e-3).all(), fitted[fitted["gain"] <= 1 - 1e-3]
    # the noise that hides more records is no less than that which hides one
    assert (fitted["gain_over_one"] <= fitted["gain"] * (1 + 1e-3)).all()
    plain = fitted.loc["RecordScenario"]
    assert (plain["gain"] < 1 + 1e-3).all(), plain
    for belief in ("BoundedOdds(4)", "BoundedInference(.72)", "DeclaredOdds"):
        # Of whatever has a sensitivity, as differential privacy needs too. What is
        # believed of a record says nothing of scores: choices take it for any other.
        bounded = by_best.loc[belief].query("release not in (@UNBOUNDED, @CHOICES)")
        assert (bounded["gain"] > 3).all(), bounded
    households = by_best.loc["BlocksScenario of records"].set_index("estimator")
    assert households.loc["PATEClassifier", "gain"] > 3.9, households


def _in_order(frame):
    """Return rows in the order in which a run of everything makes them."""
    asked = cases(QUICK_RECORDS)
    order = list(asked), list(fits(asked["RecordScenario"].table)), list(accountants())
    ranks = {
        column: {name: i for i, name in enumerate(names)}
        for column, names in zip(KEY, order, strict=True)
    }
    return frame.sort_values(
        KEY, key=lambda names: names.map(ranks[names.name]), ignore_index=True
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="ESTIMATOR")
    parser.add_argument("--scenarios", nargs="+", metavar="SCENARIO")
    parser.add_argument("--accountants", nargs="+", metavar="ACCOUNTANT")
    options = parser.parse_args()
    quick = options.quick
    n = QUICK_RECORDS if quick else RECORDS
    with threadpool_limits(1):
        frame = measured(
            n,
            small=quick,
            scenarios=options.scenarios,
            only=options.only,
            by=options.accountants,
        )
    used = versions("numpy", "scipy", "scikit-learn")
    figures = {"gain": 4, "gain_over_one": 4, "seconds": 2}
    frame = frame.assign(**used).round(figures)
    if options.only or options.scenarios or options.accountants:
        frame = _in_order(renewed(read_csv(FILE, frame.columns), frame, KEY))
    check(frame)
    shown = frame[frame["accountant"] == "Best"]
    print_table(
        [
            (r.scenario, r.estimator, f"{r.gain:.3g}" if r.works else "-", r.won)
            for r in shown.fillna({"won": ""}).itertuples()
        ],
        ("scenario", "estimator", "gain", "accountant"),
    )
    if not quick:
        write_csv(frame, FILE)


if __name__ == "__main__":
    main()
