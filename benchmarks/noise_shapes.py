"""Training with generalised Gaussian noise on Adult: accuracy by the noise's shape.

    python -m benchmarks.noise_shapes [--quick] [--jobs N]

Figures 4 (Adult) and 9 to 19 of Rinberg, Shumailov, Singhal, Cummings and Papernot,
*Beyond Laplace and Gaussian: exploring the generalized Gaussian mechanism for private
machine learning*: a perceptron with 32 hidden units on 123 binary columns, nine tenths
of the 48,842 rows for training, Poisson batches, delta = 1e-6.

* ``sweep``: every step size (0.5, 1), clip norm (0.05, 0.1, 0.25), batch (128, 256) and
  noise multiplier (1.5 to 3) for each of 13 shapes, one run each. The accuracy on the
  other rows is taken after several epochs, beside the epsilon that was spent by then.
* ``budget``: one setting for all, noise set so that ten epochs spend the budget, three
  runs each: what the shape alone does, with nothing chosen by results.

Gradients are clipped in the norm of the shape's own order up to 2, and in l2, as the
authors' programs do for all shapes: either way with accounting for gradients that point
anywhere, which above 2 leaves l2. A multiplier is the scale over sqrt(2) times the clip
norm, as in those programs: at shape 2 the usual one, standard deviation over clip norm.
The paper's text has the scale itself.

Stores the figures with versions in ``benchmarks/results/noise_shapes.csv``. ``--quick``
takes the sample of Adult that is shipped, few settings, and stores nothing. What must
hold on every machine is checked in every run.
"""

import argparse
import itertools
import math
import os
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import PrivacyLoss
from skpuffer.datasets import fetch_adult, load_adult
from skpuffer.noise import GeneralizedGaussianNoise
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.scenarios import RecordScenario
from skpuffer.training import Logistic, PerceptronGradients, train

FILE = "noise_shapes.csv"
DELTA = 1e-6
N_HIDDEN = 32
#: The authors' programs have it, the paper does not say.
MOMENTUM = 0.9

#: Twelve from 1 to 4, as in the paper, and the Gaussian, which is none of them.
SHAPES = tuple(sorted({*np.linspace(1, 4, 12).round(4).tolist(), 2.0}))
#: Laplace noise except for a digit that nobody sees: in l2 the library has no bound of
#: any use for the shape 1 itself.
ALMOST_LAPLACE = 1.0001
#: Shapes, with the order of the norm to clip in: its own up to 2, and l2.
WAYS = (
    *((beta, min(beta, 2.0)) for beta in SHAPES),
    *((max(beta, ALMOST_LAPLACE), 2.0) for beta in SHAPES if beta < 2),
)
RATES, CLIP_NORMS, BATCHES = (0.5, 1.0), (0.05, 0.1, 0.25), (128, 256)
MULTIPLIERS = (1.5, 2.0, 2.5, 3.0)
EPOCHS = (1, 2, 4, 7, 10)

#: Budgets, and the one setting at which noise is set for them.
BUDGETS = (0.1, 0.2, 0.3, 0.5, 1.0)
SETTING = {"learning_rate": 0.5, "clip_norm": 0.1, "batch_size": 256}
N_RUNS = 3

#: Cuts of the numbers: about fifths, where a column has them. With 99 levels of the
#: other columns they make 123 binary columns, as in the published coding ``a9a``.
CUTS = {
    "age": (26, 33, 41, 51),
    "fnlwgt": (106_000, 158_000, 196_000, 260_000),
    "education-num": (9, 10, 11, 13),
    "capital-gain": (1,),
    "capital-loss": (1,),
    "hours-per-week": (35, 40, 41, 48),
}


@dataclass(frozen=True)
class Table:
    """Rows for training and others, and whether they earn more."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def binary_rows(bunch):
    """One column for each fifth of a number and for each level; gaps are no level."""
    parts = []
    for name, column in bunch.data.items():
        if name in CUTS:
            fifth = np.digitize(column, CUTS[name])
            parts += [fifth == k for k in range(len(CUTS[name]) + 1)]
        else:
            parts += [column == level for level in bunch.categories[name]]
    return np.column_stack(parts).astype(np.float32)


def table(quick):
    """Adult whole, or the sample that is shipped."""
    where = os.environ.get("SKPUFFER_TEST_DATA")
    if quick:
        bunch = load_adult(subset="all")
    else:
        bunch = fetch_adult(subset="all", data_home=where, download_if_missing=False)
    X, y = binary_rows(bunch), (bunch.target == ">50K").to_numpy()
    split = train_test_split(X, y, test_size=0.1, stratify=y, random_state=218)
    return Table(split[0], split[2], split[1], split[3])


class WatchedGradients(PerceptronGradients):
    """Gradients that keep the iterates at which some steps begin."""

    def watch(self, steps):
        """Keep the iterates of these steps, counted from zero, of the next run."""
        self.steps, self.step, self.kept = steps, 0, []

    def clipped_sum(self, parameters, index, release):
        """Sum clipped gradients; see :class:`skpuffer.training.Gradients`."""
        if self.step in self.steps:
            self.kept.append(parameters.copy())
        self.step += 1
        return super().clipped_sum(parameters, index, release)

    def accuracy(self, parameters, X, y):
        """Share of rows that a network of these parameters gets right."""
        (W, V), (b, c) = self.split(parameters)
        scores = np.maximum(X @ W + b, 0) @ V + c
        return np.mean((scores.ravel() > 0) == y)


def gradients_of(data):
    return WatchedGradients(
        Logistic(), data.X, data.y, n_classes=2, n_hidden=N_HIDDEN, activation="relu"
    )


def release_of(order, epochs, n_records, dim, *, learning_rate, clip_norm, batch_size):
    """Return the run that is accounted for and executed."""
    options = {"n_records": n_records, "batch_size": batch_size, "dim": dim}
    options |= {"clip_norm": clip_norm, "clip_order": order}
    options["optimiser"] = Optimiser(learning_rate=learning_rate, momentum=MOMENTUM)
    epoch = GradientRelease(n_steps=1, **options).steps_per_epoch
    return GradientRelease(n_steps=epochs * epoch, **options)


def spent(beta, multiplier, order, batch_size, epochs, n_records, dim):
    """Epsilon of so many epochs, whatever the step size and the clip norm."""
    setting = {"learning_rate": 1.0, "clip_norm": 1.0, "batch_size": batch_size}
    release = release_of(order, epochs, n_records, dim, **setting)
    noise = GeneralizedGaussianNoise(math.sqrt(2) * multiplier, beta=beta)
    return PrivacyLoss(delta=DELTA).certify(noise, release, RecordScenario()).epsilon


def scores(gradients, data, release, noise, epochs, seed):
    """Accuracies after some epochs of one run."""
    steps = [k * release.steps_per_epoch for k in epochs]
    gradients.watch(steps)
    rng = np.random.default_rng(seed)
    try:
        last = train(gradients, release, noise, rng)
    except ValueError:  # the parameters overflowed
        return [math.nan] * len(epochs)
    found = (*gradients.kept, last)
    return [gradients.accuracy(each, data.X_test, data.y_test) for each in found]


def sweep(data, beta, multiplier, order, settings, epochs):
    """All settings of one shape and multiplier: a row for each and each epoch."""
    rows = []
    gradients = gradients_of(data)
    size = (len(data.X), gradients.dim)
    costs = {
        (batch, k): spent(beta, multiplier, order, batch, k, *size)
        for batch in {setting["batch_size"] for setting in settings}
        for k in epochs
    }
    for number, setting in enumerate(settings):
        release = release_of(order, max(epochs), *size, **setting)
        scale = math.sqrt(2) * multiplier * setting["clip_norm"]
        noise = GeneralizedGaussianNoise(scale, beta=beta)
        row = {"part": "sweep", "beta": beta, "clip_order": order}
        row |= {"multiplier": multiplier, **setting}
        # the same start and batches for every shape
        found = scores(gradients, data, release, noise, epochs, [number, 0])
        for k, accuracy in zip(epochs, found, strict=True):
            cost = costs[setting["batch_size"], k]
            rows.append({**row, "epochs": k, "epsilon": cost, "accuracy": accuracy})
    return rows


def at_budget(data, beta, order, epsilon, epochs, n_runs):
    """One setting, with noise of one shape that spends the budget exactly."""
    gradients = gradients_of(data)
    release = release_of(order, epochs, len(data.X), gradients.dim, **SETTING)
    accountant = PrivacyLoss(epsilon, DELTA, noise="generalized_gaussian", beta=beta)
    noise = accountant.calibrate(release, RecordScenario()).noise
    row = {"part": "budget", "beta": beta, "clip_order": order}
    row |= {"multiplier": noise.scale / (math.sqrt(2) * release.clip_norm), **SETTING}
    row |= {"epochs": epochs, "epsilon": epsilon}
    rows = []
    for run in range(n_runs):
        (accuracy,) = scores(gradients, data, release, noise, (epochs,), [run, 1])
        rows.append({**row, "run": run, "accuracy": accuracy})
    return rows


def baselines(data):
    """Without privacy, and by always saying the same."""
    model = MLPClassifier((N_HIDDEN,), early_stopping=True, random_state=0)
    accuracy = model.fit(data.X, data.y).score(data.X_test, data.y_test)
    majority = max(np.mean(data.y_test), 1 - np.mean(data.y_test))
    return [
        {"part": "without privacy", "accuracy": accuracy},
        {"part": "majority", "accuracy": majority},
    ]


def best_within(frame, budget):
    """Best accuracy of each shape among runs within a budget: none, then no row."""
    affordable = frame[(frame["part"] == "sweep") & (frame["epsilon"] <= budget)]
    return affordable.groupby(affordable["beta"].round(3))["accuracy"].max()


def check(frame):
    """What must hold on every machine."""
    swept = frame[frame["part"] == "sweep"]
    key = ["beta", "clip_order", "multiplier", "batch_size"]
    # more epochs cost more, more noise less, and a rounder shape more
    by_epoch = swept.drop_duplicates([*key, "epochs"]).sort_values("epochs")
    assert by_epoch.groupby(key)["epsilon"].is_monotonic_increasing.all(), by_epoch
    key = ["multiplier", "batch_size", "epochs"]
    own = swept[swept["clip_order"] == swept["beta"].clip(upper=2)]
    by_shape = own.drop_duplicates([*key, "beta"]).sort_values("beta")
    assert by_shape.groupby(key)["epsilon"].is_monotonic_increasing.all(), by_shape
    # a network learns something
    majority = frame.set_index("part").loc["majority", "accuracy"]
    assert best_within(frame, math.inf).max() > majority + 0.01, frame


def show(frame):
    """Print accuracies by shape, one row each."""
    swept = {budget: best_within(frame, budget) for budget in BUDGETS}
    fixed = frame[frame["part"] == "budget"]
    # the better of the two clips, by their means
    fixed = fixed.assign(beta=fixed["beta"].round(3))
    fixed = fixed.groupby(["beta", "epsilon", "clip_order"])["accuracy"].mean()
    fixed = fixed.groupby(["beta", "epsilon"]).max().unstack()
    rows = []
    for beta in sorted(frame["beta"].dropna().round(3).unique()):
        row = [f"β = {beta:.2f}"]
        row += [f"{swept[b].get(beta, math.nan):.4f}" for b in BUDGETS]
        row += [f"{value:.4f}" for value in fixed.loc[beta]]
        rows.append(row)
    header = [f"best, ε={b:g}" for b in BUDGETS] + [f"one, ε={b:g}" for b in fixed]
    print_table(rows, ["", *header])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args(argv)
    quick = arguments.quick
    ways, multipliers, grid = WAYS, MULTIPLIERS, (RATES, CLIP_NORMS, BATCHES)
    budgets, epochs, n_runs = BUDGETS, EPOCHS, N_RUNS
    if quick:
        ways = ((1.5, 1.5), (1.5, 2.0), (2.0, 2.0), (3.0, 2.0))
        multipliers, grid = (1.5, 3.0), ((1.0,), (0.1,), (128,))
        budgets, epochs, n_runs = (1.0,), (1, 4), 1
    names = ("learning_rate", "clip_norm", "batch_size")
    settings = [dict(zip(names, one, strict=True)) for one in itertools.product(*grid)]
    data = table(quick)
    with threadpool_limits(1):
        jobs = [
            delayed(sweep)(data, beta, multiplier, order, settings, epochs)
            for beta, order in ways
            for multiplier in multipliers
        ]
        jobs += [
            delayed(at_budget)(data, beta, order, budget, max(epochs), n_runs)
            for beta, order in ways
            for budget in budgets
        ]
        found = Parallel(n_jobs=1 if quick else arguments.jobs)(jobs)
        rows = [*itertools.chain.from_iterable(found), *baselines(data)]
    frame = pd.DataFrame(rows)
    check(frame)
    show(frame)
    if not quick:
        for name, digits in (("multiplier", 4), ("epsilon", 5), ("accuracy", 5)):
            frame[name] = frame[name].round(digits)
        counts = ["batch_size", "epochs", "run"]
        frame[counts] = frame[counts].astype("Int64")
        frame["versions"] = "numpy {numpy}".format(**versions("numpy"))
        write_csv(frame, FILE)


if __name__ == "__main__":
    main()
