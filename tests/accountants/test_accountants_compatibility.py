"""The table of what works with what, against what happens."""

import math
from functools import cache
from itertools import product

import pytest

from skpuffer.accountants import (
    ApproximateWasserstein,
    AttributeGaussian,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
    PrivacyLoss,
    compatibility_table,
)
from skpuffer.accountants._compatibility import _releases, _scenarios
from skpuffer.exceptions import InfiniteDistanceError, UnsupportedError
from skpuffer.noise import GaussianNoise

KINDS = {
    kind.__name__: kind
    for kind in (
        ApproximateWasserstein,
        AttributeGaussian,
        DistributionAwareWasserstein,
        GeneralWasserstein,
        GroupPrivacy,
        Kantorovich,
        PrivacyLoss,
    )
}
ASKED = list(product(KINDS, _scenarios(), _releases()))


@cache
def rows():
    """Rows of the table by what is asked: made by a test, not by each process."""
    table = compatibility_table(n_records=2)
    mine = [row for row in table if row["accountant"] in KINDS]
    found = {(row["accountant"], row["scenario"], row["release"]): row for row in mine}
    assert len(found) == len(mine)
    return found


def test_every_combination_is_there():
    assert set(rows()) == set(ASKED)


@pytest.mark.parametrize("name", _scenarios())
def test_the_table_tells_the_truth(name):
    scenario, releases = _scenarios()[name], _releases()
    for row in rows().values():
        if row["scenario"] == name:
            _tells_the_truth(row, scenario, releases[row["release"]])


def _tells_the_truth(row, scenario, release):
    accountant = KINDS[row["accountant"]]()
    if not row["works"]:
        for attempt in (
            lambda: accountant.calibrate(release, scenario),
            lambda: accountant.certify(GaussianNoise(1.0), release, scenario),
        ):
            with pytest.raises(UnsupportedError) as caught:
                attempt()
            assert not isinstance(caught.value, InfiniteDistanceError)
            assert str(caught.value) == row["reason"]
        return
    bound = scenario.bind(release.context)
    assert row["reason"] in {kind.__name__ for kind in bound.provides(release)}
    found = accountant.calibrate(release, scenario)
    assert found.certificate.epsilon == accountant.epsilon
    assert 0 < found.noise.scale < math.inf
    back = accountant.certify(found.noise, release, scenario)
    assert back.epsilon <= accountant.epsilon * (1 + 1e-9)
    assert back.notion is found.certificate.notion


def works(accountant, scenario, release):
    (row,) = (
        row
        for row in rows().values()
        if row["accountant"] == accountant
        and row["scenario"].startswith(scenario)
        and row["release"].startswith(release)
    )
    return row["reason"] if row["works"] else False


def test_a_few_rows_by_hand():
    wasserstein, group = "GeneralWasserstein", "GroupPrivacy"
    assert works(group, "RecordScenario", "any query, with a") == "Adjacency"
    assert not works(group, "RecordScenario", "any query, without")
    assert (
        works(wasserstein, "AttributeScenario, level='record'", "sum")
        == "OutputDistributions"
    )
    assert (
        works(wasserstein, "AttributeScenario, level='dataset'", "sum") == "Adjacency"
    )
    assert (
        works(wasserstein, "AttributeScenario, level='record'", "any query, without")
        == "CoupledSamples"
    )
    assert not works(group, "SimulatorScenario, draw_pair", "sum")
    assert works(wasserstein, "SimulatorScenario, draw_pair", "sum") == "CoupledSamples"
    assert (
        works(wasserstein, "LawsScenario", "any query, without")
        == "OutputDistributions"
    )
