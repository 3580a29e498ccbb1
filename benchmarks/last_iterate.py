"""What it buys to let the last iterate alone leave, and what its account costs.

    python -m benchmarks.last_iterate [--quick] [--splits N]

*Time.* `iteration_cost` of a million equal steps within a diameter, over an isotonic
regression of as many numbers, which each restart would take; CPU time on one thread,
the least of five.

*Accuracy.* Logistic regression at delta = 1e-5, one record added or removed, on held
out rows, for every epsilon:

* `every iterate`: library defaults, accounted for as if all iterates were seen;
* `last iterate`: library defaults under `IterationAmplification`, without a penalty;
* `last, penalty w`: the same with a penalty of w on every parameter;
* `dealt`: shuffled epochs in batches of a tenth.

Beside each of the last three the same run by the noise that it takes if every iterate
is seen, which is `saved` times as much.

Means over splits with standard errors. Breast cancer is shipped with scikit-learn;
Adult is read where ``SKPUFFER_TEST_DATA`` names the folder of the published files.
``--quick`` takes two splits of one table and one epsilon, checks what must hold on
every machine, and stores nothing.
"""

import argparse
import os
import time
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from benchmarks._tables import DATA_DIRECTORY, LOADERS, split
from skpuffer.accountants import IterationAmplification, PrivacyLoss
from skpuffer.linear_model import PrivateSGDClassifier
from skpuffer.privacy import iteration_cost
from skpuffer.scenarios import RecordScenario
from skpuffer.training import Training

DELTA = 1e-5
STEPS = 10**6
PENALTIES = (0.001, 0.01, 0.1)
BUDGETS = {"breast_cancer": (0.1, 0.3, 1.0, 4.0), "adult": (0.01, 0.03, 0.1)}

#: How many isotonic regressions the cost of so many steps may take; some ten, mostly
#: sums and checks, where a search by restarts took some 150.
MOST = 40.0


def timed(ask):
    """Least CPU time of five."""
    seconds = []
    for _ in range(5):
        start = time.process_time()
        ask()
        seconds.append(time.process_time() - start)
    return min(seconds)


def cost_of_many_steps():
    """Seconds of a million steps, and of one isotonic regression."""
    shifts = np.full(STEPS, 0.5)
    rising = np.linspace(0.0, 1.0, STEPS)
    return (
        timed(lambda: iteration_cost(shifts, 1.0, 2, coupling="joint", diameter=2.0)),
        timed(lambda: isotonic_regression(rising, weights=shifts)),
    )


def models(epsilon, n_records):
    """Models by name, with the name of the one whose run theirs is, if any."""
    last = IterationAmplification(epsilon, delta=DELTA)
    every = PrivacyLoss(epsilon, DELTA)
    plain = {"loss": "log_loss", "alpha": 0.0}
    dealt = Training(batch_size=n_records // 10, sampling="shuffled_epochs")
    yield "every iterate", PrivateSGDClassifier(accountant=every, **plain)
    yield "last iterate", PrivateSGDClassifier(accountant=last, **plain)
    for penalty in PENALTIES:
        options = plain | {"alpha": penalty}
        yield (
            f"last, penalty {penalty:g}",
            PrivateSGDClassifier(accountant=last, **options),
        )
    yield "dealt", PrivateSGDClassifier(accountant=last, training=dealt, **plain)


class _AsIfSeen(IterationAmplification):
    """Takes the same runs, by the noise of runs whose every iterate is seen."""

    recommended = False

    def calibrate(self, release, scenario, random_state=None):
        every = PrivacyLoss(self.epsilon, self.delta)
        return every.calibrate(release, scenario, random_state)


def measured(table, data, epsilon, n_splits):
    """Accuracies of each model on each split, and noise saved."""
    X, y = data
    rows = []
    for seed in range(n_splits):
        part = split(X, y, seed)
        for name, model in models(epsilon, len(part.y_train)):
            runs = {name: model}
            if isinstance(model.accountant, IterationAmplification):
                # not cloned: the accountant is of this module, and stays as it is
                seen = PrivateSGDClassifier(**model.get_params(deep=False))
                seen.accountant = _AsIfSeen(epsilon, delta=DELTA)
                runs[f"{name}: every iterate"] = seen
            for label, run in runs.items():
                run.random_state = seed
                run.fit(part.X_train, part.y_train)
                accuracy = run.score(part.X_test, part.y_test)
                saved = noise_saved(run) if label == name and len(runs) > 1 else np.nan
                rows.append((table, epsilon, label, seed, accuracy, saved))
    return rows


def noise_saved(run):
    """Noise of a run whose every iterate is seen, over that of its last one."""
    last = run.accountant
    every = PrivacyLoss(last.epsilon, last.delta)
    scales = [
        accountant.calibrate(run.release_, RecordScenario()).noise.scale
        for accountant in (every, last)
    ]
    return scales[0] / scales[1]


def summary(rows):
    """Means and standard errors over splits."""
    columns = ["table", "epsilon", "model", "split", "accuracy", "saved"]
    frame = pd.DataFrame(rows, columns=columns)
    grouped = frame.groupby(["table", "epsilon", "model"], sort=False)
    found = grouped.agg(
        accuracy=("accuracy", "mean"),
        error=("accuracy", "sem"),
        saved=("saved", "mean"),
        splits=("split", "size"),
    )
    return found.reset_index()


def check(found, seconds):
    """What must hold on every machine."""
    assert seconds[0] < MOST * seconds[1], seconds
    by_model = found.set_index("model")["saved"]
    # no penalty and full batches: nothing to gain, and nothing to lose
    np.testing.assert_allclose(by_model["last iterate"], 1.0, rtol=1e-6)
    assert (by_model.dropna() > 1 - 1e-9).all(), by_model
    assert (by_model["dealt"] > 1.5).all(), by_model


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    tables = ["breast_cancer"]
    if os.environ.get(DATA_DIRECTORY) and not options.quick:
        tables.append("adult")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = cost_of_many_steps()
        rows = []
        for table in tables:
            data = LOADERS[table]()
            for epsilon in BUDGETS[table][1:2] if options.quick else BUDGETS[table]:
                n_splits = 2 if options.quick else options.splits
                rows += measured(table, data, epsilon, n_splits)
        found = summary(rows)
        check(found, seconds)
    print(
        f"a million steps: {seconds[0]:.3f} s, {seconds[0] / seconds[1]:.1f} x an "
        "isotonic regression"
    )
    print_table(
        [
            [
                f"{r.table} {r.epsilon:g} {r.model}",
                f"{r.accuracy:.3f}",
                f"{r.error:.3f}",
                "" if np.isnan(r.saved) else f"{r.saved:.2f}",
            ]
            for r in found.itertuples()
        ],
        ["", "accuracy", "error", "noise saved"],
    )
    if not options.quick:
        timing = pd.DataFrame(
            [{"model": "a million steps", "seconds": seconds[0]}]
        ).assign(regressions=seconds[0] / seconds[1])
        frame = pd.concat([timing, found], ignore_index=True)
        write_csv(
            frame.assign(**versions("numpy", "scipy", "scikit-learn")),
            "last_iterate.csv",
        )


if __name__ == "__main__":
    main()
