"""An accountant: pure promises of one vector, by how many records differ."""

import math
from numbers import Real
from typing import ClassVar

from skpuffer.accountants import (
    QUERY_FIELDS,
    Account,
    Accountant,
    Claim,
    Found,
    accounts_for,
    scale_for,
    sensitivity_bound,
)
from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import Shift
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import Adjacency


class PureRecords(Accountant):
    """Pure promises of one vector, by how many records differ."""

    needs = (Adjacency,)
    reads: ClassVar = {QueryRelease: QUERY_FIELDS}
    _usual_family = "laplace"

    def __init__(self, epsilon=1.0, noise="laplace"):
        self.epsilon = epsilon
        self.noise = noise

    def _check_parameters(self, noise):
        if not isinstance(self.epsilon, Real) or not 0 < self.epsilon < math.inf:
            raise ValueError(
                f"The parameter 'epsilon' must be above 0: {self.epsilon!r}"
            )
        if not noise.has_bounded_loss:
            raise ValueError(
                f"The parameter 'noise' must keep pure promises: {noise!r}"
            )

    def moved(self, fact, release, norm):
        return sensitivity_bound(fact, release, norm)

    @accounts_for(QueryRelease)
    def _account_of_query(self, fact, release, bound):
        moved = self.moved(fact, release, self._chosen_noise().norm)
        if not moved.certified or moved.delta > 0 or math.isinf(moved.radius):
            raise UnsupportedError(
                f"PureRecords has no certain bound of the release {release.name!r}; "
                "use GroupPrivacy, or a scenario that is certain of it."
            )
        shift = Shift(moved.radius, moved.norm, dim=release.dim, weights=release.units)

        def claim(noise):
            return Claim(
                notion="pure_dp" if moved.arbitrary else "pure_pufferfish",
                epsilon=noise.pure_epsilon(shift),
                alpha=math.inf,
                relation=moved.relation,
                curve=noise.curve(shift),
                sensitivity=moved.radius,
                norm=moved.norm,
                assumptions=(*moved.assumptions, *release.assumptions),
                source="additive noise of bounded log-ratio (Dwork et al. 2006)",
            )

        def calibrate(noise, rng):
            if release.units is not None:
                noise = noise.in_units(release.units)
            found = noise.with_scale(scale_for(noise, math.inf, self.epsilon, shift))
            # read off the noise as it is, so that the two cannot differ unnoticed
            return Found(found, claim(found))

        return Account(calibrate, claim)
