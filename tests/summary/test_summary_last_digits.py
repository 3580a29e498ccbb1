"""Last digits of released means, attacked as Mironov (2012) does, end to end."""

import math

import numpy as np
import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.summary import PrivateMean

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
