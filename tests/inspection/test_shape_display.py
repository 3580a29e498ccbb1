"""Shape functions, drawn from what is released."""

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.additive import PrivateAdditiveClassifier
from skpuffer.inspection import ShapeDisplay
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.schema import Number, Schema
from tests.refused import refused

plt = pytest.importorskip("matplotlib.pyplot")

pytestmark = pytest.mark.filterwarnings(
    "ignore::skpuffer.exceptions.PrivacyWarning",
)

SCHEMA = Schema(
    {
        "age": Number(0, 100, missing_level=True),
        "job": ["none", "full"],
        "gain": Number(0, 1e5, amount=True),
    }
)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def model(n_classes=2, **options):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, 500),
            "job": rng.choice(["none", "full"], 500),
            "gain": rng.lognormal(3, 2, 500),
        }
    )
    y = (X["age"] * n_classes // 100).astype(int).to_numpy()
    return PrivateAdditiveClassifier(
        accountant=PrivacyLoss(5.0, 1e-5),
        schema=SCHEMA,
        classes=list(range(n_classes)),
        n_rounds=5,
        **options,
    ).fit(X, y)


def test_all_functions_are_drawn_with_bands_and_masses():
    fitted = model(interactions=[("age", "job")])
    display = ShapeDisplay.from_estimator(fitted)
    assert [ax.get_title() for ax in display.axes_] == [
        "age",
        "job",
        "gain",
        "age and job",
    ]
    age, job, gain, _ = display.axes_
    drawn = age.lines[0].get_ydata()
    one = fitted.shape_functions_["age"]
    np.testing.assert_array_equal(drawn[:-1], one.scores[:-1])
    (band,) = age.collections
    low = band.get_paths()[0].vertices[:, 1].min()
    assert low == pytest.approx(np.min((one.scores - 2 * one.standard_errors)[:-1]))
    # bars of the noisy shares stand on axes of their own
    foot = next(ax for ax in display.figure_.axes if len(ax.patches) == 32)
    np.testing.assert_allclose([p.get_height() for p in foot.patches], one.masses[:-1])
    assert gain.get_xscale() == "symlog"
    assert [t.get_text() for t in job.get_xticklabels()] == ["none", "full", "missing"]
    display.figure_.canvas.draw()


def test_some_functions_of_several_classes_on_given_axes():
    _, (left, right) = plt.subplots(1, 2)
    display = ShapeDisplay.from_estimator(
        model(3), features=["job", "age"], axes=[left, right], deviations=1
    )
    assert list(display.axes_) == [left, right]
    texts = [t.get_text() for t in right.get_legend().get_texts()]
    assert texts == ["0", "1", "2"]


def test_what_cannot_be_drawn_is_refused():
    fitted = model()
    with refused(ValueError, "shaped.features_unknown"):
        ShapeDisplay.from_estimator(fitted, features=["height"])
    with refused(ValueError, "shaped.axes_count_mismatch"):
        ShapeDisplay.from_estimator(fitted, axes=[plt.gca()])
    linear = PrivateLogisticRegression().fit(np.eye(20, 3), np.tile([0, 1], 10))
    with refused(TypeError, "shaped.estimator_not_additive"):
        ShapeDisplay.from_estimator(linear)
