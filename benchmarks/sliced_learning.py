"""Training under sliced Rényi Pufferfish accounting: accuracy, attacks, and the noise.

    python -m benchmarks.sliced_learning [--quick] [--only PART ...] [--jobs N]

The learning half of Zhang and Vorobeychik, *Sliced Rényi Pufferfish privacy*, on tables
instead of images, after its section 6.2 and appendix W. The secret is how common a
class or an attribute is: two worlds that differ in ten records. The parts:

* ``learning``: accuracy of three models on three tables at 22 budgets of Rényi order 8,
  by five ways of accounting.
* ``attacks``: how well the two worlds are told apart by the fitted model, at the noise
  of three of these: log-moments, hidden batches, and one record, which promises nothing
  of ten.
* ``overfitted``: a perceptron that reads 1000 records 200 times, at nine budgets of
  order 16 and without noise; who was a member, out of 1000 members and 1000 others?
* ``table``: 4000 records, ten of which differ, 200 batches of 200, at three budgets.

The ways of accounting: the paper's caps by the worst batch, by log-moments, and by the
mean square, which certifies its own notion (sa-) and no more; batches that stay hidden
(:class:`RenyiDP`); and one record instead of ten, differential privacy, also hidden.

Stores a table for each part with versions in ``benchmarks/results/``. ``--quick``
takes few budgets and runs and stores nothing. What must hold is checked in every run:
no attack exceeds what the certificate allows it.
"""

import argparse
import math
import warnings

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from benchmarks._prevalence_tasks import (
    ALPHA,
    BATCH,
    DIFFER,
    HIDDEN,
    LOG,
    RECORD,
    SQUARE,
    STEPS,
    TASKS,
    WAYS,
    WORST,
    accountant_of,
    accounted,
    logistic_table,
    models,
    race_task,
    scenario_of,
)
from benchmarks._report import print_table, versions, write_csv
from skpuffer.audit import distinguishing_attack, largest_auc, membership_attack
from skpuffer.exceptions import PrivacyWarning
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.scenarios import PrevalenceScenario
from skpuffer.training import Training

#: The 22 budgets of the paper's first half; those of its second are among them or near.
EPSILONS = (
    0.05,
    0.1,
    0.2,
    0.4,
    0.8,
    1,
    2,
    4,
    8,
    10,
    12,
    14,
    18,
    20,
    25,
    30,
    35,
    40,
    45,
)
EPSILONS += (50, 55, 60)

#: Ways of which the fitted models are attacked.
ATTACKED = (LOG, HIDDEN, RECORD)

#: Fits in each world that are told apart, and fits of which the accuracy is the mean.
RUNS, FITS = 30, 3

#: Public rows at which a perceptron's answers are looked at.
PROBES = 200

OVERFITTED = (2, 8, 20, 50, 70, 100, 200, 300, 500)
#: Members, and as many others; records of a batch; steps, which are 200 epochs.
MEMBERS, MEMBER_BATCH, MEMBER_STEPS, MEMBER_ALPHA = 1000, 256, 782, 16.0
SPLITS = 4

TABLE = (0.5, 8.0, 64.0)


# -- accuracy, and two worlds told apart -----------------------------------------------


def released(model, task):
    """What an attacker looks at: coefficients, or the answers of a perceptron."""
    if hasattr(model, "coef_"):
        return np.concatenate([np.ravel(model.coef_), np.ravel(model.intercept_)])
    proba = np.clip(model.predict_proba(task.X[:PROBES]), 1e-12, None)
    # log-odds against the first class
    return np.log(proba[:, 1:] / proba[:, :1]).ravel()


def direction(task, name, n_seeds=3):
    """How what is released differs between the worlds, where there is no noise."""
    warnings.simplefilter("ignore", PrivacyWarning)
    plain = accounted(models(task)[name], RECORD, 1e8, task.scenario)
    plain.set_params(training__sampling="full_batch", training__batch_size=None)
    apart = [
        [
            released(clone(plain).set_params(random_state=seed).fit(X, y), task)
            for X, y in task.worlds
        ]
        for seed in range(n_seeds)
    ]
    return np.diff(np.mean(apart, axis=0), axis=0)[0]


def _at_budget(table, name, way, epsilon):
    """Return a task, and a model for it at one budget by one way of accounting."""
    warnings.simplefilter("ignore", PrivacyWarning)
    task = TASKS[table]()
    return task, accounted(models(task)[name], way, epsilon, task.scenario)


def learning_cell(table, name, way, epsilon, n_fits):
    """Row of one model at one budget by one way of accounting."""
    task, model = _at_budget(table, name, way, epsilon)
    X, y = task.worlds[0]
    scores = [model.fit(X, y).score(task.X, task.y) for _ in range(n_fits)]
    return {
        "table": table,
        "model": name,
        "accounting": way,
        "epsilon": float(epsilon),
        # of the noise on a batch's mean gradient
        "sigma": float(model.noise_.scale) / model.release_.divisor,
        "accuracy": np.mean(scores),
        "spread": np.std(scores, ddof=1),
        "fits": n_fits,
    }


def attack_cell(table, name, way, epsilon, n_runs, towards):
    """Row of an attack on one model at one budget by one way of accounting."""
    task, model = _at_budget(table, name, way, epsilon)
    low, high = (
        np.array([released(model.fit(X, y), task) @ towards for _ in range(n_runs)])
        for X, y in task.worlds
    )
    # the direction was found elsewhere: one output of each world is all that is spent
    attack = distinguishing_attack(
        high, low, score=lambda statistic: statistic[:, 0], share=1.5 / n_runs
    )
    interval = attack.auc_interval()
    return {
        "table": table,
        "model": name,
        "accounting": way,
        "epsilon": float(epsilon),
        "sigma": float(model.noise_.scale) / model.release_.divisor,
        "runs": n_runs,
        "auc": attack.auc,
        "auc_low": interval[0],
        "auc_high": interval[1],
        # a certificate of one record is none of these worlds
        "auc_allowed": (math.nan if way == RECORD else largest_auc(model.certificate_)),
    }


def _asked(quick):
    tables = list(TASKS)[1:2] if quick else list(TASKS)
    names = ["logistic regression"] if quick else list(models(race_task()))
    budgets = (0.05, 8, 60) if quick else EPSILONS
    return [(table, name) for table in tables for name in names], budgets


def learning(quick, jobs):
    """Accuracy at all budgets."""
    pairs, budgets = _asked(quick)
    for pair in pairs:
        cells = [(way, epsilon) for way in WAYS for epsilon in budgets]
        rows = Parallel(jobs)(
            delayed(learning_cell)(*pair, *cell, 2 if quick else FITS) for cell in cells
        )
        yield pd.DataFrame(rows)


def attacks(quick, jobs):
    """The two worlds told apart, at all budgets."""
    warnings.simplefilter("ignore", PrivacyWarning)
    pairs, budgets = _asked(quick)
    found = Parallel(jobs)(
        delayed(direction)(TASKS[table](), name) for table, name in pairs
    )
    towards = dict(zip(pairs, found, strict=True))
    # budget by budget, far apart ones first: whoever stops early has some of all
    order = [epsilon for first in (0, 2, 1, 3) for epsilon in budgets[first::4]]
    for epsilon in order:
        rows = Parallel(jobs)(
            delayed(attack_cell)(
                *pair, way, epsilon, 6 if quick else RUNS, towards[pair]
            )
            for pair in pairs
            for way in ATTACKED
        )
        yield pd.DataFrame(rows)


def check_learning(frame):
    """What must hold of accuracy and noise."""
    sigma = frame.pivot_table(
        index=["table", "model", "epsilon"], columns="accounting", values="sigma"
    )
    assert (sigma[SQUARE] <= sigma[LOG] * (1 + 1e-4)).all()
    assert (sigma[LOG] <= sigma[WORST] * (1 + 1e-4)).all()
    # hidden batches promise more than either and cost less
    assert (sigma[HIDDEN] < sigma[SQUARE]).all()
    assert (sigma[RECORD] < sigma[HIDDEN]).all()
    most = frame[frame["epsilon"] == frame["epsilon"].max()]
    accuracy = most.pivot_table(
        index=["table", "model"], columns="accounting", values="accuracy"
    )
    assert (accuracy[HIDDEN] > accuracy[WORST]).all(), accuracy


def check_attacks(frame):
    """What must hold of attacks: no certificate is broken, where there is one."""
    promised = frame["accounting"] != RECORD
    assert (frame["auc_allowed"].notna() == promised).all()
    broken = frame[frame["auc_low"] > frame["auc_allowed"]]
    assert broken.empty, broken


# -- a model that reads few records often ----------------------------------------------


def _perceptron(way, epsilon):
    scenario = PrevalenceScenario("race", 100, 101, value="Black")
    return PrivateMLPClassifier(
        scenario=scenario_of(way, scenario),
        accountant=accountant_of(way, epsilon, MEMBER_ALPHA),
        training=Training(
            sampling=WAYS[way],
            batch_size=MEMBER_BATCH,
            n_steps=MEMBER_STEPS,
            clip_norm=1.0,
        ),
        hidden_size=128,
        classes=[0, 1],
        data_norm=3.0,
    )


def overfitted_cell(way, epsilon, split):
    """Row of one perceptron on one draw of members and others."""
    warnings.simplefilter("ignore", PrivacyWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y = race_task().worlds[0]
    order = np.random.default_rng(split).permutation(len(X))[: 2 * MEMBERS]
    members, others = order[:MEMBERS], order[MEMBERS:]
    if epsilon == math.inf:
        model = MLPClassifier(
            (128,),
            activation="tanh",
            alpha=0.0,
            batch_size=MEMBER_BATCH,
            max_iter=200,
            n_iter_no_change=200,
            learning_rate_init=5e-3,
            random_state=split,
        )
    else:
        model = _perceptron(way, epsilon)
    model.fit(X[members], y[members])
    attack = membership_attack(model, X[members], y[members], X[others], y[others])
    low, high = attack.auc_interval()
    private = epsilon < math.inf
    certifies = private and way != SQUARE
    return {
        "accounting": way,
        "epsilon": epsilon,
        "split": split,
        "sigma": model.noise_.scale / model.release_.divisor if private else 0.0,
        "accuracy": model.score(X[others], y[others]),
        "members_accuracy": model.score(X[members], y[members]),
        "auc": attack.auc,
        "auc_low": low,
        "auc_high": high,
        "auc_allowed": (
            largest_auc(model.certificate_, relation="replace") if certifies else 1.0
        ),
    }


def overfitted(quick, jobs):
    """Membership at all budgets, and without noise."""
    budgets = (2, 500) if quick else OVERFITTED
    n_splits = 1 if quick else SPLITS
    cells = [
        (way, epsilon, split)
        for way in (WORST, LOG, SQUARE, HIDDEN)
        for epsilon in budgets
        for split in range(n_splits)
    ]
    cells += [("none", math.inf, split) for split in range(n_splits)]
    rows = Parallel(jobs)(delayed(overfitted_cell)(*cell) for cell in cells)
    yield pd.DataFrame(rows)


def check_overfitted(frame):
    """What must hold of membership."""
    assert (frame["auc_low"] <= frame["auc_allowed"]).all(), frame
    found = frame.groupby(["accounting", "epsilon"])["auc"].mean()
    exact = found["none", math.inf]
    # draws of members and others are alike only on average
    alike = 0.04 if frame["split"].nunique() == 1 else 0.01
    assert all(exact > found[way, 2] - alike for way in WAYS if way in found), found


# -- the table -------------------------------------------------------------------------


def table_cell(way, epsilon, n_fits):
    """Noise and accuracy on the synthetic table."""
    warnings.simplefilter("ignore", PrivacyWarning)
    X, y = logistic_table()
    held = int(y.sum())
    scenario = PrevalenceScenario(None, held, held + DIFFER)
    model = PrivateLogisticRegression(
        scenario=scenario_of(way, scenario),
        accountant=accountant_of(way, epsilon),
        solver="gradient",
        training=Training(
            sampling=WAYS[way], batch_size=BATCH, n_steps=STEPS, clip_norm=1.0
        ),
        classes=[0, 1],
        data_norm=4.0,
    )
    scores = [model.fit(X, y).score(X, y) for _ in range(n_fits)]
    return {
        "accounting": way,
        "epsilon": epsilon,
        "sigma": float(model.noise_.scale) / BATCH,
        "accuracy": np.mean(scores),
        "spread": np.std(scores, ddof=1),
        "fits": n_fits,
    }


def table(quick, jobs):
    """Four ways of accounting at three budgets, and one record."""
    cells = [(way, epsilon) for way in WAYS for epsilon in TABLE]
    rows = Parallel(jobs)(
        delayed(table_cell)(*cell, 2 if quick else 20) for cell in cells
    )
    yield pd.DataFrame(rows)


#: Noise over the clip norm and the batch, as sections of the library's own.
NOISE = {
    WORST: (4.0, 1.0, 0.354),
    SQUARE: (0.340, 0.085, 0.030),
    LOG: (0.346, 0.112, 0.094),
    HIDDEN: (0.200, 0.050, 0.018),
}


def check_table(frame):
    """What must hold of the table: its digits."""
    for way, expected in NOISE.items():
        found = frame[frame["accounting"] == way].sort_values("epsilon")["sigma"]
        assert np.allclose(found, expected, atol=6e-4), (way, found.tolist())


PARTS = {
    "learning": (learning, check_learning),
    "attacks": (attacks, check_attacks),
    "overfitted": (overfitted, check_overfitted),
    "table": (table, check_table),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="PART", choices=PARTS)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    used = versions("numpy", "scipy", "scikit-learn")
    for part in options.only or PARTS:
        measure, check = PARTS[part]
        found = []
        with threadpool_limits(1):
            for frame in measure(options.quick, options.jobs):
                shown = frame.round(dict.fromkeys(frame.select_dtypes("number"), 5))
                print_table(shown.astype(str).to_numpy().tolist(), list(shown))
                found.append(shown)
                if not options.quick:
                    # as far as it went: the parts take long
                    frame = pd.concat(found).assign(alpha=_order(part), **used)
                    write_csv(frame, f"sliced_{part}.csv")
        check(pd.concat(found))


def _order(part):
    return MEMBER_ALPHA if part == "overfitted" else ALPHA


if __name__ == "__main__":
    main()
