"""No fact changes under any option without being seen, nor does what a fact says."""

import numpy as np
import pytest
from sklearn.base import clone

from skpuffer.exceptions import ScenarioError
from skpuffer.releases import PublicContext
from skpuffer.scenarios import (
    Adjacency,
    AttributeScenario,
    BlocksScenario,
    DiffusionScenario,
    GaussianScenario,
    MarkovChainScenario,
    OutputSensitivity,
)
from tests.refused import refused

from .pinned import (
    FAST,
    LONG,
    NAMES,
    ONE,
    SERIES,
    SLOW,
    TWO,
    TWO_SECRETS,
    VARIANTS,
    N,
    facts,
    near,
    read,
    releases_of,
)

KEPT = read()

pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_variants_are_those_of_the_file():
    assert set(KEPT) == set(VARIANTS)


@pytest.mark.parametrize("name", KEPT)
def test_a_fact_is_what_it_was(name):
    found = facts(name)
    assert set(found) == set(KEPT[name])
    wrong = {
        key: (found[key], kept)
        for key, kept in KEPT[name].items()
        if not near(found[key], kept)
    }
    assert wrong == {}


#: The same parts in another order.
TURNED = {
    "attribute, in another order": "attribute, in order",
    "gaussian, points in another order": "gaussian, points, None",
    "chain, two turned": "chain, two",
    "long chain, two turned": "long chain, two",
    "laws turned": "laws",
    "group, turned, law, None": "group, two, law, None",
    "tables, beliefs turned": "tables, two beliefs",
    "network, two turned": "network, two",
    "blocks [3, 2, 1], chain": "blocks [1, 3, 2], chain",
}
#: What a list of parts has together: the largest of each.
LARGEST = ("count", "move", "moves", "radius", "delta", "survival", "window")


@pytest.mark.parametrize("turned", TURNED)
def test_parts_in_another_order_say_the_same(turned):
    one, other = facts(turned), facts(TURNED[turned])
    assert one.keys() == other.keys()
    for key, row in one.items():
        if isinstance(row, dict):
            told = ({k: each.get(k) for k in LARGEST} for each in (row, other[key]))
            assert near(*told), key


#: Scenarios of a named table, and changes of what their couplings are found from.
FOUND_FROM = {
    "attribute": (
        AttributeScenario(
            "secret",
            level="record",
            prior=ONE,
            prior_as="law",
            target="t",
            table="people",
        ),
        [
            {"prior": TWO},
            {"prior": [ONE, TWO]},
            {"pairs": [(0, 2)]},
            {"prior_as": "support"},
            {"level": "dataset"},
        ],
    ),
    "gaussian": (
        GaussianScenario(
            covariance=TWO_SECRETS,
            secret=["s", "z"],
            domain=1.0,
            shape="ball",
            table="people",
        ),
        [
            {"covariance": 2 * TWO_SECRETS},
            {"secret": "s"},
            {"secret": ["z", "s"]},
            {"domain": 2.0},
            {"domain": ([0, 0], [1, 2]), "shape": "box"},
            {"level": "dataset"},
        ],
    ),
    "series": (
        GaussianScenario(
            covariance=SERIES,
            covariance_of="records",
            columns=list(NAMES),
            domain=1.0,
            shape="ball",
            table="people",
        ),
        [
            {"covariance": 2 * SERIES},
            {"secret": "a"},
            {"domain": 2.0},
            {"protected": [0, 2]},
            {"columns": ["b", "a"]},
        ],
    ),
    "chain": (
        MarkovChainScenario(
            SLOW, states=[[0.0], [1.0]], event_delta=1e-3, table="people"
        ),
        [
            {"transition": FAST},
            {"transition": [SLOW, FAST]},
            {"initial": [1.0, 0.0]},
            {"protected": [5]},
            {"protected": [50]},
            {"event_delta": 1e-6},
        ],
    ),
    "diffusion": (
        DiffusionScenario(1.0, np.arange(1, N + 1), 1.5, table="people"),
        [{"curvature": 2.0}, {"times": np.arange(2, N + 2)}, {"diameter": 2.0}],
    ),
}


def couplings(scenario, n, names):
    found = {}
    for name, release in releases_of(names, n, True, None):
        bound = scenario.bind(release.context)
        for kind in bound.provides(release):
            if kind in (Adjacency, OutputSensitivity):
                coupling = bound.fact(kind, release, 2).coupling_id
                if coupling is not None and "replace:" not in coupling:
                    found[name, kind] = coupling
    return found


@pytest.mark.parametrize("name", FOUND_FROM)
def test_a_coupling_is_that_of_all_it_is_found_from(name):
    scenario, changes = FOUND_FROM[name]
    about = {"chain": (LONG, ("a",)), "diffusion": (N, ("a",))}.get(name, (N, NAMES))
    seen = couplings(scenario, *about)
    assert seen
    assert couplings(clone(scenario), *about) == seen
    for change in changes:
        other = couplings(clone(scenario).set_params(**change), *about)
        assert all(other.get(key) != held for key, held in seen.items()), change
    # and of the columns that a release reads, in their order
    if len(about[1]) > 1:
        other = couplings(scenario, N, about[1][::-1])
        assert all(other.get(key) != held for key, held in seen.items())


@pytest.mark.parametrize("place", range(6))
def test_each_block_of_groups_has_one_secret(place):
    """A block of several values of its secret is refused, whichever block it is."""
    scenario = AttributeScenario(
        "secret", level="dataset", prior=ONE, prior_as="support"
    )
    secret, groups = np.array([0, 1, 0, 1, 2, 2]), (0, 1, 0, 1, 2, 2)
    by_groups, by_sizes = BlocksScenario(scenario), BlocksScenario(scenario, 2)
    order = np.argsort(groups, kind="stable")
    context = PublicContext(n_records=6, groups=groups)
    bound = by_groups.bind(context)
    bound.check_secrets(secret)
    by_sizes.check_secret(secret[order])
    secret[place] = (secret[place] + 1) % 3
    with refused(ScenarioError, "attribute.several_values_at_dataset_level"):
        bound.check_secrets(secret)
    with refused(ScenarioError, "attribute.several_values_at_dataset_level"):
        by_sizes.check_secret(secret[order])
