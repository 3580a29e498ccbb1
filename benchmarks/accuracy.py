"""Accuracy of private classifiers beside peers, at the same data and epsilon.

    python -m benchmarks.accuracy [--quick] [--all] [--figure]
                                  [--only ours|peers] [--data NAME ...] [--seeds N]

Mean accuracy of 10 fresh stratified splits with a quarter held out. Features are
z-scored by the other rows, then each row is scaled to norm <= 1: the same arrays for
every model. delta is 1e-5 and nothing is tuned:

* ours, with library defaults, one record added or removed and one record replaced;
  ``--all`` adds the other classifiers to logistic regression;
* no privacy: scikit-learn's LogisticRegression at C=1 and C=100;
* diffprivlib's LogisticRegression (pure epsilon, its defaults, data_norm=1);
* a linear model trained by Opacus, at the best of three learning rates, chosen by the
  test rows: in its favour, and not covered by its promise.

Beside accuracy stand balanced accuracy, and of models with probabilities the log loss
and the Brier score (the sum over classes), with those of a constant predictor that has
the shares of the training rows, without noise.

The last columns are the CPU time of a fit as a multiple of scikit-learn's (C=1) on one
thread: the median, when the noise is calibrated already, and that of the first fit.

A peer is run in its own environment, whose interpreter is named by
SKPUFFER_DIFFPRIVLIB_PYTHON or SKPUFFER_OPACUS_PYTHON; without one, its stored figures
are shown with their version. A mean over fewer seeds is over the first of them: repeat
ours with as many (``--seeds``) before comparing. Adult is skipped unless
SKPUFFER_TEST_DATA names the folder of its files. ``--quick`` takes one small table, 2
seeds and no peers, checks what must hold on every machine, and stores nothing; any
other run stores its figures in ``benchmarks/results``.
"""

import argparse
import sys
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from threadpoolctl import threadpool_limits

import skpuffer
from benchmarks._accuracy_table import (
    CONSTANT,
    EPSILONS,
    REFERENCE,
    SEEDS,
    draw,
    show,
)
from benchmarks._peers import PEERS
from benchmarks._report import read_csv, renewed, versions, write_csv
from benchmarks._tables import LOADERS, split
from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import SeededNoiseWarning
from skpuffer.linear_model import PrivateLogisticRegression, PrivateSGDClassifier
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.scenarios import RecordScenario
from skpuffer.svm import PrivateLinearSVC

DELTA = 1e-5
LEARNING_RATES = (0.1, 1.0, 10.0)  # of Opacus
RELATIONS = ("add_remove", "replace")
OURS = (PrivateLogisticRegression,)
OTHERS = (PrivateLinearSVC, PrivateSGDClassifier, PrivateMLPClassifier)
FILES = ("accuracy.csv", "accuracy_peers.csv")  # of ours, of peers
KEY = ["data", "model", "setting", "relation", "epsilon"]
BESIDE = ("balanced_accuracy", "log_loss", "brier")


# -- measuring -----------------------------------------------------------------------


def brier_score(y, probabilities, classes):
    """Return the mean squared distance of probabilities from what was, over classes."""
    was = np.asarray(y)[:, None] == np.asarray(classes)
    return float(np.mean(np.sum((probabilities - was) ** 2, axis=1)))


def _fit_and_score(model, arrays):
    start = time.process_time()
    model.fit(arrays.X_train, arrays.y_train)
    seconds = time.process_time() - start
    y, labels = arrays.y_test, model.predict(arrays.X_test)
    found = {
        "accuracy": model.score(arrays.X_test, y),
        "cpu_seconds": seconds,
        "balanced_accuracy": balanced_accuracy_score(y, labels),
    }
    if hasattr(model, "predict_proba"):
        found |= _calibration(y, model.predict_proba(arrays.X_test), model.classes_)
    return found


def _calibration(y, probabilities, classes):
    # of float64, however the rows are: rows that do not quite add up to one warn
    probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
    return {
        "log_loss": log_loss(y, probabilities, labels=classes),
        "brier": brier_score(y, probabilities, classes),
    }


def _constant(arrays):
    """Return the row of a predictor that knows the shares of the training rows."""
    y = arrays.y_test
    classes, counts = np.unique(arrays.y_train, return_counts=True)
    shares = np.tile(counts / counts.sum(), (len(y), 1))
    labels = np.full(len(y), classes[counts.argmax()])
    return {
        "model": CONSTANT,
        "setting": "shares",
        "relation": "none",
        "epsilon": np.inf,
        "accuracy": np.mean(y == labels),
        "cpu_seconds": 0.0,
        "balanced_accuracy": 1 / len(classes),
        **_calibration(y, shares, classes),
    }


def _without_privacy(arrays, seed):
    yield _constant(arrays)
    for C in (1, 100):
        yield {
            "model": REFERENCE,
            "setting": f"C={C}",
            "relation": "none",
            "epsilon": np.inf,
            **_fit_and_score(LogisticRegression(C=C, max_iter=1000), arrays),
        }


def _ours(classes, arrays, seed):
    for make in classes:
        for relation in RELATIONS:
            for epsilon in EPSILONS:
                model = make(
                    RecordScenario(relation=relation),
                    PrivacyLoss(epsilon=epsilon, delta=DELTA),
                    random_state=seed,
                )
                yield {
                    "model": make.__name__,
                    "setting": "defaults",
                    "relation": relation,
                    "epsilon": epsilon,
                    **_fit_and_score(model, arrays),
                }


def _peer(peer, arrays, seed):
    answer = peer.measure(
        arrays,
        epsilons=EPSILONS,
        delta=DELTA,
        learning_rates=LEARNING_RATES,
        seed=seed,
    )
    for row in answer["rows"]:
        yield {
            "model": peer.name,
            "relation": peer.relation,
            **row,
            **answer["versions"],
        }


def _mean_over_seeds(rows, name):
    """Return one row a model, setting and epsilon."""
    frame = pd.DataFrame(rows).assign(data=name)
    # what a peer does not tell is empty
    frame = frame.reindex(columns=[*frame, *(c for c in BESIDE if c not in frame)])
    measured = {*KEY, "accuracy", "cpu_seconds", *BESIDE}
    of_versions = [c for c in frame if c not in measured]
    return (
        frame.groupby(KEY + of_versions, sort=False, dropna=False)
        .agg(
            n_seeds=("accuracy", "size"),
            accuracy=("accuracy", "mean"),
            std=("accuracy", "std"),
            cpu_seconds=("cpu_seconds", "median"),
            first_cpu_seconds=("cpu_seconds", "first"),
            **{name: (name, "mean") for name in BESIDE},
        )
        .reset_index()
    )


def measure(name, X, y, classes, peers, seeds):
    """Measure one data set; return the figures of ours and those of peers, or None."""
    own, others = [], []
    ours = versions("numpy", "scipy", "scikit-learn")
    ours["skpuffer"] = skpuffer.__version__
    for seed in range(seeds):
        arrays = split(X, y, seed)
        if classes:
            own += [
                {**row, **ours}
                for row in (
                    *_without_privacy(arrays, seed),
                    *_ours(classes, arrays, seed),
                )
            ]
        for peer in peers:
            others += _peer(peer, arrays, seed)
    return [_mean_over_seeds(rows, name) if rows else None for rows in (own, others)]


# -- keeping -------------------------------------------------------------------------


def _store(fresh, file):
    order = {name: k for k, name in enumerate(LOADERS)}
    frame = renewed(read_csv(file, KEY), fresh, KEY).sort_values(
        "data", key=lambda column: column.map(order), kind="stable"
    )
    write_csv(frame.round(5), file)


def _with_stored(fresh, file, name, hidden):
    """Add stored figures of what was not measured in this run, except some models."""
    stored = read_csv(file, KEY)
    shown = (stored["data"] == name) & ~stored["model"].isin(hidden)
    stored = stored[shown].assign(stored=True)
    if fresh is None:
        return None if stored.empty else stored
    return renewed(stored, fresh, KEY)


# -- the command ---------------------------------------------------------------------


def _arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0],
    )
    parser.add_argument("--quick", action="store_true", help="seconds, for CI")
    parser.add_argument("--all", action="store_true", help="all of our classifiers")
    parser.add_argument("--figure", action="store_true", help="draw accuracy.png")
    parser.add_argument("--only", choices=("ours", "peers"), help="measure only these")
    parser.add_argument("--data", nargs="+", choices=tuple(LOADERS), help="data sets")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of splits")
    return parser.parse_args(arguments)


def check(frame):
    """What must hold on every machine, whatever the seeds: privacy costs little."""
    by_model = frame.set_index(["model", "relation", "epsilon"])["accuracy"]
    best = by_model[REFERENCE].max()
    told = frame.set_index(["model", "relation", "epsilon"])["log_loss"]
    constant = told[CONSTANT].max()
    for name in (model.__name__ for model in OURS):
        for relation in RELATIONS:
            for epsilon, least in (
                (EPSILONS[0], best - 0.15),
                (EPSILONS[-1], best - 0.05),
            ):
                assert by_model[name, relation, epsilon] > least, by_model
                assert told[name, relation, epsilon] < constant, told


def _peers_at_hand(options):
    if options.quick or options.only == "ours":
        return []
    for peer in PEERS:
        if peer.interpreter is None:
            print(f"{peer.name} is skipped: {peer.variable} names no interpreter.")
    return [peer for peer in PEERS if peer.interpreter is not None]


def _load(name):
    """Return a data set, or None with a word of why if its files are missing."""
    try:
        return LOADERS[name]()
    except OSError as error:
        print(f"{name} is skipped: {error}\n")
        return None


def main(arguments=None):
    """Measure, print, store; see the module."""
    options = _arguments(arguments)
    names = options.data or (["breast_cancer"] if options.quick else list(LOADERS))
    seeds = min(options.seeds, 2) if options.quick else options.seeds
    classes = () if options.only == "peers" else OURS + OTHERS * options.all
    hidden = () if options.all else [model.__name__ for model in OTHERS]
    peers = _peers_at_hand(options)
    frames, verdicts = {}, []
    for name in names:
        table = _load(name)
        if table is None:
            continue
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            measured = measure(name, *table, classes, peers, seeds)
        parts = []
        for part, file in zip(measured, FILES, strict=True):
            if not options.quick:
                if part is not None:
                    _store(part, file)
                part = _with_stored(part, file, name, hidden)
            if part is not None:
                parts.append(part)
        if parts:
            frames[name] = pd.concat(parts, ignore_index=True)
            if options.quick:
                check(frames[name])
            verdicts.append(show(name, frames[name]))
    if verdicts and not options.quick:
        met, of, gaps = zip(*verdicts, strict=True)
        print(f"targets met: {sum(met)} of {sum(of)}")
        print(
            f"within one point of no privacy at eps={EPSILONS[-1]:g}: "
            f"{np.sum(np.asarray(gaps) <= 0.01)} of {len(gaps)}"
        )
    if options.figure and frames:
        draw(frames)
        print("the figure is benchmarks/results/accuracy.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
