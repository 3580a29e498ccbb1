"""Means of people with many rows: how many rows of each to keep, bias against noise.

    python -m benchmarks.rows_of_units [--quick]

2,000 people have a geometric number of rows, ten in the mean, and those with more rows
have larger values: by 0.15 of the range for each doubling. Two means are asked, each of
which has its own truth: that of all rows, and that of people, each of whom counts once
with the mean of all rows. At epsilon one, delta 1e-6, the bias of keeping `max_rows` of
each person and the standard deviation of the noise are told as shares of the range, the
former over draws of what is kept.

Stores the figures with versions in ``benchmarks/results/rows_of_units.csv``.
``--quick`` takes fewer draws, checks that what is advised holds, and stores nothing.
"""

import argparse

import numpy as np
import pandas as pd

from benchmarks._report import print_table, versions, write_csv
from skpuffer._template._units import rows_of_units
from skpuffer.accountants import PrivacyLoss
from skpuffer.scenarios import RecordScenario
from skpuffer.summary import PrivateMean

ACCOUNTANT = PrivacyLoss(1.0, 1e-6)
MOST = (1, 2, 5, 10, 20, 50, 100)


def people(n=2000, seed=0):
    """Return values in [0, 1] and the number of each row's person."""
    rng = np.random.default_rng(seed)
    sizes = rng.geometric(0.1, n)
    units = np.repeat(np.arange(n), sizes)
    level = 0.3 + 0.15 * np.log2(1 + sizes / 10)
    x = np.clip(level[units] + 0.1 * rng.normal(size=len(units)), 0, 1)
    return x, units


def mean_of_units(x, units):
    """Mean over people of the means of their rows."""
    return np.mean(np.bincount(units, x) / np.bincount(units))


def measured(n_draws):
    """Return a row of figures for each weight and number of rows kept."""
    x, units = people()
    truths = {"row": x.mean(), "unit": mean_of_units(x, units)}
    found = []
    for weight, truth in truths.items():
        for most in MOST:
            scenario = RecordScenario(max_rows=most)
            model = PrivateMean(scenario, ACCOUNTANT, bounds=(0, 1), weight=weight)
            noise = model.fit(x[:, np.newaxis], groups=units).mean_std_[0]
            means = []
            for seed in range(n_draws):
                kept = rows_of_units(units, most, np.random.default_rng(seed))
                part = x[kept], units[kept]
                mean = part[0].mean() if weight == "row" else mean_of_units(*part)
                means.append(mean)
            bias = float(np.mean(means) - truth)
            error = float(
                np.sqrt(np.mean(np.square(np.array(means) - truth)) + noise**2)
            )
            found.append(
                {
                    "weight": weight,
                    "max_rows": most,
                    "bias": round(bias, 5),
                    "noise_std": round(float(noise), 5),
                    "error": round(error, 5),
                }
            )
    return found


def check(rows):
    """Assert what is advised: units have the same noise whatever is kept of them."""
    of_units = [row for row in rows if row["weight"] == "unit"]
    noise = [row["noise_std"] for row in of_units]
    assert max(noise) <= 1.01 * min(noise)
    of_rows = [row for row in rows if row["weight"] == "row"]
    # few draws leave a little of it
    most = 0.02 * abs(of_rows[0]["bias"])
    assert all(abs(row["bias"]) < most for row in of_units)
    assert of_rows[0]["bias"] < -10 * of_rows[0]["noise_std"]
    assert abs(of_rows[-1]["bias"]) < of_rows[-1]["noise_std"]


def main():
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows = measured(3 if quick else 100)
    frame = pd.DataFrame(rows)
    print_table(frame.to_numpy().tolist(), list(frame))
    check(rows)
    if not quick:
        write_csv(frame.assign(**versions("numpy")), "rows_of_units.csv")


if __name__ == "__main__":
    main()
