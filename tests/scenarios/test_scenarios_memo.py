"""What is remembered of laws, and for how long."""

import gc
import weakref

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import GeneralWasserstein
from skpuffer.scenarios import AttributeScenario, Discrete
from skpuffer.scenarios._laws import cached_law_distance
from skpuffer.scenarios._memo import remembered_with
from skpuffer.summary import PrivateMean


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
    assert cached_law_distance(u, v, 2, None, np.inf) == 1.0
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
