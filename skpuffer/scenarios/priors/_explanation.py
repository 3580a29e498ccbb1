"""What a declared belief is worth, before anything is fitted."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skpuffer.kernel.gaussian import gaussian_mu
from skpuffer.kernel.numbers import check_positive, check_probability
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.privacy_loss.overlap import Overlap, OverlapCurve, amplified_budgets

__all__ = ["explained"]


def explained(
    overlap: Overlap,
    wider: Sequence[tuple[str, Overlap]],
    epsilon: ArrayLike,
    delta: float,
) -> pd.DataFrame:
    """Return what an overlap buys at each budget, under Gaussian noise.

    Parameters
    ----------
    overlap : Overlap
    wider : sequence of (str, Overlap)
    epsilon : float or array-like of float
    delta : float

    Returns
    -------
    DataFrame
        See :meth:`~skpuffer.scenarios.AttributeScenario.explain`.
    """
    delta = check_probability(delta=delta)
    budgets = [check_positive(epsilon=one) for one in np.atleast_1d(epsilon).tolist()]
    rows = []
    for budget in budgets:
        # the whole run is one number, mu, to which noise is inversely proportional
        mus = [gaussian_mu(*each) for each in amplified_budgets(overlap, budget, delta)]
        mu = min(mus, default=math.inf)
        curve = GaussianCurve(mu)
        rows.append(
            {
                "eta": max(overlap.etas(budget)),
                "gain": mu / gaussian_mu(budget, delta),
                "fallback": curve.epsilon(delta),
                **{
                    f"with {name}": OverlapCurve(curve, other).epsilon(delta)
                    for name, other in wider
                },
            }
        )
    return pd.DataFrame(rows, index=pd.Index(budgets, name="epsilon"))
