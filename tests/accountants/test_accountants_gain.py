"""The gain that the certificate of a fit states is the ratio of two noises."""

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import (
    ApproximateWasserstein,
    Best,
    DistributionAwareWasserstein,
    GeneralWasserstein,
)
from skpuffer.accountants._gain import stating_gain
from skpuffer.distributions import Discrete
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import AttributeScenario, LawsScenario, RecordScenario
from skpuffer.summary import PrivateMean

#: Of two groups, whose values lie in one range and are not as frequent in it.
TABLE = pd.DataFrame(
    {
        "group": np.repeat(["a", "b"], [60, 40]),
        "value": np.concatenate([np.arange(60) % 12, 4 + np.arange(40) % 9]) / 20.0,
    }
)

#: Whose values lie between those of the table, which is the prior.
PEOPLE = TABLE.assign(value=TABLE["value"] + 0.02)


def mean(scenario, accountant, X):
    return PrivateMean(scenario, accountant, bounds=(0, 1)).fit(X)


def secret(prior_as="law"):
    return AttributeScenario("group", level="record", prior=TABLE, prior_as=prior_as)


@pytest.mark.parametrize("prior_as", ["law", "support"])
@pytest.mark.parametrize(
    "accountant",
    [
        # set by the mean over all moves, not by the longest one
        DistributionAwareWasserstein(alpha=4, noise="gaussian"),
        DistributionAwareWasserstein(delta=1e-5, noise="laplace"),
        # with which differential privacy would not add its noise
        GeneralWasserstein(delta=1e-5, noise="gaussian"),
        # a part of delta is spent on rare moves
        ApproximateWasserstein(delta=1e-5),
        Best(delta=1e-5),
        Best(alpha=4),
    ],
    ids=repr,
)
def test_it_is_that_of_two_fits(accountant, prior_as):
    """The one plain differential privacy, by the accountant that does best for it."""
    fitted = mean(secret(prior_as), accountant, PEOPLE)
    target = {"alpha": accountant.alpha, "delta": accountant.delta}
    plain = mean(RecordScenario(relation="replace"), Best(**target), PEOPLE[["value"]])
    needed = plain.mean_std_[0] / fitted.mean_std_[0]
    assert fitted.certificate_.gain == pytest.approx(needed, rel=2e-3)
    # a preview goes the same way
    preview = PrivateMean(secret(prior_as), accountant, bounds=(0, 1)).preview(
        len(PEOPLE), example=TABLE
    )
    assert preview.certificate.gain == fitted.certificate_.gain


def test_shifts_alone_would_overstate_it():
    fitted = mean(secret(), GeneralWasserstein(delta=1e-5, noise="gaussian"), PEOPLE)
    certificate = fitted.certificate_
    shifts = certificate.record_sensitivity / certificate.sensitivity
    assert certificate.noise_gain == certificate.gain < shifts / 2


def test_what_compares_with_no_record_stays_so():
    plain = mean(RecordScenario(relation="replace"), None, PEOPLE[["value"]])
    assert plain.certificate_.gain is None
    # nothing bounds what any record does, so there is no noise to compare with
    laws = LawsScenario([(Discrete([0, 1], [1, 2]), Discrete([1, 2], [2, 1]))])
    release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    found = GeneralWasserstein(alpha=4).calibrate(release, laws)
    assert found.certificate.gain is None
    assert stating_gain(found, 1.0, release, laws.bind(release.context)) is found
