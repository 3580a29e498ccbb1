"""Noise of records that draw a batch of each epoch, against that of Poisson batches.

    python -m benchmarks.allocation_schemes [--quick]

For batches of one size, at delta = 1e-5, with one record added or removed, or replaced:
the noise in clip norms under `PrivacyLoss` of batches by `poisson` and `fresh_bins`,
which part of it fresh bins save, and CPU seconds of each calibration. A row is a number
of batches an epoch, a number of epochs and an epsilon. Replaced records take a smaller
grid, for their calibration takes seconds. ``--quick`` takes few rows and stores
nothing; what must hold on every machine is that fresh bins need no more noise where a
record is added or removed in at least one whole epoch.
"""

import argparse
import itertools
import time

import pandas as pd

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import PrivacyLoss
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario

DELTA = 1e-5
SCHEMES = ("poisson", "fresh_bins")
BATCHES = (2, 10, 100, 1000)
EPOCHS = (0.5, 1, 3, 10, 50)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
REPLACED = ((5, 100), (1, 10), (2.0,))

#: Calibrations agree to so much.
CLOSE = 1e-5


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


def check(frame):
    """What must hold on every machine, and what estimators take for granted."""
    whole = frame[(frame["relation"] == "add_remove") & (frame["epochs"] >= 1)]
    assert (whole["saved"] >= -CLOSE).all(), whole[whole["saved"] < -CLOSE]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    grid = ((10, 100), (1, 3), (1.0,)) if options.quick else (BATCHES, EPOCHS, EPSILONS)
    cases = list(itertools.product(("add_remove",), *grid))
    if not options.quick:
        cases += itertools.product(("replace",), *REPLACED)
    frame = pd.DataFrame(rows(cases))
    print_table(frame.astype(str).values.tolist(), list(frame.columns))
    if not options.quick:
        write_csv(frame.assign(**versions("numpy", "scipy")), "allocation_schemes.csv")
    check(frame)


if __name__ == "__main__":
    main()
