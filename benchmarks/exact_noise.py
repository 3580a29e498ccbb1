"""What noise costs that an attacker cannot read: in time, and in variance.

    python -m benchmarks.exact_noise [--quick]

CPU seconds a draw, the least of several turns that alternate: of the bits of the stream
cipher beside NumPy's own, of noise drawn exactly on a public grid beside NumPy's in
floating point, and of a fit that draws a vector so beside one that draws from a seed.
``share`` is by how much the scale of the noise grows for the grid.

Stores the figures with versions in ``benchmarks/results/exact_noise.csv``. ``--quick``
takes few draws, checks what must hold on every machine, and stores nothing.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import PrivacyLoss
from skpuffer.kernel.draws import secret_generator
from skpuffer.kernel.run import noise_grid, sample_on_grid
from skpuffer.noise import DiscreteLaplaceNoise, GaussianNoise, LaplaceNoise
from skpuffer.summary import PrivateMean

TURNS = 5
FAMILIES = (GaussianNoise(1.0), LaplaceNoise(1.0), DiscreteLaplaceNoise(3.0))


def seconds(*functions):
    """CPU seconds of each, the least of several turns that alternate."""
    found = np.full(len(functions), np.inf)
    for _ in range(TURNS):
        for i, function in enumerate(functions):
            start = time.process_time()
            function()
            found[i] = min(found[i], time.process_time() - start)
    return found


def row(what, count, ours, beside, share=np.nan):
    own, other = seconds(ours, beside)
    return {
        "what": what,
        "count": count,
        "microseconds_each": 1e6 * own / count,
        "times_floating_point": own / other,
        "share": share,
    }


def bits(n):
    secret, usual = secret_generator(), np.random.default_rng(0)
    return row(
        "uniform numbers of the cipher",
        n,
        lambda: secret.random(n),
        lambda: usual.random(n),
    )


def draws(noise, n):
    secret, usual = secret_generator(), np.random.default_rng(0)
    grid = noise_grid(noise, 1000)
    return row(
        f"draws of {noise.family} noise",
        n,
        lambda: sample_on_grid(noise, grid, (n,), secret),
        lambda: noise.sample((n,), usual),
    )


def fits(dim, n_records):
    """Fits of means: all of it, the noise of `dim` numbers among it."""
    X = np.random.default_rng(0).uniform(-1, 1, (n_records, dim))
    accountant = PrivacyLoss(noise="gaussian")
    exact = PrivateMean(accountant=accountant, bounds=(-1, 1))
    seeded = PrivateMean(accountant=accountant, bounds=(-1, 1), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scales = [np.max(model.fit(X).noise_.scale) for model in (exact, seeded)]
        return row(
            f"means of {n_records} rows of {dim} columns",
            1,
            lambda: exact.fit(X),
            lambda: seeded.fit(X),
            scales[0] / scales[1] - 1,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few draws, not stored")
    quick = parser.parse_args().quick

    n = 10**5 if quick else 10**7
    rows = [bits(n), *(draws(noise, n // 10) for noise in FAMILIES)]
    sizes = [(1, 100), (100, 1000)]
    rows += [fits(*size) for size in sizes if not quick or size[0] == 1]
    rows += [] if quick else [fits(10_000, 100), fits(5, 10**6), fits(5, 10**7)]
    frame = pd.DataFrame(rows)
    print_table([[*r] for r in frame.to_numpy()], list(frame.columns))
    # of noise that covers the grid nobody sees the difference
    shares = frame["share"].dropna()
    assert ((shares > 0) & (shares < 1e-3)).all()
    if not quick:
        write_csv(
            frame.assign(**versions("numpy", "randomgen", "scikit-learn")),
            "exact_noise.csv",
        )


if __name__ == "__main__":
    main()
