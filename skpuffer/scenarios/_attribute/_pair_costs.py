"""How far a release moves when a record becomes another one of some records."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist, squareform

from skpuffer.kernel.gradients import GradientRelease
from skpuffer.kernel.numbers import Floats
from skpuffer.kernel.queries import QueryRelease
from skpuffer.kernel.releases import Release
from skpuffer.kernel.sampling import FullBatchSampling

# What rounding may take off a distance.
_DIGITS = 1e-12


def pair_costs(
    release: Release, X: ArrayLike, y: ArrayLike | None, norm: float
) -> Floats | None:
    """Return how far it moves when a record becomes another of some records, or None.

    Costs are shares of how far any record moves it, whatever was released before.
    """
    if isinstance(release, QueryRelease):
        return _of_query(release, X, y, norm)
    # of a batch that is drawn the records' own chance is worth more
    if not isinstance(release, GradientRelease) or norm != 2 or release.record is None:
        return None
    if type(release.sampling) is not FullBatchSampling:
        return None
    costs: Floats = release.record.pair_costs(X, y, release)
    return np.minimum(costs / (2 * release.total_clip_norm), 1.0)


def _of_query(
    release: QueryRelease, X: ArrayLike, y: ArrayLike | None, norm: float
) -> Floats | None:
    most = release.record_move(math.inf, norm, "replace") + release.total_slack(norm)
    if release.contribution is None or not release.moves_with_contributions:
        return None
    if not 0 < most < math.inf:
        return None
    if y is None and getattr(release.contribution, "needs_target", False):
        return None
    points = np.asarray(release.contribution(X, y), dtype=float)
    lengths = pdist(points, "minkowski", p=release.shift_norm(norm))
    if release.is_sum:
        moves = np.minimum(abs(release.factor) * lengths, most)
    else:
        moves = np.array([release.record_move(v, norm, "replace") for v in lengths])
        # nothing of a record is read but its contribution
        moves = np.where(lengths == 0, 0.0, moves + release.total_slack(norm))
    return squareform(np.minimum(moves / most * (1 + _DIGITS), 1.0))
