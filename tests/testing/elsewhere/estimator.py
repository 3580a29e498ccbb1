"""An estimator: the share of records above a public threshold, in each column."""

from functools import partial
from numbers import Real

import numpy as np

from skpuffer.base import PrivateEstimatorMixin
from skpuffer.releases import QueryRelease, Sensitivity


def above(X, y, threshold):
    """Return what each record adds to the counts."""
    return (threshold < X).astype(float)


class PrivateShareAbove(PrivateEstimatorMixin):
    """Share of records above a public threshold, column by column."""

    _parameter_constraints = {
        **PrivateEstimatorMixin._parameter_constraints,
        "threshold": [Real],
    }

    def __init__(
        self, scenario=None, accountant=None, *, threshold=0.0, random_state=None
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.threshold = threshold
        self.random_state = random_state

    def _release(self, task):
        n, d = task.context.n_records, task.context.n_features
        one = {1: d / n, 2: d**0.5 / n}
        return QueryRelease(
            contribution=partial(above, threshold=self.threshold),
            is_sum=True,
            factor=1 / n,
            dim=d,
            sensitivity=Sensitivity(add_remove=one, replace=one),
            n_records=n,
            name="share above",
            context=task.context,
        )

    def _publish(self, value, release):
        self.share_ = np.clip(value, 0, 1)  # of the noisy vector alone
