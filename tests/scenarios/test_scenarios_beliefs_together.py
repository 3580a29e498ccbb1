"""Several beliefs of one scenario: what is promised holds under each of them."""

from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import (
    DistributionAwareWasserstein,
    GeneralWasserstein,
    MarkovQuilt,
)
from skpuffer.exceptions import ScenarioError
from skpuffer.noise import LaplaceNoise
from skpuffer.releases import PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import (
    AttributeScenario,
    BayesianNetworkScenario,
    JointTableScenario,
    MarkovChainScenario,
)

N = 3
STUCK, FLIP = np.eye(2), np.array([[0.5, 0.5], [0.1, 0.9]])
TABLES = [[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 4], [4, 0, 0]]


def people(*rows):
    return pd.DataFrame(rows, columns=["s", "u"])


def node(chance, kept):
    return {"a": [1 - chance, chance], "b": [[kept, 1 - kept], [1 - kept, kept]]}


#: By kind: makes a scenario of beliefs, of which each rules out what another holds for
#: possible, or is worse than it for some pair.
KINDS = {
    "tables": (
        lambda *beliefs: JointTableScenario(TABLES, list(beliefs)),
        [
            [0.5, 0.0, 0.0, 0.5, 0.0, 0.0],
            [0.0, 0.5, 0.5, 0.0, 0.0, 0.0],
            [0.2, 0.2, 0.2, 0.2, 0.1, 0.1],
        ],
    ),
    "chains": (
        lambda *beliefs: MarkovChainScenario(
            [step for step, _ in beliefs], initial=[law for _, law in beliefs]
        ),
        [(STUCK, [0.5, 0.5]), (FLIP, [1.0, 0.0]), (FLIP, [0.5, 0.5])],
    ),
    "networks": (
        lambda *beliefs: BayesianNetworkScenario(
            {"a": (), "b": ("a",), "c": ()},
            [belief | {"c": [0.5, 0.5]} for belief in beliefs],
        ),
        [node(0.5, 1.0), node(0.0, 0.6), node(0.3, 0.7)],
    ),
    "priors": (
        lambda *beliefs: AttributeScenario(
            "s", level="record", prior=list(beliefs), prior_as="law"
        ),
        [
            people((0, 0.0), (1, 1.0)),
            people((0, 0.0), (1, 0.5), (2, 3.0)),
            people((1, 0.0), (2, 0.25)),
        ],
    ),
}
ACCOUNTANTS = [
    GeneralWasserstein(1.0, alpha=4.0),
    DistributionAwareWasserstein(1.0, alpha=4.0),
    MarkovQuilt(1.0, alpha=4.0),
]


def spent(accountant, scenario):
    """Epsilon of one noise, or None where the accountant does not answer."""
    release = QueryRelease(
        contribution=lambda X, y: np.asarray(X, dtype=float),
        is_sum=True,
        n_records=N,
        dim=1,
        sensitivity=Sensitivity(add_remove={1: 4.0, 2: 4.0}),
        context=PublicContext(n_records=N, n_features=1),
    )
    if not accountant.supports(release, scenario):
        return None
    return accountant.certify(LaplaceNoise(3.0), release, scenario).epsilon


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_several_beliefs_cost_what_the_worst_of_them_does(kind, accountant):
    make, beliefs = KINDS[kind]
    alone = []
    for belief in beliefs:
        # where two secrets are possible under it
        with suppress(ScenarioError):
            alone.append(spent(accountant, make(belief)))
    if None in alone:
        pytest.skip("no account of it")
    assert len(alone) >= 2
    for order in (beliefs, beliefs[::-1]):
        assert spent(accountant, make(*order)) == pytest.approx(max(alone), rel=1e-9)
