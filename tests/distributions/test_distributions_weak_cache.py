"""What is remembered of laws, and for how long."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skpuffer.accountants import GeneralWasserstein, MarkovQuilt, PrivacyLoss
from skpuffer.distributions import Discrete
from skpuffer.distributions._distributions import cached_distribution_distance
from skpuffer.distributions._weak_cache import MEMORY, Memory, life_of, remembered_with
from skpuffer.linear_model import PrivateSGDClassifier
from skpuffer.scenarios import AttributeScenario, MarkovChainScenario
from skpuffer.scenarios._attribute import _bound as attribute_bound
from skpuffer.scenarios._markov._quilts import chain_influence
from skpuffer.summary import PrivateMean
from skpuffer.training import Training


@pytest.fixture(autouse=True)
def _empty():
    gc.collect()
    MEMORY.clear()


class Owner:
    """Something that can die."""


def test_a_result_is_computed_once_for_each_pair_and_rest():
    calls = []

    @remembered_with(2)
    def function(u, v, *rest):
        calls.append(rest)
        return len(calls)

    u, v = Discrete([0.0]), Discrete([1.0])
    assert function(u, v, 1) == function(u, v, 1) == 1
    assert function(v, u, 1) == 2
    assert function(u, v, 2) == 3
    assert function(Discrete([0.0]), v, 1) == 4
    function.cache_clear()
    assert function(u, v, 1) == 5


def test_it_keeps_no_law_alive():
    u, v = Discrete([0.0, 1.0]), Discrete([1.0, 2.0])
    assert cached_distribution_distance(u, v, 2, None, np.inf) == 1.0
    gone = weakref.ref(u)
    del u
    gc.collect()
    assert gone() is None


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_private_rows_of_an_empirical_prior_are_not_kept():
    marker = 0.123456789
    table = pd.DataFrame({"s": [0, 1] * 20, "x": np.linspace(0, 1, 40) + marker})
    scenario = AttributeScenario("s", level="record", prior="empirical")
    PrivateMean(scenario, GeneralWasserstein(1.0, alpha=2.0), bounds=(0.0, 2.0)).fit(
        table
    )
    gc.collect()
    kept = [law for law in gc.get_objects() if isinstance(law, Discrete)]
    contributions = (table["x"].to_numpy() - 1.0) / 1.0
    assert not any(np.isin(contributions, law.points).any() for law in kept)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("kind", ["sum", "steps"])
def test_the_table_of_an_empirical_fit_dies_with_it(kind):
    """A canary: the very table that was passed, which no cache may refer to."""
    rng = np.random.default_rng(0)
    X, y, secret = rng.normal(size=(60, 3)), np.arange(60) % 2, np.arange(60) // 30
    # with the scenario alive, as a user keeps it
    scenario = AttributeScenario("s", level="record", prior="empirical")
    if kind == "sum":
        model = PrivateMean(scenario, GeneralWasserstein(1.0, alpha=2.0), bounds=(0, 1))
    else:
        model = PrivateSGDClassifier(
            scenario,
            PrivacyLoss(1.0, 1e-5),
            classes=[0, 1],
            training=Training(n_steps=2),
        )
    model.fit(X, y, secret=secret)
    gone = weakref.ref(X)
    assert not model.certificate_.certified
    del X
    gc.collect()
    assert gone() is None
    assert len(MEMORY) == 0


def test_all_is_forgotten_whatever_its_key_or_what_begins_as_is_said():
    memory, owner = Memory(50_000), Owner()
    for key in ("powers", 3, ("a", 1), ("a", 2), ("b", 1)):
        memory.keep((owner,), key, 0)
    memory.clear(("a",))
    assert len(memory) == 3 and memory.held((owner,), ("b", 1)) == 0
    memory.clear()
    assert len(memory) == memory.n_bytes == 0


def test_bytes_are_bounded_and_the_latest_stay():
    memory, owner = Memory(50_000), Owner()
    for i in range(100):
        memory.keep((owner,), i, np.zeros(1000))
        assert memory.n_bytes <= 50_000
    assert memory.held((owner,), 99) is not None
    assert memory.held((owner,), 0) is None
    oldest = next(i for i in range(100) if memory.held((owner,), i) is not None)
    memory.keep((owner,), 100, np.zeros(1000))  # asked for last, so another one goes
    assert memory.held((owner,), oldest) is not None


def test_what_is_too_large_is_not_kept_nor_what_grows_to_it():
    memory, owner = Memory(50_000), Owner()
    memory.keep((owner,), "large", [np.zeros(10_000)])
    assert memory.held((owner,), "large") is None
    growing = [np.zeros(1000)]
    memory.keep((owner,), "growing", growing)
    growing.append(np.zeros(10_000))
    assert memory.held((owner,), "growing") is growing
    assert memory.held((owner,), "growing") is None
    assert memory.n_bytes == len(memory) == 0


def test_views_count_as_what_they_keep_alive():
    memory, owner = Memory(50_000), Owner()
    memory.keep((owner,), "view", np.zeros(10_000)[:1])
    assert len(memory) == 0


def test_a_value_counts_as_its_parts():
    memory, owner = Memory(500_000), Owner()
    memory.keep((owner,), "parts", [np.zeros(10_000), {"half": np.zeros(5_000)}])
    assert 120_000 <= memory.n_bytes < 122_000


def test_an_entry_dies_with_any_of_its_owners():
    memory, owners = Memory(50_000), [Owner(), Owner()]
    memory.keep(tuple(owners), "both", 1.0)
    memory.keep((owners[0],), "one", 1.0)
    owners.pop()
    gc.collect()
    assert len(memory) == 1
    owners.pop()
    gc.collect()
    assert memory.n_bytes == len(memory) == 0


def test_an_owner_at_the_place_of_a_dead_one_inherits_nothing():
    memory = Memory(50_000)
    for _ in range(1000):  # most at the place of the last
        owner = Owner()
        assert memory.held((owner,), "key") is None
        memory.keep((owner,), "key", 1.0)
    # nor where the dead one is not forgotten yet, as the memory was busy
    for _ in range(1000):
        with memory._lock:
            del owner
        owner = Owner()
        assert memory.held((owner,), "key") is None
        memory.keep((owner,), "key", 1.0)


def test_owners_that_die_while_the_memory_is_busy():
    """As garbage collection may have it: a value that is dropped owns another."""
    memory = Memory(50_000)
    outer, inner = Owner(), Owner()
    memory.keep((inner,), "inner", 1.0)
    memory.keep((outer,), "outer", [inner])
    del inner
    assert len(memory) == 2
    del outer
    gc.collect()
    assert len(memory) == 0


def priors(seed, n=2000):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"s": np.arange(n) % 2, "x": rng.uniform(size=n)})


def scenario_of(prior):
    return AttributeScenario("s", level="record", prior=prior, prior_as="law")


def fit(scenario):
    table = priors(1000, 50)
    accountant = GeneralWasserstein(1.0, alpha=2.0)
    return PrivateMean(scenario, accountant, bounds=(0.0, 1.0)).fit(table)


def test_many_fits_stay_within_the_bytes_and_go_with_their_scenarios(monkeypatch):
    monkeypatch.setattr(MEMORY, "max_bytes", 10**6)
    fitted = []
    for seed in range(40):  # of 32 kB each
        fitted.append(fit(scenario_of(priors(seed))))
        assert MEMORY.n_bytes <= 10**6
    assert MEMORY.n_bytes > 10**5
    del fitted
    gc.collect()
    assert MEMORY.n_bytes == len(MEMORY) == 0


def test_quilts_stay_within_the_bytes_and_go_with_their_scenario(monkeypatch):
    monkeypatch.setattr(MEMORY, "max_bytes", 10**6)
    scenario = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    model = PrivateMean(scenario, MarkovQuilt(1.0), bounds=(0.0, 1.0))
    model.fit(np.arange(5000)[:, None] % 2)
    assert 0 < MEMORY.n_bytes <= 10**6
    del model, scenario
    gc.collect()
    assert MEMORY.n_bytes == len(MEMORY) == 0


def test_clones_share_what_was_found(monkeypatch):
    """As in a search, which clones the scenario for every candidate and fold."""
    calls = []
    kind = attribute_bound.DISTRIBUTION_TYPES["law"]
    monkeypatch.setitem(
        attribute_bound.DISTRIBUTION_TYPES, "law", lambda x: calls.append(1) or kind(x)
    )
    scenario = scenario_of(priors(0))
    first = fit(clone(scenario)).certificate_
    assert fit(clone(clone(scenario))).certificate_ == first
    assert len(calls) == 2
    fit(clone(scenario).set_params(prior=priors(1)))  # but not what differs
    assert len(calls) == 4


def test_threads_find_the_same():
    scenario = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    tables = [priors(seed, 200) for seed in range(4)]
    steps = [np.array([[1 - p, p], [p, 1 - p]]) for p in (0.1, 0.2, 0.3)]
    memory, owners = Memory(20_000), [Owner() for _ in range(5)]

    def ask(i):
        owner = owners[i % 5]
        value = memory.held((owner,), i % 7)
        if value is None:
            value = np.full(100, float(i % 7))
            memory.keep((owner, Owner()) if i % 11 == 0 else (owner,), i % 7, value)
        laws = [
            Discrete(table["x"][table["s"] == s]) for table in tables for s in (0, 1)
        ]
        quilts = chain_influence(
            [([0.5, 0.5], steps[i % 3])], 60, life=life_of(scenario)
        )
        price = quilts.worst(2.0, lambda sizes: sizes / 30).price
        distances = [
            cached_distribution_distance(laws[0], law, 2, None, np.inf) for law in laws
        ]
        return value[0], price, distances

    expected = [ask(i) for i in range(21)]
    for _ in range(2):
        MEMORY.clear()
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, range(105)))
        for i, (value, price, distances) in enumerate(found):
            assert value == i % 7
            assert price == pytest.approx(expected[i % 21][1], rel=1e-12)
            assert distances == expected[i % 21][2]
    assert memory.n_bytes <= 20_000
