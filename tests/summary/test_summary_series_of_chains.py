"""Series by month of readings whose states are a Markov chain: by brute force."""

import itertools

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import GroupPrivacy, MarkovQuilt
from skpuffer.covariance import PrivateCovariance
from skpuffer.exceptions import ScenarioError
from skpuffer.scenarios import MarkovChainScenario, RecordScenario
from skpuffer.schema import Category, Date, Schema
from skpuffer.summary import PrivateMean, PrivateSummary
from tests.refused import refused, says

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

DATES = pd.to_datetime(["2024-01-30", "2024-01-31", "2024-02-01", "2024-02-01"])
BOOK = Schema({"at": Date("2024-01-01", "2024-02-28"), "load": (0, 1)})
MIXING, FROZEN = [[0.8, 0.2], [0.3, 0.7]], [[1.0, 0.0], [0.0, 1.0]]
#: Readings, cut at a half: the state of each and its probability given the state. One
#: that is missing is of the last state.
READINGS = np.array([0.0, 0.3, 0.6, 1.0, np.nan])
STATES, SHARES = np.array([0, 0, 1, 1, 1]), np.array([0.6, 0.4, 0.3, 0.5, 0.2])


def chain(transition, **given):
    given = {"cuts": {"load": [0.5]}, "times": "at", "initial": [0.5, 0.5]} | given
    return MarkovChainScenario(transition, **given)


class Told(PrivateSummary):
    """Keeps the release, whose contributions are looked at."""

    def _publish(self, value, release):
        self.told = release
        super()._publish(value, release)


def worlds(transition):
    """All series, as places among the readings, and how likely each is."""
    places = np.indices((len(READINGS),) * len(DATES)).reshape(len(DATES), -1).T
    states = STATES[places]
    steps = np.array(transition)[states[:, :-1], states[:, 1:]]
    masses = 0.5 * steps.prod(axis=1) * SHARES[places].prod(axis=1)
    return places[masses > 0], masses[masses > 0]


def largest_odds(transition, accountant, statistics, share=1.0):
    """Largest log odds of two readings at one time, over outputs far and near."""
    model = Told(
        chain(transition),
        accountant,
        statistics=statistics,
        by="month",
        bins=2,
        schema=BOOK,
    )
    places, masses = worlds(transition)
    series = READINGS[places]
    model.fit(pd.DataFrame({"at": DATES, "load": series[0]}))
    release, scale = model.told, share * np.asarray(model.noise_.scale)
    rows = pd.DataFrame({"at": np.tile(DATES, len(series)), "load": series.ravel()})
    each = release.contribution(np.asarray(model.feature_map_(rows)))
    sums = each.reshape(len(series), len(DATES), -1).sum(axis=1)
    exact = sums * release.factor * release.unit_array / scale
    # coordinates that no reading moves tell nothing
    exact = exact[:, np.ptp(exact, axis=0) > 0]
    far = np.array([*itertools.product([-1e3, 1e3], repeat=exact.shape[1])])
    points = np.vstack([np.unique(exact, axis=0), far])
    distance = np.abs(points[:, None] - exact).sum(axis=2)
    likely = np.exp(distance.min(axis=1, keepdims=True) - distance) * masses
    odds = 0.0
    for t in range(len(DATES)):
        alike = [places[:, t] == place for place in range(len(READINGS))]
        given = [np.log(likely[:, at].sum(axis=1) / masses[at].sum()) for at in alike]
        odds = max(odds, np.ptp(given, axis=0).max())
    return odds


@pytest.mark.parametrize("statistics", [["mean"], ["histogram"]])
def test_no_reading_is_told_beyond_the_promise(statistics):
    """And where a chain never changes it is used up, as too little noise shows."""
    accountant = MarkovQuilt(epsilon=1.5)
    assert largest_odds(MIXING, accountant, statistics) <= 1.5
    frozen = [largest_odds(FROZEN, accountant, statistics, s) for s in (1.0, 0.7)]
    assert frozen[0] <= 1.5 * (1 + 1e-6)
    assert frozen[1] > 1.5


def test_a_record_moves_within_its_month():
    """Not from one to another: what moves is a reading at its public time."""
    times = pd.date_range("2024-01-01", "2024-02-27", freq="D")
    load = np.random.default_rng(0).random(len(times))
    table = pd.DataFrame({"at": times, "load": load})
    asked = {"statistics": ["mean"], "by": "month", "schema": BOOK}
    accountant = GroupPrivacy(1.0, noise="laplace", alpha=float("inf"))
    one = PrivateSummary(chain(FROZEN, event_delta=0), accountant, **asked).fit(table)
    # as if the number of records in each month was told, and all readings are one
    n, whole = len(times), one.certificate_
    assert whole.coupling_count == n
    alone = PrivateMean(
        RecordScenario(relation="replace"), accountant, schema=BOOK.select(["load"])
    )
    alone.fit(table[["load"]])
    moved = alone.certificate_.sensitivity * n
    assert whole.sensitivity == pytest.approx(moved, rel=1e-3)
    assert says(whole.assumptions, "assume.markov_times_public", times="at")
    found = whole.assumptions
    assert says(found, "assume.markov_readings_are_chain", column="load", cuts=[0.5])


def test_records_are_in_the_order_of_their_times():
    """Else readings one after the other lie apart in the table, and are not hidden."""
    times = pd.Series(pd.date_range("2024-01-01", "2024-02-27", freq="D"))
    times[10] = pd.NaT
    table = pd.DataFrame({"at": times, "load": 0.5})
    asked = {"statistics": ["mean"], "by": "month", "schema": BOOK}
    model = PrivateSummary(chain(MIXING), MarkovQuilt(1.0), **asked).fit(table)
    for other in (table[::-1], table.iloc[[0, 3, 2, *range(3, len(table))]]):
        with refused(ScenarioError, "markov.times_not_in_order", times="at"):
            model.fit(other)


def test_series_of_readings_are_those_of_the_table():
    n = 4000
    times = pd.date_range("2024-01-01", "2024-02-27", periods=n).floor("D")
    load = np.random.default_rng(0).random(n)
    load[::50] = np.nan
    table = pd.DataFrame({"at": times, "load": load})
    asked = {"statistics": ["mean", "count"], "by": "month", "schema": BOOK}
    model = PrivateSummary(chain(MIXING), MarkovQuilt(1e6), **asked).fit(table)
    expected = table.groupby(times.to_period("M")).load.agg(["mean", "count"])
    for name in ("mean", "count"):
        np.testing.assert_allclose(
            model.result_["load", name][:2], expected[name], rtol=1e-3
        )
    # readings of one column alone need no times, and no code book
    mean = PrivateMean(chain(MIXING, times=None), MarkovQuilt(1e6), bounds=(0, 1))
    found = mean.fit(table[["load"]].fillna(0.5)).mean_
    assert found[0] == pytest.approx(table.load.fillna(0.5).mean(), abs=1e-3)
    covariance = PrivateCovariance(
        chain(MIXING, times=None), MarkovQuilt(1e6), bounds=(0, 1)
    ).fit(table[["load"]].fillna(0.5))
    assert covariance.covariance_[0, 0] == pytest.approx(
        load[1].var() or 0.08, abs=0.05
    )


@pytest.mark.parametrize(
    "given, code",
    [
        ({"cuts": None}, "markov.times_without_cuts"),
        ({"states": [0.0, 1.0]}, "markov.states_beside_cuts"),
        ({"cuts": [0.5]}, "markov.cuts_not_of_one_column"),
        ({"cuts": {"load": [0.5], "x": [0.5]}}, "markov.cuts_not_of_one_column"),
        ({"cuts": {"load": [0.5, 0.7]}}, "markov.cuts_invalid"),
        ({"cuts": {"at": [0.5]}}, "markov.times_are_cut"),
        ({"cuts": {"power": [0.5]}}, "markov.cuts_of_other_columns"),
        ({"times": None}, "summary.dates_are_no_states"),
    ],
)
def test_cuts_and_times_are_checked(given, code):
    table = pd.DataFrame({"at": DATES, "load": 0.5})
    model = PrivateSummary(
        chain(MIXING, **given), MarkovQuilt(), by="month", schema=BOOK
    )
    with refused(ScenarioError, code):
        model.fit(table)


def test_levels_move_as_far_as_they_can():
    """The column of a chain may hold levels, of which no range is known."""
    levels = Schema({"at": BOOK["at"], "load": Category([0.0, 1.0])})
    table = pd.DataFrame({"at": DATES, "load": [0.0, 1.0, 0.0, 1.0]})
    asked = {"statistics": {"load": ["rate"]}, "by": "month", "schema": levels}
    accountant = GroupPrivacy(1.0, noise="laplace", alpha=float("inf"))
    found = [
        PrivateSummary(scenario, accountant, **asked).fit(table).certificate_
        for scenario in (
            chain(MIXING, event_delta=0),
            RecordScenario(relation="replace"),
        )
    ]
    assert 0 < found[0].sensitivity / len(table) <= found[1].sensitivity


def test_what_times_alone_tell_is_public():
    """Numbers of records by month do not move with any reading."""
    table = pd.DataFrame({"at": DATES, "load": 0.5})
    asked = {"statistics": ["size"], "by": "month", "schema": BOOK}
    model = PrivateSummary(chain(MIXING), MarkovQuilt(), **asked).fit(table)
    assert model.certificate_.sensitivity == 0
