"""Noisy votes with generalised Gaussian noise: accuracy by the noise's shape.

    python -m benchmarks.vote_shapes [--quick]

Figure 3 of Rinberg, Shumailov, Singhal, Cummings and Papernot, *Beyond Laplace and
Gaussian: exploring the generalized Gaussian mechanism for private machine learning*:
20 shapes from 1 to 4 and 25 trials for each histogram, on real votes. The votes of the
paper's 250 teachers were never in a repository. Here they are

* of 250 teachers on the digits of scikit-learn, with five or six images each, of all
  images that no teacher has, compared with what is on them;
* of people (CIFAR-10H, 10,000 images, 47 drawn from about 51 votes), if a folder that
  SKPUFFER_TEST_DATA names has them, compared with the leader, as there are no labels.

The paper draws accuracy at the scales of a grid. Here noise of each shape is set for
the budget exactly: for one query, and for 100 queries that share it. One vote moves
from one class to another, as when a teacher's record changes.

Of the votes of the paper's MNIST teachers there are noisy winners alone; their
accuracy is stored as well, if the file is there.

Stores the figures with versions in ``benchmarks/results/vote_shapes.csv``. ``--quick``
takes few shapes and rows, and stores nothing. What must hold on every machine is
checked in every run.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.ensemble import noisy_argmax, subsample_votes
from skpuffer.inspection import equivalent_noises

FILE = "vote_shapes.csv"
DELTA = 1e-5
N_TEACHERS, N_PEOPLE, N_TRIALS = 250, 47, 25
SHAPES = tuple(np.linspace(1, 4, 20).round(4).tolist())

#: Budgets of one query, and of 100 queries together.
BUDGETS = {1: (0.05, 0.2, 1.0), 100: (0.5, 2.0, 8.0)}

#: A vote that moves takes one from a count and adds one to another: two releases.
MOVES = 2


def teachers_votes(n_rows=None):
    """Votes of 250 teachers on the digits that none of them has, and the digits."""
    X, y = load_digits(return_X_y=True)
    X_private, X_rest, y_private, y_rest = train_test_split(
        X / 16, y, test_size=0.25, stratify=y, random_state=0
    )
    X_rest, y_rest = X_rest[:n_rows], y_rest[:n_rows]
    order = np.random.default_rng(0).permutation(len(X_private))
    votes = np.zeros((len(X_rest), 10), dtype=int)
    for shard in np.array_split(order, N_TEACHERS):
        said = y_private[shard][0]
        if len(np.unique(y_private[shard])) > 1:
            teacher = LogisticRegression(C=10.0, max_iter=500)
            said = teacher.fit(X_private[shard], y_private[shard]).predict(X_rest)
        votes[np.arange(len(votes)), said] += 1
    return votes, y_rest


def file_of(name):
    """Return a file of the folder with data, if it is there."""
    where = os.environ.get("SKPUFFER_TEST_DATA")
    path = None if where is None else Path(where) / name
    return path if path is not None and path.is_file() else None


def histograms(quick):
    """Votes by name, each with the right answers or None for the leader."""
    found = {"digits, 250 teachers": teachers_votes(100 if quick else None)}
    people = file_of("votes_cifar10h_human.npy")
    if people is not None:
        votes = np.load(people)[: 500 if quick else None]
        found["CIFAR-10H, 47 people"] = subsample_votes(votes, N_PEOPLE, 0), None
    return found


def accuracy(votes, right, noise, n_trials, rng):
    """Share of noisy winners that are right, and its standard error over trials."""
    best = votes.max(axis=1)
    shares = []
    for _ in range(n_trials):
        elected = noisy_argmax(votes, noise, rng)
        if right is None:
            # of classes that lead together either one is right
            agrees = votes[np.arange(len(votes)), elected] == best
        else:
            agrees = elected == right
        shares.append(np.mean(agrees))
    return np.mean(shares), np.std(shares) / np.sqrt(n_trials)


def measured(shapes, quick):
    """A row for each table of votes, number of queries, budget and shape."""
    rows = []
    noises = {
        (n, epsilon): equivalent_noises(epsilon, DELTA, shapes, n_steps=MOVES * n)
        for n, budgets in BUDGETS.items()
        for epsilon in budgets
    }
    for name, (votes, right) in histograms(quick).items():
        rng = np.random.default_rng(0)
        # as many draws for the small table
        n_trials = N_TRIALS if right is None else 20 * N_TRIALS
        exact = votes.argmax(axis=1)
        without = 1.0 if right is None else np.mean(exact == right)
        rows.append({"votes": name, "queries": 0, "accuracy": without})
        for (n_queries, epsilon), family in noises.items():
            for noise in family:
                mean, error = accuracy(votes, right, noise, n_trials, rng)
                row = {"votes": name, "queries": n_queries, "epsilon": epsilon}
                row |= {"beta": noise.beta, "scale": noise.scale}
                rows.append({**row, "accuracy": mean, "error": error})
    labels = file_of("pate_mnist250_aggregated_labels.csv")
    if labels is not None:
        labels = pd.read_csv(labels)
        right = np.mean(labels["noisy_label"] == labels["true_label"])
        row = {"votes": "MNIST, noisy winners", "queries": len(labels)}
        rows.append({**row, "beta": 1.0, "scale": 20.0, "accuracy": right})
    return pd.DataFrame(rows)


def check(frame):
    """What must hold on every machine."""
    noisy = frame[frame["beta"].notna() & frame["epsilon"].notna()]
    key = ["votes", "queries", "epsilon"]
    # a larger shape takes a larger scale
    by_shape = noisy.sort_values("beta").groupby(key)["scale"]
    assert by_shape.is_monotonic_increasing.all(), noisy
    # one query: nothing is better than Laplace noise, but for chance
    one = noisy[noisy["queries"] == 1].sort_values("beta")
    found = one.groupby(key).agg(
        first=("accuracy", "first"), best=("accuracy", "max"), error=("error", "max")
    )
    assert (found["first"] >= found["best"] - 5 * found["error"] - 1e-3).all(), found


def show(frame):
    """Print accuracies by shape, a column for each budget."""
    for name, group in frame[frame["epsilon"].notna()].groupby("votes"):
        wide = group.pivot(index="beta", columns=["queries", "epsilon"])["accuracy"]
        print(f"\n{name}")
        rows = [
            [f"β = {beta:.2f}", *(f"{a:.4f}" for a in row)]
            for beta, row in wide.iterrows()
        ]
        print_table(rows, ["", *(f"{q} q, ε={e:g}" for q, e in wide)])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(argv).quick
    with threadpool_limits(1):
        frame = measured((1.0, 2.0, 3.0) if quick else SHAPES, quick)
    check(frame)
    show(frame)
    if not quick:
        for name, digits in (("scale", 4), ("accuracy", 5), ("error", 6)):
            frame[name] = frame[name].round(digits)
        frame["versions"] = "numpy {numpy}".format(**versions("numpy"))
        write_csv(frame, FILE)


if __name__ == "__main__":
    main()
