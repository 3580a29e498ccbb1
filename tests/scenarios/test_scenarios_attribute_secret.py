"""What the secret column of the private table may hold."""

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import GeneralWasserstein
from skpuffer.exceptions import ScenarioError
from skpuffer.scenarios import AttributeScenario
from skpuffer.summary import PrivateMean
from tests.refused import refused

PRIOR = pd.DataFrame({"site": ["a", "a", "b", "b"], "x": [0.0, 1.0, 0.5, 1.5]})


def mean_under(level):
    scenario = AttributeScenario("site", level=level, prior=PRIOR, prior_as="law")
    return PrivateMean(scenario, GeneralWasserstein(1.0, alpha=2.0))


def test_records_of_one_data_set_share_their_secret():
    table = pd.DataFrame({"site": ["a", "b", "a"], "x": [0.1, 0.2, 0.3]})
    mean_under("record").fit(table)
    mean_under("dataset").fit(table.assign(site="b"))
    model = mean_under("dataset")
    with refused(ScenarioError, "attribute.several_values_at_dataset_level"):
        model.fit(table)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_the_levels_differ_by_the_number_of_records():
    table = pd.DataFrame({"x": np.linspace(0, 1, 50)})
    record, dataset = (
        mean_under(level).fit(table).certificate_.sensitivity
        for level in ("record", "dataset")
    )
    assert dataset == pytest.approx(50 * record)
