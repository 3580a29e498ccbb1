"""Released numbers, drawn with their intervals."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from skpuffer.exceptions import UnsupportedError
from skpuffer.inspection import SummaryDisplay
from skpuffer.linear_model import PrivateLinearRegression
from skpuffer.scenarios import BlocksScenario, RecordScenario
from skpuffer.schema import Number, Schema
from skpuffer.summary import PrivateMean, PrivateQuantile, PrivateSummary
from tests.refused import refused

plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"sex": ["F", "M"] * 300, "age": RNG.uniform(0, 90, 600)})


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def by_sex(statistics=("mean", "std"), **parameters):
    book = Schema({"sex": ["F", "M"], "age": Number(0, 90)})
    model = PrivateSummary(
        by="sex", schema=book, statistics={"age": list(statistics)}, **parameters
    )
    return model.fit(TABLE)


@pytest.mark.parametrize("of", ["population", "table"])
def test_bars_are_the_intervals_of_the_table(of):
    model = by_sex()
    display = SummaryDisplay.from_estimator(model, of=of, statistics=["mean", "std"])
    frame = model.to_frame(of=of).dropna()
    titles = [ax.get_title() for ax in display.axes_]
    assert titles == ["age: mean", "age: std"]
    for ax, statistic in zip(display.axes_, ("mean", "std"), strict=True):
        rows = frame[frame.statistic == statistic]
        known = [c for c in ax.collections if c.get_linestyle()[0][1] is None]
        drawn = np.concatenate([c.get_segments() for c in known])
        ends = sorted(map(tuple, drawn[:, :, 0].tolist()))
        assert ends == sorted(zip(rows.low, rows.high, strict=True))
        points = np.concatenate([line.get_xdata() for line in ax.lines])
        assert sorted(points) == sorted(rows.estimate)
        # what is wide is hollow
        hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
        assert sum(len(line.get_xdata()) for line in hollow) == rows.wide.sum()
        assert [t.get_text() for t in ax.get_yticklabels()] == ["F", "M", "nan"]
        # of people whose sex is missing nothing is known: all that may be is dotted
        (lost,) = [c for c in ax.collections if c not in known]
        most = 90 if statistic == "mean" else 45
        assert lost.get_segments()[0][:, 0].tolist() == [0, most]


def test_coefficients_are_drawn_on_one_axis():
    X = TABLE.assign(sex=(TABLE.sex == "M").astype(float))
    model = PrivateLinearRegression(bounds=([0, 0], [1, 90]), target_bounds=(0, 90))
    display = SummaryDisplay.from_estimator(model.fit(X, X.age / 2))
    (ax,) = display.axes_
    assert len(ax.get_yticklabels()) == len(model.to_frame())


def test_means_are_drawn_with_their_intervals():
    mean = PrivateMean(bounds=(0, 90)).fit(TABLE[["age"]])
    display = SummaryDisplay.from_estimator(mean)
    row = mean.to_frame().iloc[0]
    assert (row["column"], row["statistic"]) == ("age", "mean")
    assert row["high"] - row["low"] == pytest.approx(
        2 * 1.96 * row["std_error"], rel=0.01
    )
    assert len(np.ravel(display.axes_)) == 1


def test_what_cannot_be_drawn_is_refused_by_name():
    model = by_sex()
    with refused(ValueError, "inspection.nothing_to_draw"):
        SummaryDisplay.from_estimator(model, statistics=["variance"])
    with refused(ValueError, "shaped.axes_count_mismatch"):
        SummaryDisplay.from_estimator(model, axes=[])
    mean = PrivateMean(bounds=(0, 90)).fit(TABLE[["age"]])
    median = PrivateQuantile(bounds=(0, 90)).fit(TABLE[["age"]])
    with refused(TypeError, "inspection.estimator_without_frame"):
        SummaryDisplay.from_estimator(StandardScaler().fit(TABLE[["age"]]))
    with refused(UnsupportedError, "release.no_confidence_intervals"):
        SummaryDisplay.from_estimator(median)
    with pytest.raises(ValueError, match="level"):
        mean.to_frame(level=2)
    rows = by_sex(scenario=BlocksScenario(RecordScenario(2), sizes=2))
    with refused(UnsupportedError, "summary.no_population_of_such_records"):
        SummaryDisplay.from_estimator(rows)
