"""Bad input: refused by the parameter's name, before any data, with nothing fitted."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context

from skpuffer.additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from skpuffer.exceptions import UnsupportedError
from skpuffer.schema import Schema
from skpuffer.testing._canaries import NUMBER, TEXT, listen
from tests.refused import refused as is_refused

pytestmark = pytest.mark.filterwarnings(
    "ignore::skpuffer.exceptions.PrivacyWarning",
)

SCHEMA = Schema({"a": (0, 1), "b": ["x", "y"], "t": [0, 1]}, target="t")
FEATURES = Schema({"a": (0, 1), "b": ["x", "y"]})
NUMERIC = Schema({"a": (0, 1), "b": ["x", "y"], "t": (0, 1)}, target="t")
FRAME = pd.DataFrame({"a": [NUMBER] * 20, "b": [TEXT] * 20})
LABELS = np.tile([0, 1], 10)

#: What is wrong with a classifier, and what the message must name.
CLASSIFIERS = {
    "no book": ({}, "schema"),
    "no schema": ({"schema": {"a": (0, 1)}}, "schema"),
    "bounds and levels missing": ({"bounds": {"a": (0, 1)}}, "categories"),
    "contradictory bounds": ({"schema": SCHEMA, "bounds": {"a": (0, 2)}}, "bounds"),
    "contradictory pair": ({"schema": SCHEMA, "bounds": (0, 2)}, "bounds"),
    "contradictory levels": (
        {"schema": SCHEMA, "categories": {"b": ["x", "z"]}},
        "categories",
    ),
    "a category as an amount": ({"schema": SCHEMA, "amounts": ["b"]}, "amounts"),
    "contradictory classes": ({"schema": SCHEMA, "classes": [0, 1, 2]}, "classes"),
    "a numeric target": ({"schema": NUMERIC}, "'t'"),
    "one class": ({"schema": FEATURES, "classes": [1]}, "classes"),
    "bounds of a column that is not there": (
        {"bounds": {"a": (0, 1), "z": (0, 1)}, "categories": {"b": ["x"]}},
        "'z'",
    ),
    "an amount that is not there": ({"schema": SCHEMA, "amounts": ["z"]}, "'z'"),
    "a pair that is not there": (
        {"schema": SCHEMA, "interactions": [("a", "z")]},
        "interactions",
    ),
    "a pair of one": ({"schema": SCHEMA, "interactions": [("a", "a")]}, "interactions"),
    "a pair twice": (
        {"schema": SCHEMA, "interactions": [("a", "b"), ("b", "a")]},
        "interactions",
    ),
    "no pairs": ({"schema": SCHEMA, "interactions": ["ab", "b"]}, "interactions"),
    "interactions of a word": ({"schema": SCHEMA, "interactions": "some"}, "interac"),
    "no direction": (
        {"schema": SCHEMA, "monotone_constraints": {"a": 2}},
        "monotone_constraints",
    ),
    "a direction of what is not there": (
        {"schema": SCHEMA, "monotone_constraints": {"z": 1}},
        "'z'",
    ),
    "a direction of levels": (
        {"schema": SCHEMA, "monotone_constraints": {"b": 1}},
        "ordered=True",
    ),
    "one bin": ({"schema": SCHEMA, "n_bins": 1}, "n_bins"),
    "one bin of an amount": ({"schema": SCHEMA, "n_amount_bins": 1}, "n_amount_bins"),
    "no rounds": ({"schema": SCHEMA, "n_rounds": 0}, "n_rounds"),
    "rounds of a word": ({"schema": SCHEMA, "n_rounds": "many"}, "n_rounds"),
}
REGRESSORS = {
    "no bounds of the target": ({"schema": FEATURES}, "target_bounds"),
    "contradictory ones": (
        {"schema": NUMERIC, "target_bounds": (0, 2)},
        "target_bounds",
    ),
    "reversed ones": (
        {"schema": FEATURES, "target_bounds": (1, 0)},
        "target_bounds",
    ),
    "a target of levels": ({"schema": SCHEMA}, "'t'"),
}
MODELS = {
    **{n: (PrivateAdditiveClassifier, *held) for n, held in CLASSIFIERS.items()},
    **{n: (PrivateAdditiveRegressor, *held) for n, held in REGRESSORS.items()},
}


def refused(model, match, *arguments, error=(ValueError, TypeError), **options):
    with listen() as said:
        model.fit(*arguments, **options)
    assert isinstance(said.error, error), said.error
    assert match in str(said.error)
    assert not said.songs
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("skip", [False, True], ids=["checked", "unchecked"])
def test_parameters(name, skip):
    make, options, match = MODELS[name]
    with config_context(skip_parameter_validation=skip):
        refused(make(**options), match, FRAME, LABELS, error=(ValueError, TypeError))


def test_what_agrees_with_the_schema_may_be_said_again():
    model = PrivateAdditiveClassifier(
        schema=SCHEMA,
        bounds={"a": (0, 1)},
        categories={"b": ["x", "y"]},
        classes=[1, 0],
        interactions="all",
        n_rounds=2,
    )
    model.fit(FRAME, LABELS)
    regressor = PrivateAdditiveRegressor(
        schema=NUMERIC, target_bounds=(0, 1), n_rounds=2
    )
    assert regressor.fit(FRAME, LABELS).n_rounds_ == 2


def test_without_a_code_book_the_error_is_one_of_support():
    refused(
        PrivateAdditiveClassifier(), "schema", FRAME, LABELS, error=UnsupportedError
    )


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_tables(schema):
    options = {"schema": schema, "classes": [0, 1]}
    if schema is None:
        options |= {"bounds": (0, 1)}
    model = PrivateAdditiveClassifier(**options)
    numbers = FRAME.assign(b=0.0 if schema is None else "x")
    refused(model, "minimum of", numbers.iloc[:0], LABELS[:0])
    refused(model, "minimum of", numbers.iloc[:1], LABELS[:1])
    refused(model, "inconsistent numbers", numbers, LABELS[:5])
    refused(model, "y", numbers, None)
    one_hot = sparse.csr_matrix(np.eye(20, 2))
    refused(model, "sparse", one_hot, LABELS)
    refused(
        model, "weight", numbers, LABELS, sample_weight=np.ones(20), error=TypeError
    )


def test_sparse_one_hot_codes_are_refused_with_the_remedy():
    model = PrivateAdditiveClassifier(bounds=(0, 1), classes=[0, 1])
    refused(model, "categories", sparse.csr_matrix(np.eye(20, 2)), LABELS)


def test_a_column_that_is_not_there_is_named():
    model = PrivateAdditiveClassifier(schema=SCHEMA)
    refused(model, "'b'", FRAME[["a"]], LABELS)
    model.fit(FRAME, LABELS)
    with is_refused(ValueError, "schema.table_lacks_columns"):
        model.predict(FRAME[["a"]])


def test_a_target_that_is_also_a_feature_is_no_feature():
    # by the schema, the frame may hold it
    model = PrivateAdditiveClassifier(schema=SCHEMA, n_rounds=2)
    model.fit(FRAME.assign(t=LABELS), LABELS)
    assert list(model.shape_functions_) == ["a", "b"]
