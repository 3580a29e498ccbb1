"""What several records that differ cost: no less than tables that differ so much."""

import itertools

import numpy as np
import pytest

from skpuffer.accountants import GroupPrivacy, PrivacyLoss, RenyiDP
from skpuffer.releases import PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import PrevalenceScenario, RecordScenario

#: A record: a number in [0, 1], and its label.
RECORDS = [(0.0, 0), (0.0, 1), (1.0, 0), (1.0, 1)]
RELATIONS = ("add_remove", "replace", "relabel")
ACCOUNTANTS = [
    GroupPrivacy(1.0, alpha=4.0, noise="gaussian"),
    GroupPrivacy(1.0, noise="laplace"),
    PrivacyLoss(1.0, 1e-5, noise="gaussian"),
    RenyiDP(1.0, 1e-5, noise="laplace"),
]


def scenarios(k, relation):
    """All that say so many records differ, and nothing of how far they move."""
    yield RecordScenario(k, relation=relation)
    if relation != "add_remove":
        yield PrevalenceScenario(None, 1, 1 + k, relation=relation)


def row(record):
    """Sum of the numbers, and counts of both labels."""
    return np.concatenate([[record[0]], np.eye(2)[record[1]]])


def longest(k, relation, norm):
    """Furthest move of a sum by so many records, tried one by one."""
    moves = [row(one) for one in RECORDS]
    if relation != "add_remove":
        moves = [
            row(one) - row(other)
            for one, other in itertools.product(RECORDS, RECORDS)
            if relation == "replace" or one[0] == other[0]
        ]
    several = itertools.combinations_with_replacement(moves, k)
    return max(np.linalg.norm(np.sum(each, axis=0), norm) for each in several)


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=repr)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_noise_covers_as_many_records_as_may_differ(k, relation, accountant):
    norms = (1, 2)
    one = {about: {p: longest(1, about, p) for p in norms} for about in RELATIONS}
    release = QueryRelease(
        query=lambda X, y: X.sum(axis=0),
        n_records=9,
        dim=3,
        sensitivity=Sensitivity(**one),
        context=PublicContext(n_records=9, has_target=True, target_name="label"),
    )
    for scenario in scenarios(k, relation):
        found = accountant.calibrate(release, scenario)
        p = found.noise.norm
        moved = longest(k, relation, p)
        assert found.certificate.sensitivity >= moved * (1 - 1e-9)
        assert found.certificate.sensitivity == pytest.approx(k * one[relation][p])
        # and noise is in proportion to it
        single = accountant.calibrate(release, RecordScenario(relation=relation))
        ratio = found.noise.scale / single.noise.scale
        assert ratio >= (1 - 1e-6) * moved / one[relation][p]
