"""What a subclass of an accountant or of a bound scenario replaces is what counts."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from skpuffer.accountants import GroupPrivacy, MarkovQuilt, PrivacyLoss
from skpuffer.accountants._fields import QUERY_FIELDS
from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import LaplaceNoise
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import MarkovChainScenario, RecordScenario
from skpuffer.scenarios._base import _BoundRecord
from tests.refused import refused


def total(kind=QueryRelease, **options):
    return kind(
        query=lambda X, y: np.sum(X),
        n_records=10,
        dim=1,
        sensitivity=Sensitivity(add_remove={1: 1.0, 2: 1.0}),
        **options,
    )


class Families(_BoundRecord):
    """Records come in families of four; the method of the base is not marked anew."""

    def _adjacency(self, release, norm):
        return replace(super()._adjacency(release, norm), count=4)


def test_a_fact_that_a_subclass_replaces_is_the_one_on_offer():
    release, scenario = total(), RecordScenario()
    families = Families(scenario, release.context)
    one, four = (
        GroupPrivacy().calibrate(release, bound).noise.scale
        for bound in (scenario, families)
    )
    assert four == pytest.approx(4 * one)


class Doubled(GroupPrivacy):
    """Twice the noise of its base, by a method that is not marked anew."""

    def _account_of_query(self, fact, release, bound):
        account = super()._account_of_query(fact, release, bound)

        def calibrate(noise, rng):
            found = account.calibrate(noise, rng)
            return replace(found, noise=found.noise.with_scale(2 * found.noise.scale))

        return replace(account, calibrate=calibrate)


def test_an_account_that_a_subclass_replaces_is_the_one_that_is_made():
    one, two = (
        kind().calibrate(total(), RecordScenario()).noise.scale
        for kind in (GroupPrivacy, Doubled)
    )
    assert two == pytest.approx(2 * one)


@dataclass(frozen=True, kw_only=True, eq=False)
class Twice(QueryRelease):
    """A query that is released twice."""

    times: int = 2


class ReadsGroups(PrivacyLoss):
    reads = PrivacyLoss.reads | {Twice: QUERY_FIELDS | {"times"}}


class ReadsQuilts(MarkovQuilt):
    reads = MarkovQuilt.reads | {Twice: QUERY_FIELDS | {"times"}}


@pytest.mark.parametrize(
    "accountant, scenario",
    [
        (ReadsGroups(), RecordScenario()),
        (ReadsQuilts(), MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])),
    ],
    ids=["adjacency", "quilts"],
)
def test_to_read_a_release_is_not_to_account_for_it(accountant, scenario):
    release = total(Twice)
    support = accountant.supports(release, scenario)
    assert not support and "accounts_for" in str(support.reason)
    for call in (
        lambda: accountant.calibrate(release, scenario),
        lambda: accountant.certify(LaplaceNoise(1.0), release, scenario),
    ):
        with refused(UnsupportedError, "accountant.kind_has_no_method", kind="Twice"):
            call()
