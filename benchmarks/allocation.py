"""Noise of records that draw a batch of each epoch, against that of Poisson batches.

    python -m benchmarks.allocation [--quick]

For batches of one size, at delta = 1e-5, with one record added or removed, or replaced:
the noise in clip norms under `PrivacyLoss` of batches by `poisson`, `fresh_bins` and
`balls_in_bins`, and CPU seconds of each calibration. A row is a number of batches an
epoch, a number of epochs and an epsilon. ``--quick`` takes few of them, checks that
fresh bins need no more noise where a record is added or removed in whole epochs, and
stores nothing.
"""

import argparse
import itertools
import time

import pandas as pd

from benchmarks._report import print_table, write_csv
from skpuffer.accountants import PrivacyLoss
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario

DELTA = 1e-5
SCHEMES = ("poisson", "fresh_bins", "balls_in_bins")
BATCHES = (2, 5, 10, 50, 100, 1000)
EPOCHS = (0.5, 1, 3, 10, 50)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
RELATIONS = ("add_remove", "replace")


def calibrated(scheme, n_batches, epochs, epsilon, relation):
    """Noise in clip norms, and CPU seconds."""
    n = 10 * n_batches
    release = GradientRelease(
        n_records=n,
        batch_size=10,
        n_steps=max(1, round(epochs * n_batches)),
        sampling=scheme,
        dim=1,
    )
    start = time.process_time()
    scenario = RecordScenario(relation=relation)
    found = PrivacyLoss(epsilon, DELTA).calibrate(release, scenario)
    return found.noise.scale, time.process_time() - start


def rows(cases):
    """One row for each case, with the noise by scheme."""
    for relation, n_batches, epochs, epsilon in cases:
        row = {
            "relation": relation,
            "batches": n_batches,
            "epochs": epochs,
            "epsilon": epsilon,
        }
        for scheme in SCHEMES:
            scale, seconds = calibrated(scheme, n_batches, epochs, epsilon, relation)
            row |= {scheme: round(scale, 5), f"{scheme}_seconds": round(seconds, 3)}
        row["saved"] = round(1 - row["fresh_bins"] / row["poisson"], 5)
        yield row


def main(arguments=None):
    """Print the table, and store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--add-remove", action="store_true", help="no replaced records")
    given = parser.parse_args(arguments)
    relations = RELATIONS[:1] if given.quick or given.add_remove else RELATIONS
    grid = (relations, BATCHES, EPOCHS, EPSILONS)
    if given.quick:
        grid = (relations, (10, 100), (1, 3), (1.0,))
    frame = pd.DataFrame(rows(itertools.product(*grid)))
    print_table(frame.astype(str).values.tolist(), list(frame.columns))
    if given.quick:
        assert (frame["saved"] >= 0).all()
    else:
        write_csv(frame, "allocation_schemes.csv")


if __name__ == "__main__":
    main()
