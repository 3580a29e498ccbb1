"""From a file to a certified model, with nothing but the table's code book."""

import numpy as np
import pandas as pd
import pytest

from skpuffer.datasets import (
    fetch_german_credit,
    fetch_rice,
    load_adult,
    load_heart,
    load_household_power,
    load_student,
)
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.schema import Schema

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")


def test_adult(data_dir):
    schema = load_adult().schema
    table = pd.read_csv(data_dir / "adult_train.csv.gz")
    model = PrivateLogisticRegression(schema=schema, random_state=0)
    model.fit(table, table["income"])
    assert model.certificate_.epsilon == 1
    test = pd.read_csv(data_dir / "adult_test.csv.gz")
    assert model.score(test, test["income"]) > 0.83


def test_german_credit(data_dir):
    schema = fetch_german_credit(data_home=data_dir).schema
    table = pd.read_csv(data_dir / "german_credit.csv")
    model = PrivateLogisticRegression(schema=schema, random_state=0)
    model.fit(table, table["class"])
    assert model.certificate_.epsilon == 1
    assert model.score(table, table["class"]) > 0.65


def test_heart(data_dir):
    schema = load_heart().schema
    table = pd.read_csv(data_dir / "heart_cleveland.csv")
    model = PrivateLogisticRegression(schema=schema, random_state=0)
    model.fit(table, table["num"])
    assert model.certificate_.epsilon == 1
    sick = (table["num"] > 0).to_numpy()
    assert np.mean((model.predict(table) > 0) == sick) > 0.7


@pytest.mark.parametrize(
    "load", [load_adult, load_heart, load_student, load_household_power]
)
def test_code_books_are_of_the_tables_they_come_with(load):
    data = load()
    schema = data.schema
    assert schema.names == tuple(data.feature_names)
    assert [schema.target] == data.target_names
    assert Schema.from_json(schema.to_json()) == schema
    for name, levels in data.categories.items():
        assert schema[name].levels == tuple(levels)
    # no value is read as another
    binning = schema.binning()
    for name, values in data.data.items():
        k = schema.names.index(name)
        column = schema.select([name]).binning()
        codes = column(values.to_frame())[:, 0]
        if values.isna().any() and schema[name].has_gaps:
            assert set(codes[values.isna()]) == {binning.n_cells[k] - 1}
        if hasattr(schema[name], "low") and values.notna().any():
            assert schema[name].low <= values.min() <= values.max() <= schema[name].high


def test_the_file_of_rice(data_dir):
    rice = fetch_rice(data_home=data_dir)
    assert rice.schema.classes == ("Cammeo", "Osmancik")
    assert len(rice.schema) == 7
