"""Results clipped to their public domain, on request."""

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.summary import PrivateMean, PrivateStandardScaler, PrivateSummary

NOISY = PrivacyLoss(0.05)


@pytest.mark.parametrize("estimator", [PrivateMean, PrivateStandardScaler])
@pytest.mark.parametrize("bounds", [(0, 100), ([0, 90], [100, 91])])
def test_means_lie_within_the_bounds(estimator, bounds):
    X = np.full((3, 2), 50.0)
    low, high = np.broadcast_arrays(*bounds, np.zeros(2))[:2]
    made = {
        clip: estimator(bounds=bounds, accountant=NOISY, clip=clip)
        for clip in (False, True)
    }
    means = {c: np.array([m.fit(X).mean_ for _ in range(20)]) for c, m in made.items()}
    assert np.any(means[False] < low) and np.any(means[False] > high)
    assert np.all((means[True] >= low) & (means[True] <= high))


@pytest.mark.parametrize("by", [None, "k"])
def test_statistics_of_a_table_lie_in_their_domains(by):
    table = pd.DataFrame({"x": [0.0, 9.0, 9.0], "on": [True, False, True], "k": "a"})
    asked = PrivateSummary(
        statistics={"x": ["mean", "rate", "std"], "on": ["histogram", "mean", "count"]},
        by=by,
        bounds={"x": (0, 9)},
        categories={"k": ["a", "b"]},
        accountant=NOISY,
        clip=True,
    )
    highest = {"x mean": 9, "x rate": 1, "x std": 4.5 * (1 + 1e-9), "on mean": 1}
    for _ in range(20):
        found = asked.fit(table).result_
        for row, column in np.ndindex(found.shape):
            named = found.columns[column], found.index[row]
            name = " ".join(named[0] if by else named)
            value = found.iloc[row, column]
            assert np.isnan(value) or 0 <= value <= highest.get(name, 3), name


def test_intervals_of_clipped_means_cover_no_less():
    X = np.full((20, 1), 99.0)
    mean = PrivateMean(bounds=(0, 100), accountant=PrivacyLoss(0.5), clip=True)
    covered = [
        low[0] <= 99 <= high[0]
        for low, high in (
            mean.fit(X).confidence_interval(0.5)["mean_"] for _ in range(200)
        )
    ]
    assert np.mean(covered) > 0.4
