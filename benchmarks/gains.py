"""What a scenario buys each estimator: noise of plain DP over the noise of the fit.

    python -m benchmarks.gains [--quick]

Every estimator is *fitted* under a scenario of every kind, on real tables, for the
promise (1, 1e-5) by ``Best``; one estimator for each kind of release by each named
accountant as well. A row says whether the fit works or with which words it was refused,
which accountant won, and the gain: the noise that replacing as many arbitrary records
would need for the same promise, by its best accountant, over the noise used. Where
records depend on each other as many records are all that may differ with the secret.

Stores the figures with versions in ``benchmarks/results/gains.csv``, from which the
documentation makes its table; ``--quick`` fits small tables and stores nothing.
"""

import argparse
import math
import time
import warnings
from unittest.mock import patch

import pandas as pd
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from benchmarks._scenarios import cases
from skpuffer.accountants import Best
from skpuffer.accountants._base import known_accountants
from skpuffer.accountants._gain import gain_over_records
from skpuffer.compose import OutputPerturbation
from skpuffer.ensemble import PATEClassifier
from skpuffer.exceptions import PrivacyWarning
from skpuffer.linear_model import (
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.summary import PrivateMean, PrivateStandardScaler, PrivateSummary
from skpuffer.svm import PrivateLinearSVC

EPSILON, DELTA = 1.0, 1e-5
RECORDS, QUICK_RECORDS = 1000, 40


def _output(n):
    """Weights of a logistic regression, with a proof of how far records move them.

    With C the objective is 1-strongly convex, rows are in the unit ball, and the
    weights never longer than sqrt(2 n C log 2).
    """
    C = 0.01
    return OutputPerturbation(
        LogisticRegression(C=C, fit_intercept=False),
        sensitivity=2 * C,
        lipschitz=C * (1 + math.sqrt(2 * n * C * math.log(2)) / 4),
        classes=[0, 1],
    )


def estimators(table):
    """Return every estimator and its target on a table, by name; public labels."""
    n = len(table.X)
    labels = {"classes": [0, 1]}
    units = {"target_bounds": (0, 1)}
    unsupervised = [
        kind(bounds=table.bounds)
        for kind in (PrivateMean, PrivateSummary, PrivateStandardScaler)
    ]
    regressors = [
        kind(**units)
        for kind in (PrivateRidge, PrivateHuberRegressor, PrivateSGDRegressor)
    ]
    classifiers = [
        *(
            kind(**labels)
            for kind in (
                PrivateLogisticRegression,
                PrivateLinearSVC,
                PrivateSGDClassifier,
                PrivateMLPClassifier,
            )
        ),
        PATEClassifier(n_teachers=min(50, n // 8), **labels),
        _output(n),
    ]
    groups = (
        (unsupervised, None),
        (regressors, table.number),
        (classifiers, table.label),
    )
    return {
        type(model).__name__: (model, target)
        for models, target in groups
        for model in models
    }


def representatives(table):
    """Return one estimator for each kind of release, by the kind."""
    found = estimators(table)
    logistic, label = found["PrivateLogisticRegression"]
    return {
        "PrivateMean": found["PrivateMean"],
        "PrivateLogisticRegression, solver='output'": (
            logistic.set_params(solver="output"),
            label,
        ),
        "PrivateSGDClassifier": found["PrivateSGDClassifier"],
        "PATEClassifier": found["PATEClassifier"],
    }


def accountants():
    """Return each recommended accountant at the target, by name."""
    kinds = [k for k in known_accountants() if k.recommended and k is not Best]
    return {kind.__name__: kind(EPSILON, delta=DELTA) for kind in kinds}


def _why(error):
    """Return the first sentence of a refusal; of Best's, the one that tells most.

    Best lists the reasons of all accountants. That of the Wasserstein mechanism is what
    the scenario lacks for a query, that of `PrivacyLoss` for any other release.
    """
    first, *lines = str(error).split("\n")
    reasons = [line.split(": ", 1) for line in lines if ": " in line]
    of_queries, of_others = (
        [why for names, why in reasons if name in names and "accounts for" not in why]
        for name in ("GeneralWasserstein", "PrivacyLoss")
    )
    said = (of_queries + of_others + [first])[0]
    # the remedies that follow are those of this one fit
    return said.split(". ")[0].split("; ")[0].rstrip(".")


def outcome(model, target, case, accountant):
    """Fit once, and return what came of it as the cells of a row."""
    compared = []
    model.set_params(scenario=case.scenario, accountant=accountant)
    parts = (case.table.X,) if target is None else (case.table.X, target)
    start = time.process_time()
    try:
        # what `fit` compares before it warns of no gain, under every scenario
        with (
            patch(
                "skpuffer.base.announce_gain",
                lambda model, *made: compared.append(made),
            ),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", PrivacyWarning)
            model.fit(*parts)
    except ValueError as error:
        found = {"works": False, "reason": _why(error)}
        return found | {"seconds": time.process_time() - start}
    seconds = time.process_time() - start
    calibration, used, release, bound = compared[-1]
    gain = gain_over_records(calibration, used.epsilon, release, bound)
    certificate = model.certificate_
    won = certificate.choice.partition(", of the least")[0]
    return {
        "works": certificate.certified,
        "reason": "" if certificate.certified else "an estimate, which is no promise",
        "gain": gain[0] if gain else math.nan,
        "records": gain[1] if gain else math.nan,
        "won": won.replace(f"delta={DELTA:g}, ", "").replace(f"delta={DELTA:g}", ""),
        "seconds": seconds,
    }


def measured(n, *, small=False):
    """Fit everything, and return a data frame with a row for each fit.

    Small tables are fitted with one estimator of each kind of release, by `Best` alone,
    and without the one chain, whose quilts take longest; blocks of it stay.
    """
    asked = cases(n)
    if small:
        del asked["MarkovChainScenario"]
    rows = []
    for scenario, case in asked.items():
        few, every = representatives(case.table), estimators(case.table)
        fits = [
            (name, "Best", *fit, Best(EPSILON, delta=DELTA))
            for name, fit in (few if small else every).items()
        ]
        if not small:
            fits += [
                (name, by, *fit, accountant)
                for name, fit in few.items()
                for by, accountant in accountants().items()
            ]
        for name, by, model, target, accountant in fits:
            row = {
                "scenario": scenario,
                "secret": case.in_words,
                "table": case.table.name,
                "n": len(case.table.X),
                "estimator": name,
                "accountant": by,
            }
            rows.append(row | outcome(model, target, case, accountant))
    return pd.DataFrame(rows)


def check(frame):
    """What must hold of gains at every size."""
    by_best = frame[frame["accountant"] == "Best"].set_index("scenario")
    fitted = by_best[by_best["works"]]
    # whoever counts whole records promises no less: a scenario never costs more
    assert (fitted["gain"] > 1 - 1e-3).all(), fitted[fitted["gain"] <= 1 - 1e-3]
    plain = fitted.loc["RecordScenario"]
    assert (plain["gain"] < 1 + 1e-3).all(), plain
    for belief in ("BoundedOdds(4)", "BoundedInference(.72)", "DeclaredOdds"):
        gains = by_best.loc[belief, "gain"]
        assert (gains > 3).all(), gains
    households = by_best.loc["BlocksScenario of records"].set_index("estimator")
    assert households.loc["PATEClassifier", "gain"] > 3.9, households


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    with threadpool_limits(1):
        frame = measured(QUICK_RECORDS if quick else RECORDS, small=quick)
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
        used = versions("numpy", "scipy", "scikit-learn")
        figures = {"gain": 4, "seconds": 2}
        write_csv(frame.assign(**used).round(figures), "gains.csv")


if __name__ == "__main__":
    main()
