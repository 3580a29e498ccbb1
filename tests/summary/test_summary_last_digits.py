"""Last digits of released means, attacked as Mironov (2012) does, end to end."""

import math

import numpy as np
import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.base import FLOATING_POINT
from skpuffer.kernel.run import CHOSEN_ON_GRID
from skpuffer.summary import PrivateMean, PrivateQuantile

from ..last_digits import reachable

N_RECORDS, N_FITS = 16, 120


def released(table, seeded):
    """Means of many fits, and the scale of their noise."""
    fits = [
        PrivateMean(
            accountant=PrivacyLoss(noise="laplace"),
            bounds=(-1, 1),
            random_state=seed if seeded else None,
        ).fit(table)
        for seed in range(N_FITS)
    ]
    return np.ravel([fit.mean_ for fit in fits]), float(fits[0].noise_.scale[0])


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("seeded", [True, False])
def test_no_table_is_ruled_out_by_last_digits(seeded):
    """Of two neighbours, one has a mean of zero: no noise leads from it to the other's.

    So it is of noise in floating point, as it is drawn from a seed.
    """
    here = np.zeros((N_RECORDS, 1))
    there = here.copy()
    there[0] = 1
    ruled_out = []
    for table in (here, there):
        means, scale = released(table, seeded)
        ruled_out.append((~reachable(means, scale)).mean())
    if seeded:
        # never the true one, and the other more often than not
        assert ruled_out[0] == 0
        assert ruled_out[1] > 0.4
    else:
        # numbers of either are met by chance, and as often
        assert ruled_out[0] > 0.4
        assert abs(ruled_out[1] - ruled_out[0]) < 4 * math.sqrt(0.5 / N_FITS)


def on_public_grid(values, low, high):
    """Whether numbers are ends of the 2**40 equal steps between the bounds."""
    steps = np.rint((values - low) / (high - low) * 2.0**40)
    return values == low + (high - low) * (steps / 2.0**40)


@pytest.mark.parametrize("levels", [0.5, [0.25, 0.5, 0.75]])
def test_quantiles_are_points_of_a_grid_that_no_record_moves(levels):
    """Drawn between two records in floating point, hardly one of them would be."""
    rng = np.random.default_rng(0)
    low, high = -0.75, 1000.0
    table = rng.uniform(size=(60, 1)) ** 3 / 100
    model = PrivateQuantile(quantiles=levels, bounds=(low, high))
    fits = [model.fit(table).quantiles_.ravel() for _ in range(40)]
    assert on_public_grid(np.concatenate(fits), low, high).all()
    x = np.sort(table[:, 0])
    drawn = x[:-1] + rng.random(59) * np.diff(x)
    assert on_public_grid(drawn, low, high).mean() < 0.1
    assumptions = model.certificate_.assumptions
    assert CHOSEN_ON_GRID in assumptions and FLOATING_POINT not in assumptions
