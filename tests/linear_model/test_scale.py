"""A word where public bounds say that columns are of another scale than a norm."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.exceptions import PrivacyWarning, ScaleWarning
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.linear_model._base_linear import scale_advice
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.scenarios import AttributeScenario
from skpuffer.schema import Schema
from skpuffer.svm import PrivateLinearSVC
from tests.refused import says, warned


def people(scale, n=80, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(n, 3)) * scale, columns=list("abc"))
    return frame.assign(group=np.where(rng.random(n) < 0.5, "u", "v"))


def labels(frame):
    return (frame["a"] > 0).astype(int).to_numpy()


def scenario(frame):
    # public rows, of which the bounds are
    prior = frame.assign(y=labels(frame))
    return AttributeScenario("group", level="record", prior=prior, target="y")


MAKE = [PrivateLogisticRegression, PrivateLinearSVC, PrivateMLPClassifier]


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize(
    "scale, match",
    [
        (60.0, "linear.rows_longer_than_data_norm"),
        (0.01, "linear.rows_shorter_than_data_norm"),
    ],
)
def test_trained_classifiers_say_it(make, scale, match):
    frame = people(scale, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        with warned(ScaleWarning, match):
            make(scenario(people(scale)), random_state=0).fit(frame, labels(frame))


@pytest.mark.parametrize("make", MAKE)
def test_nothing_is_said_of_rows_of_that_scale_or_without_public_facts(make):
    frame = people(0.6, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaleWarning)
        warnings.simplefilter("ignore", PrivacyWarning)
        make(scenario(people(0.6)), random_state=0).fit(frame, labels(frame))
        # of the private rows alone: nothing that they decide may be told
        wide = people(1e4, seed=1)
        make(random_state=0).fit(wide[["a", "b", "c"]], labels(wide))


def test_a_norm_that_is_not_that_of_a_schema():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(0, 90, 60), "b": rng.uniform(0, 1e5, 60)})
    schema = Schema({"a": (0, 90), "b": (0, 1e5)})
    y = rng.uniform(0, 1, 60)
    model = PrivateRidge(schema=schema, data_norm=1e5, target_bounds=(0, 1))
    with warned(ScaleWarning, "linear.schema_rows_below_data_norm"):
        model.fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaleWarning)
        model.set_params(data_norm=1.0).fit(frame, y)


@given(
    widths=st.lists(st.floats(0.01, 100), min_size=1, max_size=6),
    factor=st.floats(1e-3, 1e3),
)
def test_units_do_not_matter(widths, factor):
    high = np.array(widths)
    norm = np.linalg.norm(high)

    def kind(advice):
        return None if advice is None else str(advice).split()[0]

    one = scale_advice(-high, high, norm)
    assert kind(one) in (None, "one")
    assert kind(scale_advice(-factor * high, factor * high, factor * norm)) == kind(one)
    # whatever is far longer, or far shorter
    assert kind(scale_advice(-high, high, norm / 30)) == "rows"
    assert kind(scale_advice(-high, high, norm * 11)) == "no"


def test_one_column_beside_which_the_others_are_nothing():
    high = np.array([1.0, 1.0, 2.0, 500.0])
    advice = scale_advice(-high, high, 500.0)
    assert says(advice, "linear.one_column_too_wide")
    assert round(advice.parameters["ratio"]) != 500
