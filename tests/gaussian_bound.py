"""An accountant of mutual information for tests: the Gaussian bound, and no more."""

import numpy as np

from skpuffer.accountants._base import Account, Accountant, Found, accounts_for
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.numbers import check_positive
from skpuffer.noise import GaussianNoise
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import OutputSamples

FIELDS = frozenset(QueryRelease.__dataclass_fields__)


class GaussianBound(Accountant):
    """Round Gaussian noise by which the log determinant bound keeps a budget."""

    needs = (OutputSamples,)
    reads = {QueryRelease: FIELDS}
    recommended = False

    def __init__(self, budget=0.5, noise="gaussian"):
        self.budget = budget
        self.noise = noise

    def _check_parameters(self, noise):
        check_positive(budget=self.budget)

    @accounts_for(QueryRelease)
    def _of_query(self, fact, release, bound):
        center = fact.weights @ fact.draws
        spread = fact.draws - center
        variances = np.linalg.eigvalsh((spread.T * fact.weights) @ spread).clip(0)

        def calibrate(noise, rng):
            low, high = 1e-12, 1.0
            while np.log1p(variances / high).sum() / 2 > self.budget:
                high *= 2
            for _ in range(100):
                middle = (low + high) / 2
                over = np.log1p(variances / middle).sum() / 2 > self.budget
                low, high = (middle, high) if over else (low, middle)
            found = GaussianNoise(float(np.sqrt(high)))
            return Found(found, certify(found))

        def certify(noise):
            return Claim(
                notion="mutual_information",
                mutual_information=self.budget,
                entropy=fact.entropy,
                assumptions=(*release.assumptions, *fact.assumptions),
            )

        return Account(calibrate, certify)
