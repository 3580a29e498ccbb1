"""Displays of released margins beside synthetic ones, and real ones if given."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import PrivacyLeakWarning
from skpuffer.inspection import MarginalDisplay
from skpuffer.schema import Category, Number, Schema
from skpuffer.synthesis import PrivateTableSynthesizer
from tests.refused import refused, warned

SCHEMA = Schema(
    {
        "age": Number(18, 80, missing=False),
        "ill": Category(["no", "yes"], missing_level=False),
    },
    target="ill",
)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    age = rng.uniform(18, 80, 2000)
    return pd.DataFrame({"age": age, "ill": np.where(age > 50, "yes", "no")})


@pytest.fixture(scope="module")
def synthesizer(table):
    model = PrivateTableSynthesizer(
        accountant=PrivacyLoss(50.0, 1e-2), schema=SCHEMA, random_state=0
    )
    return model.fit(table)


def test_one_column_is_drawn_as_bars(synthesizer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = MarginalDisplay.from_estimator(synthesizer, "ill", random_state=0)
    released, drawn = display.ax_.containers
    assert [bar.get_height() for bar in released] == pytest.approx(
        (synthesizer.marginal("ill") / 2000).tolist()
    )
    assert sum(bar.get_height() for bar in drawn) == pytest.approx(1)
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["no", "yes"]
    assert [t.get_text() for t in display.ax_.get_legend().texts] == [
        "released",
        "synthetic",
    ]
    assert display.figure_ is display.ax_.figure


def test_several_columns_are_drawn_as_points(synthesizer):
    rows = synthesizer.sample(400, random_state=1)
    _, ax = plt.subplots()
    display = MarginalDisplay.from_estimator(
        synthesizer, ["age", "ill"], synthetic=rows, ax=ax
    )
    assert display.ax_ is ax
    points, diagonal = ax.lines
    assert len(points.get_xdata()) == 32 * 2
    # rows of the sample that was given, by the same cells
    np.testing.assert_allclose(points.get_ydata(), points.get_xdata(), atol=0.02)
    assert display.synthetic.sum() == 400
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())


def test_real_rows_are_drawn_only_where_they_are_given_and_it_says_so(
    synthesizer, table
):
    with warned(PrivacyLeakWarning, "inspection.marginals_of_real_rows"):
        display = MarginalDisplay.from_estimator(synthesizer, "ill", real=table)
    assert "private" in display.ax_.get_legend().texts[-1].get_text()
    real = [bar.get_height() for bar in display.ax_.containers[2]]
    expected = table["ill"].value_counts(normalize=True)[["no", "yes"]]
    assert real == pytest.approx(expected.tolist())
    # nothing of them stays on the estimator
    assert not any(value is table for value in vars(synthesizer).values())


def test_it_must_be_fitted_and_have_the_columns(synthesizer):
    with pytest.raises(NotFittedError):
        MarginalDisplay.from_estimator(PrivateTableSynthesizer(schema=SCHEMA), "age")
    with refused(ValueError, "synthesis.columns_invalid"):
        MarginalDisplay.from_estimator(synthesizer, "wealth")
